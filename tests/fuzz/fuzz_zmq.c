// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Messages of a ZeroMQ publisher, with any number of frames of any content: the first byte of a
 * frame is its length. What is passed on is a report of ours, and the connection goes on. As a
 * broker's message it is only taken apart: the envelope is the end of its last frame. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "sources/events.h"
#include "sources/frames.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct event_base *base;
static struct sw_events *events;
static void *publisher;

static void on_load(void *arg, const struct sw_load_event *event)
{
	(void)arg;
	if (event->report.have >= 1U << SW_SIGNALS)
		abort();
}

static uint64_t heard(void)
{
	struct sw_events_status status;

	if (!sw_events_status(events, 0, &status))
		abort();
	return status.messages;
}

/* A message that is counted, and no load: when it has come, all before it has been read. */
static void send_mark(void)
{
	static const uint8_t none[8];

	zmq_send(publisher, "kv_metrics", 10, ZMQ_SNDMORE);
	zmq_send(publisher, none, 8, ZMQ_SNDMORE);
	zmq_send(publisher, none, 8, ZMQ_SNDMORE);
	zmq_send(publisher, "\x01\0\0\0\0", 5, 0);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static char endpoint[64];
	struct sw_error err;
	char byte;

	(void)argc;
	(void)argv;
	sw_log_level(SW_ERROR);
	snprintf(endpoint, sizeof(endpoint), "ipc://@spillway-fuzz-%d", getpid());
	base = event_base_new();
	publisher = zmq_socket(zmq_ctx_new(), ZMQ_XPUB);
	if (!base || zmq_bind(publisher, endpoint) ||
	    sw_events_new(&events, base, on_load, NULL, &err) ||
	    sw_events_zmq(events, endpoint, false, &err))
		abort();
	while (zmq_recv(publisher, &byte, 1, ZMQ_DONTWAIT) < 0)
		event_base_loop(base, EVLOOP_NONBLOCK);
	return 0;
}

static void take_apart(const struct sw_frame frames[SW_FRAMES], size_t n)
{
	const struct sw_frame *last = &frames[SW_FRAMES - 1];
	struct sw_frame envelope = {0};
	struct sw_error err = {""};
	int ret = sw_frames_read(frames, n, true, &envelope, &err);

	if (ret > 1 || (ret < 0 && !err.text[0]) || (ret < 1 && envelope.data))
		abort();
	if (ret == 1 &&
	    (envelope.length > last->length || (const char *)envelope.data + envelope.length !=
						       (const char *)last->data + last->length))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sw_frame frames[SW_FRAMES] = {0};
	uint64_t before = heard();
	size_t at = 0, n = 0;

	while (at < size) {
		size_t length = data[at++];

		if (length > size - at)
			length = size - at;
		zmq_send(publisher, data + at, length, at + length < size ? ZMQ_SNDMORE : 0);
		if (n < SW_FRAMES)
			frames[n] = (struct sw_frame){data + at, length};
		n++;
		at += length;
	}
	take_apart(frames, n);
	send_mark();
	while (heard() == before)
		event_base_loop(base, EVLOOP_ONCE);
	return 0;
}
