// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Pools keep their numbers from one configuration to the next, and listeners their pools. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/daemon.h"

#define MOST 8

struct scene {
	struct sw_config conf;
	struct sw_listener_conf listeners[MOST];
	char names[MOST][2];
};

/* A pool for each letter, and a listener for each pool. */
static void make(struct scene *s, const char *letters)
{
	memset(s, 0, sizeof(*s));
	s->conf.n_pools = s->conf.n_listeners = strlen(letters);
	s->conf.pools = calloc(MOST, sizeof(*s->conf.pools));
	s->conf.listeners = s->listeners;
	for (size_t i = 0; i < s->conf.n_pools; i++) {
		s->names[i][0] = letters[i];
		s->conf.pools[i].name = s->names[i];
		s->listeners[i].pool = i;
		s->listeners[i].port = (uint16_t)letters[i];
	}
}

static void expect(const char *now, const char *next, const char *want)
{
	struct scene a, b;
	struct sw_error err = {0};

	make(&a, now);
	make(&b, next);
	assert_int_equal(sw_keep_numbers(&a.conf, &b.conf, &err), 0);
	for (size_t i = 0; i < b.conf.n_pools; i++) {
		const struct sw_listener_conf *l = &b.listeners[i];

		assert_int_equal(b.conf.pools[i].name[0], want[i]);
		assert_int_equal(b.conf.pools[l->pool].name[0], l->port);
	}
	free(a.conf.pools);
	free(b.conf.pools);
}

static void numbers(void **state)
{
	(void)state;
	expect("ab", "ab", "ab");
	expect("ab", "ba", "ab");
	expect("a", "xa", "ax");
	expect("abc", "xcyba", "abcxy");
	expect("abc", "bc", "cb"); /* there is no third place any more */
	expect("abc", "c", "c");
	expect("abc", "xbc", "xbc");
	expect("", "ab", "ab");
	expect("ab", "", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(numbers)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
