/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What programs for the kernel are marked with, and the helpers that a control can use. */
#ifndef ANABRANCH_BPF_HELPERS_H
#define ANABRANCH_BPF_HELPERS_H

#define SEC(name) __attribute__((section(name), used))
#ifdef __bpf__
#define __ksym __attribute__((section(".ksyms")))
#else
#define __ksym
#endif
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#ifndef __noinline
#define __noinline __attribute__((noinline))
#endif
#ifndef __weak
#define __weak __attribute__((weak))
#endif
#ifndef NULL
#define NULL ((void *)0)
#endif

#ifdef __bpf__
/* Helpers are called by number (bpf-helpers(7)). */
static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static u64 (*const bpf_jiffies64)(void) = (void *)118;
#else
/* Time is the simulation's. */
u64 bpf_ktime_get_ns(void);
/* In milliseconds: the simulation's jiffy. */
u64 bpf_jiffies64(void);
#endif

#define bpf_printk(...) ((void)0)

#endif
