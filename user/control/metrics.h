/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the daemon knows, as the Prometheus text of GET /metrics. */
#ifndef SPILLWAY_METRICS_H
#define SPILLWAY_METRICS_H

#include <event2/buffer.h>

#include "control/live.h"

/* Appends the whole page, exposition format 0.0.4. */
void sw_metrics_write(const struct sw_live *live, uint64_t now_ms, struct evbuffer *out);

#endif
