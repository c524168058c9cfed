//! Limits of a sender: the shares of time in the summary, computed from the kernel's state of its
//! socket every 10 ms.
//!
//! `tcpi_busy_time`, `tcpi_rwnd_limited` and `tcpi_sndbuf_limited` (`linux/tcp.h`) are counters of
//! time, whose classes exclude each other. A sender that is not busy is limited by its application.
//! The rest of the busy time is assigned by the socket's state at the sample;
//! `docs/concepts/tcp.md` has the definitions.

use anabranch_core::units::Instant;
use anabranch_engine::summary::FlowSummary;

use crate::{apps::sampler::Sample, kernel::sys::tcp_info::TcpInfo};

/// `TCP_ESTABLISHED`.
const ESTABLISHED: u8 = 1;
/// `TCP_CA_Recovery`; `TCP_CA_Loss` is the next value.
const RECOVERY: u8 = 3;

/// Microseconds in which each limit held.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Times {
    cwnd: f64,
    rwnd: f64,
    send_buffer: f64,
    application: f64,
}

/// The limit to which the rest of a busy time is assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    Cwnd,
    Rwnd,
    SendBuffer,
    Application,
    /// A recovery, or pacing.
    Other,
}

impl Rest {
    /// `rwnd`: the receive window limited the sender since the previous sample.
    const fn of(info: &TcpInfo, rwnd: bool, is_paced: bool) -> Self {
        if info.ca_state >= RECOVERY {
            Self::Other
        } else if info.in_flight() >= info.snd_cwnd {
            Self::Cwnd
        } else if info.notsent_bytes == 0 && info.is_send_buffer_full {
            Self::SendBuffer
        } else if info.notsent_bytes == 0 {
            Self::Application
        } else if rwnd {
            Self::Rwnd
        } else if is_paced {
            Self::Other
        } else {
            // The window permits less than a burst, which waits for more.
            Self::Cwnd
        }
    }
}

const fn is_open(info: &TcpInfo) -> bool {
    info.rtt_us > 0 && info.state >= ESTABLISHED
}

impl Times {
    /// Adds the interval between two samples, weighted with the `part` of it that is measured.
    fn add(&mut self, [before, after]: [&Sample; 2], part: f64, is_paced: bool) {
        let since = |of: fn(&TcpInfo) -> u64| {
            part * of(&after.info).saturating_sub(of(&before.info)) as f64
        };
        let span = part * after.at.saturating_since(before.at).as_secs_f64() * 1e6;
        let busy = since(|info| info.busy_us);
        let rwnd = since(|info| info.rwnd_limited_us);
        let send_buffer = since(|info| info.sndbuf_limited_us);
        self.rwnd += rwnd;
        self.send_buffer += send_buffer;
        // The counters advance with the kernel's tick: an excess in one interval is a deficit in
        // the next.
        if is_open(&before.info) {
            self.application += span - busy;
        }
        let rest = busy - rwnd - send_buffer;
        match Rest::of(&after.info, rwnd > 0.0, is_paced) {
            Rest::Cwnd => self.cwnd += rest,
            Rest::Rwnd => self.rwnd += rest,
            Rest::SendBuffer => self.send_buffer += rest,
            Rest::Application => self.application += rest,
            Rest::Other => {}
        }
    }

    /// Times from a sender's samples between `start` and `end`.
    fn of(samples: &[Sample], (start, end): (Instant, Instant), is_paced: bool) -> Self {
        let mut samples: Vec<&Sample> = samples.iter().collect();
        samples.sort_by_key(|sample| sample.at);
        let mut times = Self::default();
        for pair in samples.windows(2) {
            let (before, after) = (pair[0], pair[1]);
            let counts = after.at.min(end).saturating_since(before.at.max(start));
            let span = after.at.saturating_since(before.at);
            if is_open(&after.info) && !counts.is_zero() {
                let part = counts.as_secs_f64() / span.as_secs_f64();
                times.add([before, after], part, is_paced);
            }
        }
        times
    }
}

/// Writes the shares of a flow's measured time into its summary.
pub fn write(
    summary: &mut FlowSummary,
    samples: &[Sample],
    window: (Instant, Instant),
    is_paced: bool,
) {
    let times = Times::of(samples, window, is_paced);
    let whole = window.1.saturating_since(window.0).as_secs_f64() * 1e6;
    let share =
        |time: f64| (whole > 0.0 && samples.len() > 1).then(|| (time / whole).clamp(0.0, 1.0));
    summary.cwnd_limited_share = share(times.cwnd);
    summary.rwnd_limited_share = share(times.rwnd);
    summary.sndbuf_limited_share = share(times.send_buffer);
    summary.application_limited_share = share(times.application);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apps::stage::Side;

    fn sample(at_ms: u64, info: TcpInfo) -> Sample {
        Sample {
            at: Instant::from_millis(at_ms),
            flow: 0,
            side: Side::Sender,
            info,
        }
    }

    /// Busy throughout, with 10 of 20 segments outstanding and more to send.
    fn busy(at_ms: u64) -> TcpInfo {
        TcpInfo {
            state: ESTABLISHED,
            rtt_us: 40_000,
            busy_us: at_ms * 1000,
            unacked: 10,
            snd_cwnd: 20,
            notsent_bytes: 99_000,
            ..TcpInfo::default()
        }
    }

    /// In percent.
    fn shares(of: impl Fn(u64) -> TcpInfo, is_paced: bool) -> [String; 4] {
        let samples: Vec<Sample> = (0..=100).map(|n| sample(10 * n, of(10 * n))).collect();
        let mut summary = FlowSummary::default();
        let window = (Instant::from_millis(200), Instant::from_millis(700));
        write(&mut summary, &samples, window, is_paced);
        [
            summary.cwnd_limited_share,
            summary.rwnd_limited_share,
            summary.sndbuf_limited_share,
            summary.application_limited_share,
        ]
        .map(|share| format!("{:.0}", share.expect("it is known") * 100.0))
    }

    #[test]
    fn each_state_counts_for_its_limit() {
        let full = |at| TcpInfo {
            unacked: 20,
            ..busy(at)
        };
        assert_eq!(shares(full, false), ["100", "0", "0", "0"]);
        let repairing = |at| TcpInfo {
            ca_state: RECOVERY,
            ..full(at)
        };
        assert_eq!(shares(repairing, false), ["0", "0", "0", "0"]);
        assert_eq!(shares(busy, true), ["0", "0", "0", "0"]);
        let written = |at| TcpInfo {
            notsent_bytes: 0,
            ..busy(at)
        };
        assert_eq!(shares(written, false), ["0", "0", "0", "100"]);
        let blocked = |at| TcpInfo {
            is_send_buffer_full: true,
            ..written(at)
        };
        assert_eq!(shares(blocked, false), ["0", "0", "100", "0"]);
        // Half of the time limited by the receive window, a quarter by the send buffer, a quarter
        // idle.
        let counted = |at| TcpInfo {
            busy_us: at * 750,
            rwnd_limited_us: at * 500,
            sndbuf_limited_us: at * 250,
            ..busy(at)
        };
        assert_eq!(shares(counted, false), ["0", "50", "25", "25"]);
    }
}
