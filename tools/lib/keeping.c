// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The asking side of a kept connection; see keeping.h. What comes back is keeping_answer.c's part.

#include "keeping.h"
#include "echo_text.h"
#include "keeping_answer.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static uint64_t random_below(struct keeping_job *j, uint64_t n)
{
	j->random = echo_mix(j->random);
	return n ? j->random % n : 0;
}

/* Mostly small, some large, now and then the largest there are. */
static size_t random_size(struct keeping_job *j)
{
	unsigned kind = random_below(j, 100);
	size_t max = kind < 85 ? 2000 : kind < 99 ? 65536 : j->body_max;

	return random_below(j, (max < j->body_max ? max : j->body_max) + 1);
}

/* ---- connections ----------------------------------------------------------------------------- */

static void give_up(struct keeping *k)
{
	if (k->fd >= 0)
		close(k->fd);
	k->fd = -1;
	k->job->left += k->n; /* asked again elsewhere */
	k->n = 0;
}

void keeping_open(struct keeping *k, struct keeping_job *job, uint64_t now)
{
	int on = 1;

	*k = (struct keeping){.job = job, .connecting = true, .writing = true, .moved = now};
	k->ends_after = job->lifetime ? 1 + random_below(job, 2 * job->lifetime) : UINT32_MAX;
	k->fd = socket(job->to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	k->number = ++job->opened;
	setsockopt(k->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (k->fd < 0 || (connect(k->fd, (void *)&job->to, job->to_length) && errno != EINPROGRESS))
		keeping_wrong(k, "connect: %s", strerror(errno));
}

void keeping_wrong(struct keeping *k, const char *fmt, ...)
{
	struct keeping_job *j = k->job;
	struct sockaddr_in6 at = {0};
	socklen_t size = sizeof(at);
	va_list ap;
	size_t n;

	if (!j->errors++) {
		getsockname(k->fd, (void *)&at, &size);
		n = snprintf(j->first_error, sizeof(j->first_error),
			     "port %u, request %u, %u under way, %zu bytes of the newest written: ",
			     ntohs(at.sin6_port), k->asked, k->n, k->written);
		va_start(ap, fmt);
		vsnprintf(j->first_error + n, sizeof(j->first_error) - n, fmt, ap);
		va_end(ap);
	}
	give_up(k);
}

void keeping_hang(struct keeping *k, uint64_t now)
{
	k->job->hangs++;
	keeping_wrong(k, "nothing moves, %zu bytes into the answer", k->got);
	keeping_open(k, k->job, now);
}

/* Its time is over: by a FIN mostly, which may well meet the server's. */
static void end(struct keeping *k, uint64_t now)
{
	struct linger at_once = {.l_onoff = 1};

	if (!random_below(k->job, 4))
		setsockopt(k->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	give_up(k);
	keeping_open(k, k->job, now);
}

bool keeping_idle(const struct keeping *k)
{
	return !k->n && !k->job->left;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static struct keeping_request *newest(struct keeping *k)
{
	return &k->under_way[(k->first + k->n - 1) % KEEPING_DEPTH_MAX];
}

static size_t length_of(const struct keeping_request *r)
{
	return r->head_length + r->body;
}

/* Half of the cuts are in the head. */
static void choose_cut(struct keeping *k)
{
	const struct keeping_request *r = newest(k);
	size_t end = random_below(k->job, 2) ? r->head_length : length_of(r);

	k->cut = k->written + 1 + random_below(k->job, end);
}

/* The next request, if there is to be one now. */
static bool begin(struct keeping *k)
{
	struct keeping_job *j = k->job;
	struct keeping_request *r;

	if (!k->n)
		k->target = 1 + random_below(j, j->depth);
	if (!j->left || k->closing || k->asked >= k->ends_after || k->n >= k->target)
		return false;
	j->left--;
	k->asked++;
	k->n++;
	k->written = 0;
	r = newest(k);
	r->tag = echo_mix(j->random + j->left);
	r->post = random_below(j, 3);
	r->body = r->post ? random_size(j) : 0;
	r->wanted = random_size(j);
	r->head_length = snprintf(r->head, sizeof(r->head),
				  "%s %.80s?t=%016" PRIx64 "&r=%zu HTTP/1.1\r\nHost: kept\r\n",
				  r->post ? "POST" : "GET", j->path, r->tag, r->wanted);
	if (r->post)
		r->head_length +=
			snprintf(r->head + r->head_length, sizeof(r->head) - r->head_length,
				 "Content-Length: %zu\r\n", r->body);
	r->head_length +=
		snprintf(r->head + r->head_length, sizeof(r->head) - r->head_length, "\r\n");
	k->cut = SIZE_MAX;
	if (!j->whole && !random_below(j, 3))
		choose_cut(k);
	return true;
}

static ssize_t send_some(struct keeping *k)
{
	struct keeping_request *r = newest(k);
	size_t end = k->cut < length_of(r) ? k->cut : length_of(r);
	size_t head = k->written < r->head_length ? r->head_length - k->written : 0;
	size_t body;
	struct iovec part[2];
	struct msghdr m = {.msg_iov = part, .msg_iovlen = 2};

	if (head > end - k->written)
		head = end - k->written;
	body = end - k->written - head;
	part[0] = (struct iovec){r->head + k->written, head};
	part[1] = (struct iovec){(char *)echo_request_body(r->tag), body};
	if (body)
		part[1].iov_base += k->written + head - r->head_length;
	return sendmsg(k->fd, &m, MSG_NOSIGNAL);
}

static void ask(struct keeping *k, uint64_t now)
{
	while (k->fd >= 0 && !k->closing && now >= k->hold_until &&
	       ((k->n && k->written < length_of(newest(k))) || begin(k))) {
		ssize_t n = send_some(k);

		if (n < 0) {
			k->writing = errno == EAGAIN;
			if (!k->writing)
				keeping_wrong(k, "send: %s", strerror(errno));
			return;
		}
		k->moved = now;
		k->job->sent_bytes += n;
		k->written += n;
		if (k->written == k->cut) {
			choose_cut(k);
			if (!random_below(k->job, 4))
				k->hold_until = now + 200 + random_below(k->job, 3000);
		}
	}
	k->writing = false;
}

/* ---- what can be done ------------------------------------------------------------------------ */

bool keeping_unwritten(const struct keeping *k)
{
	const struct keeping_request *r = &k->under_way[(k->first + k->n - 1) % KEEPING_DEPTH_MAX];

	return k->n && k->written < length_of(r);
}

bool keeping_wants_out(const struct keeping *k, uint64_t now)
{
	return k->fd >= 0 && k->writing && now >= k->hold_until;
}

static void hear(struct keeping *k, uint64_t now)
{
	static char bytes[1 << 18];
	ssize_t n = recv(k->fd, bytes, sizeof(bytes), 0);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n > 0) {
		k->moved = now;
		k->job->got_bytes += n;
		keeping_take(k, bytes, n);
		return;
	}
	if (n < 0)
		keeping_wrong(k, "recv: %s, %zu bytes into the answer", strerror(errno), k->got);
	else if (k->head_length || (k->n && !k->closing))
		keeping_wrong(k, "closed, %zu bytes into the answer", k->got);
	give_up(k);
}

void keeping_go(struct keeping *k, bool in, bool out, uint64_t now)
{
	if (k->connecting && (in || out)) {
		int err = 0;
		socklen_t size = sizeof(err);

		getsockopt(k->fd, SOL_SOCKET, SO_ERROR, &err, &size);
		k->connecting = false;
		if (err)
			keeping_wrong(k, "connect: %s", strerror(err));
	}
	if (in && k->fd >= 0)
		hear(k, now);
	if (k->fd >= 0 && !k->connecting && (out || !k->writing))
		ask(k, now);
	/* what was asked behind an answer that closes is asked again */
	if (k->fd >= 0 && (k->closing ? !k->status : !k->n && k->asked >= k->ends_after))
		end(k, now);
	if (k->fd < 0)
		keeping_open(k, k->job, now);
}
