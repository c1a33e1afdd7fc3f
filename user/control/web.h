/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The status page, GET / of the control interface: one document that holds all it needs. Shows
 * nothing by itself; it reads the interface like any other client. */
#ifndef SPILLWAY_WEB_H
#define SPILLWAY_WEB_H

#include <event2/http.h>

/* Answers with the page. It is the same for everyone and tells nothing, so no token is needed. */
void sw_web_page(struct evhttp_request *req);

#endif
