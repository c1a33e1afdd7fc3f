// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `spillway check` and `spillway reasons`: what needs no daemon. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "kernel/probe.h"
#include <spillway/reasons.h>

#define BPFFS "/sys/fs/bpf/spillway"

static json_t *probe_json(const struct sw_probe *p)
{
	return json_pack("{s:s, s:b, s:s, s:s}", "feature", p->name, "present", p->present,
			 "detail", p->detail, "cost", p->present || !p->cost ? "" : p->cost);
}

static void print_probes(const struct sw_probe *probes)
{
	struct cli_table t = {0};

	CLI_ROW(&t, "FEATURE", "HERE", "SEEN");
	for (int i = 0; i < SW_FEATURES; i++)
		CLI_ROW(&t, probes[i].name, probes[i].present ? "yes" : "NO", probes[i].detail);
	cli_table_print(&t);
	for (int i = 0; i < SW_FEATURES; i++)
		if (!probes[i].present && probes[i].cost)
			printf("without %s: %s\n", probes[i].name, probes[i].cost);
}

/* Without these spillwayd cannot start; it mounts a bpf file system on its own, and has a way round
 * the rest. */
static bool is_enough(const struct sw_probe *probes)
{
	for (int i = 0; i < SW_FEATURES; i++)
		if (!probes[i].present &&
		    (probes[i].feature == SW_FEAT_CAPS || probes[i].feature == SW_FEAT_BTF))
			return false;
	return true;
}

int cli_check(const struct cli_options *o, int argc, char **argv)
{
	struct sw_probe probes[SW_FEATURES] = {0};
	char facts[4096] = "";
	json_t *out;
	int e = 0;

	(void)argv;
	if (argc > 0)
		return cli_fail(CLI_USAGE, "check takes no argument; an interface is named with "
					   "--interface");
	sw_probe_all(probes, BPFFS);
	if (o->interface)
		e = sw_probe_interface(o->interface, facts, sizeof(facts));
	if (e < 0)
		return cli_fail(CLI_FAILED, "interface %s: %s", o->interface, strerror(-e));
	if (!o->json) {
		print_probes(probes);
		if (o->interface)
			printf("\ninterface %s\n%s\n", o->interface, facts);
		return is_enough(probes) ? CLI_OK : CLI_FAILED;
	}
	out = json_pack("{s:[], s:s?, s:s}", "features", "interface", o->interface, "facts", facts);
	for (int i = 0; i < SW_FEATURES; i++)
		json_array_append_new(json_object_get(out, "features"), probe_json(&probes[i]));
	cli_print_json(out);
	json_decref(out);
	return is_enough(probes) ? CLI_OK : CLI_FAILED;
}

static const struct {
	const char *name, *class, *text;
} reasons[] = {
#define X(n, name, class, text) [n] = {#name, #class, text},
	SW_REASONS(X)
#undef X
};

static void print_reasons(void)
{
	struct cli_table t = {0};

	CLI_ROW(&t, "NUMBER", "REASON", "CLASS", "MEANING");
	for (unsigned i = 0; i < SW_R_COUNT; i++) {
		char number[16];

		snprintf(number, sizeof(number), "%u", i);
		CLI_ROW(&t, number, reasons[i].name, reasons[i].class, reasons[i].text);
	}
	cli_table_print(&t);
	printf("\nPASS: on to the stack, untouched. REPLY: turned into an answer. DROP: ended here.\n"
	       "GIVE: the connection was handed over to the stack.\n");
}

static void print_reasons_json(void)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < SW_R_COUNT; i++)
		json_array_append_new(list, json_pack("{s:i, s:s, s:s, s:s}", "number", i, "reason",
						      reasons[i].name, "class", reasons[i].class,
						      "text", reasons[i].text));
	cli_print_json(list);
	json_decref(list);
}

int cli_reasons(const struct cli_options *o, int argc, char **argv)
{
	(void)argv;
	if (argc > 0)
		return cli_fail(CLI_USAGE, "reasons takes no argument");
	if (o->json)
		print_reasons_json();
	else
		print_reasons();
	return CLI_OK;
}
