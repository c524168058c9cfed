/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CUBIC whose growth outside of the Reno-friendly region is that of RFC 9438 §4.4 to the letter: each
 * acknowledgment adds (target - cwnd) / cwnd, whatever it acknowledges. With COUNTS_SEGMENTS it adds this for
 * each segment, as implementations do. For the simulator only, because of its floating-point numbers.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "tcp_cc.h"

#ifndef COUNTS_SEGMENTS
#define COUNTS_SEGMENTS 0
#endif

char _license[] SEC("license") = "Dual BSD/GPL";

struct literal {
	double cwnd;
	double w_max;
	double k;
	double w_est;
	double epoch;
	u32 shown;
	u32 before;
};

static double cube_root(double value)
{
	double root = value > 1 ? value / 3 : value;
	int step;

	if (value <= 0)
		return 0;
	for (step = 0; step < 60; step++)
		root = (2 * root + value / (root * root)) / 3;
	return root;
}

static double seconds(void)
{
	return bpf_ktime_get_ns() / 1e9;
}

SEC("struct_ops")
void BPF_PROG(literal_init, struct sock *sk)
{
	struct literal *own = inet_csk_ca(sk);

	own->cwnd = tcp_sk(sk)->snd_cwnd;
	own->shown = tcp_sk(sk)->snd_cwnd;
	own->w_max = 0;
	own->epoch = -1;
	own->before = 0;
}

SEC("struct_ops")
u32 BPF_PROG(literal_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct literal *own = inet_csk_ca(sk);
	double cwnd = tp->snd_cwnd;
	u32 kept = (u32)(cwnd * 0.7);

	own->before = tp->snd_cwnd;
	own->w_max = cwnd < own->w_max ? cwnd * 0.85 : cwnd;
	own->epoch = -1;
	return kept > 2 ? kept : 2;
}

static double cubic(const struct literal *own, double time)
{
	double off = time - own->k;

	return 0.4 * off * off * off + own->w_max;
}

SEC("struct_ops")
void BPF_PROG(literal_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct literal *own = inet_csk_ca(sk);
	double time, target, rtt = tp->srtt_us / 8e6;

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		own->epoch = -1;
		if (!acked)
			return;
	}
	if (own->shown != tp->snd_cwnd) {
		own->cwnd = tp->snd_cwnd;
		own->shown = tp->snd_cwnd;
	}
	if (own->epoch < 0) {
		own->epoch = seconds();
		own->w_est = own->cwnd;
		if (own->w_max < own->cwnd)
			own->w_max = own->cwnd;
		own->k = cube_root((own->w_max - own->cwnd) / 0.4);
	}
	own->w_est += 0.9 / 1.7 * acked / own->cwnd;
	time = seconds() - own->epoch;
	if (cubic(own, time) < own->w_est) {
		if (own->cwnd < own->w_est)
			own->cwnd = own->w_est;
	} else {
		target = cubic(own, time + rtt);
		if (target < own->cwnd)
			target = own->cwnd;
		if (target > 1.5 * own->cwnd)
			target = 1.5 * own->cwnd;
		own->cwnd += (COUNTS_SEGMENTS ? acked : 1) * (target - own->cwnd) / own->cwnd;
	}
	tp->snd_cwnd = (u32)own->cwnd;
	own->shown = tp->snd_cwnd;
}

SEC("struct_ops")
u32 BPF_PROG(literal_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct literal *own = inet_csk_ca(sk);

	own->epoch = -1;
	return tp->snd_cwnd > own->before ? tp->snd_cwnd : own->before;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops literal = {
	.init = (void *)literal_init,
	.ssthresh = (void *)literal_ssthresh,
	.cong_avoid = (void *)literal_cong_avoid,
	.undo_cwnd = (void *)literal_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "ab_literal",
};
