//! The FEC layer beside a TCP endpoint: it processes arriving and departing segments and adds its
//! own packets.
//!
//! The owner of the endpoint calls [`Layer::before`], the endpoint and [`Layer::after`] for an
//! arriving segment; [`Layer::on_redundant`] for a redundant packet; the endpoint and
//! [`Layer::after_deadline`] at a deadline. To send, it calls [`Layer::next_own`] until `None`,
//! then the endpoint, passes the segment to [`Layer::pass`], and repeats this. If the endpoint has
//! no segment, it calls [`Layer::close_group`]. [`Protected`](super::Protected) does all of this.

use std::ops::Range;

use anabranch_core::{body::Body, packet::Ecn, units::Instant};

use super::{
    hold::{Held, Hold, Reason},
    params::Config,
    receiver::{Receiver, Recovered, Verdict},
    redundancy::{Redundancy, View},
    sender::Sender,
    stats::Stats,
};
use anabranch_tcp::{Endpoint, Refusals, RetransmitCause, State};
use anabranch_wire::{
    Flags, Segment, Seq, Transport,
    redundant::{Hidden, Redundant, secret},
};

/// A departing packet.
#[derive(Debug, Clone, PartialEq)]
pub struct Outgoing<B> {
    /// Its content.
    pub transport: Transport<B>,
    /// Bytes of the IPv4 packet.
    pub size: u32,
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// The cause of the retransmission, if its payload was sent before.
    pub retransmission: Option<RetransmitCause>,
}

/// The endpoint's state before the current segment.
#[derive(Debug, Clone, Copy)]
struct Before {
    /// Whether data may be received at all.
    may_receive: bool,
    rcv_nxt: Seq,
    window_end: Seq,
    refusals: Refusals,
}

impl Default for Before {
    fn default() -> Self {
        Self {
            may_receive: false,
            rcv_nxt: Seq::START,
            window_end: Seq::START,
            refusals: Refusals::default(),
        }
    }
}

/// See the module.
#[derive(Debug)]
pub struct Layer<B> {
    sender: Sender<B>,
    receiver: Receiver<B>,
    hold: Hold<B>,
    recovered_is_loss: bool,
    second_gap_releases: bool,
    /// The peer's count of losses that only its layer detected.
    heard: Hidden,
    /// The highest number of an acknowledgment without payload.
    latest_ack: Seq,
    /// One past the latest data.
    last_data: Seq,
    before: Before,
    timeouts: u64,
    recovered: Vec<Recovered<B>>,
    /// Ranges that the last redundant packet recovered.
    repaired: Vec<Range<Seq>>,
    stats: Stats,
}

impl<B: Body> Layer<B> {
    /// Creates a layer before the first transmission; `None` without error correction.
    #[must_use]
    pub fn new(config: &Config) -> Option<Self> {
        let (code, params) = config.parts()?;
        Some(Self {
            sender: Sender::new(code, config, params),
            receiver: Receiver::new(code),
            hold: Hold::new(params),
            recovered_is_loss: params.recovered_is_loss,
            second_gap_releases: params.second_gap_releases,
            heard: Hidden::default(),
            latest_ack: Seq::START,
            last_data: Seq::START,
            before: Before::default(),
            timeouts: 0,
            recovered: Vec::new(),
            repaired: Vec::new(),
            stats: Stats::default(),
        })
    }

    /// The layer's counters.
    #[must_use]
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Ranges that the last redundant packet recovered.
    #[must_use]
    pub fn repaired(&self) -> &[Range<Seq>] {
        &self.repaired
    }

    /// The time at which [`Self::after_deadline`] must be called, independent of the endpoint's
    /// deadline.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.hold.deadline()
    }

    /// Handles a deadline, after the endpoint has handled its own. Early calls have no effect.
    pub fn after_deadline(&mut self, now: Instant, tcp: &mut Endpoint<B>) {
        if tcp.stats().timeouts != self.timeouts {
            self.timeouts = tcp.stats().timeouts;
            self.sender.on_timeout();
            self.reserve(tcp);
        }
        if self.is_over(tcp) {
            return;
        }
        if self.hold.deadline() <= now {
            if self.hold.is_overdue(now) {
                let top = self.receiver.top();
                self.hold
                    .give_up(now, Reason::Timeout, top, &mut self.stats);
            }
            tcp.wake();
        }
    }

    /// Records the endpoint's state before it processes a segment.
    #[inline(never)]
    pub fn before(&mut self, tcp: &Endpoint<B>, segment: &Segment<B>) {
        // The first data may arrive with the acknowledgment that completes the handshake.
        let completes = tcp.state() == State::SynReceived && segment.flags.has(Flags::ACK);
        self.before = Before {
            may_receive: tcp.state().may_receive() || completes,
            rcv_nxt: tcp.rcv_nxt(),
            window_end: tcp.window_end(),
            refusals: tcp.refusals(),
        };
    }

    /// Processes a segment after the endpoint.
    #[inline(never)]
    pub fn after(&mut self, now: Instant, tcp: &mut Endpoint<B>, segment: &Segment<B>) {
        if self.is_over(tcp) {
            return;
        }
        // The layer ignores segments that TCP refuses.
        let refused = tcp.refusals() != self.before.refusals;
        if !segment.body.is_empty() {
            let verdict = if refused {
                Verdict::Nothing
            } else {
                self.take_data(tcp, segment)
            };
            self.judge(now, tcp, verdict, Reason::Retransmitted);
        } else if !refused && !segment.flags.any(Flags::SYN | Flags::RST) {
            // SYN and RST segments do not use the bits.
            self.hear(now, tcp, segment);
        }
        if self.sender.in_flight() > 0 {
            self.sender.on_progress(tcp.reached());
            self.reserve(tcp);
        }
    }

    /// Processes data that TCP has accepted or already had.
    fn take_data(&mut self, tcp: &Endpoint<B>, segment: &Segment<B>) -> Verdict {
        let Before {
            rcv_nxt,
            window_end,
            ..
        } = self.before;
        let mut verdict = Verdict::Nothing;
        if self.before.may_receive {
            let (own, peers) = tcp.initial_numbers();
            self.receiver.trust(secret(peers, own), window_end);
            verdict = self.receiver.on_data(segment, rcv_nxt);
        }
        self.last_data = rcv_nxt.near(segment.seq) + u64::from(segment.body.len());
        if verdict == Verdict::Nothing && self.last_data <= rcv_nxt {
            verdict = Verdict::Again;
        }
        verdict
    }

    /// Whether the connection is closed. If so, discards all packets that wait for transmission.
    fn is_over(&mut self, tcp: &Endpoint<B>) -> bool {
        let over = tcp.state() == State::Closed;
        if over {
            self.hold.clear();
            self.sender.clear();
        }
        over
    }

    /// Processes a redundant packet.
    #[inline(never)]
    pub fn on_redundant(&mut self, now: Instant, tcp: &mut Endpoint<B>, redundant: &Redundant<B>) {
        self.repaired.clear();
        if !tcp.state().may_receive() {
            return;
        }
        let mut recovered = std::mem::take(&mut self.recovered);
        let rcv_nxt = tcp.rcv_nxt();
        let (own, peers) = tcp.initial_numbers();
        self.receiver.trust(secret(peers, own), tcp.window_end());
        let verdict =
            self.receiver
                .on_redundant(redundant, rcv_nxt, &mut recovered, &mut self.stats);
        for Recovered { start, body } in recovered.drain(..) {
            let end = start + u64::from(body.len());
            self.last_data = self.last_data.max(end);
            self.hold.on_repaired(start, end);
            self.repaired.push(start..end);
            tcp.on_repaired(now, start, &body);
        }
        self.recovered = recovered;
        self.judge(now, tcp, verdict, Reason::Repaired);
    }

    /// Begins or ends a hold after the arrival of a packet.
    fn judge(&mut self, now: Instant, tcp: &mut Endpoint<B>, verdict: Verdict, filled: Reason) {
        let rcv_nxt = tcp.rcv_nxt();
        let top = self.receiver.top();
        if tcp.has_gaps() {
            self.hold.note_progress(rcv_nxt);
        } else {
            if self.hold.complete(now, filled, rcv_nxt, &mut self.stats) {
                tcp.repeat_marks();
            }
            if top <= rcv_nxt {
                return;
            }
            // Redundancy has shown that data is missing after all received data.
        }
        let stats = &mut self.stats;
        match verdict {
            Verdict::Nothing => {}
            Verdict::Again => self.hold.on_duplicate(now, top, stats),
            Verdict::Resent => self.hold.on_resent(now, top, stats),
            Verdict::SecondGap if self.second_gap_releases => {
                self.hold.give_up(now, Reason::SecondGap, top, stats);
            }
            Verdict::Gap | Verdict::SecondGap => self.hold.begin(now, stats),
            Verdict::GroupOver => self.hold.give_up(now, Reason::GroupOver, top, stats),
            Verdict::Passed(first) => self.hold.give_up(now, Reason::GroupOver, first, stats),
        }
    }

    /// Reads the peer's count of losses that TCP does not detect.
    fn hear(&mut self, now: Instant, tcp: &mut Endpoint<B>, segment: &Segment<B>) {
        // An overtaken acknowledgment carries old counts.
        let acknowledged = self.latest_ack.max(tcp.snd_una()).near(segment.ack);
        if acknowledged < self.latest_ack {
            return;
        }
        let is_later = acknowledged > self.latest_ack;
        self.latest_ack = acknowledged;
        let hidden = Hidden::read(segment);
        let losses = hidden.since(self.heard);
        // Modulo 8, a slightly older count looks like many new losses. That many are possible only
        // if other acknowledgments were lost.
        if losses == 0 || losses > 4 && !is_later {
            return;
        }
        self.heard = hidden;
        self.stats.hidden_losses += u64::from(losses);
        self.sender.redundancy().on_hidden_losses(now, losses);
        if self.recovered_is_loss && tcp.on_hidden_loss(now) {
            self.stats.hidden_reductions += 1;
        }
    }

    fn reserve(&self, tcp: &mut Endpoint<B>) {
        let packets = self.sender.in_flight() as u64;
        tcp.reserve_window(packets * u64::from(tcp.smss()));
    }

    /// Returns the next packet of the layer, to be sent before the endpoint's segments.
    #[inline(never)]
    pub fn next_own(&mut self, now: Instant, tcp: &mut Endpoint<B>) -> Option<Outgoing<B>> {
        if self.is_over(tcp) {
            return None;
        }
        if let Some(mut ack) = self.hold.take_released(now) {
            tcp.restamp(now, &mut ack);
            self.receiver.tell().write(&mut ack);
            return Some(Outgoing {
                size: ack.ip_size(),
                transport: Transport::Tcp(ack),
                ecn: tcp.acknowledgment_ecn(),
                retransmission: None,
            });
        }
        let mut redundant = self.sender.take_due(now, tcp.snd_una())?;
        let (own, peers) = tcp.initial_numbers();
        redundant.checksum = redundant.checksum.wrapping_add(secret(own, peers));
        self.reserve(tcp);
        let size = redundant.ip_size();
        self.stats.redundant_sent += 1;
        self.stats.redundant_bytes += u64::from(size);
        Some(Outgoing {
            transport: Transport::Redundant(redundant),
            size,
            ecn: Ecn::NotEct,
            retransmission: None,
        })
    }

    /// Processes a segment of the endpoint before transmission and writes the layer's header bits.
    /// Returns `false` if the segment is held and must not be sent now.
    #[inline(never)]
    pub fn pass(
        &mut self,
        now: Instant,
        tcp: &Endpoint<B>,
        segment: &mut Segment<B>,
        again: bool,
    ) -> bool {
        if !segment.body.is_empty() {
            if !again {
                let cwnd = tcp.cwnd().get() / u64::from(tcp.smss());
                let cwnd = u32::try_from(cwnd).unwrap_or(u32::MAX);
                self.sender.on_data(&View { now, cwnd }, segment);
            }
            self.sender.redundancy().on_sent(now, again);
        } else if is_acknowledgment(segment) && self.hold.holds(self.last_data) {
            let held = Held {
                ack: std::mem::take(segment),
                end: self.last_data,
                ready: now,
                scale: tcp.receive_scale(),
            };
            self.hold.keep(held, &mut self.stats);
            return false;
        } else if !segment.flags.any(Flags::SYN | Flags::RST) {
            self.receiver.tell().write(segment);
        }
        true
    }

    /// Closes the open group if the endpoint has no more data to send. Returns whether it did: the
    /// group's redundancy is then sent now.
    #[inline(never)]
    pub fn close_group(&mut self, tcp: &Endpoint<B>) -> bool {
        let closes = self.sender.has_open_group() && tcp.has_sent_all();
        if closes {
            self.sender.close();
        }
        closes
    }
}

/// Whether the segment is a pure acknowledgment, with or without an ECN echo.
fn is_acknowledgment<B: Body>(segment: &Segment<B>) -> bool {
    segment.body.is_empty()
        && segment.flags.has(Flags::ACK)
        && !segment.flags.any(Flags::SYN | Flags::FIN | Flags::RST)
}
