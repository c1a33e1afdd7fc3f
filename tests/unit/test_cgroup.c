// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which cgroup the operator means: on a made-up host, whose /proc and hierarchy are plain
 * directories, and on the real one. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernel/cgroup.h"
#include "kernel/steer.h"

static char host[64], proc[96]; /* of the made-up host */
static char path[PATH_MAX];
static struct sw_error err;

static void in_host(const char *command)
{
	char line[PATH_MAX];

	snprintf(line, sizeof(line), "cd %s && %s", host, command);
	assert_int_equal(system(line), 0);
}

/* Mount points are given relative to the host's directory. */
static void write_mounts(const char *lines)
{
	char file[PATH_MAX];
	FILE *f;

	snprintf(file, sizeof(file), "%s/self/mounts", proc);
	f = fopen(file, "w");
	for (; *lines; lines++)
		if (*lines == '@')
			fprintf(f, "%s", host);
		else
			fputc(*lines, f);
	fclose(f);
}

#define HYBRID                                                                                     \
	"proc /proc proc rw 0 0\ncgroup @/v1 cgroup rw,memory 0 0\ncgroup2 @/v2 cgroup2 rw 0 0\n"

static int setup(void **state)
{
	(void)state;
	snprintf(host, sizeof(host), "/tmp/spg-XXXXXX");
	assert_non_null(mkdtemp(host));
	snprintf(proc, sizeof(proc), "%s/proc", host);
	in_host("mkdir -p other proc/self proc/7 proc/8 proc/9 proc/10 proc/11 v1");
	in_host("mkdir -p v2/system.slice/nginx.service v2/system.slice/dock.scope/nginx.socket");
	in_host("mkdir -p v2/user.slice/llm.service v2/system.slice/llm.service/llm.service");
	in_host("mkdir -p v2/system.slice/one@x.service/one@x.service");
	in_host("printf '8:memory:/m\\n0::/system.slice/nginx.service\\n' >proc/7/cgroup");
	in_host("printf '0::/\\n' >proc/8/cgroup");
	in_host("printf '0::/../other\\n' >proc/9/cgroup");
	in_host("printf '0::/gone (deleted)\\n' >proc/10/cgroup");
	in_host("printf '8:memory:/m\\n' >proc/11/cgroup");
	write_mounts(HYBRID);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	in_host("rm -rf other proc v1 v2* 'v 2'");
	return rmdir(host);
}

static int resolve(const char *text)
{
	path[0] = err.text[0] = 0;
	return sw_cgroup_resolve_in(proc, text, path, sizeof(path), &err);
}

static void assert_found(const char *text, const char *want)
{
	char whole[PATH_MAX];

	snprintf(whole, sizeof(whole), "%s/%s", host, want);
	if (resolve(text))
		fail_msg("%s: %s", text, err.text);
	assert_string_equal(path, whole);
}

static void assert_refused(const char *text, int ret, const char *part)
{
	assert_int_equal(resolve(text), ret);
	if (!strstr(err.text, part) || strchr(err.text, '\n'))
		fail_msg("%s: %s", text, err.text);
}

static void the_mount_point(void **state)
{
	(void)state;
	assert_found(NULL, "v2");
	in_host("mkdir 'v 2'");
	write_mounts("cgroup2 @/v\\0402 cgroup2 rw 0 0\n");
	assert_found(NULL, "v 2");
}

static void processes(void **state)
{
	(void)state;
	assert_found("pid:7", "v2/system.slice/nginx.service");
	assert_found("pid:8", "v2");
	assert_refused("pid:12", -ENOENT, "no such process");
	assert_refused("pid:9", -ENOENT, "--cgroupns=host");
	assert_refused("pid:10", -ENOENT, "/gone (deleted)");
	assert_refused("pid:11", -ENOENT, "no cgroup of v2");
	assert_refused("pid:7x", -EINVAL, "not a process id");
	assert_refused("pid:-7", -EINVAL, "not a process id");
	assert_refused("pid:", -EINVAL, "not a process id");
}

static void units(void **state)
{
	(void)state;
	assert_found("unit:nginx", "v2/system.slice/nginx.service");
	assert_found("unit:nginx.service", "v2/system.slice/nginx.service");
	assert_found("unit:nginx.socket", "v2/system.slice/dock.scope/nginx.socket");
	assert_found("unit:system.slice", "v2/system.slice");
	/* What is inside of a unit is that unit's own. */
	assert_found("unit:one@x", "v2/system.slice/one@x.service");
	assert_refused("unit:llm", -EINVAL, "several");
	assert_refused("unit:ngin", -ENOENT, "systemctl status ngin.service");
	assert_refused("unit:", -EINVAL, "name of a unit");
	assert_refused("unit:../v1", -EINVAL, "name of a unit");
}

static void only_v1(void **state)
{
	static const char *const forms[] = {NULL, "pid:7", "unit:nginx", "/proc"};

	(void)state;
	write_mounts("cgroup @/v1 cgroup rw,memory 0 0\n");
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		assert_refused(forms[i], -EOPNOTSUPP, "only cgroup v1 is mounted");
	write_mounts("");
	assert_refused(NULL, -EOPNOTSUPP, "no cgroup file system");
}

static void malformed(void **state)
{
	(void)state;
	assert_refused("nginx", -EINVAL, "neither /PATH nor pid:N nor unit:NAME");
	assert_refused("", -EINVAL, "neither");
	assert_refused("/proc", -EINVAL, "not a directory of cgroup v2");
	assert_refused("/nowhere/at/all", -ENOENT, "/nowhere/at/all");
	assert_refused("/proc/self/status", -ENOTDIR, "/proc/self/status");
}

/* ---- the host that there is ----------------------------------------------------------------- */

static void the_real_host(void **state)
{
	char top[PATH_MAX / 4], own[PATH_MAX / 2], text[32];
	uint64_t id, top_id;
	FILE *procs;
	pid_t pid;
	int fd;

	(void)state;
	if (sw_cgroup_resolve(NULL, top, sizeof(top), &err)) {
		printf("SKIP: %s\n", err.text);
		skip();
	}
	snprintf(own, sizeof(own), "%s/spg-test-%d", top, getpid());
	if (mkdir(own, 0755)) {
		printf("SKIP: cgroups cannot be made here\n");
		skip();
	}
	assert_int_equal(sw_cgroup_resolve(own, path, sizeof(path), &err), 0);
	assert_string_equal(path, own);

	pid = fork();
	if (!pid)
		for (;;)
			pause();
	snprintf(path, sizeof(path), "%s/cgroup.procs", own);
	procs = fopen(path, "w");
	fprintf(procs, "%d", pid);
	assert_int_equal(fclose(procs), 0);
	snprintf(text, sizeof(text), "pid:%d", pid);
	assert_int_equal(sw_cgroup_resolve(text, path, sizeof(path), &err), 0);
	assert_string_equal(path, own);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);

	fd = sw_cgroup_open(own, &id, &err);
	assert_true(fd >= 0);
	close(fd);
	fd = sw_cgroup_open(top, &top_id, &err);
	close(fd);
	assert_int_not_equal(id, top_id);
	assert_false(sw_cgroup_is_container_top(own, id));
	/* A top that is not the host's has another number. */
	assert_false(sw_cgroup_is_container_top(top, 1));
	assert_true(sw_cgroup_is_container_top(top, id));
	assert_int_equal(rmdir(own), 0);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(the_mount_point), T(processes), T(units),
		T(only_v1),	    T(malformed), cmocka_unit_test(the_real_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
