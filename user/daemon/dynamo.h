/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the daemon follows of NVIDIA Dynamo: its membership, from which pools get workers, and its
 * event plane, from which workers get their load. */
#ifndef SPILLWAY_DYNAMO_H
#define SPILLWAY_DYNAMO_H

#include <event2/event.h>

#include "control/live.h"

/* Begins to follow what live->conf->dynamo says, if it says anything. */
int sw_dynamo_open(struct sw_live *live, struct event_base *base, struct sw_error *err);
void sw_dynamo_close(struct sw_live *live);

/* Once a second: what has been read for the first time, and what is to be tried again. */
void sw_dynamo_second(struct sw_live *live);

/* Puts a configuration that was read from the file into the form in which it is to run: with the
 * workers that are discovered now. */
int sw_dynamo_extend(const struct sw_live *live, struct sw_config **conf, struct sw_error *err);
/* Do both say the same about Dynamo? Otherwise it is to be followed anew after a reload. */
bool sw_dynamo_same(const struct sw_dynamo_conf *a, const struct sw_dynamo_conf *b);
/* Follows what the configuration says now; what was discovered stays until it is read anew. */
int sw_dynamo_reopen(struct sw_live *live, struct event_base *base, struct sw_error *err);

#endif
