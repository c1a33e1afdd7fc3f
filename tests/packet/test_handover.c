// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Hand-over over a real wire: a server's accept() returns a connection with the request in it and
// with the TCP options that its client had offered. Needs a kernel that can do it.

#include "lib/wire.h"
#include "lib/talk.h"

#include <netinet/in.h>
#include <linux/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE_MS 5000 /* guests are slow */

static bool attach(struct lane *l, struct wire *wire)
{
	if (!l->w->hand_over || !wire_up(wire, l->w))
		return false;
	wire_attach(wire, l);
	return true;
}

static bool readable(int fd)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};

	return poll(&ready, 1, PATIENCE_MS) > 0;
}

/* What was sent must be read, no byte more or less. */
static void expect_read(struct lane *l, int fd, const void *want, size_t len)
{
	char got[4096];
	size_t n = 0;

	while (n < len && readable(fd)) {
		ssize_t more = recv(fd, got + n, sizeof(got) - n, 0);

		if (more <= 0)
			break;
		n += more;
	}
	if (n != len || memcmp(got, want, len))
		world_complain(l->w, "the server read %zu bytes, not the %zu that were sent", n,
			       len);
}

/* Sends the frame and accepts what comes of it. Negative: nothing did. */
static int give(struct lane *l, struct wire *wire, const struct frame *f)
{
	int listener = l->w->listener[l->family], fd;
	struct packet p;

	wire_send(wire, f, &p, 0);
	if (!readable(listener)) {
		world_complain(l->w, "no connection came");
		return -1;
	}
	fd = accept(listener, NULL, NULL);
	expect_read(l, fd, f->payload, f->payload_len);
	return fd;
}

static void reset(int fd)
{
	struct linger now = {1, 0};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
}

/* ---- why ----------------------------------------------------------------------------------- */

enum lever { NO_LEVER, ROOM, OVERDUE, EXEMPT };

static void pull(struct lane *l, enum lever lever)
{
	const char *everyone = l->family == 4 ? "192.0.2.0/24" : "2001:db8::/32";
	struct sw_listener listener = world_default_listener(ID_MAIN);

	world_pool(l->w, lever == ROOM ? SW_MODE_FINISH : SW_MODE_SHED, SW_CAUSE_SATURATED,
		   lever == OVERDUE ? -100 : 60000);
	listener.flags = lever == EXEMPT ? SW_LF_EXEMPT : 0;
	world_listener(l->w, ID_MAIN, &listener);
	world_exempt(l->w, l->family, everyone, lever == EXEMPT);
}

static uint64_t count(struct world *w, enum map map, enum sw_reason reason)
{
	struct sw_counts counts;

	world_counts(w, map, ID_MAIN, &counts);
	return ((uint64_t *)&counts)[reason];
}

static void reasons(struct lane *l)
{
	static const struct {
		const char *text;
		enum lever lever;
		enum sw_reason want;
	} rows[] = {
		{HEALTH, NO_LEVER, SW_R_handover_path},
		{"GET /v1/completions HTTP/1.1\r\n\r\n", NO_LEVER, SW_R_handover_path},
		{"POST /v1/messages/count_tokens HTTP/1.1\r\n\r\n", EXEMPT, SW_R_handover_path},
		{HEALTH REQUEST, NO_LEVER, SW_R_handover_path},
		{REQUEST, ROOM, SW_R_handover_open},
		{REQUEST, OVERDUE, SW_R_handover_open},
		{REQUEST, EXEMPT, SW_R_handover_exempt},
		{"POST /v1/chat/compl", NO_LEVER, SW_R_handover_unread},
		{"POST /v1/completions", NO_LEVER, SW_R_handover_unread},
		{"P", NO_LEVER, SW_R_handover_unread},
		{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", NO_LEVER, SW_R_handover_unread},
		{"\x16\x03\x01\x02\x01\x01\x01\x01\xfc\x03\x03", NO_LEVER, SW_R_handover_unread},
	};
	struct wire wire;

	if (!attach(l, &wire))
		return;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint64_t before[2];
		struct talk t;
		struct frame f;
		int fd;

		lane_trying(l, "hand-over of \"%.20s\", lever %d", rows[i].text, rows[i].lever);
		pull(l, NO_LEVER);
		if (!talk_opened(&t, l))
			continue;
		pull(l, rows[i].lever);
		before[0] = count(l->w, MAP_COUNTS_TC, rows[i].want);
		before[1] = count(l->w, MAP_COUNTS_XDP, SW_R_pass_to_tc);
		f = talk_request(&t, rows[i].text);
		fd = give(l, &wire, &f);
		if (fd >= 0)
			reset(fd);
		if (count(l->w, MAP_COUNTS_TC, rows[i].want) != before[0] + 1)
			world_complain(l->w, "not counted as %s", world_reason(rows[i].want));
		if (count(l->w, MAP_COUNTS_XDP, SW_R_pass_to_tc) !=
		    before[1] + (l->hook != HOOK_TC))
			world_complain(l->w, "XDP did not leave it to TC");
	}
	pull(l, NO_LEVER);
	wire_down(&wire);
}

/* ---- what is kept ---------------------------------------------------------------------------- */

enum { SACK = TCPI_OPT_SACK, STAMP = TCPI_OPT_TIMESTAMPS, SCALE = TCPI_OPT_WSCALE };
enum { ECN = TCPI_OPT_ECN, ALL_OPTIONS = SACK | STAMP | SCALE | ECN };

static struct talk offering(struct lane *l, unsigned options, unsigned mss, uint8_t shift)
{
	struct talk t = talk_bare(l);

	t.syn.options_len = 0;
	frame_option_mss(&t.syn, mss);
	if (options & SACK)
		frame_option(&t.syn, 4, NULL, 0);
	if (options & STAMP)
		frame_option_timestamps(&t.syn, t.clock, 0);
	if (options & SCALE)
		frame_option(&t.syn, 3, &shift, 1);
	if (options & ECN)
		t.syn.flags |= TCP_ECE | TCP_CWR;
	return t;
}

static void expect_info(struct lane *l, struct wire *wire, struct talk *t, unsigned options,
			uint8_t shift, unsigned mss)
{
	struct tcp_info info = {};
	socklen_t len = sizeof(info);
	struct frame f;
	int fd;

	if (!talk_open(t))
		return;
	f = talk_request(t, HEALTH);
	fd = give(l, wire, &f);
	if (fd < 0)
		return;
	getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len);
	reset(fd);
	if ((info.tcpi_options & ALL_OPTIONS) != options)
		world_complain(l->w, "options %x kept, not %x", info.tcpi_options & ALL_OPTIONS,
			       options);
	if (options & SCALE && (info.tcpi_snd_wscale != shift || info.tcpi_rcv_wscale != 7))
		world_complain(l->w, "window scales %u and %u", info.tcpi_snd_wscale,
			       info.tcpi_rcv_wscale);
	if (info.tcpi_snd_mss != mss - (options & STAMP ? 12 : 0))
		world_complain(l->w, "sends segments of %u bytes, MSS %u", info.tcpi_snd_mss, mss);
}

/* SACK, window scale and ECN are remembered in a timestamp, so only with one. */
static void options_kept(struct lane *l)
{
	struct wire wire;
	unsigned mss = l->family == 4 ? 1460 : 1440;

	if (!attach(l, &wire))
		return;
	for (unsigned set = 0; set < 16; set++) {
		struct talk t = offering(l, set, mss, set % 14);

		lane_trying(l, "hand-over with options %x", set);
		expect_info(l, &wire, &t, set & STAMP ? set : 0, set % 14, mss);
	}
	for (uint8_t shift = 0; shift < 18; shift++) {
		struct talk t = offering(l, STAMP | SCALE, mss, shift), linux_like = talk_new(l);

		lane_trying(l, "hand-over with window scale %u", shift);
		expect_info(l, &wire, &t, STAMP | SCALE, shift < 14 ? shift : 14, mss);
		lane_trying(l, "hand-over with window scale %u, options as Linux has them", shift);
		linux_like.syn.options[linux_like.syn.options_len - 1] = shift;
		expect_info(l, &wire, &linux_like, SACK | STAMP | SCALE, shift < 14 ? shift : 14,
			    mss);
	}
	wire_down(&wire);
}

/* The MSS is kept as the next lower of eight values; the largest is more than this wire takes. */
static void mss_kept(struct lane *l)
{
	static const unsigned rows[][2] = {{536, 536},	 {1000, 536},  {1220, 1220}, {1299, 1220},
					   {1300, 1300}, {1360, 1360}, {1400, 1400}, {1440, 1440},
					   {1460, 1460}, {8960, 1460}};
	struct wire wire;

	if (!attach(l, &wire))
		return;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		unsigned want = rows[i][1];
		struct talk t = offering(l, i & 1 ? STAMP : 0, rows[i][0], 0);

		if (l->family == 6 && rows[i][0] < 1220)
			continue;
		if (l->family == 6 && want > 1440)
			want = 1440;
		lane_trying(l, "hand-over with MSS %u", rows[i][0]);
		expect_info(l, &wire, &t, i & 1 ? STAMP : 0, 0, want);
	}
	wire_down(&wire);
}

/* ---- afterwards ------------------------------------------------------------------------------ */

/* The kernel's first segment continues our stream: numbers, and a clock that does not go back. */
static void expect_continued(struct lane *l, struct wire *wire, struct talk *t,
			     const struct frame *f)
{
	const char *wrong = NULL;
	struct result r;

	if (!wire_receive(wire, f->sport, &r, PATIENCE_MS))
		wrong = "nothing came from the kernel";
	if (!wrong)
		wrong = reply_parse(r.bytes, r.len, &r.reply);
	if (!wrong && (r.reply.seq != t->cookie + 1 || r.reply.ack != f->seq + f->payload_len))
		wrong = "the kernel's numbers are others";
	if (!wrong)
		wrong = talk_timestamps(t, f, &r.reply);
	if (wrong)
		world_complain(l->w, "%s", wrong);
}

/* The connection is the kernel's from then on, even when its numbers look like a conversation. */
static void goes_on(struct lane *l)
{
	static const char answer[LENGTH] = "as long as a canned answer";
	struct wire wire;
	struct packet p;
	struct talk t;
	struct frame f;
	int fd;

	if (!attach(l, &wire))
		return;
	lane_trying(l, "after a hand-over");
	if (!talk_opened(&t, l))
		goto out;
	f = talk_request(&t, HEALTH);
	fd = give(l, &wire, &f);
	if (fd < 0)
		goto out;
	expect_continued(l, &wire, &t, &f);
	f = talk_segment(&t, strlen(HEALTH), 0, TCP_ACK, REQUEST, strlen(REQUEST));
	wire_send(&wire, &f, &p, 0);
	expect_read(l, fd, REQUEST, strlen(REQUEST));
	lane_trying(l, "after the server has sent as much as an answer has");
	if (send(fd, answer, sizeof(answer), 0) != sizeof(answer))
		world_complain(l->w, "send");
	f = talk_segment(&t, strlen(HEALTH REQUEST), LENGTH, TCP_ACK, "more", 4);
	wire_send(&wire, &f, &p, 0);
	expect_read(l, fd, "more", 4);
	lane_trying(l, "FIN of a connection that was handed over");
	f = talk_segment(&t, strlen(HEALTH REQUEST) + 4, LENGTH, TCP_ACK | TCP_FIN, NULL, 0);
	wire_send(&wire, &f, &p, 0);
	if (!readable(fd) || recv(fd, p.bytes, 1, 0) != 0)
		world_complain(l->w, "the server did not see the end");
	reset(fd);
out:
	wire_down(&wire);
}

LANE_TEST(reasons)
LANE_TEST(options_kept)
LANE_TEST(mss_kept)
LANE_TEST(goes_on)

/* Says once for all lanes why there is nothing to see. */
static void test_kernel(void **state)
{
	struct world *w = *state;

	if (!w->hand_over) {
		print_message("skip: hand-over, which this kernel does not have\n");
		skip();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		packet_test(test_kernel),	packet_test(test_reasons),
		packet_test(test_options_kept), packet_test(test_mss_kept),
		packet_test(test_goes_on),
	};

	return world_run(tests);
}
