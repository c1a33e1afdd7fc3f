/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A small text file that outlives the daemon: read once at the start, then replaced as a whole by a
 * thread of its own, as a disk may take its time. What is in it is the caller's matter.
 */
#ifndef SPILLWAY_STATE_FILE_H
#define SPILLWAY_STATE_FILE_H

#include <stddef.h>

#include "common/error.h"

struct sw_state_file;

#define SW_STATE_MAX (1024 * 1024) /* bytes that are read */

/* What is in the file at `path`, to be freed, with a NUL after it. *text NULL: there is no file.
 * Never waits for whoever else has it open. A negative errno: it cannot be read. */
int sw_state_file_read(const char *path, char **text, size_t *length, struct sw_error *err);
/* Keeps a file whose content is not wanted as PATH.bad. */
int sw_state_file_set_aside(const char *path, struct sw_error *err);

/* Begins to write, at once. */
int sw_state_file_new(struct sw_state_file **out, const char *path, struct sw_error *err);
/* Replaces the file's content by `text`, which it frees, soon; what waits to be written already is
 * left out. A failure is logged. NULL is fine for both. */
void sw_state_file_write(struct sw_state_file *s, char *text);
/* After what waits is written. NULL is fine. */
void sw_state_file_free(struct sw_state_file *s);

#endif
