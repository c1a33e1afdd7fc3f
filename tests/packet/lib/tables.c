// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// The content of the maps: an independent reading of abi.h, so that programs and daemon are not
// both wrong in the same way.

#include "tables.h"
#include "paths.h"
#include "world.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const reason_names[] = {
#define X(n, name, class, text) [n] = #name,
	SW_REASONS(X)
#undef X
};

void world_write(struct world *w, enum map map, const void *key, const void *value)
{
	if (bpf_map_update_elem(w->map[map], key, value, BPF_ANY)) {
		perror("write a map");
		exit(1);
	}
}

static void write_at(struct world *w, enum map map, uint32_t index, const void *value)
{
	world_write(w, map, &index, value);
}

uint64_t world_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* ---- listeners and pools ------------------------------------------------------------------ */

/* An address as maps hold it. */
static void mapped(uint8_t out[16], int family, const uint8_t *addr)
{
	memset(out, 0, 16);
	if (family == 4)
		memset(out + 10, 0xff, 2);
	memcpy(out + (family == 4 ? 12 : 0), addr, family == 4 ? 4 : 16);
}

struct sw_listener world_default_listener(unsigned id)
{
	struct sw_listener l = {
		.port = id == ID_MAIN	? PORT_MAIN
			: id == ID_DEAF ? PORT_DEAF
					: PORT_SINGLE,
		.pool = POOL_MAIN,
		.answers = SET_ANSWERS,
		.paths = SET_PATHS,
		.exempt = SET_EXEMPT,
		.length = LENGTH,
	};
	int family = id == ID_SINGLE4 ? 4 : 6;
	uint8_t src[16], dst[16];

	world_addresses(family, 0, src, dst);
	if (id == ID_SINGLE4 || id == ID_SINGLE6)
		mapped(l.addr, family, dst);
	return l;
}

void world_listener(struct world *w, unsigned id, const struct sw_listener *l)
{
	write_at(w, MAP_LISTENERS, id, l);
}

void world_local(struct world *w, int family, const uint8_t *addr, bool on)
{
	struct sw_local key;
	uint32_t one = 1;

	mapped(key.addr, family, addr);
	if (on)
		world_write(w, MAP_LOCAL, &key, &one);
	else
		bpf_map_delete_elem(w->map[MAP_LOCAL], &key);
}

void world_pool(struct world *w, enum sw_mode mode, enum sw_cause cause, int64_t deadline_ms)
{
	struct sw_pool pool = {
		.deadline_ns = world_now() + deadline_ms * 1000000,
		.mode = mode,
		.cause = cause,
	};

	write_at(w, MAP_POOLS, POOL_MAIN, &pool);
}

static void fill_listeners(struct world *w)
{
	struct sw_port any = {.any4 = ID_MAIN, .any6 = ID_MAIN}, single = {.single = 1};
	struct sw_port deaf = {.any4 = ID_DEAF, .any6 = ID_DEAF};

	for (unsigned id = ID_MAIN; id < IDS; id++) {
		struct sw_listener l = world_default_listener(id);
		struct sw_address address = {.port = PORT_SINGLE};
		uint32_t value = id;

		world_listener(w, id, &l);
		if (id != ID_SINGLE4 && id != ID_SINGLE6)
			continue;
		memcpy(address.addr, l.addr, 16);
		world_write(w, MAP_ADDRESSES, &address, &value);
	}
	write_at(w, MAP_PORTS, PORT_MAIN, &any);
	write_at(w, MAP_PORTS, PORT_SINGLE, &single);
	write_at(w, MAP_PORTS, PORT_DEAF, &deaf);
}

/* ---- answers ------------------------------------------------------------------------------ */

size_t world_answer(unsigned set, unsigned cause, unsigned family, unsigned variant, char *out)
{
	size_t length = set == SET_ANSWERS ? LENGTH : OTHER_LENGTH, used;

	used = snprintf(out, length + 1,
			"HTTP/1.1 529 Overloaded\r\nContent-Type: application/json\r\n"
			"Connection: close\r\nRetry-After: %u\r\nContent-Length: 000\r\n\r\n"
			"{\"set\":%u,\"cause\":%u,\"family\":%u,\"variant\":%u}",
			variant + 1, set, cause, family, variant);
	memset(out + used, ' ', length - used);
	return length;
}

static void fill_answers(struct world *w)
{
	struct sw_answer answer;

	for (unsigned set = 0; set < ANSWER_SETS; set++)
		for (unsigned i = 0; i < SW_ANSWERS_PER_SET; i++) {
			unsigned variant = i % SW_VARIANTS, family = i / SW_VARIANTS % SW_FAMILIES;
			unsigned cause = i / SW_VARIANTS / SW_FAMILIES;

			memset(&answer, 0, sizeof(answer));
			answer.length = world_answer(set, cause, family, variant, answer.bytes);
			for (unsigned at = 0; at < answer.length; at += 2) {
				uint16_t word;

				memcpy(&word, answer.bytes + at, 2);
				answer.sum += word;
			}
			while (answer.sum >> 16)
				answer.sum = (answer.sum & 0xffff) + (answer.sum >> 16);
			write_at(w, MAP_ANSWERS, SW_ANSWER_INDEX(set, cause, family, variant),
				 &answer);
		}
}

/* ---- paths and exemptions ------------------------------------------------------------------ */

void world_path(struct world *w, const struct sw_path *key, enum sw_path_action action,
		enum sw_family family)
{
	struct sw_path_value value = {.action = action, .family = family};

	world_write(w, MAP_PATHS, key, &value);
}

static void fill_paths(struct world *w)
{
	struct sw_prefix prefix = {.bytes = MODEL_PREFIX, .length = strlen(MODEL_PREFIX)};
	struct sw_path key;

	for (const struct known_path *p = shed_paths; p->path; p++) {
		const char *brace = strchr(p->path, '}');

		key = path_key(SET_PATHS, SW_METHOD_POST, brace ? 1 : 0,
			       brace ? brace + 1 : p->path);
		world_path(w, &key, SW_PATH_SHED, p->family);
	}
	write_at(w, MAP_PREFIXES, 0, &prefix);
	key = path_key(SET_TGI, SW_METHOD_POST, 0, "/");
	world_path(w, &key, SW_PATH_SHED, SW_FAMILY_TGI);
}

void world_exempt(struct world *w, int family, const char *cidr, bool on)
{
	struct sw_cidr_key key = {.set = htonl(SET_EXEMPT)};
	uint8_t addr[16];
	char text[64];
	uint32_t one = 1;

	snprintf(text, sizeof(text), "%.*s", (int)strcspn(cidr, "/"), cidr);
	key.prefixlen = 32 + (family == 4 ? 96 : 0) + atoi(strchr(cidr, '/') + 1);
	inet_pton(family == 4 ? AF_INET : AF_INET6, text, addr);
	mapped(key.addr, family, addr);
	if (on)
		world_write(w, MAP_EXEMPT, &key, &one);
	else
		bpf_map_delete_elem(w->map[MAP_EXEMPT], &key);
}

/* ---- levers, secrets, what the kernel remembers ---------------------------------------------- */

void world_secrets(struct world *w, uint64_t key, uint64_t previous, int64_t previous_ms)
{
	struct sw_secrets secrets = {
		.key = {{key, ~key}, {previous, ~previous}},
		.previous_until_ns = world_now() + previous_ms * 1000000,
	};

	write_at(w, MAP_SECRETS, 0, &secrets);
}

static void empty(struct world *w, enum map map, uint32_t entries, size_t size)
{
	uint32_t *keys = malloc(entries * sizeof(*keys)), count = entries;
	void *values = calloc(entries, size);

	for (uint32_t i = 0; i < entries; i++)
		keys[i] = i;
	if (bpf_map_update_batch(w->map[map], keys, values, &count, NULL)) {
		perror("empty a map");
		exit(1);
	}
	free(keys);
	free(values);
}

void world_forget(struct world *w)
{
	empty(w, MAP_RECENT, SW_RECENT, sizeof(struct sw_recent));
	empty(w, MAP_FLOOD, SW_FLOOD, sizeof(struct sw_flood));
}

void tables_fill(struct world *w)
{
	fill_answers(w);
	fill_paths(w);
}

void tables_reset(struct world *w)
{
	struct sw_levers levers = {
		.tcp = SW_TCP_TIMESTAMPS | SW_TCP_SACK | SW_TCP_WSCALE | SW_TCP_ECN,
		.mss4 = 1460,
		.mss6 = 1440,
	};
	uint8_t src[16], dst[16], loopback[16] = {[15] = 1};
	enum sw_reason reason;
	unsigned which, id;

	fill_listeners(w);
	for (int family = 4; family <= 6; family += 2) {
		world_addresses(family, 0, src, dst);
		world_local(w, family, dst, true);
	}
	world_local(w, 6, loopback, true);
	world_pool(w, SW_MODE_SHED, SW_CAUSE_SATURATED, 3600 * 1000);
	world_secrets(w, 0x0123456789abcdefULL, 0, -1);
	write_at(w, MAP_LEVERS, 0, &levers);
	world_moved(w, &which, &id, &reason);
}

/* ---- counters ------------------------------------------------------------------------------- */

/* The counters of the first `n` listeners, over all CPUs. */
static void read_counts(struct world *w, enum map map, uint32_t n, struct sw_counts *sums)
{
	uint64_t values[n][w->n_cpus][SW_R_COUNT];
	uint32_t keys[n], next, count = n;

	if (bpf_map_lookup_batch(w->map[map], NULL, &next, keys, values, &count, NULL)) {
		perror("read counters");
		exit(1);
	}
	memset(sums, 0, n * sizeof(*sums));
	for (uint32_t id = 0; id < n; id++)
		for (int cpu = 0; cpu < w->n_cpus; cpu++)
			for (unsigned r = 0; r < SW_R_COUNT; r++)
				((uint64_t *)&sums[id])[r] += values[id][cpu][r];
}

void world_counts(struct world *w, enum map map, uint32_t id, struct sw_counts *sum)
{
	struct sw_counts all[IDS];

	read_counts(w, map, IDS, all);
	*sum = all[id];
}

bool world_moved(struct world *w, unsigned *which, unsigned *listener, enum sw_reason *reason)
{
	struct sw_counts now[IDS];
	uint64_t moved = 0;

	for (unsigned hook = 0; hook < 2; hook++) {
		uint64_t *new = (uint64_t *)now, *old = (uint64_t *)w->counts[hook];

		read_counts(w, hook ? MAP_COUNTS_TC : MAP_COUNTS_XDP, IDS, now);
		for (unsigned i = 0; i < IDS * SW_R_COUNT; i++) {
			if (new[i] == old[i])
				continue;
			moved += new[i] - old[i];
			*which = hook;
			*listener = i / SW_R_COUNT;
			*reason = i % SW_R_COUNT;
		}
		memcpy(old, new, sizeof(now));
	}
	return moved == 1;
}

const char *world_reason(enum sw_reason reason)
{
	return reason < SW_R_COUNT ? reason_names[reason] : "?";
}
