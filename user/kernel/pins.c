// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Pins of a plane; see pins.h. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernel/pindir.h"
#include "kernel/pins.h"

static bool is_attachment(const char *name)
{
	return !strncmp(name, "link_", 5) || !strncmp(name, "clsact_", 7);
}

static void adopt_entry(void *arg, const char *dir, const char *name)
{
	const struct sw_plane *p = arg;
	char from[1024], to[512];

	if (!is_attachment(name))
		return;
	snprintf(from, sizeof(from), "%s/%s", dir, name);
	snprintf(to, sizeof(to), "%s/%s", p->dir, name);
	if (access(to, F_OK) && rename(from, to))
		sw_log(SW_WARN, "%s: %s", from, strerror(errno));
}

static void adopt(void *arg, const char *dir)
{
	sw_pindir_each(dir, adopt_entry, arg);
}

static void forget(void *arg, const char *dir)
{
	(void)arg;
	sw_pindir_remove(dir);
}

/* The same named namespace, but the scope stands for an earlier life of it. */
static void forget_earlier_life(void *arg, const char *layout, const char *name)
{
	const struct sw_plane *p = arg;
	char dir[1024], link[1100], target[256];
	ssize_t n;

	snprintf(dir, sizeof(dir), "%s/%s", layout, name);
	snprintf(link, sizeof(link), "%s/netns", dir);
	n = readlink(link, target, sizeof(target) - 1);
	if (n < 0 || !strcmp(dir, p->dir))
		return;
	target[n] = 0;
	if (!strcmp(target, p->netns))
		sw_pindir_remove(dir);
}

static const char *scope(const struct sw_plane *p)
{
	return strrchr(p->dir, '/') + 1;
}

int sw_pins_open(struct sw_plane *p, struct sw_error *err)
{
	char layout[256], link[256];
	int ret = sw_pindir_make(p->root, p->dir, err);

	if (ret)
		return ret;
	sw_pindir_each_other(p->root, scope(p), adopt, p);
	if (p->netns) {
		snprintf(layout, sizeof(layout), "%s/v%d", p->root, SW_LAYOUT);
		sw_pindir_each(layout, forget_earlier_life, p);
		snprintf(link, sizeof(link), "%s/netns", p->dir);
		unlink(link);
		if (symlink(p->netns, link))
			sw_log(SW_DEBUG, "%s: %s", link, strerror(errno));
	}
	return 0;
}

/* Scratch maps are not part of the interface and stay with their programs. */
static bool is_pinned(const struct bpf_map *map)
{
	static const char *const optional[] = {"responding", "flows", "flow_use", "counts_keep",
					       "pipelining"};

	if (!bpf_map__autocreate(map))
		return false;
	for (size_t i = 0; i < sizeof(optional) / sizeof(*optional); i++)
		if (!strcmp(bpf_map__name(map), optional[i]))
			return true;
#define X(name)                                                                                    \
	if (!strcmp(bpf_map__name(map), #name))                                                    \
		return true;
	SW_MAPS(X)
#undef X
	return false;
}

int sw_pins_reuse_maps(struct sw_plane *p, struct bpf_object *obj, struct sw_error *err)
{
	return sw_pindir_reuse(p->dir, obj, is_pinned, err);
}

int sw_pins_publish_maps(struct sw_plane *p, struct bpf_object *obj, struct sw_error *err)
{
	return sw_pindir_publish(p->dir, obj, is_pinned, err);
}

void sw_pins_path(const struct sw_plane *p, const char *hook, const char *interface, char *out,
		  size_t size)
{
	size_t at = snprintf(out, size, "%s/%s_", p->dir, hook);

	snprintf(out + at, size - at, "%s", interface);
	for (; out[at]; at++)
		if (out[at] == '.')
			out[at] = ':';
}

bool sw_pins_interface(const char *name, const char *hook, char interface[IF_NAMESIZE])
{
	size_t n = strlen(hook);

	if (strncmp(name, hook, n) || name[n] != '_')
		return false;
	snprintf(interface, IF_NAMESIZE, "%s", name + n + 1);
	for (char *s = interface; *s; s++)
		if (*s == ':')
			*s = '.';
	return true;
}

struct each {
	struct sw_plane *p;
	void (*fn)(struct sw_plane *p, const char *name);
};

static void visit(void *arg, const char *dir, const char *name)
{
	const struct each *e = arg;

	(void)dir;
	e->fn(e->p, name);
}

void sw_pins_each(struct sw_plane *p, void (*fn)(struct sw_plane *p, const char *name))
{
	struct each e = {.p = p, .fn = fn};

	sw_pindir_each(p->dir, visit, &e);
}

static void look_for_attachment(void *arg, const char *dir, const char *name)
{
	bool *any = arg;

	(void)dir;
	*any |= is_attachment(name);
}

bool sw_pins_hold_links(struct sw_plane *p)
{
	bool any = false;

	sw_pindir_each(p->dir, look_for_attachment, &any);
	return any;
}

void sw_pins_forget_others(struct sw_plane *p)
{
	sw_pindir_each_other(p->root, scope(p), forget, NULL);
}

void sw_pins_remove(struct sw_plane *p)
{
	sw_pindir_remove(p->dir);
}
