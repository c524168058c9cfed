//! The study's controller: a percentile of short peaks.
//!
//! Bytes are counted in very short bins. The peak of a section is its largest bin. The peaks of one
//! control interval are an empirical distribution. Its percentile, as a rate over one bin, is the
//! capacity for the next interval.
//!
//! The percentile is an observed value without interpolation: of n peaks in ascending order, the
//! peak at position ⌈p ÷ 100 × n⌉, and the first for p = 0. Percentile 100 is the largest peak.
//!
//! Source: Y. Fukuda, KAKENHI 24700071 final report, 2014, §3, which leaves the lengths and the
//! percentile open.

use anabranch_core::{
    registry::{Meta, Source},
    units::{Duration, Instant, Rate},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Contradiction, ControlParams, Controller, Init, Percentile, Span, check_spans, members_for,
};

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "peak-percentile",
    title: "Percentile of peaks",
    summary: "A percentile of the peaks of short sections decides how many members the next control interval has: the \
              controller of the power-saving study.",
    sources: &[Source {
        id: "Fukuda 2014 (KAKENHI 24700071)",
        items: &["§3"],
    }],
};

/// Parameters. The source gives no values; the defaults are specific to this project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Time over which bytes are counted (about 1 ms in the source).
    pub bin: Span,
    /// Time over which the largest bin is taken; a multiple of `bin`.
    pub section: Span,
    /// Control interval: time between decisions; a multiple of `section`.
    pub interval: Span,
    /// Percentile of the peaks of an interval that is the capacity, 0 to 100.
    pub percentile: Percentile,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            bin: Span::from_micros(1_000),
            section: Span::from_micros(100_000),
            interval: Span::from_micros(1_000_000),
            percentile: Percentile::new(90.0),
        }
    }
}

impl ControlParams for Params {
    fn interval(&self) -> Option<Duration> {
        Some(self.interval.get())
    }
    fn check(&self) -> Result<(), Contradiction> {
        check_spans(("bin", self.bin), (&["section"], self.section))?;
        check_spans(("section", self.section), (&["interval"], self.interval))
    }
}

/// State of the controller.
#[derive(Debug)]
pub struct PeakPercentile {
    bin: Duration,
    section: Duration,
    interval: Duration,
    percentile: f64,
    /// Rate of one member, and number of members.
    member: (Rate, u32),
    bin_end: Instant,
    section_end: Instant,
    interval_end: Instant,
    bytes: u64,
    peak: u64,
    peaks: Vec<u64>,
}

impl PeakPercentile {
    /// Creates the controller without measurements.
    #[must_use]
    pub fn new(params: &Params, init: &Init<'_>) -> Self {
        let [bin, section, interval] = [params.bin, params.section, params.interval].map(Span::get);
        Self {
            bin,
            section,
            interval,
            percentile: params.percentile.get(),
            member: (init.rate, init.members),
            bin_end: Instant::START + bin,
            section_end: Instant::START + section,
            interval_end: Instant::START + interval,
            bytes: 0,
            peak: 0,
            peaks: Vec::new(),
        }
    }

    /// Closes the bins and sections that have ended by `now`.
    #[inline(never)]
    fn close_bins(&mut self, now: Instant) {
        while self.bin_end <= now {
            self.peak = self.peak.max(std::mem::take(&mut self.bytes));
            if self.bin_end == self.section_end {
                self.peaks.push(std::mem::take(&mut self.peak));
                self.section_end = self.section_end + self.section;
            }
            self.bin_end = self.bin_end + self.bin;
        }
    }

    /// Returns the percentile of the peaks.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a length"
    )]
    fn capacity(&mut self) -> u64 {
        self.peaks.sort_unstable();
        let place = (self.percentile / 100.0 * self.peaks.len() as f64).ceil() as usize;
        let bytes = self.peaks.get(place.max(1) - 1).copied();
        self.peaks.clear();
        bytes.unwrap_or(0)
    }
}

impl Controller for PeakPercentile {
    #[inline]
    fn on_arrival(&mut self, now: Instant, bytes: u32) {
        if now >= self.bin_end {
            self.close_bins(now);
        }
        self.bytes += u64::from(bytes);
    }
    fn next_decision(&self) -> Instant {
        self.interval_end
    }
    fn decide(&mut self, now: Instant) -> u32 {
        self.close_bins(now);
        self.interval_end = self.interval_end + self.interval;
        let bytes = self.capacity();
        members_for(self.member, u128::from(bytes) * 8, self.bin)
    }
}
