/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What tests of the event plane share: a loop, the event plane, a ZeroMQ publisher, and what was
 * heard. */
#ifndef TEST_PUBLISHING_H
#define TEST_PUBLISHING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sources/events.h"

#define SUBJECT "namespace.dynamo.component.backend.endpoint.generate.kv_metrics"

extern struct event_base *plane_base;
extern struct sw_events *plane;
extern struct sw_error plane_error;

extern struct heard {
	unsigned n; /* events since the test began */
	struct sw_load_event last;
	unsigned slow_us; /* that it takes to hear one */
} heard;

int publishing_setup(void **state);
int publishing_teardown(void **state);

#define PUBLISHING_TEST(f) cmocka_unit_test_setup_teardown(f, publishing_setup, publishing_teardown)

/* One event about kv_used_blocks. */
struct event_of {
	uint64_t publisher, sequence, published_ms, worker, rank, used;
};

/* Its envelope; the length. */
size_t envelope_of(struct event_of e, uint8_t out[512]);

/* Binds a PUB socket to "tcp://127.0.0.1:PORT"; port 0: any, which is stored in `address`. */
void *publisher_new(unsigned port, char address[64]);
void publisher_free(void *publisher);
/* One message of `n` frames. */
struct frame {
	const void *data;
	size_t length;
};
void publish_frames(void *publisher, const struct frame *frames, size_t n);
/* As Dynamo writes them. */
void publish(void *publisher, const char *topic, struct event_of e);

void plane_run_ms(unsigned ms);
long resident_kb(void);
void await_heard(unsigned n); /* runs until as many have been heard since the test began */
void await_subscribed(void *publisher, const char *topic); /* until the plane hears the publisher */
/* The status at `index`; runs until there were so many messages, or its state is this one. */
struct sw_events_status plane_status(size_t index);
void await_messages(size_t index, uint64_t n);
struct sw_events_status await_state(size_t index, enum sw_events_state state);

#endif
