// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Frames of a message, see frames.h. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "sources/frames.h"

#define HEAD	5 /* before the envelope: a version, and its length, big-endian */
#define VERSION 1

/* "namespace.NS.component.C.endpoint.E.kv_metrics", or the older "namespace.NS.kv_metrics". */
static bool is_subject(const char *text, size_t length)
{
	static const char *const whole[] = {"namespace", NULL, "component",  NULL,
					    "endpoint",	 NULL, SW_LOAD_TOPIC};
	static const char *const older[] = {"namespace", NULL, SW_LOAD_TOPIC};
	const char *const *want;
	char copy[512], *rest = copy, *parts[7], *part;
	size_t n = 0;

	if (length >= sizeof(copy) || memchr(text, '\0', length))
		return false;
	memcpy(copy, text, length);
	copy[length] = '\0';
	while (n < 7 && (part = strsep(&rest, ".")))
		parts[n++] = part;
	if (rest || (n != 7 && n != 3))
		return false;
	want = n == 7 ? whole : older;
	for (size_t i = 0; i < n; i++)
		if (want[i] ? strcmp(parts[i], want[i]) : !parts[i][0])
			return false;
	return true;
}

static uint32_t big_endian(const uint8_t *b)
{
	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static bool is_topic(const char *text, size_t length)
{
	return length == strlen(SW_LOAD_TOPIC) && !memcmp(text, SW_LOAD_TOPIC, length);
}

int sw_frames_read(const struct sw_frame frames[SW_FRAMES], size_t n, bool broker,
		   struct sw_frame *envelope, struct sw_error *err)
{
	const uint8_t *head = frames[3].data;
	size_t length = frames[3].length;

	if (!n || !(broker ? is_subject : is_topic)(frames[0].data, frames[0].length))
		return 0;
	if (n != SW_FRAMES)
		return sw_fail(err, -EBADMSG, "a message of not 4 frames");
	if (frames[1].length != 8 || frames[2].length != 8)
		return sw_fail(err, -EBADMSG, "a publisher or sequence of not 8 bytes");
	if (length < HEAD || head[0] != VERSION)
		return sw_fail(err, -EBADMSG, "an envelope of another version");
	if (big_endian(head + 1) != length - HEAD)
		return sw_fail(err, -EBADMSG, "an envelope of another length than it says");
	*envelope = (struct sw_frame){head + HEAD, length - HEAD};
	return 1;
}
