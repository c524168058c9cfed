//! TCP Fast Open (RFC 7413): data in the SYN, for a peer that has shown a cookie.
//!
//! The owner keeps the cookies: a client's cache of the cookies and the MSS of servers (§4.1.3),
//! and a server's secret (§4.1.2).
//!
//! # Differs from RFC 7413
//! - A FIN in a SYN is ignored.
//! - The SYN's data is not outstanding: data that the SYN-ACK does not acknowledge is new data.

use anabranch_core::{body::Body, units::Instant};

use super::Endpoint;
use crate::{settings::Settings, state::State};
use anabranch_wire::{
    FastOpen,
    segment::{Flags, Options, Segment},
    seq::Seq,
};

/// How a client opens (RFC 7413 §4.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FastOpenClient {
    /// The server's cookie, or the request for one; `None` to send data without.
    pub option: Option<FastOpen>,
    /// Maximum octets of data in the SYN.
    pub most: u32,
    /// The application waits for the connection to write: its data acknowledges the SYN-ACK.
    pub writer_waits: bool,
}

/// Policy of a listener (RFC 7413 §4.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FastOpenServer {
    /// The cookie of the client's address.
    pub cookie: FastOpen,
    /// Its cookie by the previous secret (§4.1.2).
    pub older: Option<FastOpen>,
    /// Data is accepted without a cookie.
    pub without_cookie: bool,
}

/// Results of an opening, for a client's cache and for reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FastOpenOutcome {
    /// Data in the SYN has arrived: a client's is acknowledged by the SYN-ACK, a server has accepted
    /// it.
    pub syn_data: bool,
    /// The cookie that a SYN-ACK carried.
    pub cookie: Option<FastOpen>,
    /// The MSS that a SYN-ACK carried.
    pub mss: Option<u16>,
    /// The SYN was retransmitted, without the option.
    pub is_retransmitted: bool,
}

/// State of an opening with Fast Open.
#[derive(Debug, Default)]
pub(super) struct Opening {
    client: Option<FastOpenClient>,
    server: Option<FastOpenServer>,
    outcome: FastOpenOutcome,
    /// Octets of data that the SYN carried.
    carried: u32,
    /// The option of the SYN-ACK.
    answer: Option<FastOpen>,
    /// A server has accepted the SYN: data flows before the handshake is complete.
    early: bool,
    /// Time of the first SYN-ACK of an early connection.
    answered_at: Option<Instant>,
}

/// Additions to the first SYN or SYN-ACK.
pub(super) struct Additions<B> {
    pub(super) option: Option<FastOpen>,
    pub(super) body: B,
}

impl<B: Body> Endpoint<B> {
    /// Opens the connection as [`Self::open`] does, with data and an option in the first SYN. The
    /// data has been written before.
    pub fn open_fast(&mut self, now: Instant, client: FastOpenClient) {
        self.cold.begin_fast_open().client = Some(client);
        self.open(now);
    }

    /// Lets a listener accept data in a SYN, or hand out a cookie; `None` ends it.
    pub fn accept_fast_open(&mut self, server: Option<FastOpenServer>) {
        if server.is_some() || self.cold.fast_open().is_some() {
            self.cold.begin_fast_open().server = server;
        }
    }

    /// The results of Fast Open.
    #[must_use]
    pub fn fast_open(&self) -> FastOpenOutcome {
        let opening = self.cold.fast_open();
        opening.map_or_else(FastOpenOutcome::default, |opening| opening.outcome)
    }

    /// Whether data flows although our SYN is not acknowledged (RFC 7413 §4.2.2).
    #[must_use]
    pub fn is_early(&self) -> bool {
        self.state == State::SynReceived && self.began_early()
    }

    /// Whether a server has accepted data with the SYN.
    pub(super) fn began_early(&self) -> bool {
        let opening = self.cold.fast_open();
        opening.is_some_and(|opening| opening.early)
    }

    /// Additions to a SYN or SYN-ACK. A retransmission of a SYN has neither the option nor data
    /// (RFC 7413 §4.2.1): a middlebox may have dropped the SYN because of them.
    pub(super) fn syn_additions(&mut self, now: Instant, retransmitted: bool) -> Additions<B> {
        let first = self.snd.queue.first_octet();
        let unsent = self.snd.queue.unsent(first);
        let none = Additions {
            option: None,
            body: B::default(),
        };
        let Some(opening) = self.cold.fast_open_mut() else {
            return none;
        };
        if self.state == State::SynReceived {
            opening.answered_at.get_or_insert(now);
            let option = opening.answer;
            return Additions { option, ..none };
        }
        let Some(client) = opening.client.filter(|_| !retransmitted) else {
            return none;
        };
        let is_request = client.option.is_some_and(|option| option.is_request());
        let len = if is_request { 0 } else { client.most };
        let len = u32::try_from(unsent).unwrap_or(u32::MAX).min(len);
        opening.carried = len;
        let body = if len > 0 {
            self.snd.queue.body(first, len)
        } else {
            B::default()
        };
        Additions {
            option: client.option,
            body,
        }
    }

    /// Octets of data that our SYN carried.
    pub(super) fn carried(&self) -> u64 {
        let opening = self.cold.fast_open();
        opening.map_or(0, |opening| u64::from(opening.carried))
    }

    /// Whether the acknowledgment of a SYN-ACK leaves with data: data of the SYN is retransmitted, or
    /// the application is about to write.
    pub(super) fn acknowledges_with_data(&self, ack: Seq) -> bool {
        let Some(opening) = self.cold.fast_open() else {
            return false;
        };
        let end = self.snd.queue.first_octet() + u64::from(opening.carried);
        let waits = opening.client.is_some_and(|client| client.writer_waits);
        ack < end || waits
    }

    /// The SYN-ACK acknowledges our SYN and its data before `ack`. The rest of the data is sent as
    /// new data.
    pub(super) fn on_fast_syn_ack(&mut self, segment: &Segment<B>, ack: Seq) {
        let first = self.snd.queue.first_octet();
        let is_retransmitted = self.snd.stats.retransmitted_syns > 0;
        let Some(opening) = self.cold.fast_open_mut() else {
            return;
        };
        opening.outcome.is_retransmitted = is_retransmitted;
        if let Some(client) = opening.client {
            let is_cookie = |option: &FastOpen| !option.is_request();
            let offered = segment.options.fast_open().filter(is_cookie);
            // A cookie that was not asked for is not taken.
            opening.outcome.cookie = offered.filter(|_| client.option.is_some());
            if let Options::Syn { mss, .. } = segment.options {
                opening.outcome.mss = Some(mss);
            }
        }
        let acked = ack.since(first);
        let end = first + u64::from(opening.carried);
        if opening.client.is_some_and(|client| client.writer_waits) {
            self.rcv.ack.answers_syn_ack();
        }
        opening.outcome.syn_data = opening.carried > 0 && acked >= u64::from(opening.carried);
        self.snd.nxt = self.snd.nxt.max(ack);
        self.snd.queue.release(ack);
        if ack < end {
            // The data of the SYN stays a segment, and was not delayed before.
            self.snd.queue.keep_whole(end);
        }
    }

    /// Takes the data of a SYN-ACK (RFC 9293 §3.10.7.3), which only an end with Fast Open expects.
    pub(super) fn takes_syn_ack_data(&self) -> bool {
        self.cold.fast_open().is_some()
    }

    /// Judges the peer's SYN (RFC 7413 §4.2.2). Returns whether the connection may begin before the
    /// handshake is complete.
    pub(super) fn judge_syn(&mut self, segment: &Segment<B>) -> bool {
        let Some(opening) = self.cold.fast_open_mut() else {
            return false;
        };
        let Some(server) = opening.server else {
            return false;
        };
        let has_data = !segment.body.is_empty();
        opening.answer = None;
        let valid = match segment.options.fast_open() {
            None => server.without_cookie && has_data,
            Some(_) if server.without_cookie && has_data => true,
            Some(option) => {
                let plain = option.experimental(false);
                let is_older = server.older == Some(plain);
                let valid = server.cookie == plain || is_older;
                if !valid || is_older {
                    let kind = option.is_experimental();
                    opening.answer = Some(server.cookie.experimental(kind));
                }
                valid
            }
        };
        opening.early = valid;
        opening.outcome.syn_data = valid && has_data;
        valid
    }

    /// Begins the connection with the data of the SYN: our SYN counts as acknowledged for all but
    /// the state, and its retransmission.
    pub(super) fn begin_early(&mut self, now: Instant, segment: &Segment<B>) {
        let first = self.snd.queue.first_octet();
        self.cold.control = None;
        self.snd.recovery.open(first);
        self.snd.recovery.hold_probes(true, &self.settings);
        self.snd.window.open(first);
        // The window of a SYN is never scaled (RFC 7323 §2.2).
        let seq = self.rcv.nxt.near(segment.seq);
        self.snd.peer.open(u32::from(segment.window), seq, first);
        self.snd.nxt = first;
        self.snd.limits.open(now);
        self.snd.refill(now);
        self.rcv.start_tuning(now);
        self.snd.begin_mtu_search();
        let len = segment.body.len();
        if len > 0 {
            self.rcv.nxt += u64::from(len);
            self.rcv.deliver(&segment.body);
        }
        self.rcv.acked = self.rcv.nxt;
    }

    /// The final acknowledgment of an early connection arrives.
    pub(super) fn confirm_early(&mut self, now: Instant) {
        let opening = self.cold.fast_open();
        let sent = opening.and_then(|opening| opening.answered_at);
        self.wanted.syn = false;
        if self.snd.recovery.retries.expiries() == 0
            && let Some(sent) = sent
        {
            let rtt = now.saturating_since(sent);
            self.snd.rtt.note_min(rtt);
            self.snd.take_rtt(rtt);
        } else {
            self.snd.rtt.after_syn_timeout();
        }
        self.snd.recovery.retries.on_progress();
        self.snd.recovery.hold_probes(false, &self.settings);
        self.snd.recovery.stop_timer();
        if !self.snd.recovery.is_idle() {
            self.snd.restart_retransmission_timer(now);
        }
    }

    /// Whether this SYN begins the connection of this end.
    pub(super) fn is_own_syn(&self, segment: &Segment<B>, seq: Seq) -> bool {
        seq + 1 == self.rcv.nxt
            || self.began_early()
                && segment.flags.any(Flags::SYN)
                && segment.seq == self.rcv.cold.irs
    }
}

/// The data that a SYN may carry to a server whose MSS is known: all options may be as long as
/// 40 octets, in case a middlebox adds some (RFC 7413 §4.1.3).
#[must_use]
pub fn most_syn_data(settings: &Settings, mss: u16) -> u32 {
    const OPTIONS: u32 = 40;
    let ours = u32::from(settings.mss_option());
    ours.min(u32::from(mss)).saturating_sub(OPTIONS)
}
