// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// A metered pool: guarded while it has no free slot, and only then. What the programs decide is
// seen in test runs, what a hand-over takes over a real wire.

#include "lib/counting.h"
#include "lib/local.h"
#include "lib/talk.h"
#include "lib/wire.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE_MS 5000 /* guests are slow */
#define LIFETIME_MS ((int64_t)(SW_LIFETIME_NS / 1000000))

/* The pool has a row with `cap`. That it was raised is seen a tick later. */
static void meter(struct lane *l, uint32_t cap)
{
	count_row(cap);
	usleep(12000);
	count_pool(SW_SF_COUNT, 100, 60000);
	world_pool(l->w, SW_MODE_METERED, SW_CAUSE_SATURATED, 60000);
}

static void forget_refusals(void)
{
	struct sw_pool_use use = {};

	count_set_use(&use);
}

/* The last SYN was answered so long ago. */
static void refused_ago(int64_t ms)
{
	struct sw_pool_use use = {.refused_ns = world_now() - ms * 1000000};

	count_set_use(&use);
}

/* ---- open, and closed --------------------------------------------------------------------------
 */

static void with_room(struct lane *l)
{
	struct talk t = talk_new(l);
	struct frame f;

	lane_trying(l, "a free slot");
	meter(l, 1);
	forget_refusals();
	lane_expect(l, &t.syn, SW_R_pass_metered, NULL);
	f = talk_request(&t, REQUEST);
	lane_expect(l, &f, SW_R_pass_open, NULL);
	if (count_all().takes)
		world_complain(l->w, "the guard took a slot");
}

static void without_room(struct lane *l)
{
	struct talk t;
	struct frame f;

	lane_trying(l, "no free slot");
	meter(l, 0);
	forget_refusals();
	if (!talk_opened(&t, l))
		return;
	if (world_now() - count_use(POOL_MAIN).refused_ns > 10000000000)
		world_complain(l->w, "the refusal was not noted");
	f = talk_segment(&t, 0, 0, TCP_ACK, NULL, 0);
	lane_expect(l, &f, SW_R_drop_handshake, NULL);
	f = talk_request(&t, REQUEST);
	talk_expect(&t, &f, SW_R_shed_no_slots, NULL);
	f = talk_segment(&t, 300, LENGTH + 1, TCP_ACK | TCP_FIN, NULL, 0);
	talk_expect(&t, &f, SW_R_drain_fin, NULL);
}

static void room_again_at_the_request(struct lane *l)
{
	struct talk t;
	struct frame f;

	lane_trying(l, "a slot became free before the request");
	meter(l, 0);
	if (!talk_opened(&t, l))
		return;
	meter(l, 1);
	f = talk_request(&t, REQUEST);
	lane_expect(l, &f, SW_R_handover_open, NULL);
	if (count_all().inuse)
		world_complain(l->w, "a hand-over that was refused keeps its slot");
}

/* The server's slots are free, but too many connections are not established: who proves that he is
 * there gets one. */
static void half_open_limit(struct lane *l)
{
	struct sw_pool_use use = {.half_open = 100};
	struct talk t;
	struct frame f;

	lane_trying(l, "half-open limit");
	meter(l, 200);
	count_set_use(&use);
	if (talk_opened(&t, l)) {
		f = talk_request(&t, REQUEST);
		lane_expect(l, &f, SW_R_handover_open, NULL);
	}
	use.half_open = 99;
	count_set_use(&use);
	t = talk_new(l);
	lane_expect(l, &t.syn, SW_R_pass_metered, NULL);
	forget_refusals();
}

static void busy_and_drained(struct lane *l)
{
	struct talk t;

	lane_trying(l, "a busy row");
	meter(l, 10);
	count_busy(ID_ROW, true);
	talk_opened(&t, l);
	count_busy(ID_ROW, false);
	lane_trying(l, "nothing is free by decree");
	count_pool(SW_SF_COUNT | SW_SF_CLOSED, 100, 60000);
	talk_opened(&t, l);
}

static void exempt(struct lane *l)
{
	const char *cidr = l->family == 4 ? "192.0.2.7/32" : "2001:db8::7/128";
	struct sw_listener some = world_default_listener(ID_MAIN);
	struct talk t;
	struct frame f;

	lane_trying(l, "exempt source");
	meter(l, 0);
	if (!talk_opened(&t, l))
		return;
	some.flags = SW_LF_EXEMPT;
	world_listener(l->w, ID_MAIN, &some);
	world_exempt(l->w, l->family, cidr, true);
	f = talk_request(&t, REQUEST);
	lane_expect(l, &f, SW_R_handover_exempt, NULL);
	t = talk_new(l);
	lane_expect(l, &t.syn, SW_R_pass_exempt, NULL);
	world_exempt(l->w, l->family, cidr, false);
}

/* ---- when to look
 * ---------------------------------------------------------------------------------- */

/* Segments are looked at for as long as a cookie may live after the last SYN that was answered. */
static void quiet_pools(struct lane *l)
{
	const struct {
		int64_t ago;
		enum sw_reason want;
	} rows[] = {
		{0, SW_R_shed_no_slots},
		{LIFETIME_MS - 10000, SW_R_shed_no_slots},
		{LIFETIME_MS + 100, SW_R_pass_open},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct talk t;
		struct frame f;

		lane_trying(l, "last refusal %lld ms ago", (long long)rows[i].ago);
		if (rows[i].ago * 1000000 > (int64_t)world_now()) {
			print_message("skip: %s: this kernel has not run for so long\n",
				      l->w->what);
			continue;
		}
		meter(l, 0);
		if (!talk_opened(&t, l))
			continue;
		refused_ago(rows[i].ago);
		f = talk_request(&t, REQUEST);
		lane_expect(l, &f, rows[i].want, NULL);
		world_forget(l->w);
		talk_opened(&t, l); /* and SYNs always */
	}
}

/* Conversations that began while the pool was closed for another reason are brought to their end.
 */
static void other_modes(struct lane *l)
{
	struct talk t, other;
	struct frame f;

	lane_trying(l, "closed, then metered");
	meter(l, 0);
	forget_refusals();
	world_pool(l->w, SW_MODE_SHED, SW_CAUSE_SATURATED, 60000);
	if (!talk_opened(&t, l) || !talk_opened(&other, l))
		return;
	world_pool(l->w, SW_MODE_METERED, SW_CAUSE_SATURATED, 60000);
	f = talk_request(&t, REQUEST);
	talk_expect(&t, &f, SW_R_shed_no_slots, NULL);
	lane_trying(l, "metered, then finishing");
	world_pool(l->w, SW_MODE_FINISH, SW_CAUSE_SATURATED, 60000);
	f = talk_segment(&t, 300, LENGTH + 1, TCP_ACK | TCP_FIN, NULL, 0);
	talk_expect(&t, &f, SW_R_drain_fin, NULL);
	lane_trying(l, "metered, then draining");
	world_pool(l->w, SW_MODE_SHED, SW_CAUSE_DRAINING, 60000);
	f = talk_request(&other, REQUEST);
	talk_expect(&other, &f, SW_R_shed_draining, NULL);
}

static void overdue(struct lane *l)
{
	struct talk t, late = talk_new(l);
	struct frame f;

	lane_trying(l, "heartbeat overdue");
	meter(l, 0);
	if (!talk_opened(&t, l))
		return;
	world_pool(l->w, SW_MODE_METERED, SW_CAUSE_SATURATED, -100);
	count_pool(SW_SF_COUNT, 100, -100);
	lane_expect(l, &late.syn, SW_R_pass_expired, NULL);
	f = talk_request(&t, REQUEST);
	lane_expect(l, &f, SW_R_handover_open, NULL);
}

/* Nothing is touched; what a full pool would have shed is counted. */
static void observe(struct lane *l)
{
	struct sw_listener watched = world_default_listener(ID_MAIN);
	bool tc = l->hook == HOOK_TC;
	struct frame syn = lane_frame(l, TCP_SYN), f = lane_frame(l, TCP_ACK | TCP_PSH);

	watched.flags = SW_LF_OBSERVE;
	world_listener(l->w, ID_MAIN, &watched);
	f.payload = REQUEST;
	f.payload_len = strlen(REQUEST);
	lane_trying(l, "observe, no free slot");
	meter(l, 0);
	forget_refusals();
	lane_expect(l, &syn, SW_R_pass_observe, NULL);
	lane_expect(l, &f, tc ? SW_R_would_shed : SW_R_pass_to_tc, NULL);
	lane_trying(l, "observe, a free slot");
	meter(l, 1);
	lane_expect(l, &syn, SW_R_pass_metered, NULL);
	lane_expect(l, &f, tc ? SW_R_pass_observe : SW_R_pass_to_tc, NULL);
}

/* ---- workers behind a port on which nobody listens
 * ------------------------------------------------- */

static void steered_pools(struct lane *l)
{
	struct talk t = talk_new(l);
	struct frame f;

	lane_trying(l, "steered pool");
	count_pool(SW_SF_COUNT | SW_SF_ASSIGN, 100, 60000);
	world_pool(l->w, SW_MODE_METERED, SW_CAUSE_SATURATED, 60000);
	count_worker(ID_FIRST, l->family, PORT_FIRST, 0);
	worker_listen(0, l->family, true);
	l->id = ID_DEAF;
	t.syn.dport = PORT_DEAF;
	if (talk_open(&t)) {
		f = talk_request(&t, REQUEST);
		talk_expect(&t, &f, SW_R_shed_no_slots, NULL);
	}
	if (count_all().takes)
		world_complain(l->w, "a look-up of the guard took a slot");
	lane_trying(l, "steered pool without a worker");
	worker_close(0);
	t = talk_new(l);
	t.syn.dport = PORT_DEAF;
	lane_expect(l, &t.syn, SW_R_pass_no_listener, NULL);
}

/* ---- hand-over
 * ----------------------------------------------------------------------------------- */

static bool readable(int fd)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};

	return poll(&ready, 1, PATIENCE_MS) > 0;
}

/* Sends the request of a conversation; a socket of the server's, or -1 where it was answered. */
static int send_request(struct lane *l, struct wire *wire, struct talk *t, const char *text,
			enum sw_reason want)
{
	int listener = l->w->listener[l->family];
	struct frame f = talk_request(t, text);
	struct sw_counts before, after;
	struct result r;
	struct packet p;

	world_counts(l->w, MAP_COUNTS_TC, ID_MAIN, &before);
	wire_send(wire, &f, &p, 0);
	if (!wire_receive(wire, f.sport, &r, PATIENCE_MS))
		world_complain(l->w, "nothing came back");
	world_counts(l->w, MAP_COUNTS_TC, ID_MAIN, &after);
	if (((uint64_t *)&after)[want] != ((uint64_t *)&before)[want] + 1)
		world_complain(l->w, "not counted as %s", world_reason(want));
	if (want == SW_R_shed_no_slots)
		return -1;
	return readable(listener) ? accept(listener, NULL, NULL) : -1;
}

static void expect_inuse(struct lane *l, uint32_t want)
{
	for (int i = 0; i < 400 && count_all().inuse != want; i++)
		usleep(5000);
	if (count_all().inuse != want || count_use(POOL_MAIN).half_open)
		world_complain(l->w, "%d slots in use, %d half open, not %u",
			       (int)count_all().inuse, (int)count_use(POOL_MAIN).half_open, want);
}

static void reset(int fd)
{
	struct linger now = {1, 0};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
}

static void hand_over(struct lane *l)
{
	struct sw_slot before = count_slot(ID_ROW);
	struct talk t[4];
	struct wire wire;
	int fd[3];

	if (!l->w->hand_over || !wire_up(&wire, l->w))
		return;
	meter(l, 0);
	for (int i = 0; i < 4; i++)
		if (!talk_opened(&t[i], l))
			goto out;
	wire_attach(&wire, l);

	lane_trying(l, "must pass, and no slot is free");
	fd[0] = send_request(l, &wire, &t[0], HEALTH, SW_R_handover_path);
	expect_inuse(l, 0);

	lane_trying(l, "a slot is free: it is taken");
	meter(l, 1);
	fd[1] = send_request(l, &wire, &t[1], REQUEST, SW_R_handover_open);
	expect_inuse(l, 1);
	if (count_slot(ID_ROW).moves != before.moves + 1)
		world_complain(l->w, "no reservation became a connection");

	lane_trying(l, "must pass, and the last slot is taken");
	fd[2] = send_request(l, &wire, &t[2], HEALTH, SW_R_handover_path);
	expect_inuse(l, 1);

	lane_trying(l, "open again, and the last slot is taken");
	world_pool(l->w, SW_MODE_FINISH, SW_CAUSE_SATURATED, 60000);
	send_request(l, &wire, &t[3], REQUEST, SW_R_shed_no_slots);
	expect_inuse(l, 1);

	lane_trying(l, "the end of connections that were handed over");
	for (int i = 0; i < 3; i++)
		reset(fd[i]);
	expect_inuse(l, 0);
	if (count_slot(ID_ROW).takes != before.takes + 1 || count_slot(ID_ROW).most > 1)
		world_complain(l->w, "more than one slot was taken");
out:
	wire_down(&wire);
}

LANE_TEST(with_room)
LANE_TEST(without_room)
LANE_TEST(room_again_at_the_request)
LANE_TEST(half_open_limit)
LANE_TEST(busy_and_drained)
LANE_TEST(exempt)
LANE_TEST(quiet_pools)
LANE_TEST(other_modes)
LANE_TEST(overdue)
LANE_TEST(observe)
LANE_TEST(steered_pools)
LANE_TEST(hand_over)

int main(void)
{
	const struct CMUnitTest tests[] = {
		counting_test(test_with_room),
		counting_test(test_without_room),
		counting_test(test_room_again_at_the_request),
		counting_test(test_half_open_limit),
		counting_test(test_busy_and_drained),
		counting_test(test_exempt),
		counting_test(test_quiet_pools),
		counting_test(test_other_modes),
		counting_test(test_overdue),
		counting_test(test_observe),
		counting_test(test_steered_pools),
		counting_test(test_hand_over),
	};

	return cmocka_run_group_tests(tests, counting_up, counting_down);
}
