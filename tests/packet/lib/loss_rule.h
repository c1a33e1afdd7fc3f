/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What loss.bpf.c is to lose. */
#ifndef SPILLWAY_TEST_LOSS_RULE_H
#define SPILLWAY_TEST_LOSS_RULE_H

#include <linux/types.h>

enum loss_way { LOSS_OUT, LOSS_IN, LOSS_WAYS }; /* of what the client sends, or gets */

struct loss_rule {
	__u32 payload;	/* segments with so many bytes of it at least */
	__u32 skip;	/* so many of those go by */
	__u32 count;	/* then so many are lost */
	__u32 permille; /* and of all segments so many, by chance */
	__u32 lost;
};

#endif
