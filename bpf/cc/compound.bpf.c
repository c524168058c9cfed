/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Compound TCP (draft-sridharan-tcpm-ctcp-02; Tan, Song, Zhang and Sridharan, INFOCOM 2006): a loss window
 * as Reno's, and a delay window that grows fast where no queue is seen and yields to one.
 *
 * Its twin in the simulator is `compound` with a slow start without a limit and `reduce_from = "cwnd"`;
 * where the sources leave something open, this does as that.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "tcp_cc.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* §2 and §6: up to this window there is no delay window. */
#define LOW_WINDOW (38 * CC_ONE)
/* §5: gamma, in 2^-16 packets. */
#define GAMMA (30 << 16)
#define GAMMA_LOW (5 << 16)
#define GAMMA_HIGH (30 << 16)
#define UNKNOWN (~0U)

struct compound {
	/* The sum of both windows. */
	struct cc_window window;
	u64 loss;
	/* Before the last reduction. */
	u64 exact_before;
	u64 loss_before;
	u64 ssthresh_before;
	u32 gamma_before;
	u32 diff_before;
	u32 base_before;
	/* Packets queued from which on the delay window shrinks, in 2^-16. */
	u32 gamma;
	/* The loss window's own backlog at the end of the last round trip, in 2^-16 packets. */
	u32 diff_reno;
	/* The smallest round-trip time, in microseconds; 0 while it is unknown. */
	u32 base_rtt;
	u32 round_end;
	u8 round_over;
	u8 whole_round;
	u8 slow_start;
	u8 slow_start_before;
};

_Static_assert(sizeof(struct compound) <= 104, "icsk_ca_priv");

SEC("struct_ops")
void BPF_PROG(compound_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct compound *compound = inet_csk_ca(sk);

	cc_window_init(&compound->window, tp);
	compound->loss = compound->window.exact;
	compound->exact_before = 0;
	compound->gamma = GAMMA;
	compound->diff_reno = UNKNOWN;
	compound->base_rtt = 0;
	compound->round_end = tp->snd_una;
	compound->round_over = 0;
	compound->whole_round = 0;
	compound->slow_start = 1;
}

/* Where the kernel has set the window to something else, that is the loss window's alone. */
static __always_inline void compound_sync(struct compound *compound, struct tcp_sock *tp)
{
	if (!cc_window_sync(&compound->window, tp))
		return;
	if (compound->window.exact == compound->window.reduced)
		return;
	compound->loss = compound->window.exact;
	compound->slow_start = cc_in_slow_start(&compound->window, tp);
}

SEC("struct_ops")
void BPF_PROG(compound_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct compound *compound = inet_csk_ca(sk);
	s32 rtt = sample->rtt_us;

	if (after(tp->snd_una, compound->round_end)) {
		compound->round_end = tp->snd_nxt;
		compound->round_over = 1;
	}
	/* §6: neither samples nor changes of the delay window in a recovery. */
	if (tcp_in_recovery(sk)) {
		compound->whole_round = 0;
		return;
	}
	if (rtt > 0 && (!compound->base_rtt || (u32)rtt < compound->base_rtt))
		compound->base_rtt = rtt;
	if (!tcp_is_cwnd_limited(sk))
		compound->whole_round = 0;
}

/* In 2^-16 packets. */
static __always_inline u32 compound_fixed(u64 packets)
{
	packets >>= 16;
	return packets < UNKNOWN ? packets : UNKNOWN - 1;
}

/* The end of a round trip of congestion avoidance (§3, equations 3 and 4). */
static __always_inline void compound_end_round(struct compound *compound, struct tcp_sock *tp)
{
	/* In eighths of a microsecond, both. */
	u64 rtt = tp->srtt_us;
	u64 base = (u64)compound->base_rtt << 3;
	u64 excess = rtt > base ? rtt - base : 0;
	u64 sum = compound->window.exact;
	u64 delay, diff, root, change;

	if (!base || !rtt)
		return;
	compound->diff_reno = compound_fixed(cc_queued(compound->loss, excess, rtt));
	if (sum <= LOW_WINDOW)
		return;
	delay = sum > compound->loss ? sum - compound->loss : 0;
	diff = cc_queued(sum, excess, rtt);
	if (diff < (u64)compound->gamma << 16) {
		/* An eighth of the window to the power of 3/4: its square root times the root of that. */
		root = cc_sqrt(sum);
		change = root * cc_sqrt(root << 16) / 8;
		if (change > CC_ONE)
			delay += change - CC_ONE;
	} else {
		delay = delay > diff ? delay - diff : 0;
	}
	cc_window_set(&compound->window, tp, compound->loss + delay);
}

SEC("struct_ops")
void BPF_PROG(compound_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct compound *compound = inet_csk_ca(sk);
	u64 grown;

	if (!tcp_is_cwnd_limited(sk))
		return;
	compound_sync(compound, tp);
	if (compound->slow_start) {
		cc_window_set(&compound->window, tp, cc_slow_start(&compound->window, tp, acked));
		compound->loss = compound->window.exact;
		compound->slow_start = cc_in_slow_start(&compound->window, tp);
		compound->whole_round = 0;
		compound->round_over = 0;
		return;
	}
	if (compound->round_over) {
		compound->round_over = 0;
		if (compound->whole_round)
			compound_end_round(compound, tp);
		compound->whole_round = 1;
	}
	/* §3, equation 2. */
	grown = cc_share(acked, CC_ONE, compound->window.exact);
	compound->loss += grown;
	cc_window_set(&compound->window, tp, compound->window.exact + grown);
}

/* §5, On-Packet-Loss, with lambda 0.8. */
static __always_inline void compound_tune_gamma(struct compound *compound)
{
	u64 gamma;

	if (compound->diff_reno == UNKNOWN)
		return;
	gamma = ((u64)compound->gamma * 2 + (u64)compound->diff_reno * 6) / 10;
	if (gamma > GAMMA_HIGH)
		gamma = GAMMA_HIGH;
	if (gamma < GAMMA_LOW)
		gamma = GAMMA_LOW;
	compound->gamma = gamma;
	compound->diff_reno = UNKNOWN;
}

SEC("struct_ops")
u32 BPF_PROG(compound_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct compound *compound = inet_csk_ca(sk);

	compound_sync(compound, tp);
	compound->exact_before = compound->window.exact;
	compound->loss_before = compound->loss;
	compound->ssthresh_before = cc_ssthresh(&compound->window, tp);
	compound->slow_start_before = compound->slow_start;
	compound->gamma_before = compound->gamma;
	compound->diff_before = compound->diff_reno;
	compound->base_before = compound->base_rtt;
	compound->whole_round = 0;
	return cc_reduce(&compound->window, compound->window.exact / 2);
}

/* A loss, not a timeout. */
SEC("struct_ops")
void BPF_PROG(compound_set_state, struct sock *sk, u8 state)
{
	struct compound *compound = inet_csk_ca(sk);
	u64 reduced = compound->window.reduced;
	u64 loss = compound->loss / 2;

	if ((state != TCP_CA_Recovery && state != TCP_CA_CWR) || compound->window.shown)
		return;
	compound_tune_gamma(compound);
	if (loss > reduced)
		loss = reduced;
	compound->loss = loss > CC_ONE ? loss : CC_ONE;
	compound->slow_start = 0;
}

SEC("struct_ops")
void BPF_PROG(compound_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct compound *compound = inet_csk_ca(sk);

	if (event == CA_EVENT_LOSS) {
		cc_forget_fraction(&compound->window);
		/* §3: the path may be another one. */
		compound->base_rtt = 0;
		compound->diff_reno = UNKNOWN;
	}
	if (event == CA_EVENT_LOSS || event == CA_EVENT_TX_START)
		compound->whole_round = 0;
}

SEC("struct_ops")
u32 BPF_PROG(compound_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct compound *compound = inet_csk_ca(sk);
	u64 before = compound->exact_before;
	u32 base = compound->base_before;

	compound_sync(compound, tp);
	compound->exact_before = 0;
	if (!before)
		return tp->snd_cwnd;
	/* Nothing was lost that could have told of the queue, nor is the path another one. */
	if (!compound->base_rtt || (base && base < compound->base_rtt))
		compound->base_rtt = base;
	compound->gamma = compound->gamma_before;
	/* Else the backlog of the window that stays. */
	if (compound->window.exact >= before)
		return tp->snd_cwnd;
	compound->diff_reno = compound->diff_before;
	compound->loss = compound->loss_before;
	compound->slow_start = compound->slow_start_before;
	compound->whole_round = 0;
	return cc_undo(&compound->window, tp, before, compound->ssthresh_before);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops compound = {
	.init = (void *)compound_init,
	.pkts_acked = (void *)compound_pkts_acked,
	.ssthresh = (void *)compound_ssthresh,
	.set_state = (void *)compound_set_state,
	.cong_avoid = (void *)compound_cong_avoid,
	.cwnd_event = (void *)compound_cwnd_event,
	.undo_cwnd = (void *)compound_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "ab_compound",
};
