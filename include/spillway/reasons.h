/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Why a packet got its verdict: one name for each way out of the fast path. The kernel programs
 * count by these, every tool prints these names, and docs/maps.md explains them.
 *
 * A number is never used twice, even when a reason goes away: dashboards outlive releases.
 * X(number, name, class, text); class is what happened to the packet:
 *   PASS  it went on to the stack untouched      DROP  it ended here, nothing was sent
 *   REPLY it was turned into an answer           GIVE  the connection was handed over to the stack
 */
#ifndef SPILLWAY_REASONS_H
#define SPILLWAY_REASONS_H

#define SW_REASONS(X)                                                                              \
	X(0, pass_other, PASS, "not a packet to a guarded listener")                               \
	X(1, pass_malformed, PASS, "a length in the headers is wrong")                             \
	X(2, pass_fragment, PASS, "IP fragment")                                                   \
	X(3, pass_exthdr, PASS, "IPv6 extension header")                                           \
	X(4, pass_open, PASS, "the pool is open")                                                  \
	X(5, pass_expired, PASS, "the daemon's heartbeat is overdue")                              \
	X(6, pass_exempt, PASS, "the source is exempt")                                            \
	X(7, pass_flags, PASS, "TCP flags that no conversation of ours has")                       \
	X(8, pass_unknown, PASS, "no cookie of ours in the acknowledgement")                       \
	X(9, pass_socket, PASS, "the kernel has a socket for this connection")                     \
	X(10, pass_no_listener, PASS, "no socket listens here, so nothing could be handed over")   \
	X(11, pass_checksum, PASS, "corrupt checksum")                                             \
	X(12, pass_to_tc, PASS, "XDP leaves this packet to the TC program")                        \
	X(13, pass_reset, PASS, "RST")                                                             \
	X(14, pass_options, PASS, "SYN whose options could not be kept on hand-over")              \
	X(15, pass_observe, PASS, "observe: a SYN that would have been answered")                  \
	X(16, would_shed, PASS, "observe: a request that would have been shed")                    \
	X(17, syn_ack, REPLY, "SYN answered with a cookie")                                        \
	X(18, shed_saturated, REPLY, "request shed: every worker is busy")                         \
	X(19, shed_no_slots, REPLY, "request shed: no worker has a free slot")                     \
	X(20, shed_draining, REPLY, "request shed: the pool is draining")                          \
	X(21, shed_unavailable, REPLY, "request shed: the pool has no worker")                     \
	X(22, shed_no_handover, REPLY, "request answered because the kernel refused to take it")   \
	X(23, shed_again, REPLY, "the same answer to a repeated request")                          \
	X(24, drain_data, REPLY, "body after the answer acknowledged")                             \
	X(25, drain_fin, REPLY, "FIN after the answer acknowledged")                               \
	X(26, close_silent, REPLY, "connection closed by a client that asked nothing")             \
	X(27, drop_handshake, DROP, "ACK that completes our handshake")                            \
	X(28, drop_ack, DROP, "ACK of our answer")                                                 \
	X(29, drop_order, DROP, "data ahead of the request; the client sends it again in order")   \
	X(30, drop_flood, DROP, "SYN over the source prefix's rate")                               \
	X(31, drop_failed, DROP, "the answer could not be built or sent")                          \
	X(32, handover_path, GIVE, "a path that must not be shed")                                 \
	X(33, handover_open, GIVE, "the pool has room again")                                      \
	X(34, handover_exempt, GIVE, "the source is exempt")                                       \
	X(35, handover_unread, GIVE, "the request could not be read in its first segment")         \
	X(36, pass_not_local, PASS, "the destination is not an address of this host")              \
	X(37, pass_metered, PASS, "the pool has a free slot")                                      \
	X(38, keep_translated, PASS, "numbers translated, after a request was shed here")          \
	X(39, keep_followed, PASS, "followed: not the start of a request that could be shed")      \
	X(40, keep_unsynced, PASS,                                                                 \
	  "a connection that was there before: the first request, or the client pipelines")        \
	X(41, keep_pipelined, PASS, "more than one request, or one whose head goes on")            \
	X(42, keep_busy, PASS, "the socket has something unread, unsent or unacknowledged")        \
	X(43, keep_alone, PASS, "not understood: the connection is left alone for good")           \
	X(44, shed_no_answer, REPLY, "reset: the answer to send again has changed its length")     \
	X(45, keep_full, PASS, "no room for one more translated connection")                       \
	X(46, drop_raced, DROP, "two packets of a connection at once; TCP sends it again")         \
	X(47, pass_new, PASS, "this listener's new connections are left to the stack")             \
	X(48, keep_credit, PASS, "a request on an established connection took a credit")           \
	X(49, alone_protocol, PASS, "left alone: not HTTP/1.1, or a method such as CONNECT")       \
	X(50, alone_close, PASS, "left alone: it is to close, or to be upgraded")                  \
	X(51, alone_framing, PASS, "left alone: peers may differ about its framing")               \
	X(52, alone_response, PASS, "left alone: a response early, unasked or without an end")     \
	X(53, alone_gap, PASS, "left alone: bytes of it came another way")                         \
	X(54, keep_path, PASS, "a method or path that must not be shed")                           \
	X(55, keep_version, PASS, "a request that does not speak HTTP/1.1")                        \
	X(56, keep_options, PASS, "TCP options that may count or sign the stream's bytes")         \
	X(57, keep_window, PASS, "the client has no room for an answer")                           \
	X(58, keep_expect, PASS, "HEAD, or a request that waits for 100-continue")

enum sw_reason {
#define X(n, name, class, text) SW_R_##name = n,
	SW_REASONS(X)
#undef X
		SW_R_COUNT
};

#endif
