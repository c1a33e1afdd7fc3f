// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Holds what rows say is in use against who holds a slot, and puts it right: the user side of
 * bpf/recount.bpf.c, which tells why the steps come in this order. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/clock.h"
#include "kernel/iterate.h"
#include "kernel/probe.h"
#include "kernel/steer_impl.h"

#define APART_NS   100000000 /* between two recounts that may confirm each other */
#define SEEN_BYTES ((SW_SEEN_MOVING + 1) * sizeof(uint64_t))

struct sw_recounter {
	struct spillway *programs;
	int refused; /* loading them has failed with this, and would again */
	volatile uint64_t *seen;
	uint64_t at_ns;						/* of the last recount */
	int64_t drift[SW_MAX_WORKERS];				/* that it found */
	struct sw_slot was[SW_MAX_WORKERS], is[SW_MAX_WORKERS]; /* around the scan */
};

/* ---- programs ------------------------------------------------------------------------------- */

static int load(const struct sw_steer *s, struct sw_recounter *r, struct sw_error *err)
{
	static const char *const names[] = {"spillway_recount", "spillway_reserved",
					    "spillway_correct", NULL};
	void *seen;
	int ret;

	if (!sw_probe_storage_walk())
		return sw_fail(err, -EOPNOTSUPP,
			       "this kernel does not let us walk the storage of its sockets, or "
			       "would crash");
	ret = sw_steer_load(s, names, &r->programs, err);
	if (ret)
		return ret;
	seen = mmap(NULL, SEEN_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		    sw_steer_map(r->programs, "seen"), 0);
	if (seen == MAP_FAILED)
		return sw_fail(err, -errno, "the map seen: %s", strerror(errno));
	r->seen = seen;
	return 0;
}

static int prepare(struct sw_steer *s)
{
	struct sw_recounter *r = s->recounter;
	struct sw_error err;

	if (!r)
		r = s->recounter = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	if (r->seen || r->refused)
		return r->refused;
	r->refused = load(s, r, &err);
	if (r->refused)
		sw_log(SW_WARN,
		       "slots are counted, but what a crash leaves behind is not put right: %s",
		       err.text);
	return r->refused;
}

void sw_recounter_free(struct sw_recounter *r)
{
	if (!r)
		return;
	if (r->seen)
		munmap((void *)r->seen, SEEN_BYTES);
	sw_steer_unload(r->programs);
	free(r);
}

static int run(const struct sw_recounter *r, const char *program, void *ctx, size_t size)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = ctx, .ctx_size_in = size);

	if (bpf_prog_test_run_opts(sw_steer_program(r->programs, program), &opts))
		return -errno;
	return opts.retval ? -EIO : 0;
}

/* ---- counting ------------------------------------------------------------------------------- */

/* What moved, and after it what is in use. */
static void note(const struct sw_steer *s, struct sw_slot *to)
{
	for (unsigned id = 0; id < SW_MAX_WORKERS; id++) {
		const struct sw_slot *from = &s->slots[id];

		to[id].takes = __atomic_load_n(&from->takes, __ATOMIC_ACQUIRE);
		to[id].gives = __atomic_load_n(&from->gives, __ATOMIC_ACQUIRE);
		to[id].moves = __atomic_load_n(&from->moves, __ATOMIC_ACQUIRE);
		to[id].inuse = __atomic_load_n(&from->inuse, __ATOMIC_ACQUIRE);
	}
}

static int scan(const struct sw_steer *s, struct sw_recounter *r)
{
	union bpf_iter_link_info info = {.map.map_fd = (__u32)s->maps.sockets};
	int ret;

	memset((void *)r->seen, 0, SEEN_BYTES);
	note(s, r->was);
	ret = run(r, "spillway_reserved", NULL, 0);
	if (!ret)
		ret = sw_iterate(sw_steer_program(r->programs, "spillway_recount"), &info);
	note(s, r->is);
	return ret;
}

/* How far `inuse` is off what can have been true; 0: it may be right. */
static int64_t drift_of(const struct sw_recounter *r, unsigned id)
{
	const struct sw_slot *was = &r->was[id], *is = &r->is[id];
	int64_t seen = (int64_t)r->seen[id], inuse = (int32_t)was->inuse;
	int64_t low = seen - (int64_t)(is->takes - was->takes + is->moves - was->moves);
	int64_t high = seen + (int64_t)(is->gives - was->gives);

	return inuse > high ? inuse - high : inuse < low ? inuse - low : 0;
}

/* What both recounts found, as far as they agree. */
static int64_t agreed(int64_t a, int64_t b)
{
	if (a > 0 && b > 0)
		return a < b ? a : b;
	if (a < 0 && b < 0)
		return a > b ? a : b;
	return 0;
}

static int correct(struct sw_recounter *r, unsigned id, int64_t drift, struct sw_recount *out)
{
	struct sw_correction c = {.slot = id, .delta = (__s32)-drift};
	int ret = run(r, "spillway_correct", &c, sizeof(c));

	if (ret)
		return ret;
	out->rows++;
	out->corrected += (uint64_t)llabs(drift);
	return 0;
}

static int judge(struct sw_steer *s, struct sw_recounter *r, struct sw_recount *out)
{
	bool sure = !r->seen[SW_SEEN_MOVING];
	int ret = 0;

	for (unsigned id = 0; !ret && id < SW_MAX_WORKERS; id++) {
		bool credit = s->workers[id].flags & SW_WF_CREDIT;
		int64_t found = sure && !credit ? drift_of(r, id) : 0;
		int64_t both = agreed(found, r->drift[id]);

		if (both)
			ret = correct(r, id, both, out);
		/* Nothing is put right twice. */
		r->drift[id] = both ? 0 : found;
	}
	return ret;
}

int sw_steer_recount(struct sw_steer *s, struct sw_recount *out)
{
	uint64_t start = sw_now_ns();
	struct sw_recounter *r;
	int ret = prepare(s);

	*out = (struct sw_recount){0};
	if (ret)
		return ret;
	r = s->recounter;
	if (r->at_ns && start - r->at_ns < APART_NS)
		return 0;
	r->at_ns = start;
	ret = scan(s, r);
	if (!ret)
		ret = judge(s, r, out);
	out->took_ns = sw_now_ns() - start;
	return ret;
}
