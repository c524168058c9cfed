//! What a flow's protocol and its workload ask of each other.

use anabranch_core::units::Bytes;

use super::{Resolver, tcp, workload};
use crate::{
    scenario::{
        error::Error,
        format::{Family, Flow, Protocol},
    },
    workload::Pace,
};

/// Bytes of the largest packet that every path carries unbroken in practice (Ethernet's MTU).
const MTU: u64 = 1500;
/// Bytes of the longest IPv4 packet (RFC 791 §3.1), and of the longest payload of an IPv6 packet that is no
/// jumbogram (RFC 8200 §3).
const LONGEST: u64 = 65_535;
/// RFC 768.
const UDP_HEADER: u64 = 8;

/// Bytes of the IP header and of UDP's.
pub(super) const fn udp_headers(family: Family) -> u64 {
    UDP_HEADER
        + match family {
            Family::V4 => 20,
            Family::V6 => 40,
        }
}

/// Bytes of payload that a datagram can have.
const fn most_payload(family: Family) -> u64 {
    match family {
        Family::V4 => LONGEST - udp_headers(family),
        Family::V6 => LONGEST - UDP_HEADER,
    }
}

/// A UDP flow says nothing of TCP.
pub(super) fn check_protocol(
    resolver: &Resolver<'_>,
    table: &str,
    flow: &Flow,
) -> Result<(), Error> {
    if flow.protocol == Protocol::Tcp {
        return Ok(());
    }
    for key in ["stack", "cc", "transport", "fec"] {
        let path = ["flow", table, key];
        if resolver.root.find(&path).is_some() {
            return Err(resolver.error(
                &path,
                format!("the flow `{table}` is a UDP flow: `{key}` is for TCP"),
                vec![format!("delete `{key}`, or `protocol = \"udp\"`")],
            ));
        }
    }
    Ok(())
}

/// The workload with what it leaves open filled in.
pub(super) fn complete(
    resolver: &Resolver<'_>,
    table: &str,
    flow: &Flow,
    settings: &tcp::Settings,
    workload: workload::Config,
) -> Result<workload::Config, Error> {
    use workload::Config;
    let udp = flow.protocol == Protocol::Udp;
    match workload {
        Config::Paced(paced) => {
            let (least, most, usual) = if udp {
                let usual = MTU - udp_headers(flow.family);
                (1, most_payload(flow.family), usual)
            } else {
                (1, u64::from(u32::MAX), u64::from(settings.mss))
            };
            let payload = paced.payload.unwrap_or(Bytes::new(usual));
            let path = ["flow", table, "workload", "payload"];
            if !(least..=most).contains(&payload.get()) {
                let noun = if udp { "a datagram" } else { "a write" };
                return Err(resolver.error(
                    &path,
                    format!("{noun} cannot carry {payload}"),
                    vec![format!("expected {least} to {most} bytes")],
                ));
            }
            let octets = u32::try_from(payload.get()).expect("it is within bounds");
            if Pace::new(paced.rate, octets).is_none() {
                return Err(resolver.error(
                    &["flow", table, "workload", "rate"],
                    format!(
                        "at {} {payload} would leave more often than once in 1 ns",
                        paced.rate
                    ),
                    vec!["expected a lower `rate` or a larger `payload`".to_owned()],
                ));
            }
            let payload = Some(payload);
            Ok(Config::Paced(workload::Paced { payload, ..paced }))
        }
        other if udp => Err(not_over_udp(resolver, table, &other)),
        Config::RequestResponse(what) => {
            for (key, size) in [("request", what.request), ("response", what.response)] {
                if size == Bytes::ZERO {
                    return Err(resolver.error(
                        &["flow", table, "workload", key],
                        format!("a {key} of no bytes is none"),
                        vec!["expected 1 byte or more".to_owned()],
                    ));
                }
            }
            Ok(Config::RequestResponse(what))
        }
        other => Ok(other),
    }
}

fn not_over_udp(resolver: &Resolver<'_>, table: &str, workload: &workload::Config) -> Error {
    let name = match workload {
        workload::Config::Bulk => "bulk",
        workload::Config::File(_) => "file",
        workload::Config::Poisson(_) => "poisson",
        workload::Config::Paced(_) => "paced",
        workload::Config::RequestResponse(_) => "request-response",
    };
    let path = ["flow", table, "workload"];
    let help = vec![
        "expected `workload = { kind = \"paced\", rate = \"5 Mbit/s\" }`, at some rate".into(),
    ];
    if resolver.root.find(&path).is_none() {
        return resolver.error(
            &["flow", table, "protocol"],
            format!(
                "the UDP flow `{table}` has no `workload`, and `{name}`, the default, needs TCP"
            ),
            help,
        );
    }
    resolver.error(
        &path,
        format!("the workload `{name}` needs TCP: UDP is told neither how fast to send nor what is missing"),
        help,
    )
}
