// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* sk_lookup and what belongs to it; see lookup.h and plane.h. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernel/link.h"
#include "kernel/lookup.h"
#include "spillway.skel.h"

static void pin_path(const struct sw_plane *p, char *out, size_t size)
{
	snprintf(out, size, "%s/link_lookup", p->dir);
}

/* ---- attaching ------------------------------------------------------------------------------ */

static int attach_to(struct sw_plane *p, int netns)
{
	int program = bpf_program__fd(p->obj->progs.spillway_lookup);
	char pin[256];
	struct sw_link_at at = {
		.pin = pin, .target = netns, .id = p->id.ino, .type = BPF_SK_LOOKUP};

	pin_path(p, pin, sizeof(pin));
	p->lookup_link = sw_link_take_over(&at, program);
	p->lookup_is_new = p->lookup_link < 0;
	if (p->lookup_is_new)
		p->lookup_link = sw_link_make(&at, program);
	return p->lookup_link < 0 ? p->lookup_link : 0;
}

int sw_lookup_attach(struct sw_plane *p, struct sw_error *err)
{
	int netns, ret;

	if (!p->lookup)
		return 0;
	netns = open(SW_OWN_NETNS, O_RDONLY | O_CLOEXEC);
	ret = netns < 0 ? -errno : attach_to(p, netns);
	if (netns >= 0)
		close(netns);
	return ret ? sw_fail(err, ret, "attaching sk_lookup%s%s: %s%s", p->netns ? " in " : "",
			     p->netns ? p->netns : "", strerror(-ret),
			     ret == -EPERM ? " (needs CAP_NET_ADMIN)" : "")
		   : 0;
}

int sw_lookup_renew(struct sw_plane *p, struct sw_error *err)
{
	if (p->lookup_link < 0 ||
	    !bpf_link_update(p->lookup_link, bpf_program__fd(p->obj->progs.spillway_lookup), NULL))
		return 0;
	return sw_fail(err, -errno, "replacing sk_lookup: %s", strerror(errno));
}

void sw_lookup_remove(struct sw_plane *p)
{
	char pin[256];

	pin_path(p, pin, sizeof(pin));
	sw_link_remove_pinned(pin);
	if (p->lookup_link >= 0)
		close(p->lookup_link);
	p->lookup_link = -1;
}

bool sw_lookup_holds(const struct sw_plane *p)
{
	return p->lookup_link < 0 || sw_link_target(p->lookup_link) == p->id.ino;
}

void sw_plane_end_lookup(struct sw_plane *p)
{
	sw_lookup_remove(p);
}

/* ---- programs that are run ------------------------------------------------------------------ */

/* On an empty frame, inside the namespace. Returns what the program does. */
static int run(struct sw_plane *p, const struct bpf_program *program)
{
	char frame[ETH_ZLEN] = {0};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = sizeof(frame));
	int former, ret;

	if (!p->lookup)
		return 0;
	ret = sw_netns_enter(p->netns, &former, NULL);
	if (ret)
		return ret;
	ret = bpf_prog_test_run_opts(bpf_program__fd(program), &opts) ? -errno : (int)opts.retval;
	sw_netns_leave(former);
	return ret;
}

int sw_plane_sweep(struct sw_plane *p)
{
	return run(p, p->obj->progs.spillway_sweep);
}

/* Reads all that an iterator gives, which is a byte for each worker found. */
static int read_walk(const struct bpf_program *program)
{
	int link = bpf_link_create(bpf_program__fd(program), 0, BPF_TRACE_ITER, NULL);
	int iter = link < 0 ? -1 : bpf_iter_create(link);
	char found[256];
	ssize_t n, sum = 0;

	if (link < 0)
		return -errno;
	if (iter < 0) {
		close(link);
		return -errno;
	}
	while ((n = read(iter, found, sizeof(found))) > 0)
		sum += n;
	if (n < 0)
		sum = -errno;
	close(iter);
	close(link);
	return (int)sum;
}

/* Where the kernel takes neither program, what listens later is found by itself all the same. */
int sw_plane_find_workers(struct sw_plane *p)
{
	const struct bpf_program *walk = p->obj->progs.spillway_find_walk;
	int former, ret;

	if (bpf_program__fd(p->obj->progs.spillway_find) >= 0)
		return run(p, p->obj->progs.spillway_find);
	if (!p->lookup)
		return 0;
	if (bpf_program__fd(walk) < 0)
		return -EOPNOTSUPP;
	ret = sw_netns_enter(p->netns, &former, NULL);
	if (ret)
		return ret;
	ret = read_walk(walk);
	sw_netns_leave(former);
	return ret;
}

int sw_plane_set_responder(struct sw_plane *p, unsigned pool, bool v6, int socket)
{
	uint32_t key = pool * 2 + v6;
	uint64_t value = (uint64_t)socket;

	if (!p->lookup || pool >= SW_MAX_POOLS)
		return -EINVAL;
	return bpf_map_update_elem(bpf_map__fd(p->obj->maps.responding), &key, &value, BPF_ANY)
		       ? -errno
		       : 0;
}
