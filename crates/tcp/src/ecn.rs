//! Explicit congestion notification: agreeing on it, echoing marks, reading the echo.
//!
//! Three kinds of feedback. RFC 3168 §6.1: one bit that stays until the sender says that it has
//! reacted. RFC 8257 §3.2: the same bit, but telling of exactly the segments that each
//! acknowledgment covers. RFC 9768: the ACE field, three bits of a counter of marked packets.
//!
//! Beside that its option, with octets instead of packets ([`option`]).
//!
//! With DCTCP every packet of a connection is ECN-capable: SYN, SYN-ACK, RST, FIN, pure acknowledgments, window probes
//! and retransmissions (RFC 8257 §3.5). A switch that marks above a threshold drops what is not ECN-capable first,
//! and no connection would open. With L4S every packet after the handshake is, with ECT(1): what is not waits in the other
//! queue (RFC 9331 §4.1). Otherwise only new data is (RFC 3168 §6.1.1, §6.1.4, §6.1.5, §6.1.6).
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
    /// Not at all.
    #[default]
    None,
    /// RFC 3168
    Classic,
    /// RFC 8257 §3.2
    Exact,
    /// RFC 9768
    Counter,
}

/// r.cep and s.cep begin here, so that a zeroed field is seen (RFC 9768 §3.2.1).
pub(crate) const FIRST_COUNT: u32 = 5;

/// Increment-triggered acknowledgments: after so many marks at least (RFC 9768 §3.2.2.5.1).
pub(crate) const MARKS_PER_ACK: u32 = 2;

/// What an acknowledgment without progress can tell of more than the one before: half of the field's
/// range. Whatever seems more is an older one, as with the option's counts.
pub(crate) const MOST_WITHOUT_PROGRESS: u64 = 4;

const ALL: Flags = Flags(Flags::AE.0 | Flags::CWR.0 | Flags::ECE.0);
const SETUP: Flags = Flags(Flags::CWR.0 | Flags::ECE.0);

/// The three flags as a number: AE, CWR, ECE.
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

/// How a SYN/ACK and the segment after it tell an ECN field (RFC 9768 tables 2 and 3).
pub(crate) const fn handshake_encoding(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0b010,
        Ecn::Ect1 => 0b011,
        Ecn::Ect0 => 0b100,
        Ecn::Ce => 0b110,
    }
}

/// What the flags of a SYN ask for.
pub(crate) const fn syn_flags(mode: EcnMode) -> Flags {
    match mode {
        EcnMode::Off => Flags::NONE,
        EcnMode::Rfc3168 | EcnMode::Dctcp => SETUP,
        EcnMode::Accecn | EcnMode::AccecnWithoutOption | EcnMode::L4s => ALL,
    }
}

/// What a listening end makes of a SYN (RFC 9768 §3.1.2, §3.1.3; RFC 3168 §6.1.1).
pub(crate) fn on_syn(mode: EcnMode, syn: Flags) -> Feedback {
    match (mode, field(syn)) {
        (EcnMode::Off, _) | (_, 0b000) => Feedback::None,
        (EcnMode::Accecn | EcnMode::AccecnWithoutOption | EcnMode::L4s, 0b011) => Feedback::Classic,
        // Also flags that nothing is known to ask with: for whatever comes later.
        (EcnMode::Accecn | EcnMode::AccecnWithoutOption | EcnMode::L4s, _) => Feedback::Counter,
        (mode, _) if syn.has(SETUP) => classic(mode),
        _ => Feedback::None,
    }
}

/// What the end that opened makes of the SYN/ACK (RFC 9768 table 2, §3.1.3).
pub(crate) const fn on_syn_ack(mode: EcnMode, syn_ack: Flags) -> Feedback {
    match (mode, field(syn_ack)) {
        // 101 is reserved for what comes later (RFC 9768 §3.1.3).
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

/// Packets newly told of as marked, from the field now and the count before: the safest of those
/// that fit, where so many packets are acknowledged that the field may have wrapped (RFC 9768
/// appendix A.2.1).
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
    fn rfc_9768_table_2_what_each_answer_to_an_accecn_syn_means() {
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
    fn an_accecn_server_takes_old_and_unknown_clients() {
        for (syn, expected) in [
            (0b000, Feedback::None),
            (0b011, Feedback::Classic),
            (0b111, Feedback::Counter),
            (0b101, Feedback::Counter),
        ] {
            assert_eq!(on_syn(EcnMode::Accecn, flags(syn)), expected, "{syn:03b}");
        }
        // One that knows RFC 3168 alone takes the new client for an old one.
        assert_eq!(on_syn(EcnMode::Rfc3168, ALL), Feedback::Classic);
        assert_eq!(on_syn(EcnMode::Dctcp, SETUP), Feedback::Exact);
        assert_eq!(on_syn(EcnMode::Off, ALL), Feedback::None);
    }

    #[test]
    fn the_answer_tells_the_field_of_the_syn() {
        let encodings = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce].map(handshake_encoding);
        assert_eq!(encodings, [0b010, 0b011, 0b100, 0b110]);
    }

    #[test]
    fn rfc_9768_a_2_1_the_safest_of_the_counts_that_fit() {
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
