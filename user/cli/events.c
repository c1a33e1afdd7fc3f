// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* spillway events: follows what the daemon tells as it happens, a line for each event. Which events
 * there are is the daemon's matter; those that are not known here are shown as they are. */
#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/client.h"

#define LINE_LIMIT (1 << 20) /* bytes of a line, far over what the daemon sends */
#define SILENCE_S  60L	     /* the daemon says each 15 s that it is still there */

static const char *const types[] = {"shed", "pool", "worker", "dropped", "missed"};

struct follow {
	const struct cli_options *o;
	CURL *curl;
	char *line; /* the one that is coming in, and its bytes so far */
	size_t length, room;
	char type[32];
	uint64_t shown;
	bool done; /* as many as were asked for, or nobody reads them */
};

/* ---- lines for people --------------------------------------------------------------------- */

static void print_time(const json_t *event)
{
	json_int_t ms = cli_int(event, "time_ms");
	time_t s = ms ? (time_t)(ms / 1000) : time(NULL);
	char text[16] = "";
	struct tm tm;

	if (localtime_r(&s, &tm))
		strftime(text, sizeof(text), "%H:%M:%S", &tm);
	printf("%s.%03d", text, (int)(ms % 1000));
}

static void print_shed(const json_t *e)
{
	const char *method = cli_text(e, "method");

	printf("%" JSON_INTEGER_FORMAT " %s  %s%s%s  to %s  from %s%s", cli_int(e, "status"),
	       cli_text(e, "reason"), method, *method ? " " : "", cli_text(e, "endpoint"),
	       cli_text(e, "listener"), cli_text(e, "source"),
	       cli_true(e, "kept") ? ", connection kept" : "");
}

static void print_pool(const json_t *e)
{
	char lasted[32];

	printf("%s, was %s for %s: %s", cli_text(e, "to"), cli_text(e, "from"),
	       cli_time(json_object_get(e, "for_ms"), lasted), cli_text(e, "cause"));
}

static void print_worker(const json_t *e)
{
	const json_t *rank = json_object_get(e, "rank");
	char measured[32], limit[32];

	printf("%s  %s", cli_text(e, "worker"), cli_text(e, "change"));
	if (!*cli_text(e, "limit"))
		return;
	printf(": %s %s of %s", cli_text(e, "limit"),
	       cli_number(json_object_get(e, "measured"), measured),
	       cli_number(json_object_get(e, "threshold"), limit));
	if (json_is_integer(rank))
		printf(", rank %" JSON_INTEGER_FORMAT, json_integer_value(rank));
}

static void print_line(const char *type, const json_t *e)
{
	char *raw;

	print_time(e);
	printf("  %-7s  %s%s", type, cli_text(e, "pool"), *cli_text(e, "pool") ? "  " : "");
	if (!strcmp(type, "shed")) {
		print_shed(e);
	} else if (!strcmp(type, "pool")) {
		print_pool(e);
	} else if (!strcmp(type, "worker")) {
		print_worker(e);
	} else if (!strcmp(type, "dropped")) {
		printf("%" JSON_INTEGER_FORMAT " more shed, beyond the rate of events",
		       cli_int(e, "count"));
	} else if (!strcmp(type, "missed")) {
		printf("%" JSON_INTEGER_FORMAT " events that came faster than they were read",
		       cli_int(e, "count"));
	} else {
		raw = json_dumps(e, JSON_COMPACT);
		printf("%s", raw ? raw : "");
		free(raw);
	}
	printf("\n");
}

/* One object a line, with its type. */
static void print_object(const char *type, json_t *e)
{
	json_t *out = json_pack("{s:s}", "type", type);

	json_object_update_missing(out, e);
	json_dumpf(out, stdout, JSON_COMPACT);
	printf("\n");
	json_decref(out);
}

/* ---- the stream --------------------------------------------------------------------------- */

static bool is_listed(const char *list, const char *type)
{
	size_t n = strlen(type);

	for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (!strncmp(at, type, n) && (at[n] == ',' || !at[n]))
			return true;
	return false;
}

/* What was left out is told whichever pool is asked for. */
static bool is_wanted(const struct follow *f, const json_t *e)
{
	const char *pool = cli_text(e, "pool");

	if (f->o->types && !is_listed(f->o->types, f->type))
		return false;
	return !f->o->pool || !*pool || !strcmp(f->o->pool, pool);
}

static void show(struct follow *f, const char *data)
{
	json_t *e = json_loads(data, 0, NULL);

	if (json_is_object(e) && is_wanted(f, e)) {
		if (f->o->json)
			print_object(f->type, e);
		else
			print_line(f->type, e);
		f->shown++;
		f->done = fflush(stdout) || (f->o->count && f->shown >= f->o->count);
	}
	json_decref(e);
}

static void take_line(struct follow *f)
{
	if (!strncmp(f->line, "event: ", 7))
		snprintf(f->type, sizeof(f->type), "%s", f->line + 7);
	else if (!strncmp(f->line, "data: ", 6))
		show(f, f->line + 6);
}

static bool add(struct follow *f, const char *bytes, size_t n)
{
	size_t room = f->length + n + 1;

	if (room > LINE_LIMIT)
		return false;
	if (room > f->room) {
		char *line = realloc(f->line, room);

		if (!line)
			return false;
		f->line = line;
		f->room = room;
	}
	memcpy(f->line + f->length, bytes, n);
	f->length += n;
	f->line[f->length] = '\0';
	return true;
}

static bool is_refusal(const struct follow *f)
{
	long status = 0;

	curl_easy_getinfo(f->curl, CURLINFO_RESPONSE_CODE, &status);
	return status != 200;
}

/* A refusal is one line that is kept. */
static size_t take(char *data, size_t size, size_t n, void *arg)
{
	struct follow *f = arg;
	const char *at = data, *end = data + size * n, *feed;
	bool refusal = is_refusal(f);

	while (at < end && !f->done) {
		feed = refusal ? NULL : memchr(at, '\n', (size_t)(end - at));
		if (!add(f, at, (size_t)((feed ? feed : end) - at)))
			return 0;
		at = feed ? feed + 1 : end;
		if (!feed)
			break;
		take_line(f);
		f->length = 0;
	}
	return f->done ? 0 : size * n;
}

static int judge(const struct follow *f, CURLcode e)
{
	json_t *j = is_refusal(f) && f->length ? json_loads(f->line, 0, NULL) : NULL;
	const char *error = json_string_value(json_object_get(j, "error"));
	int code;

	if (f->done && !ferror(stdout))
		code = CLI_OK;
	else if (ferror(stdout))
		code = CLI_FAILED; /* whoever read this is gone */
	else if (e == CURLE_COULDNT_CONNECT)
		code = cli_fail(
			CLI_UNREACHABLE,
			"spillwayd is not reachable on %s; is it running? Another socket is "
			"named with --control",
			cli_where(f->o));
	else if (e == CURLE_OPERATION_TIMEDOUT)
		code = cli_fail(CLI_UNREACHABLE, "no word from spillwayd for %ld s", SILENCE_S);
	else if (e == CURLE_OK && is_refusal(f))
		code = cli_fail(CLI_FAILED, "%s", error ? error : "spillwayd tells no events");
	else
		code = cli_fail(CLI_UNREACHABLE, "spillwayd has ended the stream of events: it was "
						 "stopped or started again");
	json_decref(j);
	return code;
}

static int follow(const struct cli_options *o)
{
	struct follow f = {.o = o, .curl = curl_easy_init()};
	int code;

	if (!f.curl)
		return cli_fail(CLI_FAILED, "no memory");
	cli_target(f.curl, o, "/v1/events");
	curl_easy_setopt(f.curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(f.curl, CURLOPT_LOW_SPEED_TIME, SILENCE_S);
	curl_easy_setopt(f.curl, CURLOPT_WRITEFUNCTION, take);
	curl_easy_setopt(f.curl, CURLOPT_WRITEDATA, &f);
	code = judge(&f, curl_easy_perform(f.curl));
	curl_easy_cleanup(f.curl);
	free(f.line);
	return code;
}

/* ---- the command -------------------------------------------------------------------------- */

static int check_types(const char *list)
{
	const char *at = list;

	while (at) {
		size_t n = strcspn(at, ",");
		bool known = false;

		for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
			known |= strlen(types[i]) == n && !strncmp(types[i], at, n);
		if (!known)
			return cli_fail(CLI_USAGE,
					"--type %.*s: there are shed, pool, worker, dropped and "
					"missed",
					(int)n, at);
		at = at[n] ? at + n + 1 : NULL;
	}
	return CLI_OK;
}

/* Nobody would notice that a pool which does not exist never sheds. */
static int check_pool(const struct cli_options *o)
{
	char path[512], *escaped = curl_easy_escape(NULL, o->pool, 0);
	json_t *answer;
	int code;

	snprintf(path, sizeof(path), "/v1/explain?pool=%s", escaped ? escaped : "");
	curl_free(escaped);
	code = cli_ask(o, path, NULL, &answer);
	if (!code)
		json_decref(answer);
	return code;
}

int cli_events(const struct cli_options *o, int argc, char **argv)
{
	int code = o->types ? check_types(o->types) : CLI_OK;

	(void)argv;
	if (argc)
		return cli_fail(CLI_USAGE,
				"events takes no argument; see 'spillway events --help'");
	if (!code && o->pool)
		code = check_pool(o);
	return code ? code : follow(o);
}
