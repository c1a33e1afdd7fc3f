// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// Every path of the default policy both ways, and which answer each gets: cause, body family,
// Retry-After variant, answer set.

#include "lib/paths.h"
#include "lib/talk.h"

#include <stdio.h>
#include <string.h>

static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"};

/* "/v2/models/{name}/infer" with a name in it. */
static void put_name(char *out, size_t size, const char *path, const char *name)
{
	const char *brace = strchr(path, '{');

	if (brace)
		snprintf(out, size, "%.*s%s%s", (int)(brace - path), path, name, brace + 6);
	else
		snprintf(out, size, "%s", path);
}

static bool ask(struct lane *l, const char *method, const char *target, enum sw_reason want,
		struct result *r)
{
	char text[300];
	struct talk t;
	struct frame f;

	lane_trying(l, "%s %s", method, target);
	snprintf(text, sizeof(text), "%s %s HTTP/1.1\r\nHost: llm\r\n\r\n", method, target);
	if (!talk_opened(&t, l))
		return false;
	f = talk_request(&t, text);
	return talk_expect(&t, &f, want, r);
}

static void shed_list(struct lane *l)
{
	for (const struct known_path *p = shed_paths; p->path; p++) {
		char path[100], target[140];
		struct result r;

		put_name(path, sizeof(path), p->path, "llama-3.1");
		if (ask(l, "POST", path, SW_R_shed_saturated, &r) &&
		    (r.family != p->family || r.set != SET_ANSWERS || r.variant))
			world_complain(l->w, "answer %u/%u/%u", r.set, r.family, r.variant);
		snprintf(target, sizeof(target), "%s?n=1", path);
		ask(l, "POST", target, SW_R_shed_saturated, NULL);
		for (unsigned i = 0; i < sizeof(methods) / sizeof(*methods); i++)
			if (strcmp(methods[i], "POST"))
				ask(l, methods[i], path, SW_R_handover_path, NULL);
	}
}

static void never_shed_list(struct lane *l)
{
	for (const char *const *p = never_shed_paths; *p; p++)
		for (unsigned i = 0; i < sizeof(methods) / sizeof(*methods); i++) {
			char path[100], target[140];

			put_name(path, sizeof(path), *p, "llama-3.1");
			ask(l, methods[i], path, SW_R_handover_path, NULL);
			snprintf(target, sizeof(target), "%s?n=1", path);
			ask(l, methods[i], target, SW_R_handover_path, NULL);
		}
}

/* A path is known whole or not at all: one byte more, less or other, and it passes. */
static void near_misses(struct lane *l)
{
	for (const struct known_path *p = shed_paths; p->path; p++) {
		char path[100], target[140];
		size_t len;

		put_name(path, sizeof(path), p->path, "m");
		len = strlen(path);
		snprintf(target, sizeof(target), "%s/x", path);
		ask(l, "POST", target, SW_R_handover_path, NULL);
		snprintf(target, sizeof(target), "%s.", path);
		ask(l, "POST", target, SW_R_handover_path, NULL);
		snprintf(target, sizeof(target), "/x%s", path);
		ask(l, "POST", target, SW_R_handover_path, NULL);
		for (size_t i = 0; i < len; i++) {
			if (strchr(p->path, '{') && i == strlen(MODEL_PREFIX))
				continue; /* the name itself */
			snprintf(target, sizeof(target), "%s", path);
			target[i] ^= 0x10;
			if (target[i] != ' ' && target[i] != '?')
				ask(l, "POST", target, SW_R_handover_path, NULL);
		}
	}
}

static void patterns(struct lane *l)
{
	static const struct {
		const char *target;
		enum sw_reason want;
	} rows[] = {
		{"/v2/models/m/infer", SW_R_shed_saturated},
		{"/v2/models/a.b-c_d%20/generate?x=/y", SW_R_shed_saturated},
		{"/v2/models/this-name-is-very-long-but-still-below-sixty-four-b/infer",
		 SW_R_shed_saturated},
		{"/v2/models//infer", SW_R_handover_path},
		{"/v2/models/infer", SW_R_handover_path},
		{"/v2/models/m", SW_R_handover_path},
		{"/v2/models/m/", SW_R_handover_path},
		{"/v2/models/m?/infer", SW_R_handover_path},
		{"/v2/models/a/b/infer", SW_R_handover_path},
		{"/v2/models/m/versions/1/infer", SW_R_handover_path},
		{"/v2/models/m/config", SW_R_handover_path},
		{"/v2/models/m/inferx", SW_R_handover_path},
		{"/v2/models/m/infer/", SW_R_handover_path},
		{"/v2/models", SW_R_handover_path},
		{"/v2/models/", SW_R_handover_path},
		{"/v1/models/m/infer", SW_R_handover_path},
		{"/infer", SW_R_handover_path},
		{"/generate_stream?model=/v2/models/m/ready", SW_R_shed_saturated},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		ask(l, "POST", rows[i].target, rows[i].want, NULL);
}

/* An operator's own words: another method, an exception to a pattern, a set of its own, TGI's "/".
 */
static void operators_paths(struct lane *l)
{
	struct sw_listener tgi = world_default_listener(ID_MAIN);
	struct sw_path slow = path_key(SET_PATHS, SW_METHOD_GET, 0, "/slow");
	struct sw_path mine = path_key(SET_PATHS, SW_METHOD_POST, 0, "/v2/models/mine/infer");
	struct result r;

	world_path(l->w, &slow, SW_PATH_SHED, SW_FAMILY_DEFAULT);
	world_path(l->w, &mine, SW_PATH_PASS, SW_FAMILY_DEFAULT);
	ask(l, "GET", "/slow", SW_R_shed_saturated, NULL);
	ask(l, "POST", "/slow", SW_R_handover_path, NULL);
	ask(l, "POST", "/v2/models/mine/infer", SW_R_handover_path, NULL);
	ask(l, "POST", "/v2/models/mine/generate", SW_R_shed_saturated, NULL);
	ask(l, "POST", "/", SW_R_handover_path, NULL);
	tgi.paths = SET_TGI;
	world_listener(l->w, ID_MAIN, &tgi);
	if (ask(l, "POST", "/", SW_R_shed_saturated, &r) && r.family != SW_FAMILY_TGI)
		world_complain(l->w, "family %u", r.family);
	ask(l, "GET", "/", SW_R_handover_path, NULL);
	ask(l, "POST", "/v1/completions", SW_R_handover_path, NULL);
}

/* ---- which answer ------------------------------------------------------------------------ */

static void causes(struct lane *l)
{
	for (unsigned cause = 0; cause < SW_CAUSES; cause++) {
		world_pool(l->w, SW_MODE_SHED, cause, 60000);
		ask(l, "POST", "/v1/messages", SW_R_shed_saturated + cause, NULL);
		ask(l, "POST", "/generate", SW_R_shed_saturated + cause, NULL);
		ask(l, "POST", "/v1/responses", SW_R_shed_saturated + cause, NULL);
	}
}

static void answer_sets(struct lane *l)
{
	struct sw_listener other = world_default_listener(ID_MAIN);
	struct result r;

	other.answers = 0;
	other.length = OTHER_LENGTH;
	world_listener(l->w, ID_MAIN, &other);
	if (ask(l, "POST", "/v1/messages", SW_R_shed_saturated, &r) &&
	    (r.set != 0 || r.family != SW_FAMILY_ANTHROPIC))
		world_complain(l->w, "answer of set %u, family %u", r.set, r.family);
	other.answers = ANSWER_SETS; /* not there: nothing can be said */
	world_listener(l->w, ID_MAIN, &other);
	ask(l, "POST", "/v1/messages", SW_R_drop_failed, NULL);
}

/* Retry-After differs between connections, never within one; all canned values come up. */
static void variants(struct lane *l)
{
	for (unsigned mask = 0; mask < SW_VARIANTS; mask = mask * 2 + 1) {
		struct sw_listener some = world_default_listener(ID_MAIN);
		unsigned seen = 0;

		some.variants_mask = mask;
		world_listener(l->w, ID_MAIN, &some);
		for (unsigned i = 0; i < 12 * (mask + 1); i++) {
			struct result first, again;
			struct talk t;
			struct frame f;

			lane_trying(l, "variant mask %u", mask);
			if (!talk_shed(&t, l, &first))
				return;
			if (i % 16 == 0)
				world_forget(l->w);
			f = talk_request(&t, REQUEST);
			if (talk_expect(&t, &f, i % 16 ? SW_R_shed_again : SW_R_shed_saturated,
					&again) &&
			    again.variant != first.variant)
				world_complain(l->w, "another variant for the same request");
			seen |= 1u << first.variant;
		}
		if (seen != (1u << (mask + 1)) - 1)
			world_complain(l->w, "variants seen: %x", seen);
	}
}

LANE_TEST(shed_list)
LANE_TEST(never_shed_list)
LANE_TEST(near_misses)
LANE_TEST(patterns)
LANE_TEST(operators_paths)
LANE_TEST(causes)
LANE_TEST(answer_sets)
CHANCE_TEST(variants)

int main(void)
{
	const struct CMUnitTest tests[] = {
		packet_test(test_shed_list),	   packet_test(test_never_shed_list),
		packet_test(test_near_misses),	   packet_test(test_patterns),
		packet_test(test_operators_paths), packet_test(test_causes),
		packet_test(test_answer_sets),	   packet_test(test_variants),
	};

	return world_run(tests);
}
