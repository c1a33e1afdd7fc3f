// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A rectangle of character cells; see canvas.h. */
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "cli/canvas.h"

bool cv_start(struct canvas *c, int w, int h, bool ascii)
{
	struct cv_cell *cells = realloc(c->cells, (size_t)w * (size_t)h * sizeof(*cells));

	if (!cells) {
		cv_free(c);
		return false;
	}
	*c = (struct canvas){.w = w, .h = h, .bottom = h, .ascii = ascii, .cells = cells};
	cv_clear(c, 0, 0, w, h);
	return true;
}

void cv_free(struct canvas *c)
{
	free(c->cells);
	*c = (struct canvas){0};
}

/* ---- texts ------------------------------------------------------------------------------- */

struct glyph {
	char text[7];
	int width; /* 0: combines with the one before, which is not shown */
};

/* Takes one character off `text` and returns what is after it. */
static const char *next_glyph(const struct canvas *c, const char *text, struct glyph *g)
{
	mbstate_t state = {0};
	wchar_t wide;
	size_t n = c->ascii ? 1 : mbrtowc(&wide, text, sizeof(g->text) - 1, &state);
	int width = 1;

	*g = (struct glyph){"?", 1};
	if (c->ascii) {
		/* One "?" for a character, which in UTF-8 is many bytes */
		if (*text >= ' ' && *text <= '~')
			g->text[0] = *text;
		while (((unsigned char)text[n] & 0xc0) == 0x80)
			n++;
		return text + n;
	}
	if (n == 0 || n > sizeof(g->text) - 1)
		return text + 1;
	width = wcwidth(wide);
	if (width >= 0) {
		memcpy(g->text, text, n);
		g->width = width;
	}
	return text + n;
}

int cv_width(const struct canvas *c, const char *text)
{
	struct glyph g;
	int width = 0;

	while (*text) {
		text = next_glyph(c, text, &g);
		width += g.width;
	}
	return width;
}

static void put(struct canvas *c, int x, int y, enum cv_style style, const char *glyph)
{
	struct cv_cell *cell;

	if (x < 0 || x >= c->w || y < c->top || y >= c->bottom || y < 0 || y >= c->h)
		return;
	cell = &c->cells[y * c->w + x];
	snprintf(cell->text, sizeof(cell->text), "%s", glyph);
	cell->style = (uint8_t)style;
}

int cv_text(struct canvas *c, int x, int y, int room, enum cv_style style, const char *text)
{
	const int length = cv_width(c, text);
	const int end = length > room ? room - 1 : room; /* the ellipsis has a column of its own */
	int at = 0;

	if (x + room > c->w)
		return x < c->w ? cv_text(c, x, y, c->w - x, style, text) : 0;
	if (room <= 0)
		return 0;
	while (*text) {
		struct glyph g;

		text = next_glyph(c, text, &g);
		if (at + g.width > end)
			break;
		if (!g.width)
			continue;
		put(c, x + at, y, style, g.text);
		if (g.width == 2)
			put(c, x + at + 1, y, style, "");
		at += g.width;
	}
	if (length > room)
		put(c, x + at++, y, style, c->ascii ? "~" : "…");
	return at;
}

void cv_right(struct canvas *c, int x, int y, int room, enum cv_style style, const char *text)
{
	int pad = room - cv_width(c, text);

	if (pad < 0)
		pad = 0;
	cv_text(c, x + pad, y, room - pad, style, text);
}

/* ---- bars and lines ---------------------------------------------------------------------- */

void cv_bar(struct canvas *c, int x, int y, int room, enum cv_style style, double share)
{
	static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	const double most = share < 0 ? 0 : share > 1 ? 1 : share;
	/* Full only at the limit: 99.9 % must not look like it */
	const int n = (int)(most * 8 * room);

	for (int i = 0; i < room; i++) {
		if (i < n / 8)
			put(c, x + i, y, style, c->ascii ? "#" : "█");
		else if (i == n / 8 && n % 8 && !c->ascii)
			put(c, x + i, y, style, eighths[n % 8]);
		else
			put(c, x + i, y, CV_DIM, c->ascii ? "." : "·");
	}
}

static double mean(const double *values, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += values[i];
	return n ? sum / (double)n : 0;
}

void cv_spark(struct canvas *c, int x, int y, int room, enum cv_style style, const double *values,
	      size_t n, size_t per)
{
	static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const signs[] = {"_", ".", ":", "-", "=", "+", "*", "#"};
	const size_t columns = n / per < (size_t)room ? n / per : (size_t)room;
	const double *first = values + n - columns * per;
	double highest = 0;

	for (size_t i = 0; i < columns; i++)
		if (mean(first + i * per, per) > highest)
			highest = mean(first + i * per, per);
	for (size_t i = 0; i < columns; i++) {
		double v = mean(first + i * per, per);
		/* Only what is 0 is as low as 0 */
		int level = v > 0 ? 1 + (int)(v / highest * 6) : 0;

		put(c, x + room - (int)columns + (int)i, y, level ? style : CV_DIM,
		    c->ascii ? signs[level] : blocks[level]);
	}
}

void cv_rule(struct canvas *c, int x, int y, int room, enum cv_style style)
{
	for (int i = 0; i < room; i++)
		put(c, x + i, y, style, c->ascii ? "-" : "─");
}

void cv_clear(struct canvas *c, int x, int y, int w, int h)
{
	for (int j = y; j < y + h; j++)
		for (int i = x; i < x + w; i++)
			put(c, i, j, CV_PLAIN, " ");
}

void cv_print(const struct canvas *c, FILE *out)
{
	for (int y = 0; y < c->h; y++) {
		const struct cv_cell *row = &c->cells[y * c->w];
		int end = c->w;

		while (end > 0 && !strcmp(row[end - 1].text, " "))
			end--;
		for (int x = 0; x < end; x++)
			fputs(row[x].text, out);
		fputc('\n', out);
	}
}
