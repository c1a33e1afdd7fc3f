/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What both sides of the kernel boundary share: keys and values of the maps, and their limits.
 * Those of slots and steering are in abi_slots.h. Integers are in host order unless a comment says
 * otherwise; IPv4 addresses are IPv4-mapped IPv6. Any change of a layout in either file raises
 * SW_LAYOUT, which is part of the pin path.
 */
#ifndef SPILLWAY_ABI_H
#define SPILLWAY_ABI_H

#include <linux/types.h>
#include <spillway/abi_slots.h>
#include <spillway/reasons.h>

#define SW_LAYOUT	  2
#define SW_MAX_LISTENERS  1024 /* ids 1..1023; 0 stands for "no listener" */
#define SW_MAX_POOLS	  256
#define SW_MAX_PATHS	  4096
#define SW_MAX_EXEMPT	  4096
#define SW_MAX_ANSWERSETS 256
#define SW_EXPIRE_KEYS	  1024
#define SW_MAX_FLOWS	  1000000
#define SW_DEFAULT_FLOWS  65536 /* connections that requests are shed on, unless configured */

/* Cookies live for the current and the previous period of 2^36 ns, about 69 s. */
#define SW_PERIOD_SHIFT 36
#define SW_LIFETIME_NS	(2ULL << SW_PERIOD_SHIFT)

/* ---- listeners -------------------------------------------------------------------------- */

/* ports[port]: who listens on a TCP port. Listener ids; 0 is none. */
struct sw_port {
	__u16 any4;   /* listener on 0.0.0.0, or on [::] without IPV6_V6ONLY */
	__u16 any6;   /* listener on [::] */
	__u16 single; /* 1: `addresses` may hold a listener on one address, look there first */
	__u16 pad;
};

/* addresses[{addr, port}]: listeners bound to one address. Value: __u32 listener id. */
struct sw_address {
	__u8 addr[16];
	__u16 port;
	__u16 pad;
};

#define SW_LF_EXEMPT	(1U << 0)   /* `exempt` holds CIDRs for this listener's set */
#define SW_LF_OBSERVE	(1U << 1)   /* count what would be shed, shed nothing */
#define SW_LF_ALL_PATHS (1U << 2)   /* every request may be shed, `paths` is not asked */
#define SW_LF_KEEP	(1U << 3)   /* requests on established connections are shed too */
#define SW_LF_PASS_NEW	(1U << 4)   /* new connections are left to the stack */
#define SW_KEEP_MARK	0x53504c57U /* of our own segments, from TC ingress to TC egress */

struct sw_listener {
	__u8 addr[16]; /* for the reader of a dump; all zero: any address */
	__u16 port;
	__u16 pool;	    /* index into pools */
	__u16 answers;	    /* answer set */
	__u16 paths;	    /* path set */
	__u16 exempt;	    /* CIDR set */
	__u16 length;	    /* bytes of every answer in the set */
	__u16 old_length;   /* bytes of the answers before the last change, 0: none */
	__u8 variants_mask; /* number of Retry-After variants - 1 (a power of two - 1) */
	__u8 pad;
	__u32 flags;	    /* SW_LF_* */
	__u32 syn_rate;	    /* SYN-ACKs a second and source prefix; 0: no limit */
	__u64 old_until_ns; /* CLOCK_MONOTONIC until which old_length is accepted */
};

/* local[addr]: the namespace's own addresses. Nothing else is ever answered for: traffic that only
 * passes through (routed, bridged, promiscuous) is not ours. 127.0.0.0/8 need not be listed. */
#define SW_MAX_LOCAL 4096
struct sw_local {
	__u8 addr[16];
};

/* ---- pools ------------------------------------------------------------------------------ */

enum sw_mode {
	SW_MODE_OPEN = 0, /* nothing intercepted, no conversation under way */
	SW_MODE_FINISH =
		1, /* nothing new intercepted, conversations under way are brought to an end */
	SW_MODE_SHED = 2,    /* what may be shed is shed */
	SW_MODE_METERED = 3, /* what may be shed is shed while the pool has no free slot */
};

enum sw_cause { /* the x-spillway-reason of an answer */
		SW_CAUSE_SATURATED,
		SW_CAUSE_NO_SLOTS,
		SW_CAUSE_DRAINING,
		SW_CAUSE_UNAVAILABLE,
		SW_CAUSES
};

struct sw_pool {
	__u64 deadline_ns; /* CLOCK_MONOTONIC; past it nothing new is shed */
	__u32 mode;	   /* enum sw_mode */
	__u32 cause;	   /* enum sw_cause, which answers to give */
	__u32 armed;	   /* 1: it may soon shed; connections are followed from now on, so that the
			    * first request of each can be shed */
	__u32 pad;
};

/* ---- answers ---------------------------------------------------------------------------- */

enum sw_family {		    /* shape of the body, chosen by the path */
		 SW_FAMILY_DEFAULT, /* the listener's own: dynamo, openai, ... */
		 SW_FAMILY_ANTHROPIC,
		 SW_FAMILY_TGI,
		 SW_FAMILIES
};

#define SW_VARIANTS	  8    /* canned Retry-After values per answer, at most */
#define SW_ANSWER_MAX	  1024 /* bytes of a whole response */
#define SW_ANSWER_DEFAULT 536  /* bytes without an explicit word of the operator */
#define SW_ANSWERS_KEEP                                                                            \
	(SW_CAUSES * SW_FAMILIES * SW_VARIANTS) /* those that keep the connection                  \
						 */
#define SW_ANSWERS_PER_SET (2 * SW_ANSWERS_KEEP)
#define SW_ANSWER_INDEX(set, cause, family, variant)                                               \
	((__u32)(set) * SW_ANSWERS_PER_SET + ((cause) * SW_FAMILIES + (family)) * SW_VARIANTS +    \
	 (variant))

/* answers[SW_ANSWER_INDEX(...)]: one complete HTTP response. All in a set have one length. */
struct sw_answer {
	__u32 length; /* bytes used, even, <= SW_ANSWER_MAX */
	__u32 sum;    /* 16-bit one's-complement sum of the bytes as network-order words, as
		       * bpf_csum_diff() and the kernel's csum_partial() give it (little-endian
		       * hosts: words read in host order), folded to 16 bits, not inverted */
	char bytes[SW_ANSWER_MAX];
};

/* ---- what may be shed ------------------------------------------------------------------- */

enum sw_method {
	SW_METHOD_NONE,
	SW_METHOD_GET,
	SW_METHOD_HEAD,
	SW_METHOD_POST,
	SW_METHOD_PUT,
	SW_METHOD_DELETE,
	SW_METHOD_PATCH,
	SW_METHOD_OPTIONS,
	SW_METHOD_CONNECT,
	SW_METHOD_TRACE,
};

#define SW_PATH_MAX	64  /* of a path, or of what follows a {name}: at most 63 bytes, a zero */
#define SW_PATH_SCAN	128 /* bytes of the request line that are read */
#define SW_PREFIX_MAX	32  /* bytes before a {name} */
#define SW_MAX_PREFIXES 16  /* patterns with a {name}, over all sets */

/* paths[key]: requests with a known meaning. `path` is the whole path, up to '?' or ' ', zero
 * padded; for a pattern PREFIX{name}SUFFIX it is SUFFIX and `prefix` is the index + 1 of PREFIX in
 * `prefixes`. A path that is not in the map is never shed. */
struct sw_path {
	__u16 set;
	__u8 method; /* enum sw_method */
	__u8 prefix; /* 0: whole path */
	char path[SW_PATH_MAX];
};

enum sw_path_action {
	SW_PATH_SHED = 1,
	SW_PATH_PASS = 2, /* an operator's explicit exception; it wins over a pattern */
};

/* What kind of request it is: one counter of what was shed for each. */
enum sw_api_endpoint {
	SW_API_EP_OTHER,
	SW_API_EP_COMPLETIONS,
	SW_API_EP_CHAT_COMPLETIONS,
	SW_API_EP_EMBEDDINGS,
	SW_API_EP_IMAGES,
	SW_API_EP_VIDEOS,
	SW_API_EP_AUDIOS,
	SW_API_EP_RESPONSES,
	SW_API_EP_ANTHROPIC_MESSAGES,
	SW_API_EP_TENSOR,
	SW_API_ENDPOINTS
};

struct sw_path_value {
	__u16 action;  /* enum sw_path_action */
	__u8 family;   /* enum sw_family */
	__u8 endpoint; /* enum sw_api_endpoint */
};

/* prefixes[i]: what stands before a {name}; `length` 0 ends the table. */
struct sw_prefix {
	char bytes[SW_PREFIX_MAX]; /* zero padded, ends in '/' */
	__u32 length;
};

/* exempt[key]: LPM trie. prefixlen = 32 + bits of the CIDR (IPv4: 32 + 96 + bits). Value: __u32 1.
 */
struct sw_cidr_key {
	__u32 prefixlen;
	__u32 set; /* network order, so that it sorts as the leading bits */
	__u8 addr[16];
};

/* ---- levers of run time ----------------------------------------------------------------- */

#define SW_TCP_TIMESTAMPS (1U << 0)
#define SW_TCP_SACK	  (1U << 1)
#define SW_TCP_WSCALE	  (1U << 2)
#define SW_TCP_ECN	  (1U << 3)

/* secrets[0]: mode 0600, not for dumps. Written by the daemon only. */
struct sw_secrets {
	__u64 key[2][2];	 /* SipHash keys: current, previous */
	__u64 previous_until_ns; /* CLOCK_MONOTONIC until which key[1] is accepted */
};

/* levers[0] */
struct sw_levers {
	__u32 tcp;  /* SW_TCP_*: what the namespace's sysctls allow on a handed-over connection */
	__u16 mss4; /* the MSS that a SYN-ACK advertises over IPv4 */
	__u16 mss6; /* and over IPv6 */
};

/* ---- written by the kernel only ---------------------------------------------------------- */

#define SW_RECENT 16384 /* places, a power of two */
#define SW_FLOOD  4096	/* places, a power of two */

/* recent[hash]: a conversation just answered; read and written as one 64-bit word. */
struct sw_recent {
	__u32 mark; /* the acknowledgement number that its request carried, cookie + 1; its low
		     * four bits replaced by cause << 2 | family of the answer */
	__u32 next; /* the client's next sequence number */
};

/* flood[hash]: SYN-ACKs to one source prefix (IPv4 /24, IPv6 /64) in one second. */
struct sw_flood {
	__u32 prefix; /* folded prefix that owns this place */
	__u32 second;
	__u32 count;
	__u32 pad;
};

/* ---- counters --------------------------------------------------------------------------- */

/* counts_xdp[listener], counts_tc[listener]: per CPU, packets by reason; index 0: no listener. */
struct sw_counts {
#define X(n, name, class, text) __u64 name;
	SW_REASONS(X)
#undef X
};

/* counts_shed[listener]: per CPU, requests that were shed, kept connections included, and how many
 * of them are not in `shed_events`. */
struct sw_shed_counts {
	__u64 endpoints[SW_API_ENDPOINTS]; /* by enum sw_api_endpoint */
	__u64 untold;
};

/* shed_events: what was shed, a sample of SW_SHED_EVENTS a second, after a burst of
 * SW_SHED_BURST. */
#define SW_SHED_EVENTS 100
#define SW_SHED_BURST  50

struct sw_shed_event {
	__u64 at_ns;	 /* CLOCK_MONOTONIC, of the last tick */
	__u8 source[16]; /* IPv4: a /24; IPv6: a /64; what follows is zero */
	__u16 listener;
	__u8 reason;   /* enum sw_reason, one of shed_* */
	__u8 cause;    /* enum sw_cause */
	__u8 method;   /* enum sw_method */
	__u8 endpoint; /* enum sw_api_endpoint */
	__u8 kept;     /* 1: on a connection that goes on */
	__u8 pad;
};

/* shed_sample[0]: __u64, CLOCK_MONOTONIC ns until which the rate is used up. */

SW_ASSERT(sizeof(struct sw_port) == 8);
SW_ASSERT(sizeof(struct sw_address) == 20);
SW_ASSERT(sizeof(struct sw_listener) == 48);
SW_ASSERT(sizeof(struct sw_pool) == 24);
SW_ASSERT(sizeof(struct sw_answer) == 8 + SW_ANSWER_MAX);
SW_ASSERT(sizeof(struct sw_path) == 4 + SW_PATH_MAX);
SW_ASSERT(sizeof(struct sw_path_value) == 4);
SW_ASSERT(sizeof(struct sw_prefix) == 36);
SW_ASSERT(sizeof(struct sw_cidr_key) == 24);
SW_ASSERT(sizeof(struct sw_secrets) == 40);
SW_ASSERT(sizeof(struct sw_levers) == 8);
SW_ASSERT(sizeof(struct sw_recent) == 8);
SW_ASSERT(sizeof(struct sw_flood) == 16);
SW_ASSERT(sizeof(struct sw_counts) == 8 * SW_R_COUNT);
SW_ASSERT(sizeof(struct sw_shed_counts) == 8 * SW_API_ENDPOINTS + 8);
SW_ASSERT(sizeof(struct sw_shed_event) == 32);

#endif
