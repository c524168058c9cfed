/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the kernel's TCP does to its window: one record for every segment that a sender of the run receives, for every
 * change of its congestion state, and for every segment that it sends again.
 *
 * Raw tracepoints with the kernel's types (tp_btf) say so, where the kernel has come to it: `tcp_probe` before a segment is
 * handled, `tcp_cong_state_set` before the state changes, `tcp_retransmit_skb` once a segment has left again. `tcp_probe` is
 * silent once the sender has closed its side; then a filter of the socket's own (socket(7), SO_ATTACH_BPF) sees each segment.
 *
 * Nothing is told of sockets of others: a socket is the run's if its network namespace and a port of it are.
 */
typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef __u64 u64;

#include <bpf/bpf_helpers.h>

#define __uint(name, value) int (*name)[value]
#define __type(name, kind) typeof(kind) *name

/* bpf-helpers(7), by number. */
static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_skb_load_bytes)(const void *skb, __u32 offset, void *to, __u32 len) = (void *)26;
static __u64 (*const bpf_get_socket_cookie)(void *of) = (void *)46;
static void *(*const bpf_sk_storage_get)(void *map, void *sk, void *value, __u64 flags) = (void *)107;
static long (*const bpf_probe_read_kernel)(void *to, __u32 len, const void *from) = (void *)113;
static void *(*const bpf_ringbuf_reserve)(void *ring, __u64 len, __u64 flags) = (void *)131;
static void (*const bpf_ringbuf_submit)(void *data, __u64 flags) = (void *)132;
static void *(*const bpf_skc_to_tcp_sock)(void *sk) = (void *)137;

enum { MAP_HASH = 1, MAP_ARRAY = 2, MAP_SK_STORAGE = 24, MAP_RINGBUF = 27 };
enum { NO_PREALLOC = 1, STORAGE_CREATE = 1, NO_WAKEUP = 1 };
/* The first of the states in which an end of the connection is closed; TCP_CA_Loss. */
enum { FIN_WAIT_1 = 4, LOSS = 4 };

char _license[] SEC("license") = "Dual BSD/GPL";

/* The kernel's structures, as far as they are looked at; its own type information says where the fields are. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct net {
	__u64 net_cookie;
};
typedef struct {
	struct net *net;
} possible_net_t;
struct sock_common {
	__u16 skc_dport;
	__u16 skc_num;
	volatile unsigned char skc_state;
	possible_net_t skc_net;
};
struct sock {
	struct sock_common __sk_common;
};
struct inet_sock {
	struct sock sk;
};
struct tcp_congestion_ops {
	char name[16];
};
struct inet_connection_sock {
	struct inet_sock icsk_inet;
	const struct tcp_congestion_ops *icsk_ca_ops;
	__u8 icsk_ca_state : 5;
};
struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 snd_cwnd;
	__u32 snd_ssthresh;
	__u32 prior_cwnd;
	__u32 srtt_us;
	__u32 rttvar_us;
	__u32 mss_cache;
	__u32 packets_out;
	__u32 sacked_out;
	__u32 lost_out;
	__u32 retrans_out;
	__u32 snd_una;
	__u32 snd_nxt;
	__u32 total_retrans;
};
struct tcp_skb_cb {
	__u32 seq;
	__u32 end_seq;
	__u32 ack_seq;
};
struct sk_buff {
	char cb[48];
};
#pragma clang attribute pop

/* What a socket filter is given (linux/bpf.h): of it only the socket is asked for. */
struct __sk_buff {
	__u32 words[42];
	void *sk;
};

enum kind { SEGMENT = 0, STATE = 1, AGAIN = 2 };

/* crates/bpf/src/trace/record.rs reads these. */
struct record {
	/* CLOCK_MONOTONIC, in nanoseconds. */
	__u64 time;
	/* Of the socket. */
	__u64 cookie;
	/* Of the congestion control. */
	char control[16];
	__u32 flow;
	__u8 kind;
	/* TCP_CA_…, and what it becomes. */
	__u8 ca_state;
	__u8 ca_next;
	/* TCP_ESTABLISHED, … */
	__u8 state;
	/* Windows in segments: now, at the last segment received or change of state, before the last reduction. */
	__u32 cwnd;
	__u32 cwnd_before;
	__u32 prior_cwnd;
	__u32 ssthresh;
	/* In units of 1/8 and 1/4 of a microsecond. */
	__u32 srtt;
	__u32 rttvar;
	/* Segments. */
	__u32 packets_out;
	__u32 sacked_out;
	__u32 lost_out;
	__u32 retrans_out;
	__u32 total_retrans;
	/* Octets. */
	__u32 mss;
	__u32 snd_una;
	__u32 snd_nxt;
	/* What a segment received acknowledges; of one that is sent again where it begins and ends. */
	__u32 first;
	__u32 end;
};

/* A sender of the run: its namespace, and the port at which the flow's passive end listens, of the peer or its own. */
struct place {
	__u64 namespace;
	__u32 port;
	__u32 is_own;
};

struct remembered {
	__u64 cookie;
	__u32 flow;
	__u32 cwnd;
	/* The state has changed: the next segment is told whatever else is. */
	__u32 tell;
	__u32 unused;
};

struct {
	__uint(type, MAP_HASH);
	__uint(max_entries, 1);
	__type(key, struct place);
	__type(value, __u32);
} flows SEC(".maps");

struct {
	__uint(type, MAP_SK_STORAGE);
	__uint(map_flags, NO_PREALLOC);
	__type(key, int);
	__type(value, struct remembered);
} sockets SEC(".maps");

struct {
	__uint(type, MAP_RINGBUF);
	__uint(max_entries, 1 << 18);
} records SEC(".maps");

/* Records for which there was no room. */
struct {
	__uint(type, MAP_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} lost SEC(".maps");

/*
 * EVERY_SEGMENT: every segment received is told, and not those alone that follow a change of state. TELLS_ERRORS: this
 * kernel's `tcp_retransmit_skb` has a third argument, which is not zero where the segment did not leave (Linux 6.18 has
 * it); without it kernels keep silent of those. Branches that a constant rules out are not looked at by the verifier.
 */
enum { EVERY_SEGMENT = 1, TELLS_ERRORS = 2 };
const volatile __u32 settings = EVERY_SEGMENT;

/* A bit field, wherever the running kernel has it: clang's own relocations say where. */
static __always_inline __u8 ca_state_of(const struct inet_connection_sock *icsk)
{
	const __u8 *byte = (const __u8 *)icsk + __builtin_preserve_field_info(icsk->icsk_ca_state, 0);
	__u64 word = *byte;

	word <<= __builtin_preserve_field_info(icsk->icsk_ca_state, 4);
	return word >> __builtin_preserve_field_info(icsk->icsk_ca_state, 5);
}

static __always_inline const struct tcp_skb_cb *numbers_of(__u64 skb)
{
	return (const void *)((const struct sk_buff *)skb)->cb;
}

static __always_inline __u32 *flow_of(const struct sock *sk)
{
	struct place place = { .namespace = sk->__sk_common.skc_net.net->net_cookie };
	__u32 *flow;

	place.port = __builtin_bswap16(sk->__sk_common.skc_dport);
	flow = bpf_map_lookup_elem(&flows, &place);
	if (flow)
		return flow;
	place.port = sk->__sk_common.skc_num;
	place.is_own = 1;
	return bpf_map_lookup_elem(&flows, &place);
}

static __always_inline struct remembered *remembered_of(struct sock *sk)
{
	struct remembered *socket = bpf_sk_storage_get(&sockets, sk, NULL, 0);
	struct remembered first = {};
	__u32 *flow;

	if (socket)
		return socket;
	flow = flow_of(sk);
	if (!flow)
		return NULL;
	first.flow = *flow;
	first.cookie = bpf_get_socket_cookie(sk);
	return bpf_sk_storage_get(&sockets, sk, &first, STORAGE_CREATE);
}

static __always_inline struct record *record_of(const struct tcp_sock *tp, const struct remembered *socket, enum kind kind)
{
	const struct inet_connection_sock *icsk = &tp->inet_conn;
	struct record *record = bpf_ringbuf_reserve(&records, sizeof(*record), 0);
	__u32 zero = 0;
	__u64 *missed;

	if (!record) {
		missed = bpf_map_lookup_elem(&lost, &zero);
		if (missed)
			__sync_fetch_and_add(missed, 1);
		return NULL;
	}
	record->time = bpf_ktime_get_ns();
	bpf_probe_read_kernel(record->control, sizeof(record->control), icsk->icsk_ca_ops->name);
	record->flow = socket->flow;
	record->cookie = socket->cookie;
	record->cwnd_before = socket->cwnd;
	record->kind = kind;
	record->ca_state = ca_state_of(icsk);
	record->ca_next = record->ca_state;
	record->state = icsk->icsk_inet.sk.__sk_common.skc_state;
	record->cwnd = tp->snd_cwnd;
	record->prior_cwnd = tp->prior_cwnd;
	record->ssthresh = tp->snd_ssthresh;
	record->srtt = tp->srtt_us;
	record->rttvar = tp->rttvar_us;
	record->packets_out = tp->packets_out;
	record->sacked_out = tp->sacked_out;
	record->lost_out = tp->lost_out;
	record->retrans_out = tp->retrans_out;
	record->total_retrans = tp->total_retrans;
	record->mss = tp->mss_cache;
	record->snd_una = tp->snd_una;
	record->snd_nxt = tp->snd_nxt;
	return record;
}

SEC("tp_btf/tcp_probe")
int on_segment(__u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	const struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct remembered *socket = remembered_of(sk);
	struct record *record;

	if (!socket || !tp)
		return 0;
	if ((settings & EVERY_SEGMENT) || socket->tell) {
		record = record_of(tp, socket, SEGMENT);
		if (record) {
			record->first = 0;
			bpf_probe_read_kernel(&record->first, sizeof(__u32), &numbers_of(ctx[1])->ack_seq);
			record->end = record->first;
			bpf_ringbuf_submit(record, NO_WAKEUP);
		}
		socket->tell = 0;
	}
	socket->cwnd = tp->snd_cwnd;
	return 0;
}

SEC("tp_btf/tcp_cong_state_set")
int on_state(__u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	const struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	__u8 next = ctx[1];
	struct remembered *socket;
	struct record *record;

	/* A timer that expires again begins the same state anew. */
	if (!tp || (ca_state_of(&tp->inet_conn) == next && next != LOSS))
		return 0;
	socket = remembered_of(sk);
	if (!socket)
		return 0;
	record = record_of(tp, socket, STATE);
	if (record) {
		record->ca_next = next;
		record->first = tp->snd_una;
		record->end = tp->snd_nxt;
		bpf_ringbuf_submit(record, NO_WAKEUP);
	}
	/* A timer may change it again before anything is received. */
	socket->cwnd = tp->snd_cwnd;
	socket->tell = 1;
	return 0;
}

SEC("tp_btf/tcp_retransmit_skb")
int on_again(__u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	const struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct remembered *socket;
	struct record *record;

	if (!tp || ((settings & TELLS_ERRORS) && (int)ctx[2]))
		return 0;
	socket = remembered_of(sk);
	if (!socket)
		return 0;
	record = record_of(tp, socket, AGAIN);
	if (record) {
		record->first = 0;
		record->end = 0;
		bpf_probe_read_kernel(&record->first, sizeof(__u32), &numbers_of(ctx[1])->seq);
		bpf_probe_read_kernel(&record->end, sizeof(__u32), &numbers_of(ctx[1])->end_seq);
		bpf_ringbuf_submit(record, NO_WAKEUP);
	}
	return 0;
}

/* Lets everything pass. Where a reader has the socket, the segment is handled a little later than it is told. */
SEC("socket")
int on_closing(struct __sk_buff *skb)
{
	struct remembered socket = {};
	const struct tcp_sock *tp;
	struct record *record;
	__u32 *flow, ack = 0;

	if (!(settings & EVERY_SEGMENT) || !skb->sk)
		return -1;
	tp = bpf_skc_to_tcp_sock(skb->sk);
	if (!tp || tp->inet_conn.icsk_inet.sk.__sk_common.skc_state < FIN_WAIT_1)
		return -1;
	flow = flow_of((const struct sock *)tp);
	/* The acknowledgment number of TCP's header (RFC 9293 §3.1). */
	if (!flow || bpf_skb_load_bytes(skb, 8, &ack, sizeof(ack)))
		return -1;
	socket.flow = *flow;
	socket.cookie = bpf_get_socket_cookie(skb);
	socket.cwnd = tp->snd_cwnd;
	record = record_of(tp, &socket, SEGMENT);
	if (record) {
		record->first = __builtin_bswap32(ack);
		record->end = record->first;
		bpf_ringbuf_submit(record, NO_WAKEUP);
	}
	return -1;
}
