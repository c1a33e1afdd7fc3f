// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * ns per packet, by BPF_PROG_TEST_RUN, for each step of the shed conversation beside an empty
 * program in the same run. Where a packet is changed, a program that only puts it back is taken off
 * instead. Uses the world of the packet tests; conversations come from the very programs that are
 * measured.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.skel.h"
#include "spillway.skel.h"
#include "packet/lib/talk.h"

#define ROUNDS	  15
#define REPEAT	  100000
#define MAX_FRAME 512

struct original {
	uint32_t length;
	char bytes[MAX_FRAME];
};

struct programs {
	int empty, restore, run, run_and_restore;
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

static double once(int program, const struct packet *p, uint32_t *verdict)
{
	static uint8_t out[4096];
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = p->bytes, .data_size_in = p->len,
		    .data_out = out, .data_size_out = sizeof(out), .repeat = REPEAT);

	if (bpf_prog_test_run_opts(program, &opts)) {
		perror("BPF_PROG_TEST_RUN");
		exit(1);
	}
	*verdict = opts.retval;
	return opts.duration;
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

/* Measures one packet; `changes`: it is answered. Returns ns over the yardstick. */
static double measure(struct bench *b, const struct programs *p, const struct packet *packet,
		      bool changes)
{
	double base[ROUNDS], full[ROUNDS];
	struct original o = {.length = packet->len};
	uint32_t zero = 0, verdict;
	int i;

	memcpy(o.bytes, packet->bytes, packet->len);
	bpf_map_update_elem(bpf_map__fd(b->maps.original), &zero, &o, 0);
	for (i = 0; i < ROUNDS; i++) {
		base[i] = once(changes ? p->restore : p->empty, packet, &verdict);
		full[i] = once(changes ? p->run_and_restore : p->run, packet, &verdict);
	}
	if ((int)verdict == -1000) {
		fprintf(stderr, "the packet could not be put back\n");
		exit(1);
	}
	return median(full) - median(base);
}

struct step {
	const char *name;
	struct frame frame;
	bool changes;
	bool in_conversation;
};

static void report(struct world *w, struct bench *b, enum hook hook, int family)
{
	struct lane l = {.w = w, .hook = HOOK_XDP, .family = family, .id = ID_MAIN};
	struct sw_listener listener = world_default_listener(ID_MAIN);
	struct programs x = {
		bpf_program__fd(b->progs.xdp_empty), bpf_program__fd(b->progs.xdp_restore),
		bpf_program__fd(b->progs.xdp_run), bpf_program__fd(b->progs.xdp_run_and_restore)};
	struct programs t = {bpf_program__fd(b->progs.tc_empty),
			     bpf_program__fd(b->progs.tc_restore), bpf_program__fd(b->progs.tc_run),
			     bpf_program__fd(b->progs.tc_run_and_restore)};
	const struct programs *p = hook == HOOK_XDP ? &x : &t;
	const char *hook_name = hook == HOOK_XDP ? "xdp" : "tc";
	double ns, sum = 0;
	struct packet packet;
	struct talk talk;
	size_t i;

	listener.syn_rate = 0xffffffff;
	world_listener(w, ID_MAIN, &listener);
	world_pool(w, SW_MODE_SHED, SW_CAUSE_SATURATED, 3600 * 1000);
	if (!talk_opened(&talk, &l))
		exit(1);

	struct frame other = talk.syn;

	other.dport = PORT_PLAIN;

	struct step steps[] = {
		{"SYN", talk.syn, true, true},
		{"ACK of the handshake", talk_segment(&talk, 0, 0, TCP_ACK, NULL, 0), false, true},
		{"request", talk_request(&talk, REQUEST), true, true},
		{"body behind the answer",
		 talk_segment(&talk, 300, LENGTH + 1, TCP_ACK, "xxxxxxxxxxxxxxxx", 16), true,
		 false},
		{"ACK of the answer", talk_segment(&talk, 300, LENGTH + 1, TCP_ACK, NULL, 0), false,
		 true},
		{"FIN", talk_segment(&talk, 300, LENGTH + 1, TCP_FIN | TCP_ACK, NULL, 0), true,
		 true},
	};

	for (i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		frame_build(&steps[i].frame, &packet);
		ns = measure(b, p, &packet, steps[i].changes);
		if (steps[i].in_conversation)
			sum += ns;
		printf("%-4s IPv%d  %-26s %7.0f ns\n", hook_name, family, steps[i].name, ns);
	}
	printf("%-4s IPv%d  %-26s %7.0f ns\n", hook_name, family, "whole conversation", sum);
	frame_build(&other, &packet);
	printf("%-4s IPv%d  %-26s %7.0f ns\n", hook_name, family, "pass, other port",
	       measure(b, p, &packet, false));
	world_pool(w, SW_MODE_OPEN, SW_CAUSE_SATURATED, 3600 * 1000);
	frame_build(&steps[2].frame, &packet);
	printf("%-4s IPv%d  %-26s %7.0f ns\n", hook_name, family, "pass, guarded and open",
	       measure(b, p, &packet, false));
}

int main(void)
{
	void *state = NULL;
	struct bench *b;
	int family;

	if (world_up(&state)) {
		fprintf(stderr, "run as root, on a kernel with BPF\n");
		return 1;
	}
	b = load(state);
	if (!b)
		return 1;
	printf("median of %d rounds of %d packets, over an empty program in the same run\n", ROUNDS,
	       REPEAT);
	for (family = 4; family <= 6; family += 2) {
		world_reset(&state);
		report(state, b, HOOK_XDP, family);
		world_reset(&state);
		report(state, b, HOOK_TC, family);
	}
	bench__destroy(b);
	return world_down(&state);
}
