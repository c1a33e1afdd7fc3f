/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* All tables that come from the configuration, in memory, and the safe way from one to another. */
#ifndef SPILLWAY_IMAGE_H
#define SPILLWAY_IMAGE_H

#include "kernel/rows.h"
#include "kernel/tables.h"

enum sw_table { /* in the order in which they are written: what is referred to comes first */
		SW_T_ANSWERS,
		SW_T_PREFIXES,
		SW_T_PATHS,
		SW_T_EXEMPT,
		SW_T_LISTENERS,
		SW_T_ADDRESSES,
		SW_T_PORTS,
		SW_TABLES
};

struct sw_image {
	struct sw_rows map[SW_TABLES];
};

int sw_image_read(struct sw_image *image, const struct sw_maps *maps, struct sw_error *err);
/* An image without listeners. Answers are kept as they are, and prefixes unless `alone`: what `old`
 * refers to must not change under it. */
int sw_image_successor(struct sw_image *image, const struct sw_image *old, bool alone);
void sw_image_free(struct sw_image *image);

/* -E2BIG: the maps do not hold the rows of both at once. */
int sw_image_fits(const struct sw_image *old, const struct sw_image *new, struct sw_error *err);
/* Writes the differences. Until the end, every packet finds all that its listener refers to. */
int sw_image_apply(const struct sw_maps *maps, const struct sw_image *old,
		   const struct sw_image *new, struct sw_error *err);
/* Brings `image` back after a failure, as far as the kernel lets it. */
void sw_image_restore(const struct sw_maps *maps, const struct sw_image *image);

#endif
