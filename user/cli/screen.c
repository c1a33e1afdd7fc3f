// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The terminal of `spillway top`; see screen.h. */
#include <ncurses.h>
#include <string.h>

#include "cli/screen.h"
#include "cli/top.h"

static const struct {
	short colour; /* -1: the terminal's own */
	attr_t attributes, without_colours;
} styles[CV_STYLES] = {
	[CV_PLAIN] = {-1, 0, 0},
	[CV_DIM] = {-1, A_DIM, 0},
	[CV_BOLD] = {-1, A_BOLD, A_BOLD},
	[CV_GOOD] = {COLOR_GREEN, 0, 0},
	[CV_NOTE] = {COLOR_CYAN, A_BOLD, A_BOLD},
	[CV_WARN] = {COLOR_YELLOW, 0, A_BOLD},
	[CV_BAD] = {COLOR_RED, A_BOLD, A_BOLD},
	[CV_ALARM] = {COLOR_RED, A_BOLD | A_REVERSE, A_BOLD | A_REVERSE},
	[CV_TITLE] = {-1, A_BOLD, A_BOLD},
	[CV_CHOSEN] = {-1, A_BOLD | A_REVERSE, A_BOLD | A_REVERSE},
};

bool screen_open(void)
{
	if (!newterm(NULL, stdout, stdin))
		return false;
	cbreak();
	noecho();
	nonl();
	curs_set(0);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(50);
	if (has_colors() && start_color() == OK && use_default_colors() == OK)
		for (short i = 0; i < CV_STYLES; i++)
			init_pair((short)(i + 1), styles[i].colour, -1);
	return true;
}

void screen_close(void)
{
	endwin();
}

void screen_size(int *w, int *h)
{
	getmaxyx(stdscr, *h, *w);
}

static attr_t attributes_of(unsigned style)
{
	if (!has_colors())
		return styles[style].without_colours;
	return styles[style].attributes | (attr_t)COLOR_PAIR(style + 1);
}

void screen_show(const struct canvas *c)
{
	erase();
	for (int y = 0; y < c->h; y++)
		for (int x = 0; x < c->w; x++) {
			const struct cv_cell *cell = &c->cells[y * c->w + x];

			if (!cell->text[0]) /* the wide one before it has moved on by two */
				continue;
			attrset(attributes_of(cell->style));
			mvaddstr(y, x, cell->text);
		}
	refresh();
}

static uint32_t key_of(wint_t code)
{
	switch (code) {
	case KEY_UP: return TOP_KEY_UP;
	case KEY_DOWN: return TOP_KEY_DOWN;
	case KEY_PPAGE: return TOP_KEY_PAGE_UP;
	case KEY_NPAGE: return TOP_KEY_PAGE_DOWN;
	case KEY_HOME: return TOP_KEY_HOME;
	case KEY_END: return TOP_KEY_END;
	case KEY_ENTER: return TOP_KEY_ENTER;
	case KEY_BACKSPACE: return TOP_KEY_ERASE;
	default: return 0;
	}
}

bool screen_key(uint32_t *key)
{
	wint_t c;
	int kind;

	do {
		kind = get_wch(&c);
		if (kind == ERR)
			return false;
	} while (kind == KEY_CODE_YES && !key_of(c));
	if (kind == KEY_CODE_YES)
		*key = key_of(c);
	else
		*key = c == '\r' || c == '\n'	? TOP_KEY_ENTER
		       : c == 0x1b		? TOP_KEY_ESCAPE
		       : c == 0x7f || c == '\b' ? TOP_KEY_ERASE
						: c;
	return true;
}
