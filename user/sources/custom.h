/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An engine as an operator describes it: which series of its page tells what. */
#ifndef SPILLWAY_CUSTOM_H
#define SPILLWAY_CUSTOM_H

#include "sources/engines.h"

/* The key of a field in the configuration, "kv_ratio"; NULL: it has none. */
const char *sw_custom_key(enum sw_field field);

/* `rank_label` holds the data-parallel rank; NULL: there is none. -ENOMEM. The maker is a user. */
int sw_custom_new(struct sw_custom **out, const char *rank_label);
/* One more series, `text` selects it. While it has one user. As sw_selector_parse(). */
int sw_custom_add(struct sw_custom *c, enum sw_field field, const char *text, struct sw_error *err);
/* Is there anything in it that is load, and not only a size? */
bool sw_custom_tells_load(const struct sw_custom *c);

/* One more user, one less: the last one frees it. NULL is fine. */
struct sw_custom *sw_custom_hold(struct sw_custom *c);
void sw_custom_drop(struct sw_custom *c);

bool sw_custom_same(const struct sw_custom *a, const struct sw_custom *b);
const struct sw_engine_kind *sw_custom_kind(const struct sw_custom *c);

#endif
