/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A data plane: the programs and maps that guard the listeners of one network namespace. Loads,
 * pins, attaches, writes maps (only differences), reads counters. Knows nothing of load or policy.
 *
 * Everything is pinned under PIN_ROOT/vLAYOUT/SCOPE, SCOPE being "host" or derived from the
 * namespace, so that a killed daemon leaves programs that bring conversations under way to an end
 * and then pass everything, and a new daemon takes over in place: same maps, same keys, one
 * program.
 */
#ifndef SPILLWAY_PLANE_H
#define SPILLWAY_PLANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "config/config.h"
#include "kernel/steer.h"
#include <spillway/abi.h>

struct sw_plane;

enum sw_hook {
	SW_HOOK_XDP_NATIVE,
	SW_HOOK_XDP_REDIRECT, /* native, with answers redirected: veth's XDP_TX does not wake its
				 peer */
	SW_HOOK_XDP_GENERIC,
	SW_HOOK_TCX,
	SW_HOOK_CLSACT,
};

struct sw_attachment { /* what is attached where, for status and logs */
	char interface[16];
	int ifindex;
	bool xdp; /* an XDP program accelerates this interface */
	enum sw_hook xdp_hook, tc_hook;
	char note[160]; /* why XDP is not used, or empty */
};

struct sw_plane_conf {
	const char *netns; /* path or "pid:N"; NULL: the daemon's own namespace */
	const char *pin_root;
	char *const *
		interfaces; /* lo is added on its own; none given inside a netns: all that are up */
	size_t n_interfaces;
	enum sw_attach attach;
	const struct sw_slot_maps *slots; /* shared by all planes, outlive them; NULL: maps of its
					   * own, unused */
	bool lookup;	/* new connections are counted or steered here: attach sk_lookup too */
	unsigned flows; /* requests on established connections are shed too, on at most so many
			 * connections at once; 0: they are not */
};

/* Opens: enters the namespace, loads the programs, reuses or makes pins, attaches. On failure
 * nothing stays attached that was not before, and the error says what to do (capability, BTF,
 * interface ...). All listeners are unknown and all pools open until written. */
int sw_plane_open(struct sw_plane **out, const struct sw_plane_conf *conf, struct sw_error *err);

/* Stops shedding at once, waits up to `linger_ms` for conversations under way, then detaches what
 * guards interfaces and removes the pins. The plane is freed. Connections on which requests were
 * shed have to be translated as long as they live: if there are any, what does that stays, which
 * takes no daemon, until the next one takes it over or sw_host_remove() ends them. With `lookup`
 * sk_lookup goes on counting and steering, its maps stay pinned with what they hold, and the next
 * daemon takes them over in place: steering outlives the daemon. sw_plane_end_lookup() first, or
 * sw_host_remove() later, takes that off too. */
void sw_plane_close(struct sw_plane *p, unsigned linger_ms);
/* New connections are no longer counted or steered here, as the configuration has no listener for
 * it any more. */
void sw_plane_end_lookup(struct sw_plane *p);
/* Frees without detaching, for a daemon that is replaced. */
void sw_plane_leave(struct sw_plane *p);

/* False: the kernel cannot hand connections over (before 6.9, or net.ipv4.tcp_syncookies is 0;
 * `why` says which), so listeners with paths that must pass may not be closed. */
bool sw_plane_can_hand_over(const struct sw_plane *p, const char **why);

/* 1: the namespace behind `netns` is another one than at open (a container was restarted) or an
 * interface went away or came: close it and open again. 0: same. Negative: it is gone. */
int sw_plane_changed(struct sw_plane *p);

size_t sw_plane_attachments(const struct sw_plane *p, const struct sw_attachment **out);

/* Replaces the whole table of listeners, path sets, CIDR sets and answers by what is in `c` for
 * this plane's namespace (listeners whose netns equals conf.netns). Listener ids are 1 + the index
 * in `c->listeners`, pools are indices. Kept answers of a changed length stay valid for one cookie
 * lifetime. On failure the old table stays. */
int sw_plane_configure(struct sw_plane *p, const struct sw_config *c, struct sw_error *err);

/* Writes a pool's mode, cause and deadline (CLOCK_MONOTONIC ns). `armed`: it may shed soon, so
 * established connections are to be followed. */
int sw_plane_set_pool(struct sw_plane *p, unsigned pool, enum sw_mode mode, enum sw_cause cause,
		      bool armed, uint64_t deadline_ns);

/* Right after open: did a former daemon leave conversations that are not brought to an end yet? */
bool sw_plane_in_conversation(const struct sw_plane *p);

/* A new cookie key; the previous one is accepted for one lifetime more. */
int sw_plane_rotate_key(struct sw_plane *p);

/* Gives a pool other answers than those of the configuration that was written last, of the same
 * length and with as many variants. -ENOSPC: there is no room for both at once. */
int sw_plane_put_answers(struct sw_plane *p, unsigned pool, const struct sw_answer_spec *spec);

/* Sums a listener's counters (0: packets of no listener) over CPUs. Any may be NULL. */
int sw_plane_counts(struct sw_plane *p, unsigned listener, struct sw_counts *xdp,
		    struct sw_counts *tc, struct sw_counts *keep);

/* Sums what was shed of a listener by kind of request over CPUs. */
int sw_plane_shed_counts(struct sw_plane *p, unsigned listener, struct sw_shed_counts *out);
/* The map of events about that, for sw_shed_ring_open(); the same as long as its pin lives. */
int sw_plane_shed_events(const struct sw_plane *p);

/* False: requests on established connections are not shed here; `why` says it where the kernel
 * refused, and is empty where nobody asked for it. */
bool sw_plane_can_keep(const struct sw_plane *p, const char **why);

/* Leaves a listener's new connections to the stack, or does so no longer. */
int sw_plane_pass_new(struct sw_plane *p, unsigned listener, bool pass);

/* Established connections that are followed or translated, and how many can be at once. */
unsigned sw_plane_flows(const struct sw_plane *p, unsigned *room);

/* Once a second: forgets connections whose socket is gone, a part of them in each call. `calm`: no
 * pool here sheds or is armed, so those that are only followed are forgotten too. Returns how many
 * were, or a negative errno. */
int sw_plane_expire_flows(struct sw_plane *p, bool calm);

/* Every 50 to 100 ms where `lookup` is set: gives back reservations in this namespace whose
 * connection never came to be. Returns how many, or a negative errno. */
int sw_plane_sweep(struct sw_plane *p);

/* Looks for the listening sockets of all workers in this namespace and puts them into `listening`;
 * at start and once a second, as what listens later is found by itself at once. Returns how many
 * there are, or a negative errno. */
int sw_plane_find_workers(struct sw_plane *p);

/* Has the pool's overflow in this namespace answered by a listening socket of ours; v6 tells its
 * family. */
int sw_plane_set_responder(struct sw_plane *p, unsigned pool, bool v6, int socket);

/* True when a socket listens on the address and port inside the namespace (sock_diag). */
bool sw_plane_has_server(struct sw_plane *p, const struct sw_listener_conf *l);

/* True when such a socket is an MPTCP one (Go servers from 1.24 on): the kernel hands no connection
 * over to those, so requests that must pass would be lost. */
bool sw_plane_has_mptcp_server(struct sw_plane *p, const struct sw_listener_conf *l);

#endif
