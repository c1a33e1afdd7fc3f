// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Aligned columns on a terminal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

/* Columns that a UTF-8 text takes, taking every character for one wide. */
static size_t width(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

static void *grown(void *old, size_t size)
{
	void *p = realloc(old, size);

	if (!p)
		exit(cli_fail(CLI_FAILED, "no memory"));
	return p;
}

void cli_row(struct cli_table *t, const char *const *cells, size_t n)
{
	if (!t->columns)
		t->columns = n;
	if (t->rows == t->room) {
		t->room = t->room ? 2 * t->room : 16;
		t->cells = grown(t->cells, t->room * sizeof(*t->cells));
	}
	for (size_t i = 0; i < t->columns; i++) {
		const char *cell = i < n && cells[i][0] ? cells[i] : "-";

		t->cells[t->rows][i] = strcpy(grown(NULL, strlen(cell) + 1), cell);
	}
	t->rows++;
}

void cli_table_print(struct cli_table *t)
{
	size_t widths[CLI_COLUMNS] = {0};

	for (size_t r = 0; r < t->rows; r++)
		for (size_t c = 0; c < t->columns; c++)
			if (width(t->cells[r][c]) > widths[c])
				widths[c] = width(t->cells[r][c]);
	for (size_t r = 0; r < t->rows; r++) {
		for (size_t c = 0; c < t->columns; c++) {
			size_t pad = widths[c] - width(t->cells[r][c]);
			bool last = c + 1 == t->columns;

			printf("%s%*s", t->cells[r][c], last ? 0 : (int)pad + 2, "");
			free(t->cells[r][c]);
		}
		printf("\n");
	}
	free(t->cells);
	*t = (struct cli_table){0};
}
