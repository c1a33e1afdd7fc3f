// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Maps of a guard, written and read; see maps.h. */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "maps.h"
#include "spillway.skel.h"

int maps_set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct bpf_program *prog;

	w->obj = spillway__open();
	bpf_object__for_each_program (prog, w->obj->obj)
		bpf_program__set_autoload(prog, false);
	bpf_map__set_max_entries(w->obj->maps.answers, MAPS_SETS * SW_ANSWERS_PER_SET);
	*state = w;
	return spillway__load(w->obj) || sw_maps_find(w->obj->obj, &w->maps);
}

int maps_tear_down(void **state)
{
	struct world *w = *state;

	spillway__destroy(w->obj);
	free(w);
	return 0;
}

struct sw_pool_conf maps_pool(uint16_t status)
{
	return (struct sw_pool_conf){
		.answer = {.status = status, .drain_status = 503, .max_bytes = SW_ANSWER_DEFAULT}};
}

struct sw_listener_conf maps_any(uint16_t port)
{
	return (struct sw_listener_conf){.v4 = true, .v6 = true, .port = port, .syn_rate = 7};
}

struct sw_listener_conf maps_one4(const char *addr, uint16_t port)
{
	struct sw_listener_conf l = {.v4 = true, .port = port, .addr = {[10] = 0xff, [11] = 0xff}};

	inet_pton(AF_INET, addr, l.addr + 12);
	return l;
}

struct sw_cidr maps_cidr4(const char *addr, int bits)
{
	struct sw_cidr c = {.addr = {[10] = 0xff, [11] = 0xff}, .bits = 96 + bits};

	inet_pton(AF_INET, addr, c.addr + 12);
	return c;
}

void maps_write(struct world *w, struct sw_pool_conf *pools, size_t n_pools,
		struct sw_listener_conf *listeners, size_t n, uint64_t now)
{
	struct sw_config c = {
		.pools = pools, .n_pools = n_pools, .listeners = listeners, .n_listeners = n};
	struct sw_error err = {0};

	if (sw_tables_write(&w->maps, &c, NULL, now, &err))
		fail_msg("%s", err.text);
}

int maps_write_bad(struct world *w, struct sw_pool_conf *pools, size_t n_pools,
		   struct sw_listener_conf *listeners, size_t n, struct sw_error *err)
{
	struct sw_config c = {
		.pools = pools, .n_pools = n_pools, .listeners = listeners, .n_listeners = n};
	int ret = sw_tables_write(&w->maps, &c, NULL, NOW, err);

	assert_true(ret < 0);
	assert_true(err->text[0]);
	return ret;
}

static struct sw_port port_of(struct world *w, uint32_t port)
{
	struct sw_port p;

	assert_int_equal(bpf_map_lookup_elem(w->maps.ports, &port, &p), 0);
	return p;
}

struct sw_listener maps_listener(struct world *w, uint32_t id)
{
	struct sw_listener l;

	assert_int_equal(bpf_map_lookup_elem(w->maps.listeners, &id, &l), 0);
	return l;
}

void maps_assert_port(struct world *w, uint32_t port, int any4, int any6, int single)
{
	struct sw_port p = port_of(w, port);

	assert_int_equal(p.any4, any4);
	assert_int_equal(p.any6, any6);
	assert_int_equal(p.single, single);
}

size_t maps_rows(int map)
{
	uint8_t key[128];
	void *previous = NULL;
	size_t n = 0;

	while (!bpf_map_get_next_key(map, previous, key)) {
		previous = key;
		n++;
	}
	return n;
}

int maps_action(struct world *w, int set, int method, int prefix, const char *path)
{
	struct sw_path key = {.set = set, .method = method, .prefix = prefix};
	struct sw_path_value value;

	memcpy(key.path, path, strlen(path));
	return bpf_map_lookup_elem(w->maps.paths, &key, &value) ? 0 : value.action;
}

bool maps_is_exempt(struct world *w, int set, const char *addr)
{
	struct sw_cidr_key key = {
		.prefixlen = 32 + 128, .set = htonl(set), .addr = {[10] = 0xff, [11] = 0xff}};
	uint32_t value;

	inet_pton(AF_INET, addr, key.addr + 12);
	return !bpf_map_lookup_elem(w->maps.exempt, &key, &value);
}

struct sw_answer maps_answer(struct world *w, int set)
{
	uint32_t index = SW_ANSWER_INDEX(set, SW_CAUSE_SATURATED, SW_FAMILY_DEFAULT, 0);
	struct sw_answer a;

	assert_int_equal(bpf_map_lookup_elem(w->maps.answers, &index, &a), 0);
	return a;
}
