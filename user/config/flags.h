/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The flags of spillwayd: what each is called, what its help says, what its value goes to. */
#ifndef SPILLWAY_CONFIG_FLAGS_H
#define SPILLWAY_CONFIG_FLAGS_H

#include <stddef.h>

#include "common/error.h"

/* What a flag's value goes to: text of the document, the pool, each worker or each listener; a list
 * of them; something of its own. */
enum sw_flag_target {
	SW_TO_DOC,
	SW_TO_POOL,
	SW_TO_WORKER,
	SW_TO_LISTENER,
	SW_TO_INTERFACES,
	SW_TO_GUARDS,
	SW_TO_SCRAPES,
	SW_TO_WORKERS,
	SW_TO_VIRTUALS,
	SW_TO_EXEMPTS,
	SW_TO_RETRY_AFTER,
	SW_TO_CGROUP,
	SW_TO_CLOSE_IDLE,
	SW_TO_FILE,
	SW_TO_CHECK,
	SW_TO_REMOVE,
	SW_TO_HELP,
	SW_TO_VERSION,
};

struct sw_flag {
	const char *name, *arg, *help; /* without `arg` it takes no value */
	const char *field;	       /* in the document, indices left out */
	enum sw_flag_target target;
	size_t offset; /* of the text in the first four targets */
};

#define SW_FLAGS 37
extern const struct sw_flag sw_flags[SW_FLAGS];

void sw_flags_help(void);
/* Fails with the flag that `arg` may have meant. */
int sw_flags_unknown(const char *arg, struct sw_error *err);

#endif
