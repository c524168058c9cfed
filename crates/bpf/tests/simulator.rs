//! Controls from files in the simulator: what they do there, and what is refused.

use std::{fs, path::Path, thread};

use anabranch_bpf::extension;
use anabranch_elements::body::Length;
use anabranch_model::scenario::{Extensions, Scenario};
use anabranch_sim::Simulation;

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

fn resolve(cc: &str, folder: &Path) -> Result<anabranch_model::scenario::Resolved, String> {
    let extensions =
        Extensions::default().congestion_control("bpf", extension(folder.to_owned()));
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
    // Ten packets of 1448 octets in a round trip of 40 ms and what ten of them take to leave.
    let most = 10.0 * 1448.0 * 8.0 / 0.040 / 1e6;
    assert!(goodput > 0.9 * most && goodput <= most, "{goodput} of {most} Mbit/s");
}

#[test]
fn a_run_is_the_same_in_any_number_of_threads() {
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
