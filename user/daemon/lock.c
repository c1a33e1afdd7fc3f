// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A lock file for each pin root; see lock.h. It lies in /run since a bpf file system takes no plain
 * files and may not be mounted yet. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/lock.h"

#define DIRECTORY "/run/spillway"

/* /sys/fs/bpf/spillway: /run/spillway/sys-fs-bpf-spillway.lock */
static void make_path(struct sw_lock *lock, const char *pin_root)
{
	int at = snprintf(lock->path, sizeof(lock->path), DIRECTORY "/");

	snprintf(lock->path + at, sizeof(lock->path) - (size_t)at, "%s.lock",
		 pin_root + strspn(pin_root, "/"));
	for (char *s = lock->path + at; *s; s++)
		if (*s == '/')
			*s = '-';
}

int sw_lock_take(struct sw_lock *lock, const char *pin_root, struct sw_error *err)
{
	const char *advice = geteuid() ? "; spillwayd runs as root, or as a service with "
					 "RuntimeDirectory=spillway"
				       : "";
	struct stat st;

	make_path(lock, pin_root);
	if (mkdir(DIRECTORY, 0755) && errno != EEXIST)
		return sw_fail(err, -errno, "cannot make " DIRECTORY ": %s%s", strerror(errno),
			       advice);
	do {
		lock->fd = open(lock->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (lock->fd < 0)
			return sw_fail(err, -errno, "lock file %s: %s%s", lock->path,
				       strerror(errno), advice);
		if (flock(lock->fd, LOCK_EX | LOCK_NB)) {
			close(lock->fd);
			lock->fd = -1;
			return sw_fail(err, -EBUSY,
				       "another spillwayd uses %s; stop it, or give this one its "
				       "own --pin-root and --control",
				       pin_root);
		}
		if (fstat(lock->fd, &st) == 0 && st.st_nlink)
			return 0;
		close(lock->fd); /* its holder removed it between our open and lock */
	} while (1);
}

void sw_lock_drop(struct sw_lock *lock)
{
	if (lock->fd < 0)
		return;
	unlink(lock->path);
	close(lock->fd);
	lock->fd = -1;
	rmdir(DIRECTORY); /* stays while another daemon's files are in it */
}
