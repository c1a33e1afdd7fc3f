// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Answers of etcd's JSON gateway, or of what is at its address: the first byte chooses which one is
 * waited for. What is taken in leads on, what is not has a reason, and the table of members stands
 * either way. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sources/etcd_talk.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct sw_members *members;

static void on_change(void *arg)
{
	(void)arg;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	sw_log_level(SW_ERROR);
	members = sw_members_new(event_base_new(), on_change, NULL);
	return !members;
}

static void take_range(const char *text, size_t length)
{
	struct sw_error err = {""};
	struct sw_etcd_page page;
	int ret = sw_etcd_take_range(text, length, members, &page, &err);

	if (ret > 0 || (ret && (!err.text[0] || page.next)) || (!ret && page.revision <= 0))
		abort();
	if (page.next)
		free(sw_etcd_ask_range(page.next, page.revision));
	free(page.next);
}

static void take_watch(const char *text, size_t length)
{
	struct sw_error err = {""};
	int ret = sw_etcd_take_watch(text, length, members, &err);

	if (ret > 0 || (ret && !err.text[0]))
		abort();
}

static void take_token(const char *text, size_t length)
{
	struct sw_error err = {""};
	char *token = NULL;
	int ret = sw_etcd_take_token(text, length, &token, &err);

	if (ret > 0 || (ret && (token || !err.text[0])) ||
	    (!ret && (!*token || strpbrk(token, "\r\n"))))
		abort();
	free(token);
}

static void explain(const char *text, size_t length)
{
	struct sw_error err = {""};

	sw_etcd_explain(text, length, &err);
	if (memchr(err.text, '\0', sizeof(err.text)) == err.text)
		abort();
}

/* All that the table has is whole. */
static void check_members(void)
{
	size_t n = 0;
	struct sw_member *list = sw_members_list(members, &n);
	struct sw_channel *channels;

	for (size_t i = 0; i < n; i++)
		if (!list[i].instance || !list[i].model || !list[i].model->model)
			abort();
	free(list);
	channels = sw_members_channels(members, &n);
	for (size_t i = 0; channels && i < n; i++)
		if (!channels[i].address)
			abort();
	free(channels);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const takes[])(const char *text, size_t length) = {take_range, take_watch,
									 take_token, explain};
	char *text;

	if (!size)
		return 0;
	text = malloc(size); /* exactly as long as it is, so that reading behind it is seen */
	memcpy(text, data + 1, size - 1);
	takes[data[0] % 4](text, size - 1);
	check_members();
	sw_members_begin(members); /* nothing of it is there for the next one */
	sw_members_end(members);
	free(text);
	return 0;
}
