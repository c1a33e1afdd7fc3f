// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A request to etcd, see etcd_call.h: libcurl's options for one, and what can go wrong with it. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sources/etcd_call.h"
#include "sources/etcd_talk.h"

#define CONNECT_MS 3000L
#define ANSWER_MS  5000L
#define SILENCE_MS 15000 /* a server that acknowledges nothing for this long is gone */

struct sw_etcd_call {
	struct sw_curl_loop *loop;
	CURL *easy;
	struct curl_slist *headers;
	sw_etcd_done done;
	sw_etcd_line line;
	void *arg;
	bool running;
	char *body; /* of the request */
	char *text; /* of the answer */
	size_t length, room;
	int refused; /* why a callback of ours made libcurl give up; 0: none did */
	struct sw_error why;
	char detail[CURL_ERROR_SIZE];
};

static bool good_status(const struct sw_etcd_call *c)
{
	long status = 0;

	curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
	return status == 200;
}

/* Hands over the lines that are complete. */
static int take_lines(struct sw_etcd_call *c)
{
	char *at = c->text, *end = c->text + c->length, *newline;
	int ret = 0;

	while (!ret && (newline = memchr(at, '\n', (size_t)(end - at)))) {
		if (newline > at)
			ret = c->line(c->arg, at, (size_t)(newline - at), &c->why);
		at = newline + 1;
	}
	c->length = (size_t)(end - at);
	memmove(c->text, at, c->length);
	return ret;
}

static size_t take_text(char *text, size_t one, size_t length, void *arg)
{
	struct sw_etcd_call *c = arg;

	(void)one;
	if (c->length + length > SW_ETCD_ANSWER_MAX) {
		c->refused = sw_fail(&c->why, -EFBIG, "the answer is over %u MB",
				     SW_ETCD_ANSWER_MAX >> 20);
		return 0;
	}
	if (c->length + length > c->room) {
		size_t room = 2 * (c->length + length);
		char *grown = realloc(c->text, room);

		if (!grown)
			return 0;
		c->text = grown;
		c->room = room;
	}
	memcpy(c->text + c->length, text, length);
	c->length += length;
	if (c->line && good_status(c))
		c->refused = take_lines(c);
	return c->refused ? 0 : length;
}

/* A stream may be silent for hours; a peer that has vanished may not. */
static int set_silence(void *arg, curl_socket_t fd, curlsocktype purpose)
{
	unsigned ms = SILENCE_MS;

	(void)arg;
	(void)purpose;
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
	return CURL_SOCKOPT_OK;
}

static int outcome(struct sw_etcd_call *c, CURLcode result, struct sw_error *err)
{
	long status = 0;

	curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
	if (c->refused) {
		*err = c->why;
		return c->refused;
	}
	if (result)
		return sw_fail(err, result == CURLE_OPERATION_TIMEDOUT ? -ETIMEDOUT : -EIO,
			       "%.200s", c->detail[0] ? c->detail : curl_easy_strerror(result));
	if (status != 200) {
		struct sw_error said;

		sw_etcd_explain(c->text, c->length, &said);
		return sw_fail(err, -EPROTO, "HTTP status %ld: %.300s", status, said.text);
	}
	return 0;
}

void sw_etcd_call_done(CURL *easy, CURLcode result)
{
	struct sw_etcd_call *c = NULL;
	struct sw_error err = {""};
	int ret;

	curl_easy_getinfo(easy, CURLINFO_PRIVATE, &c);
	c->running = false;
	ret = outcome(c, result, &err);
	c->done(c->arg, ret, c->text, c->length, &err);
}

int sw_etcd_call_start(struct sw_etcd_call *c, const char *endpoint, const char *path, char *body,
		       const char *token, struct sw_error *err)
{
	struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
	size_t length = strlen(endpoint);
	char *url = NULL, *login = NULL;

	while (length && endpoint[length - 1] == '/')
		length--;
	if (asprintf(&url, "%.*s%s", (int)length, endpoint, path) < 0)
		url = NULL;
	if (token && asprintf(&login, "Authorization: %s", token) < 0)
		login = NULL;
	if (login)
		headers = curl_slist_append(headers, login);
	curl_slist_free_all(c->headers);
	c->headers = headers;
	free(c->body);
	c->body = body;
	c->length = 0;
	c->refused = 0;
	c->detail[0] = '\0';
	curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(c->easy, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(c->easy, CURLOPT_URL, url);
	c->running = url && headers && body && (login || !token) &&
		     !sw_curl_loop_start(c->loop, c->easy);
	free(login);
	free(url);
	return c->running ? 0 : sw_fail(err, -ENOMEM, "cannot start a request: no memory");
}

void sw_etcd_call_stop(struct sw_etcd_call *c)
{
	if (c->running)
		sw_curl_loop_stop(c->loop, c->easy);
	c->running = false;
}

static void set_options(struct sw_etcd_call *c, const char *ca_file)
{
	CURL *e = c->easy;

	curl_easy_setopt(e, CURLOPT_PRIVATE, c);
	curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, take_text);
	curl_easy_setopt(e, CURLOPT_WRITEDATA, c);
	curl_easy_setopt(e, CURLOPT_ERRORBUFFER, c->detail);
	curl_easy_setopt(e, CURLOPT_SOCKOPTFUNCTION, set_silence);
	curl_easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(e, CURLOPT_TCP_KEEPIDLE, 5L);
	curl_easy_setopt(e, CURLOPT_TCP_KEEPINTVL, 5L);
	curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, c->line ? 0L : ANSWER_MS);
	curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(e, CURLOPT_QUICK_EXIT, 1L); /* never wait for a slow name server */
	curl_easy_setopt(e, CURLOPT_PROXY, "");	     /* http_proxy is not meant for us */
	curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(e, CURLOPT_USERAGENT, "spillway");
	curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
	if (ca_file) {
		curl_easy_setopt(e, CURLOPT_CAINFO, ca_file);
		curl_easy_setopt(e, CURLOPT_CAPATH, NULL); /* it alone is trusted */
	}
}

struct sw_etcd_call *sw_etcd_call_new(struct sw_curl_loop *loop, const char *ca_file,
				      sw_etcd_done done, sw_etcd_line line, void *arg)
{
	struct sw_etcd_call *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->loop = loop;
	c->done = done;
	c->line = line;
	c->arg = arg;
	c->easy = curl_easy_init();
	if (!c->easy) {
		free(c);
		return NULL;
	}
	set_options(c, ca_file);
	return c;
}

void sw_etcd_call_free(struct sw_etcd_call *c)
{
	if (!c)
		return;
	sw_etcd_call_stop(c);
	curl_easy_cleanup(c->easy);
	curl_slist_free_all(c->headers);
	free(c->body);
	free(c->text);
	free(c);
}
