//! Detection of flows whose packets would return at the instant of their departure.

use anabranch_core::units::Bytes;
use anabranch_path::link::Properties;

use super::{Hop, ResolvedGateway, Step, route::Routes};
use crate::format::{File, Protocol};

/// An acknowledgment without options: the smallest packet of a round trip.
const LEAST_PACKET: Bytes = Bytes::new(40);

/// The remedy for such a flow.
pub(super) const HELP: &str = "give a link of its path a rate or a delay";

/// Returns the first flow with a round trip of zero: it would send forever at one instant, and the
/// run would never end.
pub(super) fn without_time<'a>(
    file: &'a File,
    gateways: &[ResolvedGateway],
    routes: &[Routes],
    direction: impl Fn(&Hop) -> &'a Properties,
) -> Option<&'a str> {
    let takes_time = |hop: &Hop| {
        let direction = direction(hop);
        let sending = direction.rate.map(|rate| LEAST_PACKET / rate);
        !direction.least_delay().is_zero() || sending.is_some_and(|time| !time.is_zero())
    };
    // For a gateway, the fastest route counts.
    let takes_time = |step: &Step| step.hops(gateways).all(|hop| takes_time(&hop));
    file.flow
        .0
        .iter()
        .zip(routes)
        // UDP has no return traffic: its sender is paced by a clock.
        .filter(|((_, flow), _)| flow.protocol == Protocol::Tcp)
        .find(|(_, routes)| !routes.there.iter().chain(&routes.back).any(takes_time))
        .map(|((name, _), _)| name.as_str())
}
