/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the kernel gives a congestion control, for one that runs in the simulator: the time, and the
 * functions of RFC 5681. Linked to the control's own object.
 */
#include "vmlinux.h"
#include <stddef.h>

static _Thread_local u64 now_ns;

void anabranch_set_now(u64 ns)
{
	now_ns = ns;
}

u64 bpf_ktime_get_ns(void)
{
	return now_ns;
}

u64 bpf_jiffies64(void)
{
	return now_ns / 1000000;
}

/* Sizes and places, so that what calls from outside is known to mean the same structures. */
const u32 anabranch_layout[] = {
	sizeof(struct tcp_sock),
	sizeof(struct tcp_congestion_ops),
	sizeof(struct ack_sample),
	sizeof(struct rate_sample),
	offsetof(struct tcp_sock, inet_conn.icsk_ca_priv),
	offsetof(struct tcp_sock, snd_cwnd),
	offsetof(struct tcp_sock, tcp_mstamp),
	offsetof(struct tcp_sock, is_cwnd_limited),
	offsetof(struct tcp_congestion_ops, name),
	offsetof(struct tcp_congestion_ops, init),
	offsetof(struct rate_sample, interval_us),
	offsetof(struct rate_sample, is_app_limited),
};

/* RFC 5681 §3.1, without a limit on what one acknowledgment adds (RFC 3465 §2.3 has L). */
u32 tcp_slow_start(struct tcp_sock *tp, u32 acked)
{
	u32 room = tp->snd_ssthresh > tp->snd_cwnd ? tp->snd_ssthresh - tp->snd_cwnd : 0;
	u32 used = acked < room ? acked : room;

	tp->snd_cwnd += used;
	return acked - used;
}

/* RFC 3465 §2.1 in packets: one more for every w acknowledged. */
void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked)
{
	if (w == 0)
		w = 1;
	tp->snd_cwnd_cnt += acked;
	if (tp->snd_cwnd_cnt >= w) {
		tp->snd_cwnd += tp->snd_cwnd_cnt / w;
		tp->snd_cwnd_cnt %= w;
	}
}

void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	(void)ack;
	if (!tp->is_cwnd_limited)
		return;
	if (tp->snd_cwnd < tp->snd_ssthresh) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
}

/* RFC 5681 §3.1 equation 4, from cwnd. */
u32 tcp_reno_ssthresh(struct sock *sk)
{
	u32 half = ((struct tcp_sock *)sk)->snd_cwnd / 2;

	return half > 2 ? half : 2;
}

/* RFC 4015 §3.2. */
u32 tcp_reno_undo_cwnd(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	return tp->snd_cwnd > tp->prior_cwnd ? tp->snd_cwnd : tp->prior_cwnd;
}
