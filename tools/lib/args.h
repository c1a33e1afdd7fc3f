/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the command lines of the tools have in common. */
#ifndef TOOLS_ARGS_H
#define TOOLS_ARGS_H

#include <stdint.h>

/* Says what is wrong with a value, names --help, and exits with status 2. */
__attribute__((noreturn)) void args_wrong(const char *what, const char *value);
/* A decimal number from min to max, or args_wrong(). */
uint64_t args_number(const char *text, uint64_t min, uint64_t max);
/* Lets the process open as many connections as the system allows. */
void args_many_files(void);

#endif
