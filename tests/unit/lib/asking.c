// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A served control interface and a client of it; see asking.h. */
#include "asking.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

char asking_dir[64], asking_path[96];
pid_t asking_child;
struct asking_reply asking_reply;

static int serve(struct sw_live *live, void (*make)(void), sw_control_cb changed)
{
	struct event_base *base = event_base_new();
	struct sw_control *control;
	struct sw_error err;

	sw_log_level(SW_ERROR);
	make();
	if (sw_control_open(&control, base, asking_path, live, changed, &err))
		return 1;
	return event_base_dispatch(base);
}

int asking_start(struct sw_live *live, void (*make)(void), sw_control_cb changed)
{
	strcpy(asking_dir, "/tmp/spillway-control-XXXXXX");
	if (!mkdtemp(asking_dir))
		return -1;
	/* `sub` is to be made */
	snprintf(asking_path, sizeof(asking_path), "%s/sub/control.sock", asking_dir);
	asking_child = fork();
	if (asking_child == 0)
		_exit(serve(live, make, changed));
	for (int i = 0; i < 2000; i++, usleep(10000))
		if (asking("/health", NULL) == CURLE_OK)
			return 0;
	return -1;
}

int asking_stop(void)
{
	char sub[80];

	kill(asking_child, SIGKILL);
	waitpid(asking_child, NULL, 0);
	unlink(asking_path);
	snprintf(sub, sizeof(sub), "%s/sub", asking_dir);
	rmdir(sub);
	return rmdir(asking_dir);
}

static size_t take(char *data, size_t size, size_t n, void *arg)
{
	struct asking_reply *r = arg;

	assert_true(r->length + size * n < sizeof(r->text));
	memcpy(r->text + r->length, data, size * n);
	r->length += size * n;
	return size * n;
}

CURL *asking_curl(const char *target)
{
	CURL *curl = curl_easy_init();
	char url[256];

	memset(&asking_reply, 0, sizeof(asking_reply));
	snprintf(url, sizeof(url), "http://x%s", target);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, asking_path);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, &asking_reply);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, 20L);
	return curl;
}

CURLcode asking(const char *target, const char *body)
{
	CURL *curl = asking_curl(target);
	CURLcode e;

	if (body)
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
	e = curl_easy_perform(curl);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &asking_reply.status);
	curl_easy_cleanup(curl);
	return e;
}

json_t *asking_json(const char *target, const char *body, long status)
{
	json_t *j;

	assert_int_equal(asking(target, body), CURLE_OK);
	if (asking_reply.status != status)
		fail_msg("%s %s: %ld %s", target, body ? body : "", asking_reply.status,
			 asking_reply.text);
	j = json_loads(asking_reply.text, 0, NULL);
	assert_non_null(j);
	return j;
}

const char *asking_text(const json_t *j, const char *key)
{
	const char *s = json_string_value(json_object_get(j, key));

	assert_non_null(s);
	return s;
}
