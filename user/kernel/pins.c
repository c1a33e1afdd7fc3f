// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Pins of a plane; see pins.h. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel/pins.h"
#include "kernel/probe.h"

#define BPFFS "/sys/fs/bpf"

static int make_dirs(const char *path)
{
	char part[PATH_MAX];

	snprintf(part, sizeof(part), "%s", path);
	for (char *s = strchr(part + 1, '/'); s; s = strchr(s + 1, '/')) {
		*s = 0;
		if (mkdir(part, 0700) && errno != EEXIST)
			return -errno;
		*s = '/';
	}
	return mkdir(part, 0700) && errno != EEXIST ? -errno : 0;
}

static int make_root(const char *root, struct sw_error *err)
{
	if (!sw_probe_bpffs(root) && !strncmp(root, BPFFS "/", strlen(BPFFS) + 1))
		mount("bpf", BPFFS, "bpf", 0, "mode=0700");
	if (!sw_probe_bpffs(root))
		return sw_fail(err, -ENOTDIR,
			       "%s is not in a bpf file system: mount -t bpf bpf " BPFFS, root);
	return 0;
}

/* Calls `fn` for each directory of this scope that another layout left. */
static void each_other_layout(struct sw_plane *p, void (*fn)(struct sw_plane *p, const char *dir))
{
	const char *scope = strrchr(p->dir, '/') + 1;
	struct dirent *entry;
	DIR *root = opendir(p->root);
	char dir[512];

	while (root && (entry = readdir(root))) {
		snprintf(dir, sizeof(dir), "%s/%s/%s", p->root, entry->d_name, scope);
		if (entry->d_name[0] == 'v' && strcmp(dir, p->dir) && !access(dir, F_OK))
			fn(p, dir);
	}
	if (root)
		closedir(root);
}

static void adopt(struct sw_plane *p, const char *dir)
{
	struct dirent *entry;
	DIR *d = opendir(dir);
	char from[1024], to[512];

	while (d && (entry = readdir(d))) {
		if (strncmp(entry->d_name, "link_", 5) && strncmp(entry->d_name, "clsact_", 7))
			continue;
		snprintf(from, sizeof(from), "%s/%s", dir, entry->d_name);
		snprintf(to, sizeof(to), "%s/%s", p->dir, entry->d_name);
		if (access(to, F_OK) && rename(from, to))
			sw_log(SW_WARN, "%s: %s", from, strerror(errno));
	}
	if (d)
		closedir(d);
}

static void remove_dir(struct sw_plane *p, const char *dir)
{
	struct dirent *entry;
	DIR *d = opendir(dir);
	char parent[512];

	(void)p;
	while (d && (entry = readdir(d)))
		unlinkat(dirfd(d), entry->d_name, 0); /* "." and ".." refuse */
	if (d)
		closedir(d);
	rmdir(dir);
	snprintf(parent, sizeof(parent), "%s", dir);
	*strrchr(parent, '/') = 0;
	rmdir(parent); /* refuses while another scope is in it */
}

/* Scopes that stand for an earlier life of the same named namespace. */
static void forget_earlier_lives(struct sw_plane *p)
{
	char layout[256], dir[1024], link[1100], target[256];
	struct dirent *entry;
	DIR *d;

	snprintf(layout, sizeof(layout), "%s/v%d", p->root, SW_LAYOUT);
	d = opendir(layout);
	while (d && (entry = readdir(d))) {
		ssize_t n;

		snprintf(dir, sizeof(dir), "%s/%s", layout, entry->d_name);
		snprintf(link, sizeof(link), "%s/netns", dir);
		n = readlink(link, target, sizeof(target) - 1);
		if (n < 0 || !strcmp(dir, p->dir))
			continue;
		target[n] = 0;
		if (!strcmp(target, p->netns))
			remove_dir(p, dir);
	}
	if (d)
		closedir(d);
}

int sw_pins_open(struct sw_plane *p, struct sw_error *err)
{
	char link[256];
	int ret;

	ret = make_root(p->root, err);
	if (ret)
		return ret;
	ret = make_dirs(p->dir);
	if (ret)
		return sw_fail(err, ret, "%s: %s%s", p->dir, strerror(-ret),
			       strchr(p->dir, '.') ? " (names there may not have dots)" : "");
	each_other_layout(p, adopt);
	if (p->netns) {
		forget_earlier_lives(p);
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
#define X(name)                                                                                    \
	if (!strcmp(bpf_map__name(map), #name))                                                    \
		return true;
	SW_MAPS(X)
#undef X
	return false;
}

static bool same_shape(const struct bpf_map *map, const struct bpf_map_info *pinned)
{
	bool answers = !strcmp(bpf_map__name(map), "answers");
	__u32 room = bpf_map__max_entries(map);

	return pinned->type == (__u32)bpf_map__type(map) &&
	       pinned->key_size == bpf_map__key_size(map) &&
	       pinned->value_size == bpf_map__value_size(map) &&
	       pinned->map_flags == bpf_map__map_flags(map) &&
	       (answers ? pinned->max_entries >= room : pinned->max_entries == room);
}

static void map_path(const struct sw_plane *p, const struct bpf_map *map, char *out, size_t size)
{
	snprintf(out, size, "%s/%s", p->dir, bpf_map__name(map));
}

int sw_pins_reuse_maps(struct sw_plane *p, struct bpf_object *obj, struct sw_error *err)
{
	struct bpf_map *map;
	char path[256];
	int ret = 0;

	bpf_object__for_each_map (map, obj) {
		struct bpf_map_info info = {0};
		__u32 size = sizeof(info);
		int fd;

		if (!is_pinned(map))
			continue;
		map_path(p, map, path, sizeof(path));
		fd = bpf_obj_get(path);
		if (fd < 0)
			continue;
		if (!bpf_obj_get_info_by_fd(fd, &info, &size) && same_shape(map, &info))
			ret = bpf_map__reuse_fd(map, fd);
		close(fd);
		if (ret)
			return sw_fail(err, ret, "%s cannot be used: %s", path, strerror(-ret));
	}
	return 0;
}

int sw_pins_publish_maps(struct sw_plane *p, struct bpf_object *obj, struct sw_error *err)
{
	struct bpf_map *map;
	char path[256];

	bpf_object__for_each_map (map, obj) {
		struct bpf_map_info pinned = {0}, own = {0};
		__u32 size = sizeof(own);
		int fd;

		if (!is_pinned(map))
			continue;
		map_path(p, map, path, sizeof(path));
		bpf_obj_get_info_by_fd(bpf_map__fd(map), &own, &size);
		fd = bpf_obj_get(path);
		if (fd >= 0) {
			size = sizeof(pinned);
			bpf_obj_get_info_by_fd(fd, &pinned, &size);
			close(fd);
			if (pinned.id == own.id)
				continue;
			unlink(path);
		}
		if (bpf_obj_pin(bpf_map__fd(map), path))
			return sw_fail(err, -errno, "pinning %s: %s", path, strerror(errno));
	}
	return 0;
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

void sw_pins_each(struct sw_plane *p, void (*fn)(struct sw_plane *p, const char *name))
{
	struct dirent *entry;
	DIR *d = opendir(p->dir);

	while (d && (entry = readdir(d)))
		fn(p, entry->d_name);
	if (d)
		closedir(d);
}

bool sw_pins_hold_links(struct sw_plane *p)
{
	char interface[IF_NAMESIZE];
	struct dirent *entry;
	DIR *d = opendir(p->dir);
	bool any = false;

	while (d && (entry = readdir(d)))
		any |= sw_pins_interface(entry->d_name, "link_tc", interface) ||
		       sw_pins_interface(entry->d_name, "link_xdp", interface) ||
		       sw_pins_interface(entry->d_name, "clsact", interface);
	if (d)
		closedir(d);
	return any;
}

void sw_pins_forget_others(struct sw_plane *p)
{
	each_other_layout(p, remove_dir);
}

void sw_pins_remove(struct sw_plane *p)
{
	remove_dir(p, p->dir);
	rmdir(p->root);
}
