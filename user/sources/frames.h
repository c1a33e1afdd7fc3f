/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A message of NVIDIA Dynamo's event plane over ZeroMQ: topic, publisher, sequence, and the
 * envelope behind its version and length. Pure. What is in the envelope is left to msgpack.h. */
#ifndef SPILLWAY_FRAMES_H
#define SPILLWAY_FRAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

#define SW_FRAMES     4
#define SW_LOAD_TOPIC "kv_metrics"

struct sw_frame {
	const void *data;
	size_t length;
};

/* 1: `envelope` is one about load; 0: the message is about something else; -EBADMSG: it is about
 * load, but wrong, and `err` says how. `n` frames came; those beyond the last that came are not
 * looked at. A broker's topics are whole subjects. */
int sw_frames_read(const struct sw_frame frames[SW_FRAMES], size_t n, bool broker,
		   struct sw_frame *envelope, struct sw_error *err);

#endif
