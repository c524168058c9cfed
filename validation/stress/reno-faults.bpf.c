/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reno with one planted fault, FAULT; 0 for none. `validation/stress/faults.py` lists them.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "tcp_cc.h"

#ifndef FAULT
#define FAULT 0
#endif

char _license[] SEC("license") = "Dual BSD/GPL";

struct faulty {
	u32 cwnd_before;
	u32 least_rtt_us;
	u32 stuck;
};

SEC("struct_ops")
void BPF_PROG(faulty_init, struct sock *sk)
{
	struct faulty *own = inet_csk_ca(sk);

	own->cwnd_before = 0;
	own->least_rtt_us = 0;
	own->stuck = 0;
}

static __always_inline bool in_loss(struct sock *sk)
{
	return ANABRANCH_BIT_FIELD(inet_csk(sk), icsk_ca_state) == TCP_CA_Loss;
}

SEC("struct_ops")
u32 BPF_PROG(faulty_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct faulty *own = inet_csk_ca(sk);
	u32 cwnd = tp->snd_cwnd;
	u32 kept = cwnd / 2;

	own->cwnd_before = cwnd;
	if (FAULT == 1)
		kept = cwnd;
	if (FAULT == 2)
		kept = cwnd * 95 / 100;
	if (FAULT == 3)
		return TCP_INFINITE_SSTHRESH;
	if (FAULT == 5)
		kept = 2;
	if (FAULT == 6)
		kept = cwnd / 8;
	if (FAULT == 11)
		own->stuck = 1;
	return kept > 2 ? kept : 2;
}

SEC("struct_ops")
void BPF_PROG(faulty_set_state, struct sock *sk, u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct faulty *own = inet_csk_ca(sk);

	if (state != TCP_CA_Loss)
		return;
	if (FAULT == 10)
		tp->snd_ssthresh = 2;
	if (FAULT == 12)
		own->stuck = 1;
}

SEC("struct_ops")
void BPF_PROG(faulty_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct faulty *own = inet_csk_ca(sk);

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (FAULT == 4) {
		tp->snd_cwnd += acked;
		return;
	}
	if (FAULT == 7 && !tcp_in_slow_start(tp))
		return;
	if (FAULT == 8 && !tcp_in_slow_start(tp))
		acked *= 10;
	if (FAULT == 9)
		acked = 1;
	if (FAULT == 15 && acked > 8) {
		tp->snd_cwnd = tp->snd_cwnd > 4 ? tp->snd_cwnd / 2 : 2;
		tp->snd_ssthresh = tp->snd_cwnd;
		return;
	}
	cc_reno_grow(tp, acked);
	if (FAULT == 8) {
		while (tp->snd_cwnd_cnt >= tp->snd_cwnd) {
			tp->snd_cwnd_cnt -= tp->snd_cwnd;
			tp->snd_cwnd++;
		}
	}
	if (FAULT == 13 && tp->snd_cwnd > 10)
		tp->snd_cwnd = 10;
	if ((FAULT == 11 || FAULT == 12) && own->stuck && tp->snd_cwnd > 4)
		tp->snd_cwnd = 4;
}

SEC("struct_ops")
void BPF_PROG(faulty_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct faulty *own = inet_csk_ca(sk);
	u32 rtt;

	if (sample->rtt_us <= 0)
		return;
	rtt = sample->rtt_us;
	if (!own->least_rtt_us || rtt < own->least_rtt_us)
		own->least_rtt_us = rtt;
	if (FAULT == 14 && rtt > 2 * own->least_rtt_us + own->least_rtt_us / 2)
		tp->snd_cwnd = 4;
}

SEC("struct_ops")
u32 BPF_PROG(faulty_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct faulty *own = inet_csk_ca(sk);

	if (FAULT == 16)
		return 1;
	return tp->snd_cwnd > own->cwnd_before ? tp->snd_cwnd : own->cwnd_before;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops faulty = {
	.init = (void *)faulty_init,
	.ssthresh = (void *)faulty_ssthresh,
	.set_state = (void *)faulty_set_state,
	.cong_avoid = (void *)faulty_cong_avoid,
	.pkts_acked = (void *)faulty_pkts_acked,
	.undo_cwnd = (void *)faulty_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "ab_faulty",
};
