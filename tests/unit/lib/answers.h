/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A set of canned responses, rendered, and what holds for each of them. */
#ifndef SPILLWAY_TEST_ANSWERS_H
#define SPILLWAY_TEST_ANSWERS_H

#include "policy/answer.h"

extern struct sw_answer answers_set[SW_ANSWERS_PER_SET];

/* Dynamo's, with nothing said besides. */
struct sw_answer_spec answers_spec(void);
/* Renders into answers_set, or the test fails; the mask of variants. */
uint8_t answers_render(const struct sw_answer_spec *spec);
const struct sw_answer *answers_get(enum sw_cause cause, enum sw_family family, unsigned variant);

/* What holds for every response of every set. Returns where the body begins. */
const char *answers_check_one(const struct sw_answer *a);
void answers_check(void); /* the whole set */
/* A whole response as it must be, for a body that is not empty. */
void answers_assert(const struct sw_answer *a, const char *status_line, const char *retry,
		    const char *reason, const char *body);

#endif
