/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What one key of NVIDIA Dynamo's membership says: that an endpoint of a worker is there, which
 * model it serves, or where load is published. Where keys come from is left to the stores. */
#ifndef SPILLWAY_REGISTRATION_H
#define SPILLWAY_REGISTRATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define SW_KEY_ROOT	"v1/" /* of all keys that matter */
#define SW_KEY_MAX	512   /* bytes of a key */
#define SW_VALUE_MAX	65536 /* and of its value */
#define SW_CHANNELS_MAX 8     /* addresses in one registration */

enum sw_registered {
	SW_REG_INSTANCE, /* v1/instances/NAMESPACE/COMPONENT/ENDPOINT/ID */
	SW_REG_MODEL,	 /* v1/mdc/NAMESPACE/COMPONENT/ENDPOINT/ID */
	SW_REG_CHANNEL,	 /* v1/event_channels/SCOPE/topic/kv_metrics/ID */
};

enum sw_channel_kind {
	SW_CHANNEL_ZMQ,	       /* one publisher at "tcp://HOST:PORT" */
	SW_CHANNEL_ZMQ_BROKER, /* many publishers behind one address */
	SW_CHANNEL_NATS,       /* the start of a subject; any server of the fleet has it */
};

struct sw_registration {
	enum sw_registered kind;
	char *path; /* what the key has after its first two parts; cut up by the next three */
	char *namespace, *component, *endpoint; /* NULL: of a channel */
	uint64_t id;				/* hexadecimal in the key */

	char *address; /* of an instance: where it takes requests, "HOST:PORT"; NULL: not by TCP */

	char *model;			 /* of a model: its name */
	uint64_t kv_blocks, max_batched; /* of a rank; 0: not told */
	uint32_t start_rank;
	int32_t dp_size; /* -1: not told */

	enum sw_channel_kind channel;
	char *channels[SW_CHANNELS_MAX];
	size_t n_channels;
};

/* Reads the value of a key. 0: *out is the caller's. -ENOENT: the key is none of these, no matter.
 * -EBADMSG: it is malformed, and `err` says what is wrong. -ENOMEM. */
int sw_registration_read(const char *key, const char *value, size_t length,
			 struct sw_registration **out, struct sw_error *err);
/* Do both say the same? */
bool sw_registration_same(const struct sw_registration *a, const struct sw_registration *b);
/* NULL is fine. */
void sw_registration_free(struct sw_registration *r);

#endif
