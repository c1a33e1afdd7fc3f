// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Prometheus' exposition format; see page.h. */
#include <stdarg.h>

#include "control/page.h"

void sw_page_head(struct sw_page *p, const char *name, const char *type, const char *help)
{
	evbuffer_add_printf(p->out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* A label value with what the format wants escaped. */
static void label_value(struct evbuffer *out, const char *v)
{
	for (; *v; v++) {
		if (*v == '\n')
			evbuffer_add(out, "\\n", 2);
		else if (*v == '"' || *v == '\\')
			evbuffer_add_printf(out, "\\%c", *v);
		else
			evbuffer_add(out, v, 1);
	}
}

void sw_page_sample(struct sw_page *p, const char *name, double value, ...)
{
	const char *label, *before = "{";
	va_list ap;

	evbuffer_add_printf(p->out, "%s", name);
	va_start(ap, value);
	while ((label = va_arg(ap, const char *))) {
		evbuffer_add_printf(p->out, "%s%s=\"", before, label);
		label_value(p->out, va_arg(ap, const char *));
		evbuffer_add(p->out, "\"", 1);
		before = ",";
	}
	va_end(ap);
	evbuffer_add_printf(p->out, "%s %.15g\n", *before == ',' ? "}" : "", value);
}
