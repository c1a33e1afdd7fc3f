// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What becomes known of a request on a new connection that is shed: counted once by its kind, and
// told as an event as far as the rate allows. On connections that are kept: test_shed_kept.c.

#include "lib/shed.h"
#include "lib/talk.h"

#include <string.h>

static const struct sw_path chat = {
	.set = SET_PATHS, .method = SW_METHOD_POST, .path = "/v1/chat/completions"};

static uint64_t all(const struct sw_shed_counts *c)
{
	uint64_t n = 0;

	for (unsigned e = 0; e < SW_API_ENDPOINTS; e++)
		n += c->endpoints[e];
	return n;
}

/* Exactly these are counted, of one kind. */
static void expect_counted(struct lane *l, enum sw_api_endpoint endpoint, uint64_t n)
{
	struct sw_shed_counts c = shed_counted();

	if (all(&c) != n || c.endpoints[endpoint] != n)
		world_complain(l->w, "%lu counted, %lu of them of kind %d; not %lu",
			       (unsigned long)all(&c), (unsigned long)c.endpoints[endpoint],
			       endpoint, (unsigned long)n);
}

static void expect_silence(struct lane *l)
{
	const struct sw_shed_event *e;
	unsigned n = shed_told(&e);

	if (n)
		world_complain(l->w, "%u events", n);
	expect_counted(l, SW_API_EP_OTHER, 0);
}

/* One event, which says this. */
static void expect_told(struct lane *l, enum sw_reason reason, enum sw_cause cause,
			enum sw_method method, enum sw_api_endpoint endpoint)
{
	const struct sw_shed_event *e;
	uint8_t want[16] = {[10] = 0xff, [11] = 0xff}, src[16], dst[16];
	unsigned n = shed_told(&e);

	world_addresses(l->family, 77, src, dst);
	if (l->family == 4)
		memcpy(want + 12, src, 3);
	else
		memcpy(memset(want, 0, 16), src, 8);
	if (n != 1) {
		world_complain(l->w, "%u events", n);
		return;
	}
	if (e->listener != l->id || e->reason != reason || e->cause != cause ||
	    e->method != method || e->endpoint != endpoint || e->kept || e->pad)
		world_complain(l->w, "listener %d %s cause %d method %d endpoint %d kept %d",
			       e->listener, world_reason(e->reason), e->cause, e->method,
			       e->endpoint, e->kept);
	if (memcmp(e->source, want, sizeof(want)))
		world_complain(l->w, "from another prefix");
	if (world_now() - e->at_ns > 1000000000)
		world_complain(l->w, "at another time");
}

static bool ask(struct lane *l, const char *text, enum sw_reason want)
{
	struct talk t;
	struct frame f;

	if (!talk_opened(&t, l))
		return false;
	f = talk_request(&t, text);
	return lane_expect(l, &f, want, NULL);
}

static void each_cause(struct lane *l)
{
	for (enum sw_cause cause = 0; cause < SW_CAUSES; cause++) {
		lane_trying(l, "cause %d", cause);
		world_pool(l->w, SW_MODE_SHED, cause, 60000);
		shed_begin(l->w->skel, l->id);
		shed_kind(&chat, SW_API_EP_CHAT_COMPLETIONS);
		ask(l, REQUEST, SW_R_shed_saturated + cause);
		expect_counted(l, SW_API_EP_CHAT_COMPLETIONS, 1);
		expect_told(l, SW_R_shed_saturated + cause, cause, SW_METHOD_POST,
			    SW_API_EP_CHAT_COMPLETIONS);
	}
}
LANE_TEST(each_cause)

static void each_kind(struct lane *l)
{
	for (enum sw_api_endpoint endpoint = 0; endpoint < SW_API_ENDPOINTS; endpoint++) {
		lane_trying(l, "kind %d", endpoint);
		shed_begin(l->w->skel, l->id);
		shed_kind(&chat, endpoint);
		ask(l, REQUEST, SW_R_shed_saturated);
		expect_counted(l, endpoint, 1);
	}
}
LANE_TEST(each_kind)

/* All paths may be shed, so none is looked up. */
static void all_paths(struct lane *l)
{
	struct sw_listener listener = world_default_listener(ID_MAIN);

	lane_trying(l, "all paths");
	listener.flags |= SW_LF_ALL_PATHS;
	world_listener(l->w, ID_MAIN, &listener);
	shed_begin(l->w->skel, l->id);
	ask(l, "GET /anything HTTP/1.1\r\n\r\n", SW_R_shed_saturated);
	expect_counted(l, SW_API_EP_OTHER, 1);
	expect_told(l, SW_R_shed_saturated, SW_CAUSE_SATURATED, SW_METHOD_GET, SW_API_EP_OTHER);
}
LANE_TEST(all_paths)

/* What must pass and cannot be handed over, as in a test run, is answered after all. */
static void no_handover(struct lane *l)
{
	lane_trying(l, "must pass");
	shed_begin(l->w->skel, l->id);
	ask(l, HEALTH, SW_R_handover_path);
	if (l->hook != HOOK_TC)
		return expect_silence(l);
	expect_counted(l, SW_API_EP_OTHER, 1);
	expect_told(l, SW_R_shed_no_handover, SW_CAUSE_SATURATED, SW_METHOD_GET, SW_API_EP_OTHER);
}
LANE_TEST(no_handover)

static void once_each(struct lane *l)
{
	const struct sw_shed_event *e;
	struct talk t;
	struct frame f;

	lane_trying(l, "the same request again");
	shed_begin(l->w->skel, l->id);
	shed_kind(&chat, SW_API_EP_CHAT_COMPLETIONS);
	if (!talk_shed(&t, l, NULL))
		return;
	f = talk_request(&t, REQUEST);
	lane_expect(l, &f, SW_R_shed_again, NULL);
	expect_counted(l, SW_API_EP_CHAT_COMPLETIONS, 1);
	if (shed_told(&e) != 1)
		world_complain(l->w, "told again");
}
LANE_TEST(once_each)

/* Requests on connections that nobody intercepts, and those that observe counts. */
static void what_is_not_shed(struct lane *l)
{
	struct sw_listener listener = world_default_listener(ID_MAIN);
	struct frame f = lane_frame(l, TCP_ACK | TCP_PSH);
	bool tc = l->hook == HOOK_TC;

	f.payload = REQUEST;
	f.payload_len = strlen(REQUEST);
	lane_trying(l, "observe");
	listener.flags = SW_LF_OBSERVE;
	world_listener(l->w, ID_MAIN, &listener);
	shed_begin(l->w->skel, l->id);
	lane_expect(l, &f, tc ? SW_R_would_shed : SW_R_pass_to_tc, NULL);
	expect_silence(l);
	lane_trying(l, "open");
	listener.flags = 0;
	world_listener(l->w, ID_MAIN, &listener);
	world_pool(l->w, SW_MODE_OPEN, SW_CAUSE_SATURATED, 60000);
	lane_expect(l, &f, SW_R_pass_open, NULL);
	expect_silence(l);
}
LANE_TEST(what_is_not_shed)

/* Far more than the rate: the burst is told, then one for each step of time that has passed. */
static void the_rate(struct lane *l)
{
	const unsigned many = 4 * SW_SHED_BURST;
	const struct sw_shed_event *e;
	uint64_t began = world_now();
	struct sw_shed_counts c;
	unsigned told, most;

	lane_trying(l, "%u at once", many);
	shed_begin(l->w->skel, l->id);
	shed_kind(&chat, SW_API_EP_CHAT_COMPLETIONS);
	for (unsigned i = 0; i < many; i++)
		if (!ask(l, REQUEST, SW_R_shed_saturated))
			return;
	most = SW_SHED_BURST + 2 + (world_now() - began) * SW_SHED_EVENTS / 1000000000;
	told = shed_told(&e);
	c = shed_counted();
	if (told < SW_SHED_BURST || told > most)
		world_complain(l->w, "%u told, not %d to %u", told, SW_SHED_BURST, most);
	if (c.untold != many - told)
		world_complain(l->w, "%lu untold beside %u", (unsigned long)c.untold, told);
	expect_counted(l, SW_API_EP_CHAT_COMPLETIONS, many);
	shed_rate_unused();
	ask(l, REQUEST, SW_R_shed_saturated);
	if (shed_told(&e) != 1)
		world_complain(l->w, "nothing is told later");
}
LANE_TEST(the_rate)

/* Nobody reads: what does not fit any more is counted, and the rest goes on. */
static void a_full_ring(struct lane *l)
{
	const struct sw_shed_event *e;
	struct sw_shed_counts c;
	unsigned sent = 0;

	if (l->hook != HOOK_TC || l->family != 4)
		return;
	lane_trying(l, "a ring that nobody reads");
	shed_begin(l->w->skel, l->id);
	do {
		shed_rate_unused();
		if (!ask(l, REQUEST, SW_R_shed_saturated))
			return;
		c = shed_counted();
	} while (!c.untold && ++sent < 20000);
	/* 256 kB, with a head of 8 bytes for each */
	if (sent != 256 * 1024 / (8 + sizeof(*e)) && sent != 256 * 1024 / (8 + sizeof(*e)) - 1)
		world_complain(l->w, "%u fit", sent);
	shed_end(); /* the ring of the next test begins where the kernel is */
}
LANE_TEST(a_full_ring)

int main(void)
{
	const struct CMUnitTest tests[] = {
		packet_test(test_each_cause), packet_test(test_each_kind),
		packet_test(test_all_paths),  packet_test(test_no_handover),
		packet_test(test_once_each),  packet_test(test_what_is_not_shed),
		packet_test(test_the_rate),   packet_test(test_a_full_ring),
	};

	return world_run(tests);
}
