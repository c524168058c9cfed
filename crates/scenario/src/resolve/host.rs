//! Settings of end hosts.

use std::{collections::BTreeSet, sync::Arc};

use anabranch_core::units::Duration;

use super::{Attached, Resolver, route::Graph};
use crate::{
    error::{Error, choice},
    format::{File, Flow, Host, HostTcp, Protocol},
    kind::Kind,
    types::workload,
};

/// Returns the longest processing time of a packet at each node that sends it.
pub(super) fn processing_jitter(
    resolver: &Resolver<'_>,
    file: &File,
    graph: &Graph,
) -> Result<Vec<Duration>, Error> {
    let mut longest = vec![Duration::ZERO; graph.nodes.len()];
    for (name, host) in &file.host.0 {
        let Some(node) = graph.find(name) else {
            return Err(resolver.error(
                &["host", name],
                format!("no link leads to a node `{name}`"),
                choice(name, &graph.nodes),
            ));
        };
        let ends = file
            .flow
            .0
            .iter()
            .flat_map(|(_, flow)| [&flow.from, &flow.to]);
        if !host.processing_jitter.is_zero() && !ends.clone().any(|end| end == name) {
            return Err(resolver.error(
                &["host", name, "processing_jitter"],
                format!("no flow begins or ends at `{name}`: it sends no packets"),
                choice(
                    name,
                    &ends
                        .collect::<BTreeSet<_>>()
                        .into_iter()
                        .collect::<Vec<_>>(),
                ),
            ));
        }
        longest[node] = host.processing_jitter;
    }
    Ok(longest)
}

/// A kind of application delay of a host: a list of delays, each drawn with equal probability.
#[derive(Clone, Copy)]
pub(super) struct Delays {
    field: &'static str,
    of: fn(&Host) -> &[Duration],
    end: fn(&Flow) -> &String,
    nobody: fn(&str) -> String,
}

/// From the arrival of data to the read.
pub(super) const READ: Delays = Delays {
    field: "read_delays",
    of: |host| &host.read_delays,
    end: |flow| &flow.to,
    nobody: |name| {
        format!("no flow over TCP ends at `{name}` whose data is read there and not answered")
    },
};

/// The same after a pause.
pub(super) const IDLE_READ: Delays = Delays {
    field: "idle_read_delays",
    of: |host| &host.idle_read_delays,
    ..READ
};

/// From the establishment of a connection to the first write.
pub(super) const FIRST_WRITE: Delays = Delays {
    field: "first_write_delays",
    of: |host| &host.first_write_delays,
    end: |flow| &flow.from,
    nobody: |name| format!("no flow over TCP begins at `{name}` whose data is no answer"),
};

/// Returns the application delays of each node. The names have been checked.
pub(super) fn application_delays(
    resolver: &Resolver<'_>,
    file: &File,
    graph: &Graph,
    delays: Delays,
) -> Result<Vec<Arc<[Duration]>>, Error> {
    let mut all: Vec<Arc<[Duration]>> = vec![Arc::default(); graph.nodes.len()];
    for (name, host) in &file.host.0 {
        let of_host = (delays.of)(host);
        if of_host.is_empty() {
            continue;
        }
        let one_way = |flow: &Flow| {
            let asks = matches!(
                flow.workload,
                Kind::BuiltIn(workload::Config::RequestResponse(_))
            );
            flow.protocol == Protocol::Tcp && !asks
        };
        let flows = file.flow.0.iter().map(|(_, flow)| flow);
        let named: BTreeSet<_> = flows.filter(|flow| one_way(flow)).map(delays.end).collect();
        if !named.contains(name) {
            return Err(resolver.error(
                &["host", name, delays.field],
                (delays.nobody)(name),
                choice(name, &named.into_iter().collect::<Vec<_>>()),
            ));
        }
        all[graph.find(name).expect("hosts have been checked")] = of_host.into();
    }
    Ok(all)
}

/// Returns the attachment of each node in the live engine. The names have been checked.
pub(super) fn attached(
    resolver: &Resolver<'_>,
    file: &File,
    graph: &Graph,
) -> Result<Vec<Attached>, Error> {
    let mut all = vec![Attached::default(); graph.nodes.len()];
    for (name, host) in &file.host.0 {
        let node = &mut all[graph.find(name).expect("hosts have been checked")];
        if let Some(attach) = &host.attach {
            node.interface = match attach.strip_prefix("interface:") {
                // Linux: IFNAMSIZ - 1.
                Some(interface) if (1..=15).contains(&interface.len()) => {
                    Some(interface.to_owned())
                }
                None if attach == "namespace" => None,
                _ => {
                    return Err(resolver.error(
                        &["host", name, "attach"],
                        format!("a host cannot be attached to `{attach}`"),
                        vec!["expected \"namespace\", or \"interface:NAME\" with the name of a network interface".to_owned()],
                    ));
                }
            };
        }
        if let Some(exec) = &host.exec {
            let words = exec.0.as_array().into_iter().flatten();
            let words: Option<Vec<String>> =
                words.map(|word| word.as_str().map(str::to_owned)).collect();
            node.exec = words.filter(|words| !words.is_empty());
            if node.exec.is_none() {
                return Err(resolver.error(
                    &["host", name, "exec"],
                    "`exec` is not a program with its arguments".to_owned(),
                    vec!["expected a list of texts, for example [\"iperf3\", \"-s\"]".to_owned()],
                ));
            }
            check_words(resolver, name, node.exec.as_deref().unwrap_or_default())?;
        }
        node.has_own_tcp = host.tcp == Some(HostTcp::Own);
        if node.has_own_tcp && (node.interface.is_some() || node.exec.is_some()) {
            let other = if node.exec.is_some() {
                "its program uses the kernel's sockets"
            } else {
                "it is attached to an interface"
            };
            return Err(resolver.error(
                &["host", name, "tcp"],
                format!("`{name}` cannot have our own TCP: {other}"),
                vec!["expected `tcp = \"own\"` at a host without `exec` and `attach`".to_owned()],
            ));
        }
        if node.interface.is_some() && node.exec.is_some() {
            return Err(resolver.error(
                &["host", name, "exec"],
                format!("`{name}` is attached to an interface and runs no program"),
                vec!["expected `exec` at a host without `attach`".to_owned()],
            ));
        }
    }
    Ok(all)
}

/// Checks that `words` can be a program and its arguments (execve(2)).
fn check_words(resolver: &Resolver<'_>, host: &str, words: &[String]) -> Result<(), Error> {
    let path = ["host", host, "exec"];
    if words.first().is_some_and(String::is_empty) {
        return Err(resolver.error(
            &path,
            "the name of the program in `exec` is empty".to_owned(),
            vec!["expected the name of a program in PATH, or a path".to_owned()],
        ));
    }
    let at = words.iter().position(|word| word.contains('\0'));
    let Some(at) = at else { return Ok(()) };
    Err(resolver.error(
        &path,
        format!("word {} of `exec` has a NUL character", at + 1),
        vec!["expected text without NUL, which no argument of a program can have".to_owned()],
    ))
}
