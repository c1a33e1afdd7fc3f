// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What is said over upstream connections, and expected of them; see upstream_talk.h. */
#include "upstream_talk.h"
#include "kernel/idle.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

bool upstream_supported(void)
{
	if (sw_idle_supported())
		return true;
	puts("skip: closing idle connections, which this kernel cannot (6.5)");
	return false;
}

void pause_ms(unsigned ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000L};

	nanosleep(&t, NULL);
}

struct upstream_pair open_steered(struct upstreams *u)
{
	struct sw_socket row = upstream_row(UP_WORKER);

	return upstream_open(u, &row, false);
}

/* The peer's acknowledgement may be late; nothing else may. */
void expect_closed(struct upstreams *u, struct upstream_pair *p)
{
	int n = 0;

	for (int i = 0; i < 500 && !n; i++) {
		n = upstream_close(u, 0);
		if (!n)
			pause_ms(5);
	}
	assert_int_equal(n, 1);
	assert_true(upstream_gone(p->router));
}

void expect_open(struct upstreams *u, struct upstream_pair *p)
{
	assert_int_equal(upstream_close(u, 0), 0);
	assert_false(upstream_gone(p->router));
}

void move(int from, int to, const char *text, size_t len)
{
	upstream_send(from, text, len);
	upstream_take(to, len);
}

void ask(struct upstream_pair *p, const char *text)
{
	move(p->router, p->server, text, strlen(text));
}

void answer(struct upstream_pair *p, const char *text)
{
	move(p->server, p->router, text, strlen(text));
}
