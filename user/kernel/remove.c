// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Takes everything off the host; see remove.h. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/destroy.h"
#include "kernel/keep.h"
#include "kernel/link.h"
#include "kernel/pindir.h"
#include "kernel/pins.h"
#include "kernel/probe.h"
#include "kernel/remove.h"
#include "kernel/tc.h"

/* The namespace of a scope in the operator's words; false: the host's own. */
static bool read_netns(const char *dir, char *out, size_t size)
{
	char link[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "%s/netns", dir);
	n = readlink(link, out, size - 1);
	out[n < 0 ? 0 : n] = 0;
	return n >= 0;
}

static void remove_filter(void *arg, const char *dir, const char *name)
{
	char interface[IF_NAMESIZE];

	(void)dir;
	if (sw_pins_interface(name, "clsact", interface))
		sw_tc_remove_filters(arg, interface);
}

/* Enters the very namespace of a scope; false: it is gone. */
static bool enter(const char *dir, const char *scope, int *former)
{
	struct sw_netns_id here;
	char netns[256];
	bool named = read_netns(dir, netns, sizeof(netns));

	if ((!named && strcmp(scope, "host")) || sw_netns_enter(named ? netns : NULL, former, NULL))
		return false;
	if (!named ||
	    (!sw_netns_identify(&here) && here.ino == strtoul(scope + strlen("netns-"), NULL, 10)))
		return true;
	sw_netns_leave(*former);
	return false;
}

static void end_connections(const char *dir)
{
	int n = sw_flows_destroy(dir);

	if (n < 0)
		sw_log(SW_WARN,
		       "connections on which requests were shed cannot be ended, they may hang: %s",
		       strerror(-n));
	else if (n)
		sw_log(SW_INFO, "%d connections on which requests were shed are reset", n);
}

/* Connections first, while their numbers are translated yet; before them the shedding, which a
 * daemon that was killed leaves on until its deadline. Filters have to be looked for where they
 * are, and only in that very namespace. */
static void remove_scope(void *arg, const char *layout, const char *scope)
{
	struct sw_plane p = {0};
	int former;
	bool there;

	(void)arg;
	snprintf(p.dir, sizeof(p.dir), "%s/%s", layout, scope);
	there = enter(p.dir, scope, &former);
	sw_keep_stop_pinned(&p);
	if (there)
		end_connections(p.dir);
	sw_link_remove_all(p.dir);
	if (there) {
		sw_pindir_each(p.dir, remove_filter, &p);
		sw_netns_leave(former);
	}
	sw_pindir_remove(p.dir);
}

static void remove_layout(void *arg, const char *root, const char *layout)
{
	char dir[PATH_MAX];
	int *left = arg;

	if (*layout != 'v')
		return;
	snprintf(dir, sizeof(dir), "%s/%s", root, layout);
	sw_pindir_each(dir, remove_scope, NULL);
	rmdir(dir);
	*left += !access(dir, F_OK);
}

struct kept {
	const char *const *netns;
	size_t n;
};

static void remove_unless_kept(void *arg, const char *layout, const char *scope)
{
	const struct kept *kept = arg;
	char dir[PATH_MAX / 2], netns[256];
	bool named;

	if (strcmp(scope, "host") && strncmp(scope, "netns-", strlen("netns-")))
		return;
	snprintf(dir, sizeof(dir), "%s/%s", layout, scope);
	named = read_netns(dir, netns, sizeof(netns));
	for (size_t i = 0; i < kept->n; i++)
		if (named ? kept->netns[i] && !strcmp(kept->netns[i], netns) : !kept->netns[i])
			return;
	remove_scope(NULL, layout, scope);
}

void sw_host_remove_others(const char *pin_root, const char *const *netns, size_t n)
{
	struct kept kept = {.netns = netns, .n = n};
	char layout[PATH_MAX];

	snprintf(layout, sizeof(layout), "%s/v%d", pin_root, SW_LAYOUT);
	sw_pindir_each(layout, remove_unless_kept, &kept);
}

int sw_host_remove(const char *pin_root, struct sw_error *err)
{
	int left = 0;

	if (access(pin_root, F_OK) && errno == ENOENT)
		return 0;
	if (!sw_probe_caps())
		return sw_fail(err, -EPERM,
			       "taking programs off needs CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON: "
			       "run as root");
	sw_pindir_each(pin_root, remove_layout, &left);
	return left ? sw_fail(err, -EBUSY, "not all of %s could be removed", pin_root) : 0;
}
