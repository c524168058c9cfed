/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* As the set for the kernel, for a native compiler: an ordinary function. */
#ifndef ANABRANCH_BPF_TRACING_H
#define ANABRANCH_BPF_TRACING_H

#define BPF_PROG(function, ...) function(__VA_ARGS__)

#endif
