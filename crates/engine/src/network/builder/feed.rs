//! The feeders of each link, which decide the links that can be computed ahead and those sharing a
//! ring.

use std::collections::BTreeMap;

use anabranch_core::{
    body::Body,
    units::{Duration, Rate, text::Limit},
};

use super::{
    super::{
        LinkId,
        fabric::{LANES, NO_RING},
    },
    FlowSpec, LinkSpec, Stop, Traffic,
    spec::MiddleboxSpec,
};

/// The feeder of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Feed {
    /// None yet.
    None,
    /// One plain link that takes time.
    Plain(u32),
    /// An endpoint, a middlebox, a served link, or several feeders.
    Other,
}

/// Whether the output of a link is later than its input.
const fn takes_time(spec: &LinkSpec) -> bool {
    spec.link.rate.is_some() || !spec.link.delay.is_zero()
}

/// Returns the feeder of each link that can be computed ahead: a plain link fed by a single plain
/// link. Both must take time: the output of a folded link must be later than the input from which
/// it is computed, or the order of events at one instant could depend on the folding.
pub(super) fn folded_links<B: Body>(
    links: &[LinkSpec],
    plain: &[Option<Limit>],
    flows: &[FlowSpec<B>],
    middleboxes: &[MiddleboxSpec<B>],
) -> Vec<Option<u32>> {
    let takes_time = |index: u32| takes_time(&links[index as usize]);
    let mut feeds = vec![Feed::None; links.len()];
    for port in middleboxes.iter().flat_map(|spec| &spec.ports) {
        feeds[port.0 as usize] = Feed::Other;
    }
    for stops in flows
        .iter()
        .flat_map(|flow| [&flow.route, &flow.return_route])
    {
        let mut previous = Feed::Other;
        for stop in stops {
            let Stop::Link(LinkId(link)) = *stop else {
                previous = Feed::Other;
                continue;
            };
            // The size of an entering packet is checked first, at an event.
            if links[link as usize].link.mtu.is_some() {
                previous = Feed::Other;
            }
            let feed = &mut feeds[link as usize];
            *feed = if *feed == Feed::None || *feed == previous {
                previous
            } else {
                Feed::Other
            };
            let foldable = plain[link as usize].is_some() && takes_time(link);
            previous = if foldable {
                Feed::Plain(link)
            } else {
                Feed::Other
            };
        }
    }
    (0..links.len())
        .map(|index| {
            let here = u32::try_from(index).expect("links are counted in 32 bits");
            match feeds[index] {
                Feed::Plain(feeder) if plain[index].is_some() && takes_time(here) => Some(feeder),
                _ => None,
            }
        })
        .collect()
}

/// Returns, for each flow, whether its receiver and its sender may run ahead
/// ([`super::super::ahead`]). Its packets in both directions cross only links. The last link before
/// the end is plain. The links of the packets that the end sends have no MTU, and the first of them
/// is plain and has no other user.
pub(super) fn ahead_flows<B: Body>(
    links: &[LinkSpec],
    plain: &[Option<Limit>],
    flows: &[FlowSpec<B>],
    middleboxes: &[MiddleboxSpec<B>],
) -> Vec<[bool; 2]> {
    let mut users = vec![0_u32; links.len()];
    let routes = flows
        .iter()
        .flat_map(|flow| [&flow.route, &flow.return_route]);
    for link in routes.flatten().filter_map(|stop| stop.link()) {
        users[link] += 1;
    }
    for port in middleboxes.iter().flat_map(|spec| &spec.ports) {
        users[port.0 as usize] += 1;
    }
    let is_plain = |link: usize| {
        plain[link].is_some() && links[link].link.mtu.is_none() && takes_time(&links[link])
    };
    let ends = |arriving: &[Stop], leaving: &[Stop]| {
        let (Some(last), Some(first)) = (
            arriving.last().and_then(|stop| stop.link()),
            leaving.first().and_then(|stop| stop.link()),
        ) else {
            return false;
        };
        // A router or a gateway that refuses a packet for its size reports to its sender.
        arriving.iter().all(|stop| stop.link().is_some())
            && leaving.iter().all(|stop| {
                stop.link()
                    .is_some_and(|link| links[link].link.mtu.is_none())
            })
            && is_plain(last)
            && is_plain(first)
            && users[first] == 1
    };
    let runs_ahead = |flow: &FlowSpec<B>| {
        if matches!(flow.traffic, Traffic::Tcp { .. }) {
            let (forward, reverse) = (&flow.route, &flow.return_route);
            [ends(forward, reverse), ends(reverse, forward)]
        } else {
            [false; 2]
        }
    };
    flows.iter().map(runs_ahead).collect()
}

/// The common property of links that share a ring, because of which their packets mostly arrive in
/// the order of departure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RingKey {
    /// One link feeds them all.
    FedBy(u32),
    /// Endpoints or middleboxes feed them, and they have the same rate in bits per second and the
    /// same delay.
    FromEndpoints(Option<u64>, Duration),
    /// The same for receivers, or for senders, that run ahead: their packets enter the links later
    /// than now.
    FromAhead(Side, Option<u64>, Duration),
}

/// The ends that feed a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Receivers,
    Senders,
}

/// Returns, for each link, the ring of its output (the first of the [`LANES`] shared ones, or its
/// own) and its own ring, and the number of rings. Shared rings have the lower numbers, so that
/// their packets precede others at one instant. A link with one has no separate ring yet.
pub(super) fn shared_rings<B: Body>(
    links: &[LinkSpec],
    flows: &[FlowSpec<B>],
    middleboxes: &[MiddleboxSpec<B>],
    ahead: &[[bool; 2]],
) -> (Vec<(u32, u32)>, usize) {
    let number = |index: usize| u32::try_from(index).expect("links are counted in 32 bits");
    let mut feeds = vec![Vec::<Option<u32>>::new(); links.len()];
    let mut apart = vec![false; links.len()];
    for port in middleboxes.iter().flat_map(|spec| &spec.ports) {
        apart[port.0 as usize] = true;
    }
    for stops in flows
        .iter()
        .flat_map(|flow| [&flow.route, &flow.return_route])
    {
        let mut previous = None;
        for stop in stops {
            match *stop {
                Stop::Link(LinkId(link)) => {
                    let feeds = &mut feeds[link as usize];
                    if !feeds.contains(&previous) && feeds.len() < 2 {
                        feeds.push(previous);
                    }
                    previous = Some(link);
                }
                Stop::Middlebox(_) | Stop::Processing(_) => previous = None,
            }
        }
    }
    let mut fed_ahead = vec![None; links.len()];
    for (flow, [receiver, sender]) in flows.iter().zip(ahead) {
        for (runs, route, side) in [
            (receiver, &flow.return_route, Side::Receivers),
            (sender, &flow.route, Side::Senders),
        ] {
            if let Some(first) = route.first().and_then(|stop| stop.link()).filter(|_| *runs) {
                fed_ahead[first] = Some(side);
            }
        }
    }
    let key = |index: usize| match *feeds[index] {
        _ if apart[index] => None,
        [Some(feeder)] => Some(RingKey::FedBy(feeder)),
        [None] => {
            let link = &links[index].link;
            let rate = link.rate.map(Rate::bits_per_s);
            Some(match fed_ahead[index] {
                Some(side) => RingKey::FromAhead(side, rate, link.delay),
                None => RingKey::FromEndpoints(rate, link.delay),
            })
        }
        _ => None,
    };
    let mut members = BTreeMap::<RingKey, Vec<usize>>::new();
    for index in 0..links.len() {
        if let Some(key) = key(index) {
            members.entry(key).or_default().push(index);
        }
    }
    let shared: Vec<_> = members
        .into_values()
        .filter(|members| members.len() > 1)
        .collect();
    let lanes = shared.len() * LANES as usize;
    let mut rings = vec![None; links.len()];
    for (ring, members) in (0..).step_by(LANES as usize).zip(&shared) {
        for &index in members {
            rings[index] = Some((ring, NO_RING));
        }
    }
    let mut own = lanes..;
    let rings = rings.into_iter().map(|ring| {
        ring.unwrap_or_else(|| {
            let own = number(own.next().expect("numbers do not end"));
            (own, own)
        })
    });
    (rings.collect(), own.start)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use anabranch_congestion::{self as cc};
    use anabranch_core::{
        body::Length,
        units::{Bytes, Instant},
    };
    use anabranch_fec as fec;
    use anabranch_path::{
        link::Mtu,
        middlebox::{Held, Middlebox, Output},
    };
    use anabranch_scenario::workload::Sizes;
    use anabranch_tcp::Profile;

    use super::{super::super::MiddleboxId, *};
    use crate::network::App;

    /// Forwards every packet.
    #[derive(Debug)]
    struct Forward;

    impl Middlebox<Length> for Forward {
        fn on_packet(&mut self, _now: Instant, packet: Held<Length>, out: &mut Output<Length>) {
            out.forward(packet);
        }
    }

    const LINK: [Stop; 4] = [
        Stop::Link(LinkId(0)),
        Stop::Link(LinkId(1)),
        Stop::Link(LinkId(2)),
        Stop::Link(LinkId(3)),
    ];
    const GATEWAY: Stop = Stop::Middlebox(MiddleboxId(0));

    fn flow(route: &[Stop], return_route: &[Stop]) -> FlowSpec<Length> {
        let settings = Arc::new(Profile::named("rfc").expect("it exists").settings);
        FlowSpec {
            name: "f".to_owned(),
            ends: [0, 1],
            route: route.to_vec(),
            return_route: return_route.to_vec(),
            start: Instant::START,
            stop: None,
            dscp: 0,
            traffic: Traffic::Tcp {
                settings,
                control: cc::Config::named("reno").expect("it exists"),
                app: App::Bulk,
            },
            fec: fec::Config::Off,
            read_delays: Arc::default(),
            idle_read_delays: Arc::default(),
            first_write_delays: Arc::default(),
        }
    }

    /// A flow there over links 0 and 1, and back over 2 and 3.
    fn usual() -> Vec<FlowSpec<Length>> {
        vec![flow(&LINK[..2], &LINK[2..])]
    }

    /// Whether the receiver and the sender of the first flow may run ahead.
    fn ahead(
        change: impl Fn(&mut [LinkSpec]),
        flows: &[FlowSpec<Length>],
        ports: &[u32],
    ) -> [bool; 2] {
        let delay = Duration::from_millis(1);
        let mut links: Vec<_> = (0..4)
            .map(|link| LinkSpec::new(format!("{link}"), None, delay))
            .collect();
        change(&mut links);
        let plain: Vec<_> = links.iter().map(LinkSpec::plain_limit).collect();
        let gateway = MiddleboxSpec {
            name: "g".to_owned(),
            middlebox: Box::new(Forward) as Box<dyn Middlebox<Length>>,
            ports: ports.iter().map(|port| LinkId(*port)).collect(),
            onward: None,
            wakes: None,
            begins: false,
            overhead: 0,
        };
        ahead_flows(&links, &plain, flows, &[gateway])[0]
    }

    #[test]
    fn both_ends_run_ahead_over_plain_links() {
        assert_eq!(ahead(|_| {}, &usual(), &[]), [true, true]);
    }

    /// The receiver takes packets from link 1 and sends to link 2; the sender takes them from 3 and
    /// sends to 0.
    #[test]
    fn an_end_does_not_run_ahead_of_a_link_that_is_not_plain() {
        for (link, expected) in [[true, false], [false, true], [false, true], [true, false]]
            .into_iter()
            .enumerate()
        {
            let served = |links: &mut [LinkSpec]| links[link].may_change = true;
            assert_eq!(ahead(served, &usual(), &[]), expected, "{link}");
            let timeless = |links: &mut [LinkSpec]| links[link].link.delay = Duration::ZERO;
            assert_eq!(ahead(timeless, &usual(), &[]), expected, "{link}");
        }
    }

    /// A router reports a packet that is too large to its sender.
    #[test]
    fn an_end_does_not_run_ahead_of_reports() {
        for (link, expected) in [[true, false], [false, false], [false, true], [false, false]]
            .into_iter()
            .enumerate()
        {
            let narrow = |links: &mut [LinkSpec]| {
                links[link].link.mtu = Some(Mtu {
                    bytes: 1_000,
                    reports: true,
                });
            };
            assert_eq!(ahead(narrow, &usual(), &[]), expected, "{link}");
        }
    }

    /// A gateway reports as well, for the MTU of a port.
    #[test]
    fn no_end_runs_ahead_of_a_gateway() {
        let there = flow(&[LINK[0], GATEWAY, LINK[1]], &LINK[2..]);
        assert_eq!(ahead(|_| {}, &[there], &[]), [false, false]);
        let back = flow(&LINK[..2], &[LINK[2], GATEWAY, LINK[3]]);
        assert_eq!(ahead(|_| {}, &[back], &[]), [false, false]);
    }

    /// Transfers reuse the places of connections.
    #[test]
    fn no_end_of_a_workload_runs_ahead() {
        let mut flows = usual();
        let settings = Arc::new(Profile::named("rfc").expect("it exists").settings);
        flows[0].traffic = Traffic::Poisson {
            settings,
            control: cc::Config::named("reno").expect("it exists"),
            rate: 1.0,
            sizes: Sizes::Fixed {
                size: Bytes::new(1),
            },
            profile: None,
        };
        assert_eq!(ahead(|_| {}, &flows, &[]), [false, false]);
    }

    #[test]
    fn the_first_link_of_an_end_that_runs_ahead_has_no_other_user() {
        // Link 0 is the sender's first, and link 2 the receiver's.
        let another = |stops: &[Stop]| {
            let mut flows = usual();
            flows.push(flow(&LINK[1..2], stops));
            flows
        };
        assert_eq!(ahead(|_| {}, &another(&LINK[..1]), &[]), [true, false]);
        assert_eq!(ahead(|_| {}, &another(&LINK[2..3]), &[]), [false, true]);
        assert_eq!(ahead(|_| {}, &another(&LINK[3..]), &[]), [true, true]);
        assert_eq!(ahead(|_| {}, &usual(), &[0]), [true, false]);
        assert_eq!(ahead(|_| {}, &usual(), &[2]), [false, true]);
    }
}
