//! Forward RTO recovery (RFC 5682). After a timeout one segment is retransmitted, then new data is
//! sent; the next acknowledgments show whether the timeout was spurious.
//!
//! # Not implemented
//! - The response of RFC 5682 §4 beyond that of [`undo`](super::undo).

/// State of the algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Frto {
    /// Inactive, or decided.
    #[default]
    Off,
    /// Step 2: the first acknowledgment after the timeout is awaited.
    First,
    /// Step 3: `new` segments of new data may be sent, and the next acknowledgment decides.
    Second {
        /// New segments still allowed; at most two.
        new: u8,
    },
}

/// Observations of an acknowledgment.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct AckObservation {
    /// It acknowledges new data.
    pub progress: bool,
    /// It acknowledges all data outstanding at the timeout.
    pub complete: bool,
    /// It delivers data that was outstanding at the timeout and was not retransmitted.
    pub original: bool,
    /// It is a duplicate, or has new SACK information.
    pub duplicate: bool,
    /// SACK is in use: RFC 5682 §3 applies instead of §2.
    pub sack: bool,
    /// New data could be sent.
    pub new_data: bool,
    /// With SACK, `original` is proof before new data was sent.
    pub at_once: bool,
}

/// Conclusion from an acknowledgment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Undecided.
    Open,
    /// The timeout was spurious.
    Spurious,
    /// The timeout was genuine, or no conclusion is possible.
    Conventional,
}

impl Frto {
    /// An acknowledgment arrives.
    pub fn on_ack(&mut self, ack: &AckObservation) -> Verdict {
        let verdict = match *self {
            Self::Off => return Verdict::Open,
            Self::First => {
                if ack.at_once && ack.sack && ack.original {
                    Verdict::Spurious
                } else if ack.progress && !ack.complete && ack.new_data {
                    *self = Self::Second { new: 2 };
                    Verdict::Open
                } else if ack.progress || !ack.sack {
                    Verdict::Conventional
                } else {
                    // RFC 5682 §3 step 2: SACK information before the cumulative acknowledgment
                    // advances is only recorded.
                    Verdict::Open
                }
            }
            Self::Second { .. } => {
                let proof = if ack.sack { ack.original } else { ack.progress };
                if proof {
                    Verdict::Spurious
                } else if ack.duplicate || ack.progress {
                    Verdict::Conventional
                } else {
                    Verdict::Open
                }
            }
        };
        if verdict != Verdict::Open {
            *self = Self::Off;
        }
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: AckObservation = AckObservation {
        progress: false,
        complete: false,
        original: false,
        duplicate: false,
        sack: false,
        new_data: true,
        at_once: false,
    };
    const PROGRESS: AckObservation = AckObservation {
        progress: true,
        original: true,
        ..NOTHING
    };
    const DUPLICATE: AckObservation = AckObservation {
        duplicate: true,
        ..NOTHING
    };

    fn verdicts(acks: &[AckObservation]) -> Vec<Verdict> {
        let mut frto = Frto::First;
        acks.iter().map(|ack| frto.on_ack(ack)).collect()
    }

    /// RFC 5682 §2.1.
    #[test]
    fn basic() {
        use Verdict::{Conventional, Open, Spurious};
        assert_eq!(verdicts(&[PROGRESS, PROGRESS]), [Open, Spurious]);
        assert_eq!(verdicts(&[PROGRESS, DUPLICATE]), [Open, Conventional]);
        assert_eq!(verdicts(&[DUPLICATE]), [Conventional]);
        let complete = AckObservation {
            complete: true,
            ..PROGRESS
        };
        assert_eq!(verdicts(&[complete]), [Conventional]);
        let nothing_new = AckObservation {
            new_data: false,
            ..PROGRESS
        };
        assert_eq!(verdicts(&[nothing_new]), [Conventional]);
    }

    /// RFC 5682 §3.1.
    #[test]
    fn with_sack() {
        use Verdict::{Conventional, Open, Spurious};
        let with = |ack: AckObservation| AckObservation { sack: true, ..ack };
        let report = with(DUPLICATE);
        let original = with(AckObservation {
            original: true,
            ..DUPLICATE
        });
        assert_eq!(
            verdicts(&[report, with(PROGRESS), original]),
            [Open, Open, Spurious]
        );
        assert_eq!(verdicts(&[with(PROGRESS), report]), [Open, Conventional]);
        let resent = with(AckObservation {
            original: false,
            ..PROGRESS
        });
        assert_eq!(verdicts(&[resent, resent]), [Open, Conventional]);
        let at_once = AckObservation {
            at_once: true,
            ..original
        };
        assert_eq!(verdicts(&[original]), [Open]);
        assert_eq!(verdicts(&[report, at_once]), [Open, Spurious]);
        let without = AckObservation {
            at_once: true,
            ..PROGRESS
        };
        assert_eq!(verdicts(&[without]), [Open]);
    }
}
