//! Keys of flows whose packets come from programs or interfaces: each key is applied, or refused at
//! its line.

use anabranch_scenario::{Resolved, ResolvedFlow};

use super::{Refusal, check_fec, check_parameters, check_stack};
use crate::plan::{
    defaults::says_default,
    settings::{self, has_interface},
};

/// Checks that a flow of programs' or interfaces' packets has no key that would not be applied.
pub fn check(flow: &ResolvedFlow, resolved: &Resolved) -> Result<(), Refusal> {
    if has_interface(flow, resolved) {
        check_inline(flow)
    } else {
        check_programs(flow, resolved)
    }
}

/// A flow between interfaces is only a path: the senders are beyond the interfaces.
fn check_inline(flow: &ResolvedFlow) -> Result<(), Refusal> {
    const WAY: [&str; 8] = [
        "from",
        "to",
        "route",
        "return_route",
        // Permitted at their default values.
        "count",
        "start",
        "start_spread",
        "stop",
    ];
    check_times(
        flow,
        "frames at an interface are carried from the run's start to its end",
    )?;
    let other = flow.written.0.iter().map(String::as_str);
    let mut other = other.filter(|key| !WAY.contains(key));
    other.next().map_or(Ok(()), |key| {
        Err(Refusal::new(
            &["flow", &flow.table, key],
            format!("`{key}` configures an end of ours, and this flow carries frames between two interfaces"),
            "expected `from`, `to`, `route` and `return_route` alone",
        ))
    })
}

fn check_programs(flow: &ResolvedFlow, resolved: &Resolved) -> Result<(), Refusal> {
    let refused = |key: &[&str], message: &str, help: &str| {
        let path = [&["flow", flow.table.as_str()], key].concat();
        Err(Refusal::new(&path, message, help))
    };
    check_times(
        flow,
        "a program runs at an end of this flow, and begins with the run",
    )?;
    check_fec(flow)?;
    check_stack(flow, resolved)?;
    let kernel = settings::kernel_stack();
    // A window of fixed size belongs to a socket; with autotuning there is nothing to apply.
    if flow.stack.receive_autotuning != kernel.receive_autotuning {
        return refused(
            &["transport", "receive_window"],
            "`receive_window` is set on a socket, and a program sets its sockets itself",
            "expected a program that sets it (SO_RCVBUF), or a `workload` of ours",
        );
    }
    if flow.stack.nagle != kernel.nagle {
        return refused(
            &["transport", "nagle"],
            "`nagle` is set on a socket, and a program sets its sockets itself",
            "expected a program that sets it (TCP_NODELAY), or a `workload` of ours",
        );
    }
    let mtu = settings::mtu(resolved);
    if flow.stack.mss != kernel.mss && settings::packet(&flow.stack) != mtu {
        let fills = i64::from(mtu - settings::packet(&flow.stack)) + i64::from(flow.stack.mss);
        return refused(
            &["transport", "mss"],
            "`mss` is set on a socket, and a program sets its sockets itself; its packets are as large as the devices carry",
            &format!(
                "expected \"{fills} bytes\", which fill them, or a program that sets its own (TCP_MAXSEG)"
            ),
        );
    }
    if says_default(flow, resolved) {
        check_parameters(flow)?;
    }
    Ok(())
}

/// Start and stop are determined by the sender.
fn check_times(flow: &ResolvedFlow, why: &str) -> Result<(), Refusal> {
    let is_late = flow.start > anabranch_core::units::Instant::START;
    let given = [
        ("start", is_late && flow.gives("start")),
        ("start_spread", is_late),
        ("stop", flow.stop.is_some()),
    ];
    let Some((key, _)) = given.into_iter().find(|(_, is_given)| *is_given) else {
        return Ok(());
    };
    Err(Refusal::new(
        &["flow", &flow.table, key],
        format!("{why}, regardless of `{key}`"),
        "expected no such key; a program can wait, and end, by itself: exec = [\"sh\", \"-c\", \"sleep 2; exec timeout 5 …\"]",
    ))
}
