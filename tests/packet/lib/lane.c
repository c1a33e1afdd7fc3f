// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Runs packets by BPF_PROG_TEST_RUN and judges what holds for all of them.

#include "lane.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char classes[] = {
#define X(n, name, class, text) [n] = #class[0],
	SW_REASONS(X)
#undef X
};

static const char *const hook_names[HOOKS] = {"xdp", "xdp-redirect", "xdp-generic", "tc"};

char reason_class(enum sw_reason reason)
{
	return classes[reason];
}

static void one_lane(void **state, struct lane *l, void (*test)(struct lane *l), int tries)
{
	int before = l->w->failures;

	while (tries--) {
		struct lane fresh = *l;

		world_reset(state);
		l->w->failures = before;
		l->w->mute = tries > 0;
		lane_trying(l, "start");
		test(&fresh);
		if (l->w->failures == before)
			break;
	}
	l->w->mute = false;
}

void each_lane(void **state, void (*test)(struct lane *l), int tries)
{
	struct world *w = *state;

	for (unsigned hook = 0; hook < HOOKS; hook++)
		for (int family = 4; family <= (w->ipv6 ? 6 : 4); family += 2) {
			struct lane l = {.w = w, .hook = hook, .family = family, .id = ID_MAIN};

			one_lane(state, &l, test, tries);
		}
}

void lane_trying(struct lane *l, const char *fmt, ...)
{
	char *at = l->w->what, *end = at + sizeof(l->w->what);
	va_list args;

	at += snprintf(at, end - at, "%s v%d: ", hook_names[l->hook], l->family);
	va_start(args, fmt);
	vsnprintf(at, end - at, fmt, args);
	va_end(args);
}

struct frame lane_frame(const struct lane *l, uint8_t flags)
{
	struct frame f = {
		.family = l->family,
		.ttl = 7, /* not one that could come back as ours */
		.ihl = RIGHT,
		.protocol = 6,
		.sport = l->w->next_port,
		.dport = PORT_MAIN,
		.window = 64240,
		.seq = 0x10203040u * l->w->next_port,
		.ack = flags & TCP_ACK ? 0x5a5a5a5a : 0,
		.flags = flags,
		.doff = RIGHT,
	};

	if (l->family == 4)
		f.fragment = 0x4000;
	world_addresses(l->family, 7, f.src, f.dst);
	return f;
}

/* ---- one run ------------------------------------------------------------------------------- */

static uint32_t verdict_of(enum hook hook, enum sw_reason reason)
{
	static const int replies[HOOKS] = {XDP_TX, XDP_REDIRECT, XDP_TX, TC_ACT_REDIRECT};

	switch (reason_class(reason)) {
	case 'D': return hook == HOOK_TC ? (uint32_t)TC_ACT_SHOT : (uint32_t)XDP_DROP;
	case 'R': return replies[hook];
	default: return hook == HOOK_TC ? (uint32_t)TC_ACT_UNSPEC : (uint32_t)XDP_PASS;
	}
}

static int test_run(struct lane *l, const struct packet *p, struct result *r, uint32_t *verdict)
{
	struct __sk_buff skb = {.gso_size = l->gso_size};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = p->bytes, .data_size_in = p->len,
		    .data_out = r->bytes, .data_size_out = sizeof(r->bytes));
	int err;

	if (l->gso_size) {
		skb.gso_segs = (p->len - p->payload + l->gso_size - 1) / l->gso_size;
		opts.ctx_in = &skb;
		opts.ctx_size_in = sizeof(skb);
	}
	err = bpf_prog_test_run_opts(l->w->program[l->hook], &opts);
	r->len = opts.data_size_out;
	*verdict = opts.retval;
	return err;
}

bool lane_run(struct lane *l, const struct packet *p, struct result *r)
{
	uint32_t verdict;
	unsigned which;
	int err;

	if (l->w->noisy)
		world_moved(l->w, &which, &r->listener, &r->reason);
	err = test_run(l, p, r, &verdict);
	if (err) {
		if (err != -EINVAL || p->len > 60)
			world_complain(l->w, "test run: %s", strerror(-err));
		return false;
	}
	if (!world_moved(l->w, &which, &r->listener, &r->reason)) {
		world_complain(l->w, "not exactly one counter moved by one");
		return false;
	}
	if (which != (l->hook == HOOK_TC)) {
		world_complain(l->w, "counted by the other hook");
		return false;
	}
	if (verdict != verdict_of(l->hook, r->reason)) {
		world_complain(l->w, "verdict %d with reason %s", (int)verdict,
			       world_reason(r->reason));
		return false;
	}
	if (reason_class(r->reason) == 'P' &&
	    (r->len != p->len || memcmp(r->bytes, p->bytes, p->len))) {
		world_complain(l->w, "%s, but the packet was changed", world_reason(r->reason));
		return false;
	}
	return true;
}

void lane_passes(struct lane *l, const struct packet *p)
{
	struct result r;

	if (lane_run(l, p, &r) && reason_class(r.reason) != 'P')
		world_complain(l->w, "should have passed, was %s", world_reason(r.reason));
}

/* ---- replies -------------------------------------------------------------------------------- */

static const char *not_mirrored(const struct frame *f, const struct packet *p,
				const struct reply *r)
{
	size_t size = f->family == 4 ? 4 : 16;

	if (memcmp(r->eth_dst, p->bytes + 6, 6) || memcmp(r->eth_src, p->bytes, 6))
		return "Ethernet addresses are not swapped";
	if (r->n_tags != f->n_tags || memcmp(r->tag, f->tag, 2 * f->n_tags))
		return "VLAN tags are not those of the request";
	if (r->family != f->family || memcmp(r->src, f->dst, size) || memcmp(r->dst, f->src, size))
		return "IP addresses are not swapped";
	if (r->sport != f->dport || r->dport != f->sport)
		return "ports are not swapped";
	if (r->ttl < 32)
		return "TTL too small to come home";
	if (r->tos & 3)
		return "ECN bits set";
	if (r->ip_options_len != (f->ip_options_len + 3) / 4 * 4)
		return "IPv4 options do not have the length of the request's";
	return NULL;
}

/* Which canned answer is this? Its texts differ from each other in every place. */
static bool find_answer(struct result *r, unsigned cause)
{
	char text[SW_ANSWER_MAX];

	for (r->set = 0; r->set < ANSWER_SETS; r->set++)
		for (r->family = 0; r->family < SW_FAMILIES; r->family++)
			for (r->variant = 0; r->variant < SW_VARIANTS; r->variant++) {
				size_t n = world_answer(r->set, cause, r->family, r->variant, text);

				if (r->reply.payload_len == n && !memcmp(r->reply.payload, text, n))
					return true;
			}
	return false;
}

static bool any_answer(struct result *r)
{
	for (unsigned cause = 0; cause < SW_CAUSES; cause++)
		if (find_answer(r, cause))
			return true;
	return false;
}

/* Flags, numbers and payload, by reason. */
static const char *not_fitting(const struct frame *f, const struct packet *p, struct result *r)
{
	const struct reply *reply = &r->reply;
	uint32_t next = f->seq + f->payload_len + !!(f->flags & TCP_FIN) + !!(f->flags & TCP_SYN);
	size_t in = p->len - p->l3;

	if (r->reason == SW_R_syn_ack) {
		if ((reply->flags & ~TCP_ECE) != (TCP_SYN | TCP_ACK) || reply->ack != f->seq + 1)
			return "not a SYN-ACK of this SYN and nothing more";
		if (reply->payload_len || reply->ip_len > in)
			return "more sent to an unproven source than it sent";
		return reply->window == 2920 ? NULL : "window of the SYN-ACK";
	}
	if (reply->mss >= 0 || reply->wscale >= 0 || reply->sack_ok)
		return "option of a SYN in another segment";
	if (reply->seq != f->ack || reply->ack != next)
		return "sequence or acknowledgement number";
	if (reply->window < 2920)
		return "window closed";
	switch (r->reason) {
	case SW_R_drain_data:
	case SW_R_drain_fin:
		return reply->flags == TCP_ACK && !reply->payload_len ? NULL : "not a pure ACK";
	case SW_R_close_silent:
		return reply->flags == (TCP_FIN | TCP_ACK) && !reply->payload_len ? NULL : "no FIN";
	case SW_R_shed_no_handover:
	case SW_R_shed_again:
		if (!any_answer(r))
			return "not a canned answer";
		break;
	default:
		if (!find_answer(r, r->reason - SW_R_shed_saturated))
			return "not a canned answer of this cause";
	}
	return reply->flags == (TCP_PSH | TCP_FIN | TCP_ACK) ? NULL : "answer without PSH and FIN";
}

const char *lane_judge(const struct frame *f, const struct packet *p, struct result *r)
{
	const char *wrong = reply_parse(r->bytes, r->len, &r->reply);

	if (!wrong)
		wrong = not_mirrored(f, p, &r->reply);
	return wrong ? wrong : not_fitting(f, p, r);
}

static enum sw_reason in_this_run(const struct lane *l, enum sw_reason want)
{
	if (reason_class(want) != 'G')
		return want;
	return l->hook == HOOK_TC ? SW_R_shed_no_handover : SW_R_pass_to_tc;
}

/* Reasons found before it is known whether the packet is for a listener. */
static bool before_listener(enum sw_reason reason)
{
	return reason == SW_R_pass_other || reason == SW_R_pass_malformed ||
	       reason == SW_R_pass_fragment || reason == SW_R_pass_exthdr;
}

bool lane_expect(struct lane *l, const struct frame *f, enum sw_reason want, struct result *r)
{
	const char *wrong = NULL;
	struct packet p;
	struct result own;

	r = r ? r : &own;
	want = in_this_run(l, want);
	frame_build(f, &p);
	if (!lane_run(l, &p, r))
		return false;
	if (r->reason != want)
		wrong = "another reason";
	else if (r->listener != l->id && (r->listener != ID_NONE || !before_listener(want)))
		wrong = "counted for another listener";
	else if (reason_class(r->reason) == 'R')
		wrong = lane_judge(f, &p, r);
	if (wrong)
		world_complain(l->w, "%s (want %s, got %s)", wrong, world_reason(want),
			       world_reason(r->reason));
	return !wrong;
}
