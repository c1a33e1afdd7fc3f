// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The service manager's notification protocol; see notify.h. */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/notify.h"

void sw_notify(const char *fmt, ...)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	size_t n = path ? strlen(path) : 0;
	char message[512];
	va_list ap;
	int fd;

	if ((n && path[0] != '/' && path[0] != '@') || n < 2 || n >= sizeof(addr.sun_path))
		return;
	memcpy(addr.sun_path, path, n);
	if (path[0] == '@')
		addr.sun_path[0] = '\0'; /* an abstract socket */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	sendto(fd, message, strlen(message), MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&addr,
	       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
	close(fd);
}

unsigned sw_notify_watchdog_ms(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	unsigned long long allowed = usec ? strtoull(usec, NULL, 10) : 0;

	if (pid && strtol(pid, NULL, 10) != getpid())
		return 0;
	return (unsigned)(allowed / 2000);
}
