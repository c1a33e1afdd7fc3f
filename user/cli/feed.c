// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Questions to the daemon while keys are waited for; see feed.h. */
#include <stdlib.h>

#include "cli/feed.h"

#define ANSWER_MS 3000L

struct feed {
	const struct cli_options *o;
	CURLM *multi;
	struct cli_exchange exchange[FEED_KINDS]; /* `curl` NULL: nothing is under way */
};

struct feed *feed_new(const struct cli_options *o)
{
	struct feed *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->o = o;
	f->multi = curl_multi_init();
	if (f->multi)
		return f;
	free(f);
	return NULL;
}

/* Of a question that ends, or is given up. */
static void end(struct feed *f, enum feed_kind kind, CURLcode e, struct feed_answer *answer)
{
	struct cli_exchange *x = &f->exchange[kind];

	*answer = (struct feed_answer){0};
	curl_multi_remove_handle(f->multi, x->curl);
	answer->code = cli_exchange_end(x, e, &answer->json, &answer->err);
}

void feed_free(struct feed *f)
{
	struct feed_answer none;

	for (int kind = 0; f && kind < FEED_KINDS; kind++)
		if (f->exchange[kind].curl)
			end(f, kind, CURLE_ABORTED_BY_CALLBACK, &none);
	if (f)
		curl_multi_cleanup(f->multi);
	free(f);
}

bool feed_waits(const struct feed *f, enum feed_kind kind)
{
	return f->exchange[kind].curl;
}

bool feed_ask(struct feed *f, enum feed_kind kind, const char *path, const json_t *body)
{
	struct cli_exchange *x = &f->exchange[kind];

	if (x->curl || cli_exchange_begin(x, f->o, path, body))
		return false;
	curl_easy_setopt(x->curl, CURLOPT_TIMEOUT_MS, ANSWER_MS);
	curl_multi_add_handle(f->multi, x->curl);
	return true;
}

void feed_wait(struct feed *f, int fd, int ms)
{
	struct curl_waitfd keys = {.fd = fd, .events = CURL_WAIT_POLLIN};
	int running;

	curl_multi_perform(f->multi, &running);
	curl_multi_poll(f->multi, &keys, 1, ms, NULL);
	curl_multi_perform(f->multi, &running);
}

bool feed_take(struct feed *f, enum feed_kind *kind, struct feed_answer *answer)
{
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(f->multi, &left))) {
		if (m->msg != CURLMSG_DONE)
			continue;
		for (int i = 0; i < FEED_KINDS; i++)
			if (f->exchange[i].curl == m->easy_handle) {
				*kind = i;
				end(f, i, m->data.result, answer);
				return true;
			}
	}
	return false;
}
