//! What limits a sender: each interval between two of its segments belongs to one limit.
//!
//! One file per limit. The rules are asked in the order of [`Limit::ALL`], and the first that holds decides; the last one
//! always holds.

mod application;
mod bottleneck;
mod capture_gap;
mod congestion_window;
mod delayed_ack_nagle;
mod fast_recovery;
mod handshake;
mod pacing;
mod receive_window;
mod reordering;
mod retransmission_timeout;
mod round_trips;
mod send_buffer;
mod undecidable;
mod zero_window;

use crate::time::Nanos;

/// How a limit describes itself; the documentation is made from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    /// Its name in results.
    pub name: &'static str,
    /// The name that people use.
    pub title: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// What in the capture shows it.
    pub evidence: &'static str,
    /// What looks the same.
    pub confusion: &'static str,
}

/// An interval without a segment of the sender, and what the sender knew in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one observation")]
pub(crate) struct Wait {
    pub(crate) mss: i64,
    /// The receiver's window, and the room in it behind what was sent.
    pub(crate) window: Option<i64>,
    pub(crate) room: Option<i64>,
    /// The window was full a quarter of a round trip ago or less.
    pub(crate) was_full: bool,
    /// Payload of the segment that ends the interval.
    pub(crate) next_length: i64,
    pub(crate) is_opening: bool,
    pub(crate) has_gap: bool,
    /// The peer's application had not sent its message.
    pub(crate) is_peers: bool,
    /// The peer's message, or the data that it answers, was on its way.
    pub(crate) is_turn: bool,
    /// The sender always has something to send, and the interval is not so long that it must have been the application's.
    pub(crate) is_bulk: bool,
    /// All data was acknowledged when the interval began.
    pub(crate) is_idle: bool,
    /// No segment follows.
    pub(crate) is_last: bool,
    /// An acknowledgment released the segment that ends the interval.
    pub(crate) is_blocked: bool,
    /// The segment before was smaller than the MSS.
    pub(crate) is_small: bool,
    pub(crate) is_next_small: bool,
    /// A retransmission that no acknowledgment released ends the interval.
    pub(crate) ends_with_timer: bool,
    pub(crate) is_recovering: bool,
    pub(crate) is_ack_delayed: bool,
    /// Full segments at their own pace.
    pub(crate) is_paced: bool,
    /// The amount in flight has been the same for many round trips.
    pub(crate) is_level: bool,
    /// The amount is level far from the sender, where a pace looks the same as a send buffer.
    pub(crate) is_pace_or_buffer: bool,
    /// The sender waits where its writes end.
    pub(crate) ends_writes: bool,
    /// The segment that ends the interval refills a send buffer; or may do so, if others do as well.
    pub(crate) is_refill: bool,
    pub(crate) may_refill: bool,
    /// It looks like a refill, and the sender's waits as a whole are neither that nor an application's.
    pub(crate) is_unclear: bool,
    /// That amount is about the receiver's window.
    pub(crate) fills_window: bool,
    /// No more is in flight than any congestion window holds.
    pub(crate) is_unfilled: bool,
    /// The round trip is longer than the least one.
    pub(crate) is_queued: bool,
}

macro_rules! limits {
    ($($variant:ident = $module:ident,)*) => {
        /// What limits a sender.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Limit {
            $(#[doc = concat!("See `limit/", stringify!($module), ".rs`.")] $variant,)*
        }

        impl Limit {
            /// All, in the order in which their rules are asked.
            pub const ALL: [Self; [$(stringify!($module)),*].len()] = [$(Self::$variant),*];

            /// Its description.
            #[must_use]
            pub const fn meta(self) -> &'static Meta {
                match self {
                    $(Self::$variant => &$module::META,)*
                }
            }

            fn holds(self, wait: &Wait) -> bool {
                match self {
                    $(Self::$variant => $module::holds(wait),)*
                }
            }
        }
    };
}

limits! {
    Handshake = handshake,
    CaptureGap = capture_gap,
    ZeroWindow = zero_window,
    RetransmissionTimeout = retransmission_timeout,
    ReceiveWindow = receive_window,
    FastRecovery = fast_recovery,
    DelayedAckNagle = delayed_ack_nagle,
    RoundTrips = round_trips,
    Application = application,
    Pacing = pacing,
    SendBuffer = send_buffer,
    Bottleneck = bottleneck,
    CongestionWindow = congestion_window,
    Reordering = reordering,
    Undecidable = undecidable,
}

impl Limit {
    /// The first whose rule holds.
    pub(crate) fn of(wait: &Wait) -> Self {
        let mut all = Self::ALL.into_iter();
        all.find(|limit| limit.holds(wait))
            .unwrap_or(Self::Undecidable)
    }
}

/// Time by limit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Shares {
    spent: [Nanos; Limit::ALL.len()],
}

impl Shares {
    pub(crate) fn add(&mut self, limit: Limit, time: Nanos) {
        self.spent[limit as usize] += time;
    }

    pub(crate) fn of(&self, limit: Limit) -> Nanos {
        self.spent[limit as usize]
    }

    pub(crate) fn all(&self) -> Nanos {
        self.spent.iter().sum()
    }

    /// Gives time of one limit to another.
    pub(crate) fn give(&mut self, from: Limit, to: Limit, time: Nanos) {
        let time = time.min(self.of(from));
        self.spent[from as usize] -= time;
        self.spent[to as usize] += time;
    }
}
