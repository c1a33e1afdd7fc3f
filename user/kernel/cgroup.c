// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Finds the cgroup v2 directories that the operator means; see steer.h and cgroup.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "kernel/cgroup.h"
#include "kernel/steer.h"

#define TOP_ID	    1	 /* of the host's own top directory, in every kernel */
#define BY_ID	    0xfe /* a file handle that holds the number of a directory of cgroups */
#define IN_HOST	    "run spillwayd in the host's cgroup namespace (docker, podman: --cgroupns=host)"
#define UNIT_SUFFIX ".service"

/* ---- the hierarchy -------------------------------------------------------------------------- */

/* The first mount point of cgroup v2: at /sys/fs/cgroup, or beside v1 at /sys/fs/cgroup/unified. */
static int find_mount(const char *proc, char *out, size_t size, struct sw_error *err)
{
	char file[PATH_MAX], text[PATH_MAX];
	struct mntent entry;
	bool v1 = false, v2 = false;
	FILE *mounts;

	snprintf(file, sizeof(file), "%s/self/mounts", proc);
	mounts = setmntent(file, "re");
	if (!mounts)
		return sw_fail(err, -errno, "%s: %s", file, strerror(errno));
	while (!v2 && getmntent_r(mounts, &entry, text, sizeof(text))) {
		v1 |= !strcmp(entry.mnt_type, "cgroup");
		v2 = !strcmp(entry.mnt_type, "cgroup2");
		if (v2)
			snprintf(out, size, "%s", entry.mnt_dir);
	}
	endmntent(mounts);
	if (v2)
		return 0;
	return sw_fail(err, -EOPNOTSUPP,
		       "%s: steering and counting need cgroup v2; boot with "
		       "systemd.unified_cgroup_hierarchy=1, or mount it beside v1: "
		       "mkdir /run/cgroup2 && mount -t cgroup2 none /run/cgroup2",
		       v1 ? "only cgroup v1 is mounted" : "no cgroup file system is mounted");
}

int sw_cgroup_open(const char *path, uint64_t *id, struct sw_error *err)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct statfs fs = {0};
	struct stat st;

	if (fd < 0)
		return sw_fail(err, -errno, "cgroup %s: %s", path, strerror(errno));
	if (!fstatfs(fd, &fs) && fs.f_type == CGROUP2_SUPER_MAGIC && !fstat(fd, &st)) {
		*id = st.st_ino;
		return fd;
	}
	close(fd);
	return sw_fail(err, -EINVAL, "%s is not a directory of cgroup v2%s", path,
		       fs.f_type == CGROUP_SUPER_MAGIC ? " but of v1, which cannot steer or count"
						       : "");
}

bool sw_cgroup_is_removed(uint64_t id)
{
	union {
		struct file_handle handle;
		char room[sizeof(struct file_handle) + sizeof(id)];
	} by_id = {.handle = {.handle_bytes = sizeof(id), .handle_type = BY_ID}};
	struct sw_error none;
	char mount[PATH_MAX];
	int top, fd, e;

	if (find_mount("/proc", mount, sizeof(mount), &none))
		return false;
	top = open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	memcpy(by_id.handle.f_handle, &id, sizeof(id));
	fd = open_by_handle_at(top, &by_id.handle, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	e = errno;
	if (fd >= 0)
		close(fd);
	if (top >= 0)
		close(top);
	return fd < 0 && e == ESTALE;
}

bool sw_cgroup_is_container_top(const char *path, uint64_t id)
{
	char parent[PATH_MAX];
	struct statfs fs;

	snprintf(parent, sizeof(parent), "%s/..", path);
	return id != TOP_ID && !statfs(parent, &fs) && fs.f_type != CGROUP2_SUPER_MAGIC;
}

static void each_in_one(const char *path, void (*fn)(void *arg, long pid), void *arg)
{
	char file[PATH_MAX];
	FILE *f;
	long pid;

	snprintf(file, sizeof(file), "%s/cgroup.procs", path);
	f = fopen(file, "re");
	while (f && fscanf(f, "%ld", &pid) == 1)
		fn(arg, pid);
	if (f)
		fclose(f);
}

void sw_cgroup_each_process(const char *path, void (*fn)(void *arg, long pid), void *arg)
{
	struct dirent *entry;
	DIR *d = opendir(path);
	char below[PATH_MAX];

	each_in_one(path, fn, arg);
	while (d && (entry = readdir(d))) {
		if (entry->d_type != DT_DIR || *entry->d_name == '.')
			continue;
		snprintf(below, sizeof(below), "%s/%s", path, entry->d_name);
		sw_cgroup_each_process(below, fn, arg);
	}
	if (d)
		closedir(d);
}

/* ---- "/path" -------------------------------------------------------------------------------- */

static int by_path(const char *proc, const char *text, char *path, size_t size,
		   struct sw_error *err)
{
	struct sw_error none;
	char mount[PATH_MAX];
	uint64_t id;
	int fd = sw_cgroup_open(text, &id, err);

	if (fd >= 0) {
		close(fd);
		snprintf(path, size, "%s", text);
		return 0;
	}
	/* On a host without v2, that is what there is to say. */
	if (fd == -EINVAL && find_mount(proc, mount, sizeof(mount), &none) == -EOPNOTSUPP)
		return sw_fail(err, -EOPNOTSUPP, "%s", none.text);
	return fd;
}

/* ---- "pid:N" -------------------------------------------------------------------------------- */

/* The cgroup of a process as the kernel names it, "/a/b". */
static int read_membership(const char *proc, long pid, char *out, size_t size, struct sw_error *err)
{
	char file[PATH_MAX], line[PATH_MAX / 2];
	bool found = false;
	FILE *f;

	snprintf(file, sizeof(file), "%s/%ld/cgroup", proc, pid);
	f = fopen(file, "re");
	if (!f)
		return sw_fail(err, -ENOENT, "cgroup of process %ld: %s", pid,
			       errno == ENOENT ? "there is no such process" : strerror(errno));
	while (!found && fgets(line, sizeof(line), f)) {
		found = !strncmp(line, "0::/", 4);
		line[strcspn(line, "\n")] = 0;
		if (found)
			snprintf(out, size, "%s", line + 3);
	}
	fclose(f);
	return found ? 0 : sw_fail(err, -ENOENT, "process %ld is in no cgroup of v2", pid);
}

static int by_pid(const char *proc, const char *text, char *path, size_t size, struct sw_error *err)
{
	char mount[PATH_MAX / 2], in[PATH_MAX / 2], *end;
	long pid = strtol(text, &end, 10);
	int ret;

	if (pid <= 0 || *end)
		return sw_fail(err, -EINVAL, "cgroup pid:%s: not a process id", text);
	ret = find_mount(proc, mount, sizeof(mount), err);
	if (!ret)
		ret = read_membership(proc, pid, in, sizeof(in), err);
	if (ret)
		return ret;
	if (!strncmp(in, "/..", 3))
		return sw_fail(err, -ENOENT,
			       "process %ld is in a cgroup outside of what is seen here; " IN_HOST,
			       pid);
	snprintf(path, size, "%s%s", mount, strcmp(in, "/") ? in : "");
	if (access(path, F_OK))
		return sw_fail(err, -ENOENT,
			       "process %ld is in cgroup %s, which is not under %s; if this is a "
			       "container: " IN_HOST,
			       pid, in, mount);
	return 0;
}

/* ---- "unit:NAME" ---------------------------------------------------------------------------- */

struct search {
	const char *name;
	char *path; /* of the first that was found */
	size_t size;
	char second[PATH_MAX];
	unsigned n;
};

/* Goes through the tree under `dir`, not into what it has found. */
static void search(struct search *s, const char *dir)
{
	struct dirent *entry;
	DIR *d = opendir(dir);
	char path[PATH_MAX];

	while (d && s->n < 2 && (entry = readdir(d))) {
		if (entry->d_type != DT_DIR || !strcmp(entry->d_name, ".") ||
		    !strcmp(entry->d_name, "..") ||
		    snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name) >= (int)sizeof(path))
			continue;
		if (strcmp(entry->d_name, s->name))
			search(s, path);
		else if (s->n++ == 0)
			snprintf(s->path, s->size, "%s", path);
		else
			snprintf(s->second, sizeof(s->second), "%s", path);
	}
	if (d)
		closedir(d);
}

static int by_unit(const char *proc, const char *text, char *path, size_t size,
		   struct sw_error *err)
{
	char mount[PATH_MAX], name[NAME_MAX + 1];
	struct search s = {.name = name, .path = path, .size = size};
	int ret;

	if (!*text || strchr(text, '/') || strlen(text) + sizeof(UNIT_SUFFIX) > sizeof(name))
		return sw_fail(err, -EINVAL, "cgroup unit:%s: not the name of a unit", text);
	snprintf(name, sizeof(name), "%s%s", text, strchr(text, '.') ? "" : UNIT_SUFFIX);
	ret = find_mount(proc, mount, sizeof(mount), err);
	if (ret)
		return ret;
	search(&s, mount);
	if (s.n == 1)
		return 0;
	if (s.n)
		return sw_fail(err, -EINVAL, "unit %s has several cgroups, %s and %s: give a path",
			       name, path, s.second);
	return sw_fail(err, -ENOENT,
		       "no cgroup under %s is named %s: is the unit running? (systemctl status %s)",
		       mount, name, name);
}

/* ---- all ------------------------------------------------------------------------------------ */

int sw_cgroup_resolve_in(const char *proc, const char *text, char *path, size_t size,
			 struct sw_error *err)
{
	if (!text)
		return find_mount(proc, path, size, err);
	if (*text == '/')
		return by_path(proc, text, path, size, err);
	if (!strncmp(text, "pid:", 4))
		return by_pid(proc, text + 4, path, size, err);
	if (!strncmp(text, "unit:", 5))
		return by_unit(proc, text + 5, path, size, err);
	return sw_fail(err, -EINVAL, "cgroup %s: neither /PATH nor pid:N nor unit:NAME", text);
}

int sw_cgroup_resolve(const char *text, char *path, size_t size, struct sw_error *err)
{
	return sw_cgroup_resolve_in("/proc", text, path, size, err);
}
