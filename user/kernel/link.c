// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Pinned BPF links; see link.h. */
#include <bpf/bpf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernel/link.h"
#include "kernel/pindir.h"

uint64_t sw_link_target(int link)
{
	struct bpf_link_info info = {0};
	__u32 size = sizeof(info);

	if (bpf_obj_get_info_by_fd(link, &info, &size))
		return 0;
	switch (info.type) {
	case BPF_LINK_TYPE_CGROUP: return info.cgroup.cgroup_id;
	case BPF_LINK_TYPE_NETNS: return info.netns.netns_ino;
	/* A TCX link has its interface at the same place, in headers newer than Debian 12's. */
	default: return info.xdp.ifindex;
	}
}

int sw_link_take_over(const struct sw_link_at *at, int prog)
{
	int link = bpf_obj_get(at->pin);

	if (link < 0)
		return -ENOENT;
	if (sw_link_target(link) == at->id && !bpf_link_update(link, prog, NULL))
		return link;
	sw_link_remove(at->pin, link);
	return -ENOENT;
}

/* Of headers newer than Debian 12's. */
#define TCX_BEFORE  (1U << 3)
#define TCX_BY_LINK (1U << 13)

int sw_link_make(const struct sw_link_at *at, int prog)
{
	/* What a TCX link is relative to stands where BTF ids of other kinds do. */
	LIBBPF_OPTS(bpf_link_create_opts, opts, .target_btf_id = (__u32)at->before,
		    .flags = at->flags | (at->before ? TCX_BEFORE | TCX_BY_LINK : 0));
	int err, link = bpf_link_create(prog, at->target, at->type, &opts);

	if (link < 0)
		return -errno;
	if (bpf_obj_pin(link, at->pin)) {
		err = -errno;
		close(link);
		return err;
	}
	return link;
}

void sw_link_remove(const char *pin, int link)
{
	unlink(pin);
	bpf_link_detach(link);
	close(link);
}

void sw_link_remove_pinned(const char *pin)
{
	int link = bpf_obj_get(pin);

	if (link >= 0)
		sw_link_remove(pin, link);
}

static void remove_entry(void *arg, const char *dir, const char *name)
{
	char pin[PATH_MAX];

	(void)arg;
	snprintf(pin, sizeof(pin), "%s/%s", dir, name);
	if (!strncmp(name, "link_", 5))
		sw_link_remove_pinned(pin);
}

void sw_link_remove_all(const char *dir)
{
	sw_pindir_each(dir, remove_entry, NULL);
}

int sw_link_open(const char *pin, uint64_t target)
{
	int link = bpf_obj_get(pin);

	if (link >= 0 && sw_link_target(link) == target)
		return link;
	if (link >= 0)
		close(link);
	return 0;
}

uint32_t sw_link_program(const char *pin)
{
	struct bpf_link_info info = {0};
	__u32 size = sizeof(info);
	int link = bpf_obj_get(pin);

	if (link < 0)
		return 0;
	if (bpf_obj_get_info_by_fd(link, &info, &size))
		info.prog_id = 0;
	close(link);
	return info.prog_id;
}
