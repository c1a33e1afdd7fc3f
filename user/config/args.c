// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The command line of spillwayd: one pool, described by flags, becomes the same document that a
 * file does and goes through the same checks. Which flags there are is in flags.c. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/build.h"
#include "config/flags.h"

#define FIRST 256 /* getopt's value for the first flag, above every letter */

struct args {
	char *file;
	bool check, remove;
	const struct sw_flag *without_file;   /* the first one that excludes --config */
	const struct sw_flag *without_remove; /* and that excludes --remove */
	struct sw_doc doc;		      /* lists have room for a value from each argument */
	struct sw_doc_pool pool;
	struct sw_doc_worker worker;	 /* what each worker gets */
	struct sw_doc_listener listener; /* what each listener gets */
	char **guards, **scrapes, **workers;
	unsigned n_guards, n_scrapes, n_workers;
	char retry_after[64]; /* MIN of MIN:MAX */
	char cgroup[300];     /* "pid:N", "unit:NAME" */
};

/* What suits the process, not the configuration, may stand beside --config. */
static bool beside_file(const struct sw_flag *f)
{
	return f->target >= SW_TO_FILE || !strcmp(f->field, "control") ||
	       !strcmp(f->field, "log_level");
}

/* And this beside --remove. */
static bool beside_remove(const struct sw_flag *f)
{
	return f->target == SW_TO_FILE || f->target == SW_TO_REMOVE ||
	       !strcmp(f->field, "pin_root") || !strcmp(f->field, "log_level");
}

/* --cgroup DIR, --pid N or --unit NAME. */
static int take_cgroup(struct args *a, const struct sw_flag *f, char *value, struct sw_error *err)
{
	if (a->pool.cgroup)
		return sw_fail(err, -EINVAL,
			       "--%s: a cgroup is given already; allowed: one of --cgroup, --pid "
			       "and --unit",
			       f->name);
	snprintf(a->cgroup, sizeof(a->cgroup), "%s:%s", f->name, value);
	a->pool.cgroup = strcmp(f->name, "cgroup") ? a->cgroup : value;
	return 0;
}

/* Stores the value of a flag that fills the document. */
static int take(struct args *a, const struct sw_flag *f, char *value, struct sw_error *err)
{
	static char close_idle[] = "close_idle";
	char *const base[] = {(char *)&a->doc, (char *)&a->pool, (char *)&a->worker,
			      (char *)&a->listener};
	char **text = f->target <= SW_TO_LISTENER      ? (char **)(base[f->target] + f->offset)
		      : f->target == SW_TO_FILE	       ? &a->file
		      : f->target == SW_TO_RETRY_AFTER ? &a->pool.retry_after.min
						       : NULL;

	if (!beside_file(f) && !a->without_file)
		a->without_file = f;
	if (!beside_remove(f) && !a->without_remove)
		a->without_remove = f;
	if (text && *text)
		return sw_fail(err, -EINVAL, "--%s: given twice; allowed: once", f->name);
	switch (f->target) {
	case SW_TO_INTERFACES: a->doc.interfaces[a->doc.interfaces_count++] = value; break;
	case SW_TO_GUARDS: a->guards[a->n_guards++] = value; break;
	case SW_TO_SCRAPES: a->scrapes[a->n_scrapes++] = value; break;
	case SW_TO_WORKERS: a->workers[a->n_workers++] = value; break;
	case SW_TO_VIRTUALS: a->pool.virtuals[a->pool.virtuals_count++] = value; break;
	case SW_TO_CGROUP: return take_cgroup(a, f, value, err);
	case SW_TO_CLOSE_IDLE: a->pool.pooled_upstreams = close_idle; break;
	case SW_TO_EXEMPTS: a->listener.exempt[a->listener.exempt_count++] = value; break;
	case SW_TO_CHECK: a->check = true; break;
	case SW_TO_REMOVE: a->remove = true; break;
	case SW_TO_RETRY_AFTER: {
		size_t room = sizeof(a->retry_after) - 1, length = strcspn(value, ":");

		memcpy(a->retry_after, value, length < room ? length : room);
		*text = a->retry_after;
		if (value[length])
			a->pool.retry_after.max = value + length + 1;
		break;
	}
	default: *text = value;
	}
	return 0;
}

/* 1: printed what was asked for, nothing else to do. */
static int parse(int argc, char **argv, struct args *a, struct sw_error *err)
{
	static char yes[] = "true"; /* the value of a flag that has none */
	struct option options[SW_FLAGS + 1] = {0};
	const struct sw_flag *f;
	int c, ret = 0;

	for (size_t i = 0; i < SW_FLAGS; i++)
		options[i] = (struct option){sw_flags[i].name,
					     sw_flags[i].arg ? required_argument : no_argument,
					     NULL, FIRST + (int)i};
	optind = 0;
	while (!ret && (c = getopt_long(argc, argv, "+:h", options, NULL)) != -1) {
		f = c >= FIRST	      ? &sw_flags[c - FIRST]
		    : optopt >= FIRST ? &sw_flags[optopt - FIRST]
				      : NULL;
		if (c == ':')
			return sw_fail(err, -EINVAL, "--%s: needs a value, %s", f->name, f->arg);
		if (c == '?' && f)
			return sw_fail(err, -EINVAL, "--%s: takes no value", f->name);
		if (c == '?')
			return sw_flags_unknown(argv[optind - 1], err);
		if (c == 'h' || f->target == SW_TO_HELP) {
			sw_flags_help();
			return 1;
		}
		if (f->target == SW_TO_VERSION) {
			printf("spillwayd %s\n", SW_VERSION);
			return 1;
		}
		ret = take(a, f, optarg ? optarg : yes, err);
	}
	if (!ret && optind < argc)
		return sw_fail(err, -EINVAL, "'%s' is not a flag; see --help", argv[optind]);
	return ret;
}

/* Workers by URL, then those by address. */
static void list_workers(struct args *a)
{
	struct sw_doc_pool *pool = &a->pool;

	for (unsigned i = 0; i < a->n_scrapes; i++) {
		pool->workers[pool->workers_count] = a->worker;
		pool->workers[pool->workers_count].netns = a->listener.netns;
		pool->workers[pool->workers_count++].scrape = a->scrapes[i];
	}
	for (unsigned i = 0; i < a->n_workers; i++) {
		pool->workers[pool->workers_count] = a->worker;
		pool->workers[pool->workers_count++].address = a->workers[i];
	}
}

/* The document that the flags describe. */
static int build(struct args *a, struct sw_config **out, struct sw_error *err)
{
	const struct sw_origin origin = {0};
	bool connect = a->pool.steer && !strcmp(a->pool.steer, "connect");
	static char name[] = "default";
	int ret;

	if (!a->n_guards && !connect)
		return sw_fail(
			err, -EINVAL,
			"nothing to guard or to steer; give --guard PORT, --steer connect or "
			"--config FILE, see --help");
	a->doc.pools = &a->pool;
	a->doc.pools_count = 1;
	a->doc.listeners = calloc(a->n_guards + 1, sizeof(*a->doc.listeners));
	a->pool.name = name;
	a->pool.netns = connect ? a->listener.netns : NULL;
	a->pool.workers = calloc(a->n_scrapes + a->n_workers + 1, sizeof(*a->pool.workers));
	if (!a->doc.listeners || !a->pool.workers) {
		ret = sw_fail(err, -ENOMEM, "out of memory");
		goto out;
	}
	list_workers(a);
	for (; a->doc.listeners_count < a->n_guards; a->doc.listeners_count++) {
		a->listener.listen = a->guards[a->doc.listeners_count];
		a->doc.listeners[a->doc.listeners_count] = a->listener;
	}
	ret = sw_config_build(&a->doc, &origin, out, err);
out:
	free(a->doc.listeners);
	free(a->pool.workers);
	return ret;
}

/* The file, with the two flags that may stand beside it. */
static int load(struct args *a, struct sw_config **out, struct sw_error *err)
{
	const struct sw_origin origin = {0};
	struct sw_build b = {.origin = &origin, .error = err};
	struct sw_place top = {.build = &b};
	struct sw_config *c;
	int ret;

	if (a->without_file)
		return sw_fail(err, -EINVAL, "--%s: not beside --config; set %s in %s instead",
			       a->without_file->name, a->without_file->field, a->file);
	ret = sw_config_load(a->file, &c, err);
	if (ret)
		return ret;
	if (a->doc.log_level)
		c->log_level = sw_build_log_level(&top, a->doc.log_level);
	if (a->doc.control) {
		free(c->control);
		c->control = sw_build_control(&top, a->doc.control);
	}
	if (b.err)
		sw_config_free(c);
	else
		*out = c;
	return b.err;
}

/* A configuration that says no more than what there is to remove. */
static int build_removal(struct args *a, struct sw_config **out, struct sw_error *err)
{
	const struct sw_origin origin = {0};
	struct sw_build b = {.origin = &origin, .error = err};
	struct sw_place top = {.build = &b};
	struct sw_config *c;

	if (a->without_remove)
		return sw_fail(err, -EINVAL,
			       "--%s: not beside --remove; allowed: --pin-root, "
			       "--config, --log-level",
			       a->without_remove->name);
	if (a->file)
		return load(a, out, err);
	c = calloc(1, sizeof(*c));
	if (!c)
		return sw_fail(err, -ENOMEM, "out of memory");
	c->pin_root = sw_build_pin_root(&top, a->doc.pin_root);
	c->log_level = sw_build_log_level(&top, a->doc.log_level);
	if (b.err)
		sw_config_free(c);
	else
		*out = c;
	return b.err;
}

enum sw_args_result sw_config_from_args(int argc, char **argv, struct sw_config **out,
					struct sw_error *err)
{
	struct sw_config *c = NULL;
	struct args a = {0};
	char **room = calloc((size_t)argc * 6, sizeof(*room));
	int ret;

	if (!room)
		return sw_fail(err, SW_ARGS_ERROR, "out of memory");
	a.doc.interfaces = room;
	a.guards = room + argc;
	a.scrapes = room + 2 * argc;
	a.listener.exempt = room + 3 * argc;
	a.workers = room + 4 * argc;
	a.pool.virtuals = room + 5 * argc;
	ret = parse(argc, argv, &a, err);
	if (!ret)
		ret = a.remove ? build_removal(&a, &c, err)
		      : a.file ? load(&a, &c, err)
			       : build(&a, &c, err);
	free(room);
	if (ret)
		return ret > 0 ? SW_ARGS_EXIT : SW_ARGS_ERROR;
	if (!a.check) {
		*out = c;
		return a.remove ? SW_ARGS_REMOVE : SW_ARGS_RUN;
	}
	puts("ok");
	sw_config_free(c);
	return SW_ARGS_EXIT;
}
