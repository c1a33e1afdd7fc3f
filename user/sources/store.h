/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What both stores of Dynamo's membership, etcd.h and filestore.h, tell of themselves. */
#ifndef SPILLWAY_STORE_H
#define SPILLWAY_STORE_H

#include <stdint.h>

#include "common/error.h"

enum sw_store_state {
	SW_STORE_CONNECTING, /* for the first time */
	SW_STORE_OK,
	SW_STORE_FAILING, /* members stay as they were last told */
};

struct sw_store_status {
	char name[256]; /* its address or path */
	enum sw_store_state state;
	uint64_t at_ms;	       /* it answered last, on sw_now_ms()'s clock; 0: never */
	uint64_t errors;       /* times that it failed */
	struct sw_error error; /* why it fails, or failed last */
	uint64_t error_ms;     /* when it last failed; 0: never */
};

#endif
