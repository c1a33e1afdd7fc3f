// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Clients that a packet socket plays; see clients.h. */
#include "clients.h"
#include "wire.h"

#include <string.h>

static struct wire wire;
static struct lane lane;

int clients_begin(void **state)
{
	counting_reset(state);
	lane = (struct lane){.w = counting->w, .family = 4, .id = ID_DEAF};
	lane_trying(&lane, "start");
	return wire_up(&wire, counting->w) ? 0 : -1;
}

int clients_end(void **state)
{
	wire_down(&wire);
	return counting_settle(state);
}

void employ(unsigned n, uint32_t cap, uint32_t half_open)
{
	count_pool(SW_SF_COUNT | SW_SF_ASSIGN, half_open, 60000);
	for (unsigned i = 0; i < n; i++) {
		count_worker(ID_FIRST + i, 4, PORT_FIRST + i, cap);
		worker_listen(i, 4, false);
	}
}

void client_send(const struct frame *f)
{
	static struct packet p;

	wire_send(&wire, f, &p, 0);
}

void client_new(struct client *c)
{
	counting->w->next_port++;
	c->syn = lane_frame(&lane, TCP_SYN);
	c->syn.dport = PORT_DEAF;
}

bool client_knock(struct client *c)
{
	static struct result r;

	if (!c->syn.sport) {
		client_new(c);
		frame_option_mss(&c->syn, 1460);
	}
	client_send(&c->syn);
	assert_true(wire_receive(&wire, c->syn.sport, &r, PATIENCE_MS));
	assert_null(reply_parse(r.bytes, r.len, &r.reply));
	c->seq = r.reply.seq;
	return r.reply.flags == (TCP_SYN | TCP_ACK);
}

unsigned clients_knock(struct client *c, unsigned n)
{
	unsigned in = 0;

	for (unsigned i = 0; i < n; i++) {
		memset(&c[in], 0, sizeof(*c));
		in += client_knock(&c[in]);
	}
	return in;
}

void client_reply(const struct client *c, uint8_t flags, const char *text)
{
	struct frame f = c->syn;

	f.seq++;
	f.ack = c->seq + 1;
	f.flags = flags;
	f.options_len = 0;
	f.payload = text;
	f.payload_len = strlen(text);
	client_send(&f);
}

void client_complete(const struct client *c)
{
	client_reply(c, TCP_ACK, "");
}

void client_abort(const struct client *c)
{
	client_reply(c, TCP_RST | TCP_ACK, "");
}
