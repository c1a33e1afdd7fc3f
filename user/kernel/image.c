// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Moves the kernel's tables from one image to another; see image.h. */
#include <errno.h>
#include <string.h>

#include "kernel/image.h"

static const char *const names[] = {
	[SW_T_ANSWERS] = "answers", [SW_T_PREFIXES] = "prefixes",   [SW_T_PATHS] = "paths",
	[SW_T_EXEMPT] = "exempt",   [SW_T_LISTENERS] = "listeners", [SW_T_ADDRESSES] = "addresses",
	[SW_T_PORTS] = "ports",
};

static int map_of(const struct sw_maps *maps, enum sw_table t)
{
	const int fds[] = {
		[SW_T_ANSWERS] = maps->answers,	    [SW_T_PREFIXES] = maps->prefixes,
		[SW_T_PATHS] = maps->paths,	    [SW_T_EXEMPT] = maps->exempt,
		[SW_T_LISTENERS] = maps->listeners, [SW_T_ADDRESSES] = maps->addresses,
		[SW_T_PORTS] = maps->ports,
	};

	return fds[t];
}

int sw_image_read(struct sw_image *image, const struct sw_maps *maps, struct sw_error *err)
{
	for (int t = 0; t < SW_TABLES; t++) {
		int ret = sw_rows_read(&image->map[t], map_of(maps, t));

		if (ret)
			return sw_fail(err, ret, "reading the map %s: %s", names[t],
				       strerror(-ret));
	}
	return 0;
}

int sw_image_successor(struct sw_image *image, const struct sw_image *old, bool alone)
{
	int err = 0;

	for (int t = 0; !err && t < SW_TABLES; t++) {
		bool keep = t == SW_T_ANSWERS || (t == SW_T_PREFIXES && !alone);

		err = keep ? sw_rows_copy(&image->map[t], &old->map[t])
			   : sw_rows_blank(&image->map[t], &old->map[t]);
	}
	return err;
}

void sw_image_free(struct sw_image *image)
{
	for (int t = 0; t < SW_TABLES; t++)
		sw_rows_free(&image->map[t]);
}

int sw_image_fits(const struct sw_image *old, const struct sw_image *new, struct sw_error *err)
{
	static const size_t room[SW_TABLES] = {
		[SW_T_PATHS] = SW_MAX_PATHS,
		[SW_T_EXEMPT] = SW_MAX_EXEMPT,
		[SW_T_ADDRESSES] = SW_MAX_LISTENERS,
	};

	for (int t = 0; t < SW_TABLES; t++) {
		size_t n = new->map[t].n;

		for (size_t i = 0; room[t] && i < old->map[t].n; i++)
			n += !sw_rows_find(&new->map[t], sw_row(&old->map[t], i));
		if (room[t] && n > room[t])
			return sw_fail(err, -E2BIG, "%zu entries for the map %s, which holds %zu",
				       n, names[t], room[t]);
	}
	return 0;
}

/* Listeners as they have to be while some packets still come by the old ports: those that go
 * away are still there. */
static int transition(struct sw_rows *out, const struct sw_rows *old, const struct sw_rows *new)
{
	int err = sw_rows_copy(out, new);

	for (size_t i = 0; !err && i < new->n; i++) {
		struct sw_listener *l = sw_row(out, i);

		if (!l->port)
			memcpy(l, sw_row(old, i), sizeof(*l));
	}
	return err;
}

static int failed(int err, enum sw_table t, struct sw_error *e)
{
	return sw_fail(e, err, "writing the map %s: %s", names[t], strerror(-err));
}

int sw_image_apply(const struct sw_maps *maps, const struct sw_image *old,
		   const struct sw_image *new, struct sw_error *err)
{
	const struct sw_rows *was = &old->map[SW_T_LISTENERS], *is = &new->map[SW_T_LISTENERS];
	struct sw_rows both;
	int ret = transition(&both, was, is), t;

	for (t = 0; !ret && t < SW_TABLES; t++) {
		ret = sw_rows_put(map_of(maps, t), &old->map[t],
				  t == SW_T_LISTENERS ? &both : &new->map[t]);
		if (ret)
			failed(ret, t, err);
	}
	for (t = SW_TABLES - 1; !ret && t >= 0; t--) {
		ret = sw_rows_drop(map_of(maps, t), &old->map[t], &new->map[t]);
		if (ret)
			failed(ret, t, err);
	}
	if (!ret) {
		ret = sw_rows_put(maps->listeners, &both, is);
		if (ret)
			failed(ret, SW_T_LISTENERS, err);
	}
	sw_rows_free(&both);
	return ret;
}

void sw_image_restore(const struct sw_maps *maps, const struct sw_image *image)
{
	struct sw_image now = {0};
	struct sw_error err;

	if (sw_image_read(&now, maps, &err) || sw_image_apply(maps, &now, image, &err))
		sw_log(SW_ERROR, "the former tables could not be put back: %s", err.text);
	sw_image_free(&now);
}
