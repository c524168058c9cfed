//! A TCP endpoint inside the layer: what leaves it is grouped and gets its redundancy, what is lost is
//! brought back before it hears of it, and its acknowledgments may have to wait.
//!
//! Sans-I/O as the [`Endpoint`] is; the owner uses [`Protected::tcp_mut`] for what an application does, and
//! nothing else of it.

use anabranch_core::{packet::Ecn, units::Instant};

use super::{
    hold::{Hold, Reason},
    packet::{Hidden, Redundant},
    params::Config,
    receiver::{Receiver, Recovered, Verdict},
    redundancy::{Redundancy, View},
    sender::Sender,
    stats::Stats,
};
use crate::{
    body::Body,
    tcp::{Endpoint, Flags, RetransmitCause, Segment, Seq},
    transport::Transport,
};

/// A packet on its way out.
#[derive(Debug, Clone, PartialEq)]
pub struct Outgoing<B> {
    /// Its content.
    pub transport: Transport<B>,
    /// Bytes of the IPv4 packet.
    pub size: u32,
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// Its payload was sent before, and leaves again for this.
    pub retransmission: Option<RetransmitCause>,
}

/// See the module.
#[derive(Debug)]
pub struct Protected<B: Body> {
    tcp: Endpoint<B>,
    sender: Sender<B>,
    receiver: Receiver<B>,
    hold: Hold<B>,
    recovered_is_loss: bool,
    second_gap_releases: bool,
    /// The peer's count of losses that only its layer saw.
    heard: Hidden,
    /// Behind the data that came last.
    last_data: Seq,
    timeouts: u64,
    recovered: Vec<Recovered<B>>,
    stats: Stats,
}

impl<B: Body> Protected<B> {
    /// An endpoint that has not begun, inside the layer.
    ///
    /// # Panics
    /// If there is to be no error correction.
    #[must_use]
    pub fn new(tcp: Endpoint<B>, config: &Config) -> Self {
        let (code, params) = config.parts().expect("error correction is on");
        let tcp = if params.occupies_cwnd {
            tcp.with_reserved_window()
        } else {
            tcp
        };
        Self {
            sender: Sender::new(code, config, params),
            receiver: Receiver::new(code),
            hold: Hold::new(params),
            recovered_is_loss: params.recovered_is_loss,
            second_gap_releases: params.second_gap_releases,
            heard: Hidden::default(),
            last_data: Seq::START,
            timeouts: 0,
            recovered: Vec::new(),
            stats: Stats::default(),
            tcp,
        }
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
        &self.stats
    }

    /// When [`Self::on_deadline`] wants to be called; [`Instant::NEVER`] if not at all.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.tcp.deadline().min(self.hold.deadline())
    }

    /// The time asked for has come. Early calls do nothing.
    pub fn on_deadline(&mut self, now: Instant) {
        if self.tcp.deadline() <= now {
            self.tcp.on_deadline(now);
            if self.tcp.stats().timeouts != self.timeouts {
                self.timeouts = self.tcp.stats().timeouts;
                self.sender.on_timeout();
                self.reserve();
            }
        }
        if self.hold.deadline() <= now {
            let top = self.tcp.rcv_nxt().max(self.last_data);
            self.hold.give_up(Reason::Timeout, top, &mut self.stats);
        }
    }

    /// A packet arrives with this ECN field.
    pub fn on_packet(&mut self, now: Instant, packet: &Transport<B>, ecn: Ecn) {
        match packet {
            Transport::Tcp(segment) if segment.body.is_empty() => {
                let hidden = Hidden::read(segment);
                self.tcp.on_segment(now, segment, ecn);
                // Segments of the handshake and resets use the bits for nothing.
                if !segment.flags.any(Flags::SYN | Flags::RST) {
                    self.hear(now, hidden);
                }
                self.after_acknowledgment();
            }
            Transport::Tcp(segment) => {
                self.on_data(now, segment, ecn);
                self.after_acknowledgment();
            }
            Transport::Redundant(redundant) => self.on_redundant(now, redundant),
            Transport::Datagram(_) => {}
        }
    }

    fn on_data(&mut self, now: Instant, segment: &Segment<B>, ecn: Ecn) {
        let before = self.tcp.rcv_nxt();
        let verdict = if self.tcp.state().may_receive() {
            self.receiver.on_data(segment, before)
        } else {
            Verdict::Nothing
        };
        self.last_data = before.near(segment.seq) + u64::from(segment.body.len());
        self.tcp.on_segment(now, segment, ecn);
        self.judge(now, verdict, Reason::Retransmitted);
    }

    fn on_redundant(&mut self, now: Instant, redundant: &Redundant<B>) {
        if !self.tcp.state().may_receive() {
            return;
        }
        let mut recovered = std::mem::take(&mut self.recovered);
        let rcv_nxt = self.tcp.rcv_nxt();
        let verdict =
            self.receiver
                .on_redundant(redundant, rcv_nxt, &mut recovered, &mut self.stats);
        for Recovered { start, body } in recovered.drain(..) {
            self.last_data = self.last_data.max(start + u64::from(body.len()));
            self.tcp.on_repaired(now, start, &body);
        }
        self.recovered = recovered;
        self.judge(now, verdict, Reason::Repaired);
    }

    /// What has come may begin or end a hold.
    fn judge(&mut self, now: Instant, verdict: Verdict, filled: Reason) {
        let rcv_nxt = self.tcp.rcv_nxt();
        if !self.tcp.has_gaps() {
            self.hold.complete(filled, rcv_nxt, &mut self.stats);
            return;
        }
        self.hold.note_progress(rcv_nxt);
        let top = rcv_nxt.max(self.last_data);
        match verdict {
            Verdict::Nothing => {}
            Verdict::SecondGap if self.second_gap_releases => {
                self.hold.give_up(Reason::SecondGap, top, &mut self.stats);
            }
            Verdict::Gap | Verdict::SecondGap => self.hold.begin(now, &mut self.stats),
            Verdict::GroupOver => self.hold.give_up(Reason::GroupOver, top, &mut self.stats),
        }
    }

    /// The peer's count of losses that TCP does not hear of.
    fn hear(&mut self, now: Instant, hidden: Hidden) {
        let losses = hidden.since(self.heard);
        if losses == 0 {
            return;
        }
        self.heard = hidden;
        self.stats.hidden_losses += u64::from(losses);
        self.sender.redundancy().on_hidden_losses(now, losses);
        if self.recovered_is_loss && self.tcp.on_hidden_loss(now) {
            self.stats.hidden_reductions += 1;
        }
    }

    fn after_acknowledgment(&mut self) {
        if self.sender.in_flight() > 0 {
            self.sender.on_progress(self.tcp.reached());
            self.reserve();
        }
    }

    fn reserve(&mut self) {
        let packets = self.sender.in_flight() as u64;
        self.tcp
            .reserve_window(packets * u64::from(self.tcp.smss()));
    }

    /// The next packet to send. To be called until `None`, after everything else that is called.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Outgoing<B>> {
        if let Some(mut ack) = self.hold.take_released() {
            self.tcp.restamp(now, &mut ack);
            self.receiver.hidden().write(&mut ack);
            return Some(Outgoing {
                size: ack.ip_size(),
                transport: Transport::Tcp(ack),
                ecn: Ecn::NotEct,
                retransmission: None,
            });
        }
        if let Some(redundant) = self.sender.take_due(now, self.tcp.snd_una()) {
            return Some(self.redundant(redundant));
        }
        loop {
            let Some(out) = self.tcp.poll_transmit(now) else {
                if self.sender.has_open_group() && self.tcp.has_sent_all() {
                    self.sender.close();
                    let redundant = self.sender.take_due(now, self.tcp.snd_una())?;
                    return Some(self.redundant(redundant));
                }
                return None;
            };
            let mut segment = out.segment;
            if !segment.body.is_empty() {
                if out.retransmission.is_none() {
                    let view = View {
                        now,
                        cwnd: u32::try_from(self.tcp.cwnd().get() / u64::from(self.tcp.smss()))
                            .unwrap_or(u32::MAX),
                    };
                    self.sender.on_data(&view, &mut segment);
                }
                let again = out.retransmission.is_some();
                self.sender.redundancy().on_sent(now, again);
            } else if segment.flags == Flags::ACK && self.hold.is_on() {
                self.hold.keep(segment, self.last_data, &mut self.stats);
                continue;
            } else if !segment.flags.any(Flags::SYN | Flags::RST) {
                self.receiver.hidden().write(&mut segment);
            }
            return Some(Outgoing {
                transport: Transport::Tcp(segment),
                size: out.size,
                ecn: out.ecn,
                retransmission: out.retransmission,
            });
        }
    }

    fn redundant(&mut self, redundant: Redundant<B>) -> Outgoing<B> {
        self.reserve();
        let size = redundant.ip_size();
        self.stats.redundant_sent += 1;
        self.stats.redundant_bytes += u64::from(size);
        Outgoing {
            transport: Transport::Redundant(redundant),
            size,
            ecn: Ecn::NotEct,
            retransmission: None,
        }
    }
}
