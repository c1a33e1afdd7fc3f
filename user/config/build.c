// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Makes a checked configuration of a document: what concerns the daemon as a whole, here; pools in
 * pools.c, listeners in listeners.c. */
#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "config/build.h"

#define LEAST_FLOWS 1024

static void build_interfaces(const struct sw_place *top, const struct sw_doc *doc,
			     struct sw_config *c)
{
	c->interfaces = sw_take_array(top, doc->interfaces_count, sizeof(*c->interfaces));
	c->n_interfaces = c->interfaces ? doc->interfaces_count : 0;
	for (size_t i = 0; i < c->n_interfaces; i++) {
		const char *name = doc->interfaces[i];
		struct sw_place place = sw_part(top, "interfaces[%zu]", i);

		if (!name[0] || strlen(name) >= IFNAMSIZ || strpbrk(name, "/: \t"))
			sw_bad(&place, NULL,
			       "'%.100s' is not an interface; allowed: a name of 1 to %d bytes",
			       name, IFNAMSIZ - 1);
		for (size_t j = 0; j < i; j++)
			if (!strcmp(name, doc->interfaces[j]))
				sw_bad(&place, NULL, "'%s' is given twice; allowed: once", name);
		c->interfaces[i] = sw_take_text(&place, NULL, name);
	}
}

/* Without interfaces only loopback is guarded, which is rarely meant. */
static void check_reach(const struct sw_place *top, const struct sw_config *c)
{
	for (size_t i = 0; i < c->n_listeners && !c->n_interfaces; i++) {
		if (c->listeners[i].netns)
			continue;
		sw_warn(top, "interfaces", "none, so only clients on this host are shed");
		return;
	}
}

char *sw_build_control(const struct sw_place *top, const char *text)
{
	return sw_take_path(top, "control", text ? text : SW_DEFAULT_CONTROL,
			    sizeof(((struct sockaddr_un *)0)->sun_path));
}

char *sw_build_pin_root(const struct sw_place *top, const char *text)
{
	return sw_take_path(top, "pin_root", text ? text : "/sys/fs/bpf/spillway", PATH_MAX / 2);
}

enum sw_level sw_build_log_level(const struct sw_place *top, const char *text)
{
	static const char *const levels[] = {"error", "warning", "info", "debug", NULL};

	return (enum sw_level)sw_take_choice(top, "log_level", text, levels, SW_INFO);
}

/* Over TCP anybody may ask who can send a packet there, so a token is a must. */
static void build_control_tcp(const struct sw_place *top, const struct sw_doc *doc,
			      struct sw_config *c)
{
	const char *text = doc->control_tcp;
	bool v4, v6;

	c->control_token_file =
		sw_take_path(top, "control_token_file", doc->control_token_file, PATH_MAX);
	if (text && (!strchr(text, ':') || sw_parse_listener(text, c->control_tcp.addr, &v4, &v6,
							     &c->control_tcp.port, NULL)))
		sw_bad(top, "control_tcp",
		       "'%.100s' is not an address and port; allowed: ADDR:PORT or [ADDR6]:PORT, "
		       "no host name; [::] is every address, 0.0.0.0 every one of IPv4",
		       text);
	else if (text && !v6)
		memset(c->control_tcp.addr + 10, 0xff, 2);
	if (doc->control_tcp && !doc->control_token_file)
		sw_bad(top, "control_token_file",
		       "missing; it has to be given with control_tcp: a file with a secret of 16 "
		       "bytes or more");
	if (!doc->control_tcp && doc->control_token_file)
		sw_bad(top, "control_token_file", "never used; allowed: with control_tcp");
}

static void build_daemon(const struct sw_place *top, const struct sw_doc *doc, struct sw_config *c)
{
	static const char *const modes[] = {"auto", "xdp", "xdp-generic", "tc", NULL};

	c->attach = (enum sw_attach)sw_take_choice(top, "mode", doc->mode, modes, SW_ATTACH_AUTO);
	c->log_level = sw_build_log_level(top, doc->log_level);
	c->control = sw_build_control(top, doc->control);
	c->pin_root = sw_build_pin_root(top, doc->pin_root);
	build_control_tcp(top, doc, c);
	c->state_file = sw_take_path(top, "state_file", doc->state_file, PATH_MAX / 2);
	c->heartbeat_ms =
		(unsigned)sw_take_uint(top, "heartbeat_ms", doc->heartbeat_ms, 10, 10000, 200);
	c->established_flows =
		(unsigned)sw_take_uint(top, "established_flows", doc->established_flows,
				       LEAST_FLOWS, SW_MAX_FLOWS, SW_DEFAULT_FLOWS);
	/* one heartbeat may come late without the programs falling open */
	c->deadline_ms = (unsigned)sw_take_uint(top, "deadline_ms", doc->deadline_ms,
						2 * c->heartbeat_ms, 60000, 2000);
	if (!doc->deadline_ms && c->deadline_ms < 2 * c->heartbeat_ms)
		sw_bad(top, "heartbeat_ms",
		       "%u is over half of deadline_ms, %u; allowed: with a longer deadline_ms",
		       c->heartbeat_ms, c->deadline_ms);
}

int sw_config_build(const struct sw_doc *doc, const struct sw_origin *origin,
		    struct sw_config **out, struct sw_error *err)
{
	struct sw_build build = {.origin = origin, .error = err};
	struct sw_place top = {.build = &build};
	struct sw_traits traits[SW_MAX_POOLS];
	struct sw_config *c = calloc(1, sizeof(*c));

	if (!c)
		return sw_fail(err, -ENOMEM, "out of memory");
	c->file = sw_take_text(&top, NULL, origin->file);
	build_daemon(&top, doc, c);
	build_interfaces(&top, doc, c);
	sw_build_dynamo(&top, &doc->dynamo, &c->dynamo);
	sw_build_pools(&top, doc, c, traits);
	sw_check_discover(&top, c);
	sw_build_listeners(&top, doc, c, traits);
	sw_check_steer(&top, doc, c);
	sw_check_tables(&top, c);
	check_reach(&top, c);
	if (build.err)
		sw_config_free(c);
	else
		*out = c;
	return build.err;
}
