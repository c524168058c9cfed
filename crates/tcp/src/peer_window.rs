//! The peer's receive window in the sender's view (RFC 9293 §3.3.1, §3.8.6), and the probes of a
//! closed one (§3.8.6.1).

use anabranch_core::units::Duration;

use crate::{persist, retries::MOST_RETRIES};
use anabranch_wire::seq::Seq;

/// SND.UNA and the send window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerWindow {
    una: Seq,
    /// SND.UNA + SND.WND: the right edge of the window.
    edge: Seq,
    wl1: Seq,
    wl2: Seq,
    wnd: u32,
    /// The largest window offered (RFC 9293 §3.8.6.2.1).
    max_wnd: u32,
    /// Window probes since the window closed.
    probes: u16,
    /// Window probes since the last segment of the peer.
    unanswered: u16,
    /// Snd.Wind.Shift (RFC 7323 §2.3).
    shift: u8,
}

/// Effect of the window field of an acknowledgment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Update {
    /// The window is as large as before.
    pub(crate) same: bool,
    /// The segment is no older than the last one that updated the window (RFC 9293 §3.10.7.4,
    /// fifth).
    pub(crate) taken: bool,
}

impl PeerWindow {
    /// A closed window; `iss` is the initial send sequence number.
    pub(crate) const fn new(iss: Seq) -> Self {
        Self {
            una: iss,
            edge: iss,
            wl1: iss,
            wl2: iss,
            wnd: 0,
            max_wnd: 0,
            probes: 0,
            unanswered: 0,
            shift: 0,
        }
    }

    /// SND.UNA
    #[inline]
    pub(crate) const fn una(&self) -> Seq {
        self.una
    }

    /// SND.UNA + SND.WND
    #[inline]
    pub(crate) const fn edge(&self) -> Seq {
        self.edge
    }

    /// SND.WND
    #[inline]
    pub(crate) const fn wnd(&self) -> u32 {
        self.wnd
    }

    /// Octets of a window field.
    #[inline]
    pub(crate) const fn scaled(&self, field: u16) -> u32 {
        (field as u32) << self.shift
    }

    /// Half of the largest window offered: a smaller part does not justify a segment (RFC 9293
    /// §3.8.6.2.1).
    pub(crate) const fn half_of_largest(&self) -> u64 {
        (self.max_wnd / 2) as u64
    }

    /// Sets the shift that both ends agreed on.
    pub(crate) const fn set_shift(&mut self, shift: u8) {
        self.shift = shift;
    }

    /// Takes SND.UNA and the window of the segment that opens the connection; `window` in octets.
    pub(crate) fn open(&mut self, window: u32, seq: Seq, ack: Seq) {
        self.una = ack;
        self.wnd = window;
        self.max_wnd = window;
        self.edge = ack + u64::from(window);
        (self.wl1, self.wl2) = (seq, ack);
    }

    /// Takes the window of a segment (RFC 9293 §3.10.7.4, fifth).
    #[inline]
    pub(crate) fn update(&mut self, field: u16, seq: Seq, ack: Seq) -> Update {
        let window = self.scaled(field);
        let same = window == self.wnd;
        let taken = self.wl1 < seq || (self.wl1 == seq && self.wl2 <= ack);
        if taken {
            self.take(window, seq, ack);
        }
        Update { same, taken }
    }

    /// Takes a window of `window` octets from a segment that is newer than the last one.
    #[inline]
    fn take(&mut self, window: u32, seq: Seq, ack: Seq) {
        if window != self.wnd {
            self.wnd = window;
            self.max_wnd = self.max_wnd.max(window);
        }
        self.edge = ack + u64::from(window);
        self.wl1 = seq;
        self.wl2 = ack;
    }

    /// Advances SND.UNA.
    #[inline]
    pub(crate) const fn acknowledge(&mut self, ack: Seq) {
        self.una = ack;
    }

    /// Whether an honest segment still in flight may acknowledge this number (RFC 5961 §5.2).
    pub(crate) fn may_acknowledge(&self, ack: Seq, nxt: Seq) -> bool {
        ack <= nxt && ack.saturating_add(u64::from(self.max_wnd)) >= self.una
    }

    /// Resets the count of probes when the window is open.
    pub(crate) const fn on_opened(&mut self) {
        self.probes = 0;
    }

    /// The peer has answered a probe.
    #[cold]
    pub(crate) const fn on_probe_answered(&mut self) {
        self.unanswered = 0;
    }

    /// Counts a probe that is being sent.
    pub(crate) const fn on_probe_sent(&mut self) {
        self.probes = self.probes.saturating_add(1);
    }

    /// Time until the next probe.
    pub(crate) fn probe_interval(&self, rto: Duration, max_rto: Duration) -> Duration {
        persist::interval(rto, self.probes.into(), max_rto)
    }

    /// A probe is due. Returns whether `retries` of them have gone unanswered: only answers keep a
    /// connection with a closed window open (RFC 9293 §3.8.6.1).
    pub(crate) fn is_probing_over(&mut self, retries: u32) -> bool {
        let over = u32::from(self.unanswered) >= retries.min(MOST_RETRIES);
        self.unanswered = self.unanswered.saturating_add(1);
        over
    }
}
