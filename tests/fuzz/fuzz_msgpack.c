// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Events of Dynamo's event plane: whatever the bytes are, a payload lies within them, a signal is
 * one of ours, and what is no event has a reason. */
#include <stdlib.h>
#include <string.h>

#include "sources/msgpack.h"

static void read_load(const uint8_t *bytes, size_t size)
{
	struct sw_report report = {0};
	struct sw_error err = {""};
	uint64_t worker = 0;
	int ret = sw_load_read(bytes, size, &worker, &report, &err);

	if (ret > 0 || (ret < 0 && !err.text[0]) || report.have >= 1U << SW_SIGNALS)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sw_envelope envelope = {0};
	struct sw_error err = {""};
	/* exactly as long as it is, so that reading behind it is seen */
	uint8_t *bytes = malloc(size ? size : 1);
	int ret;

	memcpy(bytes, data, size);
	ret = sw_envelope_read(bytes, size, &envelope, &err);
	if (ret > 0 || (ret < 0 && !err.text[0]))
		abort();
	if (!ret) {
		const uint8_t *payload = envelope.payload;

		if (payload < bytes || envelope.length > size ||
		    payload + envelope.length > bytes + size)
			abort();
		read_load(payload, envelope.length);
	}
	read_load(bytes, size);
	free(bytes);
	return 0;
}
