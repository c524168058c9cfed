/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Cubic+ (Fukuda, KAKENHI 16K00129, final report, 2019): CUBIC (RFC 9438) that starts over where a timer
 * finds losses during a fast recovery.
 *
 * Its twin in the simulator is `cubic-plus` with a slow start without a limit, `reduce_from = "cwnd"`,
 * `hystart = "off"` and `count = "bytes"`, in a stack that grows no faster before the first loss.
 *
 * Differs from that, as far as a control can go:
 * - The report's timer is a loss detection, which is the stack's; a control sees only that packets were
 *   taken for lost. Those of the window in which the recovery began are told of by the acknowledgments of
 *   that window, within a round trip. So a loss counts as the timer's that the stack finds, by whatever
 *   rule, later in the recovery than a round trip and the report's grace time of a quarter of one.
 * - During a recovery the window is the stack's too. So starting over lowers ssthresh at once, and slow
 *   start begins from one segment when the recovery ends, not at the loss.
 * - A reduction that is undone after congestion avoidance has begun anew begins it once more from the
 *   window of before, instead of going on in the stage of before.
 * - Marks leave two segments at least, not one, and nothing ends slow start early (HyStart).
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "tcp_cc.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* Times are in 2^-14 seconds, 61 us. */
#define PER_SECOND 14
/* From here on the cubic function is steeper than any window follows: 127 s from its plateau. */
#define FARTHEST ((127U << PER_SECOND) - 1)

#define IN_STAGE 1
#define PAUSED 2
#define STAGE_KEPT 4
#define STARTS_OVER 8

struct cubic {
	struct cc_window window;
	/* Where the cubic function has its plateau; 0: wherever the next stage begins. */
	u64 w_max;
	/* The window before the last reduction. */
	u64 prior;
	/* What Reno would have by now. */
	u64 w_est;
	/* The stage of congestion avoidance under way: when it began, pauses left out; the one that is on. */
	u32 start;
	u32 paused;
	/* From its beginning to the plateau. */
	u32 k;
	u32 flags;
	/* Before the last reduction. */
	u64 exact_before;
	u64 ssthresh_before;
	u64 w_max_before;
	u64 prior_before;
	/* When the recovery began, and the packets taken for lost, those included that the timer did not find. */
	u32 entered;
	u32 lost;
};

_Static_assert(sizeof(struct cubic) <= 104, "icsk_ca_priv");

static __always_inline u32 cubic_time(u64 ns)
{
	u64 us = ns / NSEC_PER_USEC;

	return ((us / USEC_PER_SEC) << PER_SECOND) + ((us % USEC_PER_SEC) << PER_SECOND) / USEC_PER_SEC;
}

static __always_inline void cubic_leave_stage(struct cubic *cubic)
{
	cubic->flags &= ~(IN_STAGE | PAUSED | STAGE_KEPT);
}

static __always_inline void cubic_pause(struct cubic *cubic, u32 since)
{
	if ((cubic->flags & (IN_STAGE | PAUSED)) == IN_STAGE) {
		cubic->flags |= PAUSED;
		cubic->paused = since;
	}
}

SEC("struct_ops")
void BPF_PROG(cubic_init, struct sock *sk)
{
	struct cubic *cubic = inet_csk_ca(sk);

	cc_window_init(&cubic->window, tcp_sk(sk));
	cubic->w_max = 0;
	cubic->prior = cubic->window.exact;
	cubic->flags = 0;
	cubic->exact_before = 0;
}

/* RFC 9438 §4.2, figure 1: 0.4 (t - K)^3 + W_max. */
static __always_inline u64 cubic_window(const struct cubic *cubic, u64 t)
{
	u64 k = cubic->k;
	u64 distance = t > k ? t - k : k - t;
	u64 rise;

	if (distance > FARTHEST)
		distance = FARTHEST;
	rise = ((distance * distance * distance) >> (3 * PER_SECOND - 32)) * 2 / 5;
	if (t > k)
		return cubic->w_max + rise;
	return cubic->w_max > rise ? cubic->w_max - rise : 0;
}

/* A stage of congestion avoidance begins with the window as it is. */
static __always_inline void cubic_begin_stage(struct cubic *cubic, u32 now)
{
	u64 cwnd = cubic->window.exact;
	u64 below;

	if (cubic->w_max < cwnd)
		cubic->w_max = cwnd;
	below = cubic->w_max - cwnd;
	if (below >> 51)
		below = 1ULL << 51;
	/* §4.2, figure 2: the cube root of the distance over 0.4. */
	cubic->k = cc_cbrt((below << (3 * PER_SECOND - 32)) / 2 * 5);
	cubic->start = now;
	cubic->w_est = cwnd;
	cubic->flags = (cubic->flags & ~(PAUSED | STAGE_KEPT)) | IN_STAGE;
}

SEC("struct_ops")
void BPF_PROG(cubic_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct cubic *cubic = inet_csk_ca(sk);
	u32 now = cubic_time(bpf_ktime_get_ns());
	u64 cwnd, grown, target, most, t, srtt;

	if (!tcp_is_cwnd_limited(sk)) {
		/* §5.8. */
		cubic_pause(cubic, now);
		return;
	}
	cc_window_sync(&cubic->window, tp);
	if (cc_in_slow_start(&cubic->window, tp)) {
		cc_window_set(&cubic->window, tp, cc_slow_start(&cubic->window, tp, acked));
		return;
	}
	cwnd = cubic->window.exact;
	if (!(cubic->flags & IN_STAGE))
		cubic_begin_stage(cubic, now);
	if (cubic->flags & PAUSED) {
		cubic->start += now - cubic->paused;
		cubic->flags &= ~PAUSED;
	}
	/* A pause that began before the stage moves its beginning past now. */
	t = after(now, cubic->start) ? now - cubic->start : 0;
	srtt = ((u64)tp->srtt_us << PER_SECOND) / (8 * USEC_PER_SEC);
	/* §4.2, §4.4, §4.5. */
	target = cubic_window(cubic, t + srtt);
	most = cwnd + cwnd / 2;
	if (target < cwnd)
		target = cwnd;
	if (target > most)
		target = most;
	grown = cwnd + cc_share(acked, target - cwnd, cwnd);
	if (grown > target)
		grown = target;
	/* §4.3: 3 (1 - 0.7) / (1 + 0.7) is 9/17. */
	cubic->w_est += cc_share(acked, cubic->w_est >= cubic->prior ? CC_ONE : CC_ONE * 9 / 17, cwnd);
	if (cubic_window(cubic, t) < cubic->w_est)
		grown = cubic->w_est > cwnd ? cubic->w_est : cwnd;
	cc_window_set(&cubic->window, tp, grown);
}

SEC("struct_ops")
u32 BPF_PROG(cubic_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct cubic *cubic = inet_csk_ca(sk);
	u64 cwnd;
	u32 reduced;

	cc_window_sync(&cubic->window, tp);
	cwnd = cubic->window.exact;
	cubic->exact_before = cwnd;
	cubic->ssthresh_before = cc_ssthresh(&cubic->window, tp);
	cubic->w_max_before = cubic->w_max;
	cubic->prior_before = cubic->prior;
	/* An undo before another stage begins goes on in this one. */
	cubic->flags = cubic->flags & IN_STAGE ? (cubic->flags & PAUSED) | STAGE_KEPT : 0;
	cubic->prior = cwnd;
	/* §4.6. */
	reduced = cc_reduce(&cubic->window, cwnd / 10 * 7);
	/*
	 * The kernel sends ssthresh / cwnd segments per delivered one during the recovery: never more than one. So the
	 * least ssthresh of two segments (RFC 5681, equation 4) is one after a restart, whose window is one segment.
	 */
	return reduced > tp->snd_cwnd ? tp->snd_cwnd : reduced;
}

SEC("struct_ops")
void BPF_PROG(cubic_set_state, struct sock *sk, u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct cubic *cubic = inet_csk_ca(sk);
	u64 cwnd = cubic->prior;

	cubic->lost = tp->lost;
	cubic->entered = cubic_time(bpf_ktime_get_ns());
	if ((state != TCP_CA_Recovery && state != TCP_CA_CWR) || cubic->window.shown)
		return;
	/* §4.7. */
	cubic->w_max = cwnd < cubic->w_max ? cwnd / 20 * 17 : cwnd;
}

/* The timer's losses during a recovery: start over, as at a timeout (§4.8). */
SEC("struct_ops")
void BPF_PROG(cubic_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct cubic *cubic = inet_csk_ca(sk);
	u32 now, grace;
	u64 again;

	if (!tcp_in_recovery(sk) || tp->lost == cubic->lost || (cubic->flags & STARTS_OVER))
		return;
	cubic->lost = tp->lost;
	now = cubic_time(bpf_ktime_get_ns());
	grace = ((u64)tp->srtt_us << PER_SECOND) * 5 / (32 * USEC_PER_SEC);
	if (!after(now, cubic->entered + grace))
		return;
	cubic->flags |= STARTS_OVER;
	cubic->prior = cubic->window.reduced;
	cubic->w_max = 0;
	again = cubic->window.reduced / 10 * 7;
	if (again < 2 * CC_ONE)
		again = 2 * CC_ONE;
	if (again >> 32 < tp->snd_ssthresh)
		cc_ssthresh_set(&cubic->window, tp, again);
	/* What is taken back, should this prove needless, is the reduction before. */
}

SEC("struct_ops")
void BPF_PROG(cubic_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct cubic *cubic = inet_csk_ca(sk);

	if (event == CA_EVENT_LOSS) {
		cc_forget_fraction(&cubic->window);
		cubic->w_max = 0;
		cubic->flags &= ~(IN_STAGE | PAUSED | STARTS_OVER);
	}
	if (event == CA_EVENT_COMPLETE_CWR && (cubic->flags & STARTS_OVER)) {
		cubic->flags &= ~STARTS_OVER;
		cc_window_set(&cubic->window, tp, CC_ONE);
	}
	if (event == CA_EVENT_CWND_RESTART)
		cubic_leave_stage(cubic);
	if (event == CA_EVENT_TX_START) {
		u64 now = bpf_ktime_get_ns();
		u64 sent = tp->tcp_wstamp_ns;

		cubic_pause(cubic, cubic_time(sent < now ? sent : now));
	}
}

SEC("struct_ops")
u32 BPF_PROG(cubic_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct cubic *cubic = inet_csk_ca(sk);
	u64 before = cubic->exact_before;

	cc_window_sync(&cubic->window, tp);
	cubic->exact_before = 0;
	cubic->flags &= ~STARTS_OVER;
	/* §4.9. */
	if (cubic->window.exact >= before)
		return tp->snd_cwnd;
	cubic->w_max = cubic->w_max_before;
	cubic->prior = cubic->prior_before;
	cubic->flags &= ~IN_STAGE;
	if (cubic->flags & STAGE_KEPT)
		cubic->flags |= IN_STAGE;
	return cc_undo(&cubic->window, tp, before, cubic->ssthresh_before);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops cubic_plus = {
	.init = (void *)cubic_init,
	.pkts_acked = (void *)cubic_pkts_acked,
	.ssthresh = (void *)cubic_ssthresh,
	.set_state = (void *)cubic_set_state,
	.cong_avoid = (void *)cubic_cong_avoid,
	.cwnd_event = (void *)cubic_cwnd_event,
	.undo_cwnd = (void *)cubic_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "ab_cubicplus",
};
