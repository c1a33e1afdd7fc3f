// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Members from a real etcd, which the test starts: keys that come, go and expire, many pages of
 * them, and an etcd that stops, comes back or does not answer. */
#include <arpa/inet.h>
#include <errno.h>
#include <resolv.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "sources/etcd.h"
#include "sources/etcd_talk.h"

#define AT   "{\"transport\":{\"tcp\":\"10.0.0.5:9000\"}}"
#define CARD "{\"card_json\":{\"display_name\":\"m\"}}"

static char dir[] = "/tmp/spillway-test-etcd-XXXXXX";
static char url[64], *urls[2] = {NULL, url};
static unsigned port;
static pid_t server;

static struct event_base *base;
static struct sw_members *members;
static struct sw_etcd *etcd;
static size_t known;	    /* members */
static int patience_s = 20; /* with answers; a busy disk holds etcd up */

/* ---- the server ---- */

static unsigned free_port(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t length = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&a, length), 0);
	getsockname(fd, (struct sockaddr *)&a, &length);
	close(fd);
	return ntohs(a.sin_port);
}

static void start_server(void)
{
	char data[64], peers[64], cluster[80];

	snprintf(data, sizeof(data), "%s/data", dir);
	snprintf(peers, sizeof(peers), "http://127.0.0.1:%u", free_port());
	snprintf(cluster, sizeof(cluster), "default=%s", peers);
	server = fork();
	if (server)
		return;
	freopen("/dev/null", "w", stdout);
	freopen("/dev/null", "w", stderr);
	execlp("etcd", "etcd", "--data-dir", data, "--listen-client-urls", url,
	       "--advertise-client-urls", url, "--listen-peer-urls", peers,
	       "--initial-advertise-peer-urls", peers, "--initial-cluster", cluster, NULL);
	_exit(127);
}

static void stop_server(void)
{
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
}

/* Runs curl on the server. Returns the answer, until the next call. */
static const char *ask(const char *path, const char *body)
{
	static char answer[65536];
	char command[1024];
	FILE *f;

	snprintf(command, sizeof(command), "curl -s -m %d -d '%s' %s%s", patience_s, body, url,
		 path);
	f = popen(command, "r");
	answer[fread(answer, 1, sizeof(answer) - 1, f)] = '\0';
	pclose(f);
	return answer;
}

static const char *base64(const char *text)
{
	static char out[2][256];
	static int i;

	i = !i;
	b64_ntop((const unsigned char *)text, strlen(text), out[i], sizeof(out[i]));
	return out[i];
}

static void put(const char *key, const char *value, const char *lease)
{
	char body[700];

	snprintf(body, sizeof(body), "{\"key\":\"%s\",\"value\":\"%s\",\"lease\":\"%s\"}",
		 base64(key), base64(value), lease);
	assert_non_null(strstr(ask("/v3/kv/put", body), "revision"));
}

static void put_member(const char *id, const char *lease)
{
	char key[100];

	snprintf(key, sizeof(key), "v1/instances/d/b/g/%s", id);
	put(key, AT, lease);
	snprintf(key, sizeof(key), "v1/mdc/d/b/g/%s", id);
	put(key, CARD, lease);
}

static void delete_all(const char *from, const char *to)
{
	char body[200];

	snprintf(body, sizeof(body), "{\"key\":\"%s\",\"range_end\":\"%s\"}", base64(from),
		 base64(to));
	assert_non_null(strstr(ask("/v3/kv/deleterange", body), "revision"));
}

/* ---- what follows it ---- */

static void on_change(void *arg)
{
	(void)arg;
	free(sw_members_list(members, &known));
}

static void on_time(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	*(bool *)arg = true;
}

/* Runs until that is so; false: it never was. */
static bool comes(size_t n, enum sw_store_state state)
{
	struct timeval limit = {.tv_sec = 30};
	bool late = false;
	struct event *timer = evtimer_new(base, on_time, &late);

	evtimer_add(timer, &limit);
	while (!late && (known != n || sw_etcd_status(etcd)->state != state))
		event_base_loop(base, EVLOOP_ONCE);
	event_free(timer);
	return !late;
}

static void follow(char *const *endpoints, size_t n)
{
	const struct sw_etcd_conf conf = {.endpoints = endpoints, .n = n};
	struct sw_error err;

	assert_int_equal(sw_etcd_new(&etcd, base, &conf, members, &err), 0);
}

static int setup(void **state)
{
	(void)state;
	known = 0;
	base = event_base_new();
	members = sw_members_new(base, on_change, NULL);
	return !members;
}

static int teardown(void **state)
{
	(void)state;
	sw_etcd_free(etcd);
	etcd = NULL;
	sw_members_free(members);
	event_base_free(base);
	delete_all("v", "w");
	return 0;
}

/* ---- tests ---- */

static void what_is_there_is_read_and_what_comes_is_watched(void **state)
{
	(void)state;
	put_member("1", "0");
	put("v1/other", "no matter", "0");
	put("v2/instances/d/b/g/2", AT, "0");
	follow(&urls[1], 1);
	assert_true(comes(1, SW_STORE_OK));
	assert_string_equal(sw_etcd_status(etcd)->error.text, "");
	assert_true(sw_etcd_status(etcd)->at_ms > 0);
	put_member("2", "0");
	assert_true(comes(2, SW_STORE_OK));
	delete_all("v1/mdc/d/b/g/1", "");
	assert_true(comes(1, SW_STORE_OK));
	assert_int_equal(sw_etcd_status(etcd)->errors, 0);
	assert_int_equal(sw_members_counts(members)->bad, 0);
}

static void a_lease_that_ends_takes_the_member_away(void **state)
{
	char lease[32] = "";

	(void)state;
	sscanf(strstr(ask("/v3/lease/grant", "{\"TTL\":\"5\"}"), "\"ID\":\"") + 6, "%31[0-9]",
	       lease);
	put_member("1", lease);
	follow(&urls[1], 1);
	assert_true(comes(1, SW_STORE_OK));
	assert_true(comes(0, SW_STORE_OK));
	assert_int_equal(sw_etcd_status(etcd)->errors, 0);
}

static void more_than_a_page_is_read(void **state)
{
	char body[256], all[40000];
	size_t used = 0;

	(void)state;
	for (int i = 0; i < 250; i++) { /* 500 keys: five pages */
		char key[64];

		if (i % 50 == 0)
			used = (size_t)snprintf(all, sizeof(all), "{\"success\":[");
		for (int card = 0; card < 2; card++) {
			snprintf(key, sizeof(key), "v1/%s/d/b/g/%x", card ? "mdc" : "instances", i);
			snprintf(body, sizeof(body),
				 "{\"requestPut\":{\"key\":\"%s\",\"value\":\"%s\"}}", base64(key),
				 base64(card ? CARD : AT));
			used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s",
						 i % 50 || card ? "," : "", body);
		}
		if (i % 50 == 49) {
			char path[64];
			FILE *f;

			snprintf(all + used, sizeof(all) - used, "]}");
			snprintf(path, sizeof(path), "%s/body", dir);
			f = fopen(path, "w");
			fputs(all, f);
			fclose(f);
			snprintf(body, sizeof(body), "@%s", path);
			assert_non_null(strstr(ask("/v3/kv/txn", body), "revision"));
			unlink(path);
		}
	}
	follow(&urls[1], 1);
	assert_true(comes(250, SW_STORE_OK));
	delete_all("v1/", "v10");
	assert_true(comes(0, SW_STORE_OK));
}

static void a_revision_that_is_gone_is_told_apart(void **state)
{
	char body[64], *watch = sw_etcd_ask_watch(1);
	struct sw_error err = {""};
	const char *answer;
	long revision;

	(void)state;
	put_member("1", "0");
	put_member("1", "0");
	sscanf(strstr(ask("/v3/kv/range", "{\"key\":\"dg==\"}"), "\"revision\":\"") + 12, "%ld",
	       &revision);
	snprintf(body, sizeof(body), "{\"revision\":\"%ld\"}", revision);
	ask("/v3/kv/compaction", body);
	patience_s = 2;					    /* it goes on */
	answer = strchr(ask("/v3/watch", watch), '\n') + 1; /* after "created" */
	patience_s = 20;
	assert_int_equal(sw_etcd_take_watch(answer, strcspn(answer, "\n"), members, &err), -ESTALE);
	free(watch);
	follow(&urls[1], 1);
	assert_true(comes(1, SW_STORE_OK));
}

static void members_stay_while_it_is_away(void **state)
{
	(void)state;
	put_member("1", "0");
	put_member("2", "0");
	follow(&urls[1], 1);
	assert_true(comes(2, SW_STORE_OK));
	stop_server();
	assert_true(comes(2, SW_STORE_FAILING));
	assert_non_null(strstr(sw_etcd_status(etcd)->error.text, url));
	start_server();
	assert_true(comes(2, SW_STORE_OK));
	assert_true(sw_etcd_status(etcd)->errors > 0);
	assert_non_null(strstr(sw_etcd_status(etcd)->error.text, url));
	assert_in_range(sw_etcd_status(etcd)->error_ms, 1, sw_now_ms());
	put_member("3", "0");
	assert_true(comes(3, SW_STORE_OK));
}

static void the_next_endpoint_is_tried(void **state)
{
	char dead[64];

	(void)state;
	snprintf(dead, sizeof(dead), "http://user:secret@127.0.0.1:%u/", free_port());
	urls[0] = dead;
	put_member("1", "0");
	follow(urls, 2);
	assert_null(strstr(sw_etcd_status(etcd)->name, "secret"));
	assert_true(comes(1, SW_STORE_OK));
	assert_int_equal(sw_etcd_status(etcd)->errors, 1);
}

static void a_login_is_asked_for(void **state)
{
	char file[64];
	struct sw_etcd_conf conf = {
		.endpoints = &urls[1], .n = 1, .user = "root", .password_file = file};
	struct sw_error err;
	const char *token;
	char command[512];
	FILE *f;

	(void)state;
	put_member("1", "0");
	ask("/v3/auth/user/add", "{\"name\":\"root\",\"password\":\"pw\"}");
	ask("/v3/auth/user/grant", "{\"user\":\"root\",\"role\":\"root\"}");
	ask("/v3/auth/enable", "{}");
	snprintf(file, sizeof(file), "%s/password", dir);
	f = fopen(file, "w");
	fputs("wrong\n", f);
	fclose(f);
	assert_int_equal(sw_etcd_new(&etcd, base, &conf, members, &err), 0);
	assert_true(comes(0, SW_STORE_FAILING));
	assert_non_null(strstr(sw_etcd_status(etcd)->error.text, "invalid user ID or password"));
	f = fopen(file, "w");
	fputs("pw\n", f);
	fclose(f);
	assert_true(comes(1, SW_STORE_OK));
	token = strstr(ask("/v3/auth/authenticate", "{\"name\":\"root\",\"password\":\"pw\"}"),
		       "\"token\":\"") +
		9;
	snprintf(command, sizeof(command),
		 "curl -s -m 20 -o /dev/null -H 'Authorization: %.*s' -d '{}' %s/v3/auth/disable",
		 (int)strcspn(token, "\""), token, url);
	assert_int_equal(system(command), 0);
	unlink(file);
}

static int start(void **state)
{
	(void)state;
	if (system("command -v etcd curl >/dev/null")) {
		printf("SKIP: etcd or curl is not installed\n");
		exit(77);
	}
	signal(SIGPIPE, SIG_IGN);
	sw_log_level(SW_ERROR);
	if (!mkdtemp(dir))
		return -1;
	port = free_port();
	snprintf(url, sizeof(url), "http://127.0.0.1:%u", port);
	start_server();
	for (int i = 0; i < 500 && !strstr(ask("/v3/kv/range", "{\"key\":\"dg==\"}"), "revision");
	     i++)
		usleep(20000);
	return 0;
}

static int stop(void **state)
{
	char command[128];

	(void)state;
	stop_server();
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_there_is_read_and_what_comes_is_watched),
		TEST(a_lease_that_ends_takes_the_member_away),
		TEST(more_than_a_page_is_read),
		TEST(a_revision_that_is_gone_is_told_apart),
		TEST(members_stay_while_it_is_away),
		TEST(the_next_endpoint_is_tried),
		TEST(a_login_is_asked_for),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
