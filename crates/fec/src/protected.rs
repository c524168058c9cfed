//! A TCP endpoint inside the FEC layer: its data is grouped and gets redundancy, its losses are
//! recovered before it detects them, and its acknowledgments may be held.
//!
//! It performs no I/O, like [`Endpoint`]. The owner uses [`Protected::tcp_mut`] only for operations
//! of an application.

use std::ops::Range;

use anabranch_core::{body::Body, packet::Ecn, units::Instant};

pub use super::layer::Outgoing;
use super::{layer::Layer, params::Config, stats::Stats};
use anabranch_tcp::Endpoint;
use anabranch_wire::{Seq, Transport};

/// See the module.
#[derive(Debug)]
pub struct Protected<B: Body> {
    tcp: Endpoint<B>,
    layer: Layer<B>,
}

impl<B: Body> Protected<B> {
    /// Wraps an endpoint before its first transmission.
    ///
    /// # Panics
    /// Without error correction.
    #[must_use]
    pub fn new(tcp: Endpoint<B>, config: &Config) -> Self {
        let layer = Layer::new(config).expect("error correction is on");
        Self { tcp, layer }
    }

    /// The endpoint.
    #[must_use]
    pub const fn tcp(&self) -> &Endpoint<B> {
        &self.tcp
    }
    /// The endpoint, for its application.
    pub const fn tcp_mut(&mut self) -> &mut Endpoint<B> {
        &mut self.tcp
    }
    /// The layer's counters.
    #[must_use]
    pub const fn stats(&self) -> &Stats {
        self.layer.stats()
    }

    /// Ranges that the last redundant packet recovered.
    #[must_use]
    pub fn repaired(&self) -> &[Range<Seq>] {
        self.layer.repaired()
    }

    /// The time at which [`Self::on_deadline`] must be called; [`Instant::NEVER`] if there is none.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.tcp.deadline().min(self.layer.deadline())
    }

    /// Handles a deadline. Early calls have no effect.
    pub fn on_deadline(&mut self, now: Instant) {
        if self.tcp.deadline() <= now {
            self.tcp.on_deadline(now);
        }
        self.layer.after_deadline(now, &mut self.tcp);
    }

    /// Processes an arriving packet with this ECN field.
    pub fn on_packet(&mut self, now: Instant, packet: &Transport<B>, ecn: Ecn) {
        match packet {
            Transport::Tcp(segment) => {
                self.layer.before(&self.tcp, segment);
                self.tcp.on_segment_passed_on(now, segment, ecn);
                self.layer.after(now, &mut self.tcp, segment);
            }
            Transport::Redundant(redundant) => {
                self.layer.on_redundant(now, &mut self.tcp, redundant);
            }
            Transport::Datagram(_) => {}
        }
    }

    /// Returns the next packet to send. Call it until `None`, after every other call.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Outgoing<B>> {
        loop {
            if let Some(own) = self.layer.next_own(now, &mut self.tcp) {
                return Some(own);
            }
            let Some(mut out) = self.tcp.poll_transmit(now) else {
                if self.layer.close_group(&self.tcp) {
                    continue;
                }
                return None;
            };
            let again = out.retransmission.is_some();
            if self.layer.pass(now, &self.tcp, &mut out.segment, again) {
                return Some(Outgoing {
                    transport: Transport::Tcp(out.segment),
                    size: out.size,
                    ecn: out.ecn,
                    retransmission: out.retransmission,
                });
            }
        }
    }
}
