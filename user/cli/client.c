// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Questions to the daemon over its unix socket. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/client.h"

#define TIMEOUT_S 10L

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
	struct cli_exchange *x = arg;
	char *text = realloc(x->text, x->length + size * n + 1);

	if (!text)
		return 0;
	memcpy(text + x->length, data, size * n);
	x->text = text;
	x->length += size * n;
	x->text[x->length] = '\0';
	return size * n;
}

const char *cli_where(const struct cli_options *o)
{
	return o->url ? o->url : o->control;
}

void cli_target(CURL *curl, const struct cli_options *o, const char *path)
{
	const char *base = o->url ? o->url : "http://spillwayd";
	size_t n = strlen(base);
	char url[1024];

	snprintf(url, sizeof(url), "%.*s%s", (int)(base[n - 1] == '/' ? n - 1 : n), base, path);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_PROXY, "");
	if (!o->url)
		curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, o->control);
	if (o->url && o->token) {
		curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
		curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, o->token);
	}
}

int cli_exchange_begin(struct cli_exchange *x, const struct cli_options *o, const char *path,
		       const json_t *body)
{
	*x = (struct cli_exchange){.curl = curl_easy_init(), .o = o};
	if (body)
		x->body = json_dumps(body, JSON_COMPACT);
	if (!x->curl || (body && !x->body)) {
		curl_easy_cleanup(x->curl);
		free(x->body);
		return -ENOMEM;
	}
	cli_target(x->curl, o, path);
	curl_easy_setopt(x->curl, CURLOPT_TIMEOUT, TIMEOUT_S);
	curl_easy_setopt(x->curl, CURLOPT_WRITEFUNCTION, take);
	curl_easy_setopt(x->curl, CURLOPT_WRITEDATA, x);
	if (x->body) {
		x->headers = curl_slist_append(NULL, "Content-Type: application/json");
		curl_easy_setopt(x->curl, CURLOPT_HTTPHEADER, x->headers);
		curl_easy_setopt(x->curl, CURLOPT_POSTFIELDS, x->body);
	}
	return 0;
}

static void unreachable(const struct cli_exchange *x, CURLcode e, struct sw_error *err)
{
	const char *where = cli_where(x->o);
	long os = 0;

	curl_easy_getinfo(x->curl, CURLINFO_OS_ERRNO, &os);
	if (e != CURLE_COULDNT_CONNECT)
		sw_fail(err, 0, "no answer from spillwayd on %s: %s", where, curl_easy_strerror(e));
	else if (os == EACCES)
		sw_fail(err, 0, "no permission for %s; run as root or as a member of its group",
			where);
	else
		sw_fail(err, 0,
			"spillwayd is not reachable on %s (%s); is it running? Another socket is "
			"named with --control",
			where, os ? strerror((int)os) : curl_easy_strerror(e));
}

/* What a reply means: JSON, or the daemon's own word of what is wrong with the question. */
static int judge(const struct cli_exchange *x, json_t **out, struct sw_error *err)
{
	json_t *j = json_loadb(x->text ? x->text : "", x->length, 0, NULL);
	const char *error = json_string_value(json_object_get(j, "error"));
	long status = 0;

	curl_easy_getinfo(x->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status == 200 && j) {
		*out = j;
		return CLI_OK;
	}
	if (error)
		sw_fail(err, 0, "%s", error);
	else
		sw_fail(err, 0, "spillwayd answered with HTTP status %ld%s", status,
			j ? "" : " and no JSON; is this its control socket?");
	json_decref(j);
	return CLI_FAILED;
}

int cli_exchange_end(struct cli_exchange *x, CURLcode e, json_t **out, struct sw_error *err)
{
	int code = CLI_UNREACHABLE;

	if (e == CURLE_OK)
		code = judge(x, out, err);
	else
		unreachable(x, e, err);
	curl_easy_cleanup(x->curl);
	curl_slist_free_all(x->headers);
	free(x->body);
	free(x->text);
	*x = (struct cli_exchange){0};
	return code;
}

int cli_try(const struct cli_options *o, const char *path, const json_t *body, json_t **out,
	    struct sw_error *err)
{
	struct cli_exchange x;

	if (cli_exchange_begin(&x, o, path, body)) {
		sw_fail(err, 0, "no memory");
		return CLI_FAILED;
	}
	return cli_exchange_end(&x, curl_easy_perform(x.curl), out, err);
}

int cli_ask(const struct cli_options *o, const char *path, const json_t *body, json_t **out)
{
	struct sw_error err = {""};
	int code = cli_try(o, path, body, out, &err);

	return code ? cli_fail(code, "%s", err.text) : CLI_OK;
}

int cli_delete(const struct cli_options *o, const char *path, json_t **out)
{
	struct sw_error err = {""};
	struct cli_exchange x;
	int code;

	if (cli_exchange_begin(&x, o, path, NULL))
		return cli_fail(CLI_FAILED, "no memory");
	curl_easy_setopt(x.curl, CURLOPT_CUSTOMREQUEST, "DELETE");
	code = cli_exchange_end(&x, curl_easy_perform(x.curl), out, &err);
	return code ? cli_fail(code, "%s", err.text) : CLI_OK;
}
