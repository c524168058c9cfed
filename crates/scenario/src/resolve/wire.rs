//! Connections of two nodes: links, and groups, which are resolved as links and then have members.

use std::ops::Deref;

use anabranch_core::{
    packet::Direction,
    units::{Duration, text::Limit},
};
use anabranch_path::{
    group::{control, members},
    link::Properties,
};

use super::{ResolvedFlow, ResolvedGateway, ResolvedGroup, ResolvedLink, Resolver};
use crate::{
    error::Error,
    format::{File, Group, Link, OneWay, Protocol},
    kind::Kind,
};

/// A link, or a group in the form of one.
#[derive(Debug, Clone)]
pub(super) struct Wire<'a> {
    /// Its section in the file: `link` or `group`.
    pub(super) section: &'static str,
    pub(super) name: String,
    /// The link, or the keys of the group that a link has.
    pub(super) link: Table<'a>,
    /// The number of its links.
    pub(super) members: u32,
}

/// The keys of a link. Links are borrowed, so that ten thousand of them are not copied.
#[derive(Debug, Clone)]
pub(super) enum Table<'a> {
    Given(&'a Link),
    Made(Box<Link>),
}

impl Deref for Table<'_> {
    type Target = Link;

    fn deref(&self) -> &Link {
        match self {
            Self::Given(link) => link,
            Self::Made(link) => link,
        }
    }
}

impl<'a> Wire<'a> {
    pub(super) fn of_link(name: &str, link: Table<'a>) -> Self {
        Self {
            section: "link",
            name: name.to_owned(),
            link,
            members: 1,
        }
    }
    pub(super) fn of_group(name: &str, group: &Group) -> Self {
        Self {
            section: "group",
            name: name.to_owned(),
            link: Table::Made(Box::new(group.into())),
            members: group.members,
        }
    }
}

/// Lists all links and groups in the order of the file, which decides ties between routes.
pub(super) fn wires<'a>(resolver: &Resolver<'_>, file: &'a File) -> Result<Vec<Wire<'a>>, Error> {
    let links = file.link.0.iter();
    let mut wires: Vec<Wire<'a>> = links
        .map(|(name, link)| Wire::of_link(name, Table::Given(link)))
        .collect();
    for (name, group) in &file.group.0 {
        if file.link.0.iter().any(|(link, _)| link == name) {
            return Err(resolver.error(
                &["group", name],
                format!("the group `{name}` has the name of a link"),
                vec!["expected a name that no link has".to_owned()],
            ));
        }
        check_members(resolver, name, group)?;
        let place = resolver.root.locate(&["group", name]);
        let behind = |wire: &Wire<'_>| resolver.root.locate(&[wire.section, &wire.name]) > place;
        let at = wires.iter().position(behind).unwrap_or(wires.len());
        wires.insert(at, Wire::of_group(name, group));
    }
    Ok(wires)
}

fn check_members(resolver: &Resolver<'_>, name: &str, group: &Group) -> Result<(), Error> {
    if !(1..=members::MAX).contains(&group.members) {
        return Err(resolver.error(
            &["group", name, "members"],
            format!("a group does not have {} members", group.members),
            vec![format!(
                "expected a whole number from 1 to {}",
                members::MAX
            )],
        ));
    }
    for (way, own) in [("forward", &group.forward), ("reverse", &group.reverse)] {
        let rate = own.as_ref().and_then(|own| own.rate).unwrap_or(group.rate);
        if rate.rate().is_none() {
            let path: &[&str] = match own.as_ref().and_then(|own| own.rate) {
                Some(_) => &["group", name, way, "rate"],
                None => &["group", name, "rate"],
            };
            return Err(resolver.error(
                path,
                format!("the members of the group `{name}` have no rate"),
                vec!["expected the `rate` of one member, for example \"100 Mbit/s\"".to_owned()],
            ));
        }
    }
    Ok(())
}

/// Resolves the group of a wire, if it is one.
pub(super) fn group(
    resolver: &Resolver<'_>,
    file: &File,
    wire: &Wire<'_>,
) -> Result<Option<ResolvedGroup>, Error> {
    if wire.section != "group" {
        return Ok(None);
    }
    let tables = &mut file.group.0.iter();
    let Some((name, table)) = tables.find(|(name, _)| *name == wire.name) else {
        return Ok(None);
    };
    let place = ["group", name, "control"];
    let control: control::Config = resolver.build(&table.control, &place)?;
    if let Err(wrong) = control.check() {
        return Err(resolver.error(
            &[&place[..], wrong.key].concat(),
            wrong.message,
            vec![format!("expected {}", wrong.expected)],
        ));
    }
    if let Some(interval) = control.interval()
        && table.wake_time > interval
    {
        return Err(resolver.error(
            &["group", name, "wake_time"],
            format!(
                "a member takes {} to wake up, longer than the control interval of {interval}",
                table.wake_time
            ),
            vec![format!(
                "expected {interval} at most, or a longer `interval`"
            )],
        ));
    }
    Ok(Some(ResolvedGroup {
        members: table.members,
        spread: table.spread,
        control,
        wake_time: table.wake_time,
        lacp_rate: table.lacp_rate,
        power: table.power,
        arrivals: None,
    }))
}

/// The most bins of a run whose arrivals are recorded: 80 MB of counts.
const MAX_BINS: u64 = 10_000_000;

/// Limits the bins of the oracle, which holds a count for every bin of the run and computes its
/// schedule from all of them.
fn check_bins(
    resolver: &Resolver<'_>,
    duration: Duration,
    link: &ResolvedLink,
) -> Result<(), Error> {
    let control = link.group.as_ref().map(|group| &group.control);
    let Some(control::Config::Oracle(params)) = control else {
        return Ok(());
    };
    let bin = params.bin.get();
    let bins = duration.as_picos() / bin.as_picos().max(1);
    if bins <= MAX_BINS {
        return Ok(());
    }
    Err(resolver.error(
        &["group", &link.name, "control", "bin"],
        format!("a run of {duration} has {bins} bins of {bin}"),
        vec![format!(
            "expected {MAX_BINS} at most: a longer `bin`, or a shorter `duration`"
        )],
    ))
}

/// Refuses traffic that reacts, and a second such group, if a controller requires the arrivals in
/// advance.
pub(super) fn check_open_loop(
    resolver: &Resolver<'_>,
    duration: Duration,
    links: &[ResolvedLink],
    (gateways, flows): (&[ResolvedGateway], &[ResolvedFlow]),
) -> Result<(), Error> {
    let knows = |link: &ResolvedLink| {
        let group = link.group.as_ref();
        group.is_some_and(|group| group.control.needs_arrivals())
    };
    let mut knowing = (0..links.len()).filter(|index| knows(&links[*index]));
    let Some(index) = knowing.next() else {
        return Ok(());
    };
    if let Some(second) = knowing.next() {
        return Err(resolver.error(
            &["group", &links[second].name, "control"],
            format!(
                "`{}` and `{}` both use `oracle`, and their arrivals depend on each other",
                links[index].name, links[second].name
            ),
            vec!["expected `oracle` in one group at most".to_owned()],
        ));
    }
    let name = &links[index].name;
    check_bins(resolver, duration, &links[index])?;
    let crosses = |flow: &&ResolvedFlow| {
        let steps = flow.route.iter().chain(&flow.return_route);
        steps
            .flat_map(|step| step.hops(gateways))
            .any(|hop| hop.link == index)
    };
    let tcp = |flow: &&ResolvedFlow| flow.protocol == Protocol::Tcp;
    let Some(flow) = flows.iter().filter(tcp).find(crosses) else {
        return Ok(());
    };
    Err(resolver.error(
        &["group", name, "control"],
        format!(
            "`oracle` needs arrivals that do not depend on the group, and the TCP flow `{}` reacts to it",
            flow.table
        ),
        vec![
            "expected flows that do not react over this group (`protocol = \"udp\"`), or another controller"
                .to_owned(),
        ],
    ))
}

impl ResolvedLink {
    /// Its section in the file: `link` or `group`.
    #[must_use]
    pub const fn section(&self) -> &'static str {
        if self.group.is_some() {
            "group"
        } else {
            "link"
        }
    }
    /// The rate of all members together.
    #[must_use]
    pub fn total_rate(&self, way: Direction) -> Option<anabranch_core::units::Rate> {
        total_rate(&self.directions[way as usize], self.members())
    }
    /// The number of its links.
    #[must_use]
    pub fn members(&self) -> u32 {
        self.group.as_ref().map_or(1, |group| group.members)
    }
}

fn total_rate(direction: &Properties, members: u32) -> Option<anabranch_core::units::Rate> {
    let one = direction.rate?.bits_per_s();
    anabranch_core::units::Rate::new(one.saturating_mul(u64::from(members)))
}

/// Writes the resolved values into the table of a group.
pub(super) fn write_out(table: &mut Group, group: &ResolvedGroup, [forward, reverse]: [OneWay; 2]) {
    table.held_limit = Limit::Unlimited;
    table.forward = Some(forward);
    table.reverse = Some(reverse);
    table.control = Kind::BuiltIn(group.control.clone());
}
