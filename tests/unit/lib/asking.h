/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The control interface of a made-up daemon: a child serves it on a unix socket in a directory of
 * its own, the test asks it with libcurl or has the `spillway` command ask. */
#ifndef TEST_ASKING_H
#define TEST_ASKING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <curl/curl.h>
#include <jansson.h>
#include <sys/types.h>

#include "control/control.h"

extern char asking_dir[64], asking_path[96];
extern pid_t asking_child;
extern struct asking_reply {
	char text[262144];
	size_t length;
	long status;
} asking_reply;

/* The child calls `make` once and serves `live`. 0, or -1. */
int asking_start(struct sw_live *live, void (*make)(void), sw_control_cb changed);
/* Ends the child and removes the directory. */
int asking_stop(void);

/* A request yet to be performed; what comes is in asking_reply but its status. */
CURL *asking_curl(const char *target);
/* POST when there is a body. What came is in asking_reply. */
CURLcode asking(const char *target, const char *body);
/* The status must be this one and the reply JSON. */
json_t *asking_json(const char *target, const char *body, long status);
/* A text that must be there. */
const char *asking_text(const json_t *j, const char *key);

#endif
