// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The token of whoever asks over TCP. The file is read for each request: whoever replaces the token
 * needs to tell nobody. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/reply.h"
#include "control/serve.h"

#define TOKEN_MIN 16
#define TOKEN_MAX 4096

static int read_token(int fd, char token[TOKEN_MAX], mode_t *mode)
{
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	*mode = st.st_mode;
	n = read(fd, token, TOKEN_MAX);
	if (n < 0)
		return -errno;
	while (n && strchr(" \t\r\n", token[n - 1]))
		n--;
	return (int)n;
}

/* Its length, or a negative errno. */
static int load(struct sw_control *c, char token[TOKEN_MAX], struct sw_error *err)
{
	int fd = open(c->token_file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	mode_t mode = 0;
	int n = read_token(fd, token, &mode);

	if (fd >= 0)
		close(fd);
	if (n < 0)
		return sw_fail(err, n, "control_token_file %s cannot be read: %s", c->token_file,
			       strerror(-n));
	if (n < TOKEN_MIN || n == TOKEN_MAX)
		return sw_fail(err, -EINVAL,
			       "control_token_file %s has to hold a secret of %d bytes or more, "
			       "under %d; try: openssl rand -hex 32",
			       c->token_file, TOKEN_MIN, TOKEN_MAX);
	if ((mode & S_IROTH) && !c->token_open)
		sw_log(SW_WARN,
		       "control_token_file %s can be read by everyone on this host; try: chmod "
		       "o-r %s",
		       c->token_file, c->token_file);
	c->token_open = mode & S_IROTH;
	return n;
}

int sw_auth_check(struct sw_control *c, struct sw_error *err)
{
	char token[TOKEN_MAX];
	int n = load(c, token, err);

	explicit_bzero(token, sizeof(token));
	return n < 0 ? n : 0;
}

/* Takes the same time wherever they differ. */
static bool same_secret(const char *given, size_t n, const char *token, size_t m)
{
	volatile unsigned char differ = n != m;

	for (size_t i = 0; i < n; i++)
		differ |= (unsigned char)(given[i] ^ token[i % m]);
	return !differ;
}

bool sw_auth_passes(struct sw_control *c, struct evhttp_request *req)
{
	static const char scheme[] = "Bearer ";
	const char *given =
		evhttp_find_header(evhttp_request_get_input_headers(req), "Authorization");
	struct sw_error err = {""};
	char token[TOKEN_MAX];
	int n = load(c, token, &err);
	bool same = false;

	if (n > 0 && given && !strncasecmp(given, scheme, strlen(scheme))) {
		given += strlen(scheme);
		given += strspn(given, " ");
		same = same_secret(given, strlen(given), token, (size_t)n);
	}
	explicit_bzero(token, sizeof(token));
	if (same)
		return true;
	if (n < 0) {
		sw_log(SW_ERROR, "%s", err.text);
		sw_reply_error(req, 503, "the daemon has no token to compare with; see its log");
		return false;
	}
	evhttp_add_header(evhttp_request_get_output_headers(req), "WWW-Authenticate",
			  "Bearer realm=\"spillway\"");
	sw_reply_error(
		req, 401,
		"this needs the token in control_token_file, as Authorization: Bearer TOKEN");
	return false;
}
