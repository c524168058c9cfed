/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reno (RFC 5681): slow start, one segment more per round trip, half the window at a loss.
 *
 * Its twin in the simulator is `reno` with a slow start without a limit and `reduce_from = "cwnd"` in a
 * stack that counts its windows in segments. The kernel has a Reno of its own; this one is the smallest
 * complete example of a control here.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "tcp_cc.h"

char _license[] SEC("license") = "Dual BSD/GPL";

struct reno {
	/* Before the last reduction. */
	u32 cwnd_before;
	u32 count_before;
	u32 ssthresh_before;
};

SEC("struct_ops")
void BPF_PROG(reno_init, struct sock *sk)
{
	struct reno *reno = inet_csk_ca(sk);

	reno->cwnd_before = 0;
}

SEC("struct_ops")
u32 BPF_PROG(reno_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct reno *reno = inet_csk_ca(sk);
	u32 half = tp->snd_cwnd >> 1;

	reno->cwnd_before = tp->snd_cwnd;
	reno->count_before = tp->snd_cwnd_cnt;
	reno->ssthresh_before = tp->snd_ssthresh;
	return half > 2 ? half : 2;
}

SEC("struct_ops")
void BPF_PROG(reno_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tcp_is_cwnd_limited(sk))
		return;
	cc_reno_grow(tp, acked);
}

SEC("struct_ops")
u32 BPF_PROG(reno_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct reno *reno = inet_csk_ca(sk);
	u32 before = reno->cwnd_before;

	reno->cwnd_before = 0;
	if (tp->snd_cwnd >= before)
		return tp->snd_cwnd;
	tp->snd_cwnd_cnt = reno->count_before;
	tp->snd_ssthresh = reno->ssthresh_before;
	return before;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops reno = {
	.init = (void *)reno_init,
	.ssthresh = (void *)reno_ssthresh,
	.cong_avoid = (void *)reno_cong_avoid,
	.undo_cwnd = (void *)reno_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "ab_reno",
};
