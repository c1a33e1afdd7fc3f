// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Directories of pins; see pindir.h. */
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

#include "kernel/pindir.h"
#include "kernel/probe.h"
#include <spillway/abi.h>

#define BPFFS "/sys/fs/bpf"

/* ---- directories ---------------------------------------------------------------------------- */

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

int sw_pindir_make(const char *root, const char *dir, struct sw_error *err)
{
	int ret;

	if (!sw_probe_bpffs(root) && !strncmp(root, BPFFS "/", strlen(BPFFS) + 1))
		mount("bpf", BPFFS, "bpf", 0, "mode=0700");
	if (!sw_probe_bpffs(root))
		return sw_fail(err, -ENOTDIR,
			       "%s is not in a bpf file system: mount -t bpf bpf " BPFFS, root);
	ret = make_dirs(dir);
	return ret ? sw_fail(err, ret, "%s: %s%s", dir, strerror(-ret),
			     strchr(dir, '.') ? " (names there may not have dots)" : "")
		   : 0;
}

void sw_pindir_remove_empty(const char *dir)
{
	char part[PATH_MAX];

	/* The directory, its layout's and the root; each refuses while something is in it. */
	snprintf(part, sizeof(part), "%s", dir);
	for (int i = 0; i < 3 && *part && !rmdir(part); i++)
		*strrchr(part, '/') = 0;
}

static void unlink_entry(void *arg, const char *dir, const char *name)
{
	char path[PATH_MAX];

	(void)arg;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	unlink(path);
}

void sw_pindir_remove(const char *dir)
{
	sw_pindir_each(dir, unlink_entry, NULL);
	sw_pindir_remove_empty(dir);
}

void sw_pindir_each(const char *dir, void (*fn)(void *arg, const char *dir, const char *name),
		    void *arg)
{
	struct dirent *entry;
	DIR *d = opendir(dir);

	while (d && (entry = readdir(d)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			fn(arg, dir, entry->d_name);
	if (d)
		closedir(d);
}

struct others {
	const char *name;
	void (*fn)(void *arg, const char *dir);
	void *arg;
};

static void visit_layout(void *arg, const char *root, const char *layout)
{
	struct others *o = arg;
	char own[16], dir[PATH_MAX];

	snprintf(own, sizeof(own), "v%d", SW_LAYOUT);
	snprintf(dir, sizeof(dir), "%s/%s/%s", root, layout, o->name);
	if (*layout == 'v' && strcmp(layout, own) && !access(dir, F_OK))
		o->fn(o->arg, dir);
}

void sw_pindir_each_other(const char *root, const char *name,
			  void (*fn)(void *arg, const char *dir), void *arg)
{
	struct others o = {.name = name, .fn = fn, .arg = arg};

	sw_pindir_each(root, visit_layout, &o);
}

/* ---- maps ----------------------------------------------------------------------------------- */

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

int sw_pindir_reuse(const char *dir, struct bpf_object *obj, sw_pindir_which *which,
		    struct sw_error *err)
{
	struct bpf_map *map;
	char path[256];
	int ret = 0;

	bpf_object__for_each_map (map, obj) {
		struct bpf_map_info info = {0};
		__u32 size = sizeof(info);
		int fd;

		if (!which(map))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, bpf_map__name(map));
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

/* Is it this very map that is pinned there? What else is there is taken off. */
static bool is_pinned(const char *path, int map)
{
	struct bpf_map_info pinned = {0}, own = {0};
	__u32 size = sizeof(own);
	int fd = bpf_obj_get(path);

	if (fd < 0)
		return false;
	bpf_obj_get_info_by_fd(map, &own, &size);
	size = sizeof(pinned);
	bpf_obj_get_info_by_fd(fd, &pinned, &size);
	close(fd);
	if (pinned.id != own.id)
		unlink(path);
	return pinned.id == own.id;
}

int sw_pindir_publish(const char *dir, struct bpf_object *obj, sw_pindir_which *which,
		      struct sw_error *err)
{
	struct bpf_map *map;
	char path[256];

	bpf_object__for_each_map (map, obj) {
		if (!which(map))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, bpf_map__name(map));
		if (!is_pinned(path, bpf_map__fd(map)) && bpf_obj_pin(bpf_map__fd(map), path))
			return sw_fail(err, -errno, "pinning %s: %s", path, strerror(errno));
	}
	return 0;
}
