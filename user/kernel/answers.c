// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Other answers for a pool of a plane that runs: rendered into a place that no listener answers
 * from, then its listeners are sent there. All else of a configuration is tables.c's matter. */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/plane_impl.h"

static int read_listener(const struct sw_plane *p, unsigned id, struct sw_listener *out)
{
	return bpf_map_lookup_elem(p->maps.listeners, &id, out) ? -errno : 0;
}

static int find_place(const struct sw_plane *p)
{
	bool used[SW_MAX_ANSWERSETS] = {false};
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);
	struct sw_listener l;
	unsigned sets, s = 0;

	if (bpf_obj_get_info_by_fd(p->maps.answers, &info, &size))
		return -errno;
	for (unsigned id = 1; id < p->listeners; id++)
		if (!read_listener(p, id, &l) && l.port && l.answers < SW_MAX_ANSWERSETS)
			used[l.answers] = true;
	sets = info.max_entries / SW_ANSWERS_PER_SET;
	while (s < sets && s < SW_MAX_ANSWERSETS && used[s])
		s++;
	return s < sets && s < SW_MAX_ANSWERSETS ? (int)s : -ENOSPC;
}

static int write_set(const struct sw_plane *p, unsigned set, const struct sw_answer *answers)
{
	for (unsigned i = 0; i < SW_ANSWERS_PER_SET; i++) {
		uint32_t key = set * SW_ANSWERS_PER_SET + i;

		if (bpf_map_update_elem(p->maps.answers, &key, &answers[i], BPF_ANY))
			return -errno;
	}
	return 0;
}

static int send_listeners(const struct sw_plane *p, unsigned pool, unsigned set)
{
	struct sw_listener l;

	for (unsigned id = 1; id < p->listeners; id++) {
		if (read_listener(p, id, &l) || !l.port || l.pool != pool)
			continue;
		l.answers = (uint16_t)set;
		if (bpf_map_update_elem(p->maps.listeners, &id, &l, BPF_ANY))
			return -errno;
	}
	return 0;
}

int sw_plane_put_answers(struct sw_plane *p, unsigned pool, const struct sw_answer_spec *spec)
{
	struct sw_answer *answers = calloc(SW_ANSWERS_PER_SET, sizeof(*answers));
	uint8_t variants_mask;
	int set, ret = answers ? sw_answers_render(spec, answers, &variants_mask, NULL) : -ENOMEM;

	if (!ret) {
		set = find_place(p);
		ret = set < 0 ? set : write_set(p, (unsigned)set, answers);
	}
	if (!ret)
		ret = send_listeners(p, pool, (unsigned)set);
	free(answers);
	return ret;
}
