// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the daemon tells the kernel about workers and pools, differences only; see steer.h. */
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "kernel/rows.h"
#include "kernel/steer_impl.h"

/* ---- virtual addresses ---------------------------------------------------------------------- */

int sw_steer_virtuals(struct sw_steer *s, const struct sw_virtual *list, size_t n,
		      struct sw_error *err)
{
	struct sw_rows have = {0}, want = {.key_size = sizeof(struct sw_address),
					   .value_size = sizeof(uint32_t)};
	int ret = n > SW_MAX_VIRTUALS ? -E2BIG : sw_rows_read(&have, s->maps.virtuals);

	for (size_t i = 0; !ret && i < n; i++)
		ret = sw_rows_set(&want, &list[i].at, &list[i].pool);
	/* Gone ones first: a full map must have room for new ones. */
	if (!ret)
		ret = sw_rows_drop(s->maps.virtuals, &have, &want);
	if (!ret)
		ret = sw_rows_put(s->maps.virtuals, &have, &want);
	sw_rows_free(&have);
	sw_rows_free(&want);
	if (ret == -E2BIG)
		return sw_fail(err, ret, "more than %d virtual addresses", SW_MAX_VIRTUALS);
	return ret ? sw_fail(err, ret, "virtual addresses: %s", strerror(-ret)) : 0;
}

/* ---- who listens where ---------------------------------------------------------------------- */

/* A worker whose listening sockets are to be known: one of a pool whose connections go to them. */
static bool listens(const struct sw_steer *s, const struct sw_worker_row *w)
{
	return w->port && w->pool < SW_MAX_POOLS && s->pools[w->pool].flags & SW_SF_ASSIGN;
}

/* Its address, and the any-address of its family: a server may listen on either. */
static void keys_of(const struct sw_worker_row *w, struct sw_address key[2])
{
	static const __u8 mapped[12] = {[10] = 0xff, [11] = 0xff};

	key[0] = key[1] = (struct sw_address){.port = w->port};
	memcpy(key[0].addr, w->addr, sizeof(key[0].addr));
	if (!memcmp(w->addr, mapped, sizeof(mapped)))
		memcpy(key[1].addr, mapped, sizeof(mapped));
}

static int list_worker(struct sw_steer *s, __u32 id, __u64 flags)
{
	struct sw_address key[2];
	int ret = 0;

	if (!listens(s, &s->workers[id]))
		return 0;
	keys_of(&s->workers[id], key);
	for (int i = 0; !ret && i < 2; i++)
		if (bpf_map_update_elem(s->maps.listens, &key[i], &id, flags) && errno != EEXIST)
			ret = -errno;
	return ret;
}

/* Takes the keys that are this worker's off; others that have the same port step in. */
static void unlist_worker(struct sw_steer *s, __u32 id, const struct sw_worker_row *was)
{
	struct sw_address key[2];
	__u32 owner;

	if (!was->port)
		return;
	keys_of(was, key);
	for (int i = 0; i < 2; i++)
		if (!bpf_map_lookup_elem(s->maps.listens, &key[i], &owner) && owner == id)
			bpf_map_delete_elem(s->maps.listens, &key[i]);
	for (__u32 other = 0; other < SW_MAX_WORKERS; other++)
		if (other != id && s->workers[other].port == was->port)
			list_worker(s, other, BPF_NOEXIST);
}

/* ---- rows ----------------------------------------------------------------------------------- */

/* The pool's connections go to listening sockets from now on, or no longer. */
static int relist_pool(struct sw_steer *s, unsigned pool)
{
	bool on = s->pools[pool].flags & SW_SF_ASSIGN;
	int ret = 0;

	for (__u32 id = 0; !ret && id < SW_MAX_WORKERS; id++) {
		if (s->workers[id].pool != pool)
			continue;
		if (on)
			ret = list_worker(s, id, BPF_ANY);
		else
			unlist_worker(s, id, &s->workers[id]);
	}
	return ret;
}

int sw_steer_set_pool(struct sw_steer *s, unsigned pool, const struct sw_steer_pool *v)
{
	struct sw_steer_pool was;
	int ret = 0;

	if (pool >= SW_MAX_POOLS)
		return -EINVAL;
	was = s->pools[pool];
	if (!memcmp(&was, v, sizeof(was)))
		return 0;
	if (bpf_map_update_elem(s->maps.steers, &pool, v, BPF_ANY))
		return -errno;
	s->pools[pool] = *v;
	if ((was.flags ^ v->flags) & SW_SF_ASSIGN)
		ret = relist_pool(s, pool);
	if (ret)
		s->pools[pool] = was; /* so that it is tried again */
	return ret;
}

static bool same_place(const struct sw_worker_row *a, const struct sw_worker_row *b)
{
	return a->port == b->port && a->pool == b->pool && !memcmp(a->addr, b->addr, 16);
}

int sw_steer_set_worker(struct sw_steer *s, unsigned id, const struct sw_worker_row *v)
{
	struct sw_worker_row was;
	int ret;

	if (id >= SW_MAX_WORKERS)
		return -EINVAL;
	was = s->workers[id];
	if (!memcmp(&was, v, sizeof(was)))
		return 0;
	if (bpf_map_update_elem(s->maps.workers, &id, v, BPF_ANY))
		return -errno;
	s->workers[id] = *v;
	if (same_place(&was, v))
		return 0;
	unlist_worker(s, id, &was);
	ret = list_worker(s, id, BPF_ANY);
	if (ret)
		s->workers[id] = was; /* so that it is tried again */
	return ret;
}

int sw_steer_get_worker(const struct sw_steer *s, unsigned id, struct sw_worker_row *out)
{
	if (id >= SW_MAX_WORKERS)
		return -EINVAL;
	*out = s->workers[id];
	return 0;
}

/* ---- sets ----------------------------------------------------------------------------------- */

static void write_bits(struct sw_bits *to, const struct sw_bits *v)
{
	for (int i = 0; i < SW_WORDS; i++)
		if (to->word[i] != v->word[i])
			__atomic_store_n(&to->word[i], v->word[i], __ATOMIC_RELEASE);
}

void sw_steer_set_members(struct sw_steer *s, unsigned pool, const struct sw_bits *v)
{
	if (pool < SW_MAX_POOLS)
		write_bits(&s->members[pool], v);
}

void sw_steer_set_nonbusy(struct sw_steer *s, const struct sw_bits *v)
{
	write_bits(s->nonbusy, v);
}

void sw_steer_set_reach4(struct sw_steer *s, const struct sw_bits *v)
{
	write_bits(s->reach4, v);
}
