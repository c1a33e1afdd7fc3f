// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which interfaces a plane guards: those that are named, or all that are up; see attach.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/attach.h"
#include "kernel/iface.h"

static int get_named(const char *name, const char *netns, struct sw_iface *out,
		     struct sw_error *err)
{
	int ret = sw_iface_get(name, out);

	if (ret)
		return sw_fail(err, ret, "interface %s%s%s: %s", name, netns ? " in " : "",
			       netns ? netns : "",
			       ret == -ENODEV ? "there is none of this name: ip link"
					      : strerror(-ret));
	if (!out->ethernet && !out->loopback)
		return sw_fail(err, -EPFNOSUPPORT,
			       "interface %s: only Ethernet and loopback can be guarded; name the "
			       "Ethernet interface under it",
			       name);
	return 0;
}

/* The named ones, each once, and lo for local clients. */
static int list_named(const struct sw_plane *p, struct sw_iface *out, struct sw_error *err)
{
	struct sw_iface lo;
	size_t n = 0;

	for (size_t i = 0; i < p->n_interfaces; i++) {
		int ret;

		if (sw_iface_find(out, n, p->interfaces[i]))
			continue;
		ret = get_named(p->interfaces[i], p->netns, &out[n], err);
		if (ret)
			return ret;
		n++;
	}
	if (!sw_iface_find(out, n, "lo") && !sw_iface_get("lo", &lo) && lo.up)
		out[n++] = lo;
	return n;
}

/* All that can be guarded and are up. */
static int list_up(struct sw_iface **out)
{
	int all = sw_iface_list(out), n = 0;

	for (int i = 0; i < all; i++)
		if ((*out)[i].up && ((*out)[i].ethernet || (*out)[i].loopback))
			(*out)[n++] = (*out)[i];
	return all < 0 ? all : n;
}

int sw_attach_list(const struct sw_plane *p, struct sw_iface **out, struct sw_error *err)
{
	struct sw_iface *list = NULL;
	struct sw_error why = {0};
	int n;

	if (p->netns && !p->n_interfaces) {
		n = list_up(&list);
	} else {
		list = calloc(p->n_interfaces + 1, sizeof(*list));
		n = list ? list_named(p, list, &why) : -ENOMEM;
	}
	if (!n)
		n = sw_fail(&why, -ENODEV, "no interface is up%s%s", p->netns ? " in " : "",
			    p->netns ? p->netns : "");
	if (n < 0) {
		free(list);
		return sw_fail(err, n, "%s", why.text[0] ? why.text : strerror(-n));
	}
	*out = list;
	return n;
}
