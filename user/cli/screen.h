/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The terminal of `spillway top`, by ncurses: canvases out, keys in. */
#ifndef SPILLWAY_SCREEN_H
#define SPILLWAY_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/canvas.h"

/* Takes the terminal over. False: it is none that ncurses can use. */
bool screen_open(void);
/* Gives it back as it was. */
void screen_close(void);
void screen_size(int *w, int *h);
void screen_show(const struct canvas *c);
/* The next key that waits: a character, or an enum top_key; false: none. After a change of size
 * there is none, but screen_size() has changed. */
bool screen_key(uint32_t *key);

#endif
