// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// A server whose every answer is known beforehand, for tools/keeper: says what it was asked,
// whether the body came intact, and sends as many bytes as the client wants, now and then in
// chunks.

#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/args.h"
#include "lib/echo_text.h"
#include "lib/server.h"

static const char usage[] =
	"usage: echo [options]\n"
	"\n"
	"Answers METHOD /any/path?t=TAG&r=BYTES, TAG in hexadecimal, with what it\n"
	"received and BYTES bytes that depend on TAG. Any other request gets \"ok\".\n"
	"\n"
	"  --listen ADDR:PORT      default 127.0.0.1:9000; may be repeated\n"
	"  --help\n"
	"\n"
	"example:\n"
	"  echo --listen 0.0.0.0:8000 --listen '[::]:8000'\n";

static void send_chunks(struct client *c, const char *line, size_t length, const char *body,
			size_t n, size_t chunk)
{
	client_stream(c, "application/octet-stream");
	client_write(c, line, length);
	for (size_t at = 0; at < n; at += chunk)
		client_write(c, body + at, n - at < chunk ? n - at : chunk);
	client_end(c);
}

static void on_request(void *arg, struct client *c, const struct server_request *r)
{
	static char text[ECHO_LINE_MAX + ECHO_BODY_MAX];
	size_t wanted, length;
	uint64_t tag;
	bool intact;

	(void)arg;
	if (sscanf(r->query, "t=%" SCNx64 "&r=%zu", &tag, &wanted) != 2 || wanted > ECHO_BODY_MAX) {
		client_reply(c, 200, "text/plain", "ok\n", 3);
		return;
	}
	intact = r->length <= ECHO_BODY_MAX &&
		 !memcmp(r->body ? r->body : "", echo_request_body(tag), r->length);
	length = echo_line(text, tag, r->method, r->length, intact);
	if (echo_chunk(tag)) {
		send_chunks(c, text, length, echo_response_body(tag), wanted, echo_chunk(tag));
		return;
	}
	memcpy(text + length, echo_response_body(tag), wanted);
	client_reply(c, 200, "application/octet-stream", text, length + wanted);
}

/* Nothing is ever pending. */
static void on_gone(void *arg, struct client *c)
{
	(void)arg;
	(void)c;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"listen", required_argument, NULL, 'l'}, {"help", no_argument, NULL, 'h'}, {0}};
	const struct server_calls calls = {.request = on_request, .gone = on_gone};
	struct event_base *base = event_base_new();
	struct server *s = server_new(base, &calls);
	bool listens = false;
	int o, err;

	while ((o = getopt_long(argc, argv, "", options, NULL)) > 0)
		switch (o) {
		case 'l':
			err = server_listen(s, optarg);
			if (err)
				args_wrong(strerror(-err), optarg);
			listens = true;
			break;
		case 'h': fputs(usage, stdout); return 0;
		default: return 2;
		}
	if (optind < argc)
		args_wrong("not an option", argv[optind]);
	err = listens ? 0 : server_listen(s, "127.0.0.1:9000");
	if (err)
		args_wrong(strerror(-err), "127.0.0.1:9000");
	echo_init();
	signal(SIGPIPE, SIG_IGN);
	args_many_files();
	return event_base_dispatch(base) < 0;
}
