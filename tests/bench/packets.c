// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * ns per packet, by BPF_PROG_TEST_RUN, for each step of the shed conversation beside an empty
 * program in the same run. Where a packet is changed, programs that only put it back are taken off
 * instead. Uses the world of the packet tests; conversations come from the very programs that are
 * measured.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.skel.h"
#include "spillway.skel.h"
#include "packet/lib/counting.h"
#include "packet/lib/talk.h"

#define ROUNDS	     15
#define REPEAT	     100000
#define MAX_FRAME    512
#define NOT_PUT_BACK (-1000)

struct original {
	uint32_t length, answer_length;
	char bytes[MAX_FRAME];
};

struct programs {
	enum hook hook;
	int empty, restore, resize_and_restore, run, run_and_restore;
};

static struct bench *load(struct world *w)
{
	struct bench *b = bench__open();
	struct bpf_map *map;

	if (!b)
		return NULL;
	b->rodata->have_hand_over = w->hand_over;
	bpf_object__for_each_map (map, b->obj) {
		const char *name = bpf_map__name(map);
		struct bpf_map *same = bpf_object__find_map_by_name(w->skel->obj, name);

		/* `recent` stays our own, with one place: each request is seen for the first time
		 */
		if (!strcmp(name, "recent"))
			bpf_map__set_max_entries(map, 1);
		else if (same && strcmp(name, "original") && !bpf_map__is_internal(map))
			bpf_map__reuse_fd(map, bpf_map__fd(same));
	}
	if (bench__load(b)) {
		bench__destroy(b);
		return NULL;
	}
	return b;
}

enum fate { PASSED, DROPPED, ANSWERED };

struct outcome {
	double ns;
	uint32_t verdict, length;
};

static struct outcome run(int program, const struct packet *p, int repeat)
{
	static uint8_t out[4096];
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = p->bytes, .data_size_in = p->len,
		    .data_out = out, .data_size_out = sizeof(out), .repeat = repeat);

	if (bpf_prog_test_run_opts(program, &opts)) {
		perror("BPF_PROG_TEST_RUN");
		exit(1);
	}
	return (struct outcome){opts.duration, opts.retval, opts.data_size_out};
}

static double once(int program, const struct packet *p)
{
	struct outcome o = run(program, p, REPEAT);

	if ((int)o.verdict == NOT_PUT_BACK) {
		fprintf(stderr, "the packet could not be put back\n");
		exit(1);
	}
	return o.ns;
}

static int ascending(const void *a, const void *b)
{
	return *(const double *)a < *(const double *)b ? -1
						       : *(const double *)a > *(const double *)b;
}

static double median(double *v)
{
	qsort(v, ROUNDS, sizeof(*v), ascending);
	return v[ROUNDS / 2];
}

/* What putting the packet back takes off a run that has answered it: its bytes and one change of
 * its size, half of what changing it there and back costs more. */
static double yardstick(const struct programs *p, const struct packet *packet)
{
	return (once(p->restore, packet) + once(p->resize_and_restore, packet)) / 2;
}

/* A packet that meets another fate than the one it stands for would be measured for nothing. */
static struct outcome try(const struct programs *p, const struct packet *packet, enum fate fate)
{
	const int xdp[] = {XDP_PASS, XDP_DROP, XDP_TX};
	const int tc[] = {TC_ACT_UNSPEC, TC_ACT_SHOT, TC_ACT_REDIRECT};
	struct outcome o = run(p->run, packet, 1);

	if ((int)o.verdict != (p->hook == HOOK_XDP ? xdp : tc)[fate]) {
		fprintf(stderr, "verdict %d is not the one that is to be measured\n",
			(int)o.verdict);
		exit(1);
	}
	return o;
}

/* ns for one packet over the yardstick. */
static double measure(struct bench *b, const struct programs *p, const struct packet *packet,
		      enum fate fate)
{
	bool changes = fate == ANSWERED;
	double base[ROUNDS], full[ROUNDS];
	struct original o = {.length = packet->len};
	uint32_t zero = 0;
	int i;

	o.answer_length = try(p, packet, fate).length;
	memcpy(o.bytes, packet->bytes, packet->len);
	bpf_map_update_elem(bpf_map__fd(b->maps.original), &zero, &o, 0);
	for (i = 0; i < ROUNDS; i++) {
		base[i] = changes ? yardstick(p, packet) : once(p->empty, packet);
		full[i] = once(changes ? p->run_and_restore : p->run, packet);
	}
	return median(full) - median(base);
}

enum step {
	SYN,
	ACK,
	ASK,
	REST,
	ANSWER_ACK,
	FIN,
	CONVERSATION,
	OTHER_PORT,
	OPEN,
	METERED,
	METERED_SYN,
	STEPS
};

static const struct {
	const char *name;
	int aim; /* ns; 0: none is stated */
	enum fate fate;
	bool in_conversation;
} about[STEPS] = {
	[SYN] = {"SYN", 150, ANSWERED, true},
	[ACK] = {"ACK of the handshake", 0, DROPPED, true},
	[ASK] = {"request", 200, ANSWERED, true},
	[REST] = {"body behind the answer", 0, ANSWERED, false},
	[ANSWER_ACK] = {"ACK of the answer", 0, DROPPED, true},
	[FIN] = {"FIN", 0, ANSWERED, true},
	[CONVERSATION] = {"whole conversation", 700, PASSED, false},
	[OTHER_PORT] = {"pass, other port", 0, PASSED, false},
	[OPEN] = {"pass, guarded and open", 25, PASSED, false},
	[METERED] = {"pass, metered and idle", 0, PASSED, false},
	[METERED_SYN] = {"SYN, metered, with room", 0, PASSED, false},
};

static struct programs programs_of(const struct bench *b, enum hook hook)
{
#define FD(name) bpf_program__fd(hook == HOOK_XDP ? b->progs.xdp_##name : b->progs.tc_##name)
	return (struct programs){hook,	  FD(empty),	      FD(restore), FD(resize_and_restore),
				 FD(run), FD(run_and_restore)};
#undef FD
}

/* Room for many, and no SYN refused lately. */
static void meter(struct world *w)
{
	static const struct sw_pool_use never;

	counting->w = w;
	count_row(1000);
	count_pool(SW_SF_COUNT, 1000, 3600 * 1000);
	count_set_use(&never);
	world_pool(w, SW_MODE_METERED, SW_CAUSE_SATURATED, 3600 * 1000);
}

/* The frames of one conversation, and what the world is like while each comes. */
static void lane(struct world *w, struct bench *b, enum hook hook, int family, double ns[STEPS])
{
	struct lane l = {.w = w, .hook = HOOK_XDP, .family = family, .id = ID_MAIN};
	struct sw_listener listener = world_default_listener(ID_MAIN);
	const struct programs p = programs_of(b, hook);
	struct frame frame[STEPS];
	struct packet packet;
	struct talk t;

	fprintf(stderr, "bench: %s, IPv%d\n", hook == HOOK_XDP ? "XDP" : "TC", family);
	listener.syn_rate = 0xffffffff;
	world_listener(w, ID_MAIN, &listener);
	world_pool(w, SW_MODE_SHED, SW_CAUSE_SATURATED, 3600 * 1000);
	if (!talk_opened(&t, &l))
		exit(1);
	frame[SYN] = frame[OTHER_PORT] = frame[METERED_SYN] = t.syn;
	frame[OTHER_PORT].dport = PORT_PLAIN;
	frame[ACK] = talk_segment(&t, 0, 0, TCP_ACK, NULL, 0);
	frame[ASK] = frame[OPEN] = frame[METERED] = talk_request(&t, REQUEST);
	frame[REST] = talk_segment(&t, 300, LENGTH + 1, TCP_ACK, "xxxxxxxxxxxxxxxx", 16);
	frame[ANSWER_ACK] = talk_segment(&t, 300, LENGTH + 1, TCP_ACK, NULL, 0);
	frame[FIN] = talk_segment(&t, 300, LENGTH + 1, TCP_FIN | TCP_ACK, NULL, 0);

	ns[CONVERSATION] = 0;
	for (int s = 0; s < STEPS; s++) {
		if (s == CONVERSATION)
			continue;
		if (s == OPEN)
			world_pool(w, SW_MODE_OPEN, SW_CAUSE_SATURATED, 3600 * 1000);
		if (s == METERED)
			meter(w);
		frame_build(&frame[s], &packet);
		ns[s] = measure(b, &p, &packet, about[s].fate);
		if (about[s].in_conversation)
			ns[CONVERSATION] += ns[s];
	}
}

int main(void)
{
	double ns[4][STEPS];
	void *state = NULL;
	struct bench *b;
	int n = 0;

	if (world_up(&state)) {
		fprintf(stderr, "run as root, on a kernel with BPF\n");
		return 1;
	}
	b = load(state);
	if (!b)
		return 1;
	for (int family = 4; family <= 6; family += 2) {
		for (int xdp = 1; xdp >= 0; xdp--) {
			world_reset(&state);
			lane(state, b, xdp ? HOOK_XDP : HOOK_TC, family, ns[n++]);
		}
	}
	printf("ns per packet over an empty program in the same run, median of %d rounds of %d\n",
	       ROUNDS, REPEAT);
	printf("%-24s %9s %9s %9s %9s %9s\n", "", "XDP IPv4", "TC IPv4", "XDP IPv6", "TC IPv6",
	       "aim");
	for (int s = 0; s < STEPS; s++) {
		printf("%-24s", about[s].name);
		for (int i = 0; i < n; i++)
			printf(" %9.0f", ns[i][s]);
		printf(about[s].aim ? " %9d\n" : "\n", about[s].aim);
	}
	bench__destroy(b);
	return world_down(&state);
}
