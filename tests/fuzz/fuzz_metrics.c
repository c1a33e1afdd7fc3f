// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A metrics page of any engine, and a selector that an operator may have written for one: whatever
 * they are, reading gives reports within bounds or an error with a reason. */
#include <stdlib.h>
#include <string.h>

#include "sources/custom.h"
#include "sources/engine.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct sw_engine_hints hints = {
	.kv_total = 1000, .has_worker_id = true, .worker_id = 758788, .model = "m"};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return sw_custom_new(&hints.custom, "engine") ||
	       sw_custom_add(hints.custom, SW_FIELD_RUNNING, "vllm:num_requests_running", NULL) ||
	       sw_custom_add(hints.custom, SW_FIELD_RATIO, "r{a=\"b\",c=\"\"}", NULL);
}

/* The page's first line. */
static void select_series(const uint8_t *data, size_t size)
{
	const uint8_t *end = memchr(data, '\n', size);
	char *text = strndup((const char *)data, end ? (size_t)(end - data) : size);
	struct sw_selector selector;
	struct sw_error err = {""};

	if (!sw_selector_parse(&selector, text, &err))
		sw_selector_free(&selector);
	else if (!err.text[0])
		abort();
	free(text);
}

/* Taken apart for many workers, the page must say the same. */
static void read_apart(const char *text, size_t length, int n, const struct sw_report *want)
{
	static struct sw_report reports[SW_MAX_RANKS];
	struct sw_front *f = sw_front_new(text, length);
	struct sw_error err = {""};

	if (!f || sw_front_read(f, &hints, reports, SW_MAX_RANKS, &err) != n ||
	    (n < 0 && !err.text[0]) || (n > 0 && memcmp(reports, want, n * sizeof(*want))))
		abort();
	sw_front_free(f);
}

static void read_page(enum sw_engine e, const char *text, size_t length)
{
	static struct sw_report reports[SW_MAX_RANKS];
	struct sw_error err = {""};
	int n = sw_engine_read(e, &hints, text, length, reports, SW_MAX_RANKS, &err);

	if (n > SW_MAX_RANKS || (n < 0 && !err.text[0]) || !n)
		abort();
	for (int i = 0; i < n; i++)
		if (reports[i].have >= 1U << SW_SIGNALS)
			abort();
	if (e == SW_ENGINE_DYNAMO)
		read_apart(text, length, n, reports);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* exactly as long as it is, so that reading behind it is seen */
	char *text = malloc(size ? size : 1);

	memcpy(text, data, size);
	select_series(data, size);
	for (int e = 0; e < SW_ENGINE_AUTO; e++)
		read_page((enum sw_engine)e, text, size);
	if (sw_engine_recognise(text, size) > SW_ENGINES)
		abort();
	free(text);
	return 0;
}
