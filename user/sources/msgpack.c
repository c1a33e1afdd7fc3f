// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* MessagePack maps of known fields, see msgpack.h. The parser is msgpack-c's own, in the form in
 * which it hands on each item as it comes: msgpack_unpack() would allocate whatever an array's
 * header declares. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <msgpack/sysdep.h>
#include <msgpack/unpack.h>
#include <msgpack/unpack_define.h>

#include "sources/msgpack.h"

enum kind { NIL, UINT, STR, BIN, OTHER };

struct item {
	enum kind kind;
	bool outermost; /* the map that everything else is in */
	uint64_t number;
	const char *data;
	uint32_t length;
};

struct field {
	const char *key;
	enum kind kind;
	bool required;
};

struct reader {
	const struct field *fields;
	size_t n;
	struct item *values; /* by field */
	const struct field *wrong;
	bool begun;
};

/* ---- what the parser calls ------------------------------------------------------------------ */

#define msgpack_unpack_struct(name)	struct parser##name
#define msgpack_unpack_func(type, name) static inline type parser##name
#define msgpack_unpack_callback(name)	take##name
#define msgpack_unpack_object		struct item
#define msgpack_unpack_user		struct reader

#define TAKE_NUMBER(name, type)                                                                    \
	static int take##name(struct reader *r, type value, struct item *o)                        \
	{                                                                                          \
		(void)r;                                                                           \
		*o = (struct item){.kind = value >= 0 ? UINT : OTHER, .number = (uint64_t)value};  \
		return 0;                                                                          \
	}
#define TAKE_UNSIGNED(name, type)                                                                  \
	static int take##name(struct reader *r, type value, struct item *o)                        \
	{                                                                                          \
		(void)r;                                                                           \
		*o = (struct item){.kind = UINT, .number = value};                                 \
		return 0;                                                                          \
	}
#define TAKE_FLOAT(name, type)                                                                     \
	static int take##name(struct reader *r, type value, struct item *o)                        \
	{                                                                                          \
		(void)r;                                                                           \
		(void)value;                                                                       \
		*o = (struct item){.kind = OTHER};                                                 \
		return 0;                                                                          \
	}
#define TAKE_CONSTANT(name, what)                                                                  \
	static int take##name(struct reader *r, struct item *o)                                    \
	{                                                                                          \
		(void)r;                                                                           \
		*o = (struct item){.kind = what};                                                  \
		return 0;                                                                          \
	}
#define TAKE_BYTES(name, what)                                                                     \
	static int take##name(struct reader *r, const char *all, const char *data,                 \
			      unsigned length, struct item *o)                                     \
	{                                                                                          \
		(void)r;                                                                           \
		(void)all;                                                                         \
		*o = (struct item){.kind = what, .data = data, .length = length};                  \
		return 0;                                                                          \
	}

TAKE_UNSIGNED(_uint8, uint8_t)
TAKE_UNSIGNED(_uint16, uint16_t)
TAKE_UNSIGNED(_uint32, uint32_t)
TAKE_UNSIGNED(_uint64, uint64_t)
TAKE_NUMBER(_int8, int8_t)
TAKE_NUMBER(_int16, int16_t)
TAKE_NUMBER(_int32, int32_t)
TAKE_NUMBER(_int64, int64_t)
TAKE_FLOAT(_float, float)
TAKE_FLOAT(_double, double)
TAKE_CONSTANT(_nil, NIL)
TAKE_CONSTANT(_true, OTHER)
TAKE_CONSTANT(_false, OTHER)
TAKE_BYTES(_str, STR)
TAKE_BYTES(_bin, BIN)
TAKE_BYTES(_ext, OTHER)

static struct item take_root(struct reader *r)
{
	(void)r;
	return (struct item){.kind = OTHER};
}

static int take_array(struct reader *r, unsigned n, struct item *o)
{
	(void)r;
	(void)n;
	*o = (struct item){.kind = OTHER};
	return 0;
}

static int take_array_item(struct reader *r, struct item *array, struct item o)
{
	(void)r;
	(void)array;
	(void)o;
	return 0;
}

static int take_map(struct reader *r, unsigned n, struct item *o)
{
	(void)n;
	*o = (struct item){.kind = OTHER, .outermost = !r->begun};
	r->begun = true;
	return 0;
}

static int take_map_item(struct reader *r, const struct item *map, struct item key,
			 struct item value)
{
	if (!map->outermost || key.kind != STR)
		return 0;
	for (size_t i = 0; i < r->n; i++) {
		const struct field *f = &r->fields[i];

		if (key.length != strlen(f->key) || memcmp(key.data, f->key, key.length))
			continue;
		if (value.kind != NIL && value.kind != f->kind) {
			r->wrong = f;
			return -1;
		}
		r->values[i] = value;
	}
	return 0;
}

#include <msgpack/unpack_template.h>

/* ---- maps of fields ------------------------------------------------------------------------- */

static const char *kind_name(enum kind kind)
{
	return kind == UINT ? "an unsigned integer" : kind == STR ? "text" : "bytes";
}

static int read_map(const void *bytes, size_t length, const struct field *fields, size_t n,
		    struct item *values, struct sw_error *err)
{
	struct parser_context parser = {.user = {.fields = fields, .n = n, .values = values}};
	size_t used = 0;
	int ret;

	memset(values, 0, n * sizeof(*values));
	parser_init(&parser);
	ret = parser_execute(&parser, bytes, length, &used);
	if (parser.user.wrong)
		return sw_fail(err, -EBADMSG, "%s is not %s", parser.user.wrong->key,
			       kind_name(parser.user.wrong->kind));
	if (ret < 0)
		return sw_fail(err, -EBADMSG, "no MessagePack at byte %zu, or nested too deep",
			       used);
	if (!ret)
		return sw_fail(err, -EBADMSG, "MessagePack that ends early, after %zu bytes",
			       length);
	if (used != length)
		return sw_fail(err, -EBADMSG, "%zu bytes after the end of the MessagePack",
			       length - used);
	if (!parser_data(&parser).outermost)
		return sw_fail(err, -EBADMSG, "MessagePack, but no map");
	for (size_t i = 0; i < n; i++)
		if (fields[i].required && values[i].kind == NIL)
			return sw_fail(err, -EBADMSG, "%s is missing", fields[i].key);
	return 0;
}

int sw_envelope_read(const void *bytes, size_t length, struct sw_envelope *out,
		     struct sw_error *err)
{
	enum { PUBLISHER, SEQUENCE, PUBLISHED, PAYLOAD, N };
	static const struct field fields[N] = {
		[PUBLISHER] = {"publisher_id", UINT, true},
		[SEQUENCE] = {"sequence", UINT, true},
		[PUBLISHED] = {"published_at", UINT, false},
		[PAYLOAD] = {"payload", BIN, true},
	};
	struct item values[N];
	int ret = read_map(bytes, length, fields, N, values, err);

	if (ret)
		return ret;
	*out = (struct sw_envelope){.publisher = values[PUBLISHER].number,
				    .sequence = values[SEQUENCE].number,
				    .published_ms = values[PUBLISHED].number,
				    .payload = values[PAYLOAD].data,
				    .length = values[PAYLOAD].length};
	return 0;
}

int sw_load_read(const void *bytes, size_t length, uint64_t *worker_id, struct sw_report *out,
		 struct sw_error *err)
{
	enum { WORKER, RANK, DECODE, PREFILL, USED, WAITING, N };
	static const struct field fields[N] = {
		[WORKER] = {"worker_id", UINT, true},
		[RANK] = {"dp_rank", UINT, false},
		[DECODE] = {"active_decode_blocks", UINT, false},
		[PREFILL] = {"active_prefill_tokens", UINT, false},
		[USED] = {"kv_used_blocks", UINT, false},
		[WAITING] = {"waiting_requests", UINT, false},
	};
	static const enum sw_signal signals[N] = {
		[DECODE] = SW_SIG_DECODE_BLOCKS,
		[PREFILL] = SW_SIG_PREFILL_TOKENS,
		[USED] = SW_SIG_KV_USED,
		[WAITING] = SW_SIG_WAITING,
	};
	struct item values[N];
	int ret = read_map(bytes, length, fields, N, values, err);

	if (ret)
		return ret;
	if (values[RANK].number > UINT32_MAX)
		return sw_fail(err, -EBADMSG, "dp_rank does not fit into 32 bits");
	*worker_id = values[WORKER].number;
	*out = (struct sw_report){.rank = (uint32_t)values[RANK].number};
	for (int i = DECODE; i < N; i++) {
		if (values[i].kind == NIL)
			continue;
		out->have |= 1u << signals[i];
		out->value[signals[i]] = values[i].number;
	}
	return 0;
}
