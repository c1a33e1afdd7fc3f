// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The maps of steering: opened, left and taken over, and those of another layout. Needs root. What
 * is written to them is in test_steer_maps.c, programs on cgroups are in test_steer_attach.c. */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernel/remove.h"
#include "lib/steers.h"

/* ---- opening -------------------------------------------------------------------------------- */

static void what_is_pinned_is_taken_over(void **state)
{
#define X(name) #name,
	static const char *const names[] = {SW_SLOT_MAPS(X)};
#undef X
	uint32_t id[sizeof(names) / sizeof(*names)];
	struct sw_worker_row row = steers_row("127.0.0.1", 1, 2), read;
	struct sw_steer *s = steers_open();
	struct sw_slot slot;

	(void)state;
	assert_int_equal(sw_steer_set_worker(s, 5, &row), 0);
	steers_put_slot(s, 5, (struct sw_slot){.inuse = 3, .takes = 9});
	for (size_t i = 0; i < sizeof(id) / sizeof(*id); i++) {
		id[i] = steers_map_id(steers_pin(names[i]));
		assert_int_not_equal(id[i], 0);
	}
	sw_steer_leave(s);
	s = steers_open();
	for (size_t i = 0; i < sizeof(id) / sizeof(*id); i++)
		assert_int_equal(steers_map_id(steers_pin(names[i])), id[i]);
	assert_int_equal(sw_steer_get_worker(s, 5, &read), 0);
	assert_memory_equal(&read, &row, sizeof(row));
	sw_steer_slot(s, 5, &slot);
	assert_int_equal(slot.inuse, 3);
	assert_int_equal(slot.takes, 9);
	sw_steer_remove(s);
	assert_int_not_equal(access(steers_root, F_OK), 0);
}

static void a_map_that_is_missing_is_made_anew(void **state)
{
	struct sw_steer *s = steers_open();
	uint32_t workers = steers_map_id(steers_pin("workers"));

	(void)state;
	sw_steer_leave(s);
	assert_int_equal(unlink(steers_pin("virtuals")), 0);
	s = steers_open();
	assert_int_not_equal(steers_map_id(steers_pin("virtuals")), 0);
	assert_int_equal(steers_map_id(steers_pin("workers")), workers);
	sw_steer_leave(s);
}

static void where_nothing_can_be_pinned(void **state)
{
	struct sw_error err = {0};
	struct sw_steer *s = NULL;

	(void)state;
	assert_int_equal(sw_steer_open(&s, "/tmp/sps-pins", &err), -ENOTDIR);
	assert_non_null(strstr(err.text, "mount -t bpf"));
	assert_null(s);
	sw_steer_leave(NULL);
	sw_steer_remove(NULL);
}

/* ---- another layout ------------------------------------------------------------------------- */

/* Slots and workers as another version may have them: more in a row, other numbers of rows. */
static void make_other(uint32_t id, uint32_t inuse, uint32_t flags)
{
	struct {
		struct sw_worker_row row;
		char more[40];
	} row = {.row.flags = flags};
	uint32_t slot[30] = {inuse};
	char path[256];
	int slots = bpf_map_create(BPF_MAP_TYPE_ARRAY, "slots", 4, sizeof(slot), 16, NULL);
	int workers = bpf_map_create(BPF_MAP_TYPE_ARRAY, "workers", 4, sizeof(row), 16, NULL);

	assert_int_equal(bpf_map_update_elem(slots, &id, slot, BPF_ANY), 0);
	assert_int_equal(bpf_map_update_elem(workers, &id, &row, BPF_ANY), 0);
	snprintf(path, sizeof(path), "mkdir -p %s/v1/slots", steers_root);
	assert_int_equal(system(path), 0);
	snprintf(path, sizeof(path), "%s/v1/slots/slots", steers_root);
	unlink(path);
	assert_int_equal(bpf_obj_pin(slots, path), 0);
	snprintf(path, sizeof(path), "%s/v1/slots/workers", steers_root);
	unlink(path);
	assert_int_equal(bpf_obj_pin(workers, path), 0);
	close(slots);
	close(workers);
}

static int cgroup_programs(void)
{
	int fd = open(steers_cgroup[0], O_RDONLY | O_DIRECTORY);
	uint32_t ids[8], n = 8;

	assert_int_equal(bpf_prog_query(fd, BPF_CGROUP_SOCK_OPS, 0, NULL, ids, &n), 0);
	close(fd);
	return n;
}

/* Puts a program of the other version on the cgroup. */
static void attach_other(void)
{
	int prog = steers_other_program();
	int cgroup = open(steers_cgroup[0], O_RDONLY | O_DIRECTORY);
	int link = bpf_link_create(prog, cgroup, BPF_CGROUP_SOCK_OPS, NULL);
	char path[256];

	snprintf(path, sizeof(path), "%s/v1/slots/link_sockops_1", steers_root);
	assert_int_equal(bpf_obj_pin(link, path), 0);
	close(link);
	close(cgroup);
	close(prog);
	assert_int_equal(cgroup_programs(), 1);
}

static void another_layout_that_holds_connections(void **state)
{
	struct sw_error err = {0};
	struct sw_steer *s = NULL;
	char other[256];

	(void)state;
	snprintf(other, sizeof(other), "%s/v1", steers_root);
	make_other(15, 42, 0);
	attach_other();
	assert_int_equal(sw_steer_open(&s, steers_root, &err), -EEXIST);
	assert_null(s);
	assert_non_null(strstr(err.text, "42 connections"));
	assert_non_null(strstr(err.text, "spillwayd --remove"));
	assert_null(strchr(err.text, '\n'));
	assert_int_equal(cgroup_programs(), 1);
	assert_int_not_equal(access(steers_pin(""), F_OK), 0);

	/* They have ended. */
	make_other(15, 0, 0);
	s = steers_open();
	assert_int_not_equal(access(other, F_OK), 0);
	assert_int_equal(cgroup_programs(), 0);
	sw_steer_leave(s);
}

/* Credits that were taken are not connections that somebody holds. */
static void another_layout_s_credits(void **state)
{
	struct sw_steer *s;

	(void)state;
	make_other(2, 1000000, SW_WF_ROW | SW_WF_CREDIT);
	s = steers_open();
	sw_steer_leave(s);
}

static void everything_can_be_removed(void **state)
{
	struct sw_error err = {0};
	struct sw_steer *s = steers_open();

	(void)state;
	steers_attach(s, 0, true, true);
	make_other(15, 42, 0);
	sw_steer_leave(s);
	assert_int_equal(cgroup_programs(), 1);
	assert_int_equal(sw_host_remove(steers_root, &err), 0);
	assert_int_equal(cgroup_programs(), 0);
	assert_int_not_equal(access(steers_root, F_OK), 0);
	assert_int_equal(sw_host_remove(steers_root, &err), 0);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, steers_setup, steers_teardown)
	const struct CMUnitTest tests[] = {
		T(what_is_pinned_is_taken_over), T(a_map_that_is_missing_is_made_anew),
		T(where_nothing_can_be_pinned),	 T(another_layout_that_holds_connections),
		T(another_layout_s_credits),	 T(everything_can_be_removed),
	};
	const char *why = steers_impossible();

	if (why) {
		printf("SKIP: %s\n", why);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
