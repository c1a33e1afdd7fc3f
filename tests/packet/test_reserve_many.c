// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// What is held for connections when there are too many of them: SYN cookies, which hold nothing,
// and a storm of connections, after which everything has come back.

#include "lib/clients.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- SYN cookies
 * --------------------------------------------------------------------------------- */

/* There is no request, and the ACK is looked up anew: it has to come to the socket that made the
 * cookie. New sockets each time: one that has made a cookie takes those of others too. */
static void cookies_come_home(void **state)
{
	int before = count_sysctl("tcp_syncookies", 2);
	struct client c[3];

	(void)state;
	for (int round = 0; round < 5; round++) {
		employ(WORKERS, 3, 100);
		assert_int_equal(clients_knock(c, 3), 3);
		assert_int_equal(count_reservations(), 0);
		assert_true(count_all().inuse <= 1);
		for (int i = 0; i < 3; i++)
			client_complete(&c[i]);
		count_await(3, 0);
		for (int i = 0; i < 3; i++)
			client_abort(&c[i]);
		count_await(0, 0);
		workers_close();
	}
	assert_int_equal(count_all().moves, 15);
	count_sysctl("tcp_syncookies", before);
}

static void cookies_are_counted_exactly(void **state)
{
	int before = count_sysctl("tcp_syncookies", 2), fd[8], n = 0;

	(void)state;
	employ(2, 4, 100);
	for (int i = 0; i < 30; i++)
		ask_and_close(4);
	count_await(0, 0);
	assert_int_equal(count_all().moves, 30);
	for (int i = 0; i < 8; i++) {
		fd[i] = ask_virtual(4);
		assert_true(fd[i] >= 0);
	}
	count_await(8, 0);
	assert_int_equal(ask_virtual(4), -ECONNREFUSED);
	assert_int_equal(count_all().most, 4);
	while (n < 8)
		close(fd[n++]);
	workers_end_all();
	count_sysctl("tcp_syncookies", before);
}

/* The last slot went to another between the cookie and its ACK. */
static void a_cookie_without_a_slot(void **state)
{
	int before = count_sysctl("tcp_syncookies", 2);
	struct client c[2];

	(void)state;
	employ(1, 1, 100);
	assert_int_equal(clients_knock(c, 2), 2);
	client_complete(&c[0]);
	count_await(1, 0);
	client_complete(&c[1]);
	usleep(20000);
	assert_int_equal(count_all().inuse, 1);
	assert_int_equal(count_all().most, 1);
	client_abort(&c[0]);
	count_await(0, 0);
	count_sysctl("tcp_syncookies", before);
}

/* ---- many
 * ---------------------------------------------------------------------------------------- */

enum { AT_ONCE = 200, CONNECTIONS = 2000 };

static void open_one(struct pollfd *p)
{
	*p = (struct pollfd){.fd = begin_asking_virtual(4), .events = POLLOUT};
	assert_true(p->fd >= 0);
}

/* Sends a word; when it comes back, or now and then at once, closes or resets. True: it is over. */
static bool go_on(struct pollfd *p, unsigned n)
{
	struct linger now = {1, 0};

	if (!p->revents)
		return false;
	if (p->revents & POLLOUT && !(p->revents & (POLLERR | POLLHUP)) && n % 5) {
		p->events = POLLIN;
		if (send(p->fd, "x", 1, MSG_NOSIGNAL) == 1)
			return false;
	}
	if (n % 2)
		setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(p->fd);
	return true;
}

/* On all CPUs, over more than there are slots for; the rest is answered by the responder. */
static void storm(unsigned n)
{
	struct pollfd p[AT_ONCE];
	unsigned opened = 0, over = 0;

	for (; opened < AT_ONCE; opened++)
		open_one(&p[opened]);
	while (over < n) {
		assert_true(poll(p, AT_ONCE, PATIENCE_MS * 4) > 0);
		for (unsigned i = 0; i < AT_ONCE; i++) {
			if (p[i].fd < 0 || !go_on(&p[i], over + i))
				continue;
			over++;
			p[i].fd = -1;
			if (opened++ < n)
				open_one(&p[i]);
		}
	}
}

static void all_come_back_after_a_storm(void **state)
{
	int responder = listen_on_loopback(4, 7777), server;
	cpu_set_t cpus, one;

	(void)state;
	sched_getaffinity(0, sizeof(one), &one);
	memset(&cpus, 0xff, sizeof(cpus));
	sched_setaffinity(0, sizeof(cpus), &cpus);
	employ(WORKERS, 5, 1000);
	count_responder(4, responder);
	server = workers_serve(responder);
	storm(CONNECTIONS);
	/* a few were reset before they were established, which only a sweep can see */
	for (int i = 0; i < 100 && count_all().inuse; i++) {
		usleep(50000);
		count_sweep();
	}
	count_await(0, 0);
	assert_true(count_all().moves > CONNECTIONS / 10);
	assert_in_range(count_all().most, 2, 5);
	assert_int_equal(count_all().takes, count_all().gives);
	storm(AT_ONCE);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	close(responder);
	sched_setaffinity(0, sizeof(one), &one);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		clients_test(cookies_come_home),
		clients_test(cookies_are_counted_exactly),
		clients_test(a_cookie_without_a_slot),
		clients_test(all_come_back_after_a_storm),
	};

	return cmocka_run_group_tests(tests, counting_up, counting_down);
}
