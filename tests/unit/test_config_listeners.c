// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Listeners of a configuration: addresses and CIDRs from text, mistakes in listeners and paths, and
 * what the kernel's maps hold. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/conf.h"

static void listener_text(void **state)
{
	static const struct {
		const char *text, *shown;
		bool v4, v6;
	} table[] = {
		{"8000", "*:8000", true, true},
		{"*:8000", "*:8000", true, true},
		{"[::]:8000", "*:8000", true, true},
		{"0.0.0.0:8000", "0.0.0.0:8000", true, false},
		{"10.1.2.3:65535", "10.1.2.3:65535", true, false},
		{"[::ffff:10.1.2.3]:1", "10.1.2.3:1", true, false},
		{"[2001:db8::1]:80", "[2001:db8::1]:80", false, true},
	};
	static const char *const wrong[] = {
		"",	   "0",	      "65536",		"-1",	    "80x",
		" 80",	   ":80",     "1.2.3:80",	"1.2.3.4:", "::1:80",
		"[::1]80", "[]:80",   "[1.2.3.4]:80",	"h:80",	    "1.2.3.4",
		"[::1]:0", "000080x", "[fe80::1%lo]:80"};
	struct sw_listener_conf l;
	struct sw_error err;
	char text[64];

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(
			sw_parse_listener(table[i].text, l.addr, &l.v4, &l.v6, &l.port, &err), 0);
		assert_int_equal(l.v4, table[i].v4);
		assert_int_equal(l.v6, table[i].v6);
		sw_format_listener(&l, text, sizeof(text));
		assert_string_equal(text, table[i].shown);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(sw_parse_listener(wrong[i], l.addr, &l.v4, &l.v6, &l.port, &err),
				 -EINVAL);
}

static void cidr_text(void **state)
{
	static const struct {
		const char *text;
		uint8_t bits;
	} table[] = {{"10.0.0.0/8", 104},	   {"10.1.2.3", 128},
		     {"10.1.2.3/32", 128},	   {"0.0.0.0/0", 96},
		     {"2001:db8::/32", 32},	   {"::1", 128},
		     {"::ffff:10.0.0.0/104", 104}, {"::/0", 0}};
	static const struct {
		const char *text, *error;
	} wrong[] = {
		{"10.0.0.1/8", "'10.0.0.1/8' has host bits set; allowed: 10.0.0.0/8"},
		{"2001:db8::1/32", "'2001:db8::1/32' has host bits set; allowed: 2001:db8::/32"},
		{"10.0.0.0/33", "'10.0.0.0/33' is not a CIDR; allowed: ADDR or ADDR/BITS, such as "
				"10.0.0.0/8 or 2001:db8::/32"},
		{"::/129", "'::/129' is not a CIDR; allowed: ADDR or ADDR/BITS, such as "
			   "10.0.0.0/8 or 2001:db8::/32"},
		{"10.0.0.0/", "'10.0.0.0/' is not a CIDR; allowed: ADDR or ADDR/BITS, such as "
			      "10.0.0.0/8 or 2001:db8::/32"},
		{"host", "'host' is not a CIDR; allowed: ADDR or ADDR/BITS, such as "
			 "10.0.0.0/8 or 2001:db8::/32"},
	};
	struct sw_cidr cidr;
	struct sw_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_int_equal(sw_parse_cidr(table[i].text, &cidr, &err), 0);
		assert_int_equal(cidr.bits, table[i].bits);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(sw_parse_cidr(wrong[i].text, &cidr, &err), -EINVAL);
		assert_string_equal(err.text, wrong[i].error);
	}
}

static void intercepts(void **state)
{
	static const char *const names[] = {"new", "established", "both", "auto"};
	static const enum sw_intercept want[] = {SW_INTERCEPT_NEW, SW_INTERCEPT_ESTABLISHED,
						 SW_INTERCEPT_BOTH, SW_INTERCEPT_AUTO};
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct sw_config *c;

		snprintf(text, sizeof(text),
			 "established_flows: 1000000\n" LISTENER("    intercept: %s\n"), names[i]);
		c = conf_good(text);
		assert_int_equal(c->listeners[0].intercept, want[i]);
		assert_int_equal(c->established_flows, 1000000);
		sw_config_free(c);
	}
}

static void listeners(void **state)
{
	static const struct conf_mistake table[] = {
		{"pools: [{name: a}]\nlisteners: []\n",
		 "c.yaml:2: listeners: none; allowed: 1 to 1023, or none where a pool has steer: "
		 "connect"},
		{"pools: [{name: a}]\nlisteners:\n  - listen: host:80\n",
		 "c.yaml:3: listeners[0].listen: 'host:80' is not a listener; allowed: PORT, ADDR:PORT "
		 "or [ADDR6]:PORT, port 1 to 65535"},
		{LISTENER("    pool: b\n"),
		 "c.yaml:4: listeners[0].pool: there is no pool 'b'; allowed: a"},
		{"pools: [{name: a}, {name: b}]\nlisteners:\n  - listen: 80\n",
		 "c.yaml:3: listeners[0].pool: missing; allowed: a, b"},
		{LISTENER("  - listen: 0.0.0.0:8000\n"),
		 "c.yaml:4: listeners[1].listen: '0.0.0.0:8000' is covered by listeners[0] already; "
		 "allowed: once for an address, port and netns"},
		{"pools: [{name: a}]\nlisteners: [{listen: \"[::1]:8\"}, {listen: \"[0::1]:8\"}]\n",
		 "c.yaml:2: listeners[1].listen: '[0::1]:8' is covered by listeners[0] already; "
		 "allowed: once for an address, port and netns"},
		{LISTENER("    netns: pid:0\n"),
		 "c.yaml:4: listeners[0].netns: 'pid:0' is not a network "
		 "namespace; allowed: /PATH or pid:N"},
		{LISTENER("    syn_rate: 4294967296\n"),
		 "c.yaml:4: listeners[0].syn_rate: '4294967296' is out of range; allowed: 0 to "
		 "4294967295"},
		{LISTENER("    intercept: old\n"),
		 "c.yaml:4: listeners[0].intercept: 'old' is not known; allowed: new, established, "
		 "both, auto"},
		{"established_flows: 1023\n" LISTENER(""),
		 "c.yaml:1: established_flows: '1023' is out of range; allowed: 1024 to 1000000"},
		{LISTENER("    exempt:\n      - 10.0.0.0/8\n      - 10.1.0.0/8\n"),
		 "c.yaml:6: listeners[0].exempt[1]: '10.1.0.0/8' has host bits set; allowed: "
		 "10.0.0.0/8"},
		{LISTENER("    exempt: [local]\n"),
		 "c.yaml:4: listeners[0].exempt[0]: 'local' is not a CIDR; allowed: ADDR or ADDR/BITS, "
		 "such as 10.0.0.0/8 or 2001:db8::/32"},
	};

	(void)state;
	CONF_CHECK(table);
}

#define TEN	"0123456789"
#define SIXTY	TEN TEN TEN TEN TEN TEN
#define ALLOWED "; allowed: [METHOD ]/PATH with at most one {name}"

static void paths(void **state)
{
#define BAD_PATH(entry, shown, why)                                                                \
	{LISTENER("    paths:\n      shed:\n        - /ok\n        - \"" entry "\"\n"),            \
	 "c.yaml:7: listeners[0].paths.shed[1]: '" shown "' " why ALLOWED}
	static const struct conf_mistake table[] = {
		BAD_PATH("v1", "v1", "does not begin with '/'"),
		BAD_PATH("POST  /v1", " /v1", "does not begin with '/'"),
		BAD_PATH("/a?b", "/a?b", "has a blank, '?' or '#', where a path ends"),
		BAD_PATH("POST /a b", "/a b", "has a blank, '?' or '#', where a path ends"),
		BAD_PATH("/{id}", "/{id}", "has braces other than one {name}"),
		BAD_PATH("/{name}/{name}", "/{name}/{name}", "has braces other than one {name}"),
		BAD_PATH("/a{name}", "/a{name}", "has a {name} that is not a whole segment"),
		BAD_PATH("/{name}b", "/{name}b", "has a {name} that is not a whole segment"),
		BAD_PATH("/" TEN TEN TEN "1/{name}", "/" TEN TEN TEN "1/{name}",
			 "has more than 32 bytes before {name}"),
		BAD_PATH("/" SIXTY "123", "/" SIXTY "123", "has more than 63 bytes"),
		BAD_PATH("/{name}/" SIXTY "123", "/{name}/" SIXTY "123",
			 "has more than 63 bytes behind {name}"),
		{LISTENER("    paths: {pass: [FETCH /a]}\n"),
		 "c.yaml:4: listeners[0].paths.pass[0]: 'FETCH' is not known; allowed: GET, HEAD, POST, "
		 "PUT, DELETE, PATCH, OPTIONS, CONNECT, TRACE"},
		{LISTENER("    paths:\n      shed: [/a/b]\n      pass: [\"/a/{name}\"]\n"),
		 "c.yaml:6: listeners[0].paths.pass[0]: '/a/{name}' lets shed[0] pass; allowed: one of "
		 "the two"},
		{LISTENER("    paths:\n      all: true\n      pass: [/a]\n"),
		 "c.yaml:5: listeners[0].paths.all: sheds every path; allowed: without shed and pass"},
	};
	static const char *const longest[] = {
		LISTENER("    paths: {shed: [/" SIXTY "12]}\n"),
		LISTENER("    paths: {shed: [\"/" TEN TEN TEN "/{name}/" SIXTY "12\"]}\n"),
	};

	(void)state;
	CONF_CHECK(table);
	for (size_t i = 0; i < sizeof(longest) / sizeof(longest[0]); i++)
		sw_config_free(conf_good(longest[i]));
}

/* Prints a file with `n` entries made by `entry` (one %zu or none) between `head` and `tail`. */
static char *repeat(const char *head, size_t n, const char *entry, const char *tail)
{
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	fputs(head, f);
	for (size_t i = 1; i <= n; i++) {
		const char *number = strstr(entry, "#");

		fprintf(f, "%.*s%zu%s", (int)(number - entry), entry, i, number + 1);
	}
	fputs(tail, f);
	fclose(f);
	return text;
}

/* The most that the kernel's maps hold is taken, one more is not. */
static void map_limits(void **state)
{
	static const struct {
		size_t most;
		const char *head, *entry, *tail, *error;
	} table[] = {
		{256, "pools:\n", "- name: p#\n", "listeners: [{listen: 1, pool: p1}]\n",
		 "c.yaml:1: pools: 257 entries; allowed: 1 to 256"},
		{1023, "pools: [{name: a}]\nlisteners:\n", "- listen: #\n", "",
		 "c.yaml:2: listeners: 1024 entries; allowed: up to 1023"},
		{4096 - 32, LISTENER("    paths:\n      shed:\n"), "      - /p#\n", "",
		 "c.yaml:4: listeners[0].paths: 4097 paths up to this listener; allowed: 4096 in all"},
		{4096, LISTENER("    exempt:\n"), "    - \"2001:db8::#\"\n", "",
		 "c.yaml:4: listeners[0].exempt: 4097 CIDRs up to this listener; allowed: 4096 in all"},
		{15, LISTENER("    paths:\n      shed:\n"), "      - \"/p#/{name}\"\n", "",
		 "c.yaml:4: listeners[0].paths: over 16 different texts before a {name}; allowed: 16 in "
		 "all"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char *fits = repeat(table[i].head, table[i].most, table[i].entry, table[i].tail);
		char *over =
			repeat(table[i].head, table[i].most + 1, table[i].entry, table[i].tail);
		const struct conf_mistake mistake = {over, table[i].error};

		sw_config_free(conf_good(fits));
		conf_check(&mistake, 1);
		free(fits);
		free(over);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(listener_text), cmocka_unit_test(cidr_text),
		cmocka_unit_test(intercepts),	 cmocka_unit_test(listeners),
		cmocka_unit_test(paths),	 cmocka_unit_test(map_limits),
	};

	return cmocka_run_group_tests(tests, conf_setup, conf_teardown);
}
