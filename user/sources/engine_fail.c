// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Words for pages that are no load; see engine_fail.h. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "sources/engine_fail.h"
#include "sources/engines.h"

/* What a page is that is not metrics text, in a word that an operator knows. */
static const char *kind_of(const char *text, size_t length)
{
	size_t n = length < 256 ? length : 256;

	for (size_t i = 0; i < n; i++)
		if (!text[i] || ((unsigned char)text[i] < ' ' && !strchr("\t\r\n", text[i])))
			return "binary data";
	for (; n && strchr(" \t\r\n", *text); n--)
		text++;
	if (!n || !strchr("<{[", *text))
		return "text";
	return *text == '<' ? "HTML" : "JSON";
}

int sw_engine_fail_format(enum sw_engine e, const struct sw_prom *p, const char *text,
			  size_t length, struct sw_error *err)
{
	const struct sw_engine_kind *kind = &sw_engine_kinds[e];
	const char *what = kind_of(text, length);
	char begin[49];
	size_t n = 0;

	if (p->cut && !strcmp(what, "text"))
		return sw_fail(err, -EBADMSG, "the page was cut short: line %u has no end",
			       p->line);
	for (; n < length && n < sizeof(begin) - 1 && text[n] != '\n' && text[n] != '\r'; n++)
		begin[n] = text[n] >= ' ' && text[n] <= '~' ? text[n] : '.';
	begin[n] = '\0';
	return sw_fail(err, -EBADMSG,
		       "got %s instead of Prometheus metrics (it begins '%s'; line %u: %s). Point "
		       "url at the metrics of %s, usually %s",
		       what, begin, p->line, p->reason, kind->n ? kind->name : "the engine",
		       kind->page);
}

int sw_engine_fail_worker(const struct sw_engine_hints *hints, struct sw_error *err)
{
	if (!hints->has_worker_id)
		return sw_fail(err, -ENODATA,
			       "the page is that of a front end, with many workers on it: set "
			       "worker_id to the one that is meant");
	return sw_fail(err, -ENODATA,
		       "no load of worker_id %" PRIu64 " is on the page: check worker_id, and "
		       "whether that worker is registered and has served since the front end "
		       "started",
		       hints->worker_id);
}

int sw_engine_fail_no_load(enum sw_engine e, const struct sw_engine_hints *hints, const char *text,
			   size_t length, unsigned samples, struct sw_error *err)
{
	enum sw_engine other = sw_engine_recognise(text, length);
	const char *name = sw_engine_name(e);

	if (e == SW_ENGINE_CUSTOM)
		return sw_fail(err, -ENODATA,
			       "none of the %u samples on the page is load by series: check its "
			       "names and labels",
			       samples);
	if (other == e && e == SW_ENGINE_DYNAMO)
		return sw_engine_fail_worker(hints, err);
	if (other == e)
		return sw_fail(err, -ENODATA,
			       "the page holds series of %s, but no load in them (NaN, or only "
			       "constants): is the engine still starting?",
			       name);
	if (other != SW_ENGINES)
		return sw_fail(err, -ENODATA,
			       "the page holds series of %s, none of %s: set engine: %s",
			       sw_engine_name(other), name, sw_engine_name(other));
	if (e == SW_ENGINE_AUTO)
		return sw_fail(err, -ENODATA,
			       "no series of a known engine among the %u on the page. Point url at "
			       "its metrics, or set engine: custom and series: to what they are",
			       samples);
	return sw_fail(
		err, -ENODATA,
		"no series of %s among the %u on the page. Point url at its metrics, usually "
		"%s, or set engine: to what runs there",
		name, samples, sw_engine_kinds[e].page);
}
