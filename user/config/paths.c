// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which requests of a listener may be shed: the built-in table, then the operator's words, which
 * win. The result is complete and holds each request once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/build.h"
#include "policy/paths.h"

#define NAME "{name}"

struct rule {		       /* an operator's entry */
	enum sw_method method; /* SW_METHOD_NONE: any */
	const char *path;
};

/* The kernel reads up to SW_PATH_MAX - 1 bytes of a path, and as much behind a {name}. */
static const char *path_fault(const char *path)
{
	const char *name = strstr(path, NAME);
	size_t prefix = name ? (size_t)(name - path) : 0;
	const char *rest = name ? name + strlen(NAME) : path;

	if (path[0] != '/')
		return "does not begin with '/'";
	if (path[strcspn(path, " ?#\t")])
		return "has a blank, '?' or '#', where a path ends";
	if (strcspn(rest, "{}") < strlen(rest) || strcspn(path, "{}") < prefix)
		return "has braces other than one " NAME;
	if (name && (name[-1] != '/' || (rest[0] && rest[0] != '/')))
		return "has a " NAME " that is not a whole segment";
	if (prefix > SW_PREFIX_MAX)
		return "has more than 32 bytes before " NAME;
	if (strlen(rest) >= SW_PATH_MAX)
		return name ? "has more than 63 bytes behind " NAME : "has more than 63 bytes";
	return NULL;
}
_Static_assert(SW_PREFIX_MAX == 32 && SW_PATH_MAX == 64, "path_fault() spells them out");

static struct rule parse_rule(const struct sw_place *at, const char *list, size_t i,
			      const char *text)
{
	struct sw_place place = sw_part(at, "%s[%zu]", list, i);
	const char *space = strchr(text, ' ');
	struct rule rule = {.path = space ? space + 1 : text};
	const char *fault;
	char method[16];

	if (space) {
		snprintf(method, sizeof(method), "%.*s", (int)(space - text), text);
		rule.method = (enum sw_method)(
			SW_METHOD_GET + sw_take_choice(&place, NULL, method, sw_method_names, 0));
	}
	fault = path_fault(rule.path);
	if (fault)
		sw_bad(&place, NULL, "'%.80s' %s; allowed: [METHOD ]/PATH with at most one " NAME,
		       rule.path, fault);
	return rule;
}

/* Is `path` covered by `pattern`? A {name} stands for one segment. */
static bool covers(const char *pattern, const char *path)
{
	const char *name = strstr(pattern, NAME);
	size_t prefix = name ? (size_t)(name - pattern) : 0;

	if (!name)
		return !strcmp(pattern, path);
	if (strncmp(pattern, path, prefix) || !path[prefix] || path[prefix] == '/')
		return false;
	return !strcmp(name + strlen(NAME), path + prefix + strcspn(path + prefix, "/"));
}

static void add(const struct sw_place *at, struct sw_listener_conf *l, enum sw_method method,
		const char *path, enum sw_path_action action, enum sw_family family,
		enum sw_api_endpoint endpoint)
{
	if (at->build->err)
		return;
	for (size_t i = 0; i < l->n_paths; i++)
		if (l->paths[i].method == method && !strcmp(l->paths[i].path, path))
			return;
	l->paths[l->n_paths++] = (struct sw_path_conf){
		.method = method,
		.path = sw_take_text(at, "paths", path),
		.action = action,
		.family = family,
		.endpoint = endpoint,
	};
}

/* Takes every entry away that the rule lets pass; of patterns, an exact path stays to win. */
static void pass(const struct sw_place *at, struct sw_listener_conf *l, const struct rule *rule)
{
	bool used[SW_METHOD_TRACE + 1] = {false};
	size_t kept = 0;

	if (at->build->err)
		return;
	for (size_t i = 0; i < l->n_paths; i++) {
		struct sw_path_conf *p = &l->paths[i];
		bool hit = !rule->method || rule->method == p->method;

		used[p->method] |= hit;
		if (hit && covers(rule->path, p->path))
			free(p->path);
		else
			l->paths[kept++] = *p;
	}
	l->n_paths = kept;
	for (int m = SW_METHOD_GET; m <= SW_METHOD_TRACE && !strstr(rule->path, NAME); m++)
		if (used[m])
			add(at, l, (enum sw_method)m, rule->path, SW_PATH_PASS, SW_FAMILY_DEFAULT,
			    SW_API_EP_OTHER);
}

static void build_rules(const struct sw_place *at, const struct sw_doc_paths *d,
			struct sw_listener_conf *l)
{
	for (unsigned i = 0; i < d->shed_count; i++) {
		struct rule rule = parse_rule(at, "shed", i, d->shed[i]);

		add(at, l, rule.method ? rule.method : SW_METHOD_POST, rule.path, SW_PATH_SHED,
		    SW_FAMILY_DEFAULT, SW_API_EP_OTHER);
	}
	for (unsigned i = 0; i < d->pass_count; i++) {
		struct rule rule = parse_rule(at, "pass", i, d->pass[i]);

		for (unsigned j = 0; j < d->shed_count; j++) {
			struct rule shed = parse_rule(at, "shed", j, d->shed[j]);
			struct sw_place place = sw_part(at, "pass[%u]", i);

			shed.method = shed.method ? shed.method : SW_METHOD_POST;
			if ((!rule.method || rule.method == shed.method) &&
			    covers(rule.path, shed.path))
				sw_bad(&place, NULL,
				       "'%.80s' lets shed[%u] pass; allowed: one of the two",
				       d->pass[i], j);
		}
		pass(at, l, &rule);
	}
}

void sw_build_paths(const struct sw_place *listener, const struct sw_doc_paths *d,
		    const struct sw_traits *traits, struct sw_listener_conf *l)
{
	struct sw_place at = sw_part(listener, "paths");
	const struct sw_builtin_path *builtin;
	size_t n;

	l->all_paths = sw_take_bool(&at, "all", d->all);
	if (l->all_paths) {
		if (d->shed_count || d->pass_count)
			sw_bad(&at, "all", "sheds every path; allowed: without shed and pass");
		return;
	}
	builtin = sw_builtin_paths(
		traits->engine < 0 ? SW_ENGINE_VLLM : (enum sw_engine)traits->engine, &n);
	l->paths = sw_take_array(&at, n + d->shed_count + (size_t)d->pass_count * SW_METHOD_TRACE,
				 sizeof(*l->paths));
	if (!l->paths)
		return;
	for (size_t i = 0; i < n; i++)
		add(&at, l, builtin[i].method, builtin[i].path, SW_PATH_SHED, builtin[i].family,
		    builtin[i].endpoint);
	build_rules(&at, d, l);
	for (size_t i = 0; i < l->n_paths && traits->one_body; i++)
		l->paths[i].family = SW_FAMILY_DEFAULT;
}
