//! Transmission: how long a packet occupies a link, and whether the link retransmits it.
//!
//! `fixed` is built in. Capacity traces ([`trace`]), media with their own access control
//! ([`Medium`]) and links that retransmit at their own layer implement [`Service`] and are stored
//! as [`AnyService::Boxed`].

pub mod cable;
pub mod cellular;
mod clock;
pub mod rates;
pub mod trace;
pub mod wifi;

use std::{fmt, sync::Arc};

use anabranch_core::{
    rng::{Draw, Stream},
    side_file::Misread,
    units::{Duration, Instant, Rate, SerializationDelay},
};

pub use cable::Cable;
pub use cellular::Cellular;
pub use rates::{Rates, Stepped};
pub use trace::{Trace, Traced};
pub use wifi::Wifi;

use super::{
    propagation::Delays,
    steps::{Column, Repeat, Table, is_table},
};

/// Capacity of a link over time.
pub trait Service: fmt::Debug + Send {
    /// Reports when the next packet to be sent joined the queue. A service that has to request
    /// capacity needs it.
    fn arrived(&mut self, _at: Instant) {}
    /// Returns the end of a transmission of `bits` that starts or resumes at `now`;
    /// [`Instant::NEVER`] if no capacity is known to come. Called once for each start or
    /// resumption, in order of time.
    fn finish(&mut self, now: Instant, bits: u64) -> Instant;
    /// Bits that could have been sent between two instants.
    fn capacity(&self, from: Instant, to: Instant) -> f64;
    /// Stops the current transmission, which started or resumed at `since`. Returns the number of
    /// bits sent.
    fn interrupt(&mut self, since: Instant, now: Instant) -> u64 {
        whole_bits(self.capacity(since, now))
    }
    /// Returns `Some(pause)` if a transmission that has ended failed at the link's own layer. The
    /// link sends the same packet again after `pause`, using capacity again.
    fn retransmit(&mut self, _now: Instant, _draw: &mut Draw) -> Option<Duration> {
        None
    }
    /// Time from the end of transmission of the last packet to its exit, if the link's own layer
    /// has to repair or order it. Other packets are sent meanwhile.
    fn lag(&self) -> Duration {
        Duration::ZERO
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bits of one packet"
)]
fn whole_bits(bits: f64) -> u64 {
    bits.floor() as u64
}

/// A medium with its own access control.
#[derive(Debug, Clone, PartialEq)]
pub enum Medium {
    /// A Wi-Fi station.
    Wifi(wifi::Params),
    /// The upstream of a cable modem.
    Cable(cable::Params),
    /// A cell's link to one phone.
    Cellular(cellular::Params),
}

impl Medium {
    /// Noun for messages.
    #[must_use]
    pub const fn noun(&self) -> &'static str {
        match self {
            Self::Wifi(_) => "Wi-Fi station",
            Self::Cable(_) => "cable modem",
            Self::Cellular(_) => "cell",
        }
    }

    /// Creates the service at the start of a run. Only a cell can follow a capacity; other media
    /// use its mean rate.
    #[must_use]
    pub fn service(
        &self,
        rate: Rate,
        capacity: Option<&Capacity>,
        stream: Stream,
    ) -> Box<dyn Service> {
        match self {
            Self::Wifi(params) => Box::new(Wifi::new(params, rate, stream)),
            Self::Cable(params) => Box::new(Cable::new(params, rate, stream)),
            Self::Cellular(params) => {
                let capacity = capacity.map_or_else(
                    || AnyService::Fixed(Fixed::new(Some(rate))),
                    |capacity| AnyService::Boxed(capacity.service()),
                );
                Box::new(Cellular::new(params, capacity, stream))
            }
        }
    }
}

/// Capacity over time, read from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Capacity {
    /// Delivery opportunities.
    Opportunities(Arc<Trace>),
    /// Rates over time.
    Rates(Arc<Rates>),
}

impl Capacity {
    /// Reads a file's text: opportunities or a table of rates, with an optional column of delays.
    ///
    /// # Errors
    /// Names the first invalid line.
    pub fn parse(text: &str, repeat: Repeat) -> Result<(Self, Option<Delays>), Misread> {
        if !is_table(text) {
            let trace = Trace::parse(text)?.repeated(repeat);
            return Ok((Self::Opportunities(Arc::new(trace)), None));
        }
        let table = Table::parse(text, repeat, Column::Rate)?;
        let delays = table
            .delays
            .map(|delays| Delays::new(table.steps.clone(), delays));
        let rates = Rates::new(table.steps, table.rates.unwrap_or_default());
        Ok((Self::Rates(Arc::new(rates)), delays))
    }
    /// Mean capacity in whole bits per second, at least 1.
    #[must_use]
    pub fn mean_rate(&self) -> Rate {
        match self {
            Self::Opportunities(trace) => trace.mean_rate(),
            Self::Rates(rates) => rates.mean_rate(),
        }
    }
    /// Creates the service at the start of a run.
    #[must_use]
    pub fn service(&self) -> Box<dyn Service> {
        match self {
            Self::Opportunities(trace) => Box::new(Traced::new(Arc::clone(trace))),
            Self::Rates(rates) => Box::new(Stepped(Arc::clone(rates))),
        }
    }
}

/// Service of a link.
#[derive(Debug)]
pub enum AnyService {
    /// One constant rate.
    Fixed(Fixed),
    /// Another implementation.
    Boxed(Box<dyn Service>),
}

/// One rate, or none: then transmission takes no time.
#[derive(Debug, Clone, Copy)]
pub struct Fixed {
    rate: Option<Rate>,
    serialization: SerializationDelay,
}

impl Fixed {
    /// Creates a service of this rate.
    #[must_use]
    pub fn new(rate: Option<Rate>) -> Self {
        Self {
            rate,
            serialization: rate.map_or(SerializationDelay::NONE, SerializationDelay::at),
        }
    }
}

impl Service for Fixed {
    fn finish(&mut self, now: Instant, bits: u64) -> Instant {
        // Whole bytes, except for the rest of a packet during which the rate changed.
        if let (0, Ok(bytes)) = (bits % 8, u32::try_from(bits / 8)) {
            return now + self.serialization.of(bytes);
        }
        let Some(rate) = self.rate else { return now };
        let ps = (u128::from(bits) * 1_000_000_000_000).div_ceil(u128::from(rate.bits_per_s()));
        now.saturating_add(Duration::from_picos(u64::try_from(ps).unwrap_or(u64::MAX)))
    }
    fn capacity(&self, from: Instant, to: Instant) -> f64 {
        self.rate.map_or(0.0, |rate| {
            rate.bits_per_s() as f64 * to.saturating_since(from).as_secs_f64()
        })
    }
}

impl AnyService {
    /// End of transmission of a packet that joined the queue at `arrived` and starts at `now`.
    #[inline]
    pub(super) fn begin(&mut self, now: Instant, bits: u64, arrived: Instant) -> Instant {
        match self {
            Self::Fixed(service) => service.finish(now, bits),
            Self::Boxed(service) => {
                service.arrived(arrived);
                service.finish(now, bits)
            }
        }
    }
}

impl Service for AnyService {
    fn arrived(&mut self, at: Instant) {
        if let Self::Boxed(service) = self {
            service.arrived(at);
        }
    }
    #[inline]
    fn finish(&mut self, now: Instant, bits: u64) -> Instant {
        match self {
            Self::Fixed(service) => service.finish(now, bits),
            Self::Boxed(service) => service.finish(now, bits),
        }
    }
    fn capacity(&self, from: Instant, to: Instant) -> f64 {
        match self {
            Self::Fixed(service) => service.capacity(from, to),
            Self::Boxed(service) => service.capacity(from, to),
        }
    }
    fn interrupt(&mut self, since: Instant, now: Instant) -> u64 {
        match self {
            Self::Fixed(service) => service.interrupt(since, now),
            Self::Boxed(service) => service.interrupt(since, now),
        }
    }
    #[inline]
    fn retransmit(&mut self, now: Instant, draw: &mut Draw) -> Option<Duration> {
        match self {
            Self::Fixed(_) => None,
            Self::Boxed(service) => service.retransmit(now, draw),
        }
    }
    #[inline]
    fn lag(&self) -> Duration {
        match self {
            Self::Fixed(_) => Duration::ZERO,
            Self::Boxed(service) => service.lag(),
        }
    }
}
