/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Words to the service manager: systemd's notification protocol, one datagram a message. Without
 * NOTIFY_SOCKET in the environment nothing is sent. */
#ifndef SPILLWAY_NOTIFY_H
#define SPILLWAY_NOTIFY_H

/* Sends "READY=1", "RELOADING=1\nMONOTONIC_USEC=...", "STOPPING=1", "WATCHDOG=1", "STATUS=...". */
__attribute__((format(printf, 1, 2))) void sw_notify(const char *fmt, ...);

/* How often the manager wants WATCHDOG=1, in ms: half of what it allows this process. 0: never. */
unsigned sw_notify_watchdog_ms(void);

#endif
