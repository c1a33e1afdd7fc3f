/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* libbpf talks through one callback without a context. It is silent here except at debug level, but
 * the one line with which the kernel says why it refused something is kept. */
#ifndef SPILLWAY_BPFLOG_H
#define SPILLWAY_BPFLOG_H

/* Takes over libbpf's messages and forgets the last reason. */
void sw_bpflog_start(void);

/* Why the verifier or a driver refused something since the start; empty: nothing was said. */
const char *sw_bpflog_reason(void);

#endif
