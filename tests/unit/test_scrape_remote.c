// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Scraping over TLS, served by openssl(1), from other network namespaces, made on the spot, and
 * with a name server that does not answer. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/scraping.h"

/* openssl s_server -HTTP sends files as they are, the head of the answer included. */
static pid_t start_tls(unsigned *port)
{
	char line[256];
	FILE *out;
	int pipes[2];
	pid_t pid;

	if (pipe(pipes))
		return -1;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a failed test leaves nothing behind */
		dup2(pipes[1], 1);
		dup2(open("/dev/null", O_WRONLY), 2);
		close(pipes[0]);
		if (chdir(in_dir("")))
			_exit(1);
		execlp("openssl", "openssl", "s_server", "-accept", "127.0.0.1:0", "-cert",
		       "cert.pem", "-key", "key.pem", "-HTTP", NULL);
		_exit(1);
	}
	close(pipes[1]);
	out = fdopen(pipes[0], "r");
	while (!*port && fgets(line, sizeof(line), out))
		if (!strncmp(line, "ACCEPT", 6))
			*port = atoi(strrchr(line, ':') + 1);
	/* left open: the server goes on writing */
	return pid;
}

static void https_is_verified(void **state)
{
	static const char make[] =
		"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
		"-subj /CN=spillway-test -addext subjectAltName=IP:127.0.0.1 -keyout %s -out %s "
		"2>/dev/null";
	char command[512], url[128];
	struct sw_target t = target_of("/metrics");
	unsigned port = 0;
	pid_t pid;

	(void)state;
	snprintf(command, sizeof(command), make, "key.pem", "cert.pem");
	if (run_in_dir(command)) {
		print_message("SKIP: openssl(1) is not installed or cannot make a certificate\n");
		skip();
	}
	snprintf(command, sizeof(command), make, "key2.pem", "ca.pem"); /* somebody else's */
	assert_int_equal(run_in_dir(command), 0);
	write_file(in_dir("metrics"), "HTTP/1.0 200 OK\r\n\r\n" WEB_PAGE);
	pid = start_tls(&port);
	assert_true(port > 0);
	snprintf(url, sizeof(url), "https://127.0.0.1:%u/metrics", port);
	t.url = url;

	scrape(t);
	assert_failed(-EACCES, "set ca_file to the authority that signed it, or insecure: true");
	t.ca_file = in_dir("ca.pem");
	scrape(t);
	assert_failed(-EACCES, "set ca_file");
	assert_int_equal(run_in_dir("cp cert.pem ca.pem"), 0); /* a new authority counts at once */
	scrape(t);
	assert_page();
	t.ca_file = in_dir("missing.pem");
	scrape(t);
	assert_failed(-EINVAL, "check ca_file");
	t.ca_file = NULL;
	t.insecure = 1;
	scrape(t);
	assert_page();

	/* from https the way leads to https only */
	snprintf(command, sizeof(command),
		 "HTTP/1.0 302 Found\r\nLocation: http://127.0.0.1:%u/metrics\r\n\r\n", web.port);
	write_file(in_dir("metrics"), command);
	scrape(t);
	assert_true(seen.n < 0);
	assert_int_equal(web.requests, 0);

	snprintf(url, sizeof(url), "https://127.0.0.1:%u/metrics", web.port);
	scrape(t);
	assert_failed(-EPROTO, "does this port speak TLS? If not: http://");
	kill(pid, SIGTERM);
	waitpid(pid, NULL, 0);
}

/* ---- network namespaces ---- */

/* A process in a namespace of its own that answers each connection to 127.0.0.1:port with `body`.
 * -1: this user may not make one. */
static pid_t start_in_netns(unsigned port, const char *body)
{
	int pipes[2];
	char ok = 0;
	pid_t pid;

	if (pipe(pipes))
		return -1;
	pid = fork();
	if (!pid) {
		struct sockaddr_in a = {.sin_family = AF_INET,
					.sin_port = htons(port),
					.sin_addr = {htonl(INADDR_LOOPBACK)}};
		struct ifreq up = {.ifr_name = "lo", .ifr_flags = IFF_UP};
		int s;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWNET))
			_exit(1);
		s = socket(AF_INET, SOCK_STREAM, 0);
		if (ioctl(s, SIOCSIFFLAGS, &up) || bind(s, (void *)&a, sizeof(a)) || listen(s, 5) ||
		    write(pipes[1], "+", 1) != 1)
			_exit(1);
		for (;;) {
			int c = accept(s, NULL, NULL);
			char request[2048];

			while (read(c, request, sizeof(request)) > 0)
				dprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s",
					strlen(body), body);
			close(c);
		}
	}
	close(pipes[1]);
	if (read(pipes[0], &ok, 1) != 1) {
		waitpid(pid, NULL, 0);
		pid = -1;
	}
	close(pipes[0]);
	return pid;
}

static void a_target_may_be_in_another_namespace(void **state)
{
	pid_t pid = start_in_netns(web.port, "tgi_queue_size 77\n");
	struct sw_target t = target_of("/metrics");
	struct stat before, after;
	char path[64];
	int files;

	(void)state;
	if (pid < 0) {
		print_message("SKIP: making a network namespace needs CAP_SYS_ADMIN\n");
		skip();
	}
	assert_int_equal(stat("/proc/thread-self/ns/net", &before), 0);
	scrape(t); /* leaves an idle connection to the same address in our own */
	assert_page();
	files = open_files();
	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	t.netns = path;
	scrape(t);
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.reports[0].value[SW_SIG_WAITING], 77);
	t.netns = NULL;
	scrape(t); /* and back */
	assert_page();
	assert_int_equal(open_files(), files);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);

	t.netns = path;
	scrape(t);
	assert_failed(-ENOENT, "cannot enter network namespace /proc/");
	t.netns = "/etc/hostname";
	scrape(t);
	assert_failed(-EINVAL, "cannot enter network namespace /etc/hostname");
	assert_int_equal(stat("/proc/thread-self/ns/net", &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
}

/* ---- a name server that does not answer ---- */

struct beats {
	uint64_t last, longest;
};

static void on_beat(evutil_socket_t fd, short what, void *arg)
{
	struct beats *b = arg;
	uint64_t now = now_ms();

	(void)fd;
	(void)what;
	if (b->last && now - b->last > b->longest)
		b->longest = now - b->last;
	b->last = now;
}

static void on_timeout(void *arg, int n, const struct sw_report *reports,
		       const struct sw_error *err)
{
	(void)reports;
	(void)err;
	*(int *)arg = n;
}

/* In namespaces of its own, where 127.0.0.1 is the only name server and keeps silent: the longest
 * time in 10 ms that the loop stood still, 254: no scrape timed out, 255: no namespaces. */
static int stand_still(void)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_port = htons(53), .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct ifreq up = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	struct sw_target t = {.url = "http://slow.spillway.test/metrics", .timeout_ms = 200};
	struct beats beats = {};
	struct event *beat;
	int id, s, result = 0;

	if (unshare(CLONE_NEWNET | CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount(in_dir("resolv.conf"), "/etc/resolv.conf", NULL, MS_BIND, NULL))
		return 255;
	s = socket(AF_INET, SOCK_DGRAM, 0);
	if (ioctl(s, SIOCSIFFLAGS, &up) || bind(s, (void *)&a, sizeof(a)))
		return 255;
	base = event_base_new();
	beat = event_new(base, -1, EV_PERSIST, on_beat, &beats);
	event_add(beat, &(struct timeval){.tv_usec = 10000});
	sw_scraper_new(&scraper, base, NULL);
	sw_scraper_add(scraper, &t, on_timeout, &result, &id, NULL);
	event_base_loopexit(base, &(struct timeval){.tv_sec = 2});
	event_base_dispatch(base);
	sw_scraper_remove(scraper, id); /* with the second try under way */
	on_beat(-1, 0, &beats);
	beats.longest /= 10;
	return result != -ETIMEDOUT ? 254 : beats.longest > 253 ? 253 : (int)beats.longest;
}

static void a_silent_name_server_does_not_stop_the_loop(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	write_file(in_dir("resolv.conf"), "nameserver 127.0.0.1\n");
	pid = fork();
	if (!pid)
		_exit(stand_still());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	unlink(in_dir("resolv.conf"));
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 255) {
		print_message("SKIP: making network and mount namespaces needs CAP_SYS_ADMIN\n");
		skip();
	}
	assert_in_range(WEXITSTATUS(status), 0, 150); /* the resolver would wait for 5 s */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRAPING_TEST(https_is_verified),
		SCRAPING_TEST(a_target_may_be_in_another_namespace),
		SCRAPING_TEST(a_silent_name_server_does_not_stop_the_loop),
	};

	return cmocka_run_group_tests(tests, scraping_group_setup, scraping_group_teardown);
}
