//! What a sender's congestion control is about: open, in disorder, reducing, repairing.

/// The states, as Linux has them in `tcpi_ca_state`; the first one here is two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CongestionState {
    /// Nothing is amiss, and cwnd is below ssthresh.
    SlowStart,
    /// Nothing is amiss.
    Open,
    /// Acknowledgments repeat themselves, or report something beyond a gap.
    Disorder,
    /// The window is on its way down without a loss (Linux: `CWR`).
    Reduction,
    /// Fast recovery (RFC 5681 §3.2).
    Recovery,
    /// After a timeout.
    Loss,
}

impl CongestionState {
    /// Its number in `tcpi_ca_state` of Linux's `struct tcp_info`.
    #[must_use]
    pub const fn tcp_info_number(self) -> u8 {
        match self {
            Self::SlowStart | Self::Open => 0,
            Self::Disorder => 1,
            Self::Reduction => 2,
            Self::Recovery => 3,
            Self::Loss => 4,
        }
    }

    /// That of a number of `tcpi_ca_state`. `slow_start`: cwnd is below ssthresh.
    #[must_use]
    pub const fn of_tcp_info(number: u8, slow_start: bool) -> Self {
        match number {
            0 if slow_start => Self::SlowStart,
            0 => Self::Open,
            1 => Self::Disorder,
            2 => Self::Reduction,
            4 => Self::Loss,
            _ => Self::Recovery,
        }
    }

    /// Its name in the columns `state` of samples, which tell of a window on its way down in one word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SlowStart => "slow-start",
            Self::Open => "open",
            Self::Disorder => "disorder",
            Self::Reduction | Self::Recovery => "recovery",
            Self::Loss => "loss",
        }
    }
}
