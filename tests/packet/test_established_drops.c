// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What the way out has to drop of a connection that is translated: it is counted with its listener,
// and TCP sends it again.

#include "lib/spy.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <string.h>
#include <unistd.h>

#include "spillway.skel.h"

enum { NOP = 1, SACK = 5, TCP = 20, OPTIONS = 12 };

/* ---- two packets at once --------------------------------------------------------------------- */

static unsigned offset_of_lock(void)
{
	const struct btf *btf = bpf_object__btf(kept.skel->obj);
	const struct btf_type *flow =
		btf__type_by_id(btf, bpf_map__btf_value_type_id(kept.skel->maps.flows));
	const struct btf_member *m = btf_members(flow);

	for (unsigned i = 0; i < btf_vlen(flow); i++)
		if (!strcmp(btf__name_by_offset(btf, m[i].name_off), "lock"))
			return m[i].offset / 8;
	fail_msg("a flow without a lock");
	return 0;
}

/* As if another CPU were at work on each connection, for ever. */
static void hold_flows(uint32_t held)
{
	const struct bpf_map *map = kept.skel->maps.flows;
	unsigned lock = offset_of_lock();
	char value[bpf_map__value_size(map)];
	struct sw_tuple key, *at = NULL;

	for (; !bpf_map_get_next_key(bpf_map__fd(map), at, &key); at = &key) {
		assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(map), &key, value), 0);
		memcpy(value + lock, &held, sizeof(held));
		kept_put(kept.skel->maps.flows, &key, value);
	}
}

static void one_is_held(int family)
{
	struct ends e = shed_once(family);
	uint64_t before = counted_kept(SW_R_drop_raced);

	pool_finishes();
	tell(e.client, GET_CHAT);
	hear(e.server, GET_CHAT);
	usleep(60000); /* until it is acknowledged too, delayed */
	hold_flows(1);
	tell(e.server, OK_RESPONSE);
	hear_nothing(e.client);
	assert_true(counted_kept(SW_R_drop_raced) > before);
	hold_flows(0);
	hear(e.client, OK_RESPONSE);
	goes_on(&e);
}
FAMILY_TEST(one_is_held)

/* Its listener has this one address only, and others have the port. */
static void at_one_address(int family)
{
	struct sw_address address = {.port = KEPT_PORT};
	struct sw_port any = {.any4 = KEPT_ID, .any6 = KEPT_ID},
		       one = {.any4 = KEPT_ID + 1, .any6 = KEPT_ID + 1, .single = 1};
	uint32_t port = KEPT_PORT, id = KEPT_ID;

	ends_address(family, SERVER, address.addr);
	kept_put(kept.skel->maps.addresses, &address, &id);
	kept_put(kept.skel->maps.ports, &port, &one);
	one_is_held(family);
	kept_put(kept.skel->maps.ports, &port, &any);
	bpf_map_delete_elem(bpf_map__fd(kept.skel->maps.addresses), &address);
}
FAMILY_TEST(at_one_address)

/* ---- numbers that cannot be written ---------------------------------------------------------- */

static int server_device(void)
{
	struct sockaddr_ll at = {.sll_family = AF_PACKET};
	int fd;

	kept_enter(SERVER);
	at.sll_ifindex = if_nametoindex("spkeep1");
	fd = ends_keep(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
	assert_int_equal(bind(fd, (void *)&at, sizeof(at)), 0);
	return fd;
}

/* The server's last segment again, without data and with a block behind so many NOPs. Does it get
 * out? */
static bool sends_block(int fd, const struct segment *last, unsigned nops)
{
	uint8_t frame[SPY_HEADERS], *tcp = frame + last->l4;
	unsigned total = last->l4 + TCP + OPTIONS;

	memcpy(frame, last->headers, sizeof(frame));
	if (frame[ETH_HLEN] >> 4 == 6)
		frame[ETH_HLEN + 5] = TCP + OPTIONS;
	else
		frame[ETH_HLEN + 3] = total - ETH_HLEN;
	tcp[12] = (TCP + OPTIONS) / 4 << 4;
	tcp[13] = SPY_ACK;
	memset(tcp + TCP, NOP, OPTIONS);
	tcp[TCP + nops] = SACK;
	tcp[TCP + nops + 1] = 10;
	return send(fd, frame, total, 0) == total;
}

/* A sum over words of 16 bits cannot be mended at an odd place; no stack puts a block there. */
static void at_an_odd_place(int family)
{
	struct ends e = shed_once(family);
	struct spy s = spy_on(&e);
	uint64_t before = counted_kept(SW_R_drop_failed);
	struct segment g, theirs = {0};
	int fd = server_device();

	pool_finishes();
	is_served(&e, GET_CHAT);
	while (spy_next(&s, &g, 60))
		if (!g.ours && g.length < 256)
			theirs = g;
	assert_true(theirs.l4);
	assert_true(sends_block(fd, &theirs, 2));
	assert_int_equal(counted_kept(SW_R_drop_failed), before);
	assert_false(sends_block(fd, &theirs, 1));
	assert_int_equal(counted_kept(SW_R_drop_failed), before + 1);
	pool_sheds(SW_CAUSE_SATURATED);
	goes_on(&e);
}
FAMILY_TEST(at_an_odd_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
		kept_test(test_one_is_held),
		kept_test(test_at_an_odd_place),
		kept_test(test_at_one_address),
	};

	return cmocka_run_group_tests(tests, kept_up, kept_down);
}
