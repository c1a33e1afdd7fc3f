// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The reading of requests and responses in a form that BPF_PROG_TEST_RUN can repeat: each run takes
 * its packet for the next one of a connection, and for one that was due.
 */
#define STAGE(name) heads_##name
#include "ctx_tc.h"
#include "parse.h"
#include "exchange.h"

static struct exchange connection;
__u32 response, headers; /* what is read; bytes of the packet before its payload */

SEC("tc") int empty(struct __sk_buff *skb)
{
	(void)skb;
	return 0;
}

SEC("tc") int start(struct __sk_buff *skb)
{
	(void)skb;
	start_exchange(&connection, 0, 0);
	return 0;
}

/* 0: as far as it goes it is understood. */
SEC("tc") int read_payload(struct __sk_buff *skb)
{
	struct exchange *x = &connection;
	struct packet p = {.data = headers, .payload = skb->len - headers};
	int out = response;

	p.seq = out ? x->out.at : x->in.at;
	x->answered = x->asked - out;
	return STAGE(follow)(skb, &p, x, out) == FOLLOWED ? 0 : -1;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
