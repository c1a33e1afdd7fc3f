// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The fast path in a form that BPF_PROG_TEST_RUN can repeat: after each run the packet is put back
 * as it came, since otherwise the second round would see its own answer. Compiled twice, once for
 * each hook (-DHOOK_XDP, -DHOOK_TC). Two yardsticks do nothing but put the packet back: `restore`
 * as it is, `resize_and_restore` after a change of its size, which thus pays for two such changes.
 */
#ifdef HOOK_XDP
#include "ctx_xdp.h"
#define SECTION "xdp"
#define NAME(x) xdp_##x
#else
#include "ctx_tc.h"
#define SECTION "tc"
#define NAME(x) tc_##x
#endif
#include "verdict.h"
#include "conversation.h"

#define ORIGINAL_MAX 512

struct original {
	__u32 length, answer_length;
	char bytes[ORIGINAL_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct original);
} original SEC(".maps") __weak;

static __always_inline int put_back(ctx_t *ctx)
{
	__u32 zero = 0, length;
	struct original *o = bpf_map_lookup_elem(&original, &zero);

	if (!o)
		return -1;
	length = o->length;
	asm volatile("" : "+r"(length));
	if (length < 1 || length > ORIGINAL_MAX)
		return -1;
	if (ctx_resize(ctx, length))
		return -1;
	return ctx_store(ctx, 0, o->bytes, length);
}

SEC(SECTION) int NAME(empty)(ctx_t *ctx)
{
	(void)ctx;
	return CTX_PASS;
}

SEC(SECTION) int NAME(restore)(ctx_t *ctx)
{
	return put_back(ctx) ? CTX_DROP : CTX_PASS;
}

SEC(SECTION) int NAME(resize_and_restore)(ctx_t *ctx)
{
	__u32 zero = 0;
	struct original *o = bpf_map_lookup_elem(&original, &zero);

	return !o || ctx_resize(ctx, o->answer_length) || put_back(ctx) ? CTX_DROP : CTX_PASS;
}

SEC(SECTION) int NAME(run)(ctx_t *ctx)
{
	__u32 listener;
	int reason = guard(ctx, VARIANT_NATIVE, &listener);

	return verdict(ctx, VARIANT_NATIVE, listener, reason);
}

SEC(SECTION) int NAME(run_and_restore)(ctx_t *ctx)
{
	__u32 listener;
	int reason = guard(ctx, VARIANT_NATIVE, &listener);
	int action = verdict(ctx, VARIANT_NATIVE, listener, reason);

	return put_back(ctx) ? -1000 : action;
}

#ifdef HOOK_XDP
char LICENSE[] SEC("license") = "Dual BSD/GPL";
#endif
