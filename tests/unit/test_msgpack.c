// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Events as they are on the wire: the documented bytes, other spellings of the same, and bytes that
 * are wrong in every way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "sources/msgpack.h"

/* Worker 42, rank 0, 90 blocks used. */
#define PAYLOAD                                                                                    \
	"85a9776f726b65725f69642aa764705f72616e6b00b46163746976655f6465636f64655f626c6f636b73c0"   \
	"b56163746976655f70726566696c6c5f746f6b656e73c0ae6b765f757365645f626c6f636b735a"
/* Publisher 7, sequence 3, at 1700000000000. */
#define ENVELOPE                                                                                   \
	"85a5746f706963aa6b765f6d657472696373ac7075626c69736865725f696407a873657175656e636503"     \
	"ac7075626c69736865645f6174cf0000018bcfe56800a77061796c6f6164c452"

#define WORKER "a9776f726b65725f6964"		/* "worker_id" */
#define USED   "ae6b765f757365645f626c6f636b73" /* "kv_used_blocks" */

static struct sw_error err;

/* A copy of its own on the heap, so that a read past the end is found. */
static void *bytes_of(const char *hex, size_t *length)
{
	uint8_t *out = malloc(strlen(hex) / 2);

	*length = strlen(hex) / 2;
	for (size_t i = 0; i < *length; i++) {
		char two[3] = {hex[2 * i], hex[2 * i + 1]};

		out[i] = (uint8_t)strtoul(two, NULL, 16);
	}
	return out;
}

static int read_envelope(const char *hex, struct sw_envelope *out)
{
	size_t length;
	void *bytes = bytes_of(hex, &length);
	int ret;

	err.text[0] = '\0';
	ret = sw_envelope_read(bytes, length, out, &err);
	free(bytes);
	return ret;
}

static int read_load(const char *hex, uint64_t *worker, struct sw_report *out)
{
	size_t length;
	void *bytes = bytes_of(hex, &length);
	int ret;

	err.text[0] = '\0';
	ret = sw_load_read(bytes, length, worker, out, &err);
	free(bytes);
	return ret;
}

static void assert_no_load(const char *hex, const char *why)
{
	struct sw_report report;
	uint64_t worker;

	assert_int_equal(read_load(hex, &worker, &report), -EBADMSG);
	if (!strstr(err.text, why))
		fail_msg("%s: '%s' is not in '%s'", hex, why, err.text);
}

/* ---- good ---- */

static void the_documented_bytes_are_understood(void **state)
{
	struct sw_envelope e;
	struct sw_report r;
	uint64_t worker;
	size_t length;
	char *bytes = bytes_of(ENVELOPE PAYLOAD, &length);

	(void)state;
	assert_int_equal(length, 156);
	assert_int_equal(sw_envelope_read(bytes, length, &e, &err), 0);
	assert_int_equal(e.publisher, 7);
	assert_int_equal(e.sequence, 3);
	assert_int_equal(e.published_ms, 1700000000000);
	assert_int_equal(e.length, 82);
	assert_ptr_equal(e.payload, bytes + 156 - 82);
	assert_int_equal(sw_load_read(e.payload, e.length, &worker, &r, &err), 0);
	assert_int_equal(worker, 42);
	assert_int_equal(r.rank, 0);
	assert_int_equal(r.have, 1u << SW_SIG_KV_USED);
	assert_int_equal(r.value[SW_SIG_KV_USED], 90);
	free(bytes);
}

static void every_signal_has_its_place(void **state)
{
	struct sw_report r;
	uint64_t worker;

	(void)state;
	assert_int_equal(read_load("86" WORKER "cfffffffffffffffff"
				   "a764705f72616e6b"
				   "ccff" /* dp_rank */
				   "b46163746976655f6465636f64655f626c6f636b73"
				   "cd0101" /* decode */
				   "b56163746976655f70726566696c6c5f746f6b656e73"
				   "ce00010001" USED "d30000000000000005"
				   "b077616974696e675f7265717565737473"
				   "00", /* waiting_requests */
				   &worker, &r),
			 0);
	assert_true(worker == UINT64_MAX);
	assert_int_equal(r.rank, 255);
	assert_int_equal(r.have, 1u << SW_SIG_DECODE_BLOCKS | 1u << SW_SIG_PREFILL_TOKENS |
					 1u << SW_SIG_KV_USED | 1u << SW_SIG_WAITING);
	assert_int_equal(r.value[SW_SIG_DECODE_BLOCKS], 257);
	assert_int_equal(r.value[SW_SIG_PREFILL_TOKENS], 65537);
	assert_int_equal(r.value[SW_SIG_KV_USED], 5);
	assert_int_equal(r.value[SW_SIG_WAITING], 0);
}

static void unknown_keys_are_skipped_whatever_they_hold(void **state)
{
	struct sw_report r;
	uint64_t worker;

	(void)state;
	/* 5: "y", "z": 1.5, {}: ext, nil: true, ..., "x": [1, {"worker_id": 9}] */
	assert_int_equal(read_load("8705a179a17acb3ff800000000000080d40100c0c3" WORKER "2a" USED
				   "5aa178920181" WORKER "09",
				   &worker, &r),
			 0);
	assert_int_equal(worker, 42);
	assert_int_equal(r.value[SW_SIG_KV_USED], 90);
	assert_int_equal(read_load("82" WORKER "2a" USED "c0", &worker, &r), 0);
	assert_int_equal(r.have, 0); /* told nothing, and no 0 either */
}

/* ---- bad ---- */

static void every_end_before_the_end_is_an_error(void **state)
{
	char hex[] = ENVELOPE PAYLOAD;
	struct sw_envelope e;

	(void)state;
	for (size_t n = 0; n < 156; n++) {
		char cut[sizeof(hex)];

		memcpy(cut, hex, 2 * n);
		cut[2 * n] = '\0';
		assert_int_equal(read_envelope(cut, &e), -EBADMSG);
		assert_non_null(strstr(err.text, "ends early"));
	}
	assert_int_equal(read_envelope(ENVELOPE PAYLOAD "00", &e), -EBADMSG);
	assert_string_equal(err.text, "1 bytes after the end of the MessagePack");
}

static void wrong_types_are_named(void **state)
{
	struct sw_envelope e;

	(void)state;
	assert_no_load("81" WORKER "a13432", "worker_id is not an unsigned integer");
	assert_no_load("82" WORKER "2a" USED "ff", "kv_used_blocks is not an unsigned integer");
	assert_no_load("82" WORKER "2a" USED "cb4056800000000000", "kv_used_blocks is not");
	assert_no_load("82" WORKER "2a" USED "c3", "kv_used_blocks is not");
	assert_no_load("82" WORKER "2a" USED "9101", "kv_used_blocks is not");
	assert_no_load("82" WORKER "2a"
		       "a764705f72616e6b"
		       "cf0000000100000000",
		       "dp_rank does not");
	assert_no_load("81" USED "5a", "worker_id is missing");
	assert_no_load("81" WORKER "c0", "worker_id is missing");
	assert_no_load("80", "worker_id is missing");
	assert_no_load("9181" WORKER "2a", "no map");
	assert_no_load("2a", "no map");
	assert_no_load("c1", "no MessagePack");
	/* a payload that is text */
	assert_int_equal(read_envelope("83"
				       "ac7075626c69736865725f6964"
				       "07"
				       "a873657175656e6365"
				       "03"
				       "a77061796c6f6164"
				       "a178",
				       &e),
			 -EBADMSG);
	assert_string_equal(err.text, "payload is not bytes");
}

static void declared_lengths_cost_nothing(void **state)
{
	struct rlimit was, tight;
	char deep[401] = "";

	(void)state;
	/* not even address space is asked for; a sanitizer needs its own */
	getrlimit(RLIMIT_AS, &was);
	tight = was;
#ifndef __SANITIZE_ADDRESS__
	tight.rlim_cur = 256 << 20;
#endif
	assert_int_equal(setrlimit(RLIMIT_AS, &tight), 0);
	assert_no_load("ddffffffff", "ends early");
	assert_no_load("dfffffffff", "ends early");
	assert_no_load("81a178"
		       "dd0fffffff"
		       "dd0fffffff"
		       "dd0fffffff"
		       "00",
		       "ends early");
	assert_no_load("81a178"
		       "c6ffffffff"
		       "00",
		       "ends early");
	assert_no_load("81a178"
		       "dbffffffff"
		       "00",
		       "ends early");
	assert_no_load("81a178"
		       "c9ffffffff"
		       "00",
		       "after the end");
	for (int i = 0; i < 200; i++)
		strcat(deep, "91");
	assert_no_load(deep, "too deep");
	assert_int_equal(setrlimit(RLIMIT_AS, &was), 0);
}

static void any_changed_byte_is_survived(void **state)
{
	size_t length;
	uint8_t *bytes = bytes_of(ENVELOPE PAYLOAD, &length);

	(void)state;
	for (size_t i = 0; i < length; i++) {
		uint8_t was = bytes[i];

		for (int b = 0; b < 256; b++) {
			struct sw_envelope e;
			struct sw_report r;
			uint64_t worker;

			bytes[i] = (uint8_t)b;
			if (!sw_envelope_read(bytes, length, &e, &err))
				sw_load_read(e.payload, e.length, &worker, &r, &err);
		}
		bytes[i] = was;
	}
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_documented_bytes_are_understood),
		cmocka_unit_test(every_signal_has_its_place),
		cmocka_unit_test(unknown_keys_are_skipped_whatever_they_hold),
		cmocka_unit_test(every_end_before_the_end_is_an_error),
		cmocka_unit_test(wrong_types_are_named),
		cmocka_unit_test(declared_lengths_cost_nothing),
		cmocka_unit_test(any_changed_byte_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
