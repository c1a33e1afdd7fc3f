// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The world of a test of established connections; see kept.h. Connections are in ends.c.

#include "kept.h"
#include "ends.h"
#include "spillway.skel.h"
#include "loss.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TCX_INGRESS 46
#define TCX_EGRESS  47
#define FAR	    1000000 /* ms */

struct kept kept;

static const char *const devices[SIDES] = {"spkeep0", "spkeep1"};
static struct sw_counts before;

/* ---- namespaces ------------------------------------------------------------------------------ */

void kept_enter(enum side side)
{
	if (setns(kept.netns[side], CLONE_NEWNET))
		fail_msg("setns: %s", strerror(errno));
}

void kept_run(enum side side, const char *fmt, ...)
{
	char text[480], command[512];
	va_list ap;
	int status;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	kept_enter(side);
	/* not /bin/sh, which may be one with an `ip` of its own that knows less */
	snprintf(command, sizeof(command), "bash -c '%s'", text);
	status = system(command);
	if (status)
		fail_msg("%s: status %d", command, status);
}

void kept_sysctl(enum side side, const char *name, const char *value)
{
	char path[128];
	int fd;

	kept_enter(side);
	snprintf(path, sizeof(path), "/proc/sys/net/%s", name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		fail_msg("%s: %s", path, strerror(errno));
	close(fd);
}

static void make_wire(void)
{
	kept_run(CLIENT, "ip link add %s type veth peer name %s netns /proc/%d/fd/%d",
		 devices[CLIENT], devices[SERVER], getpid(), kept.netns[SERVER]);
	for (enum side side = CLIENT; side < SIDES; side++) {
		kept_run(side, "ip link set lo up");
		kept_run(side, "ip address add 192.0.2.%d/24 dev %s", side + 1, devices[side]);
		if (kept.ipv6)
			kept_run(side, "ip address add 2001:db8::%d/64 dev %s nodad", side + 1,
				 devices[side]);
		kept_run(side, "ip link set %s up", devices[side]);
	}
}

static bool make_namespaces(void)
{
	int fd;

	for (enum side side = CLIENT; side < SIDES; side++) {
		if (unshare(CLONE_NEWNET))
			return false;
		kept.netns[side] = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	}
	fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	kept.ipv6 = fd >= 0;
	close(fd);
	if (!kept.ipv6)
		printf("skip: IPv6, which this kernel does not have\n");
	make_wire();
	return true;
}

/* ---- programs -------------------------------------------------------------------------------- */

/* Whatever `type` there is, the first to come is the first to see a packet. */
static void attach(enum side side, const struct bpf_program *p, int type)
{
	static unsigned priority;
	int program = bpf_program__fd(p);
	LIBBPF_OPTS(bpf_tc_opts, opts, .prog_fd = program, .priority = ++priority, .handle = 1);
	LIBBPF_OPTS(bpf_tc_hook, hook,
		    .attach_point = type == TCX_INGRESS ? BPF_TC_INGRESS : BPF_TC_EGRESS);

	kept_enter(side);
	hook.ifindex = if_nametoindex(devices[side]);
	if (bpf_link_create(program, hook.ifindex, type, NULL) >= 0)
		return; /* it stays as long as this process */
	bpf_tc_hook_create(&hook);
	if (bpf_tc_attach(&hook, &opts))
		fail_msg("cannot attach: %s", strerror(errno));
}

static void load_programs(void)
{
	struct bpf_program *p;

	kept.skel = spillway__open();
	assert_non_null(kept.skel);
	bpf_object__for_each_program (p, kept.skel->obj)
		bpf_program__set_autoload(p, p == kept.skel->progs.spillway_keep ||
						     p == kept.skel->progs.spillway_egress);
	bpf_map__set_max_entries(kept.skel->maps.answers, (KEPT_SET + 1) * SW_ANSWERS_PER_SET);
	bpf_map__set_max_entries(kept.skel->maps.flows, KEPT_FLOWS);
	assert_int_equal(spillway__load(kept.skel), 0);
	kept.loss = loss__open_and_load();
	assert_non_null(kept.loss);
	/* Not where the client sends: the stack would know at once. */
	attach(SERVER, kept.loss->progs.loss_out, TCX_INGRESS);
	attach(CLIENT, kept.loss->progs.loss_in, TCX_INGRESS);
	attach(SERVER, kept.skel->progs.spillway_keep, TCX_INGRESS);
	attach(SERVER, kept.skel->progs.spillway_egress, TCX_EGRESS);
}

/* ---- maps ------------------------------------------------------------------------------------ */

void kept_put(struct bpf_map *map, const void *key, const void *value)
{
	if (bpf_map_update_elem(bpf_map__fd(map), key, value, BPF_ANY))
		fail_msg("writing %s: %s", bpf_map__name(map), strerror(errno));
}

static void set_pool(enum sw_mode mode, enum sw_cause cause, bool armed, int64_t deadline_ms)
{
	struct sw_pool pool = {.mode = mode, .cause = cause, .armed = armed};
	uint32_t index = KEPT_POOL;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	pool.deadline_ns = now.tv_sec * 1000000000LL + now.tv_nsec + deadline_ms * 1000000;
	kept_put(kept.skel->maps.pools, &index, &pool);
}

void pool_open(void)
{
	set_pool(SW_MODE_OPEN, SW_CAUSE_SATURATED, false, FAR);
}

void pool_armed(void)
{
	set_pool(SW_MODE_OPEN, SW_CAUSE_SATURATED, true, FAR);
}

void pool_sheds(enum sw_cause cause)
{
	set_pool(SW_MODE_SHED, cause, true, FAR);
}

void pool_finishes(void)
{
	set_pool(SW_MODE_FINISH, SW_CAUSE_SATURATED, true, FAR);
}

void pool_overdue(void)
{
	set_pool(SW_MODE_SHED, SW_CAUSE_SATURATED, true, -1000);
}

void listener_flags(uint32_t flags)
{
	struct sw_listener l = {.port = KEPT_PORT,
				.pool = KEPT_POOL,
				.answers = KEPT_SET,
				.paths = 1,
				.exempt = 1,
				.length = KEPT_ANSWER,
				.flags = flags};
	uint32_t id = KEPT_ID;

	kept_put(kept.skel->maps.listeners, &id, &l);
}

void path_is(enum sw_method method, const char *path, enum sw_path_action action,
	     enum sw_family family)
{
	struct sw_path key = {.set = 1, .method = method};
	struct sw_path_value value = {.action = action, .family = family};

	memcpy(key.path, path, strlen(path));
	kept_put(kept.skel->maps.paths, &key, &value);
}

void exempt_client(int family, bool on)
{
	struct sw_cidr_key key = {.prefixlen = 32 + 128, .set = htobe32(1)};
	uint32_t one = 1;

	ends_address(family, CLIENT, key.addr);
	if (on)
		kept_put(kept.skel->maps.exempt, &key, &one);
	else
		bpf_map_delete_elem(bpf_map__fd(kept.skel->maps.exempt), &key);
}

/* ---- content of the maps ----------------------------------------------------------------------
 */

static void fill_maps(void)
{
	struct sw_port port = {.any4 = KEPT_ID, .any6 = KEPT_ID};
	uint32_t number = KEPT_PORT;

	kept_put(kept.skel->maps.ports, &number, &port);
	path_is(SW_METHOD_POST, "/v1/chat/completions", SW_PATH_SHED, SW_FAMILY_DEFAULT);
	path_is(SW_METHOD_POST, "/v1/messages", SW_PATH_SHED, SW_FAMILY_ANTHROPIC);
	path_is(SW_METHOD_GET, "/health", SW_PATH_PASS, SW_FAMILY_DEFAULT);
}

/* ---- what is seen ---------------------------------------------------------------------------- */

static void read_counts(struct sw_counts *sum)
{
	int n_cpus = libbpf_num_possible_cpus();
	struct sw_counts of[n_cpus];
	uint32_t id = KEPT_ID;

	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(kept.skel->maps.counts_keep), &id, of), 0);
	memset(sum, 0, sizeof(*sum));
	for (int cpu = 0; cpu < n_cpus; cpu++)
		for (unsigned r = 0; r < SW_R_COUNT; r++)
			((uint64_t *)sum)[r] += ((uint64_t *)&of[cpu])[r];
}

uint64_t counted_kept(enum sw_reason reason)
{
	struct sw_counts now;

	read_counts(&now);
	return ((uint64_t *)&now)[reason] - ((uint64_t *)&before)[reason];
}

uint32_t flows_used(void)
{
	uint32_t zero = 0, n = 0;

	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(kept.skel->maps.flow_use), &zero, &n), 0);
	return n;
}

uint32_t flows_held(void)
{
	struct sw_tuple key, *at = NULL;
	uint32_t n = 0;

	for (; !bpf_map_get_next_key(bpf_map__fd(kept.skel->maps.flows), at, &key); at = &key)
		n++;
	return n;
}

void fill_flows(void)
{
	char value[bpf_map__value_size(kept.skel->maps.flows)];
	struct sw_tuple key = {0};

	memset(value, 0, sizeof(value));
	for (key.pad = 0; key.pad < KEPT_FLOWS; key.pad++)
		if (bpf_map_update_elem(bpf_map__fd(kept.skel->maps.flows), &key, value, BPF_ANY))
			break;
	assert_int_equal(errno, E2BIG);
	assert_int_equal(flows_held(), KEPT_FLOWS);
}

void lose(enum loss_way way, uint32_t payload, uint32_t skip, uint32_t count)
{
	volatile struct loss_rule *r = &kept.loss->bss->rules[way];

	r->count = 0;
	r->payload = payload;
	r->skip = skip;
	r->lost = 0;
	r->count = count;
}

void was_lost(enum loss_way way, uint32_t n)
{
	assert_int_equal(kept.loss->bss->rules[way].lost, n);
}

uint32_t lose_some(enum loss_way way, uint32_t permille)
{
	volatile struct loss_rule *r = &kept.loss->bss->rules[way];
	uint32_t lost = r->lost;

	r->lost = 0;
	r->permille = permille;
	return lost;
}

/* ---- life ------------------------------------------------------------------------------------ */

int kept_up(void **state)
{
	(void)state;
	if (geteuid() || !make_namespaces()) {
		printf("skip: root is needed\n");
		exit(77);
	}
	load_programs();
	fill_maps();
	return 0;
}

int kept_down(void **state)
{
	(void)state;
	spillway__destroy(kept.skel);
	loss__destroy(kept.loss);
	return 0;
}

void kept_defaults(void)
{
	pool_open();
	listener_flags(SW_LF_KEEP | SW_LF_ALL_PATHS);
	rewrite_answers("busy");
	memset(kept.loss->bss->rules, 0, sizeof(kept.loss->bss->rules));
}

int kept_reset(void **state)
{
	(void)state;
	kept_defaults();
	read_counts(&before);
	return 0;
}

static void empty(struct bpf_map *map)
{
	char key[64];

	while (!bpf_map_get_next_key(bpf_map__fd(map), NULL, key))
		bpf_map_delete_elem(bpf_map__fd(map), key);
}

/* No connection outlives its test, and no flow either: the next one may have its addresses. */
int kept_settle(void **state)
{
	uint32_t zero = 0;

	(void)state;
	memset(kept.loss->bss->rules, 0, sizeof(kept.loss->bss->rules));
	ends_close_all();
	empty(kept.skel->maps.flows);
	empty(kept.skel->maps.pipelining);
	kept_put(kept.skel->maps.flow_use, &zero, &zero);
	return 0;
}
