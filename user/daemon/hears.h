/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Load that workers publish on Dynamo's event plane, handed to those workers by their ids. */
#ifndef SPILLWAY_HEARS_H
#define SPILLWAY_HEARS_H

#include <event2/event.h>

#include "control/live.h"
#include "sources/members.h"

struct sw_hears;

/* Listens where live->conf->dynamo says. */
int sw_hears_new(struct sw_hears **out, struct sw_live *live, struct event_base *base,
		 struct sw_error *err);
/* NULL is fine. */
void sw_hears_free(struct sw_hears *h);

/* Listens to the publishers that membership tells, besides those that are configured. */
void sw_hears_members(struct sw_hears *h, const struct sw_members *m,
		      const struct sw_dynamo_conf *conf);

/* As struct sw_live's `source`. */
bool sw_hears_show(const struct sw_hears *h, size_t index, struct sw_live_source *out);

#endif
