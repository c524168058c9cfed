/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * BIC (Xu, Harfoush and Rhee, INFOCOM 2004, §III): a binary search for the window that the path bears.
 *
 * Its twin in the simulator is `bic` with a slow start without a limit and `reduce_from = "cwnd"`.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "tcp_cc.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* The most and the least that a round trip adds. */
#define S_MAX (32 * CC_ONE)
#define S_MIN CC_HUNDREDTHS(1)
/* Below this window it is Reno. */
#define LOW_WINDOW (14 * CC_ONE)
/* What a loss leaves, 0.875, in 2^-16. */
#define BETA 57344
#define UNKNOWN (~0ULL)

/* The search. */
struct search {
	u64 max_win;
	/* Max probing: the window at which the step doubles. */
	u64 target;
	/* What a round trip of it adds, in segments; 0 where none is under way. */
	u32 step;
	u32 unused;
};

struct bic {
	struct cc_window window;
	struct search search;
	/* Before the last reduction. */
	u64 exact_before;
	u64 ssthresh_before;
	struct search search_before;
};

_Static_assert(sizeof(struct bic) <= 104, "icsk_ca_priv");

SEC("struct_ops")
void BPF_PROG(bic_init, struct sock *sk)
{
	struct bic *bic = inet_csk_ca(sk);

	cc_window_init(&bic->window, tcp_sk(sk));
	bic->search.max_win = UNKNOWN;
	bic->search.target = 0;
	bic->search.step = 0;
	bic->exact_before = 0;
}

SEC("struct_ops")
u32 BPF_PROG(bic_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bic *bic = inet_csk_ca(sk);
	u64 cwnd, reduced;

	cc_window_sync(&bic->window, tp);
	cwnd = bic->window.exact;
	bic->exact_before = cwnd;
	bic->ssthresh_before = cc_ssthresh(&bic->window, tp);
	bic->search_before.max_win = bic->search.max_win;
	bic->search_before.target = bic->search.target;
	bic->search_before.step = bic->search.step;

	reduced = cwnd < LOW_WINDOW ? cwnd / 2 : cc_scale(cwnd, BETA);
	return cc_reduce(&bic->window, reduced);
}

/* A loss, not a timeout: the window becomes the maximum, or less where the old one was not reached. */
SEC("struct_ops")
void BPF_PROG(bic_set_state, struct sock *sk, u8 state)
{
	struct bic *bic = inet_csk_ca(sk);
	u64 cwnd = bic->exact_before;
	u64 max_win = bic->search.max_win;

	if (state != TCP_CA_Recovery && state != TCP_CA_CWR)
		return;
	if (bic->window.shown || cwnd < LOW_WINDOW)
		return;
	if (max_win != UNKNOWN && cwnd < max_win)
		bic->search.max_win = (cwnd + bic->window.reduced) / 2;
	else
		bic->search.max_win = cwnd;
	bic->search.step = 0;
}

static __always_inline u64 bic_step(const struct bic *bic, u64 cwnd)
{
	u64 max_win = bic->search.max_win;
	u64 step;

	if (bic->search.step)
		return (u64)bic->search.step << 32;
	if (max_win <= cwnd)
		return S_MIN;
	step = (max_win - cwnd) / 2;
	if (step > S_MAX)
		return S_MAX;
	return step > S_MIN ? step : S_MIN;
}

static __always_inline void bic_search(struct search *search, u64 cwnd)
{
	if (!search->step) {
		if (cwnd < search->max_win)
			return;
		search->max_win = UNKNOWN;
		search->step = 1;
		search->target = cwnd + CC_ONE;
		return;
	}
	if (cwnd >= search->target) {
		search->step *= 2;
		search->target = cwnd + ((u64)search->step << 32);
	}
	if ((u64)search->step << 32 >= S_MAX)
		search->step = 0;
}

SEC("struct_ops")
void BPF_PROG(bic_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bic *bic = inet_csk_ca(sk);
	u64 cwnd, step;

	if (!tcp_is_cwnd_limited(sk))
		return;
	cc_window_sync(&bic->window, tp);
	if (cc_in_slow_start(&bic->window, tp)) {
		cc_window_set(&bic->window, tp, cc_slow_start(&bic->window, tp, acked));
		return;
	}
	cwnd = bic->window.exact;
	if (cwnd < LOW_WINDOW) {
		cc_window_set(&bic->window, tp, cwnd + cc_share(acked, CC_ONE, cwnd));
		return;
	}
	step = bic_step(bic, cwnd);
	cwnd += step < cwnd ? cc_share(acked, step, cwnd) : (u64)acked << 32;
	bic_search(&bic->search, cwnd);
	cc_window_set(&bic->window, tp, cwnd);
}

SEC("struct_ops")
void BPF_PROG(bic_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct bic *bic = inet_csk_ca(sk);

	if (event == CA_EVENT_LOSS)
		cc_forget_fraction(&bic->window);
}

SEC("struct_ops")
u32 BPF_PROG(bic_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bic *bic = inet_csk_ca(sk);
	u64 before = bic->exact_before;

	cc_window_sync(&bic->window, tp);
	bic->exact_before = 0;
	if (bic->window.exact >= before)
		return tp->snd_cwnd;
	bic->search.max_win = bic->search_before.max_win;
	bic->search.target = bic->search_before.target;
	bic->search.step = bic->search_before.step;
	return cc_undo(&bic->window, tp, before, bic->ssthresh_before);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops bic = {
	.init = (void *)bic_init,
	.ssthresh = (void *)bic_ssthresh,
	.set_state = (void *)bic_set_state,
	.cong_avoid = (void *)bic_cong_avoid,
	.cwnd_event = (void *)bic_cwnd_event,
	.undo_cwnd = (void *)bic_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "ab_bic",
};
