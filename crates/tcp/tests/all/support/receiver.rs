//! An endpoint that receives segments from the test.

use anabranch_core::{body::Length, packet::Ecn, units::Instant};
use anabranch_tcp::{Endpoint, Role, Settings};
use anabranch_wire::{Flags, Options, Segment, Timestamps};

use super::endpoint;

/// Octets of a full segment, in which the initial room is measured.
pub const FULL: u32 = 1448;

/// The contents of an acknowledgment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Said {
    /// The next expected segment.
    pub ack: u32,
    /// The window offered from there, in octets.
    pub window: u32,
}

pub struct Receiver {
    pub end: Endpoint<Length>,
    mss: u32,
    scale: u8,
    /// Whether segments carry timestamps.
    timestamps: bool,
}

impl Receiver {
    /// An open connection with a round-trip time of 50 ms, in segments of `settings.mss` minus the
    /// timestamps.
    pub fn new(settings: &Settings) -> Self {
        let mut end: Endpoint<Length> = endpoint(settings, Role::Active, 100);
        end.open(Instant::START);
        assert!(end.poll_transmit(Instant::START).is_some());
        let mut receiver = Self {
            end,
            mss: settings.mss,
            scale: settings.window_shift(),
            timestamps: settings.timestamps,
        };
        let offer = Options::Syn {
            mss: u16::try_from(settings.mss).expect("it is in 16 bits")
                + if settings.timestamps { 12 } else { 0 },
            window_scale: Some(9),
            sack_permitted: true,
            accecn: None,
            fast_open: None,
        };
        let mut answer = receiver.segment(Instant::from_millis(50), 0, 0, 0);
        (answer.seq, answer.flags, answer.options) = (0, Flags::SYN | Flags::ACK, offer);
        receiver
            .end
            .on_segment(Instant::from_millis(50), &answer, Ecn::NotEct);
        assert_eq!(receiver.left(Instant::from_millis(50)).len(), 1);
        receiver
    }

    fn segment(&self, at: Instant, number: u32, len: u32, age_ms: u32) -> Segment<Length> {
        let tick = u32::try_from(at.as_picos() / 1_000_000_000).expect("a short test");
        Segment {
            seq: 1 + number * self.mss,
            ack: 101,
            window: 65_535,
            flags: Flags::ACK,
            timestamps: self.timestamps.then_some(Timestamps {
                value: tick,
                echo: tick.saturating_sub(age_ms),
            }),
            options: Options::None,
            body: Length(len),
        }
    }

    fn left(&mut self, at: Instant) -> Vec<Said> {
        let mut said = Vec::new();
        while let Some(out) = self.end.poll_transmit(at) {
            said.push(Said {
                ack: out.segment.ack.wrapping_sub(1) / self.mss,
                window: u32::from(out.segment.window) << self.scale,
            });
        }
        said
    }

    /// Delivers these segments in order, as answers to segments sent `age_ms` ago. Returns the
    /// acknowledgments.
    pub fn feed_aged(
        &mut self,
        at_ms: u64,
        age_ms: u32,
        numbers: impl IntoIterator<Item = u32>,
    ) -> Vec<Said> {
        let at = Instant::from_millis(at_ms);
        let mut said = Vec::new();
        for number in numbers {
            let segment = self.segment(at, number, self.mss, age_ms);
            self.end.on_segment(at, &segment, Ecn::NotEct);
            said.extend(self.left(at));
        }
        said
    }

    /// [`Self::feed_aged`] with an age of one round trip.
    pub fn feed(&mut self, at_ms: u64, numbers: impl IntoIterator<Item = u32>) -> Vec<Said> {
        self.feed_aged(at_ms, 50, numbers)
    }

    /// The application reads all data. Returns the resulting acknowledgments.
    pub fn read(&mut self, at_ms: u64) -> Vec<Said> {
        let at = Instant::from_millis(at_ms);
        self.end.read(at, u64::MAX);
        self.left(at)
    }
}
