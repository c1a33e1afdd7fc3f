/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The few fields of the kernel's sockets that are read, found by name when the program is loaded.
 */
#ifndef SPILLWAY_BPF_KERNEL_SOCK_H
#define SPILLWAY_BPF_KERNEL_SOCK_H

#define FIELDS __attribute__((preserve_access_index))

struct sk_buff;
struct rb_node;

struct sock {
	struct {
		struct sk_buff *tail;
	} sk_backlog;
	__u8 sk_shutdown;
} FIELDS;

struct inet_sock {
	struct sock sk;
} FIELDS;

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	struct {
		__u32 lrcvtime;
	} icsk_ack;
} FIELDS;

struct tcp_options_received {
	__u16 snd_wscale : 4, rcv_wscale : 4;
} FIELDS;

struct rb_root {
	struct rb_node *rb_node;
} FIELDS;

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 rcv_nxt, copied_seq, snd_nxt, snd_una, write_seq, rcv_wnd, lsndtime;
	__u64 bytes_received, bytes_sent;
	struct rb_root out_of_order_queue;
	struct tcp_options_received rx_opt;
} FIELDS;

struct sock_common {
	__u32 skc_rcv_wnd;
} FIELDS;

struct request_sock {
	struct sock_common __req_common;
} FIELDS;

struct inet_request_sock {
	struct request_sock req;
	__u16 snd_wscale : 4, rcv_wscale : 4;
} FIELDS;

struct tcp_request_sock {
	struct inet_request_sock req;
	__u32 rcv_nxt, snt_isn;
} FIELDS;

#endif
