/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is said to and by the JSON gateway of etcd v3: requests as text, answers into a table of
 * members. Carrying them is left to etcd.c. */
#ifndef SPILLWAY_ETCD_TALK_H
#define SPILLWAY_ETCD_TALK_H

#include "sources/members.h"

/* Bodies of requests, to be freed. NULL: no memory. */
char *sw_etcd_ask_token(const char *user, const char *password);
/* A page of keys from `from` on (NULL: the first), as they were at `revision` (0: now). */
char *sw_etcd_ask_range(const char *from, int64_t revision);
/* Every change from `revision` on. */
char *sw_etcd_ask_watch(int64_t revision);
/* The least that needs the cluster's agreement: it answers, or it has lost its members. */
char *sw_etcd_ask_alive(void);

struct sw_etcd_page {
	int64_t revision;
	char *next; /* where the next page begins; to be freed; NULL: this was the last */
};

/* Each takes one answer in. -EBADMSG and other negative errno: `err` says what is wrong. */
int sw_etcd_take_token(const char *text, size_t length, char **token, struct sw_error *err);
int sw_etcd_take_range(const char *text, size_t length, struct sw_members *m,
		       struct sw_etcd_page *out, struct sw_error *err);
/* -ESTALE: what is watched for was compacted, so that everything has to be read anew. */
int sw_etcd_take_watch(const char *text, size_t length, struct sw_members *m, struct sw_error *err);
/* What an answer with an error status says, in words. */
void sw_etcd_explain(const char *text, size_t length, struct sw_error *err);

#endif
