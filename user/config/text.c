// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Listeners, addresses and CIDRs from text and back. Which field they are in is the caller's
 * matter. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/build.h"

static const uint8_t any_addr[16];
static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

/* Parses an IPv4 or IPv6 address; IPv4 becomes ::ffff:a.b.c.d. Returns AF_INET, AF_INET6 or 0. */
static int parse_addr(const char *text, uint8_t addr[16])
{
	memcpy(addr, mapped, sizeof(mapped));
	if (inet_pton(AF_INET, text, addr + 12) == 1)
		return AF_INET;
	if (inet_pton(AF_INET6, text, addr) != 1)
		return 0;
	return memcmp(addr, mapped, sizeof(mapped)) ? AF_INET6 : AF_INET;
}

static bool parse_digits(const char *text, unsigned long max, unsigned long *out)
{
	size_t length = strspn(text, "0123456789");

	if (!length || text[length])
		return false;
	*out = strtoul(text, NULL, 10);
	return *out <= max;
}

int sw_parse_listener(const char *text, uint8_t addr[16], bool *v4, bool *v6, uint16_t *port,
		      struct sw_error *err)
{
	const char *colon = strrchr(text, ':');
	const char *digits = colon ? colon + 1 : text;
	uint8_t parsed[16] = {0};
	int family = AF_UNSPEC;
	unsigned long number;
	char host[64];

	if (!parse_digits(digits, 65535, &number) || !number)
		goto bad;
	if (colon && strncmp(text, "*:", 2)) {
		size_t length = (size_t)(colon - text);
		bool bracket = text[0] == '[' && length > 2 && colon[-1] == ']';

		if (length >= sizeof(host))
			goto bad;
		snprintf(host, sizeof(host), "%.*s", (int)length - 2 * bracket, text + bracket);
		family = parse_addr(host, parsed);
		if (!family || bracket != !!strchr(host, ':'))
			goto bad;
	}
	*v4 = family != AF_INET6;
	*v6 = family != AF_INET;
	if (family == AF_INET && !memcmp(parsed + 12, any_addr, 4))
		memset(parsed, 0, sizeof(parsed)); /* 0.0.0.0 */
	if (!memcmp(parsed, any_addr, 16) && family == AF_INET6)
		*v4 = true; /* [::] takes IPv4 too */
	memcpy(addr, parsed, 16);
	*port = (uint16_t)number;
	return 0;
bad:
	return sw_fail(
		err, -EINVAL,
		"'%.100s' is not a listener; allowed: PORT, ADDR:PORT or [ADDR6]:PORT, port 1 "
		"to 65535",
		text);
}

bool sw_is_ipv4(const uint8_t addr[16])
{
	return !memcmp(addr, mapped, sizeof(mapped));
}

int sw_parse_endpoint(const char *text, struct sw_endpoint *out, struct sw_error *err)
{
	bool v4, v6;

	if (!sw_parse_listener(text, out->addr, &v4, &v6, &out->port, NULL) &&
	    memcmp(out->addr, any_addr, sizeof(any_addr)))
		return 0;
	return sw_fail(err, -EINVAL,
		       "'%.100s' is not an address and port; allowed: ADDR:PORT or [ADDR6]:PORT, "
		       "one address and no host name",
		       text);
}

static void print_cidr(const struct sw_cidr *c, int family, char *out, size_t size)
{
	char addr[INET6_ADDRSTRLEN];

	inet_ntop(family, c->addr + (family == AF_INET ? 12 : 0), addr, sizeof(addr));
	snprintf(out, size, "%s/%d", addr, c->bits - (family == AF_INET ? 96 : 0));
}

/* Clears the host bits; true when there were any. */
static bool mask(struct sw_cidr *c)
{
	uint8_t before[16];

	memcpy(before, c->addr, 16);
	for (unsigned bit = c->bits; bit < 128; bit++)
		c->addr[bit / 8] &= (uint8_t)~(0x80 >> bit % 8);
	return memcmp(before, c->addr, 16);
}

int sw_parse_cidr(const char *text, struct sw_cidr *out, struct sw_error *err)
{
	const char *slash = strchr(text, '/');
	size_t length = slash ? (size_t)(slash - text) : strlen(text);
	unsigned long bits = 128, width;
	struct sw_cidr cidr;
	char host[64];
	int family;

	if (length >= sizeof(host))
		goto bad;
	snprintf(host, sizeof(host), "%.*s", (int)length, text);
	family = parse_addr(host, cidr.addr);
	width = strchr(host, ':') ? 128 : 32;
	if (!family || (slash && !parse_digits(slash + 1, width, &bits)))
		goto bad;
	cidr.bits = (uint8_t)(slash ? bits + 128 - width : 128);
	if (family == AF_INET && cidr.bits < 96)
		family = AF_INET6;
	if (mask(&cidr)) {
		char fixed[64];

		print_cidr(&cidr, family, fixed, sizeof(fixed));
		return sw_fail(err, -EINVAL, "'%s' has host bits set; allowed: %s", text, fixed);
	}
	*out = cidr;
	return 0;
bad:
	return sw_fail(err, -EINVAL,
		       "'%.100s' is not a CIDR; allowed: ADDR or ADDR/BITS, such as 10.0.0.0/8 or "
		       "2001:db8::/32",
		       text);
}

void sw_format_listener(const struct sw_listener_conf *l, char *out, size_t size)
{
	char addr[INET6_ADDRSTRLEN];

	if (l->v4 && l->v6)
		snprintf(out, size, "*:%u", l->port);
	else if (l->v4)
		snprintf(out, size, "%s:%u", inet_ntop(AF_INET, l->addr + 12, addr, sizeof(addr)),
			 l->port);
	else
		snprintf(out, size, "[%s]:%u", inet_ntop(AF_INET6, l->addr, addr, sizeof(addr)),
			 l->port);
}
