// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Dynamo's file store, see filestore.h: the directories are gone through again and again, a few
 * hundred files a turn, and a file is read only when it is another one than last time. inotify
 * only says that it is time to look. */
#include <curl/curl.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "sources/filestore.h"

#define LOOK_MS	     1000 /* between two looks */
#define LOOK_SOON_MS 50	  /* after a change */
#define TURN_FILES   200  /* looked at before others get their turn */
#define FILES_MAX    (2 * SW_MEMBERS_MAX)

static const char *const buckets[] = {"instances", "mdc", "event_channels"};
#define BUCKETS (sizeof(buckets) / sizeof(buckets[0]))

struct file { /* as it was last read */
	char *key;
	uint64_t inode, size;
	struct statx_timestamp born;
	unsigned look; /* the last one that found it */
};

struct sw_filestore {
	struct sw_members *members;
	char *path;
	int inotify;
	struct event *changed, *timer;
	bool soon;  /* the timer is set because of a change */
	void *tree; /* of struct file, by key */
	size_t n;
	unsigned look;
	size_t bucket; /* the one that is gone through; BUCKETS: none is */
	DIR *dir;      /* of it, NULL: it was not opened yet */
	struct sw_store_status status;
};

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct file *)a)->key, ((const struct file *)b)->key);
}

static void free_file(void *arg)
{
	struct file *f = arg;

	free(f->key);
	free(f);
}

static void look_in(struct sw_filestore *s, unsigned ms)
{
	struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

	evtimer_add(s->timer, &tv);
}

/* ---- one file ------------------------------------------------------------------------------- */

static bool is_alive(const struct statx *st)
{
	struct timespec now;
	int64_t age_ms;

	clock_gettime(CLOCK_REALTIME, &now);
	age_ms = (now.tv_sec - st->stx_mtime.tv_sec) * 1000 +
		 (now.tv_nsec - (long)st->stx_mtime.tv_nsec) / 1000000;
	return age_ms <= SW_FILE_LIFE_MS;
}

/* The file of that key; a new one when there was none. NULL: no room. */
static struct file *file_of(struct sw_filestore *s, const char *key)
{
	struct file wanted = {.key = (char *)key}, **at = tfind(&wanted, &s->tree, by_key), *f;

	if (at)
		return *at;
	f = s->n < FILES_MAX ? calloc(1, sizeof(*f)) : NULL;
	if (!f)
		return NULL;
	f->key = strdup(key);
	if (!f->key || !tsearch(f, &s->tree, by_key)) {
		free_file(f);
		return NULL;
	}
	s->n++;
	return f;
}

static bool is_same(const struct file *f, const struct statx *st)
{
	return f->inode == st->stx_ino && f->size == st->stx_size &&
	       f->born.tv_sec == st->stx_btime.tv_sec && f->born.tv_nsec == st->stx_btime.tv_nsec;
}

/* False: it could not be read; it is looked at again next time. */
static bool read_value(struct sw_filestore *s, int dir, const char *name, const char *key)
{
	static char value[SW_VALUE_MAX + 1];
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, value, sizeof(value));

	if (fd >= 0)
		close(fd);
	if (n >= 0)
		sw_members_put(s->members, key, value, (size_t)n);
	return n >= 0;
}

static void look_at(struct sw_filestore *s, int dir, const char *name)
{
	const unsigned mask = STATX_TYPE | STATX_INO | STATX_SIZE | STATX_MTIME | STATX_BTIME;
	char key[NAME_MAX + 32], *decoded;
	struct statx st;
	struct file *f;
	int length = 0;

	if (name[0] == '.') /* ".", "..", ".tmp_..." that are not complete yet */
		return;
	if (statx(dir, name, AT_SYMLINK_NOFOLLOW, mask, &st) || !S_ISREG(st.stx_mode) ||
	    !is_alive(&st))
		return;
	decoded = curl_easy_unescape(NULL, name, 0, &length);
	if (!decoded || strlen(decoded) != (size_t)length) {
		curl_free(decoded);
		return; /* a NUL in it: nobody's */
	}
	snprintf(key, sizeof(key), SW_KEY_ROOT "%s/%s", buckets[s->bucket], decoded);
	curl_free(decoded);
	f = file_of(s, key);
	if (!f)
		return;
	f->look = s->look;
	if (!is_same(f, &st) && read_value(s, dir, name, key)) {
		f->inode = st.stx_ino;
		f->size = st.stx_size;
		f->born = st.stx_btime;
	}
}

/* ---- all of them ---------------------------------------------------------------------------- */

static void watch(struct sw_filestore *s, const char *path)
{
	const uint32_t mask = IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVE | IN_ONLYDIR;

	/* not there, or no watch left: the next look comes in a second anyway */
	inotify_add_watch(s->inotify, path, mask);
}

static void bucket_path(const struct sw_filestore *s, size_t bucket, char out[PATH_MAX])
{
	snprintf(out, PATH_MAX, "%s/" SW_KEY_ROOT "%s", s->path, buckets[bucket]);
}

static void fail(struct sw_filestore *s, const char *path)
{
	int ret = errno;

	s->status.errors++;
	if (s->status.state != SW_STORE_FAILING)
		sw_log(SW_WARN, "%s cannot be read: %s; members stay as they were last told", path,
		       strerror(ret));
	s->status.state = SW_STORE_FAILING;
	s->status.error_ms = sw_now_ms();
	sw_fail(&s->status.error, -ret, "%.300s cannot be read: %s", path, strerror(ret));
	s->bucket = BUCKETS;
	look_in(s, LOOK_MS);
}

static bool begin(struct sw_filestore *s)
{
	char path[PATH_MAX];

	watch(s, s->path);
	snprintf(path, sizeof(path), "%s/" SW_KEY_ROOT, s->path);
	watch(s, path);
	for (size_t i = 0; i < BUCKETS; i++) {
		bucket_path(s, i, path);
		watch(s, path);
	}
	if (access(s->path, R_OK | X_OK)) {
		fail(s, s->path);
		return false;
	}
	s->look++;
	s->bucket = 0;
	return true;
}

struct gone {
	unsigned look;
	struct file **files;
	size_t n;
};

static void collect_gone(const void *node, VISIT visit, void *arg)
{
	struct file *f = *(struct file *const *)node;
	struct gone *gone = arg;

	if ((visit == postorder || visit == leaf) && f->look != gone->look)
		gone->files[gone->n++] = f;
}

/* What this look has not found is no more. */
static void end(struct sw_filestore *s)
{
	struct gone gone = {.look = s->look, .files = calloc(s->n + 1, sizeof(struct file *))};

	if (gone.files)
		twalk_r(s->tree, collect_gone, &gone);
	for (size_t i = 0; i < gone.n; i++) {
		sw_members_delete(s->members, gone.files[i]->key);
		tdelete(gone.files[i], &s->tree, by_key);
		free_file(gone.files[i]);
		s->n--;
	}
	free(gone.files);
	if (s->status.state != SW_STORE_OK)
		sw_log(SW_INFO, "%s: members are read and watched", s->path);
	s->status.state = SW_STORE_OK;
	s->status.at_ms = sw_now_ms();
	look_in(s, LOOK_MS);
}

/* Opens the bucket whose turn it is, if it is there. False: the look has failed. */
static bool open_bucket(struct sw_filestore *s)
{
	char path[PATH_MAX];

	bucket_path(s, s->bucket, path);
	s->dir = opendir(path);
	if (!s->dir && errno != ENOENT) {
		fail(s, path);
		return false;
	}
	if (!s->dir)
		s->bucket++;
	return true;
}

/* Goes on for a turn. */
static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct sw_filestore *s = arg;
	struct dirent *entry;

	(void)fd;
	(void)what;
	s->soon = false;
	if (s->bucket == BUCKETS && !begin(s))
		return;
	for (int i = 0; i < TURN_FILES && s->bucket < BUCKETS; i++) {
		if (!s->dir && !open_bucket(s))
			return;
		entry = s->dir ? readdir(s->dir) : NULL;
		if (entry) {
			look_at(s, dirfd(s->dir), entry->d_name);
		} else if (s->dir) {
			closedir(s->dir);
			s->dir = NULL;
			s->bucket++;
		}
	}
	if (s->bucket < BUCKETS)
		look_in(s, 0);
	else
		end(s);
}

static void on_change(evutil_socket_t fd, short what, void *arg)
{
	struct sw_filestore *s = arg;
	char events[4096];

	(void)what;
	if (read(fd, events, sizeof(events)) <= 0 || s->soon || s->bucket < BUCKETS)
		return;
	s->soon = true; /* what follows must not put it off */
	look_in(s, LOOK_SOON_MS);
}

int sw_filestore_new(struct sw_filestore **out, struct event_base *base, const char *path,
		     struct sw_members *members, struct sw_error *err)
{
	struct sw_filestore *s = calloc(1, sizeof(*s));

	if (!s)
		return sw_fail(err, -ENOMEM, "cannot follow %s: no memory", path);
	s->members = members;
	s->bucket = BUCKETS;
	s->path = strdup(path);
	s->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	s->timer = evtimer_new(base, on_timer, s);
	if (s->inotify >= 0)
		s->changed = event_new(base, s->inotify, EV_READ | EV_PERSIST, on_change, s);
	if (!s->path || !s->timer || (s->inotify >= 0 && !s->changed)) {
		sw_filestore_free(s);
		return sw_fail(err, -ENOMEM, "cannot follow %s: no memory", path);
	}
	if (s->changed)
		event_add(s->changed, NULL);
	snprintf(s->status.name, sizeof(s->status.name), "%s", path);
	look_in(s, 0);
	*out = s;
	return 0;
}

void sw_filestore_free(struct sw_filestore *s)
{
	if (!s)
		return;
	if (s->dir)
		closedir(s->dir);
	if (s->changed)
		event_free(s->changed);
	if (s->inotify >= 0)
		close(s->inotify);
	if (s->timer)
		event_free(s->timer);
	tdestroy(s->tree, free_file);
	free(s->path);
	free(s);
}

const struct sw_store_status *sw_filestore_status(const struct sw_filestore *s)
{
	return &s->status;
}
