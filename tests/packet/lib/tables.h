/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fills the maps of a test's world: once what never changes, before each test what may have. */
#ifndef SPILLWAY_TEST_TABLES_H
#define SPILLWAY_TEST_TABLES_H

struct world;

void tables_fill(struct world *w);
void tables_reset(struct world *w);

#endif
