//! Connection states (RFC 9293 §3.3.2) and the transitions between them (figure 5).

/// A state of RFC 9293 §3.3.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum State {
    /// No connection, or no more.
    Closed,
    /// Waiting for a SYN.
    Listen,
    /// SYN sent.
    SynSent,
    /// SYN received and sent, waiting for the acknowledgment of ours.
    SynReceived,
    /// Open; data flows both ways.
    Established,
    /// FIN sent; neither it is acknowledged nor the peer's received.
    FinWait1,
    /// FIN sent and acknowledged; the peer may still send.
    FinWait2,
    /// The peer's FIN has arrived; we may still send.
    CloseWait,
    /// Both FINs crossed; ours is not acknowledged yet.
    Closing,
    /// The peer's FIN arrived first; ours is sent and not acknowledged yet.
    LastAck,
    /// All done; waiting out segments that may still travel.
    TimeWait,
}

/// Events that change the state of a connection (the labels of RFC 9293 figure 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// The user opens actively; a SYN is sent.
    ActiveOpen,
    /// A SYN arrives (without an acknowledgment of ours).
    Syn,
    /// A SYN arrives that acknowledges ours.
    SynAck,
    /// Our SYN is acknowledged.
    SynAcknowledged,
    /// Our FIN is sent.
    SendFin,
    /// The peer's FIN arrives, in order.
    Fin,
    /// Our FIN is acknowledged.
    FinAcknowledged,
    /// Twice the maximum segment lifetime has passed in TIME-WAIT.
    TimeWaitOver,
    /// A valid RST arrives for a connection that was opened passively and is not open yet, or the
    /// timer gives it up.
    PassiveReset,
    /// A valid RST arrives, the user aborts, or the timer gives up.
    Reset,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 11] = [
        Self::Closed,
        Self::Listen,
        Self::SynSent,
        Self::SynReceived,
        Self::Established,
        Self::FinWait1,
        Self::FinWait2,
        Self::CloseWait,
        Self::Closing,
        Self::LastAck,
        Self::TimeWait,
    ];

    /// Its number in `tcpi_state` of Linux's `TCP_INFO`, 1 to 11 (`netinet/tcp.h`).
    #[must_use]
    pub const fn tcp_info_number(self) -> u8 {
        match self {
            Self::Established => 1,
            Self::SynSent => 2,
            Self::SynReceived => 3,
            Self::FinWait1 => 4,
            Self::FinWait2 => 5,
            Self::TimeWait => 6,
            Self::Closed => 7,
            Self::CloseWait => 8,
            Self::LastAck => 9,
            Self::Listen => 10,
            Self::Closing => 11,
        }
    }

    /// The state after `event`; `None` where RFC 9293 figure 5 has no such arrow.
    #[must_use]
    pub const fn after(self, event: Event) -> Option<Self> {
        Some(match (self, event) {
            (Self::Closed | Self::Listen, Event::ActiveOpen) => Self::SynSent,
            (Self::Listen | Self::SynSent, Event::Syn) => Self::SynReceived,
            (Self::SynSent, Event::SynAck) | (Self::SynReceived, Event::SynAcknowledged) => {
                Self::Established
            }
            (Self::SynReceived | Self::Established, Event::SendFin) => Self::FinWait1,
            (Self::CloseWait, Event::SendFin) => Self::LastAck,
            (Self::SynReceived | Self::Established, Event::Fin) => Self::CloseWait,
            (Self::FinWait1, Event::Fin) => Self::Closing,
            (Self::FinWait2, Event::Fin) | (Self::Closing, Event::FinAcknowledged) => {
                Self::TimeWait
            }
            (Self::FinWait1, Event::FinAcknowledged) => Self::FinWait2,
            (Self::SynReceived, Event::PassiveReset) => Self::Listen,
            (Self::LastAck, Event::FinAcknowledged)
            | (Self::TimeWait, Event::TimeWaitOver)
            | (_, Event::Reset) => Self::Closed,
            _ => return None,
        })
    }

    /// Whether both initial sequence numbers are known and data may be exchanged.
    #[must_use]
    pub const fn is_synchronized(self) -> bool {
        !matches!(
            self,
            Self::Closed | Self::Listen | Self::SynSent | Self::SynReceived
        )
    }
    /// Whether data or a FIN may be sent or retransmitted.
    #[must_use]
    #[inline]
    pub const fn may_transmit(self) -> bool {
        matches!(
            self,
            Self::Established | Self::CloseWait | Self::FinWait1 | Self::Closing | Self::LastAck
        )
    }
    /// Whether data may still arrive from the peer.
    #[must_use]
    #[inline]
    pub const fn may_receive(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }
    /// Its name in RFC 9293.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "CLOSED",
            Self::Listen => "LISTEN",
            Self::SynSent => "SYN-SENT",
            Self::SynReceived => "SYN-RECEIVED",
            Self::Established => "ESTABLISHED",
            Self::FinWait1 => "FIN-WAIT-1",
            Self::FinWait2 => "FIN-WAIT-2",
            Self::CloseWait => "CLOSE-WAIT",
            Self::Closing => "CLOSING",
            Self::LastAck => "LAST-ACK",
            Self::TimeWait => "TIME-WAIT",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Event::*, State, State::*};

    /// Every arrow of RFC 9293 figure 5; the only other transition is the reset from any state.
    const ARROWS: [(State, super::Event, State); 19] = [
        (Closed, ActiveOpen, SynSent),
        (Listen, ActiveOpen, SynSent),
        (Listen, Syn, SynReceived),
        (SynSent, Syn, SynReceived),
        (SynSent, SynAck, Established),
        (SynReceived, SynAcknowledged, Established),
        (SynReceived, SendFin, FinWait1),
        (SynReceived, Fin, CloseWait),
        (SynReceived, PassiveReset, Listen),
        (Established, SendFin, FinWait1),
        (Established, Fin, CloseWait),
        (CloseWait, SendFin, LastAck),
        (FinWait1, Fin, Closing),
        (FinWait1, FinAcknowledged, FinWait2),
        (FinWait2, Fin, TimeWait),
        (Closing, FinAcknowledged, TimeWait),
        (LastAck, FinAcknowledged, Closed),
        (TimeWait, TimeWaitOver, Closed),
        (Established, Reset, Closed),
    ];

    #[test]
    fn transitions_match_figure_5() {
        let events = [
            ActiveOpen,
            Syn,
            SynAck,
            SynAcknowledged,
            SendFin,
            Fin,
            FinAcknowledged,
            TimeWaitOver,
            PassiveReset,
        ];
        for state in State::ALL {
            for event in events {
                let arrow = ARROWS
                    .iter()
                    .find(|arrow| (arrow.0, arrow.1) == (state, event));
                assert_eq!(
                    state.after(event),
                    arrow.map(|arrow| arrow.2),
                    "{state:?} {event:?}"
                );
            }
            assert_eq!(state.after(Reset), Some(Closed));
        }
    }

    #[test]
    fn names_match_the_rfc() {
        assert_eq!(FinWait1.name(), "FIN-WAIT-1");
        for state in State::ALL {
            let letters: String = state
                .name()
                .chars()
                .filter(char::is_ascii_alphanumeric)
                .collect();
            assert_eq!(letters.to_lowercase(), format!("{state:?}").to_lowercase());
        }
    }
}
