/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TCP Vegas (Brakmo and Peterson 1995, §III-B and §III-C): the window follows how many of its packets wait
 * in queues.
 *
 * Its twin in the simulator is `vegas` with a slow start without a limit and `reduce_from = "cwnd"`.
 * What that differs from the paper in stands there.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "tcp_cc.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* Packets queued below which the window grows, above which it shrinks, and above which slow start ends. */
#define ALPHA (1 * CC_ONE)
#define BETA (3 * CC_ONE)
#define GAMMA (1 * CC_ONE)

struct vegas {
	struct cc_window window;
	/* Before the last reduction. */
	u64 exact_before;
	u64 ssthresh_before;
	/* Round-trip times of the round trip under way, in microseconds. */
	u64 rtt_sum;
	u32 rtt_count;
	/* The smallest so far; 0 before the first. */
	u32 base_rtt;
	/* The round trip ends when this is acknowledged. */
	u32 round_end;
	/* It has ended, and that was not looked at yet. */
	u8 round_over;
	/* It is outside a recovery, and the window was used all along. */
	u8 whole_round;
	/* Slow start grows in this round trip; it holds the window in the next. */
	u8 doubling;
};

_Static_assert(sizeof(struct vegas) <= 104, "icsk_ca_priv");

static __always_inline void vegas_forget_round(struct vegas *vegas)
{
	vegas->whole_round = 0;
	vegas->doubling = 1;
}

SEC("struct_ops")
void BPF_PROG(vegas_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct vegas *vegas = inet_csk_ca(sk);

	cc_window_init(&vegas->window, tp);
	vegas->exact_before = 0;
	vegas->rtt_sum = 0;
	vegas->rtt_count = 0;
	vegas->base_rtt = 0;
	vegas->round_end = tp->snd_una;
	vegas->round_over = 0;
	vegas_forget_round(vegas);
}

SEC("struct_ops")
void BPF_PROG(vegas_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct vegas *vegas = inet_csk_ca(sk);
	s32 rtt = sample->rtt_us;

	if (rtt > 0) {
		if (!vegas->base_rtt || (u32)rtt < vegas->base_rtt)
			vegas->base_rtt = rtt;
		vegas->rtt_sum += (u32)rtt;
		vegas->rtt_count++;
	}
	if (after(tp->snd_una, vegas->round_end)) {
		vegas->round_end = tp->snd_nxt;
		vegas->round_over = 1;
	}
	if (tcp_in_recovery(sk) || !tcp_is_cwnd_limited(sk))
		vegas->whole_round = 0;
}

/* §III-B and §III-C. */
static __always_inline void vegas_end_round(struct vegas *vegas, struct tcp_sock *tp)
{
	u64 total = vegas->rtt_sum;
	u64 base = (u64)vegas->base_rtt * vegas->rtt_count;
	u64 cwnd = vegas->window.exact;
	u64 queued, ssthresh;

	if (!vegas->rtt_count) {
		total = tp->srtt_us;
		base = (u64)vegas->base_rtt << 3;
	}
	if (!vegas->base_rtt || !total)
		return;
	queued = total > base ? cc_queued(cwnd, total - base, total) : 0;
	ssthresh = cc_ssthresh(&vegas->window, tp);
	if (cwnd < ssthresh) {
		/* Only a window that stood still for a round trip tells. */
		if (!vegas->doubling && queued > GAMMA)
			cc_ssthresh_set(&vegas->window, tp, cwnd > 2 * CC_ONE ? cwnd : 2 * CC_ONE);
	} else if (queued < ALPHA) {
		cc_window_set(&vegas->window, tp, cwnd + CC_ONE);
	} else if (queued > BETA) {
		cwnd = cwnd > 3 * CC_ONE ? cwnd - CC_ONE : 2 * CC_ONE;
		cc_window_set(&vegas->window, tp, cwnd);
		/* Or slow start would begin again. */
		if (cwnd < ssthresh)
			cc_ssthresh_set(&vegas->window, tp, cwnd);
	}
}

SEC("struct_ops")
void BPF_PROG(vegas_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct vegas *vegas = inet_csk_ca(sk);

	if (!tcp_is_cwnd_limited(sk))
		return;
	cc_window_sync(&vegas->window, tp);
	if (vegas->round_over) {
		vegas->round_over = 0;
		if (vegas->whole_round)
			vegas_end_round(vegas, tp);
		vegas->doubling = !(vegas->whole_round && vegas->doubling);
		vegas->whole_round = 1;
		vegas->rtt_sum = 0;
		vegas->rtt_count = 0;
	}
	if (vegas->doubling && cc_in_slow_start(&vegas->window, tp))
		cc_window_set(&vegas->window, tp, cc_slow_start(&vegas->window, tp, acked));
}

SEC("struct_ops")
u32 BPF_PROG(vegas_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct vegas *vegas = inet_csk_ca(sk);

	cc_window_sync(&vegas->window, tp);
	vegas->exact_before = vegas->window.exact;
	vegas->ssthresh_before = cc_ssthresh(&vegas->window, tp);
	vegas_forget_round(vegas);
	return cc_reduce(&vegas->window, vegas->window.exact / 2);
}

SEC("struct_ops")
void BPF_PROG(vegas_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct vegas *vegas = inet_csk_ca(sk);

	if (event == CA_EVENT_LOSS)
		cc_forget_fraction(&vegas->window);
	if (event == CA_EVENT_LOSS || event == CA_EVENT_TX_START)
		vegas_forget_round(vegas);
}

SEC("struct_ops")
u32 BPF_PROG(vegas_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct vegas *vegas = inet_csk_ca(sk);
	u64 before = vegas->exact_before;

	cc_window_sync(&vegas->window, tp);
	vegas->exact_before = 0;
	if (vegas->window.exact >= before)
		return tp->snd_cwnd;
	vegas_forget_round(vegas);
	return cc_undo(&vegas->window, tp, before, vegas->ssthresh_before);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops vegas = {
	.init = (void *)vegas_init,
	.pkts_acked = (void *)vegas_pkts_acked,
	.ssthresh = (void *)vegas_ssthresh,
	.cong_avoid = (void *)vegas_cong_avoid,
	.cwnd_event = (void *)vegas_cwnd_event,
	.undo_cwnd = (void *)vegas_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "ab_vegas",
};
