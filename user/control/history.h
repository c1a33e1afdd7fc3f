/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What pools did in each of the last 600 seconds, for GET /v1/history. Goes by their names, so that
 * a reload loses nothing; a pool takes some 12 KB. */
#ifndef SPILLWAY_HISTORY_H
#define SPILLWAY_HISTORY_H

#include <event2/buffer.h>

#include "control/live.h"

struct sw_history;

#define SW_HISTORY_SECONDS 600

/* NULL: no memory. */
struct sw_history *sw_history_new(void);
/* NULL is fine, here and below. */
void sw_history_free(struct sw_history *h);
/* To be called once a second: one more entry for each pool. */
void sw_history_second(struct sw_history *h, const struct sw_live *live);
/* All as JSON, oldest first; docs/control.md has the fields. */
void sw_history_write(const struct sw_history *h, struct evbuffer *out);

#endif
