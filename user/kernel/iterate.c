// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Runs BPF iterators; see iterate.h. */
#include <bpf/bpf.h>
#include <errno.h>
#include <unistd.h>

#include "kernel/iterate.h"

static int read_all(int iter)
{
	char nothing[64];
	ssize_t n;

	/* EAGAIN: many objects were visited in one call, and there are more. */
	do
		n = read(iter, nothing, sizeof(nothing));
	while (n > 0 || (n < 0 && errno == EAGAIN));
	return n ? -errno : 0;
}

int sw_iterate(int program, union bpf_iter_link_info *info)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .iter_info = info,
		    .iter_info_len = info ? sizeof(*info) : 0);
	int ret, iter, link = bpf_link_create(program, 0, BPF_TRACE_ITER, &opts);

	if (link < 0)
		return -errno;
	iter = bpf_iter_create(link);
	ret = iter < 0 ? -errno : read_all(iter);
	if (iter >= 0)
		close(iter);
	close(link);
	return ret;
}
