//! A station of an 802.11n network that sends by the distributed coordination function (DCF), with
//! aggregation.
//!
//! The link's `rate` is the physical-layer rate. To send, the station waits for DIFS and a backoff
//! drawn from its contention window. It then sends up to `aggregate` frames in one A-MPDU, which a
//! block acknowledgment answers. Other saturated stations take slots of the backoff. If two
//! stations start in one slot, both fail and double their windows; the probability is Bianchi's
//! fixed point. A damaged frame is retransmitted.
//!
//! Packets that wait at the end of a frame join its A-MPDU, so its length follows the backlog. An
//! idle link sends single frames.
//!
//! # Differs from the source
//! - The frames of an A-MPDU arrive individually, in the order of the queue, not together at its
//!   end. The time of its acknowledgment is counted before its first frame.
//! - A frame is retransmitted at once, in the same A-MPDU if there is room, until it gets through.
//! - After a collision a station waits for DIFS instead of EIFS, as in Bianchi's model.
//!
//! # Not implemented
//! - Rate control, RTS/CTS, the access classes of 802.11e, hidden stations, capture. Traffic of the
//!   other end on the same channel, unless it counts among `stations`.

use anabranch_core::{
    parameters::Count,
    quantity,
    registry::{Meta, Source},
    rng::{Draw, Stream},
    units::{Duration, Fraction, Instant, Rate},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Service;

/// Description for registry, docs and command line.
pub const META: Meta = Meta {
    name: "wifi",
    title: "Wi-Fi (802.11n DCF)",
    summary: "A station of a Wi-Fi network: contention, backoff, aggregation, and retransmission by the link itself.",
    sources: &[
        Source {
            id: "Bianchi, Performance Analysis of the IEEE 802.11 DCF (IEEE JSAC 18-3, 2000)",
            items: &["§III", "§IV"],
        },
        Source {
            id: "IEEE 802.11-2012",
            items: &["§9.3", "§9.12", "§20"],
        },
    ],
};

quantity! {
    /// A medium access time.
    AccessTime, Duration, Duration::ZERO, Duration::from_millis(100)
}

impl AccessTime {
    /// # Panics
    /// If `us` is above 100,000; in a `const` this is a compile error.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        assert!(us <= 100_000, "0..100000 us");
        Self(Duration::from_micros(us))
    }
}

/// Parameters of a Wi-Fi station. Default times are the 802.11n values at 5 GHz.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Saturated stations, including this one.
    pub stations: Count<256>,
    /// Maximum number of frames in an A-MPDU (up to 64; 1 disables aggregation).
    pub aggregate: Count<64>,
    /// Maximum airtime of the frames of an A-MPDU.
    pub longest: AccessTime,
    /// Probability that a frame is damaged.
    pub frame_error: Fraction,
    /// A slot of the backoff (9 µs).
    pub slot: AccessTime,
    /// SIFS (16 µs). DIFS is SIFS plus two slots.
    pub sifs: AccessTime,
    /// Preamble before each A-MPDU (HT-mixed preamble of one stream: 36 µs).
    pub preamble: AccessTime,
    /// Duration of a block acknowledgment (32 bytes at 24 Mbit/s after 20 µs).
    pub acknowledgment: AccessTime,
    /// `W`: the initial contention window is from 0 to `W` - 1 (16).
    pub window: Count<1024>,
    /// `m`: maximum number of doublings of the window (6).
    pub doublings: Count<16>,
    /// Bytes of each frame in addition to its IP packet: MAC header, LLC, FCS and delimiter.
    pub header: Count<1000>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            stations: Count::new(1),
            aggregate: Count::new(32),
            longest: AccessTime::from_micros(4_000),
            frame_error: Fraction::ZERO,
            slot: AccessTime::from_micros(9),
            sifs: AccessTime::from_micros(16),
            preamble: AccessTime::from_micros(36),
            acknowledgment: AccessTime::from_micros(32),
            window: Count::new(16),
            doublings: Count::new(6),
            header: Count::new(46),
        }
    }
}

/// Behaviour of a saturated station in a slot (Bianchi 2000 §IV.A).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contention {
    /// `τ`: probability that a station sends.
    pub sends: f64,
    /// `p`: probability that a transmission collides.
    pub collides: f64,
}

impl Contention {
    /// Solves for the fixed point of `stations` stations whose initial window is `window` and
    /// doubles up to `doublings` times.
    #[must_use]
    pub fn of(stations: u32, window: u32, doublings: u32) -> Self {
        let others = stations.saturating_sub(1);
        // Equation 9 gives p. Equation 7 gives τ of p; numerator and denominator are divided by 1 -
        // 2 p.
        let collides = |sends: f64| 1.0 - power(1.0 - sends, others);
        let sends = |p: f64| {
            let growth: f64 = (0..doublings).map(|k| power(2.0 * p, k)).sum();
            2.0 / (1.0 + f64::from(window) + p * f64::from(window) * growth)
        };
        // τ of p falls while p of τ rises, so bisection finds the crossing.
        let (mut low, mut high) = (0.0_f64, 1.0_f64);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if sends(collides(middle)) > middle {
                low = middle;
            } else {
                high = middle;
            }
        }
        let sends = f64::midpoint(low, high);
        Self {
            sends,
            collides: collides(sends),
        }
    }
}

fn power(base: f64, exponent: u32) -> f64 {
    (0..exponent).fold(1.0, |product, _| product * base)
}

/// Bytes of a packet of another station.
const OTHERS_PACKET: u32 = 1_500;

/// State of a Wi-Fi station. Times are in seconds.
#[derive(Debug)]
pub struct Wifi {
    rate: f64,
    header: u32,
    aggregate: u32,
    longest: f64,
    frame_error: f64,
    slot: f64,
    difs: f64,
    /// Time of the station's own A-MPDU except DIFS, backoff and frames.
    overhead: f64,
    window: u32,
    doublings: u32,
    /// Probabilities in a slot of the station's backoff: that another station sends, and that it
    /// sends alone if one does.
    busy: f64,
    alone: f64,
    /// Durations of another station's successful transmission and of a collision.
    success: f64,
    collision: f64,
    stream: Stream,
    accesses: u64,
    /// End of the last frame; number and airtime of the frames of its A-MPDU.
    end: Instant,
    frames: u32,
    airtime: f64,
}

impl Wifi {
    /// Creates a station whose physical layer has this rate.
    #[must_use]
    pub fn new(params: &Params, rate: Rate, stream: Stream) -> Self {
        let seconds = |time: AccessTime| time.get().as_secs_f64();
        let (slot, sifs) = (seconds(params.slot), seconds(params.sifs));
        let difs = sifs + 2.0 * slot;
        let stations = params.stations.get();
        let (window, doublings) = (params.window.get(), params.doublings.get());
        let contention = Contention::of(stations, window, doublings);
        let others = stations - 1;
        let idle = power(1.0 - contention.sends, others);
        let one = f64::from(others)
            * contention.sends
            * power(1.0 - contention.sends, others.saturating_sub(1));
        let overhead = seconds(params.preamble) + sifs + seconds(params.acknowledgment);
        let mut wifi = Self {
            rate: rate.bits_per_s() as f64,
            header: params.header.get(),
            aggregate: params.aggregate.get(),
            longest: seconds(params.longest),
            frame_error: params.frame_error.get(),
            slot,
            difs,
            overhead,
            window,
            doublings,
            busy: 1.0 - idle,
            alone: if idle < 1.0 { one / (1.0 - idle) } else { 0.0 },
            success: 0.0,
            collision: 0.0,
            stream,
            accesses: 0,
            end: Instant::START,
            frames: 0,
            airtime: 0.0,
        };
        let frame = wifi.airtime_of(u64::from(OTHERS_PACKET) * 8);
        // The number of full frames that fit the maximum airtime, at least one.
        let mut frames = f64::from(wifi.aggregate);
        while frames > 1.0 && frames * frame > wifi.longest {
            frames -= 1.0;
        }
        wifi.collision = difs + seconds(params.preamble) + frames * frame;
        wifi.success = difs + overhead + frames * frame;
        wifi
    }

    /// Airtime of a packet's frame.
    fn airtime_of(&self, bits: u64) -> f64 {
        let bytes = bits.div_ceil(8) + u64::from(self.header);
        // Frames of an A-MPDU begin at multiples of four bytes.
        (bytes.next_multiple_of(4) * 8) as f64 / self.rate
    }

    /// Time from the end of the last transmission on the air to the start of the station's frames:
    /// DIFS and backoff, repeated after each collision.
    fn access(&mut self) -> f64 {
        let mut draw = self.stream.at(self.accesses);
        self.accesses += 1;
        let (mut time, mut stage) = (0.0, 0);
        loop {
            let window = self.window << stage;
            time += self.difs;
            let slots = f64::from(window) * draw.uniform();
            for _ in 0..whole(slots) {
                if self.busy > 0.0 && draw.chance(self.busy) {
                    time += if draw.chance(self.alone) {
                        self.success
                    } else {
                        self.collision
                    };
                }
                time += self.slot;
            }
            if self.busy <= 0.0 || !draw.chance(self.busy) {
                return time;
            }
            // The next attempt begins with DIFS, which `collision` includes.
            time += self.collision - self.difs;
            stage = (stage + 1).min(self.doublings);
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float-to-int cast saturates"
)]
const fn whole(slots: f64) -> u32 {
    slots as u32
}

impl Service for Wifi {
    fn finish(&mut self, now: Instant, bits: u64) -> Instant {
        let frame = self.airtime_of(bits);
        let joins = self.frames > 0
            && now == self.end
            && self.frames < self.aggregate
            && self.airtime + frame <= self.longest;
        let mut time = frame;
        if joins {
            self.frames += 1;
            self.airtime += frame;
        } else {
            time += self.access() + self.overhead;
            self.frames = 1;
            self.airtime = frame;
        }
        self.end = now.saturating_add(Duration::from_secs_f64(time));
        self.end
    }
    fn capacity(&self, from: Instant, to: Instant) -> f64 {
        self.rate * to.saturating_since(from).as_secs_f64()
    }
    /// An interrupted frame is lost.
    fn interrupt(&mut self, _since: Instant, _now: Instant) -> u64 {
        self.frames = 0;
        0
    }
    fn retransmit(&mut self, _now: Instant, draw: &mut Draw) -> Option<Duration> {
        (self.frame_error > 0.0 && draw.chance(self.frame_error)).then_some(Duration::ZERO)
    }
}
