/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The control interface: HTTP with JSON on a unix socket, mode 0660, and on TCP for whoever has a
 * token. It shows what the daemon knows and takes an operator's force, drain and thresholds, and
 * loads; what these change is the daemon's work.
 */
#ifndef SPILLWAY_CONTROL_H
#define SPILLWAY_CONTROL_H

#include <event2/event.h>

#include "control/live.h"

struct sw_control;

/* Called after an operator changed `pool`'s force, drain or limits, or the drain of one of its
 * workers. */
typedef void (*sw_control_cb)(struct sw_live_pool *pool);
/* Called for each worker whose load somebody told. */
typedef void (*sw_control_told_cb)(struct sw_live_worker *w, int n,
				   const struct sw_report *reports);

/* Listens on `path`; its directory is made when missing. -EADDRINUSE: another daemon listens
 * there. */
int sw_control_open(struct sw_control **out, struct event_base *base, const char *path,
		    struct sw_live *live, sw_control_cb changed, struct sw_error *err);
/* POST /v1/load is taken from then on. */
void sw_control_take_loads(struct sw_control *c, sw_control_told_cb told);
/* Listens on TCP too, for whoever has the token in `token_file`. */
int sw_control_listen(struct sw_control *c, const struct sw_endpoint *at, const char *token_file,
		      struct sw_error *err);
/* Stops listening and removes the socket. NULL is fine. */
void sw_control_close(struct sw_control *c);

#endif
