// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* spillway: looks at and steers a running spillwayd. This file knows the commands and their
 * options; each command has its own file. */
#include <curl/curl.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "config/config.h"

#define WIDTH "  %-34s %s\n"

static const struct command {
	const char *name, *arguments, *summary;
	const char *takes; /* short options besides c, h and V */
	const char *examples;
	int (*run)(const struct cli_options *o, int argc, char **argv);
} commands[] = {
	{"status", "[--json] [--watch]", "pools, listeners and where the daemon is attached", "jw",
	 "  spillway status\n"
	 "  spillway status --watch            once a second, with rates\n"
	 "  spillway status --json | jq '.pools[] | {name, state}'\n",
	 cli_status},
	{"top", "[--once] [--interval S]", "pools and workers on one screen, keys to act on them",
	 "jnexy",
	 "  spillway top\n"
	 "  spillway top --interval 5          look every 5 seconds\n"
	 "  spillway top --once                one picture as plain text, for a ticket\n"
	 "  spillway top --once --width 200 --height 60\n"
	 "\n"
	 "Keys: up and down select, Enter folds and unfolds, s sorts, w lists all workers, / filters,\n"
	 "f forces the pool, d drains the pool or worker (both ask first), p pauses, ? helps, q quits.\n"
	 "Numbers are measured/limit; a bar is full at the limit.\n",
	 cli_top},
	{"explain", "[POOL] [--json]", "each threshold: measured value, limit, age, verdict", "jp",
	 "  spillway explain\n"
	 "  spillway explain qwen              one pool\n"
	 "\n"
	 "A threshold is BUSY or free; `inert` when the engine does not tell what it needs, so that\n"
	 "it cannot fire; `stale` when the value is too old to count.\n",
	 cli_explain},
	{"events", "[--pool POOL] [--type T,...]", "follow what happens, a line for each event",
	 "jpkl",
	 "  spillway events\n"
	 "  spillway events --type shed        which requests are shed, from which networks\n"
	 "  spillway events --type pool,worker --pool qwen\n"
	 "  spillway events --json --count 100 | jq -r .endpoint | sort | uniq -c\n"
	 "\n"
	 "Types: shed, at most 100 a second; dropped, how many more were shed; pool and worker, what\n"
	 "changed and why; missed, how many events came faster than they were read. It ends when the\n"
	 "daemon does, with exit code 3.\n",
	 cli_events},
	{"force", "saturated|open|auto", "set a pool's state by hand, for a time", "jpf",
	 "  spillway force saturated --pool qwen --for 30s\n"
	 "  spillway force open                all pools admit everything for 10 minutes\n"
	 "  spillway force auto                back to what is measured\n",
	 cli_force},
	{"drain", "POOL|WORKER [--wait]", "no new requests, let those under way end", "jpoat",
	 "  spillway drain qwen                a pool: new requests get 503\n"
	 "  spillway drain gpu3                a steered worker: new connections go to others\n"
	 "  spillway drain qwen gpu3 --wait --timeout 5m && systemctl stop vllm\n"
	 "  spillway drain gpu3 --off\n"
	 "  spillway drain on                  all pools\n"
	 "\n"
	 "A worker may be named alone when no other has its name. Connections are counted: idle\n"
	 "keep-alive ones too, until their router or client closes them.\n",
	 cli_drain},
	{"threshold", "[POOL [NAME=VALUE...]]", "show, set and clear thresholds", "jr",
	 "  spillway threshold                 of all pools, and whether file or api has set them\n"
	 "  spillway threshold qwen active_decode_blocks_threshold=0.9\n"
	 "  spillway threshold qwen active_decode_blocks=0.9 active_prefill_tokens=10000\n"
	 "  spillway threshold qwen --clear active_prefill_tokens\n"
	 "  spillway threshold qwen --clear    the configuration's hold again\n"
	 "\n"
	 "Names, with _threshold or without: active_decode_blocks_threshold (0.0 to 1.0),\n"
	 "active_prefill_tokens_threshold, active_prefill_tokens_threshold_frac. They are set for all\n"
	 "pools of the pool's model, hold at once, and survive a restart with state_file.\n",
	 cli_threshold},
	{"check", "[--interface IF] [--json]", "what this kernel and interface can do (no daemon)",
	 "ji",
	 "  spillway check\n"
	 "  spillway check --interface eth0    driver, MTU, native XDP, others' programs\n",
	 cli_check},
	{"reasons", "[--json]", "the names that counters go by (no daemon)", "j",
	 "  spillway reasons\n", cli_reasons},
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const struct option options[] = {
	{"control", required_argument, NULL, 'c'},
	{"url", required_argument, NULL, 'u'},
	{"token-file", required_argument, NULL, 'g'},
	{"interface", required_argument, NULL, 'i'},
	{"pool", required_argument, NULL, 'p'},
	{"for", required_argument, NULL, 'f'},
	{"off", no_argument, NULL, 'o'},
	{"wait", no_argument, NULL, 'a'},
	{"clear", no_argument, NULL, 'r'},
	{"timeout", required_argument, NULL, 't'},
	{"json", no_argument, NULL, 'j'},
	{"interval", required_argument, NULL, 'n'},
	{"once", no_argument, NULL, 'e'},
	{"type", required_argument, NULL, 'k'},
	{"count", required_argument, NULL, 'l'},
	{"width", required_argument, NULL, 'x'},
	{"height", required_argument, NULL, 'y'},
	{"watch", no_argument, NULL, 'w'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{0},
};

static const struct {
	char letter;
	const char *usage, *text;
} option_help[] = {
	{'p', "-p, --pool POOL", "only this pool (default: all)"},
	{'f', "-f, --for DURATION", "500ms, 30s, 5m, 1h (default 10m, at most 7 days)"},
	{'o', "    --off", "no longer"},
	{'a', "    --wait", "show progress until the last connection has ended"},
	{'t', "-t, --timeout DURATION", "wait no longer than this, then exit 4"},
	{'r', "    --clear [NAME]", "what the configuration says again, of one or of all"},
	{'i', "-i, --interface IF", "look at this interface too"},
	{'n', "-n, --interval DURATION", "look this often (default 1s, at least 100ms)"},
	{'e', "    --once", "print one picture as plain text"},
	{'k', "    --type T,...", "only these types of events (default: all)"},
	{'l', "    --count N", "end after so many events"},
	{'x', "    --width N", "of it; columns (default: the terminal's, or 80)"},
	{'y', "    --height N", "of it; lines (default: the terminal's, or 24)"},
	{'j', "-j, --json", "print JSON"},
	{'w', "-w, --watch", "print again every second"},
	{'c', "-c, --control SOCKET", "the daemon's socket (default " SW_DEFAULT_CONTROL ")"},
	{'u', "    --url http://HOST:PORT", "ask there instead, where control_tcp is configured"},
	{'g', "    --token-file FILE", "with --url: the token, as in control_token_file"},
};

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; name && i < N_COMMANDS; i++)
		if (!strcmp(name, commands[i].name))
			return &commands[i];
	return NULL;
}

static bool takes(const struct command *c, char letter)
{
	return strchr("cug", letter) || strchr(c->takes, letter);
}

static void print_help(const struct command *c)
{
	if (c) {
		printf("usage: spillway %s %s\n\n%s\n\n", c->name, c->arguments, c->summary);
		for (size_t i = 0; i < sizeof(option_help) / sizeof(option_help[0]); i++)
			if (takes(c, option_help[i].letter))
				printf(WIDTH, option_help[i].usage, option_help[i].text);
		printf("\nexamples:\n%s", c->examples);
		return;
	}
	printf("usage: spillway COMMAND [ARGUMENTS]\n\n"
	       "Looks at and steers a running spillwayd.\n\n");
	for (size_t i = 0; i < N_COMMANDS; i++) {
		char usage[64];

		snprintf(usage, sizeof(usage), "%s %s", commands[i].name, commands[i].arguments);
		printf(WIDTH, usage, commands[i].summary);
	}
	printf("\n" WIDTH, "-c, --control SOCKET",
	       "the daemon's socket (default " SW_DEFAULT_CONTROL ")");
	printf(WIDTH WIDTH, "    --url http://HOST:PORT", "the daemon over TCP",
	       "    --token-file FILE", "the token for that");
	printf(WIDTH WIDTH, "-h, --help", "this text, or a command's with examples",
	       "-V, --version", "the version");
	printf("\nexit codes: 0 done, 1 failed, 2 wrong usage, 3 the daemon is not reachable,\n"
	       "            4 drain --wait: time is up\n\n"
	       "examples:\n"
	       "  spillway status\n"
	       "  spillway top\n"
	       "  spillway explain qwen\n"
	       "  spillway force saturated --pool qwen --for 30s\n"
	       "  spillway check --interface eth0\n");
}

static int read_duration(const char *option, const char *text, uint64_t *ms)
{
	if (!cli_parse_duration(text, ms))
		return CLI_OK;
	return cli_fail(CLI_USAGE, "%s %s: not a duration; write 500ms, 30s, 5m or 1h", option,
			text);
}

static int read_interval(const char *text, uint64_t *ms)
{
	int code = read_duration("--interval", text, ms);

	if (!code && (*ms < 100 || *ms > 3600000))
		code = cli_fail(CLI_USAGE, "--interval %s: from 100ms to 1h", text);
	return code;
}

static int read_size(const char *option, const char *text, unsigned *size)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	if (strspn(text, "0123456789") != strlen(text) || *end || v < 1 || v > 10000)
		return cli_fail(CLI_USAGE, "%s %s: a number from 1 to 10000 is needed", option,
				text);
	*size = (unsigned)v;
	return CLI_OK;
}

static int read_url(const char *text, struct cli_options *o)
{
	o->url = text;
	return !strncmp(text, "http://", 7) || !strncmp(text, "https://", 8)
		       ? CLI_OK
		       : cli_fail(CLI_USAGE, "--url %s: not a URL; write http://HOST:PORT", text);
}

static int read_token(const char *file, struct cli_options *o)
{
	static char token[4096];
	FILE *f = fopen(file, "re");
	size_t n = f ? fread(token, 1, sizeof(token) - 1, f) : 0;
	bool failed = !f || ferror(f);
	int e = errno;

	if (f)
		fclose(f);
	if (failed)
		return cli_fail(CLI_FAILED, "--token-file %s: %s", file, strerror(e));
	token[n] = '\0';
	token[strcspn(token, "\r\n")] = '\0';
	o->token = token;
	return CLI_OK;
}

/* Which options were used, by letter. */
static uint32_t bit(int letter)
{
	return letter >= 'a' ? 1U << (letter - 'a') : 0;
}

static int read_options(int argc, char **argv, struct cli_options *o, uint32_t *seen)
{
	int letter, code = CLI_OK;

	while ((letter = getopt_long(argc, argv, "c:i:p:f:t:n:jwhV", options, NULL)) != -1) {
		*seen |= bit(letter);
		switch (letter) {
		case 'c': o->control = optarg; break;
		case 'u': code = read_url(optarg, o); break;
		case 'g': code = read_token(optarg, o); break;
		case 'i': o->interface = optarg; break;
		case 'p': o->pool = optarg; break;
		case 'j': o->json = true; break;
		case 'w': o->watch = true; break;
		case 'h': break;
		case 'V': printf("spillway %s\n", SW_VERSION); exit(CLI_OK);
		case 'o': o->off = true; break;
		case 'a': o->wait = true; break;
		case 'r': o->clear = true; break;
		case 'e': o->once = true; break;
		case 'n': code = read_interval(optarg, &o->interval_ms); break;
		case 'k': o->types = optarg; break;
		case 'l': code = read_size("--count", optarg, &o->count); break;
		case 'x': code = read_size("--width", optarg, &o->width); break;
		case 'y': code = read_size("--height", optarg, &o->height); break;
		case 'f': code = read_duration("--for", optarg, &o->for_ms); break;
		case 't': code = read_duration("--timeout", optarg, &o->timeout_ms); break;
		default: return cli_fail(CLI_USAGE, "see 'spillway --help'");
		}
		if (code)
			return code;
	}
	return CLI_OK;
}

static int check_options(const struct command *c, uint32_t seen)
{
	for (size_t i = 0; i < sizeof(option_help) / sizeof(option_help[0]); i++) {
		char letter = option_help[i].letter;

		if ((seen & bit(letter)) && !takes(c, letter))
			return cli_fail(
				CLI_USAGE, "%s does not take %s; see 'spillway %s --help'", c->name,
				option_help[i].usage + strspn(option_help[i].usage, " "), c->name);
	}
	return CLI_OK;
}

int main(int argc, char **argv)
{
	struct cli_options o = {.control = SW_DEFAULT_CONTROL};
	const struct command *c;
	uint32_t seen = 0;
	int code = read_options(argc, argv, &o, &seen);

	if (code)
		return code;
	argc -= optind;
	argv += optind;
	if (argc > 0 && !strcmp(argv[0], "help")) {
		seen |= bit('h');
		argc--;
		argv++;
	}
	c = find_command(argv[0]);
	if (argc > 0 && !c)
		return cli_fail(CLI_USAGE, "no command is named '%s'; see 'spillway --help'",
				argv[0]);
	if (seen & bit('h')) {
		print_help(c);
		return CLI_OK;
	}
	if (!c)
		return cli_fail(CLI_USAGE, "a command is needed; see 'spillway --help'");
	code = check_options(c, seen);
	if (code)
		return code;
	curl_global_init(CURL_GLOBAL_DEFAULT);
	code = c->run(&o, argc - 1, argv + 1);
	curl_global_cleanup();
	return code;
}
