/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * BPF_PROG: a function with named arguments, which the kernel hands over as an array of words. To a native
 * compiler it is an ordinary one.
 */
#ifndef ANABRANCH_BPF_TRACING_H
#define ANABRANCH_BPF_TRACING_H

#ifdef __bpf__
#define ANABRANCH_WORD(i) ((void *)ctx[i])
#define ANABRANCH_WORDS_1 ANABRANCH_WORD(0)
#define ANABRANCH_WORDS_2 ANABRANCH_WORDS_1, ANABRANCH_WORD(1)
#define ANABRANCH_WORDS_3 ANABRANCH_WORDS_2, ANABRANCH_WORD(2)
#define ANABRANCH_WORDS_4 ANABRANCH_WORDS_3, ANABRANCH_WORD(3)
#define ANABRANCH_FIFTH(a, b, c, d, e, ...) e
#define ANABRANCH_WORDS(...)                                                             \
	ANABRANCH_FIFTH(__VA_ARGS__, ANABRANCH_WORDS_4, ANABRANCH_WORDS_3, ANABRANCH_WORDS_2, \
			ANABRANCH_WORDS_1)

/* An argument may be a pointer or a number: a word becomes either without a cast of its own. */
#define BPF_PROG(function, ...)                                                          \
	function(unsigned long long *ctx);                                               \
	static inline __attribute__((always_inline)) typeof(function(0))                 \
		anabranch_body_of_##function(__VA_ARGS__);                               \
	typeof(function(0)) function(unsigned long long *ctx)                            \
	{                                                                                \
		_Pragma("GCC diagnostic push")                                           \
		_Pragma("GCC diagnostic ignored \"-Wint-conversion\"")                   \
		return anabranch_body_of_##function(ANABRANCH_WORDS(__VA_ARGS__));       \
		_Pragma("GCC diagnostic pop")                                            \
	}                                                                                \
	static inline __attribute__((always_inline)) typeof(function(0))                 \
		anabranch_body_of_##function(__VA_ARGS__)
#else
#define BPF_PROG(function, ...) function(__VA_ARGS__)
#endif

#endif
