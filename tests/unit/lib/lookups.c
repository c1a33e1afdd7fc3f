// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Planes that look up; see lookups.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernel/netns.h"
#include "kernel/remove.h"
#include "lookups.h"

struct sw_steer *lookups_steer;

int lookups_setup(void **state)
{
	struct sw_error err = {0};

	if (nets_setup(state))
		return -1;
	if (!sw_steer_open(&lookups_steer, nets_root, &err))
		return 0;
	printf("%s\n", err.text);
	return -1;
}

int lookups_teardown(void **state)
{
	struct sw_error err;

	sw_steer_leave(lookups_steer);
	lookups_steer = NULL;
	sw_host_remove(nets_root, &err);
	return nets_teardown(state);
}

struct sw_plane *lookups_open(bool lookup)
{
	struct sw_plane_conf conf = nets_conf(SW_ATTACH_TC);
	struct sw_error err = {0};
	struct sw_plane *p = NULL;

	conf.slots = sw_steer_maps(lookups_steer);
	conf.lookup = lookup;
	if (sw_plane_open(&p, &conf, &err))
		fail_msg("%s", err.text);
	return p;
}

static struct sw_worker_row worker_row(void)
{
	struct sw_worker_row row = {.addr = {[10] = 0xff, [11] = 0xff},
				    .port = WORKER_PORT,
				    .pool = LOOKUPS_POOL,
				    .cap = 4};

	inet_pton(AF_INET, "192.0.2.1", row.addr + 12);
	return row;
}

void lookups_pool(void)
{
	struct sw_steer_pool pool = {.deadline_ns = UINT64_MAX,
				     .flags = SW_SF_COUNT | SW_SF_ASSIGN,
				     .half_open = 100,
				     .words = 1};
	struct sw_bits one = {.word = {1ULL << LOOKUPS_WORKER}};
	struct sw_worker_row row = worker_row();

	assert_int_equal(sw_steer_set_pool(lookups_steer, LOOKUPS_POOL, &pool), 0);
	assert_int_equal(sw_steer_set_worker(lookups_steer, LOOKUPS_WORKER, &row), 0);
	sw_steer_set_nonbusy(lookups_steer, &one);
	sw_steer_set_reach4(lookups_steer, &one);
	sw_steer_set_members(lookups_steer, LOOKUPS_POOL, &one);
}

void lookups_configure(struct sw_plane *p)
{
	struct sw_pool_conf pools[LOOKUPS_POOL + 1] = {0};
	struct sw_listener_conf l = {
		.v4 = true, .port = LOOKUPS_PORT, .pool = LOOKUPS_POOL, .netns = nets_guarded};
	struct sw_config c = {
		.pools = pools, .n_pools = LOOKUPS_POOL + 1, .listeners = &l, .n_listeners = 1};
	struct sw_error err = {0};

	for (size_t i = 0; i <= LOOKUPS_POOL; i++)
		pools[i].answer = (struct sw_answer_spec){
			.status = 529, .drain_status = 503, .max_bytes = SW_ANSWER_DEFAULT};
	if (sw_plane_configure(p, &c, &err))
		fail_msg("%s", err.text);
}

static int make_socket(const char *netns)
{
	int former, fd;

	assert_int_equal(sw_netns_enter(netns, &former, NULL), 0);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	sw_netns_leave(former);
	return fd;
}

int lookups_listen(uint16_t port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = make_socket(nets_guarded);

	inet_pton(AF_INET, "192.0.2.1", &at.sin_addr);
	assert_int_equal(bind(fd, (void *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

int lookups_connect(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(LOOKUPS_PORT)};
	struct timeval limit = {.tv_sec = 2};
	int fd = make_socket(nets_client), ret;

	inet_pton(AF_INET, "192.0.2.1", &at.sin_addr);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	ret = connect(fd, (void *)&at, sizeof(at)) ? -errno : 0;
	close(fd);
	return ret;
}
