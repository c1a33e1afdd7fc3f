// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The request line as the kernel reads it, on plain memory: whatever a segment begins with, it may
 * be shed if and only if a reader that goes byte by byte finds a method and a path in it that may
 * be. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <spillway/reasons.h>

#include "ctx_tc.h"
#include "policy/paths.h"

static void *find_in_map(const void *map, const void *key);

#define bpf_map_lookup_elem find_in_map
#include "request.h"

#define SET 3 /* of the listener's paths */

static const struct known {
	enum sw_method method;
	unsigned prefix;
	const char *path;
	enum sw_path_action action;
} known[] = {
	{SW_METHOD_POST, 0, "/v1/chat/completions", SW_PATH_SHED},
	{SW_METHOD_POST, 0, "/generate", SW_PATH_SHED},
	{SW_METHOD_POST, 0, "/", SW_PATH_SHED},
	{SW_METHOD_OPTIONS, 0, "/o", SW_PATH_SHED},
	{SW_METHOD_GET, 0, "/v1/models", SW_PATH_PASS},
	{SW_METHOD_POST, 0, "/v2/models/mine/infer", SW_PATH_PASS},
	{SW_METHOD_POST, 1, "/infer", SW_PATH_SHED},
	{SW_METHOD_POST, 1, "", SW_PATH_SHED},
	{SW_METHOD_DELETE, 2, "/cancel", SW_PATH_PASS},
	{SW_METHOD_PUT, 2, "/cancel", SW_PATH_SHED},
};

static struct sw_prefix starts[] = {{"/v2/models/", 11}, {"/v1/responses/", 14}, {"", 0}};

#define N(list) (sizeof(list) / sizeof((list)[0]))

/* ---- the maps ---- */

static struct window scratch;

static void *find_path(const struct sw_path *key)
{
	static struct sw_path_value value;

	for (size_t i = 0; i < N(known); i++) {
		struct sw_path row = {
			.set = SET, .method = known[i].method, .prefix = known[i].prefix};

		memcpy(row.path, known[i].path, strlen(known[i].path));
		value.action = known[i].action;
		if (!memcmp(&row, key, sizeof(row)))
			return &value;
	}
	return NULL;
}

static void *find_in_map(const void *map, const void *key)
{
	if (map == &window)
		return &scratch;
	if (map == &paths)
		return find_path(key);
	if (map == &prefixes)
		return *(const __u32 *)key < N(starts) ? &starts[*(const __u32 *)key] : NULL;
	abort();
}

/* ---- the same, byte by byte ---- */

#define NO_END SIZE_MAX

/* Bytes before the first of `ends`; NO_END: there is none within what a path may have. */
static size_t length_of(const uint8_t *text, size_t size, const char *ends)
{
	for (size_t i = 0; i < size && i < SW_PATH_MAX; i++)
		if (memchr(ends, text[i], strlen(ends)))
			return i;
	return NO_END;
}

static const struct known *find(enum sw_method method, unsigned prefix, const uint8_t *path,
				size_t n)
{
	for (size_t i = 0; i < N(known); i++)
		if (known[i].method == method && known[i].prefix == prefix &&
		    strlen(known[i].path) == n && !memcmp(known[i].path, path, n))
			return &known[i];
	return NULL;
}

static bool matches(enum sw_method method, const uint8_t *text, size_t size)
{
	for (unsigned i = 0; starts[i].length; i++) {
		const uint8_t *at = text + starts[i].length, *end = text + size;
		const struct known *k;
		size_t n;

		if (size < starts[i].length || memcmp(text, starts[i].bytes, starts[i].length))
			continue;
		n = length_of(at, end - at, " ?/");
		if (!n || n == NO_END)
			continue;
		if (!at[n - 1])
			return false; /* a zero is no padding */
		at += n;
		n = length_of(at, end - at, " ?");
		if (n == NO_END)
			continue;
		if (n && !at[n - 1])
			return false;
		k = find(method, i + 1, at, n);
		if (k)
			return k->action == SW_PATH_SHED;
	}
	return false;
}

static enum sw_method method_of(const uint8_t *text, size_t size)
{
	for (enum sw_method m = SW_METHOD_GET; m <= SW_METHOD_TRACE; m++) {
		const char *name = sw_method_name(m);

		if (size > strlen(name) && text[strlen(name)] == ' ' &&
		    !memcmp(text, name, strlen(name)))
			return m;
	}
	return SW_METHOD_NONE;
}

static bool may_be_shed(const uint8_t *text, size_t size, bool all)
{
	enum sw_method method = method_of(text, size);
	const struct known *k;
	size_t n;

	if (!method || size < 9)
		return false;
	if (all)
		return true;
	n = strlen(sw_method_name(method)) + 1;
	text += n;
	size -= n;
	n = length_of(text, size, " ?");
	if (n == NO_END)
		return size >= SW_PATH_MAX && matches(method, text, size);
	if (n && !text[n - 1])
		return false;
	k = find(method, 0, text, n);
	return k ? k->action == SW_PATH_SHED : matches(method, text, size);
}

/* The first byte: how long the TCP header is, and whether all paths are shed. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sw_listener l = {.paths = SET};
	struct packet p = {.l4 = 34};
	size_t header, room;
	__u32 family;

	if (!size)
		return 0;
	header = 20 + data[0] % 11 * 4;
	room = WINDOW_MAX - header;
	if (data[0] & 0x80)
		l.flags = SW_LF_ALL_PATHS;
	data++;
	size--;
	p.data = p.l4 + header;
	p.end = p.data + size;
	memset(&scratch, ' ', sizeof(scratch)); /* of the packet before */
	memcpy(scratch.bytes + header, data, size < room ? size : room);
	memset(scratch.bytes + header + (size < room ? size : room), 0, WINDOW_PAD);
	if ((STAGE(read_request)(&p, &l, &family) == REQUEST_SHED) !=
	    may_be_shed(data, size, l.flags))
		abort();
	return 0;
}
