/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Is this HTTP response complete, and is it what it claims to be? Pure: bytes in, verdict out.
 * Reading them from a socket is exchange.c's part. */
#ifndef TOOLS_RESPONSE_H
#define TOOLS_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>

enum response_verdict {
	RESPONSE_MORE,	   /* a valid beginning */
	RESPONSE_COMPLETE, /* every byte that was promised, and no byte more */
	RESPONSE_SHORT,	   /* the peer closed before the end */
	RESPONSE_WRONG, /* not HTTP, more bytes than promised, or a body that contradicts itself */
};

struct response {
	int status;  /* 0 until the status line is there */
	bool closes; /* the server said that it will close the connection */
	const char *body;
	size_t length; /* of the body, without chunk framing once complete */
};

/* Judges what has arrived so far of one response. `eof`: nothing more will come. Interim 1xx
 * responses are skipped. A complete chunked body is unframed in place, so a complete response must
 * not be judged a second time. */
enum response_verdict response_judge(char *bytes, size_t length, bool eof, struct response *out);

#endif
