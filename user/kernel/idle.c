// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Orders to the iterator over TCP sockets; see idle.h. */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "kernel/idle.h"
#include "kernel/iterate.h"

#define LENGTH(a) (sizeof(a) / sizeof(*(a)))

struct close_order { /* as in bpf/upstream.bpf.c */
	struct sw_bits workers;
	uint64_t idle_ms, closed;
};

bool sw_idle_supported(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int kfunc = btf ? btf__find_by_name_kind(btf, "bpf_sock_destroy", BTF_KIND_FUNC) : -1;
	int iter = btf ? btf__find_by_name_kind(btf, "bpf_iter_tcp", BTF_KIND_FUNC) : -1;
	/* if (ctx->sk_common) bpf_sock_destroy(ctx->sk_common); */
	const struct bpf_insn code[] = {
		{.code = BPF_LDX | BPF_MEM | BPF_DW,
		 .dst_reg = BPF_REG_1,
		 .src_reg = BPF_REG_1,
		 .off = sizeof(void *)},
		{.code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = BPF_REG_1, .off = 1},
		{.code = BPF_JMP | BPF_CALL, .src_reg = BPF_PSEUDO_KFUNC_CALL, .imm = kfunc},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_ITER,
		    .attach_btf_id = iter);
	int prog = -1;

	if (kfunc > 0 && iter > 0)
		prog = bpf_prog_load(BPF_PROG_TYPE_TRACING, "spillway_probe", "GPL", code,
				     LENGTH(code), &opts);
	btf__free(btf);
	if (prog >= 0)
		close(prog);
	return prog >= 0;
}

int sw_idle_close(int program, int orders, const struct sw_bits *workers, unsigned idle_ms)
{
	struct close_order order = {.workers = *workers, .idle_ms = idle_ms};
	uint32_t zero = 0;
	int err;

	if (bpf_map_update_elem(orders, &zero, &order, BPF_ANY))
		return -errno;
	err = sw_iterate(program, NULL);
	if (err)
		return err;
	if (bpf_map_lookup_elem(orders, &zero, &order))
		return -errno;
	return order.closed;
}
