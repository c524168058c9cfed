//! The default congestion control of programs' sockets: the `cc` of the flows that carry their
//! packets.
//!
//! Each namespace has a default, for which the kernel accepts only controls that any user may
//! choose (`tcp_allowed_congestion_control`). Every other control becomes a property of the host's
//! route (ip-route(8), `congctl`), which also replaces the choice that a program makes before it
//! connects.

use std::{fs, io};

use anabranch_engine::summary::Named;
use anabranch_scenario::{Protocol, Resolved, ResolvedFlow};

use crate::{
    kernel::{host::LiveHost, namespace::Namespace},
    plan::{
        controls::Controls,
        refusal::Refusal,
        settings::{has_interface, is_carried},
    },
};

/// Default controls by node; `None` for the default of this machine.
pub type Defaults = Vec<Option<String>>;

/// Whether a flow determines the default control of programs' sockets.
pub fn says_default(flow: &ResolvedFlow, resolved: &Resolved) -> bool {
    flow.protocol == Protocol::Tcp
        && flow.gives("cc")
        && is_carried(flow, resolved)
        && !has_interface(flow, resolved)
}

/// The default control of each host's programs: that of the flows that begin there, or else of the
/// flows that end there if they agree. Unless `strictly`, a host whose flows disagree keeps the
/// default of this machine.
///
/// # Errors
/// With the flow whose control differs from that of an earlier flow of the same host, or from a
/// restricted control of its route.
pub fn of(
    resolved: &Resolved,
    controls: &Controls,
    strictly: bool,
) -> io::Result<Result<Defaults, Refusal>> {
    let mut all = vec![None; resolved.nodes.len()];
    for (node, default) in all.iter_mut().enumerate() {
        let flows = resolved.flows.iter().enumerate();
        let wanting = flows.filter(|(_, flow)| says_default(flow, resolved));
        let wanting: Vec<_> = wanting
            .filter_map(|(index, flow)| Some((flow, controls.name(index)?)))
            .collect();
        let at = |side: usize| {
            let here = wanting
                .iter()
                .filter(move |(flow, _)| flow.ends[side] == node);
            here.copied()
        };
        if let Some((first, name)) = at(0).next() {
            if let Some((flow, other)) = at(0).find(|(_, other)| *other != name) {
                if !strictly {
                    continue;
                }
                return Ok(Err(two_defaults(
                    resolved,
                    node,
                    (&first.name, name),
                    (flow, other),
                )));
            }
            *default = Some(name.to_owned());
        } else if let Some((_, name)) = at(1).next()
            && at(1).all(|(_, other)| other == name)
        {
            *default = Some(name.to_owned());
        }
        if let Some(name) = default
            && strictly
            && !is_allowed(name)?
        {
            if !resolved.attached[node].devices.is_empty() {
                return Ok(Err(of_several(resolved, node, &wanting, name)));
            }
            if let Some(refusal) = overridden(resolved, controls, node, name) {
                return Ok(Err(refusal));
            }
        }
    }
    Ok(Ok(all))
}

fn two_defaults(
    resolved: &Resolved,
    node: usize,
    (first, name): (&str, &str),
    (flow, other): (&ResolvedFlow, &str),
) -> Refusal {
    let host = &resolved.nodes[node];
    Refusal::new(
        &["flow", &flow.table, "cc"],
        format!(
            "the programs of `{host}` have one default congestion control, and `{first}` before it asks for `{name}`, not `{other}`"
        ),
        format!(
            "expected `cc = \"{name}\"`, or no `cc` at one of the two, whose program then chooses by itself (TCP_CONGESTION)"
        ),
    )
}

/// Refuses a control that needs a single route, at a host with several devices.
fn of_several(
    resolved: &Resolved,
    node: usize,
    wanting: &[(&ResolvedFlow, &str)],
    name: &str,
) -> Refusal {
    let here = wanting.iter().find(|(flow, _)| flow.ends.contains(&node));
    let table = here.map_or("", |(flow, _)| flow.table.as_str());
    Refusal::new(
        &["flow", table, "cc"],
        format!(
            "this kernel restricts `{name}`, so that it would be a property of the one route of `{}`, which has a route for each device",
            resolved.nodes[node]
        ),
        format!(
            "expected a control that everybody may choose, or `{name}` among net.ipv4.tcp_allowed_congestion_control of this machine"
        ),
    )
}

/// Refuses an application at the host whose control the route would replace.
fn overridden(
    resolved: &Resolved,
    controls: &Controls,
    node: usize,
    name: &str,
) -> Option<Refusal> {
    let mut flows = resolved.flows.iter().enumerate();
    let (flow, own) = flows.find_map(|(index, flow)| {
        let own = controls.name(index)?;
        let is_other = !is_carried(flow, resolved) && own != name;
        (flow.ends.contains(&node) && is_other).then_some((flow, own))
    })?;
    let host = &resolved.nodes[node];
    Some(Refusal::new(
        &["flow", &flow.table, "cc"],
        format!(
            "the programs of `{host}` are to have `{name}`, which this kernel restricts: then every socket there has it, \
             and this flow's would not have `{own}`"
        ),
        format!(
            "expected the same control for both, or `{name}` among net.ipv4.tcp_allowed_congestion_control of this machine"
        ),
    ))
}

/// Whether a control may be a namespace's default. A disallowed one must not be tried, because the
/// kernel would never unload it again.
fn is_allowed(control: &str) -> io::Result<bool> {
    let allowed = fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control")?;
    Ok(allowed.split_whitespace().any(|name| name == control))
}

/// Makes a control the default of a host.
pub fn apply(namespace: &Namespace, host: usize, control: &str) -> io::Result<()> {
    if is_allowed(control)? {
        let setting = ("net/ipv4/tcp_congestion_control", control.to_owned());
        return namespace.set(&[setting]).map(drop);
    }
    namespace.route_control(host, control)
}

/// The default control of each host with a program, for the summary.
pub fn described(
    resolved: &Resolved,
    hosts: &[Option<LiveHost>],
    defaults: &[Option<String>],
) -> Named<String> {
    let of = |node: usize| {
        resolved.attached[node].exec.as_ref()?;
        let namespace = hosts[node].as_ref()?.namespace.as_ref()?;
        let of_kernel = || fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
        let name = defaults[node]
            .clone()
            .or_else(|| Some(namespace.inside(of_kernel).ok()?.trim().to_owned()))?;
        Some((resolved.nodes[node].clone(), name))
    };
    (0..resolved.nodes.len()).filter_map(of).collect()
}
