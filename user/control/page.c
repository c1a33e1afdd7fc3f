// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Prometheus' exposition format; see page.h. A page has tens of thousands of samples where there
 * are a thousand workers, and the heartbeat waits for it: bytes are copied, and only numbers are
 * formatted. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "control/page.h"

void sw_page_flush(struct sw_page *p)
{
	evbuffer_add(p->out, p->bytes, p->n);
	p->n = 0;
}

static void put(struct sw_page *p, const char *bytes, size_t n)
{
	if (n > sizeof(p->bytes) - p->n)
		sw_page_flush(p);
	if (n > sizeof(p->bytes)) {
		evbuffer_add(p->out, bytes, n);
		return;
	}
	memcpy(p->bytes + p->n, bytes, n);
	p->n += n;
}

static void put_text(struct sw_page *p, const char *text)
{
	put(p, text, strlen(text));
}

/* A label's value, with what the format wants escaped. */
static void put_value(struct sw_page *p, const char *v)
{
	for (;;) {
		size_t plain = strcspn(v, "\n\"\\");

		put(p, v, plain);
		v += plain;
		if (!*v)
			return;
		put(p, (const char[]){'\\', *v == '\n' ? 'n' : *v}, 2);
		v++;
	}
}

static void put_number(struct sw_page *p, double v)
{
	bool whole = v == floor(v) && fabs(v) < 0x1p53;
	char text[32];
	int n = whole ? snprintf(text, sizeof(text), "%lld", (long long)v)
		      : snprintf(text, sizeof(text), "%.15g", v);

	put(p, text, (size_t)n);
}

void sw_page_series(struct sw_page *p, const char *name, const char *type, const char *help)
{
	p->name = name;
	put_text(p, "# HELP ");
	put_text(p, name);
	put_text(p, " ");
	put_text(p, help);
	put_text(p, "\n# TYPE ");
	put_text(p, name);
	put_text(p, " ");
	put_text(p, type);
	put_text(p, "\n");
}

void sw_page_sample(struct sw_page *p, double value, ...)
{
	const char *label, *before = "{";
	va_list ap;

	put_text(p, p->name);
	va_start(ap, value);
	while ((label = va_arg(ap, const char *))) {
		put(p, before, 1);
		put_text(p, label);
		put(p, "=\"", 2);
		put_value(p, va_arg(ap, const char *));
		put(p, "\"", 1);
		before = ",";
	}
	va_end(ap);
	put_text(p, *before == ',' ? "} " : " ");
	put_number(p, value);
	put(p, "\n", 1);
}

bool sw_page_beside(const struct sw_page *p, struct sw_page *side)
{
	side->live = p->live;
	side->now_ms = p->now_ms;
	side->n = 0;
	side->out = evbuffer_new();
	return side->out != NULL;
}

void sw_page_append(struct sw_page *p, struct sw_page *side)
{
	sw_page_flush(p);
	sw_page_flush(side);
	evbuffer_add_buffer(p->out, side->out);
	evbuffer_free(side->out);
}
