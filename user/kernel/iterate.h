/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Runs BPF iterators that are read for what they do, and print nothing. */
#ifndef SPILLWAY_ITERATE_H
#define SPILLWAY_ITERATE_H

union bpf_iter_link_info;

/* Runs the program once over all there is, in the caller's network namespace where that matters.
 * `info` says over what, NULL: nothing to say. 0 or a negative errno. */
int sw_iterate(int program, union bpf_iter_link_info *info);

#endif
