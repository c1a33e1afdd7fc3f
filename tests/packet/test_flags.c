// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// All 64 sets of TCP flags in every phase of a conversation, against one table.

#include "lib/talk.h"

#include <string.h>

enum phase { STRANGER, OPENED, ANSWERED, CLOSED, PHASES };

static const char *const phase_names[PHASES] = {"stranger", "opened", "answered", "closed"};

/* What an ACK, with or without PSH, means; then the same with FIN. */
static const struct {
	enum sw_reason bare, data, fin, data_fin;
} acks[PHASES] = {
	[STRANGER] = {SW_R_pass_unknown, SW_R_pass_unknown, SW_R_pass_unknown, SW_R_pass_unknown},
	[OPENED] = {SW_R_drop_handshake, SW_R_shed_saturated, SW_R_close_silent,
		    SW_R_shed_saturated},
	[ANSWERED] = {SW_R_drop_ack, SW_R_drain_data, SW_R_drain_fin, SW_R_drain_fin},
	[CLOSED] = {SW_R_drop_ack, SW_R_drain_data, SW_R_drain_fin, SW_R_drain_fin},
};

/*
 * One row for each of the eight sets of FIN SYN RST, one column for each of PSH ACK URG:
 *   r  reset, the kernel's business   f  no conversation has such flags
 *   S  a SYN, to be answered          a  an ACK    A  an ACK with FIN
 */
static const char *const verdicts[8] = {
	/*             -  P  A PA  U PU AU PAU */
	/* none */ "ffaaffff",
	/* FIN */ "ffAAffff",
	/* SYN */ "Sfffffff",
	/* SYN FIN */ "ffffffff",
	/* RST */ "rrrrrrrr",
	/* RST FIN */ "rrrrrrrr",
	/* RST SYN */ "rrrrrrrr",
	/* all */ "rrrrrrrr",
};

static enum sw_reason expected(enum phase phase, uint8_t flags, bool data)
{
	switch (verdicts[flags & 7][flags >> 3 & 7]) {
	case 'r': return SW_R_pass_reset;
	case 'S': return SW_R_syn_ack;
	case 'a': return data ? acks[phase].data : acks[phase].bare;
	case 'A': return data ? acks[phase].data_fin : acks[phase].fin;
	default: return SW_R_pass_flags;
	}
}

static void one(struct lane *l, enum phase phase, uint8_t flags, uint8_t ecn, bool data)
{
	static const uint32_t got[PHASES] = {0, 0, LENGTH, LENGTH + 1};
	const char *text = data ? REQUEST : NULL;
	struct result r;
	struct talk t;
	struct frame f;

	if (phase == STRANGER || phase == OPENED ? !talk_opened(&t, l) : !talk_shed(&t, l, &r))
		return;
	f = talk_segment(&t, 0, got[phase], flags | ecn, text, text ? strlen(text) : 0);
	if (phase == STRANGER)
		f.ack ^= 0x80000000;
	lane_trying(l, "%s, flags %02x, %s", phase_names[phase], flags | ecn,
		    data ? "with data" : "no data");
	talk_expect(&t, &f, expected(phase, flags, data), NULL);
}

static void all_sets(struct lane *l)
{
	for (enum phase phase = 0; phase < PHASES; phase++)
		for (unsigned flags = 0; flags < 64; flags++)
			for (unsigned data = 0; data < 2; data++) {
				one(l, phase, flags, 0, data);
				one(l, phase, flags, TCP_ECE | TCP_CWR, data);
			}
}

CHANCE_TEST(all_sets)

int main(void)
{
	const struct CMUnitTest tests[] = {packet_test(test_all_sets)};

	return world_run(tests);
}
