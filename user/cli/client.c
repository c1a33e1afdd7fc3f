// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Questions to the daemon over its unix socket. */
#include <curl/curl.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

#define TIMEOUT_S 10L

struct reply {
	char *text;
	size_t length;
};

int cli_fail(int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "spillway: ");
	vfprintf(stderr, fmt, ap);
	fprintf(stderr, "\n");
	va_end(ap);
	return code;
}

void cli_print_json(const json_t *j)
{
	json_dumpf(j, stdout, JSON_INDENT(2));
	printf("\n");
}

static size_t take(char *data, size_t size, size_t n, void *arg)
{
	struct reply *r = arg;
	char *text = realloc(r->text, r->length + size * n + 1);

	if (!text)
		return 0;
	memcpy(text + r->length, data, size * n);
	r->text = text;
	r->length += size * n;
	r->text[r->length] = '\0';
	return size * n;
}

static CURLcode transfer(CURL *curl, const struct cli_options *o, const char *path,
			 const char *body, struct reply *r)
{
	struct curl_slist *type = NULL;
	char url[1024];
	CURLcode e;

	snprintf(url, sizeof(url), "http://spillwayd%s", path);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, o->control);
	curl_easy_setopt(curl, CURLOPT_PROXY, "");
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, TIMEOUT_S);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, r);
	if (body) {
		type = curl_slist_append(NULL, "Content-Type: application/json");
		curl_easy_setopt(curl, CURLOPT_HTTPHEADER, type);
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
	}
	e = curl_easy_perform(curl);
	curl_slist_free_all(type);
	return e;
}

static int unreachable(CURL *curl, const struct cli_options *o, CURLcode e)
{
	long os = 0;

	curl_easy_getinfo(curl, CURLINFO_OS_ERRNO, &os);
	if (e != CURLE_COULDNT_CONNECT)
		return cli_fail(CLI_UNREACHABLE, "no answer from spillwayd on %s: %s", o->control,
				curl_easy_strerror(e));
	if (os == EACCES)
		return cli_fail(CLI_UNREACHABLE,
				"no permission for %s; run as root or as a member of its group",
				o->control);
	return cli_fail(CLI_UNREACHABLE,
			"spillwayd is not reachable on %s (%s); is it running? Another socket is "
			"named with --control",
			o->control, os ? strerror((int)os) : curl_easy_strerror(e));
}

/* What a reply means: JSON, or the daemon's own word of what is wrong with the question. */
static int judge(const struct reply *r, long status, json_t **out)
{
	json_t *j = json_loadb(r->text ? r->text : "", r->length, 0, NULL);
	const char *error = json_string_value(json_object_get(j, "error"));

	if (status == 200 && j) {
		*out = j;
		return CLI_OK;
	}
	if (error)
		cli_fail(CLI_FAILED, "%s", error);
	else
		cli_fail(CLI_FAILED, "spillwayd answered with HTTP status %ld%s", status,
			 j ? "" : " and no JSON; is this its control socket?");
	json_decref(j);
	return CLI_FAILED;
}

int cli_ask(const struct cli_options *o, const char *path, const json_t *body, json_t **out)
{
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	struct reply r = {0};
	CURL *curl = curl_easy_init();
	CURLcode e = CURLE_OUT_OF_MEMORY;
	long status = 0;
	int code;

	if (curl && (text || !body))
		e = transfer(curl, o, path, text, &r);
	if (e == CURLE_OK) {
		curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
		code = judge(&r, status, out);
	} else {
		code = unreachable(curl, o, e);
	}
	curl_easy_cleanup(curl);
	free(r.text);
	free(text);
	return code;
}
