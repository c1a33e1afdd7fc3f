// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* How a pool is steered and counted: its own keys, and which of them go together. What depends on
 * listeners and other pools is in routes.c. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/build.h"
#include "policy/slots.h"

#define MINUTE_MS 60000

static const char *const errno_names[] = {"ECONNREFUSED", "EAGAIN", "ETIMEDOUT", "EHOSTUNREACH",
					  "ENETUNREACH",  "EACCES", NULL};
static const int errnos[] = {ECONNREFUSED, EAGAIN, ETIMEDOUT, EHOSTUNREACH, ENETUNREACH, EACCES};

/* A copy of "/path", "pid:N" or "unit:NAME". */
static char *take_cgroup(const struct sw_place *at, const char *text)
{
	bool good = !text || text[0] == '/';

	if (text && !strncmp(text, "pid:", 4))
		good = text[4] >= '1' && text[4] <= '9' &&
		       !text[4 + strspn(text + 4, "0123456789")];
	else if (text && !strncmp(text, "unit:", 5))
		good = text[5] && !strpbrk(text + 5, "/ \t");
	if (!good)
		sw_bad(at, "cgroup",
		       "'%.100s' is not a cgroup; allowed: a directory such as "
		       "/sys/fs/cgroup/system.slice/nginx.service, pid:N or unit:NAME",
		       text);
	return sw_take_text(at, "cgroup", text);
}

static void build_virtuals(const struct sw_place *at, const struct sw_doc_pool *d,
			   struct sw_steer_conf *s)
{
	s->virtuals = sw_take_array(at, d->virtuals_count, sizeof(*s->virtuals));
	s->n_virtuals = s->virtuals ? d->virtuals_count : 0;
	for (size_t i = 0; i < s->n_virtuals; i++) {
		struct sw_place place = sw_part(at, "virtual[%zu]", i);
		struct sw_error error;

		if (sw_parse_endpoint(d->virtuals[i], &s->virtuals[i], &error))
			sw_bad(&place, NULL, "%s", error.text);
	}
}

/* What belongs to `steer: connect` alone. */
static void check_connect(const struct sw_place *at, const struct sw_doc_pool *d,
			  const struct sw_steer_conf *s)
{
	const struct {
		const char *key, *text;
	} fields[] = {
		{"virtual", d->virtuals_count ? d->virtuals[0] : NULL},
		{"netns", d->netns},
		{"on_full", d->on_full},
		{"refuse_errno", d->refuse_errno},
		{"pooled_upstreams", d->pooled_upstreams},
		{"idle_close_after_ms", d->idle_close_after_ms},
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (fields[i].text && s->by != SW_STEER_CONNECT)
			sw_bad(at, fields[i].key, "never used; allowed: with steer: connect");
	if (s->by == SW_STEER_CONNECT && !s->n_virtuals)
		sw_bad(at, "virtual",
		       "missing, steer: connect needs it; allowed: [ADDR:PORT, ...], addresses that "
		       "routers connect to and nothing else uses");
	if (s->by == SW_STEER_CONNECT && !d->cgroup)
		sw_bad(at, "cgroup",
		       "missing, steer: connect needs the routers'; allowed: /PATH, pid:N or "
		       "unit:NAME");
	if (d->refuse_errno && !s->refuse)
		sw_bad(at, "refuse_errno", "never used; allowed: with on_full: refuse");
	if (d->idle_close_after_ms && !s->close_idle)
		sw_bad(at, "idle_close_after_ms",
		       "never used; allowed: with pooled_upstreams: close_idle");
}

void sw_build_steer(const struct sw_place *at, const struct sw_doc_pool *d, struct sw_steer_conf *s)
{
	static const char *const by[] = {"connect", "local", NULL};
	static const char *const on_full[] = {"answer", "refuse", NULL};
	static const char *const upstreams[] = {"keep", "close_idle", NULL};
	static const char *const count[] = {"auto", "connections", "reports", NULL};

	s->by = (enum sw_steer_by)(sw_take_choice(at, "steer", d->steer, by, -1) + 1);
	build_virtuals(at, d, s);
	s->cgroup = take_cgroup(at, d->cgroup);
	s->netns = sw_take_netns(at, d->netns);
	s->refuse = sw_take_choice(at, "on_full", d->on_full, on_full, 0);
	s->error = errnos[sw_take_choice(at, "refuse_errno", d->refuse_errno, errno_names, 0)];
	s->close_idle = sw_take_choice(at, "pooled_upstreams", d->pooled_upstreams, upstreams, 0);
	s->idle_close_after_ms = (unsigned)sw_take_uint(at, "idle_close_after_ms",
							d->idle_close_after_ms, 1, MINUTE_MS, 1);
	s->count = (enum sw_count_by)sw_take_choice(at, "count", d->count, count, SW_COUNT_AUTO);
	s->report_lag_ms = (unsigned)sw_take_uint(at, "report_lag_ms", d->report_lag_ms, 0,
						  SW_CREDIT_LAG_MAX, 1000);
	check_connect(at, d, s);
	if (s->by != SW_STEER_NONE && s->count == SW_COUNT_REPORTS)
		sw_bad(at, "count",
		       "a steered pool counts connections; allowed: auto, connections");
	if (s->by != SW_STEER_NONE && d->observe && !strcmp(d->observe, "true"))
		sw_bad(at, "observe",
		       "a steered pool cannot only be observed; allowed: without steer");
}
