// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Configuration files of the tests; see conf.h. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "conf.h"

static char source[512], own[] = "/tmp/spillway-conf-XXXXXX";
static FILE *capture;
static int captured_fd, saved_fd;

int conf_setup(void **state)
{
	(void)state;
	unsetenv("DYN_HTTP_OVERLOAD_STATUS_CODE");
	unsetenv("JOURNAL_STREAM");
	sw_log_level(SW_ERROR);
	return !getcwd(source, sizeof(source)) || !mkdtemp(own) || chdir(own);
}

int conf_teardown(void **state)
{
	(void)state;
	unlink("c.yaml");
	return chdir(source) || rmdir(own);
}

const char *conf_source(const char *path)
{
	static char full[1024];

	snprintf(full, sizeof(full), "%s/%s", source, path);
	return full;
}

void conf_write(const char *text)
{
	FILE *f = fopen("c.yaml", "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

int conf_load(const char *text, struct sw_config **out, struct sw_error *err)
{
	conf_write(text);
	return sw_config_load("c.yaml", out, err);
}

struct sw_config *conf_good(const char *text)
{
	struct sw_config *c = NULL;
	struct sw_error err = {""};

	if (conf_load(text, &c, &err))
		fail_msg("%s", err.text);
	return c;
}

const struct sw_path_conf *conf_path(const struct sw_listener_conf *l, enum sw_method method,
				     const char *path)
{
	for (size_t i = 0; i < l->n_paths; i++)
		if (l->paths[i].method == method && !strcmp(l->paths[i].path, path))
			return &l->paths[i];
	return NULL;
}

void conf_check(const struct conf_mistake *table, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct sw_config former, *c = &former;
		struct sw_error err = {""};

		int ret = conf_load(table[i].text, &c, &err);

		if (!ret)
			fail_msg("taken without a word, not: %s", table[i].error);
		assert_int_equal(ret, -EINVAL);
		assert_string_equal(err.text, table[i].error);
		assert_ptr_equal(c, &former);
	}
}

void conf_capture(int fd)
{
	fflush(NULL);
	capture = tmpfile();
	assert_non_null(capture);
	captured_fd = fd;
	saved_fd = dup(fd);
	dup2(fileno(capture), fd);
}

const char *conf_captured(void)
{
	static char text[16384];

	fflush(NULL);
	dup2(saved_fd, captured_fd);
	close(saved_fd);
	rewind(capture);
	text[fread(text, 1, sizeof(text) - 1, capture)] = '\0';
	fclose(capture);
	return text;
}
