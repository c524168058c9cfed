//! Shared parts of the tests of live runs.
//!
//! Ignored tests run in a Linux kernel in virtual time: `tests/guest/test_crates.py` starts them
//! there. Packets leave on time, so that no run is tainted or repeated.

use std::path::Path;

use anabranch_core::units::Instant;
use anabranch_live::{Error, Finished, Frame, Limits, Live};
use anabranch_path::host::{Arrived, Departing, Host};
use anabranch_scenario::{Extensions, Resolved, Scenario};

/// Whether the machine permits live runs. If not, reports the reason; the test may pass unless
/// `ANABRANCH_LIVE=required`.
pub fn may_run() -> bool {
    let Err(why) = anabranch_live::prepare() else {
        return true;
    };
    assert!(
        std::env::var("ANABRANCH_LIVE").as_deref() != Ok("required"),
        "ANABRANCH_LIVE=required: {why}"
    );
    eprintln!("SKIPPED: {why}");
    false
}

/// A run in virtual time.
pub fn live(resolved: &Resolved) -> Live<'_> {
    Live::new(resolved).virtual_time(true)
}

/// The result of a run in virtual time, which is never tainted.
pub fn exact(done: Result<Finished, Error>) -> Result<Finished, Error> {
    if let Ok(done) = &done {
        let reasons = &done.summary.live.as_ref().expect("the run was live")["audit"]["reasons"];
        assert_eq!(*reasons, serde_json::json!([]));
    }
    done
}

/// A scenario for a live run, as if read from `file`.
pub fn resolve(text: &str, file: &Path, extensions: Extensions) -> Resolved {
    Scenario::parse(text, &file.to_string_lossy(), &extensions.live(true))
        .and_then(|scenario| scenario.resolve(None))
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Limits that no run exceeds.
pub const NO_LIMITS: Limits = Limits {
    p99_lateness_ms: 1e6,
    max_lateness_ms: 1e6,
    io_drops: u64::MAX,
};

/// The deviation of a wrong system from the right one.
pub trait Fault: std::fmt::Debug + Send {
    /// Handles an arriving packet.
    fn on_packet(&mut self, right: &mut dyn Host<Frame>, now: Instant, packet: Arrived<'_, Frame>) {
        right.on_packet(now, packet);
    }
    /// Returns the next packet to be sent.
    fn poll_transmit(
        &mut self,
        right: &mut dyn Host<Frame>,
        now: Instant,
    ) -> Option<Departing<Frame>> {
        right.poll_transmit(now)
    }
}

/// The right system with a fault.
#[derive(Debug)]
pub struct Wrong<F> {
    pub right: Box<dyn Host<Frame>>,
    pub fault: F,
}

impl<F: Fault> Host<Frame> for Wrong<F> {
    fn start(&mut self, now: Instant) {
        self.right.start(now);
    }
    fn on_packet(&mut self, now: Instant, packet: Arrived<'_, Frame>) {
        self.fault.on_packet(&mut *self.right, now, packet);
    }
    fn on_timer(&mut self, now: Instant) {
        self.right.on_timer(now);
    }
    fn timer(&self) -> Option<Instant> {
        self.right.timer()
    }
    fn poll_transmit(&mut self, now: Instant) -> Option<Departing<Frame>> {
        self.fault.poll_transmit(&mut *self.right, now)
    }
    fn delivered_bytes(&self) -> u64 {
        self.right.delivered_bytes()
    }
}
