// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Opens, sizes and loads the skeleton; see load.h. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "kernel/bpflog.h"
#include "kernel/keep.h"
#include "kernel/load.h"
#include "kernel/pins.h"
#include "kernel/probe.h"
#include "kernel/rows.h"
#include "kernel/slot_maps.h"
#include "spillway.skel.h"

int sw_program(const struct sw_plane *p, enum sw_hook hook)
{
	switch (hook) {
	case SW_HOOK_XDP_REDIRECT: return bpf_program__fd(p->obj->progs.spillway_xdp_redirect);
	case SW_HOOK_XDP_GENERIC: return bpf_program__fd(p->obj->progs.spillway_xdp_generic);
	default: return bpf_program__fd(p->obj->progs.spillway_xdp);
	}
}

int sw_tc_program(const struct sw_plane *p, enum sw_tc_place place)
{
	switch (place) {
	case SW_TC_KEEP: return bpf_program__fd(p->obj->progs.spillway_keep);
	case SW_TC_EGRESS: return bpf_program__fd(p->obj->progs.spillway_egress);
	default: return bpf_program__fd(p->obj->progs.spillway_tc);
	}
}

/* What the programs cannot do without, and this kernel lacks; NULL: nothing that we know of. */
static const char *missing(void)
{
	if (libbpf_probe_bpf_helper(BPF_PROG_TYPE_SCHED_CLS, BPF_FUNC_loop, NULL) == 0)
		return "the helper bpf_loop (5.17)";
	if (libbpf_probe_bpf_helper(BPF_PROG_TYPE_XDP, BPF_FUNC_xdp_load_bytes, NULL) == 0)
		return "the helper bpf_xdp_load_bytes (5.18)";
	return NULL;
}

int sw_load_check_kernel(struct sw_error *err)
{
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		return sw_fail(err, -EOPNOTSUPP,
			       "this kernel has no BTF (/sys/kernel/btf/vmlinux): use one built "
			       "with CONFIG_DEBUG_INFO_BTF=y");
	if (!sw_probe_caps())
		return sw_fail(err, -EPERM,
			       "loading BPF programs needs CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON: "
			       "run as root, or give the service these capabilities (before "
			       "kernel 6.9 CAP_SYS_ADMIN too)");
	return 0;
}

int sw_load_refused(int ret, struct sw_error *err)
{
	const char *lacks;
	struct utsname kernel;

	uname(&kernel);
	if (ret == -EPERM && sw_probe_caps())
		return sw_fail(err, -EOPNOTSUPP,
			       "kernel %s is hardened and refuses BPF programs of this kind",
			       kernel.release);
	if (ret == -EPERM)
		return sw_fail(err, ret,
			       "the kernel does not let us load BPF programs: run as root or with "
			       "CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON");
	lacks = missing();
	if (lacks)
		return sw_fail(err, -EOPNOTSUPP, "kernel %s lacks %s; supported are 6.1 and newer",
			       kernel.release, lacks);
	return sw_fail(err, ret,
		       "kernel %s refuses the BPF programs: %s; supported are 6.1 and newer",
		       kernel.release, *sw_bpflog_reason() ? sw_bpflog_reason() : strerror(-ret));
}

/* A key that nobody knows, once in the life of a map. */
static int make_key(int map, struct sw_error *err)
{
	static const struct sw_secrets none;
	struct sw_secrets s;
	uint32_t zero = 0;
	int ret = 0;

	if (bpf_map_lookup_elem(map, &zero, &s))
		return sw_fail(err, -errno, "reading the map secrets: %s", strerror(errno));
	if (!memcmp(&s, &none, sizeof(s)) &&
	    (getrandom(s.key[0], sizeof(s.key[0]), 0) != sizeof(s.key[0]) ||
	     bpf_map_update_elem(map, &zero, &s, BPF_ANY)))
		ret = sw_fail(err, -errno, "making a cookie key: %s", strerror(errno));
	explicit_bzero(&s, sizeof(s));
	return ret;
}

/* A pinned map of answers that was too small: what it holds goes on being given. */
static int move_answers(const struct sw_plane *p, const struct sw_maps *new, struct sw_error *err)
{
	struct sw_rows old = {0}, none = {0};
	int ret = sw_rows_read(&old, p->maps.answers);

	if (!ret)
		ret = sw_rows_put(new->answers, &none, &old);
	sw_rows_free(&old);
	return ret ? sw_fail(err, ret, "moving the answers: %s", strerror(-ret)) : 0;
}

static void choose_maps(struct spillway *obj, const struct sw_wanted *want)
{
	struct bpf_map *map;

	bpf_object__for_each_map (map, obj->obj)
		bpf_map__set_autocreate(map, !sw_is_steer_map(map) &&
						     (want->lookup || !sw_is_lookup_map(map)) &&
						     (want->keep || !sw_is_keep_map(map)));
}

static void choose_programs(struct spillway *obj, const struct sw_wanted *want)
{
	bool by_name = want->lookup && sw_probe_note_socket();
	bool by_walk = want->lookup && !by_name && sw_probe_note_socket_in_walk();

	bpf_program__set_autoload(obj->progs.spillway_xdp, want->xdp);
	bpf_program__set_autoload(obj->progs.spillway_xdp_redirect, want->xdp_redirect);
	bpf_program__set_autoload(obj->progs.spillway_xdp_generic, want->xdp_generic);
	bpf_program__set_autoload(obj->progs.spillway_lookup, want->lookup);
	bpf_program__set_autoload(obj->progs.spillway_sweep, want->lookup);
	bpf_program__set_autoload(obj->progs.spillway_find, by_name);
	bpf_program__set_autoload(obj->progs.spillway_find_walk, by_walk);
	bpf_program__set_autoload(obj->progs.spillway_keep, want->keep);
	bpf_program__set_autoload(obj->progs.spillway_egress, want->keep);
	bpf_program__set_autoload(obj->progs.spillway_expire, want->keep);
}

/* All before the kernel has a look at it. */
static int prepare(struct sw_plane *p, struct spillway *obj, const struct sw_wanted *want,
		   struct sw_error *err)
{
	int ret;

	choose_programs(obj, want);
	choose_maps(obj, want);
	obj->rodata->have_hand_over = p->kfunc;
	obj->rodata->netns_cookie = want->lookup ? p->id.cookie : 0;
	bpf_map__set_max_entries(obj->maps.answers, want->answer_sets * SW_ANSWERS_PER_SET);
	ret = want->keep ? sw_keep_size(p, obj, err) : 0;
	if (!ret)
		ret = sw_pins_reuse_maps(p, obj->obj, err);
	if (!ret && p->slots)
		ret = sw_slot_maps_share(p->slots, obj->obj, err);
	return ret;
}

static int load(struct sw_plane *p, struct spillway *obj, const struct sw_wanted *want,
		struct sw_error *err)
{
	struct sw_maps maps;
	int ret = prepare(p, obj, want, err);

	if (ret)
		return ret;
	sw_bpflog_start();
	ret = spillway__load(obj);
	if (ret)
		return sw_load_refused(ret, err);
	ret = sw_maps_find(obj->obj, &maps);
	if (ret)
		return sw_fail(err, ret, "the BPF object lacks a map");
	ret = make_key(maps.secrets, err);
	if (!ret && p->obj)
		ret = move_answers(p, &maps, err);
	if (!ret)
		ret = sw_pins_publish_maps(p, obj->obj, err);
	if (!ret)
		p->maps = maps;
	return ret;
}

static int load_new(struct sw_plane *p, const struct sw_wanted *want, struct spillway **out,
		    struct sw_error *err)
{
	struct spillway *obj;
	int ret;

	sw_bpflog_start();
	obj = spillway__open();
	if (!obj)
		return sw_fail(err, -errno, "opening the BPF object: %s", strerror(errno));
	ret = load(p, obj, want, err);
	if (ret)
		spillway__destroy(obj);
	else
		*out = obj;
	return ret;
}

int sw_load(struct sw_plane *p, const struct sw_wanted *want, struct sw_error *err)
{
	struct sw_wanted least = *want;
	struct spillway *obj;
	struct sw_error why;
	int ret = load_new(p, &least, &obj, err);

	p->keep.why_not[0] = 0;
	if (ret && want->keep) {
		why = *err;
		least.keep = false;
		ret = load_new(p, &least, &obj, err);
		if (!ret)
			snprintf(p->keep.why_not, sizeof(p->keep.why_not), "%.150s", why.text);
	}
	if (ret)
		return ret;
	if (want->keep && !least.keep)
		sw_log(SW_WARN, "requests on established connections are not shed: %s", why.text);
	sw_unload(p);
	p->obj = obj;
	return least.keep ? sw_keep_bind(p, err) : 0;
}

void sw_unload(struct sw_plane *p)
{
	sw_keep_unbind(p);
	if (p->obj)
		spillway__destroy(p->obj);
	p->obj = NULL;
}
