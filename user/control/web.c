// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The status page; see web.h. The files in web/ are part of the program; here they become one
 * document, with headers that let it run its own script, talk to this daemon, and nothing else. */
#include <errno.h>
#include <event2/buffer.h>
#include <stdio.h>
#include <sys/random.h>

#include "control/web.h"

/* A file as it is, relative to where make runs, between NAME and NAME_end. */
#define FILE_IN(name, path)                                                                        \
	__asm__(".pushsection .rodata\n" #name ":\n.incbin \"" path "\"\n" #name                   \
		"_end:\n.popsection\n");                                                           \
	extern const char name[], name##_end[]

FILE_IN(web_style, "user/control/web/style.css");
FILE_IN(web_body, "user/control/web/body.html");
FILE_IN(web_read, "user/control/web/read.js");
FILE_IN(web_draw, "user/control/web/draw.js");
FILE_IN(web_pools, "user/control/web/pools.js");
FILE_IN(web_workers, "user/control/web/workers.js");
FILE_IN(web_tables, "user/control/web/tables.js");
FILE_IN(web_page, "user/control/web/page.js");

/* The document's script, in this order. */
static const struct {
	const char *from, *end;
} scripts[] = {
	{web_read, web_read_end},	{web_draw, web_draw_end},     {web_pools, web_pools_end},
	{web_workers, web_workers_end}, {web_tables, web_tables_end}, {web_page, web_page_end},
};

#define NONCE_BYTES 16

static const char head[] = "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
			   "<meta name=\"viewport\" content=\"width=device-width\">\n"
			   "<meta name=\"color-scheme\" content=\"light dark\">\n"
			   "<link rel=\"icon\" href=\"data:,\">\n<title>Spillway</title>\n";

static int make_nonce(char out[2 * NONCE_BYTES + 1])
{
	unsigned char random[NONCE_BYTES];

	if (getrandom(random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		return -EAGAIN;
	for (size_t i = 0; i < sizeof(random); i++)
		sprintf(out + 2 * i, "%02x", random[i]);
	return 0;
}

/* By the nonce nothing runs or styles but what is written here, were a name from outside ever taken
 * for HTML; by the trusted types, which there are none of, it cannot be. */
static void add_headers(struct evkeyvalq *headers, const char *nonce)
{
	char policy[512];

	snprintf(policy, sizeof(policy),
		 "default-src 'none'; script-src 'nonce-%s'; style-src 'nonce-%s'; img-src data:; "
		 "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
		 "require-trusted-types-for 'script'; trusted-types 'none'",
		 nonce, nonce);
	evhttp_add_header(headers, "Content-Security-Policy", policy);
	evhttp_add_header(headers, "Content-Type", "text/html; charset=utf-8");
	evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
	evhttp_add_header(headers, "Referrer-Policy", "no-referrer");
	evhttp_add_header(headers, "Cache-Control", "no-store");
}

static void add_file(struct evbuffer *out, const char *from, const char *end)
{
	evbuffer_add_reference(out, from, (size_t)(end - from), NULL, NULL);
}

void sw_web_page(struct evhttp_request *req)
{
	struct evbuffer *out = evbuffer_new();
	char nonce[2 * NONCE_BYTES + 1];

	if (!out || make_nonce(nonce)) {
		evhttp_send_error(req, 500, NULL);
	} else {
		add_headers(evhttp_request_get_output_headers(req), nonce);
		evbuffer_add_printf(out, "%s<style nonce=\"%s\">\n", head, nonce);
		add_file(out, web_style, web_style_end);
		evbuffer_add_printf(out, "</style>\n");
		add_file(out, web_body, web_body_end);
		evbuffer_add_printf(out, "<script nonce=\"%s\">\n", nonce);
		for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++)
			add_file(out, scripts[i].from, scripts[i].end);
		evbuffer_add_printf(out, "</script>\n");
		evhttp_send_reply(req, 200, NULL, out);
	}
	if (out)
		evbuffer_free(out);
}
