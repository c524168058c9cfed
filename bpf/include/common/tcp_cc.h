/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What congestion controls have in common, in the kernel and in the simulator.
 *
 * A window is kept in Q16 segments (65536 is one segment): the kernel's snd_cwnd holds whole ones, and a
 * fraction lost at every acknowledgment would be a slower control.
 */
#ifndef ANABRANCH_TCP_CC_H
#define ANABRANCH_TCP_CC_H

#define TCP_INFINITE_SSTHRESH 0x7fffffff
/* Any user may choose the control, not only a privileged one. */
#define TCP_CONG_NON_RESTRICTED 0x1
#define USEC_PER_SEC 1000000ULL
#define NSEC_PER_USEC 1000ULL

extern u32 tcp_slow_start(struct tcp_sock *tp, u32 acked) __ksym;
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
extern u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

static __always_inline struct tcp_sock *tcp_sk(const struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline struct inet_connection_sock *inet_csk(const struct sock *sk)
{
	return (struct inet_connection_sock *)sk;
}

/* The control's own 104 bytes. */
static __always_inline void *inet_csk_ca(const struct sock *sk)
{
	return (void *)inet_csk(sk)->icsk_ca_priv;
}

/* A sequence number comes before another (RFC 9293 §3.4). */
static __always_inline bool before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}
#define after(a, b) before(b, a)

static __always_inline bool tcp_in_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

#if defined(__bpf__)
/* A bit field, wherever the running kernel has it: clang's own relocations say where. */
#define ANABRANCH_BIT_FIELD(pointer, field)                                                         \
	({                                                                                          \
		const u8 *byte_ = (const u8 *)(pointer) +                                           \
				  __builtin_preserve_field_info((pointer)->field, 0);               \
		u64 word_ = 0;                                                                      \
		switch (__builtin_preserve_field_info((pointer)->field, 1)) {                       \
		case 1: word_ = *(const u8 *)byte_; break;                                          \
		case 2: word_ = *(const u16 *)byte_; break;                                         \
		case 4: word_ = *(const u32 *)byte_; break;                                         \
		case 8: word_ = *(const u64 *)byte_; break;                                         \
		}                                                                                   \
		word_ <<= __builtin_preserve_field_info((pointer)->field, 4);                       \
		word_ >> __builtin_preserve_field_info((pointer)->field, 5);                        \
	})
#else
#define ANABRANCH_BIT_FIELD(pointer, field) ((u64)(pointer)->field)
#endif

/*
 * The window kept the sender from sending more (RFC 7661 §4.2). In slow start a window counts as used
 * when half of it was, or senders whose data leaves in bursts would never double it.
 */
static __always_inline bool tcp_is_cwnd_limited(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (ANABRANCH_BIT_FIELD(tp, is_cwnd_limited))
		return true;
	return tcp_in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out;
}

#define Q16 16
#define Q16_ONE (1ULL << Q16)

/* A window with its fraction. */
struct cc_window {
	u64 exact;
	/* What the last reduction left, which is ssthresh with its fraction. */
	u64 reduced;
	/* snd_cwnd as it was left: if the kernel has changed it, the fraction is void. */
	u32 shown;
};

static __always_inline void cc_window_init(struct cc_window *window, const struct tcp_sock *tp)
{
	window->exact = (u64)tp->snd_cwnd << Q16;
	window->reduced = 0;
	window->shown = tp->snd_cwnd;
}

/*
 * Takes over what the kernel has set: after a pause, a recovery, an undo. Where that is the last
 * reduction's whole part, its fraction holds too.
 */
static __always_inline u64 cc_window_now(struct cc_window *window, const struct tcp_sock *tp)
{
	u32 cwnd = tp->snd_cwnd;

	if (cwnd != window->shown) {
		window->exact = (u64)cwnd << Q16;
		if (window->reduced >> Q16 == cwnd)
			window->exact = window->reduced;
		window->shown = cwnd;
	}
	return window->exact;
}

static __always_inline u64 cc_ssthresh(const struct cc_window *window, const struct tcp_sock *tp)
{
	u32 ssthresh = tp->snd_ssthresh;

	return window->reduced >> Q16 == ssthresh ? window->reduced : (u64)ssthresh << Q16;
}

static __always_inline void cc_window_set(struct cc_window *window, struct tcp_sock *tp, u64 exact)
{
	u64 most = (u64)tp->snd_cwnd_clamp << Q16;

	if (exact > most)
		exact = most;
	if (exact < Q16_ONE)
		exact = Q16_ONE;
	window->exact = exact;
	window->shown = exact >> Q16;
	tp->snd_cwnd = window->shown;
}

/* What ssthresh() returns for a reduction to `exact`, of which two segments are left at least. */
static __always_inline u32 cc_reduce(struct cc_window *window, u64 exact)
{
	if (exact < 2 * Q16_ONE)
		exact = 2 * Q16_ONE;
	window->reduced = exact;
	return exact >> Q16;
}

/* RFC 5681 §3.1 equation 2, without a limit on what one acknowledgment adds. */
static __always_inline void cc_slow_start(struct cc_window *window, struct tcp_sock *tp, u32 acked)
{
	u64 most = cc_ssthresh(window, tp);
	u64 exact = window->exact + ((u64)acked << Q16);

	cc_window_set(window, tp, exact < most ? exact : most);
}

static __always_inline bool cc_in_slow_start(const struct cc_window *window, const struct tcp_sock *tp)
{
	return window->exact < cc_ssthresh(window, tp);
}

#endif
