/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Share-weighted RED on a virtual queue, in integers: the decision of the simulator's queue `share-red`
 * (crates/path/src/queue/share_red.rs) for the same arrivals, rate and random numbers.
 *
 * The same text is part of the program for the kernel (share_red.bpf.c) and of a test that runs it natively. It calls no
 * function outside of this file.
 *
 * Fixed point: Qn is an integer with n fractional bits. Probabilities are Q60; logarithms, exponents and the load are Q40; the
 * average is Q40 packets or Q24 bytes. crates/bpf/src/aqm/config.rs computes `struct aqm_config` in floating point.
 */
#ifndef ANABRANCH_AQM_RED_H
#define ANABRANCH_AQM_RED_H

#define AQM_INLINE static inline __attribute__((always_inline))

/* Packets of the virtual queue, records of the history, and slots of connections: powers of two. */
#define AQM_QUEUE 16384
#define AQM_HISTORY 16384
#define AQM_SLOTS 131072
/* Records of one aggregate of segments, at most. */
#define AQM_RECORDS 16
/* Steps of the virtual queue that are tried individually before the binary search, and the steps of that search. */
#define AQM_NEAR 4
#define AQM_SEARCH 15

#define AQM_ONE (1ULL << 60)
#define AQM_UNIT (1ULL << 40)
#define AQM_PS_PER_S 1000000000000ULL
/* A connection is active if it has at least 1/16 of the records of the heaviest. */
#define AQM_TAKES_PART 16

enum aqm_verdict { AQM_PASS = 0, AQM_MARK = 1, AQM_DROP = 2 };
enum aqm_spacing { AQM_UNIFORM = 0, AQM_DRAWN = 1, AQM_GEOMETRIC = 2, AQM_WAITING = 3, AQM_SUMMED = 4 };

/* Multiplication by a real number: (x * factor) >> right. */
struct aqm_scale {
	u64 factor;
	s64 right;
};

/* All members have eight octets: config.rs writes them as words, in this order. */
struct aqm_config {
	u64 byte_time;	    /* whole ps of a byte, */
	u64 byte_part;	    /* and the rest in Q64, rounded up */
	u64 origin;	    /* of the time, in ns of CLOCK_MONOTONIC */
	u64 deadline;	    /* after it every packet passes, in the same clock; 0: none */
	u64 clock;	    /* 1: the time is the packet's time stamp, for tests */
	u64 hash_key;	    /* of the connections' slots */
	u64 draw_key;	    /* of the random numbers */
	u64 in_bytes;
	u64 limit_packets;
	u64 limit_bytes;
	struct aqm_scale weight;
	struct aqm_scale decay; /* idle time in ps to a negative binary logarithm */
	u64 min;
	u64 max;
	u64 certain;
	u64 max_probability;
	struct aqm_scale slope;	 /* average above min to a probability */
	struct aqm_scale gentle; /* average above max to a probability */
	u64 spacing;
	u64 ecn;
	u64 hard_drop;
	struct aqm_scale per_byte; /* factor 0: the probability does not depend on the size */
	u64 exponent;
	s64 steep_rise;
	struct aqm_scale to_steep; /* probability to the part of steep_rise */
	u64 sparing_exponent;
	u64 load_exponent;
	u64 record_interval;
	u64 statistics_interval;
	u64 history_length;
	s64 log_least; /* binary logarithm of a tenth of the history */
	struct aqm_scale load_weight;
	u64 powers[256];	   /* 2^(i / 2^8), Q63 */
	u64 fine_powers[256];	   /* 2^(i / 2^16), Q63 */
	u64 logs[AQM_HISTORY + 1]; /* binary logarithm of i */
};

/* A packet of the virtual queue: the start of its transmission, and the totals up to and including it. */
struct aqm_entry {
	u64 start;
	u64 bytes;
	u64 packets;
};

struct aqm_state {
#ifdef __bpf__
	struct bpf_spin_lock lock;
#else
	u32 lock;
#endif
	u32 is_started;
	/* Times are ps since the origin. */
	u64 last;
	u64 busy_until;
	u64 idle_since;
	/* The virtual queue. `head`: the first entry that waits; `tail`: one past the last; the totals of the others. */
	u32 head;
	u32 tail;
	u64 started_bytes;
	u64 started_packets;
	u64 all_bytes;
	u64 all_packets;
	/* RED. */
	u64 average;
	u64 plain; /* the probability for it */
	u64 arrivals;
	u64 count;
	u64 drawn;
	u64 is_drawn;
	u64 sum;
	u64 sum_limit;
	/* Load. */
	u64 load_packets;
	u64 load_work;
	u64 load_since;
	u64 load_mean;
	s64 load_log;
	/* History. */
	u64 until_record;
	u64 until_statistics;
	u64 records_length;
	u64 records_next;
	u64 most;
	u64 least_active;
	u64 inactive;
	u64 connections;
	u64 taking_part;
	s64 log_part; /* binary logarithm of the share that one record is, times the active connections */
	struct aqm_entry queue[AQM_QUEUE];
	u32 records[AQM_HISTORY];
	u32 with_count[AQM_HISTORY];
	u16 counts[AQM_SLOTS];
};

/* Read by `anabranch aqm status` (crates/bpf/src/aqm/status.rs), in this order. */
struct aqm_counters {
	u64 packets;
	u64 bytes;
	u64 dropped_packets;
	u64 dropped_bytes;
	u64 marked_packets;
	u64 full_packets;
	u64 aggregates;
	u64 other_frames;
	/* After the last packet. */
	u64 average;
	u64 waiting_packets;
	u64 waiting_bytes;
	u64 connections;
	u64 active_connections;
	u64 load;
};

struct aqm_arrival {
	u64 now; /* ns */
	u64 slot;
	u64 bytes;
	u64 packets;
	u64 is_capable; /* of ECN */
};

AQM_INLINE u64 aqm_high(u64 a, u64 b)
{
	u64 al = (u32)a, ah = a >> 32, bl = (u32)b, bh = b >> 32;
	u64 mid = ah * bl + ((al * bl) >> 32);
	u64 low = al * bh + (u32)mid;

	return ah * bh + (mid >> 32) + (low >> 32);
}

/* (a * b) >> right, at most 2^64 - 1. */
AQM_INLINE u64 aqm_mul(u64 a, u64 b, s64 right)
{
	u64 high = aqm_high(a, b), low = a * b;

	if (right >= 64)
		return right >= 128 ? 0 : high >> (right - 64);
	if (right <= 0)
		return high == 0 && (right == 0 || low == 0) ? low : ~0ULL;
	if (high >> right)
		return ~0ULL;
	return (high << (64 - right)) | (low >> right);
}

AQM_INLINE u64 aqm_scaled(u64 x, struct aqm_scale scale)
{
	return aqm_mul(x, scale.factor, scale.right);
}

/* a * b of a signed and an unsigned Q40. */
AQM_INLINE s64 aqm_mul_signed(s64 a, u64 b)
{
	if (a < 0)
		return -(s64)aqm_mul(-a, b, 40);
	return aqm_mul(a, b, 40);
}

/* p * 2^log, at most 1; p and result Q60, log Q40. */
AQM_INLINE u64 aqm_times_power(const struct aqm_config *c, u64 p, s64 log)
{
	s64 whole = log >> 40;
	u64 part = log & (AQM_UNIT - 1);
	/* 2^(the lower 24 digits) - 1 = y + y^2 / 2, y < 2^-16; ln 2 in Q40. */
	u64 y = ((part & 0xffffff) * 0xb17217f7d2ULL) >> 16;
	u64 rest = y + (((y >> 16) * (y >> 16)) >> 33);
	/* Q62 */
	u64 power = aqm_high(c->powers[(part >> 32) & 255], c->fine_powers[(part >> 24) & 255]);
	u64 product;

	power += ((power >> 32) * (rest >> 16)) >> 16;
	product = aqm_mul(p, power, 62 - whole);
	return product < AQM_ONE ? product : AQM_ONE;
}

/* Binary logarithm of x, which is above 0 and below 1; x and result Q40. */
AQM_INLINE s64 aqm_log(const struct aqm_config *c, u64 x)
{
	u64 top, rest, r, r2;
	s64 size = 0;

	for (u64 step = 32; step; step >>= 1)
		if (x >> (size + step))
			size += step;
	if (size <= 13)
		return (s64)c->logs[x & (AQM_HISTORY - 1)] - (40LL << 40);
	/* The upper 14 bits are in the table. r is the rest as a part of them, less than 2^-13, in Q50. */
	top = (x >> (size - 13)) & (AQM_HISTORY - 1);
	rest = x & ((1ULL << (size - 13)) - 1);
	r = (rest << (63 - size)) / (top | 1ULL << 13);
	r2 = ((r >> 12) * (r >> 12)) >> 26;
	r = r - (r2 >> 1) + ((r2 * r) >> 50) / 3;
	/* 1 / ln 2 in Q63. */
	return (s64)(c->logs[top] + aqm_mul(r, 0xb8aa3b295c17f0bcULL, 73)) + ((size - 53) << 40);
}

/* floor(a / b) in Q40, at most 2. */
AQM_INLINE u64 aqm_ratio(u64 a, u64 b)
{
	u64 ratio = 0;

	/* 20 further bits are below 2^64. */
	for (int i = 0; i < 20; i++)
		if (b >> 43) {
			a >>= 1;
			b >>= 1;
		}
	if (b == 0 || a / b >= 2)
		return 2 * AQM_UNIT;
	ratio = a / b;
	a %= b;
	ratio = (ratio << 20) | ((a << 20) / b);
	a = (a << 20) % b;
	return (ratio << 20) | ((a << 20) / b);
}

/* The 53 random bits of an index, as Q60: Philox4x32-10 (Salmon et al., SC 2011). */
AQM_INLINE u64 aqm_draw(u64 key, u64 index)
{
	u32 c0 = index, c1 = index >> 32, c2 = 0, c3 = 0, k0 = key, k1 = key >> 32;

	for (int i = 0; i < 10; i++) {
		u64 p0 = (u64)c0 * 0xd2511f53U, p1 = (u64)c2 * 0xcd9e8d57U;

		c0 = (u32)(p1 >> 32) ^ c1 ^ k0;
		c2 = (u32)(p0 >> 32) ^ c3 ^ k1;
		c1 = (u32)p1;
		c3 = (u32)p0;
		k0 += 0x9e3779b9U;
		k1 += 0xbb67ae85U;
	}
	return (((u64)(c0 >> 5) << 26) | (c1 >> 6)) << 7;
}

/* Probability for the current average. */
AQM_INLINE u64 aqm_plain(const struct aqm_config *c, u64 average)
{
	if (average < c->min)
		return 0;
	if (average >= c->certain)
		return AQM_ONE;
	if (average < c->max)
		return aqm_scaled(average - c->min, c->slope);
	return c->max_probability + aqm_scaled(average - c->max, c->gentle);
}

/* Sets the number of records from which on a connection is active. It moves by one at most. */
AQM_INLINE void aqm_set_active(struct aqm_state *s)
{
	u64 least = (s->most + AQM_TAKES_PART - 1) / AQM_TAKES_PART;

	if (least > s->least_active) {
		if (s->least_active)
			s->inactive += s->with_count[s->least_active & (AQM_HISTORY - 1)];
		s->least_active = least;
	} else if (least < s->least_active) {
		s->least_active = least;
		if (least)
			s->inactive -= s->with_count[least & (AQM_HISTORY - 1)];
	}
}

AQM_INLINE void aqm_leave_count(struct aqm_state *s, u64 count)
{
	s->with_count[count & (AQM_HISTORY - 1)]--;
	if (count < s->least_active)
		s->inactive--;
}

AQM_INLINE void aqm_enter_count(struct aqm_state *s, u64 count)
{
	s->with_count[count & (AQM_HISTORY - 1)]++;
	if (count < s->least_active)
		s->inactive++;
}

AQM_INLINE void aqm_set_log(const struct aqm_config *c, struct aqm_state *s)
{
	u64 length = s->records_length & (AQM_HISTORY - 1);

	s->log_part = c->logs[s->taking_part & (AQM_HISTORY - 1)] -
		      (10 * length >= c->history_length ? (s64)c->logs[length] : c->log_least);
}

AQM_INLINE void aqm_record(const struct aqm_config *c, struct aqm_state *s, u64 slot)
{
	u64 next = s->records_next & (AQM_HISTORY - 1);
	u64 count;

	if (s->records_length >= c->history_length) {
		u64 oldest = s->records[next] & (AQM_SLOTS - 1);

		count = s->counts[oldest];
		aqm_leave_count(s, count);
		if (count > 1)
			aqm_enter_count(s, count - 1);
		else
			s->connections--;
		s->counts[oldest] = count - 1;
		if (count == s->most && s->with_count[count & (AQM_HISTORY - 1)] == 0) {
			s->most = count - 1;
			aqm_set_active(s);
		}
	} else {
		s->records_length++;
		aqm_set_log(c, s);
	}
	s->records[next] = slot;
	s->records_next = next + 1 >= c->history_length ? 0 : next + 1;
	count = s->counts[slot & (AQM_SLOTS - 1)];
	if (count)
		aqm_leave_count(s, count);
	else
		s->connections++;
	count++;
	aqm_enter_count(s, count);
	s->counts[slot & (AQM_SLOTS - 1)] = count;
	if (count > s->most) {
		s->most = count;
		aqm_set_active(s);
	}
}

AQM_INLINE void aqm_history(const struct aqm_config *c, struct aqm_state *s, const struct aqm_arrival *a)
{
	s->until_record -= a->packets;
	for (int i = 0; i < AQM_RECORDS; i++)
		if ((s64)s->until_record <= 0) {
			s->until_record += c->record_interval;
			aqm_record(c, s, a->slot);
		}
	if ((s64)s->until_record <= 0)
		s->until_record = c->record_interval;
	s->until_statistics -= a->packets;
	if ((s64)s->until_statistics <= 0) {
		s->until_statistics = c->statistics_interval;
		s->taking_part = s->connections - s->inactive;
		aqm_set_log(c, s);
	}
}

/* `work` is the time of transmission. */
AQM_INLINE void aqm_load(const struct aqm_config *c, struct aqm_state *s, u64 now, u64 packets, u64 work)
{
	u64 sample = AQM_UNIT;

	s->load_packets += packets;
	s->load_work += work;
	if (s->load_packets < c->statistics_interval)
		return;
	if ((s64)(now - s->load_since) > 0)
		sample = aqm_ratio(s->load_work, now - s->load_since);
	if (sample >= s->load_mean)
		s->load_mean += aqm_scaled(sample - s->load_mean, c->load_weight);
	else
		s->load_mean -= aqm_scaled(s->load_mean - sample, c->load_weight);
	s->load_packets = 0;
	s->load_work = 0;
	s->load_since = now;
	s->load_log = 0;
	if (s->load_mean && s->load_mean < AQM_UNIT)
		s->load_log = aqm_mul_signed(aqm_log(c, s->load_mean), c->load_exponent);
}

/* Multiplies a probability by the factor of the connection's share and of the load. `before`: the probability before this packet. */
AQM_INLINE u64 aqm_weighted(const struct aqm_config *c, struct aqm_state *s, u64 p, u64 before, u64 slot)
{
	u64 count = s->counts[slot & (AQM_SLOTS - 1)] & (AQM_HISTORY - 1);
	u64 active = s->taking_part;
	u64 length = s->records_length, exponent;
	u64 whole = 10 * length >= c->history_length ? 10 * length : c->history_length;
	s64 log;

	if (before == 0)
		return p;
	if (s->load_mean == 0 && c->load_exponent)
		return 0;
	if (10 * count * active < whole) {
		exponent = c->sparing_exponent;
		if (count == 0 || active == 0)
			return exponent ? 0 : aqm_times_power(c, p, s->load_log);
	} else {
		u64 way = aqm_scaled(before, c->to_steep);

		exponent = c->exponent + aqm_mul_signed(c->steep_rise, way < AQM_UNIT ? way : AQM_UNIT);
	}
	log = c->logs[count] + s->log_part;
	return aqm_times_power(c, p, aqm_mul_signed(log, exponent) + s->load_log);
}

AQM_INLINE void aqm_begin_gap(struct aqm_state *s)
{
	s->count = 0;
	s->is_drawn = 0;
}

AQM_INLINE void aqm_begin_sum(struct aqm_state *s)
{
	s->sum = 0;
	s->sum_limit = AQM_ONE;
}

/* Whether a packet with this probability is dropped or marked. */
AQM_INLINE int aqm_signals(const struct aqm_config *c, struct aqm_state *s, u64 p, u64 index)
{
	u64 passed, number;

	if (c->spacing == AQM_SUMMED) {
		s->sum += p;
		if (s->sum < s->sum_limit)
			return 0;
		s->sum -= s->sum_limit;
		s->sum_limit = AQM_ONE / 2 + aqm_draw(c->draw_key, index);
		return 1;
	}
	passed = aqm_mul(s->count, p, 0);
	if (c->spacing == AQM_DRAWN) {
		if (!s->is_drawn)
			s->drawn = aqm_draw(c->draw_key, index);
		s->is_drawn = 1;
		return passed >= AQM_ONE || s->drawn < passed + p;
	}
	if (c->spacing == AQM_WAITING) {
		if (passed < AQM_ONE)
			return 0;
		passed -= AQM_ONE;
	}
	number = aqm_draw(c->draw_key, index);
	if (c->spacing == AQM_GEOMETRIC)
		return number < p;
	return passed >= AQM_ONE || aqm_mul(number, AQM_ONE - passed, 60) < p;
}

/* The queue's decision about a packet for which there is room: pass, signal (mark), or certainly drop. */
AQM_INLINE int aqm_judge(const struct aqm_config *c, struct aqm_state *s, const struct aqm_arrival *a, u64 before,
			 u64 index)
{
	u64 p;

	if (s->average < c->min || s->average >= c->certain) {
		aqm_begin_gap(s);
		aqm_begin_sum(s);
		return s->average < c->min ? AQM_PASS : AQM_DROP;
	}
	p = s->plain;
	if (c->per_byte.factor)
		p = aqm_mul(aqm_scaled(p, c->per_byte), a->bytes, 0);
	else if (a->packets > 1)
		p = aqm_mul(p, a->packets, 0);
	/* More than 1 is possible before the weight, which may be small. */
	p = aqm_weighted(c, s, p < 8 * AQM_ONE ? p : 8 * AQM_ONE, before, a->slot);
	if (p > AQM_ONE)
		p = AQM_ONE;
	if (aqm_signals(c, s, p, index)) {
		aqm_begin_gap(s);
		return AQM_MARK;
	}
	s->count += a->packets;
	return AQM_PASS;
}

/* Removes the packets whose transmission has started from the virtual queue. */
AQM_INLINE void aqm_serve(struct aqm_state *s, u64 now)
{
	u32 head = s->head, tail = s->tail, low, high;

	for (int i = 0; i < AQM_NEAR; i++)
		if (head != tail && (s64)(s->queue[head & (AQM_QUEUE - 1)].start - now) <= 0)
			head++;
	low = head;
	if (head != tail && (s64)(s->queue[head & (AQM_QUEUE - 1)].start - now) <= 0) {
		high = tail;
		for (int i = 0; i < AQM_SEARCH; i++) {
			u32 middle = low + ((high - low) >> 1);

			if (low != high) {
				if ((s64)(s->queue[middle & (AQM_QUEUE - 1)].start - now) <= 0)
					low = middle + 1;
				else
					high = middle;
			}
		}
	}
	if (low != s->head) {
		s->started_bytes = s->queue[(low - 1) & (AQM_QUEUE - 1)].bytes;
		s->started_packets = s->queue[(low - 1) & (AQM_QUEUE - 1)].packets;
		s->head = low;
	}
}

/* Prepares the state for the first packet; all octets are 0 before it. */
AQM_INLINE void aqm_start(const struct aqm_config *c, struct aqm_state *s)
{
	s->is_started = 1;
	s->until_record = c->record_interval;
	s->until_statistics = c->statistics_interval;
	aqm_begin_sum(s);
}

/* Time of transmission in ps, rounded down. */
AQM_INLINE u64 aqm_work(const struct aqm_config *c, u64 bytes)
{
	return bytes * c->byte_time + ((bytes * (c->byte_part >> 32) + ((bytes * (u32)c->byte_part) >> 32)) >> 32);
}

AQM_INLINE int aqm_decide(const struct aqm_config *c, struct aqm_state *s, struct aqm_counters *n,
			  const struct aqm_arrival *a)
{
	u64 now = (a->now - c->origin) * 1000, waiting_bytes, waiting_packets, before, index, work;
	int verdict, is_idle;

	if (!s->is_started)
		aqm_start(c, s);
	/* Another processor was faster. */
	if ((s64)(now - s->last) < 0 && s->last - now < AQM_PS_PER_S)
		now = s->last;
	/* After 50 days the difference of two times would be negative; an hour is as good. */
	if (now - s->last > 3600 * AQM_PS_PER_S)
		s->idle_since = s->busy_until = now - 3600 * AQM_PS_PER_S;
	s->last = now;
	work = aqm_work(c, a->bytes);
	aqm_serve(s, now);
	waiting_bytes = s->all_bytes - s->started_bytes;
	waiting_packets = s->all_packets - s->started_packets;
	is_idle = (s64)(s->busy_until - now) <= 0;

	before = s->plain;
	aqm_history(c, s, a);
	aqm_load(c, s, now, a->packets, work);

	if (is_idle) {
		u64 log = aqm_scaled(now - s->idle_since, c->decay);

		/* p is any Q; 2^-64 of an average is nothing. */
		if (s->average)
			s->average = log >> 46 ? 0 : aqm_times_power(c, s->average, -(s64)log);
	} else {
		u64 target = c->in_bytes ? waiting_bytes << 24 : waiting_packets << 40;

		if (target >= s->average)
			s->average += aqm_scaled(target - s->average, c->weight);
		else
			s->average -= aqm_scaled(s->average - target, c->weight);
	}
	s->plain = aqm_plain(c, s->average);
	index = s->arrivals++;
	if (waiting_packets < c->limit_packets && waiting_bytes + a->bytes <= c->limit_bytes &&
	    s->tail - s->head < AQM_QUEUE) {
		verdict = aqm_judge(c, s, a, before, index);
		if (verdict != AQM_PASS) {
			int marks = c->ecn && a->is_capable && (verdict == AQM_MARK || !c->hard_drop);

			verdict = marks ? AQM_MARK : AQM_DROP;
		}
	} else {
		aqm_begin_gap(s);
		n->full_packets += a->packets;
		verdict = AQM_DROP;
	}

	n->packets += a->packets;
	n->bytes += a->bytes;
	n->aggregates += a->packets > 1;
	if (verdict == AQM_DROP) {
		n->dropped_packets += a->packets;
		n->dropped_bytes += a->bytes;
		if (is_idle)
			s->idle_since = now;
	} else {
		struct aqm_entry *entry = &s->queue[s->tail & (AQM_QUEUE - 1)];

		n->marked_packets += verdict == AQM_MARK ? a->packets : 0;
		s->all_bytes += a->bytes;
		s->all_packets += a->packets;
		entry->start = is_idle ? now : s->busy_until;
		entry->bytes = s->all_bytes;
		entry->packets = s->all_packets;
		s->tail++;
		s->busy_until = entry->start + work;
		s->idle_since = s->busy_until;
		if (is_idle) {
			s->head = s->tail;
			s->started_bytes = s->all_bytes;
			s->started_packets = s->all_packets;
		}
	}
	n->average = s->average;
	n->waiting_packets = s->all_packets - s->started_packets;
	n->waiting_bytes = s->all_bytes - s->started_bytes;
	n->connections = s->connections;
	n->active_connections = s->taking_part;
	n->load = s->load_mean;
	return verdict;
}

#endif
