/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What slots.bpf.c is asked for, and what it counts: for it and for those who ask. */
#ifndef SPILLWAY_TEST_SLOTS_ASK_H
#define SPILLWAY_TEST_SLOTS_ASK_H

#include <linux/types.h>

#define ASK_CPUS 256
#define ASK_HELD 1024 /* slots that a CPU can hold, a power of two */

enum ask_function { ASK_PICK, ASK_ROOM, ASK_ANY, ASK_TAKE, ASK_GIVE, ASK_UNTAKE };

struct ask {
	__u32 function, pool, how, id;
	__u32 keep; /* pick_and_count */
	__u32 hold; /* hammer */
	__u32 cap;  /* of every worker, hammer */
};

struct hammering { /* of one CPU */
	__u64 takes, refused, too_many;
	__u32 held, pad;
	__u32 id[ASK_HELD];
};

#endif
