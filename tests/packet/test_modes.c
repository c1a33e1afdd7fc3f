// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The levers of run time: mode and deadline of the pool, observe, exempt sources, the rate of
// SYN-ACKs. Each row is a lever and what it makes of a conversation.

#include "lib/talk.h"

#include <string.h>

/* What a SYN, a handshake ACK, a request, one that must pass, and the rest come to. */
struct course {
	enum sw_reason syn, handshake, request, health, data, fin;
};

#define ALL(r) {r, r, r, r, r, r}

static const struct course as_usual = {SW_R_syn_ack,	   SW_R_drop_handshake, SW_R_shed_saturated,
				       SW_R_handover_path, SW_R_drain_data,	SW_R_drain_fin};

struct lever {
	struct sw_listener listener;
	enum sw_mode mode;
	int64_t deadline_ms;
};

static struct lever lever_with(uint32_t listener_flags)
{
	struct lever lever = {world_default_listener(ID_MAIN), SW_MODE_SHED, 60000};

	lever.listener.flags = listener_flags;
	return lever;
}

static void pull(struct lane *l, const struct lever *lever)
{
	world_listener(l->w, ID_MAIN, &lever->listener);
	world_pool(l->w, lever->mode, SW_CAUSE_SATURATED, lever->deadline_ms);
}

/* Opens conversations as usual, pulls the lever and goes on with them. */
static void expect_course(struct lane *l, const struct lever *lever, const struct course *c)
{
	struct lever usual = lever_with(0);
	struct talk t, other;
	struct frame f;

	pull(l, &usual);
	if (!talk_opened(&t, l) || !talk_opened(&other, l))
		return;
	pull(l, lever);
	lane_expect(l, &t.syn, c->syn, NULL);
	f = talk_segment(&t, 0, 0, TCP_ACK, NULL, 0);
	lane_expect(l, &f, c->handshake, NULL);
	f = talk_request(&t, REQUEST);
	lane_expect(l, &f, c->request, NULL);
	f = talk_segment(&t, 80, LENGTH, TCP_ACK, "x", 1);
	lane_expect(l, &f, c->data, NULL);
	f = talk_segment(&t, 81, LENGTH + 1, TCP_ACK | TCP_FIN, NULL, 0);
	lane_expect(l, &f, c->fin, NULL);
	f = talk_request(&other, HEALTH);
	lane_expect(l, &f, c->health, NULL);
}

static void modes(struct lane *l)
{
	static const int64_t lifetime_ms = SW_LIFETIME_NS / 1000000;
	static const struct course finish = {SW_R_pass_open,	 SW_R_drop_handshake,
					     SW_R_handover_open, SW_R_handover_path,
					     SW_R_drain_data,	 SW_R_drain_fin};
	static const struct course overdue = {SW_R_pass_expired,  SW_R_drop_handshake,
					      SW_R_handover_open, SW_R_handover_path,
					      SW_R_drain_data,	  SW_R_drain_fin};
	static const struct course open = ALL(SW_R_pass_open);
	static const struct course expired = ALL(SW_R_pass_expired);
	const struct {
		const char *name;
		enum sw_mode mode;
		int64_t deadline_ms;
		const struct course *course;
	} rows[] = {
		{"shedding", SW_MODE_SHED, 1000, &as_usual},
		{"open", SW_MODE_OPEN, 1000, &open},
		{"open, deadline long passed", SW_MODE_OPEN, -2 * lifetime_ms, &open},
		{"finishing", SW_MODE_FINISH, 1000, &finish},
		{"finishing, deadline passed", SW_MODE_FINISH, -100, &finish},
		{"finishing, deadline long passed", SW_MODE_FINISH, -lifetime_ms - 100, &expired},
		{"heartbeat overdue", SW_MODE_SHED, -100, &overdue},
		{"heartbeat overdue for almost a lifetime", SW_MODE_SHED, -lifetime_ms + 10000,
		 &overdue},
		{"heartbeat overdue for a lifetime", SW_MODE_SHED, -lifetime_ms - 100, &expired},
		{"shedding again", SW_MODE_SHED, 1000, &as_usual},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct lever lever = lever_with(0);

		lane_trying(l, "%s", rows[i].name);
		if (rows[i].deadline_ms < -(int64_t)(world_now() / 1000000)) {
			print_message("skip: %s: this kernel has not run for so long\n",
				      l->w->what);
			continue;
		}
		lever.mode = rows[i].mode;
		lever.deadline_ms = rows[i].deadline_ms;
		expect_course(l, &lever, rows[i].course);
	}
}

/* A pool's levers are its own. */
static void another_pool(struct lane *l)
{
	struct sw_listener moved = world_default_listener(ID_MAIN);
	struct talk t;

	lane_trying(l, "listener of a pool that is open");
	if (!talk_opened(&t, l))
		return;
	moved.pool = POOL_MAIN + 1;
	world_listener(l->w, ID_MAIN, &moved);
	lane_expect(l, &t.syn, SW_R_pass_open, NULL);
}

/* Observe: everything passes, what would be shed is counted. */
static void observe(struct lane *l)
{
	/* counted once, by TC */
	bool tc = l->hook == HOOK_TC;
	enum sw_reason seen = tc ? SW_R_pass_observe : SW_R_pass_to_tc;
	enum sw_reason counted = tc ? SW_R_would_shed : SW_R_pass_to_tc;
	struct course course = {SW_R_pass_observe, seen, counted, seen, seen, seen};
	struct lever watched = lever_with(SW_LF_OBSERVE | SW_LF_EXEMPT);
	struct frame f;

	lane_trying(l, "observe");
	expect_course(l, &watched, &course);
	lane_trying(l, "observe, a request on a connection of the kernel's");
	f = lane_frame(l, TCP_ACK | TCP_PSH);
	f.payload = REQUEST;
	f.payload_len = strlen(REQUEST);
	lane_expect(l, &f, counted, NULL);
	lane_trying(l, "observe, RST and strange flags");
	f = lane_frame(l, TCP_RST);
	lane_expect(l, &f, SW_R_pass_reset, NULL);
	f = lane_frame(l, TCP_SYN | TCP_FIN);
	lane_expect(l, &f, SW_R_pass_flags, NULL);
	lane_trying(l, "observe, pool with room");
	f = lane_frame(l, TCP_ACK | TCP_PSH);
	f.payload = REQUEST;
	f.payload_len = strlen(REQUEST);
	world_pool(l->w, SW_MODE_FINISH, SW_CAUSE_SATURATED, 60000);
	lane_expect(l, &f, seen, NULL);
}

/* ---- exempt sources ------------------------------------------------------------------------ */

static void exempt(struct lane *l)
{
	static const struct course course = {SW_R_pass_exempt,	   SW_R_drop_handshake,
					     SW_R_handover_exempt, SW_R_handover_path,
					     SW_R_drain_data,	   SW_R_drain_fin};
	static const struct {
		const char *v4, *v6;
		bool covered;
	} rows[] = {
		{"192.0.2.7/32", "2001:db8::7/128", true},
		{"192.0.2.0/24", "2001:db8::/64", true},
		{"192.0.2.6/31", "2001:db8::6/127", true},
		{"0.0.0.0/0", "::/0", true},
		{"192.0.2.8/32", "2001:db8::8/128", false},
		{"192.0.3.0/24", "2001:db8:0:1::/64", false},
		{"192.0.2.0/30", "2001:db8::/126", false},
	};
	struct lever some = lever_with(SW_LF_EXEMPT), other = some, without = lever_with(0);

	other.listener.exempt = SET_EXEMPT + 1;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *cidr = l->family == 4 ? rows[i].v4 : rows[i].v6;

		world_exempt(l->w, l->family, cidr, true);
		lane_trying(l, "exempt %s", cidr);
		expect_course(l, &some, rows[i].covered ? &course : &as_usual);
		lane_trying(l, "exempt %s in another set", cidr);
		expect_course(l, &other, &as_usual);
		lane_trying(l, "exempt %s, not asked for", cidr);
		expect_course(l, &without, &as_usual);
		world_exempt(l->w, l->family, cidr, false);
	}
}

/* An IPv4 range is not an IPv6 one that looks like it. */
static void exempt_other_family(struct lane *l)
{
	struct lever some = lever_with(SW_LF_EXEMPT);

	lane_trying(l, "everything of the other family is exempt");
	if (l->family == 6)
		world_exempt(l->w, 4, "0.0.0.0/0", true);
	else
		world_exempt(l->w, 6, "2001:db8::/32", true);
	expect_course(l, &some, &as_usual);
	world_exempt(l->w, 4, "0.0.0.0/0", false);
	world_exempt(l->w, 6, "2001:db8::/32", false);
}

static void exempt_observed(struct lane *l)
{
	struct sw_listener watched = world_default_listener(ID_MAIN);
	const char *cidr = l->family == 4 ? "192.0.2.7/32" : "2001:db8::7/128";
	struct frame f = lane_frame(l, TCP_ACK | TCP_PSH);

	lane_trying(l, "observe, exempt source");
	watched.flags = SW_LF_OBSERVE | SW_LF_EXEMPT;
	world_listener(l->w, ID_MAIN, &watched);
	world_exempt(l->w, l->family, cidr, true);
	f.payload = REQUEST;
	f.payload_len = strlen(REQUEST);
	lane_expect(l, &f, l->hook == HOOK_TC ? SW_R_pass_observe : SW_R_pass_to_tc, NULL);
	world_exempt(l->w, l->family, cidr, false);
}

/* ---- flood ----------------------------------------------------------------------------------- */

/* SYNs from one prefix: how many are answered. The limit is per second, so a burst that lasts into
 * the next may get more; the caller tries again. */
static unsigned answered(struct lane *l, unsigned n, uint8_t prefix)
{
	unsigned count = 0;

	for (unsigned i = 0; i < n; i++) {
		struct talk t = talk_new(l);
		struct packet p;
		struct result r;

		t.syn.src[l->family == 4 ? 2 : 7] = prefix;
		t.syn.src[l->family == 4 ? 3 : 15] = 10 + i;
		frame_build(&t.syn, &p);
		if (!lane_run(l, &p, &r))
			continue;
		if (r.reason != SW_R_syn_ack && r.reason != SW_R_drop_flood)
			world_complain(l->w, "%s", world_reason(r.reason));
		count += r.reason == SW_R_syn_ack;
	}
	return count;
}

static unsigned answered_in_a_second(struct lane *l, unsigned n, uint8_t prefix, unsigned limit)
{
	unsigned count = 0;

	for (unsigned i = 0; i < 5; i++) {
		world_forget(l->w);
		count = answered(l, n, prefix);
		if (count == limit)
			break;
	}
	return count;
}

static void flood(struct lane *l)
{
	struct sw_listener limited = world_default_listener(ID_MAIN);
	unsigned count;
	struct frame f;
	struct talk t;

	lane_trying(l, "flood without a limit");
	count = answered(l, 40, 1);
	if (count != 40)
		world_complain(l->w, "%u of 40 answered", count);
	lane_trying(l, "flood, limit 5");
	limited.syn_rate = 5;
	world_listener(l->w, ID_MAIN, &limited);
	count = answered_in_a_second(l, 40, 1, 5);
	if (count != 5)
		world_complain(l->w, "%u of 40 answered", count);
	lane_trying(l, "other prefixes during a flood");
	for (unsigned prefix = 2; prefix < 6; prefix++) {
		count = answered(l, 4, prefix);
		if (count != 4)
			world_complain(l->w, "%u of 4 answered", count);
	}
	lane_trying(l, "a conversation during a flood");
	limited.syn_rate = 1000;
	world_listener(l->w, ID_MAIN, &limited);
	if (!talk_opened(&t, l))
		return;
	limited.syn_rate = 1;
	world_listener(l->w, ID_MAIN, &limited);
	answered(l, 10, t.syn.src[l->family == 4 ? 2 : 7]);
	f = talk_request(&t, REQUEST);
	talk_expect(&t, &f, SW_R_shed_saturated, NULL);
}

/* A new second is a new chance. */
static void flood_ends(struct lane *l)
{
	struct sw_listener limited = world_default_listener(ID_MAIN);
	uint64_t start = world_now();
	unsigned count = 0;

	/* it takes a second, so once for each context and family */
	if (l->hook != (l->family == 4 ? HOOK_XDP : HOOK_TC))
		return;
	lane_trying(l, "the second after a flood");
	limited.syn_rate = 3;
	world_listener(l->w, ID_MAIN, &limited);
	answered(l, 20, 1);
	while (!count && world_now() - start < 3000000000ULL)
		count = answered(l, 1, 1);
	if (!count)
		world_complain(l->w, "no SYN was answered any more");
}

LANE_TEST(modes)
LANE_TEST(another_pool)
LANE_TEST(observe)
LANE_TEST(exempt)
LANE_TEST(exempt_other_family)
LANE_TEST(exempt_observed)
LANE_TEST(flood)
LANE_TEST(flood_ends)

int main(void)
{
	const struct CMUnitTest tests[] = {
		packet_test(test_modes),
		packet_test(test_another_pool),
		packet_test(test_observe),
		packet_test(test_exempt),
		packet_test(test_exempt_other_family),
		packet_test(test_exempt_observed),
		packet_test(test_flood),
		packet_test(test_flood_ends),
	};

	return world_run(tests);
}
