// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A file that is replaced as a whole; see state_file.h. At any moment, also when the machine stops,
 * it is either the old one or the new one. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/state_file.h"

struct sw_state_file {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more;
	char *next; /* to be written, or NULL */
	bool ends, failing;
	char *path, *temporary;
};

/* ---- reading ------------------------------------------------------------------------------ */

static int read_all(int fd, char **text, size_t *length)
{
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_size > SW_STATE_MAX)
		return -EFBIG;
	*text = malloc((size_t)st.st_size + 1);
	if (!*text)
		return -ENOMEM;
	*length = 0;
	while ((n = read(fd, *text + *length, (size_t)st.st_size - *length)) > 0)
		*length += (size_t)n;
	(*text)[*length] = '\0';
	return n < 0 ? -errno : 0;
}

int sw_state_file_read(const char *path, char **text, size_t *length, struct sw_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), e;

	*text = NULL;
	if (fd < 0 && errno == ENOENT)
		return 0;
	e = fd < 0 ? -errno : read_all(fd, text, length);
	if (fd >= 0)
		close(fd);
	if (!e)
		return 0;
	free(*text);
	*text = NULL;
	return sw_fail(err, e, "cannot be read (%s)",
		       e == -EINVAL ? "it is no regular file" : strerror(-e));
}

int sw_state_file_set_aside(const char *path, struct sw_error *err)
{
	char *bad = NULL;
	int e;

	if (asprintf(&bad, "%s.bad", path) < 0)
		return sw_fail(err, -ENOMEM, "no memory");
	e = rename(path, bad) ? -errno : 0;
	if (e)
		sw_fail(err, e, "cannot be kept as %s (%s)", bad, strerror(-e));
	free(bad);
	return e;
}

/* ---- writing ------------------------------------------------------------------------------ */

static int write_all(int fd, const char *text, size_t n)
{
	while (n) {
		ssize_t k = write(fd, text, n);

		if (k < 0)
			return -errno;
		text += k;
		n -= (size_t)k;
	}
	return fsync(fd) ? -errno : 0;
}

/* A new name lasts when its directory is on the disk. */
static int sync_directory(const char *path)
{
	char *dir = strndup(path, (size_t)(strrchr(path, '/') - path) + 1);
	int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	int e = fd < 0 || fsync(fd) ? -errno : 0;

	if (fd >= 0)
		close(fd);
	free(dir);
	return e;
}

static int replace(const struct sw_state_file *s, const char *text)
{
	int fd = open(s->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
	int e = fd < 0 ? -errno : write_all(fd, text, strlen(text));

	if (fd >= 0 && close(fd) && !e)
		e = -errno;
	if (!e && rename(s->temporary, s->path))
		e = -errno;
	if (e) {
		unlink(s->temporary);
		return e;
	}
	return sync_directory(s->path);
}

static void keep(struct sw_state_file *s, const char *text)
{
	int e = replace(s, text);

	if (e && !s->failing)
		sw_log(SW_ERROR,
		       "state_file %s cannot be written (%s): what is set over the API holds, but "
		       "not after a restart",
		       s->path, strerror(-e));
	else if (!e && s->failing)
		sw_log(SW_INFO, "state_file %s is written again", s->path);
	s->failing = e != 0;
}

static void *run(void *arg)
{
	struct sw_state_file *s = arg;

	pthread_mutex_lock(&s->lock);
	while (s->next || !s->ends) {
		char *text = s->next;

		if (!text) {
			pthread_cond_wait(&s->more, &s->lock);
			continue;
		}
		s->next = NULL;
		pthread_mutex_unlock(&s->lock);
		keep(s, text);
		free(text);
		pthread_mutex_lock(&s->lock);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* Signals are for the thread that has the event loop. */
static int start(struct sw_state_file *s)
{
	sigset_t all, before;
	int e;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	e = pthread_create(&s->thread, NULL, run, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -e;
}

static void release(struct sw_state_file *s)
{
	free(s->next);
	free(s->path);
	free(s->temporary);
	free(s);
}

int sw_state_file_new(struct sw_state_file **out, const char *path, struct sw_error *err)
{
	struct sw_state_file *s = calloc(1, sizeof(*s));
	int e = -ENOMEM;

	if (!s)
		return sw_fail(err, e, "no memory");
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->more, NULL);
	s->path = strdup(path);
	if (asprintf(&s->temporary, "%s.new", path) < 0)
		s->temporary = NULL;
	if (s->path && s->temporary)
		e = start(s);
	if (e) {
		release(s);
		return sw_fail(err, e, "state_file: cannot start to write it: %s", strerror(-e));
	}
	*out = s;
	return 0;
}

void sw_state_file_write(struct sw_state_file *s, char *text)
{
	if (!s || !text) {
		free(text);
		return;
	}
	pthread_mutex_lock(&s->lock);
	free(s->next);
	s->next = text;
	pthread_cond_signal(&s->more);
	pthread_mutex_unlock(&s->lock);
}

void sw_state_file_free(struct sw_state_file *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->ends = true;
	pthread_cond_signal(&s->more);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	release(s);
}
