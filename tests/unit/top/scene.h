/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A scene for the tests of `spillway top`: four pools in four states, told by the files beside this
 * one, and what of it is on the screen. */
#ifndef TEST_TOP_SCENE_H
#define TEST_TOP_SCENE_H

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/top.h"

#define SCENE "tests/unit/top/"

static struct top_model model;
static struct top_view view;
static struct canvas canvas;
static char *text; /* the last frame */

static void show(const char *status, const char *history)
{
	assert_int_equal(top_model_read(&model, json_loads(status, 0, NULL),
					history ? json_loads(history, 0, NULL) : NULL),
			 0);
	assert_int_equal(top_view_update(&view, &model), 0);
}

static int scene_start(void **state)
{
	json_t *status = json_load_file(SCENE "status.json", 0, NULL);
	json_t *history = json_load_file(SCENE "history.json", 0, NULL);

	(void)state;
	assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
	assert_true(status && history); /* tests are run in the top folder */
	model = (struct top_model){.host = "gpu-07", .clock = "2026-11-30 03:12:44 UTC"};
	view = (struct top_view){0};
	assert_int_equal(top_model_read(&model, status, history), 0);
	return top_view_update(&view, &model);
}

static int scene_end(void **state)
{
	(void)state;
	top_view_free(&view);
	top_model_free(&model);
	cv_free(&canvas);
	free(text);
	text = NULL;
	return 0;
}

/* The frame of this size, as text. */
static const char *frame(int w, int h, bool ascii)
{
	size_t size;
	FILE *f;

	free(text);
	text = NULL;
	f = open_memstream(&text, &size);
	assert_true(cv_start(&canvas, w, h, ascii));
	top_draw(&canvas, &model, &view);
	cv_print(&canvas, f);
	fclose(f);
	return text;
}

static void shows(const char *what)
{
	const char *all = frame(80, 24, false);

	if (!strstr(all, what))
		fail_msg("no \"%s\" in\n%s", what, all);
}

static void hides(const char *what)
{
	const char *all = frame(80, 24, false);

	if (strstr(all, what))
		fail_msg("\"%s\" in\n%s", what, all);
}

/* Presses keys one after the other; the last one's result. */
static enum top_do press(const char *keys)
{
	enum top_do todo = TOP_GO_ON;

	for (; *keys; keys++)
		todo = top_press(&view, &model,
				 *keys == '\n'	 ? TOP_KEY_ENTER
				 : *keys == '\b' ? TOP_KEY_ERASE
				 : *keys == 27	 ? TOP_KEY_ESCAPE
						 : (unsigned char)*keys);
	return todo;
}

#endif
