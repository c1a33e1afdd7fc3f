// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The cookie as a client, an attacker and a rotated key see it, and conversations that the kernel
// has a socket for.

#include "lib/talk.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const enum sw_reason any_phase[] = {SW_R_drop_handshake, SW_R_shed_saturated,
					   SW_R_drain_data, SW_R_drain_fin};

/* The segment of a conversation that has this reason when all is well. */
static struct frame segment_for(struct talk *t, enum sw_reason reason)
{
	switch (reason) {
	case SW_R_drop_handshake: return talk_segment(t, 0, 0, TCP_ACK, NULL, 0);
	case SW_R_drain_data: return talk_segment(t, 80, LENGTH, TCP_ACK, "rest", 4);
	case SW_R_drain_fin: return talk_segment(t, 80, LENGTH + 1, TCP_ACK | TCP_FIN, NULL, 0);
	default: return talk_request(t, REQUEST);
	}
}

#define AS_USUAL SW_R_COUNT

/* Segments of all phases of a conversation must go as usual, or all for another reason. */
static void expect_phases(struct talk *t, enum sw_reason want)
{
	for (unsigned i = 0; i < sizeof(any_phase) / sizeof(*any_phase); i++) {
		struct frame f = segment_for(t, any_phase[i]);

		lane_expect(t->l, &f, want == AS_USUAL ? any_phase[i] : want, NULL);
	}
}

/* ---- what the cookie depends on ------------------------------------------------------------ */

/* Each bit of the acknowledgement number: 18 are hash or part of the answer's length, 11 are the
 * check of the first sequence number, and three the MSS, which a client may lie about. */
static void flipped_bits(struct lane *l)
{
	unsigned accepted = 0, stopped = 0;

	for (unsigned bit = 0; bit < 32; bit++) {
		struct packet p;
		struct result r;
		struct talk t;
		struct frame f;

		if (!talk_opened(&t, l))
			continue;
		lane_trying(l, "bit %u of the cookie flipped", bit);
		f = talk_request(&t, REQUEST);
		f.ack ^= 1u << bit;
		frame_build(&f, &p);
		if (!lane_run(l, &p, &r))
			continue;
		if (r.reason == SW_R_shed_saturated)
			accepted++;
		else if (r.reason == SW_R_drop_order || r.reason == SW_R_drop_ack)
			stopped++;
		else if (r.reason != SW_R_pass_unknown)
			world_complain(l->w, "%s", world_reason(r.reason));
	}
	lane_trying(l, "flipped bits of a cookie");
	if (accepted > 3 || stopped < 6)
		world_complain(l->w, "%u accepted, %u stopped by the check", accepted, stopped);
}

static void guesses(struct lane *l)
{
	unsigned known = 0;

	srandom(5);
	for (unsigned i = 0; i < 2000; i++) {
		struct frame f = lane_frame(l, TCP_ACK | TCP_PSH);
		struct packet p;
		struct result r;

		lane_trying(l, "random acknowledgement number %u", i);
		f.ack = (uint32_t)random() << 1 ^ random();
		f.payload = REQUEST;
		f.payload_len = strlen(REQUEST);
		frame_build(&f, &p);
		if (!lane_run(l, &p, &r))
			continue;
		known += r.reason != SW_R_pass_unknown;
		if (reason_class(r.reason) == 'R' && r.reason != SW_R_drain_data)
			world_complain(l->w, "%s for a guess", world_reason(r.reason));
	}
	if (known > 10)
		world_complain(l->w, "%u of 2000 guesses taken for ours", known);
}

/* A cookie is good for its addresses and ports only. */
static void other_tuples(struct lane *l)
{
	for (unsigned i = 0; i < 4; i++) {
		unsigned last = l->family == 4 ? 3 : 15;
		struct talk t;

		lane_trying(l, "cookie of another tuple, %u", i);
		if (!talk_opened(&t, l))
			continue;
		if (i == 0)
			t.syn.sport ^= 1;
		else if (i == 1)
			t.syn.src[last] ^= 1;
		else if (i == 2)
			t.syn.src[l->family == 4 ? 0 : 4] ^= 1;
		else
			t.syn.dst[last] ^= 2;
		expect_phases(&t, SW_R_pass_unknown);
	}
}

/* Unrelated for each connection, and for each half of its numbers. */
static void spread(struct lane *l)
{
	uint32_t ones = 0, zeros = 0, last = 0;

	for (unsigned i = 0; i < 64; i++) {
		struct talk t;

		if (!talk_opened(&t, l))
			continue;
		if (i && abs((int)(t.cookie - last)) < 1 << 16)
			zeros++;
		last = t.cookie;
		ones |= t.cookie;
	}
	if (zeros > 2 || ones != 0xffffffff)
		world_complain(l->w, "%u neighbours, bits %x", zeros, ones);
}

/* What is not the first sequence number of the SYN is not the place of the request. Only multiples
 * of 4,096 pass for it, which no window of ours lets a client reach. */
static void first_sequence(struct lane *l)
{
	static const int32_t off[] = {-1448,	     -2, -1, 1, 2, 1448, 4095, (1 << 20) + 1,
				      -(1 << 30) - 1};

	for (unsigned i = 0; i < sizeof(off) / sizeof(*off); i++) {
		struct talk t;
		struct frame f;

		lane_trying(l, "request at %d", off[i]);
		if (!talk_opened(&t, l))
			continue;
		f = talk_segment(&t, off[i], 0, TCP_ACK, REQUEST, strlen(REQUEST));
		talk_expect(&t, &f, SW_R_drop_order, NULL);
	}
}

/* ---- keys ---------------------------------------------------------------------------------- */

static void rotation(struct lane *l)
{
	struct talk old, new;

	lane_trying(l, "key rotated, the old one still good");
	world_secrets(l->w, 11, 10, -100);
	if (!talk_opened(&old, l))
		return;
	world_secrets(l->w, 12, 11, 60000);
	expect_phases(&old, AS_USUAL);
	world_forget(l->w);
	lane_trying(l, "SYN under the new key");
	new = old;
	new.seen = 0;
	if (!talk_open(&new))
		return;
	if (new.cookie == old.cookie)
		world_complain(l->w, "same cookie under another key");
	expect_phases(&new, AS_USUAL);
	world_forget(l->w);
	lane_trying(l, "the old key has ended");
	world_secrets(l->w, 12, 11, -100);
	expect_phases(&old, SW_R_pass_unknown);
	expect_phases(&new, AS_USUAL);
	world_forget(l->w);
	lane_trying(l, "rotated twice");
	world_secrets(l->w, 13, 12, 60000);
	expect_phases(&old, SW_R_pass_unknown);
	expect_phases(&new, AS_USUAL);
}

static void every_part_of_the_key(struct lane *l)
{
	for (unsigned bit = 0; bit < 128; bit += 21) {
		struct sw_secrets secrets = {.key = {{3, 4}}};
		uint32_t zero = 0;
		struct talk t;

		lane_trying(l, "bit %u of the key", bit);
		world_write(l->w, MAP_SECRETS, &zero, &secrets);
		if (!talk_opened(&t, l))
			continue;
		secrets.key[0][bit / 64] ^= 1ULL << bit % 64;
		world_write(l->w, MAP_SECRETS, &zero, &secrets);
		expect_phases(&t, SW_R_pass_unknown);
	}
}

/* One conversation, each segment by another program: XDP opens, TC goes on. */
static void programs_agree(struct lane *l)
{
	struct lane other = *l;
	struct result r;
	struct talk t;
	struct frame f;

	for (other.hook = 0; other.hook < HOOKS; other.hook++) {
		lane_trying(&other, "opened by program %d", l->hook);
		if (!talk_opened(&t, l))
			return;
		t.l = &other;
		f = talk_request(&t, HEALTH);
		talk_expect(&t, &f, SW_R_handover_path, NULL);
		world_forget(l->w);
		f = talk_request(&t, REQUEST);
		talk_expect(&t, &f, SW_R_shed_saturated, &r);
		t.l = l;
		f = talk_request(&t, REQUEST);
		talk_expect(&t, &f, SW_R_shed_again, &r);
		f = talk_segment(&t, 80, LENGTH, TCP_ACK | TCP_FIN, NULL, 0);
		talk_expect(&t, &f, SW_R_drain_fin, NULL);
	}
}

/* ---- sockets ------------------------------------------------------------------------------- */

struct loopback {
	union {
		struct sockaddr sa;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	};
	socklen_t len;
};

static struct loopback loopback_address(int family, uint16_t port)
{
	struct loopback at = {};

	if (family == 4) {
		at.v4.sin_family = AF_INET;
		at.v4.sin_port = htons(port);
		at.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		at.len = sizeof(at.v4);
	} else {
		at.v6.sin6_family = AF_INET6;
		at.v6.sin6_port = htons(port);
		at.v6.sin6_addr = in6addr_loopback;
		at.len = sizeof(at.v6);
	}
	return at;
}

static int loopback_socket(int family, uint16_t port)
{
	struct loopback at = loopback_address(family, port);
	int one = 1, fd = socket(at.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	assert_int_equal(bind(fd, &at.sa, at.len), 0);
	return fd;
}

/* Whatever the kernel has a socket for is the kernel's, even if the cookie fits. */
static void real_connections(struct lane *l)
{
	struct loopback server = loopback_address(l->family, PORT_DEAF);
	int listener = loopback_socket(l->family, PORT_DEAF), client, accepted;
	struct talk t = talk_new(l);

	lane_trying(l, "before there is a connection");
	l->id = ID_DEAF;
	assert_int_equal(listen(listener, 1), 0);
	inet_pton(server.sa.sa_family, l->family == 4 ? "127.0.0.1" : "::1", t.syn.src);
	memcpy(t.syn.dst, t.syn.src, sizeof(t.syn.dst));
	t.syn.dport = PORT_DEAF;
	client = loopback_socket(l->family, t.syn.sport);
	if (!talk_open(&t))
		goto out;
	expect_phases(&t, AS_USUAL);
	lane_trying(l, "the kernel has a connection for it");
	assert_int_equal(connect(client, &server.sa, server.len), 0);
	lane_expect(l, &t.syn, SW_R_pass_socket, NULL);
	expect_phases(&t, SW_R_pass_socket);
	lane_trying(l, "the kernel's socket is in TIME_WAIT");
	accepted = accept(listener, NULL, NULL);
	close(accepted); /* the server closes first, so TIME_WAIT is on its side */
	close(client);
	client = -1;
	lane_expect(l, &t.syn, SW_R_pass_socket, NULL);
	expect_phases(&t, SW_R_pass_socket);
	lane_trying(l, "the server is gone");
	close(listener);
	listener = -1;
	t.syn.sport++;
	lane_expect(l, &t.syn, SW_R_pass_no_listener, NULL);
out:
	if (client >= 0)
		close(client);
	if (listener >= 0)
		close(listener);
}

CHANCE_TEST(flipped_bits)
CHANCE_TEST(guesses)
CHANCE_TEST(other_tuples)
CHANCE_TEST(spread)
CHANCE_TEST(first_sequence)
CHANCE_TEST(rotation)
CHANCE_TEST(every_part_of_the_key)
LANE_TEST(programs_agree)
LANE_TEST(real_connections)

/* Bytes behind a lost first segment are never taken for it, whatever they look like: all that the
 * window lets a client send before it has an answer. */
static void behind_the_first(void **state)
{
	static const uint32_t ahead[] = {1, 536, 1448, 1460, 2048, 2919};
	struct lane l = {.w = *state, .hook = HOOK_TC, .family = 4, .id = ID_MAIN};

	for (size_t i = 0; i < sizeof(ahead) / sizeof(*ahead); i++) {
		unsigned taken = 0;

		for (unsigned n = 0; n < 1000; n++) {
			struct talk t = talk_new(&l);
			struct result r;
			struct frame f;
			struct packet p;

			t.syn.seq = n * 0x01234567u;
			lane_trying(&l, "%u bytes behind a lost request, try %u", ahead[i], n);
			if (!talk_open(&t))
				return;
			f = talk_segment(&t, ahead[i], 0, TCP_PSH | TCP_ACK, REQUEST,
					 strlen(REQUEST));
			frame_build(&f, &p);
			lane_run(&l, &p, &r);
			taken += r.reason != SW_R_drop_order;
		}
		if (taken)
			world_complain(l.w, "%u of 1000 were taken for the first", taken);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		packet_test(behind_the_first),	  packet_test(test_flipped_bits),
		packet_test(test_guesses),	  packet_test(test_other_tuples),
		packet_test(test_spread),	  packet_test(test_first_sequence),
		packet_test(test_rotation),	  packet_test(test_every_part_of_the_key),
		packet_test(test_programs_agree), packet_test(test_real_connections),
	};

	return world_run(tests);
}
