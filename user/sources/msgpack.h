/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is inside an event of NVIDIA Dynamo's event plane: MessagePack. Pure: bytes in, values out;
 * nothing is allocated, whatever lengths the bytes declare. */
#ifndef SPILLWAY_MSGPACK_H
#define SPILLWAY_MSGPACK_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "policy/busy.h"

struct sw_envelope {
	uint64_t publisher, sequence;
	uint64_t published_ms; /* by the publisher's clock; 0: not told */
	const void *payload;   /* inside the bytes that were read */
	size_t length;
};

/* Both return 0, or -EBADMSG and `err` says what is wrong. Unknown keys are skipped, nil is as if
 * the key were not there. */
int sw_envelope_read(const void *bytes, size_t length, struct sw_envelope *out,
		     struct sw_error *err);
/* A signal that is not told is absent from the report. */
int sw_load_read(const void *bytes, size_t length, uint64_t *worker_id, struct sw_report *out,
		 struct sw_error *err);

#endif
