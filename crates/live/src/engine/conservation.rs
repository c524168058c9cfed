//! Conservation of packets: every packet of a run is accounted for, from the sending kernel through
//! the network to the receiving kernel. Each step is counted independently on both sides; if two
//! counts of the same packets differ, the run has failed.
//!
//! All counts cover the whole run, whatever part of it is measured.

use std::{fmt, io};

use anabranch_engine::network::Census;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    engine::audit::Recorder,
    kernel::tun::{Drops, Passed},
};

/// All packets of a live run, including the warm-up, in the order of their path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "LivePackets", extend("engine" = "live"))]
pub struct Packets {
    /// Packets sent by kernels, as the hosts' devices count; unknown for interfaces and for our own TCP.
    #[schemars(extend("unit" = "packets"))]
    pub kernel_sent: u64,
    /// Packets sent by kernels that the engine took, whether they belong to a flow or not.
    #[schemars(extend("unit" = "packets"))]
    pub kernel_taken: u64,
    /// Packets taken from all hosts, for the network.
    #[schemars(extend("unit" = "packets"))]
    pub taken: u64,
    /// Taken packets that never entered the network.
    #[schemars(extend("unit" = "packets"))]
    pub waiting: u64,
    /// Outcomes of the packets that entered the network.
    #[serde(flatten)]
    pub network: Census,
    /// Packets given to all hosts.
    #[schemars(extend("unit" = "packets"))]
    pub released: u64,
    /// Packets given to kernels whose devices count.
    #[schemars(extend("unit" = "packets"))]
    pub kernel_released: u64,
    /// Errors of routers given to these kernels; they belong to no flow.
    #[schemars(extend("unit" = "packets"))]
    pub kernel_answered: u64,
    /// Packets counted by these devices.
    #[schemars(extend("unit" = "packets"))]
    pub kernel_received: u64,
    /// Packets that these devices took and could not pass on.
    #[schemars(extend("unit" = "packets"))]
    pub kernel_refused: u64,
}

/// Counters of the devices, by node; `None` if a device does not count.
pub type Devices = [Option<(Passed, Drops)>];

impl Packets {
    /// `ends` are the nodes at both ends of each flow.
    pub fn of(
        recorder: &Recorder,
        network: Census,
        waiting: u64,
        (ends, devices): (&[[usize; 2]], &Devices),
    ) -> Self {
        let is_counted = |node: usize| devices.get(node).is_some_and(Option::is_some);
        let all = recorder.crossings(ends, |_| true);
        let counted = recorder.crossings(ends, is_counted);
        let sum = |of: fn(&(Passed, Drops)) -> u64| devices.iter().flatten().map(of).sum();
        Self {
            kernel_sent: sum(|(passed, _)| passed.from_host),
            kernel_taken: counted.taken + counted.left + counted.foreign,
            taken: all.taken,
            waiting,
            network,
            released: all.released + all.undelivered,
            kernel_released: counted.released,
            kernel_answered: counted.answered,
            kernel_received: sum(|(passed, _)| passed.to_host),
            kernel_refused: sum(|(_, drops)| drops.to_host),
        }
    }

    /// # Errors
    /// With the first step at which packets are missing or in excess.
    pub fn check(&self) -> io::Result<()> {
        let network = &self.network;
        let steps = [
            (
                "between the devices of hosts and the engine",
                self.kernel_sent,
                self.kernel_taken,
                0,
            ),
            (
                "between the engine and its network",
                self.taken,
                self.waiting + network.sent_packets,
                0,
            ),
            (
                "between the network and the hosts",
                network.received_packets,
                self.released,
                0,
            ),
            (
                "between the engine and the devices of hosts",
                self.kernel_released + self.kernel_answered,
                self.kernel_received,
                self.kernel_refused,
            ),
        ];
        let missing = |before: u64, after: u64| before.wrapping_sub(after).cast_signed();
        let of_steps =
            steps.map(|(place, before, after, may)| (place, missing(before, after), may));
        let inside = [("in the network", network.missing(), 0)];
        for (place, missing, may) in of_steps.into_iter().chain(inside) {
            if missing < 0 || missing.cast_unsigned() > may {
                let told = NotConserved {
                    missing,
                    place,
                    packets: self,
                };
                return Err(io::Error::other(told.to_string()));
            }
        }
        Ok(())
    }
}

/// The failed step, and all counts.
struct NotConserved<'a> {
    missing: i64,
    place: &'static str,
    packets: &'a Packets,
}

impl fmt::Display for NotConserved<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            missing,
            place,
            packets,
        } = self;
        let count = missing.unsigned_abs();
        let what = if *missing > 0 {
            "have gone without a trace"
        } else {
            "have come from nowhere"
        };
        let counts = serde_json::to_string(packets).map_err(|_| fmt::Error)?;
        write!(
            f,
            "packets are not conserved: {count} {what} {place} ({counts})"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change that makes a count wrong.
    type Wrong = fn(&mut Packets);

    fn balanced() -> Packets {
        Packets {
            kernel_sent: 100,
            kernel_taken: 100,
            taken: 150,
            waiting: 2,
            network: Census {
                sent_packets: 148,
                made_packets: 5,
                received_packets: 120,
                dropped_packets: 8,
                too_big_packets: 2,
                lost_packets: 9,
                discarded_packets: 3,
                held_packets: 4,
                in_flight_packets: 7,
            },
            released: 120,
            kernel_released: 80,
            kernel_answered: 3,
            kernel_received: 81,
            kernel_refused: 2,
        }
    }

    /// Detects an excess or a lack of one packet in any of the counts.
    #[test]
    fn each_count_is_checked() {
        assert!(balanced().check().is_ok());
        let wrongs: [(&str, Wrong); 14] = [
            ("1 have gone without a trace between the devices", |p| {
                p.kernel_taken -= 1;
            }),
            ("1 have come from nowhere between the devices", |p| {
                p.kernel_sent -= 1;
            }),
            ("between the engine and its network", |p| p.taken += 1),
            ("between the engine and its network", |p| p.waiting -= 1),
            ("in the network", |p| p.network.dropped_packets -= 1),
            ("in the network", |p| p.network.too_big_packets -= 1),
            ("between the engine and the devices", |p| {
                p.kernel_answered += 1;
            }),
            ("in the network", |p| p.network.lost_packets -= 1),
            ("in the network", |p| p.network.discarded_packets -= 1),
            ("in the network", |p| p.network.held_packets -= 1),
            ("in the network", |p| p.network.in_flight_packets += 1),
            ("in the network", |p| p.network.made_packets -= 1),
            ("between the network and the hosts", |p| p.released += 1),
            ("between the engine and the devices", |p| {
                p.kernel_refused -= 1;
            }),
        ];
        for (told, wrong) in wrongs {
            let mut packets = balanced();
            wrong(&mut packets);
            let error = packets.check().expect_err(told).to_string();
            assert!(error.contains(told), "{error}");
        }
    }
}
