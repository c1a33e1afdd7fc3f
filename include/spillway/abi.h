/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What both sides of the kernel boundary share: keys and values of the maps, and their limits.
 * Integers are in host order unless a comment says otherwise; IPv4 addresses are IPv4-mapped IPv6.
 * Any change of a layout here raises SW_LAYOUT, which is part of the pin path.
 */
#ifndef SPILLWAY_ABI_H
#define SPILLWAY_ABI_H

#include <linux/types.h>
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

/* ---- slots: one for the whole host, shared by all planes ---------------------------------- */

/* A slot is a connection that a worker holds. Worker ids are 0..1023, given by the daemon and not
 * given anew while connections are counted under them. A guarded pool whose server is not steered
 * has one row for all of it, under an id of the same kind.
 *
 * True of every SW_LAYOUT, so that the next one can tell whether a former one still holds
 * connections: the maps `slots` and `workers` are arrays by worker id, `slots` begins with `inuse`,
 * and `workers` with what stands before `tag` here. */
#define SW_MAX_WORKERS	    1024
#define SW_WORDS	    (SW_MAX_WORKERS / 64)
#define SW_NO_CAP	    0x7fffffffU
#define SW_MAX_VIRTUALS	    1024
#define SW_MAX_RESERVATIONS 16384

struct sw_bits { /* a set of worker ids: bit id % 64 of word id / 64 */
	__u64 word[SW_WORDS];
};

#define SW_WF_ROW (1U << 0) /* not a worker: the row of a guarded pool */
#define SW_WF_CREDIT                                                                               \
	(1U << 1) /* what is taken is not given back at the end of a connection; `cap`             \
		   * moves instead, and is compared as a sequence number is */

/* workers[id]: written by the daemon only. */
struct sw_worker_row {
	__u8 addr[16]; /* where the worker listens; all zero for a row */
	__u16 port;
	__u16 pool;   /* for the reader of a dump */
	__u32 cap;    /* N + Q, or SW_NO_CAP; a slot is free while (__s32)(cap - inuse) > 0 */
	__u32 engine; /* N, 0: no limit; the first N in flight count as the engine's */
	__u32 flags;  /* SW_WF_* */
	__u64 tag;    /* of a row: hash of the pool's name, by which the next daemon knows it; of a
		       * worker of this host: cookie of the namespace it listens in, 0: any */
};

/* listens[{addr, port}]: value __u32 worker id, for workers of this host whose listening sockets go
 * to `listening`. Written by the daemon, two keys a worker: its own address, and the any-address of
 * its family (::ffff:0.0.0.0 or ::), as a server may listen on either. Key: struct sw_address. */

/* slots[id]: written by the kernel only. */
struct sw_slot {
	__u32 inuse;
	__u32 most;	 /* the highest `inuse` there was */
	__u64 takes;	 /* slots taken */
	__u64 gives;	 /* slots given back */
	__u64 moves;	 /* reservations that became connections */
	__u64 refusals;	 /* times it was full, or gone, when it was to be taken */
	__u64 failures;	 /* connections to it that could not be made: it became suspect */
	__u64 corrected; /* added up, what recounts have put right */
	__u64 pad;
};

/* members[pool]: workers that may be given new connections: neither draining nor removed.
 * nonbusy[0], reach4[0]: not busy; with an IPv4 address. Written by the daemon.
 * notfull[0]: a hint, written by the kernel. suspect[0]: set by the kernel when a connection could
 * not be made, cleared by the daemon when the worker answers again. All four can be mapped. */

#define SW_SF_COUNT  (1U << 0) /* new connections to its listeners take a slot */
#define SW_SF_ASSIGN (1U << 1) /* and go to the listening socket of the worker that was picked */
#define SW_SF_REFUSE (1U << 2) /* connect: nothing free makes connect() fail with `error` */
#define SW_SF_CLOSED (1U << 3) /* drained, or saturated by force: nothing is free */
#define SW_SF_CREDIT                                                                               \
	(1U << 4) /* its rows are credits: each request takes one, not only the first              \
		   * of a connection */

/* steers[pool]: written by the daemon. */
struct sw_steer_pool {
	__u64 deadline_ns;  /* CLOCK_MONOTONIC; past it busy workers count as not busy, and nobody
			     * answers at `responder` */
	__u32 flags;	    /* SW_SF_* */
	__u32 error;	    /* a positive errno, below 4096 */
	__u32 half_open;    /* most reservations of connections not established yet */
	__u16 responder;    /* port on 127.0.0.1 and ::1 that gives the answers; 0: none */
	__u16 first, words; /* words of members[pool] in use: `first` and as many as `words` */
	__u16 pad[3];
};

/* pool_use[pool]: written by the kernel. pool_use[SW_MAX_POOLS]: all pools together. */
struct sw_pool_use {
	__u64 refused_ns; /* CLOCK_MONOTONIC of the last SYN that we answered for want of a slot */
	__u32 half_open;  /* slots pending and reserved */
	__u32 reread;	  /* the tick in which full rows were last looked at again */
};

/* virtuals[{addr, port}]: value __u32 pool. Key: struct sw_address. */

struct sw_tuple {    /* a connection, seen from this host */
	__u64 netns; /* the namespace's cookie */
	__u8 peer[16], local[16];
	__u16 peer_port, local_port; /* host order */
	__u32 pad;
};

/* reservations[tuple]: a slot taken for a connection that is not established yet. */
struct sw_reservation {
	__u64 since_ns; /* 0: gone; who moves it there has what was reserved */
	__u32 slot;	/* worker id + 1; 0: let in without a slot */
	__u32 pool;
	__u32 missing; /* sweeps in a row that found no socket for it */
	__u32 pad;
};

/* pending[0], per CPU: what a lookup has just taken, until the stack says what becomes of it. */
struct sw_pending {
	struct sw_tuple tuple;
	__u64 since_ns; /* 0: nothing; who moves it there has what was taken */
	__u32 slot;	/* worker id + 1 */
	__u32 pool;
	__u32 asking; /* enum sw_asking: why this CPU looks a socket up right now */
	__u32 place;  /* in `picks` */
};

enum sw_asking {
	SW_ASKING_STACK = 0, /* the stack's own lookup of a new connection: take */
	SW_ASKING_ANY,	     /* is there a listener? any will do, take nothing */
	SW_ASKING_HAND_OVER, /* take, or give nothing */
	SW_ASKING_PASS,	     /* for a request that must pass: a worker's listener, take nothing */
	SW_ASKING_NOTHING,   /* a sweep: leave the lookup alone */
};

/* picks[hash]: which worker a connection was given for which there is no reservation: the stack has
 * answered with a SYN cookie, and only the same listening socket takes the ACK of that. Read and
 * written as one 64-bit word. */
#define SW_PICKS 4096 /* places, a power of two */
struct sw_pick {
	__u32 mark; /* of the connection */
	__u16 slot; /* worker id + 1; 0: nothing */
	__u16 when; /* in periods of 2^30 ns */
};

/* Bound to a socket by sk_storage (map `sockets`). */
struct sw_socket {
	__u32 slot; /* worker id + 1; 0: none (any more); goes to 0 by an atomic exchange */
	__u32 pool;
	__u8 addr[16]; /* connect: the virtual address that was asked for */
	__u16 port;    /* and its port, 0: not steered */
	__u8 moving;   /* 1: a slot is being taken or given back, a recount must wait */
	__u8 followed; /* 1: the end of the connection will be heard of */
	__u32 pad;
};

/* seen[id]: __u64, written by a recount: how many hold a slot of this worker. The last element:
 * sockets that were `moving`. */
#define SW_SEEN_MOVING SW_MAX_WORKERS

/* Argument of the program spillway_correct. */
struct sw_correction {
	__u32 slot; /* worker id */
	__s32 delta;
};

/* What became of a new connection that was to be steered or counted. Numbers are never reused.
 * counts_steer[pool], per CPU. */
#define SW_STEERS(X)                                                                               \
	X(0, steered, "given to a worker, or counted")                                             \
	X(1, answered, "nothing free: sent to the responder")                                      \
	X(2, refused, "nothing free: connect() failed, or the SYN was dropped")                    \
	X(3, no_slot, "no worker had a free slot")                                                 \
	X(4, all_busy, "every worker was busy")                                                    \
	X(5, unavailable, "the pool had no worker")                                                \
	X(6, closed, "the pool was drained, or saturated by force")                                \
	X(7, half_open_limit, "too many connections were not established yet")                     \
	X(8, no_storage, "the kernel had no memory to bind a slot to the socket")                  \
	X(9, no_listener, "the worker that was picked does not listen")                            \
	X(10, suspected, "a connection to a worker could not be made")                             \
	X(11, passed, "let in without a slot: a path that must pass")                              \
	X(12, overdue, "the daemon's heartbeat was overdue: busy workers counted as not busy")     \
	X(13, swept, "a reservation whose connection never came to be was given back")

struct sw_steer_counts {
#define X(n, name, text) __u64 name;
	SW_STEERS(X)
#undef X
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

#define SW_ASSERT(x) _Static_assert(x, #x)
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
SW_ASSERT(sizeof(struct sw_bits) == 128);
SW_ASSERT(sizeof(struct sw_worker_row) == 40);
SW_ASSERT(sizeof(struct sw_slot) == 64);
SW_ASSERT(sizeof(struct sw_steer_pool) == 32);
SW_ASSERT(sizeof(struct sw_pool_use) == 16);
SW_ASSERT(sizeof(struct sw_tuple) == 48);
SW_ASSERT(sizeof(struct sw_reservation) == 24);
SW_ASSERT(sizeof(struct sw_pending) == 72);
SW_ASSERT(sizeof(struct sw_pick) == 8);
SW_ASSERT(sizeof(struct sw_socket) == 32);
SW_ASSERT(sizeof(struct sw_correction) == 8);

#endif
