//! Windows that were not used for a while (RFC 7661 §4.4.3).

use crate::support;

use anabranch_congestion::{CongestionControl, Family, Unvalidated, registry};
use anabranch_core::units::{Bytes, Duration};
use support::{Path, SMSS};

const INITIAL: u64 = 10;

/// Detects a control that counts in bytes or whole segments and halves a number other than the
/// window.
#[test]
fn every_loss_based_window_is_halved_until_it_is_the_initial_one() {
    let mut controls = 0;
    for (meta, config, _) in registry() {
        if config.family() != Some(Family::LossBased) {
            continue;
        }
        let mut path = Path::new(&config, INITIAL, Duration::from_millis(50));
        while path.cwnd() < 100.0 {
            path.round_trip();
        }
        // ssthresh is finite after a loss.
        path.lose();
        let before = path.cwnd();
        path.control.on_unvalidated(&Unvalidated::PeriodOver);
        let expected = (before / 2.0).max(INITIAL as f64);
        let off = (path.cwnd() - expected).abs();
        assert!(off <= 1.0, "{}: {} of {before}", meta.name, path.cwnd());
        let segments = |bytes: Bytes| bytes.get() as f64 / SMSS.get() as f64;
        let ssthresh = path.control.ssthresh().map(segments);
        assert!(
            ssthresh >= Some(0.75 * before - 3.0),
            "{}: {ssthresh:?} of {before}",
            meta.name
        );
        for _ in 0..10 {
            path.control.on_unvalidated(&Unvalidated::PeriodOver);
        }
        assert!((path.cwnd() - INITIAL as f64).abs() < 1e-9, "{}", meta.name);
        controls += 1;
    }
    assert!(controls >= 3);
}
