/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What this kernel, interface and cgroup can do, found out by trying: each feature by loading a
 * tiny program or asking the kernel, never by version number. */
#ifndef SPILLWAY_PROBE_H
#define SPILLWAY_PROBE_H

#include <stdbool.h>
#include <stddef.h>

enum sw_feature {
	SW_FEAT_CAPS,	    /* CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON; before 6.9 CAP_SYS_ADMIN too */
	SW_FEAT_BTF,	    /* /sys/kernel/btf/vmlinux */
	SW_FEAT_BPFFS,	    /* a bpf file system at the pin root */
	SW_FEAT_XDP_STORE,  /* bpf_xdp_store_bytes, 5.18 */
	SW_FEAT_HAND_OVER,  /* bpf_sk_assign_tcp_reqsk, 6.9 */
	SW_FEAT_SYNCOOKIES, /* net.ipv4.tcp_syncookies is not 0 */
	SW_FEAT_TCX,	    /* 6.6 */
	SW_FEAT_XDP_LINK,   /* 5.9 */
	SW_FEAT_CGROUP2,    /* cgroup v2 mounted */
	SW_FEAT_WALK,	    /* see sw_probe_storage_walk() */
	SW_FEAT_DESTROY,    /* 6.5 */
	SW_FEATURES
};

struct sw_probe {
	enum sw_feature feature;
	const char *name;
	bool present;
	char detail[160]; /* what was seen */
	const char *cost; /* what its absence costs the operator */
};

/* Probes everything; `out` has SW_FEATURES places. `bpffs` is the pin root. */
void sw_probe_all(struct sw_probe out[SW_FEATURES], const char *bpffs);
bool sw_probe_caps(void);
/* Does the path lie, or would it lie, in a bpf file system? */
bool sw_probe_bpffs(const char *path);
bool sw_probe_xdp_store(void);
bool sw_probe_hand_over(void);
/* False as well when SPILLWAY_NO_TCX is set in the environment, for tests of what takes its place.
 */
bool sw_probe_tcx(void);

/* May a TC program put a socket into a map? Not in 7.x. */
bool sw_probe_note_socket(void);
/* May a walk over sockets? Before 6.5 it holds the lock that this takes. */
bool sw_probe_note_socket_in_walk(void);

/* Can the storage of all sockets be walked? Not where sockets that end meanwhile crash the kernel:
 * seen on 7.3, whose walk follows a pointer that their end has cleared. */
bool sw_probe_storage_walk(void);

/* What one interface can do: driver, MTU, native XDP (tried by attaching an empty program and
 * taking it off again when nothing else is attached), others' programs. Fills one line a fact. */
int sw_probe_interface(const char *name, char *out, size_t size);

#endif
