/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What congestion controls have in common, in the kernel and in the simulator.
 *
 * A window is kept in 2^-32 segments: the kernel's snd_cwnd holds whole ones, and a fraction lost at every
 * acknowledgment would be a slower control.
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

/*
 * RFC 5681 §3.1 in whole segments: slow start, without a limit on what one acknowledgment adds, to ssthresh;
 * from there on a segment for every window acknowledged (RFC 3465 §2.1), one for an acknowledgment at most.
 * Never beyond what the socket allows.
 */
static __always_inline void cc_reno_grow(struct tcp_sock *tp, u32 acked)
{
	u32 cwnd = tp->snd_cwnd;
	u32 count = tp->snd_cwnd_cnt + acked;

	if (tcp_in_slow_start(tp)) {
		u32 room = tp->snd_ssthresh - cwnd;

		cwnd += acked < room ? acked : room;
		tp->snd_cwnd = cwnd < tp->snd_cwnd_clamp ? cwnd : tp->snd_cwnd_clamp;
		return;
	}
	if (count >= cwnd) {
		count -= cwnd;
		if (cwnd < tp->snd_cwnd_clamp)
			tp->snd_cwnd = cwnd + 1;
	}
	tp->snd_cwnd_cnt = count;
}

/* A recovery is under way. */
static __always_inline bool tcp_in_recovery(const struct sock *sk)
{
	return ANABRANCH_BIT_FIELD(inet_csk(sk), icsk_ca_state) == TCP_CA_Recovery;
}

/* One segment. */
#define CC_ONE (1ULL << 32)
/* Hundredths of one. */
#define CC_HUNDREDTHS(n) (CC_ONE * (n) / 100)

/* A window with its fraction, in 2^-32 segments. */
struct cc_window {
	u64 exact;
	/* What the last reduction left, which is ssthresh with its fraction. */
	u64 reduced;
	/* snd_cwnd as it was left: if the kernel has changed it, the fraction is void. */
	u32 shown;
	u32 unused;
};

static __always_inline void cc_window_init(struct cc_window *window, const struct tcp_sock *tp)
{
	window->exact = (u64)tp->snd_cwnd << 32;
	window->reduced = 0;
	window->shown = tp->snd_cwnd;
}

/*
 * Takes over what the kernel has set after a pause, a recovery or an undo, and says whether it did.
 * Where that is the last reduction's whole part, its fraction holds too.
 */
static __always_inline bool cc_window_sync(struct cc_window *window, const struct tcp_sock *tp)
{
	u32 cwnd = tp->snd_cwnd;

	if (cwnd == window->shown)
		return false;
	window->exact = (u64)cwnd << 32;
	if (window->reduced >> 32 == cwnd)
		window->exact = window->reduced;
	window->shown = cwnd;
	return true;
}

static __always_inline u64 cc_ssthresh(const struct cc_window *window, const struct tcp_sock *tp)
{
	u32 ssthresh = tp->snd_ssthresh;

	return window->reduced >> 32 == ssthresh ? window->reduced : (u64)ssthresh << 32;
}

static __always_inline void cc_ssthresh_set(struct cc_window *window, struct tcp_sock *tp, u64 exact)
{
	window->reduced = exact;
	tp->snd_ssthresh = exact >> 32;
}

static __always_inline void cc_window_set(struct cc_window *window, struct tcp_sock *tp, u64 exact)
{
	u64 most = (u64)tp->snd_cwnd_clamp << 32;

	if (exact > most)
		exact = most;
	if (exact < CC_ONE)
		exact = CC_ONE;
	window->exact = exact;
	window->shown = exact >> 32;
	tp->snd_cwnd = window->shown;
}

/*
 * What ssthresh() returns for a reduction to `exact`, of which two segments are left at least. The kernel
 * sets the window next, even where its whole part stays the same.
 */
static __always_inline u32 cc_reduce(struct cc_window *window, u64 exact)
{
	if (exact < 2 * CC_ONE)
		exact = 2 * CC_ONE;
	window->reduced = exact;
	window->shown = 0;
	return exact >> 32;
}

/* The kernel is about to set the window for a reason of its own, a timeout. */
static __always_inline void cc_forget_fraction(struct cc_window *window)
{
	window->shown = 0;
}

/* A reduction is for nothing: what the window and ssthresh were. Returns what undo_cwnd() does. */
static __always_inline u32 cc_undo(struct cc_window *window, struct tcp_sock *tp, u64 exact, u64 ssthresh)
{
	cc_ssthresh_set(window, tp, ssthresh);
	window->exact = exact;
	window->shown = exact >> 32;
	return window->shown;
}

static __always_inline bool cc_in_slow_start(const struct cc_window *window, const struct tcp_sock *tp)
{
	return window->exact < cc_ssthresh(window, tp);
}

/* RFC 5681 §3.1 equation 2, without a limit on what one acknowledgment adds. */
static __always_inline u64 cc_slow_start(const struct cc_window *window, const struct tcp_sock *tp, u32 acked)
{
	u64 most = cc_ssthresh(window, tp);
	u64 exact = window->exact + ((u64)acked << 32);

	return exact < most ? exact : most;
}

/*
 * acked · step ÷ cwnd: what `acked` segments add to a window that `step` is to be added to per round trip.
 * Their product is less than 2^32 segments.
 */
static __always_inline u64 cc_share(u32 acked, u64 step, u64 cwnd)
{
	u64 product = step * acked;
	u64 divisor = cwnd >> 16;

	/* Of the quotient as many bits are kept as there is room for. */
	if (product >> 48)
		return (product / divisor) << 16;
	return (product << 16) / divisor;
}

/* `exact` times a factor in 2^-16, of which there are at most 2. */
static __always_inline u64 cc_scale(u64 exact, u32 factor)
{
	return (exact >> 16) * factor;
}

/* exact · excess ÷ total: the part of a window that waits in queues where `total` of time has `excess`. */
static __always_inline u64 cc_queued(u64 exact, u64 excess, u64 total)
{
	u64 share;

	/* The share in 2^-24, of times of which 39 bits are left. */
	if (total >> 39) {
		total >>= 24;
		excess >>= 24;
	}
	if (total == 0)
		return 0;
	share = (excess << 24) / total;
	return ((exact >> 16) * share) >> 8;
}

/* Bits that a number takes. */
static __always_inline u32 cc_bits(u64 x)
{
	u32 bits = 0;

	if (x >> 32) { bits += 32; x >>= 32; }
	if (x >> 16) { bits += 16; x >>= 16; }
	if (x >> 8) { bits += 8; x >>= 8; }
	if (x >> 4) { bits += 4; x >>= 4; }
	if (x >> 2) { bits += 2; x >>= 2; }
	if (x >> 1) { bits += 1; x >>= 1; }
	return bits + (u32)x;
}

#define CC_NEWTON(step) step step step step step step

/*
 * The square root, rounded down. Newton's steps from above: the first guess is less than twice too
 * large, six steps leave it at most one too large. A function of its own, so that the verifier looks at it
 * once.
 */
__noinline u64 cc_sqrt(u64 x)
{
	u64 y = 1ULL << ((cc_bits(x) + 1) / 2);

	if (x == 0)
		return 0;
	CC_NEWTON(y = (y + x / y) >> 1;)
	/* 2^32 squared is more than a number holds. */
	if (y >> 32)
		y = 0xffffffff;
	return y * y > x ? y - 1 : y;
}

/* The cube root, rounded down, as the square root. */
__noinline u64 cc_cbrt(u64 x)
{
	u64 y = 1ULL << ((cc_bits(x) + 2) / 3);

	if (x == 0)
		return 0;
	CC_NEWTON(y = (2 * y + x / (y * y)) / 3;)
	CC_NEWTON(y = (2 * y + x / (y * y)) / 3;)
	return y * y * y > x ? y - 1 : y;
}

#endif
