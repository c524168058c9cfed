//! Controls from files in the simulator: their behaviour, and the rejection of invalid files.

use std::{fs, path::Path, thread};

use anabranch_bpf::{Source, extension};
use anabranch_core::{body::Length, interrupt::Interrupt};
use anabranch_engine::Simulation;
use anabranch_files::Files;
use anabranch_scenario::{Extensions, Scenario};

fn scenario(cc: &str) -> String {
    format!(
        r#"
        duration = "5 s"
        [link.path]
        between = ["A", "B"]
        rate = "10 Mbit/s"
        delay = "20 ms"
        queue = {{ kind = "drop-tail", limit = "1 bdp" }}
        impair = [{{ kind = "bernoulli-loss", rate = 0.001 }}]
        [flow.main]
        from = "A"
        to = "B"
        cc = {cc}
        "#
    )
}

fn resolve(cc: &str, folder: &Path) -> Result<anabranch_scenario::Resolved, String> {
    let extensions = Extensions::default().congestion_control(
        "bpf",
        extension(folder.to_owned(), Files::default(), Interrupt::default()),
    );
    Scenario::parse(&scenario(cc), "test.toml", &extensions)
        .and_then(|scenario| scenario.resolve(Some(7)))
        .map_err(|error| error.to_string())
}

/// Goodput in Mbit/s and the run's digest.
fn run(cc: &str, folder: &Path) -> (f64, String) {
    let resolved = resolve(cc, folder).expect("the scenario is right");
    let run = Simulation::<Length>::new(&resolved).run().expect("it runs");
    let goodput = run.summary.flows["main"]["goodput_mbit_s"]
        .as_f64()
        .expect("a number");
    (goodput, format!("{:?}", run.summary))
}

/// A user's file in the usual style, with a fixed window of ten packets.
const FIXED: &str = r#"
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char _license[] SEC("license") = "GPL";

static inline struct tcp_sock *tcp_sk(const struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

SEC("struct_ops")
void BPF_PROG(fixed_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	tcp_sk(sk)->snd_cwnd = 10;
}

SEC("struct_ops")
__u32 BPF_PROG(fixed_ssthresh, struct sock *sk)
{
	return 10;
}

SEC("struct_ops")
__u32 BPF_PROG(fixed_undo_cwnd, struct sock *sk)
{
	return tcp_sk(sk)->snd_cwnd;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops fixed = {
	.cong_avoid = (void *)fixed_cong_avoid,
	.ssthresh = (void *)fixed_ssthresh,
	.undo_cwnd = (void *)fixed_undo_cwnd,
	.name = "fixed",
};
"#;

fn folder_with(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("mine.bpf.c"), text).expect("a file");
    folder
}

const MINE: &str = r#"{ kind = "bpf", file = "mine.bpf.c" }"#;

#[test]
fn a_users_file_runs() {
    let folder = folder_with(FIXED);
    let (goodput, _) = run(MINE, folder.path());
    // Ten packets of 1448 octets in a round trip of 40 ms plus their serialization time.
    let most = 10.0 * 1448.0 * 8.0 / 0.040 / 1e6;
    assert!(
        goodput > 0.9 * most && goodput <= most,
        "{goodput} of {most} Mbit/s"
    );
}

/// Detects a cache of controls by their own file alone.
#[test]
fn a_header_that_has_changed_is_read_again() {
    let folder = folder_with(
        &FIXED
            .replace("->snd_cwnd = 10", "->snd_cwnd = PACKETS")
            .replace(
                "#include \"vmlinux.h\"",
                "#include \"vmlinux.h\"\n#include \"mine.h\"",
            ),
    );
    let with = |packets: u32| {
        let text = format!("#define PACKETS {packets}\n");
        fs::write(folder.path().join("mine.h"), text).expect("a file");
        run(MINE, folder.path())
    };
    let (ten, of_ten) = with(10);
    let (five, _) = with(5);
    assert!(five < 0.6 * ten, "{five} and {ten} Mbit/s");
    assert_eq!(with(10).1, of_ten);
}

/// The window is bounded by the socket's clamp, in slow start and after it.
#[test]
fn a_window_is_clamped() {
    let reno = Source::shipped("reno").expect("it ships").text;
    for start in ["TCP_INFINITE_SSTHRESH", "6"] {
        let clamped = reno.replacen(
            "reno->cwnd_before = 0;",
            &format!(
                "tcp_sk(sk)->snd_cwnd_clamp = 12;\n\ttcp_sk(sk)->snd_ssthresh = {start};\n\treno->cwnd_before = 0;"
            ),
            1,
        );
        let folder = folder_with(&clamped);
        let (goodput, _) = run(MINE, folder.path());
        // Twelve packets of 1448 octets in a round trip.
        let most = 12.0 * 1448.0 * 8.0 / 0.040 / 1e6;
        assert!(
            goodput > 0.7 * most && goodput <= most,
            "{goodput} of {most} Mbit/s"
        );
    }
}

#[test]
fn a_run_is_identical_in_any_number_of_threads() {
    let cc = r#"{ kind = "bpf", name = "reno" }"#;
    let (goodput, alone) = run(cc, Path::new("."));
    assert!(goodput > 1.0, "{goodput} Mbit/s");
    let beside: Vec<_> = (0..4)
        .map(|_| thread::spawn(move || run(cc, Path::new(".")).1))
        .collect();
    for thread in beside {
        assert_eq!(thread.join().expect("it ran"), alone);
    }
}

/// The error message for a scenario with the control `text`.
fn refusal(text: &str) -> String {
    let folder = folder_with(text);
    let said = resolve(MINE, folder.path()).expect_err("it is wrong");
    assert!(said.starts_with("test.toml:12:14: "), "{said}");
    said.replace(&format!("{}/", folder.path().display()), "")
}

#[test]
fn invalid_controls_are_rejected_with_the_position_in_the_scenario() {
    let cases = [
        (
            FIXED.replace("return 10;", "return ten;"),
            "`mine.bpf.c` does not compile: mine.bpf.c:22:16: error: 'ten' undeclared",
        ),
        (
            FIXED.replace("snd_cwnd = 10", "snd_cwmd = 10"),
            "has no member named 'snd_cwmd'",
        ),
        (
            FIXED.replace(
                "return 10;",
                "extern __u32 bpf_get_prandom_u32(void); return bpf_get_prandom_u32();",
            ),
            "it calls `bpf_get_prandom_u32`, which controls in the simulator cannot",
        ),
        (
            FIXED.replace("return 10;", "static __u32 last; return last++;"),
            "`mine.bpf.c` has the variable `last",
        ),
        (
            FIXED.replace(
                "char _license",
                "int known SEC(\".maps\") = 1;\nchar _license",
            ),
            "`mine.bpf.c` has the map `known`",
        ),
        (
            FIXED.replace(".struct_ops.link", ".elsewhere"),
            "`mine.bpf.c` has no control",
        ),
        (
            format!(
                "{FIXED}\nSEC(\".struct_ops.link\") struct tcp_congestion_ops other = {{ .name = \"other\" }};"
            ),
            "`mine.bpf.c` has more than one control: `fixed`, `other`",
        ),
        (
            FIXED.replace(".undo_cwnd = (void *)fixed_undo_cwnd,", ""),
            "`mine.bpf.c` has no undo_cwnd",
        ),
    ];
    for (text, message) in cases {
        let said = refusal(&text);
        assert!(said.contains(message), "{said}\n-- has no --\n{message}");
    }
}

#[test]
fn parameters_beside_the_kind_are_checked() {
    let cases = [
        (r#""bpf""#, "an eBPF control is a file"),
        (
            r#"{ kind = "bpf", file = "none.bpf.c" }"#,
            "none.bpf.c`: No such file",
        ),
        (
            r#"{ kind = "bpf", name = "compond" }"#,
            "no eBPF control `compond` ships\n",
        ),
        (
            r#"{ kind = "bpf", name = 3 }"#,
            "`name` of an eBPF control is a text",
        ),
        (
            r#"{ kind = "bpf", beta = "0.5" }"#,
            "an eBPF control has no `beta`",
        ),
        (
            r#"{ kind = "bpf", name = "reno", file = "x.bpf.c" }"#,
            "`file` or `name`, not both",
        ),
    ];
    for (cc, message) in cases {
        let said = resolve(cc, Path::new(".")).expect_err("it is wrong");
        assert!(
            said.starts_with("test.toml:12:14: ") && said.contains(message),
            "{said}"
        );
    }
}

/// A shipped control in a scenario has nearly the goodput of the simulator's own, although its
/// window is counted in whole segments.
#[test]
fn a_shipped_control_has_nearly_the_goodput_of_its_twin() {
    for (name, twin) in [
        ("reno", r#"{ kind = "reno" }"#),
        ("compound", r#"{ kind = "compound" }"#),
        ("cubic-plus", r#"{ kind = "cubic-plus", hystart = "off" }"#),
    ] {
        let (goodput, _) = run(
            &format!(r#"{{ kind = "bpf", name = "{name}" }}"#),
            Path::new("."),
        );
        let (of_twin, _) = run(twin, Path::new("."));
        let apart = (goodput / of_twin - 1.0).abs();
        assert!(apart < 0.05, "{name}: {goodput} of {of_twin} Mbit/s");
    }
}
