/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Keeps a table of members as Dynamo's file store has it: a directory for each kind of key, a file
 * for each key, which its owner touches to say that it is alive. What the members mean is left to
 * the caller. */
#ifndef SPILLWAY_FILESTORE_H
#define SPILLWAY_FILESTORE_H

#include "sources/members.h"
#include "sources/store.h"

#define SW_FILE_LIFE_MS 10000 /* a file that was not touched for so long is none */

struct sw_filestore;

/* Looks at once, when something changes, and each second. A directory that is not there yet is
 * waited for. */
int sw_filestore_new(struct sw_filestore **out, struct event_base *base, const char *path,
		     struct sw_members *members, struct sw_error *err);
/* NULL is fine. */
void sw_filestore_free(struct sw_filestore *s);

const struct sw_store_status *sw_filestore_status(const struct sw_filestore *s);

#endif
