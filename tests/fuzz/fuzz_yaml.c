// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A configuration file: whatever it is, it gives a configuration, or one line that says what is
 * wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config/config.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int file;
static char path[32];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	sw_log_level(SW_ERROR);
	file = memfd_create("c.yaml", 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	return file < 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sw_config *c = NULL;
	struct sw_error err = {""};
	int ret;

	if (ftruncate(file, 0) || pwrite(file, data, size, 0) != (ssize_t)size)
		abort();
	ret = sw_config_load(path, &c, &err);
	if (ret > 0 || (ret < 0 && (c || !err.text[0])) || (!ret && !c))
		abort();
	if (strchr(err.text, '\n'))
		abort();
	sw_config_free(c);
	return 0;
}
