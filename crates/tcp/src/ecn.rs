//! Explicit congestion notification (ECN): negotiation, echo of marks, and reading the echo.
//!
//! Three kinds of feedback exist. RFC 3168 §6.1: one bit that stays set until the sender reports
//! its reaction. RFC 8257 §3.2: the same bit, set for exactly the marked segments that an
//! acknowledgment covers. RFC 9768: the ACE field, three bits of a counter of marked packets, and
//! its option with counters of octets ([`option`]).
//!
//! With DCTCP every packet of a connection is ECN-capable: SYN, SYN-ACK, RST, FIN, pure
//! acknowledgments, window probes and retransmissions (RFC 8257 §3.5). A switch that marks above a
//! threshold drops other packets first, so no connection would open. With L4S every packet after
//! the handshake has ECT(1), because other packets wait in the other queue (RFC 9331 §4.1).
//! Otherwise only new data is ECN-capable (RFC 3168 §6.1.1, §6.1.4, §6.1.5, §6.1.6).
//!
//! # Not implemented
//! - RFC 9768: a pure acknowledgment ahead of a client that has data at once (§3.2.2.1); different
//!   answers to different SYNs of one handshake (§3.1.5); tests for mangling of the IP field
//!   (§3.2.2.3) and for a zeroed ACE field after the handshake (§3.2.2.4); ECN-capable control
//!   packets without DCTCP, and retransmissions without DCTCP or L4S.

pub(crate) mod option;
pub(crate) mod sender;

use anabranch_core::packet::Ecn;

use crate::settings::EcnMode;
use anabranch_wire::segment::Flags;

/// How marks are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Feedback {
    /// No reports.
    #[default]
    None,
    /// RFC 3168
    Classic,
    /// RFC 8257 §3.2
    Exact,
    /// RFC 9768
    Counter,
}

/// Initial value of r.cep and s.cep, which makes a zeroed field visible (RFC 9768 §3.2.1).
pub(crate) const FIRST_COUNT: u32 = 5;

/// Marks that trigger an acknowledgment (increment-triggered, RFC 9768 §3.2.2.5.1).
pub(crate) const MARKS_PER_ACK: u32 = 2;

/// Largest increment that an acknowledgment without progress can report: half of the field's range.
/// A larger one is an older acknowledgment, as with the option's counters.
pub(crate) const MOST_WITHOUT_PROGRESS: u64 = 4;

const ALL: Flags = Flags(Flags::AE.0 | Flags::CWR.0 | Flags::ECE.0);
const SETUP: Flags = Flags(Flags::CWR.0 | Flags::ECE.0);

/// Returns the flags AE, CWR and ECE as a number.
pub(crate) const fn field(flags: Flags) -> u8 {
    (flags.any(Flags::AE) as u8) << 2
        | (flags.any(Flags::CWR) as u8) << 1
        | flags.any(Flags::ECE) as u8
}

pub(crate) const fn flags(field: u8) -> Flags {
    let mut flags = 0;
    if field & 4 != 0 {
        flags |= Flags::AE.0;
    }
    if field & 2 != 0 {
        flags |= Flags::CWR.0;
    }
    if field & 1 != 0 {
        flags |= Flags::ECE.0;
    }
    Flags(flags)
}

/// Encoding of an ECN field in a SYN/ACK and the segment after it (RFC 9768 tables 2 and 3).
pub(crate) const fn handshake_encoding(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0b010,
        Ecn::Ect1 => 0b011,
        Ecn::Ect0 => 0b100,
        Ecn::Ce => 0b110,
    }
}

/// Flags of a SYN that request ECN.
pub(crate) const fn syn_flags(mode: EcnMode) -> Flags {
    match mode {
        EcnMode::Off => Flags::NONE,
        EcnMode::Rfc3168 | EcnMode::Dctcp => SETUP,
        EcnMode::Accecn | EcnMode::AccecnWithoutOption | EcnMode::L4s => ALL,
    }
}

/// Feedback that a listener agrees to after a SYN (RFC 9768 §3.1.2, §3.1.3; RFC 3168 §6.1.1).
pub(crate) fn on_syn(mode: EcnMode, syn: Flags) -> Feedback {
    match (mode, field(syn)) {
        (EcnMode::Off, _) | (_, 0b000) => Feedback::None,
        (EcnMode::Accecn | EcnMode::AccecnWithoutOption | EcnMode::L4s, 0b011) => Feedback::Classic,
        // Other combinations are accepted too, for future use.
        (EcnMode::Accecn | EcnMode::AccecnWithoutOption | EcnMode::L4s, _) => Feedback::Counter,
        (mode, _) if syn.has(SETUP) => classic(mode),
        _ => Feedback::None,
    }
}

/// Feedback that the client agrees to after the SYN/ACK (RFC 9768 table 2, §3.1.3).
pub(crate) const fn on_syn_ack(mode: EcnMode, syn_ack: Flags) -> Feedback {
    match (mode, field(syn_ack)) {
        // 101 is reserved for future use (RFC 9768 §3.1.3).
        (EcnMode::Accecn | EcnMode::AccecnWithoutOption | EcnMode::L4s, 0b010..=0b110) => {
            Feedback::Counter
        }
        (EcnMode::Accecn | EcnMode::AccecnWithoutOption | EcnMode::L4s, 0b001) => Feedback::Classic,
        // RFC 3168 §6.1.1; AE was the nonce's bit.
        (EcnMode::Rfc3168 | EcnMode::Dctcp, 0b001 | 0b101) => classic(mode),
        _ => Feedback::None,
    }
}

const fn classic(mode: EcnMode) -> Feedback {
    match mode {
        EcnMode::Dctcp => Feedback::Exact,
        _ => Feedback::Classic,
    }
}

/// Number of newly marked packets, from the ACE field and the count before. If enough packets are
/// acknowledged for the field to have wrapped, it is the safest count that fits (RFC 9768 appendix
/// A.2.1).
pub(crate) fn newly_marked(ace: u8, told: u32, acked_packets: u64) -> u64 {
    let delta = u64::from((u32::from(ace) + 8 - told % 8) % 8);
    if acked_packets <= 7 {
        delta
    } else {
        acked_packets - (acked_packets - delta) % 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_9768_table_2_answers_to_an_accecn_syn() {
        use Feedback::{Classic, Counter, None};
        for (answer, expected) in [
            (0b000, None),
            (0b001, Classic),
            (0b010, Counter),
            (0b011, Counter),
            (0b100, Counter),
            (0b101, Counter),
            (0b110, Counter),
            (0b111, None),
        ] {
            assert_eq!(
                on_syn_ack(EcnMode::Accecn, flags(answer)),
                expected,
                "{answer:03b}"
            );
        }
        assert_eq!(field(syn_flags(EcnMode::Accecn)), 0b111);
    }

    #[test]
    fn an_accecn_server_accepts_old_and_unknown_clients() {
        for (syn, expected) in [
            (0b000, Feedback::None),
            (0b011, Feedback::Classic),
            (0b111, Feedback::Counter),
            (0b101, Feedback::Counter),
        ] {
            assert_eq!(on_syn(EcnMode::Accecn, flags(syn)), expected, "{syn:03b}");
        }
        // A server with RFC 3168 only treats an AccECN client as an RFC 3168 client.
        assert_eq!(on_syn(EcnMode::Rfc3168, ALL), Feedback::Classic);
        assert_eq!(on_syn(EcnMode::Dctcp, SETUP), Feedback::Exact);
        assert_eq!(on_syn(EcnMode::Off, ALL), Feedback::None);
    }

    #[test]
    fn the_syn_ack_encodes_the_field_of_the_syn() {
        let encodings = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce].map(handshake_encoding);
        assert_eq!(encodings, [0b010, 0b011, 0b100, 0b110]);
    }

    #[test]
    fn rfc_9768_a_2_1_safest_count_that_fits() {
        // Few packets: the difference of the fields, over the wrap too.
        assert_eq!(newly_marked(7, 5, 2), 2);
        assert_eq!(newly_marked(1, 6, 4), 3);
        assert_eq!(newly_marked(5, 5, 2), 0);
        // Acknowledgments were lost: up to all of the packets may be marked.
        assert_eq!(newly_marked(6, 5, 9), 9);
        assert_eq!(newly_marked(5, 5, 9), 8);
        assert_eq!(newly_marked(0, 5, 20), 19);
    }
}
