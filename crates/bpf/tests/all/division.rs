//! Divisions that C leaves undefined have the results of RFC 9669 §4.1 in the simulator.

use anabranch_bpf::{Source, native};
use anabranch_congestion::{Congestion, Init, Signal};
use anabranch_core::{
    interrupt::Interrupt,
    units::{Bytes, Instant},
};

const SMSS: u64 = 1000;

/// A control whose ssthresh is the result of `checks`, which set `wrong` to the number of a wrong
/// one.
fn control(checks: &str) -> String {
    format!(
        r#"
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char _license[] SEC("license") = "GPL";

SEC("struct_ops")
void BPF_PROG(divides_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{{
}}

SEC("struct_ops")
__u32 BPF_PROG(divides_ssthresh, struct sock *sk)
{{
	/* 0, which the compiler does not know. */
	__u32 zero = ((struct tcp_sock *)sk)->sacked_out;
	__u32 wrong = 0;

{checks}
	return 10 + wrong;
}}

SEC("struct_ops")
__u32 BPF_PROG(divides_undo_cwnd, struct sock *sk)
{{
	return 10;
}}

SEC(".struct_ops.link")
struct tcp_congestion_ops divides = {{
	.cong_avoid = (void *)divides_cong_avoid,
	.ssthresh = (void *)divides_ssthresh,
	.undo_cwnd = (void *)divides_undo_cwnd,
	.name = "divides",
}};
"#
    )
}

/// The number of the wrong check; 0 if there is none.
fn wrong(checks: &str) -> u64 {
    let source = Source {
        name: "divides.bpf.c".to_owned(),
        text: control(checks),
        folder: None,
    };
    let make = native::factory(&source, &Interrupt::default()).expect("it compiles");
    let mut control = make(&Init::new(Bytes::new(SMSS), Bytes::new(10 * SMSS)));
    control.on_congestion(&Congestion {
        now: Instant::from_millis(1),
        signal: Signal::Loss,
        in_flight: Bytes::new(10 * SMSS),
    });
    control.ssthresh().expect("it was reduced").get() / SMSS - 10
}

/// "If BPF program execution would result in division by zero, the destination register is instead
/// set to zero. Otherwise, for ALU64, if execution would result in LLONG_MIN divided by -1, the
/// destination register is instead set to LLONG_MIN. […] If execution would result in modulo by
/// zero, for ALU64 the value of the destination register is unchanged". Without a definition the
/// first ends the process. (A compiler, also the kernel's, may compare dividend and divisor in place
/// of a quotient and a constant, which is no division.)
#[test]
fn divisions_that_c_leaves_undefined_have_the_results_of_bpf() {
    const LEAST_32: &str = "(-2147483647 - 1)";
    const LEAST_64: &str = "(-9223372036854775807LL - 1)";
    let cases = [
        ("__u32", "7", "/", "zero", "0"),
        ("__u32", "7", "%", "zero", "7"),
        ("__u64", "(1ULL << 40) + 9", "/", "zero", "0"),
        ("__u64", "(1ULL << 40) + 9", "%", "zero", "(1ULL << 40) + 9"),
        ("__u16", "700", "/", "zero", "0"),
        ("__u16", "700", "%", "zero", "700"),
        ("__u8", "7", "/", "zero", "0"),
        ("__u8", "7", "%", "zero", "7"),
        ("int", "-7", "/", "zero", "0"),
        ("int", "-7", "%", "zero", "-7"),
        ("long long", "-7", "/", "zero", "0"),
        ("long long", "-7", "%", "zero", "-7"),
        ("int", LEAST_32, "/", "zero - 1", LEAST_32),
        ("int", LEAST_32, "%", "zero - 1", "0"),
        ("long long", LEAST_64, "/", "-1 - (long long)zero", LEAST_64),
        ("long long", LEAST_64, "%", "-1 - (long long)zero", "0"),
        ("int", "-9", "/", "zero - 1", "9"),
        ("__u32", "75", "/", "zero + 7", "10"),
        ("__u64", "75", "%", "zero + 7", "5"),
        ("int", "-75", "/", "zero + 7", "-10"),
        ("long long", "-75", "%", "zero + 7", "-5"),
    ];
    let checks = cases.iter().zip(1..).map(|(case, number)| {
        let (kind, dividend, operator, divisor, result) = case;
        format!(
            "\t{{ volatile {kind} given = {dividend}, quotient; {kind} a = given, b = {divisor}; \
             quotient = a {operator} b; \
             if (quotient != ({kind})({result})) wrong = {number}; }}\n"
        )
    });
    assert_eq!(wrong(&checks.collect::<String>()), 0);
}

/// A compiler may take a path to a division by zero for one that is never reached.
#[test]
fn a_path_to_a_division_by_zero_is_kept() {
    let checks = "\t__u32 divisor = zero > 5 ? zero : 0;\n\
                  \twrong = 75 / divisor;\n\
                  \twrong += 75 % divisor;\n\
                  \tif (divisor == 0)\n\t\twrong += 3;\n";
    assert_eq!(wrong(checks), 78);
}
