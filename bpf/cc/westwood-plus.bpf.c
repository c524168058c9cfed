/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Westwood+ (Grieco and Mascolo, CCR 2004, §2): Reno that measures the rate at which its data is
 * acknowledged, and reduces to what the path carried at that rate without a queue.
 *
 * Its twin in the simulator is `westwood-plus` with a slow start without a limit and `reduce_from =
 * "cwnd"` in a stack that counts its windows in segments. The estimate is whole octets per second, and a
 * sample's octets are packets of a full segment.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "tcp_cc.h"

char _license[] SEC("license") = "Dual BSD/GPL";

struct westwood {
	/* Octets per second; 0 before the first sample. */
	u64 estimate;
	/* The round trip under way: its beginning, in nanoseconds, and what had been delivered then. */
	u64 began;
	u32 delivered;
	/* It ends when this is acknowledged. */
	u32 round_end;
	/* The smallest, in microseconds; 0 before the first. */
	u32 min_rtt;
	/* What a recovery leaves of the window, where that is less than ssthresh; 0 outside of one. */
	u32 left;
	/* Before the last reduction. */
	u32 cwnd_before;
	u32 count_before;
	u32 ssthresh_before;
	u8 has_begun;
};

_Static_assert(sizeof(struct westwood) <= 104, "icsk_ca_priv");

SEC("struct_ops")
void BPF_PROG(westwood_init, struct sock *sk)
{
	struct westwood *westwood = inet_csk_ca(sk);

	westwood->estimate = 0;
	westwood->round_end = tcp_sk(sk)->snd_una;
	westwood->min_rtt = 0;
	westwood->left = 0;
	westwood->cwnd_before = 0;
	westwood->has_begun = 0;
}

/* A sample at the end of each round trip. */
SEC("struct_ops")
void BPF_PROG(westwood_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct westwood *westwood = inet_csk_ca(sk);
	u32 delivered = tp->delivered;
	u64 now, interval, octets, rate;
	bool over = after(tp->snd_una, westwood->round_end);

	if (sample->rtt_us > 0 && (!westwood->min_rtt || (u32)sample->rtt_us < westwood->min_rtt))
		westwood->min_rtt = sample->rtt_us;
	if (over)
		westwood->round_end = tp->snd_nxt;
	if (!over && westwood->has_begun)
		return;
	now = bpf_ktime_get_ns();
	interval = now - westwood->began;
	octets = (u64)(delivered - westwood->delivered) * tp->mss_cache;
	westwood->began = now;
	westwood->delivered = delivered;
	if (!westwood->has_begun) {
		westwood->has_begun = 1;
		return;
	}
	if (!interval)
		return;
	/* So that the product below fits. */
	if (octets >> 34)
		octets = 1ULL << 34;
	rate = octets * 1000000000 / interval;
	/* Equation 1, with 7/8. */
	westwood->estimate = westwood->estimate ? (7 * westwood->estimate + rate) / 8 : rate;
}

/* BWE · RTT_min, two segments at least; half the window before the first sample. */
SEC("struct_ops")
u32 BPF_PROG(westwood_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct westwood *westwood = inet_csk_ca(sk);
	u32 cwnd = tp->snd_cwnd;
	u32 mss = tp->mss_cache ? tp->mss_cache : 1;
	u64 pipe = cwnd / 2;

	westwood->cwnd_before = cwnd;
	westwood->count_before = tp->snd_cwnd_cnt;
	westwood->ssthresh_before = tp->snd_ssthresh;
	if (westwood->estimate)
		pipe = westwood->estimate * westwood->min_rtt / 1000000 / mss;
	if (pipe < 2)
		pipe = 2;
	if (pipe > 0x7ffffffe)
		pipe = 0x7ffffffe;
	/* A window below what the path carried stays, and slow start takes it there. */
	westwood->left = cwnd < pipe ? cwnd : 0;
	return pipe;
}

SEC("struct_ops")
void BPF_PROG(westwood_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct westwood *westwood = inet_csk_ca(sk);

	westwood->left = 0;
	if (!tcp_is_cwnd_limited(sk))
		return;
	cc_reno_grow(tp, acked);
}

SEC("struct_ops")
void BPF_PROG(westwood_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct westwood *westwood = inet_csk_ca(sk);

	if (event == CA_EVENT_COMPLETE_CWR && westwood->left && tp->snd_cwnd > westwood->left)
		tp->snd_cwnd = westwood->left;
	/* A round trip with a pause in it gives no sample; nothing was there to be measured. */
	if (event == CA_EVENT_TX_START)
		westwood->has_begun = 0;
	if (event == CA_EVENT_COMPLETE_CWR || event == CA_EVENT_LOSS)
		westwood->left = 0;
}

SEC("struct_ops")
u32 BPF_PROG(westwood_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct westwood *westwood = inet_csk_ca(sk);
	u32 before = westwood->cwnd_before;

	westwood->cwnd_before = 0;
	westwood->left = 0;
	if (tp->snd_cwnd >= before)
		return tp->snd_cwnd;
	tp->snd_cwnd_cnt = westwood->count_before;
	tp->snd_ssthresh = westwood->ssthresh_before;
	return before;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops westwood = {
	.init = (void *)westwood_init,
	.pkts_acked = (void *)westwood_pkts_acked,
	.ssthresh = (void *)westwood_ssthresh,
	.cong_avoid = (void *)westwood_cong_avoid,
	.cwnd_event = (void *)westwood_cwnd_event,
	.undo_cwnd = (void *)westwood_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "ab_westwood",
};
