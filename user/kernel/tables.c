// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Configuration to map contents; see tables.h. A whole image of the tables is built in memory
 * beside the image of what the kernel has; image.c moves the kernel from the one to the other.
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/iface.h"
#include "kernel/image.h"
#include "kernel/sets.h"
#include "kernel/tables.h"

#define SET_BYTES (SW_ANSWERS_PER_SET * sizeof(struct sw_answer))

struct build {
	const struct sw_config *c;
	const struct sw_image *before; /* what the kernel had */
	const struct sw_image *old;    /* what of it is there while `new` is written */
	struct sw_image *new;
	uint64_t now_ns;
	struct sw_answer *rendered;					     /* one set */
	bool old_answers[SW_MAX_ANSWERSETS], new_answers[SW_MAX_ANSWERSETS]; /* in use */
	struct {
		bool known;
		uint16_t set, length;
		uint8_t variants_mask;
	} pools[SW_MAX_POOLS];
	struct sw_error *err;
};

unsigned sw_answer_sets(size_t pools)
{
	unsigned sets = 8;

	while (sets < pools && sets < SW_MAX_ANSWERSETS)
		sets *= 2;
	return sets;
}

int sw_maps_find(const struct bpf_object *obj, struct sw_maps *out)
{
#define X(name)                                                                                    \
	out->name = bpf_object__find_map_fd_by_name(obj, #name);                                   \
	if (out->name < 0)                                                                         \
		return -ENOENT;
	SW_MAPS(X)
#undef X
	return 0;
}

/* ---- answers -------------------------------------------------------------------------------- */

/* A place for the rendered set: where the same stands already, else one that no listener of the
 * old table can be answering from. */
static int place_answers(struct build *b)
{
	struct sw_rows *answers = &b->new->map[SW_T_ANSWERS];
	size_t sets = answers->n / SW_ANSWERS_PER_SET, s;

	if (sets > SW_MAX_ANSWERSETS)
		sets = SW_MAX_ANSWERSETS;
	for (s = 0; s < sets; s++)
		if ((b->old_answers[s] || b->new_answers[s]) &&
		    !memcmp(sw_row(answers, s * SW_ANSWERS_PER_SET), b->rendered, SET_BYTES))
			return s;
	for (s = 0; s < sets; s++)
		if (!b->old_answers[s] && !b->new_answers[s]) {
			memcpy(sw_row(answers, s * SW_ANSWERS_PER_SET), b->rendered, SET_BYTES);
			return s;
		}
	return sw_fail(b->err, -E2BIG,
		       "there is room for %zu different answers: restart the daemon to make more",
		       sets);
}

static int pool_answers(struct build *b, size_t pool)
{
	const struct sw_pool_conf *conf = &b->c->pools[pool];
	int err;

	if (b->pools[pool].known)
		return 0;
	memset(b->rendered, 0, SET_BYTES);
	err = sw_answers_render(&conf->answer, b->rendered, &b->pools[pool].variants_mask, b->err);
	if (!err)
		err = place_answers(b);
	if (err < 0)
		return err;
	b->new_answers[err] = true;
	b->pools[pool].set = err;
	b->pools[pool].length = b->rendered[0].length;
	b->pools[pool].known = true;
	return 0;
}

/* ---- paths and CIDRs --------------------------------------------------------------------- */

static int path_key(struct build *b, const struct sw_path_conf *conf, struct sw_path *key)
{
	const char *rest = conf->path, *open = strchr(rest, '{'), *shut;

	*key = (struct sw_path){.method = conf->method};
	if (open) {
		shut = strchr(open, '}');
		if (!shut || open == rest || open[-1] != '/' || open - rest > SW_PREFIX_MAX)
			return sw_fail(
				b->err, -EINVAL,
				"path %s: {name} must follow a '/' within the first %d bytes",
				conf->path, SW_PREFIX_MAX);
		key->prefix = sw_sets_prefix(b->new, rest, open - rest);
		if (!key->prefix)
			return sw_fail(b->err, -E2BIG,
				       "more than %d different beginnings of paths with a {name}",
				       SW_MAX_PREFIXES);
		rest = shut + 1;
	}
	if (strlen(rest) >= SW_PATH_MAX)
		return sw_fail(b->err, -ENAMETOOLONG, "path %s: longer than %d bytes", conf->path,
			       SW_PATH_MAX - 1);
	memcpy(key->path, rest, strlen(rest));
	return 0;
}

static int listener_paths(struct build *b, const struct sw_listener_conf *conf, uint16_t *id)
{
	struct sw_rows set = {.key_size = sizeof(struct sw_path),
			      .value_size = sizeof(struct sw_path_value)};
	int err = 0;

	for (size_t i = 0; !err && !conf->all_paths && i < conf->n_paths; i++) {
		const struct sw_path_conf *p = &conf->paths[i];
		struct sw_path_value value = {
			.action = p->action, .family = p->family, .endpoint = p->endpoint};
		struct sw_path key;

		err = path_key(b, p, &key);
		if (!err)
			err = sw_rows_set(&set, &key, &value);
	}
	if (!err)
		err = sw_sets_place(b->old, b->new, SW_T_PATHS, &set, id);
	sw_rows_free(&set);
	return err;
}

static int listener_exempt(struct build *b, const struct sw_listener_conf *conf, uint16_t *id)
{
	struct sw_rows set = {.key_size = sizeof(struct sw_cidr_key),
			      .value_size = sizeof(uint32_t)};
	const uint32_t yes = 1;
	int err = 0;

	for (size_t i = 0; !err && i < conf->n_exempt; i++) {
		struct sw_cidr_key key = {.prefixlen = 32 + conf->exempt[i].bits};

		memcpy(key.addr, conf->exempt[i].addr, sizeof(key.addr));
		err = sw_rows_set(&set, &key, &yes);
	}
	if (!err)
		err = sw_sets_place(b->old, b->new, SW_T_EXEMPT, &set, id);
	sw_rows_free(&set);
	return err;
}

/* ---- listeners ------------------------------------------------------------------------------ */

static bool is_any(const struct sw_listener_conf *conf)
{
	static const uint8_t any[16];

	return !memcmp(conf->addr, any, sizeof(any));
}

/* What the kernel has had for this address and port until now, or NULL. */
static const struct sw_listener *predecessor(struct build *b, const struct sw_listener_conf *conf)
{
	const struct sw_port *port = sw_row(&b->before->map[SW_T_PORTS], conf->port);
	struct sw_address key = {.port = conf->port};
	uint32_t id = conf->v4 ? port->any4 : port->any6;
	const uint8_t *row;

	if (!is_any(conf)) {
		memcpy(key.addr, conf->addr, sizeof(key.addr));
		row = sw_rows_find(&b->before->map[SW_T_ADDRESSES], &key);
		id = 0;
		if (row)
			memcpy(&id, row + sizeof(key), sizeof(id));
	}
	return id && id < SW_MAX_LISTENERS ? sw_row(&b->before->map[SW_T_LISTENERS], id) : NULL;
}

/* Conversations under way were promised the old length. */
static void keep_length(struct build *b, const struct sw_listener *before, struct sw_listener *l)
{
	if (before->length && before->length != l->length) {
		l->old_length = before->length;
		l->old_until_ns = b->now_ns + SW_LIFETIME_NS;
	} else {
		l->old_length = before->old_length;
		l->old_until_ns = before->old_until_ns;
	}
}

static int claim(struct build *b, uint16_t *place, uint16_t id, uint16_t port)
{
	if (*place)
		return sw_fail(b->err, -EEXIST, "two listeners on port %u for one address", port);
	*place = id;
	return 0;
}

/* Makes packets to the listener's address and port find it. */
static int route(struct build *b, const struct sw_listener_conf *conf, uint16_t id)
{
	struct sw_port *port = sw_row(&b->new->map[SW_T_PORTS], conf->port);
	struct sw_rows *addresses = &b->new->map[SW_T_ADDRESSES];
	struct sw_address key = {.port = conf->port};
	uint32_t value = id;
	int err = 0;

	if (is_any(conf)) {
		if (conf->v4)
			err = claim(b, &port->any4, id, conf->port);
		if (conf->v6 && !err)
			err = claim(b, &port->any6, id, conf->port);
		return err;
	}
	memcpy(key.addr, conf->addr, sizeof(key.addr));
	if (sw_rows_find(addresses, &key))
		return sw_fail(b->err, -EEXIST, "two listeners on port %u for one address",
			       conf->port);
	port->single = 1;
	return sw_rows_set(addresses, &key, &value);
}

/* What a listener that is to find out for itself does with new connections is for others to decide
 * (sw_plane_pass_new); until then it goes on as before, and a new one lets them in. */
static uint32_t intercept_flags(const struct sw_listener_conf *conf,
				const struct sw_listener *before)
{
	switch (conf->intercept) {
	case SW_INTERCEPT_ESTABLISHED: return SW_LF_KEEP | SW_LF_PASS_NEW;
	case SW_INTERCEPT_BOTH: return SW_LF_KEEP;
	case SW_INTERCEPT_AUTO:
		return SW_LF_KEEP |
		       (before && before->port ? before->flags & SW_LF_PASS_NEW : SW_LF_PASS_NEW);
	default: return 0;
	}
}

static int build_listener(struct build *b, const struct sw_listener_conf *conf, uint16_t id)
{
	struct sw_listener *l = sw_row(&b->new->map[SW_T_LISTENERS], id);
	const struct sw_listener *before = predecessor(b, conf);
	int err;

	*l = (struct sw_listener){
		.port = conf->port,
		.pool = conf->pool,
		.syn_rate = conf->syn_rate,
		.flags = (conf->n_exempt ? SW_LF_EXEMPT : 0) |
			 (b->c->pools[conf->pool].observe ? SW_LF_OBSERVE : 0) |
			 (conf->all_paths ? SW_LF_ALL_PATHS : 0) | intercept_flags(conf, before),
	};
	memcpy(l->addr, conf->addr, sizeof(l->addr));
	err = pool_answers(b, conf->pool);
	if (!err)
		err = listener_paths(b, conf, &l->paths);
	if (!err)
		err = listener_exempt(b, conf, &l->exempt);
	if (!err)
		err = route(b, conf, id);
	l->answers = b->pools[conf->pool].set;
	l->length = b->pools[conf->pool].length;
	l->variants_mask = b->pools[conf->pool].variants_mask;
	if (before)
		keep_length(b, before, l);
	return err;
}

static bool belongs(const struct sw_listener_conf *conf, const char *netns)
{
	return conf->netns && netns ? !strcmp(conf->netns, netns) : conf->netns == netns;
}

static int build_all(struct build *b, const char *netns)
{
	int err = 0;

	if (b->c->n_listeners >= SW_MAX_LISTENERS || b->c->n_pools > SW_MAX_POOLS)
		return sw_fail(b->err, -EINVAL, "more than %d listeners or %d pools",
			       SW_MAX_LISTENERS - 1, SW_MAX_POOLS);
	for (size_t i = 0; i < b->old->map[SW_T_LISTENERS].n; i++) {
		const struct sw_listener *l = sw_row(&b->old->map[SW_T_LISTENERS], i);

		if (l->port && l->answers < SW_MAX_ANSWERSETS)
			b->old_answers[l->answers] = true;
	}
	for (size_t i = 0; !err && i < b->c->n_listeners; i++)
		if (belongs(&b->c->listeners[i], netns))
			err = build_listener(b, &b->c->listeners[i], i + 1);
	return err ? err : sw_image_fits(b->old, b->new, b->err);
}

/* An image of b->c in b->new. -E2BIG: it cannot stand beside b->old. */
static int build_image(struct build *b, const char *netns)
{
	int ret = -ENOMEM;

	b->rendered = malloc(SET_BYTES);
	if (b->rendered)
		ret = sw_image_successor(b->new, b->old, false);
	if (!ret)
		ret = build_all(b, netns);
	if (ret)
		sw_image_free(b->new);
	free(b->rendered);
	return ret;
}

int sw_tables_write(const struct sw_maps *maps, const struct sw_config *c, const char *netns,
		    uint64_t now_ns, struct sw_error *err)
{
	struct sw_image old = {0}, none = {0}, new = {0};
	const struct sw_image *from = &old;
	struct sw_error why = {0};
	struct build b = {
		.c = c, .before = &old, .old = &old, .new = &new, .now_ns = now_ns, .err = &why};
	int ret;

	ret = sw_image_read(&old, maps, &why);
	if (!ret)
		ret = build_image(&b, netns);
	if (ret == -E2BIG && !sw_image_successor(&none, &old, true)) {
		/* No room for both at once: nothing is guarded at the moment of the change. */
		from = &none;
		b = (struct build){.c = c,
				   .before = &old,
				   .old = &none,
				   .new = &new,
				   .now_ns = now_ns,
				   .err = &why};
		ret = build_image(&b, netns);
		if (!ret)
			ret = sw_image_apply(maps, &old, &none, &why);
	}
	if (!ret)
		ret = sw_image_apply(maps, from, &new, &why);
	if (ret && new.map[SW_T_PORTS].n)
		sw_image_restore(maps, &old);
	if (ret)
		sw_fail(err, ret, "%s", why.text[0] ? why.text : strerror(-ret));
	sw_image_free(&old);
	sw_image_free(&none);
	sw_image_free(&new);
	return ret;
}

int sw_tables_write_local(const struct sw_maps *maps, struct sw_error *err)
{
	struct sw_rows have = {0},
		       want = {.key_size = sizeof(struct sw_local), .value_size = sizeof(uint32_t)};
	struct sw_local *list = calloc(SW_MAX_LOCAL, sizeof(*list));
	int n = list ? sw_iface_addresses(list, SW_MAX_LOCAL) : -ENOMEM;
	int ret = n < 0 ? n : sw_rows_read(&have, maps->local);
	const uint32_t yes = 1;

	for (int i = 0; !ret && i < n; i++)
		ret = sw_rows_set(&want, &list[i], &yes);
	/* Gone ones first: a full map must have room for new ones. */
	if (!ret)
		ret = sw_rows_drop(maps->local, &have, &want);
	if (!ret)
		ret = sw_rows_put(maps->local, &have, &want);
	sw_rows_free(&have);
	sw_rows_free(&want);
	free(list);
	return ret ? sw_fail(err, ret, "local addresses: %s", strerror(-ret)) : 0;
}
