/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* BPF links with a pin: taken over in place when there is one, made and pinned when there is not.
 */
#ifndef SPILLWAY_LINK_H
#define SPILLWAY_LINK_H

#include <stdbool.h>
#include <stdint.h>

#define SW_LINK_XDP	   BPF_XDP
#define SW_LINK_TCX	   46
#define SW_LINK_TCX_EGRESS 47

struct sw_link_at {
	const char *pin;
	int target;	/* index of an interface; descriptor of a cgroup or a network namespace */
	uint64_t id;	/* how sw_link_target() names it */
	int type;	/* SW_LINK_*, or enum bpf_attach_type */
	uint32_t flags; /* XDP_FLAGS_* */
	int before;	/* TCX: a link there that this one has to come before; 0: last of all */
};

/* Puts `prog` where the pinned link is. Returns the link's descriptor, or -ENOENT when there is no
 * pinned link that is still attached to this target (a dead pin is removed). */
int sw_link_take_over(const struct sw_link_at *at, int prog);
/* Attaches and pins. Returns the link's descriptor or a negative errno. */
int sw_link_make(const struct sw_link_at *at, int prog);

/* Takes the link off, and its pin; closes it. At once: a link without pin and descriptor would stay
 * for a moment more, and be in the way of the next one. */
void sw_link_remove(const char *pin, int link);
void sw_link_remove_pinned(const char *pin);
/* All that are pinned in a directory. */
void sw_link_remove_all(const char *dir);

/* A descriptor of what is pinned, if it is attached to this target; 0: it is not. */
int sw_link_open(const char *pin, uint64_t target);

/* The id of the program behind a pin, 0: none. */
uint32_t sw_link_program(const char *pin);

/* What a link is attached to: an interface's index, a cgroup's id, the inode of a network
 * namespace; 0: nothing any more. */
uint64_t sw_link_target(int link);

#endif
