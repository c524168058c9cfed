/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* As the set for the kernel, for a native compiler. Time is the simulation's. */
#ifndef ANABRANCH_BPF_HELPERS_H
#define ANABRANCH_BPF_HELPERS_H

#define SEC(name) __attribute__((section(name), used))
#define __ksym
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

u64 bpf_ktime_get_ns(void);
/* In milliseconds: the simulation's jiffy. */
u64 bpf_jiffies64(void);

#define bpf_printk(...) ((void)0)

#endif
