// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Values as JSON; see json.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/json.h"

json_t *sw_json_number(double v)
{
	if (!isfinite(v))
		return json_null();
	return v == floor(v) && fabs(v) < 1e15 ? json_integer((json_int_t)v) : json_real(v);
}

json_t *sw_json_text(const char *text)
{
	json_t *out = text ? json_string(text) : json_null();

	return out ? out : json_string("(not UTF-8)");
}

json_t *sw_json_age(uint64_t age_ms)
{
	return age_ms == UINT64_MAX ? json_null() : json_integer((json_int_t)age_ms);
}

json_t *sw_json_lasting(bool is, uint64_t since_ms, uint64_t now_ms)
{
	return is ? sw_json_age(now_ms - since_ms) : json_null();
}

void sw_json_last_error(json_t *to, const char *text, uint64_t at_ms, uint64_t now_ms)
{
	bool is = at_ms && now_ms - at_ms < 3600000;

	json_object_set_new(to, "last_error", sw_json_text(is ? text : NULL));
	json_object_set_new(to, "last_error_ms", sw_json_lasting(is, at_ms, now_ms));
}

json_t *sw_json_endpoint(const struct sw_endpoint *at)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct sw_listener_conf l = {.port = at->port};
	char out[64];

	if (!at->port)
		return json_null();
	memcpy(l.addr, at->addr, sizeof(l.addr));
	l.v4 = !memcmp(at->addr, mapped, sizeof(mapped));
	l.v6 = !l.v4;
	sw_format_listener(&l, out, sizeof(out));
	return json_string(out);
}

void sw_json_digits(double v, char out[32])
{
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(out, 32, "%.*g", digits, v);
		if (strtod(out, NULL) == v)
			return;
	}
}

char *sw_json_dump(const json_t *j)
{
	char *text = NULL;

	for (size_t digits = 15; j && digits <= 17; digits++) {
		json_t *back;
		bool same;

		free(text);
		text = json_dumps(j, JSON_COMPACT | JSON_REAL_PRECISION(digits));
		back = text ? json_loads(text, 0, NULL) : NULL;
		same = json_equal(j, back);
		json_decref(back);
		if (same)
			break;
	}
	return text;
}
