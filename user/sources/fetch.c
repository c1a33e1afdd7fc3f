// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* One page over HTTP, see fetch.h. Everything that an operator can get wrong (address, token,
 * certificate, namespace) ends here as one line that says what to do. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sources/fetch.h"

#define DEFAULT_TIMEOUT_MS 1000
#define MAX_REDIRECTS	   3L
#define MAX_TOKEN	   8192

struct sw_fetch {
	struct sw_curl_loop *loop;
	CURL *easy;
	CURLU *url;
	char *shown;		  /* the URL without a password, for messages */
	char *token_file, *netns; /* NULL: none */
	sw_fetch_cb cb;
	void *arg;

	bool running;
	char *page;
	size_t length, room;
	int refused; /* why a callback of ours made libcurl give up; 0: none did */
	struct sw_error why;
	char detail[CURL_ERROR_SIZE];
};

/* ---- what libcurl calls ---- */

static size_t take_text(char *text, size_t one, size_t length, void *arg)
{
	struct sw_fetch *f = arg;

	(void)one;
	if (f->length + length > SW_SCRAPE_LIMIT) {
		f->refused = sw_fail(&f->why, -EFBIG,
				     "the page is over %u MB: point url at the engine's metrics",
				     SW_SCRAPE_LIMIT >> 20);
		return 0;
	}
	if (f->length + length > f->room) {
		size_t room = 2 * (f->length + length);
		char *page = realloc(f->page, room);

		if (!page)
			return 0;
		f->page = page;
		f->room = room;
	}
	memcpy(f->page + f->length, text, length);
	f->length += length;
	return length;
}

/* A socket belongs to the namespace that it was made in, whoever uses it later. The file is opened
 * each time, since the namespace behind the path changes when a container restarts. */
static curl_socket_t socket_in_netns(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
	int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	int fd = CURL_SOCKET_BAD, ns = -1;
	struct sw_fetch *f = arg;

	(void)purpose;
	if (home >= 0)
		ns = open(f->netns, O_RDONLY | O_CLOEXEC);
	if (ns < 0 || setns(ns, CLONE_NEWNET)) {
		f->refused = sw_fail(&f->why, -errno,
				     "cannot enter network namespace %s: %s. Is the container "
				     "running, and may the daemon enter it (CAP_SYS_ADMIN)?",
				     f->netns, strerror(errno));
		goto out;
	}
	fd = socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
	if (setns(home, CLONE_NEWNET)) {
		/* Everything after this would happen in the wrong place. */
		sw_log(SW_ERROR, "cannot return to the daemon's network namespace: %s",
		       strerror(errno));
		abort();
	}
out:
	if (ns >= 0)
		close(ns);
	if (home >= 0)
		close(home);
	return fd;
}

/* ---- outcomes ---- */

static int fail_transfer(struct sw_fetch *f, CURLcode result, struct sw_error *err)
{
	static const struct {
		CURLcode result;
		int err;
		const char *advice;
	} known[] = {
		{CURLE_OPERATION_TIMEDOUT, -ETIMEDOUT,
		 "the engine hangs or is slow; timeout_ms is for a whole scrape"},
		{CURLE_COULDNT_RESOLVE_HOST, -EHOSTUNREACH, "check the host in url"},
		{CURLE_COULDNT_CONNECT, -ECONNREFUSED, "does the engine run, and is url right?"},
		{CURLE_PARTIAL_FILE, -EBADMSG, "the page was cut short"},
		{CURLE_BAD_CONTENT_ENCODING, -EBADMSG, "the page was damaged on its way"},
		{CURLE_TOO_MANY_REDIRECTS, -ELOOP, "set url to the page's final address"},
		{CURLE_PEER_FAILED_VERIFICATION, -EACCES,
		 "set ca_file to the authority that signed it, or insecure: true"},
		{CURLE_SSL_CACERT_BADFILE, -EINVAL, "check ca_file"},
		{CURLE_SSL_CONNECT_ERROR, -EPROTO, "does this port speak TLS? If not: http://"},
	};
	const char *what = *f->detail ? f->detail : curl_easy_strerror(result);
	long os_error = 0;

	if (f->refused)
		return sw_fail(err, f->refused, "%s", f->why.text);
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (known[i].result != result)
			continue;
		if (result == CURLE_COULDNT_CONNECT)
			curl_easy_getinfo(f->easy, CURLINFO_OS_ERRNO, &os_error);
		return sw_fail(err, os_error ? -(int)os_error : known[i].err, "%s%s%s; %s", what,
			       os_error ? ", " : "", os_error ? strerror(os_error) : "",
			       known[i].advice);
	}
	return sw_fail(err, -EIO, "%s", what);
}

static int fail_status(long status, struct sw_error *err)
{
	if (status == 401 || status == 403)
		return sw_fail(err, -EACCES,
			       "HTTP status %ld: set bearer_token_file, or check the token in it",
			       status);
	if (status == 404)
		return sw_fail(err, -ENOENT,
			       "HTTP status 404: check the path in url, and that the engine's "
			       "metrics are turned on");
	return sw_fail(err, -EPROTO, "HTTP status %ld instead of 200: is the engine healthy?",
		       status);
}

void sw_fetch_done(CURL *easy, CURLcode result)
{
	struct sw_error err = {};
	struct sw_fetch *f;
	long status = 0;
	char *page;
	int ret = 0;

	curl_easy_getinfo(easy, CURLINFO_PRIVATE, &f);
	curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	if (result != CURLE_OK)
		ret = fail_transfer(f, result, &err);
	else if (status != 200)
		ret = fail_status(status, &err);
	f->running = false;
	page = f->page;
	f->page = NULL; /* a thousand pages that nobody reads any more would be kept otherwise */
	f->room = 0;
	f->cb(f->arg, ret, page ? page : "", f->length, &err); /* may free it */
	free(page);
}

/* ---- start ---- */

/* The file is read for each scrape: whoever replaces the token needs to tell nobody. */
static int read_token(const char *file, char token[MAX_TOKEN], struct sw_error *err)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not stop the loop */
	ssize_t n = fd < 0 ? -1 : read(fd, token, MAX_TOKEN - 1);
	int saved = errno;

	if (fd >= 0)
		close(fd);
	if (n < 0)
		return sw_fail(err, -saved, "cannot read bearer_token_file %s: %s", file,
			       strerror(saved));
	while (n && strchr(" \t\r\n", token[n - 1]))
		n--;
	token[n] = '\0';
	if (!n || n == MAX_TOKEN - 1 || strpbrk(token, " \t\r\n") || strlen(token) != (size_t)n)
		return sw_fail(err, -EINVAL,
			       "bearer_token_file %s has to hold one token and nothing else", file);
	return 0;
}

int sw_fetch_start(struct sw_fetch *f, struct sw_error *err)
{
	char token[MAX_TOKEN];
	int ret;

	if (f->running)
		return -EBUSY;
	f->length = 0;
	f->refused = 0;
	*f->detail = '\0';
	if (f->token_file) {
		ret = read_token(f->token_file, token, err);
		if (ret)
			return ret;
		curl_easy_setopt(f->easy, CURLOPT_XOAUTH2_BEARER, token);
	}
	ret = sw_curl_loop_start(f->loop, f->easy);
	if (ret)
		return sw_fail(err, ret, "cannot start a transfer: %s", strerror(-ret));
	f->running = true;
	return 0;
}

/* ---- set up ---- */

/* Takes the URL apart, once for all fetches, and stores the form of it that may be printed. */
static int check_url(struct sw_fetch *f, const char *url, struct sw_error *err)
{
	char *scheme = NULL, *host = NULL, *shown = NULL;
	CURLU *u = curl_url();
	bool http;

	curl_url_set(u, CURLUPART_URL, url, 0);
	f->url = curl_url_dup(u);
	curl_url_get(u, CURLUPART_SCHEME, &scheme, 0);
	curl_url_get(u, CURLUPART_HOST, &host, 0);
	http = scheme && host && (!strcmp(scheme, "http") || !strcmp(scheme, "https"));
	curl_url_set(u, CURLUPART_USER, NULL, 0);
	curl_url_set(u, CURLUPART_PASSWORD, NULL, 0);
	curl_url_get(u, CURLUPART_URL, &shown, 0);
	if (http && shown)
		f->shown = strdup(shown);
	curl_free(scheme);
	curl_free(host);
	curl_free(shown);
	curl_url_cleanup(u);
	if (!http)
		return sw_fail(err, -EINVAL,
			       "url '%s' is not of the form http://HOST[:PORT]/PATH or https://...",
			       url);
	return f->shown && f->url ? 0 : -ENOMEM;
}

static void set_options(struct sw_fetch *f, const struct sw_target *target)
{
	const char *redirect_to = strncasecmp(target->url, "https:", 6) ? "http,https" : "https";
	CURL *e = f->easy;

	curl_easy_setopt(e, CURLOPT_CURLU, f->url);
	curl_easy_setopt(e, CURLOPT_PRIVATE, f);
	curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, take_text);
	curl_easy_setopt(e, CURLOPT_WRITEDATA, f);
	curl_easy_setopt(e, CURLOPT_ERRORBUFFER, f->detail);
	curl_easy_setopt(e, CURLOPT_TIMEOUT_MS,
			 (long)(target->timeout_ms ? target->timeout_ms : DEFAULT_TIMEOUT_MS));
	curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(e, CURLOPT_QUICK_EXIT, 1L); /* never wait for a slow name server */
	curl_easy_setopt(e, CURLOPT_PROXY, "");	     /* http_proxy is not meant for us */
	curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(e, CURLOPT_USERAGENT, "spillway");
	curl_easy_setopt(e, CURLOPT_ACCEPT_ENCODING, "gzip");
	curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 1L);
	curl_easy_setopt(e, CURLOPT_MAXREDIRS, MAX_REDIRECTS);
	curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(e, CURLOPT_REDIR_PROTOCOLS_STR, redirect_to);
	if (target->bearer_token_file) /* libcurl keeps it from hosts that a redirect names */
		curl_easy_setopt(e, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
	if (target->insecure) {
		curl_easy_setopt(e, CURLOPT_SSL_VERIFYPEER, 0L);
		curl_easy_setopt(e, CURLOPT_SSL_VERIFYHOST, 0L);
	}
	if (target->ca_file) {
		curl_easy_setopt(e, CURLOPT_CAINFO, target->ca_file);
		curl_easy_setopt(e, CURLOPT_CAPATH, NULL);	   /* it alone is trusted, */
		curl_easy_setopt(e, CURLOPT_CA_CACHE_TIMEOUT, 0L); /* and read for each handshake */
	}
	if (target->netns) {
		curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, socket_in_netns);
		curl_easy_setopt(e, CURLOPT_OPENSOCKETDATA, f);
	}
	/* With namespaces libcurl would take a connection to the same host and port of another one
	 * for this one's. */
	if (target->netns || target->once) {
		curl_easy_setopt(e, CURLOPT_FRESH_CONNECT, 1L);
		curl_easy_setopt(e, CURLOPT_FORBID_REUSE, 1L);
	}
}

int sw_fetch_new(struct sw_fetch **out, struct sw_curl_loop *loop, const struct sw_target *target,
		 sw_fetch_cb cb, void *arg, struct sw_error *err)
{
	struct sw_fetch *f = calloc(1, sizeof(*f));
	int ret = f ? check_url(f, target->url, err) : -ENOMEM;

	if (ret)
		goto fail;
	f->loop = loop;
	f->cb = cb;
	f->arg = arg;
	if (target->bearer_token_file)
		f->token_file = strdup(target->bearer_token_file);
	if (target->netns)
		f->netns = strdup(target->netns);
	f->easy = curl_easy_init();
	if (!f->easy || !f->token_file != !target->bearer_token_file ||
	    !f->netns != !target->netns) {
		ret = -ENOMEM;
		goto fail;
	}
	set_options(f, target);
	*out = f;
	return 0;
fail:
	sw_fetch_free(f);
	return ret == -ENOMEM ? sw_fail(err, ret, "out of memory") : ret;
}

const char *sw_fetch_url(const struct sw_fetch *f)
{
	return f->shown;
}

void sw_fetch_free(struct sw_fetch *f)
{
	if (!f)
		return;
	if (f->easy) {
		sw_curl_loop_stop(f->loop, f->easy);
		curl_easy_cleanup(f->easy);
	}
	curl_url_cleanup(f->url);
	free(f->page);
	free(f->shown);
	free(f->token_file);
	free(f->netns);
	free(f);
}
