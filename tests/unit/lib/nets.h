/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two network namespaces joined by a veth pair, for tests of planes: GUARDED has `veth0`, CLIENT
 * has `veth1`. The test itself runs in a namespace of its own, so that nothing of the host is
 * touched.
 */
#ifndef SPILLWAY_TEST_NETS_H
#define SPILLWAY_TEST_NETS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/plane.h"

#define TCX_INGRESS 46

extern char nets_guarded[64], nets_client[64]; /* paths of the namespaces */
extern char nets_root[64];		       /* the pin root */

/* NULL, or why tests of this kind cannot be run here. */
const char *nets_impossible(void);

/* For cmocka: fresh namespaces for each test; what a failed test left is removed. */
int nets_setup(void **state);
int nets_teardown(void **state);

/* Until the test ends: veth0 can have native XDP; TC goes by clsact also where there is TCX. */
void nets_peer_gro(void);
void nets_use_clsact(void);
bool nets_has_tcx(void); /* says so when not */

/* Runs a shell command, inside a namespace if one is given (NULL: the test's own); fails the test
 * unless it succeeds. nets_try() returns the exit status instead. */
__attribute__((format(printf, 2, 3))) void nets_run(const char *netns, const char *fmt, ...);
__attribute__((format(printf, 2, 3))) int nets_try(const char *netns, const char *fmt, ...);

/* A plane on the guarded namespace; the second one says which error is expected. */
struct sw_plane *nets_open(enum sw_attach attach);
int nets_open_bad(const struct sw_plane_conf *conf, struct sw_error *err);
struct sw_plane_conf nets_conf(enum sw_attach attach);

/* What is said of an interface of the plane. */
const struct sw_attachment *nets_attachment(struct sw_plane *p, const char *interface);

/* Programs on an interface's hook inside a namespace: how many, and the id of the last. */
struct nets_programs {
	unsigned n;
	uint32_t id;
};
struct nets_programs nets_tcx(const char *netns, const char *interface);
struct nets_programs nets_xdp(const char *netns, const char *interface);

/* Is there a filter at ingress of veth0 whose line matches; a clsact qdisc on veth0? */
#define NETS_OURS "pref 529.* handle 0x211 spillway_tc"
bool nets_filter(const char *pattern);
bool nets_clsact(void);
/* Nothing is attached in the guarded namespace, and nothing pinned. */
void nets_assert_bare(void);

/* Loads a program that lets everything pass, as somebody else would. */
int nets_stranger(bool xdp);
/* Puts such a program under a clsact qdisc, made if there is none. Priority and handle: `number`.
 */
void nets_stranger_filter(const char *interface, bool egress, uint32_t number);

/* The path of a pin of the guarded namespace's plane. */
const char *nets_pin(const char *name);
struct sw_secrets nets_secrets(void); /* that it holds */

#endif
