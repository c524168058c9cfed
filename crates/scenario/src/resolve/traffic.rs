//! Checks of a flow's workload against its protocol.

use std::sync::Arc;

use anabranch_core::units::{Bytes, Rate};

use super::{Replayed, Resolver, side_file, tcp, workload};
use crate::{
    error::Error,
    format::{Family, Flow, Protocol},
    workload::{Pace, Recording, RecordingError, Writes, profile::Wrong, replay},
};

/// Bytes of the largest packet that practically every path carries unfragmented (Ethernet's MTU).
const MTU: u64 = 1500;
/// Bytes of the longest IPv4 packet (RFC 791 §3.1), and of the longest payload of an IPv6 packet
/// that is not a jumbogram (RFC 8200 §3).
const LONGEST: u64 = 65_535;
/// RFC 768.
const UDP_HEADER: u64 = 8;

/// Bytes of the IP header and the UDP header.
pub(super) const fn udp_headers(family: Family) -> u64 {
    UDP_HEADER
        + match family {
            Family::V4 => 20,
            Family::V6 => 40,
        }
}

/// The most payload of a datagram, in bytes.
const fn most_payload(family: Family) -> u64 {
    match family {
        Family::V4 => LONGEST - udp_headers(family),
        Family::V6 => LONGEST - UDP_HEADER,
    }
}

/// Refuses keys of TCP in a UDP flow.
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

/// Returns the workload with its defaults filled in.
pub(super) fn complete(
    resolver: &Resolver<'_>,
    table: &str,
    flow: &Flow,
    settings: &tcp::Settings,
    workload: workload::Config,
) -> Result<workload::Config, Error> {
    use workload::Config;
    let udp = flow.protocol == Protocol::Udp;
    check_profile(resolver, table, udp, &workload)?;
    match workload {
        Config::Paced(paced) => {
            if !paced.writes.is_empty() {
                check_writes(resolver, table, flow, &paced)?;
                return Ok(Config::Paced(paced));
            }
            let payload = payload(resolver, table, flow, settings, paced.payload)?;
            check_pace(resolver, table, paced.rate, payload)?;
            let payload = Some(payload);
            Ok(Config::Paced(workload::Paced { payload, ..paced }))
        }
        Config::OnOff(on_off) if udp => {
            if let Err((key, wrong)) = on_off.check() {
                return Err(wrong_key(
                    resolver,
                    &["flow", table, "workload", key],
                    wrong,
                ));
            }
            let payload = payload(resolver, table, flow, settings, on_off.payload)?;
            check_pace(resolver, table, on_off.rate, payload)?;
            let payload = Some(payload);
            Ok(Config::OnOff(workload::OnOff { payload, ..on_off }))
        }
        Config::Poisson(poisson) if udp => {
            let path = ["flow", table, "workload", "sizes"];
            let Some(size) = poisson.sizes.0.fixed() else {
                return Err(resolver.error(
                    &path,
                    "over UDP each arrival is one datagram, and all have one size".to_owned(),
                    vec!["expected `sizes = { kind = \"fixed\", size = \"1472 bytes\" }`, at some size".to_owned()],
                ));
            };
            check_payload(resolver, &[&path[..], &["size"]].concat(), flow, size)?;
            check_arrivals(resolver, table, &poisson, ("datagrams", 1e9, "1 ns"))?;
            Ok(Config::Poisson(poisson))
        }
        Config::Replay(replay) if udp => match replay.check() {
            Ok(()) => Ok(Config::Replay(replay)),
            Err(wrong) => Err(wrong_key(resolver, &["flow", table, "workload"], wrong)),
        },
        Config::OnOff(_) | Config::Replay(_) => Err(only_over_udp(resolver, table, &workload)),
        other if udp => Err(not_over_udp(resolver, table, &other)),
        Config::RequestResponse(what) => {
            exchange(resolver, table, what).map(Config::RequestResponse)
        }
        Config::Poisson(poisson) => {
            check_arrivals(resolver, table, &poisson, ("files", 1e6, "1 us"))?;
            Ok(Config::Poisson(poisson))
        }
        other => Ok(other),
    }
}

/// Checks requests and responses, and sets each size to the sum of its writes.
fn exchange(
    resolver: &Resolver<'_>,
    table: &str,
    mut what: workload::RequestResponse,
) -> Result<workload::RequestResponse, Error> {
    for (key, writes_key, size, writes) in [
        ("request", "writes", &mut what.request, &what.writes),
        (
            "response",
            "response_writes",
            &mut what.response,
            &what.response_writes,
        ),
    ] {
        let path = ["flow", table, "workload", key];
        let writes_path = ["flow", table, "workload", writes_key];
        if let Writes::Sizes(sizes) = writes {
            check_sizes(resolver, &writes_path, sizes, ("a write", u64::MAX))?;
            let sum = sizes
                .iter()
                .try_fold(0_u64, |sum, size| sum.checked_add(size.get()));
            let sum = Bytes::new(sum.unwrap_or(u64::MAX));
            if resolver.root.find(&path).is_some() && *size != sum {
                return Err(resolver.error(
                    &writes_path,
                    format!("these writes add up to {sum}, and `{key}` is {size}"),
                    vec![format!(
                        "expected sizes that add up to `{key}`, or no `{key}`"
                    )],
                ));
            }
            *size = sum;
        }
        if *size == Bytes::ZERO {
            return Err(resolver.error(
                &path,
                format!("a {key} has at least one byte"),
                vec!["expected 1 byte or more".to_owned()],
            ));
        }
        if let Writes::Equal(count) = writes
            && !(1..=size.get()).contains(&u64::from(*count))
        {
            return Err(resolver.error(
                &writes_path,
                format!("a {key} of {size} cannot be written in {count} writes"),
                vec!["expected 1 or more, each of a byte at least".to_owned()],
            ));
        }
    }
    Ok(what)
}

/// Checks the sizes that a paced workload writes in rotation.
fn check_writes(
    resolver: &Resolver<'_>,
    table: &str,
    flow: &Flow,
    paced: &workload::Paced,
) -> Result<(), Error> {
    for (key, is_given) in [
        ("payload", paced.payload.is_some()),
        ("profile", paced.profile.is_some()),
    ] {
        if is_given {
            return Err(resolver.error(
                &["flow", table, "workload", key],
                format!("`{key}` and `writes` do not go together"),
                vec![format!("delete `{key}`, or `writes`")],
            ));
        }
    }
    let path = ["flow", table, "workload", "writes"];
    check_sizes(resolver, &path, &paced.writes, carrier(flow))?;
    let least = paced.writes.iter().min().copied().unwrap_or(Bytes::ZERO);
    check_pace(resolver, table, paced.rate, least)
}

/// Checks that each size at `path` is 1 byte to `most`.
fn check_sizes(
    resolver: &Resolver<'_>,
    path: &[&str],
    sizes: &[Bytes],
    (noun, most): (&str, u64),
) -> Result<(), Error> {
    for (number, size) in sizes.iter().enumerate() {
        if !(1..=most).contains(&size.get()) {
            let expected = if most == u64::MAX {
                "expected 1 byte or more".to_owned()
            } else {
                format!("expected 1 to {most} bytes")
            };
            return Err(resolver.error(
                &[path, &[&number.to_string()]].concat(),
                format!("{noun} cannot carry {size}"),
                vec![expected],
            ));
        }
    }
    Ok(())
}

/// Returns the noun of the unit of sending, and the most bytes that it carries.
const fn carrier(flow: &Flow) -> (&'static str, u64) {
    match flow.protocol {
        Protocol::Udp => ("a datagram", most_payload(flow.family)),
        Protocol::Tcp => ("a write", u32::MAX as u64),
    }
}

/// Refuses arrival rates at which a run would hardly progress, or hold too many connections at a
/// time.
fn check_arrivals(
    resolver: &Resolver<'_>,
    table: &str,
    poisson: &workload::Poisson,
    (noun, most_per_s, shortest): (&str, f64, &str),
) -> Result<(), Error> {
    let mean = poisson.sizes.0.mean();
    // Files of zero bytes are refused by another check.
    if mean == 0.0 || poisson.arrivals_per_s() <= most_per_s {
        return Ok(());
    }
    Err(resolver.error(
        &["flow", table, "workload", "rate"],
        format!(
            "at {} {noun} of {mean} bytes on average would arrive more often than once in {shortest}",
            poisson.rate
        ),
        vec!["expected a lower `rate` or larger `sizes`".to_owned()],
    ))
}

/// Returns the payload of a datagram or a write, checked and with its default.
fn payload(
    resolver: &Resolver<'_>,
    table: &str,
    flow: &Flow,
    settings: &tcp::Settings,
    written: Option<Bytes>,
) -> Result<Bytes, Error> {
    let usual = match flow.protocol {
        Protocol::Udp => MTU - udp_headers(flow.family),
        Protocol::Tcp => u64::from(settings.mss),
    };
    let payload = written.unwrap_or(Bytes::new(usual));
    check_payload(
        resolver,
        &["flow", table, "workload", "payload"],
        flow,
        payload,
    )?;
    Ok(payload)
}

fn check_payload(
    resolver: &Resolver<'_>,
    path: &[&str],
    flow: &Flow,
    payload: Bytes,
) -> Result<(), Error> {
    let (noun, most) = carrier(flow);
    if (1..=most).contains(&payload.get()) {
        return Ok(());
    }
    Err(resolver.error(
        path,
        format!("{noun} cannot carry {payload}"),
        vec![format!("expected 1 to {most} bytes")],
    ))
}

fn check_pace(
    resolver: &Resolver<'_>,
    table: &str,
    rate: Rate,
    payload: Bytes,
) -> Result<(), Error> {
    let octets = u32::try_from(payload.get()).expect("it is within bounds");
    if Pace::new(rate, octets).is_some() {
        return Ok(());
    }
    Err(resolver.error(
        &["flow", table, "workload", "rate"],
        format!("at {rate} a write of {payload} takes less than 1 ns"),
        vec!["expected a lower `rate` or a larger `payload`".to_owned()],
    ))
}

fn wrong_key(resolver: &Resolver<'_>, path: &[&str], (key, message, expected): Wrong) -> Error {
    let help = vec![format!("expected {expected}")];
    resolver.error(&[path, key].concat(), message, help)
}

fn check_profile(
    resolver: &Resolver<'_>,
    table: &str,
    udp: bool,
    workload: &workload::Config,
) -> Result<(), Error> {
    let path = ["flow", table, "workload", "profile"];
    let profile = match workload {
        workload::Config::Poisson(poisson) => poisson.profile,
        workload::Config::Paced(paced) if udp || paced.profile.is_none() => paced.profile,
        workload::Config::Paced(_) => {
            return Err(resolver.error(
                &path,
                "the rate of `paced` varies only over UDP".to_owned(),
                vec![
                    "expected `protocol = \"udp\"`, or the workload `poisson`, which varies over TCP".to_owned(),
                ],
            ));
        }
        _ => None,
    };
    match profile.map_or(Ok(()), |profile| profile.check()) {
        Ok(()) => Ok(()),
        Err(wrong) => Err(wrong_key(resolver, &path, wrong)),
    }
}

/// Reads the recording that a flow replays.
pub(super) fn replayed(
    resolver: &Resolver<'_>,
    table: &str,
    flow: &Flow,
    workload: &workload::Config,
) -> Result<Option<Replayed>, Error> {
    let workload::Config::Replay(replay) = workload else {
        return Ok(None);
    };
    let path = ["flow", table, "workload", "file"];
    let named = side_file::Named {
        path: &path,
        file: &replay.file,
        noun: "a capture (pcap or pcapng)",
    };
    let place = named.place(resolver);
    let content = side_file::capture(resolver, named)?;
    let stop = || resolver.extensions.is_stopped();
    let recording = Recording::read(&content, &replay.selection(), stop).map_err(|error| {
        let text = error.to_string();
        let (message, expected) = text
            .split_once("; ")
            .unwrap_or((&text, "expected a capture"));
        let message = format!("`{}` cannot be replayed: {message}", place.display());
        let mut help = vec![expected.to_owned()];
        if let RecordingError::NothingSelected { choices, .. } | RecordingError::TwoWay(choices) =
            &error
        {
            help.extend(choices.lines().iter().map(|line| format!("  {line}")));
        }
        let key = match &error {
            RecordingError::NothingSelected { .. } if replay.from.is_some() => "from",
            RecordingError::NothingSelected { .. } if replay.to.is_some() => "to",
            RecordingError::NothingSelected { .. } => "protocol",
            _ => "file",
        };
        resolver.error(&["flow", table, "workload", key], message, help)
    })?;
    // Freed early: the file may be large, and the run long.
    drop(content);
    let most = most_payload(flow.family) + udp_headers(flow.family);
    let too_long = |packet: &&replay::recording::Recorded| u64::from(packet.size) > most;
    if let Some(packet) = recording.packets().iter().find(too_long) {
        return Err(resolver.error(
            &path,
            format!(
                "`{}` has a packet of {} bytes, more than a datagram can have",
                place.display(),
                packet.size
            ),
            vec![format!(
                "expected {most} bytes at most (captured without segmentation offload)"
            )],
        ));
    }
    let factor = replay.factor(&recording);
    let factor =
        factor.map_err(|wrong| wrong_key(resolver, &["flow", table, "workload"], wrong))?;
    Ok(Some(Replayed {
        recording: Arc::new(recording),
        factor,
        repeat: replay.repeat,
    }))
}

const fn name(workload: &workload::Config) -> &'static str {
    match workload {
        workload::Config::Bulk => "bulk",
        workload::Config::File(_) => "file",
        workload::Config::Poisson(_) => "poisson",
        workload::Config::Paced(_) => "paced",
        workload::Config::OnOff(_) => "on-off",
        workload::Config::Replay(_) => "replay",
        workload::Config::RequestResponse(_) => "request-response",
    }
}

fn only_over_udp(resolver: &Resolver<'_>, table: &str, workload: &workload::Config) -> Error {
    resolver.error(
        &["flow", table, "workload"],
        format!(
            "the workload `{}` needs UDP: it sends at given times, and TCP sends when its window permits",
            name(workload)
        ),
        vec!["expected `protocol = \"udp\"`, or another workload".to_owned()],
    )
}

fn not_over_udp(resolver: &Resolver<'_>, table: &str, workload: &workload::Config) -> Error {
    let name = name(workload);
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
        format!(
            "the workload `{name}` needs TCP: UDP has no congestion control and no retransmissions"
        ),
        help,
    )
}
