//! The window laws of congestion controls, per round trip.
//!
//! A law predicts the growth of the window in a round without losses, and the share of the window
//! that a loss leaves. It follows the published law, with the parameters of Linux where the paper
//! leaves them open, and is driven by the observed round trips.

use anabranch_core::math::{cbrt, cube};

use super::rounds::Round;

/// Shares of the window that a loss may leave.
pub(super) type Shares = [f64; 3];

/// The largest mean squared deviations of a control with a law, in variances.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tolerance {
    pub(super) growth: f64,
    pub(super) reduction: f64,
    /// The law depends on the largest delay, which only a loss shows.
    pub(super) needs_loss: bool,
}

impl Tolerance {
    /// Growth and reduction depend on nothing but the window and thresholds.
    const EXACT: Self = Self {
        growth: 0.4,
        reduction: 2.0,
        needs_loss: false,
    };
    /// The same, with a reduction by delays, which are known less exactly.
    const EXACT_GROWTH: Self = Self {
        reduction: 5.0,
        ..Self::EXACT
    };
    /// Growth depends on the window before the loss, or on the time since.
    const BY_TIME: Self = Self {
        growth: 1.0,
        ..Self::EXACT
    };
    /// Growth depends on the time since, and on the least delay.
    const BY_BASE: Self = Self {
        growth: 1.4,
        ..Self::EXACT
    };
    /// Growth and reduction depend on delays.
    const BY_DELAY: Self = Self {
        growth: 0.8,
        reduction: 7.0,
        needs_loss: true,
    };
}

/// A law.
pub(super) trait Law {
    /// Observes a round without a recovery.
    fn see(&mut self, _round: &Round) {}
    /// The window starts to grow at `window`, in this round.
    fn start(&mut self, _round: &Round, _window: f64) {}
    /// Growth in a round from `window`, in segments.
    fn grow(&mut self, round: &Round, window: f64) -> f64 {
        round.acked / window
    }
    /// The same as a range, if it depends on a delay that the capture shows with an error.
    fn range(&mut self, round: &Round, window: f64) -> [f64; 2] {
        [self.grow(round, window); 2]
    }
    /// Shares of `window` that a loss leaves.
    fn shares(&self, _window: f64) -> Shares {
        [0.5; 3]
    }
    /// Shares of `window` that several losses in one recovery leave.
    fn remaining(&self, window: f64, losses: i32) -> Shares {
        let shares = self.shares(window);
        let mut left = shares;
        for _ in 1..losses {
            for (left, share) in left.iter_mut().zip(shares) {
                *left *= share;
            }
        }
        left
    }
    /// A loss occurred at `window`.
    fn lose(&mut self, _round: &Round, _window: f64) {}
    /// The loss left `window`, which had been `before`.
    fn left(&mut self, _window: f64, _before: f64) {}
    /// The smallest window that the law may leave if it lowers the window without a loss.
    fn lowered(&self, _window: f64) -> Option<f64> {
        None
    }
    /// Growth depends on the window with a threshold, so that each step begins at the observed one.
    fn follows(&self) -> bool {
        false
    }
}

/// Least and largest round-trip times.
#[derive(Debug, Clone, Copy)]
struct Span {
    base: f64,
    most: f64,
}

impl Default for Span {
    fn default() -> Self {
        Self {
            base: f64::INFINITY,
            most: 0.0,
        }
    }
}

impl Span {
    fn see(&mut self, round: &Round) {
        if let Some([least, _, most]) = round.rtt {
            self.base = self.base.min(least);
            self.most = self.most.max(most);
        }
    }

    fn base(&self) -> Option<f64> {
        self.base.is_finite().then_some(self.base)
    }
}

/// Reno (RFC 5681): one segment per round trip, and half of the window at a loss.
#[derive(Debug, Default)]
pub(super) struct Reno;

impl Law for Reno {}

/// CUBIC (RFC 9438).
#[derive(Debug, Default)]
pub(super) struct Cubic {
    span: Span,
    /// W_max.
    top: f64,
    origin: f64,
    start: f64,
    k: f64,
    /// W_est.
    reno: f64,
}

impl Cubic {
    const C: f64 = 0.4;
    const BETA: f64 = 0.7;
    /// α_cubic (RFC 9438 §4.3).
    const ALPHA: f64 = 0.529;
    /// Steps in which the acknowledgments of a round are counted.
    const BATCH: f64 = 8.0;
}

impl Law for Cubic {
    fn see(&mut self, round: &Round) {
        self.span.see(round);
    }
    fn start(&mut self, round: &Round, window: f64) {
        self.start = round.start;
        self.reno = window;
        self.k = cbrt((self.top - window).max(0.0) / Self::C);
        self.origin = self.top.max(window);
    }
    fn grow(&mut self, round: &Round, window: f64) -> f64 {
        let steps = (round.acked / Self::BATCH).max(1.0).floor();
        let acked = round.acked / steps;
        let base = self.span.base().unwrap_or(0.0);
        let mut grown = 0.0;
        for step in 0..saturated(steps) {
            let passed = (f64::from(step) + 0.5) / steps * (round.end - round.start);
            let time = round.start - self.start + passed + base;
            let target = self.origin + Self::C * cube(time - self.k);
            let now = window + grown;
            let mut each = ((target - now) / now).max(0.01 / now);
            if self.top == 0.0 {
                // Without a maximum the window grows by a twentieth per round trip or more.
                each = each.max(0.05);
            }
            self.reno += acked / now * Self::ALPHA;
            each = each.max((self.reno - now) / now);
            grown += acked * each.min(0.5);
        }
        grown
    }
    fn shares(&self, _window: f64) -> Shares {
        [Self::BETA; 3]
    }
    fn lose(&mut self, _round: &Round, window: f64) {
        self.top = converged(self.top, window, Self::BETA);
    }
}

/// BIC (Xu, Harfoush and Rhee, INFOCOM 2004), with the parameters of Linux.
#[derive(Debug, Default)]
pub(super) struct Bic {
    top: f64,
    /// Another maximum, if several losses in one recovery hide the last window before a reduction.
    other: Option<f64>,
}

impl Bic {
    const BETA: f64 = 0.8;
    const LOW: f64 = 14.0;
    const LARGEST: f64 = 16.0;
    const PARTS: f64 = 4.0;
    /// Round trips per segment near the maximum.
    const FLAT: f64 = 5.0;
    /// Linux counts two segments per acknowledgment twice.
    const TWICE: f64 = 2.0;
    const BATCH: f64 = 8.0;

    /// The maximum is known to a segment, and growth near it is proportional to the distance.
    const INEXACT: f64 = 1.0;

    /// Round trips per segment of growth, times the window.
    fn count(top: f64, window: f64) -> f64 {
        let above = window - top;
        if window <= Self::LOW {
            window
        } else if above < 0.0 {
            let step = (-above / Self::PARTS).floor();
            if step > Self::LARGEST {
                window / Self::LARGEST
            } else if step <= 1.0 {
                window * Self::FLAT
            } else {
                window / step
            }
        } else if above < Self::PARTS {
            window * Self::FLAT
        } else if above < Self::LARGEST * (Self::PARTS - 1.0) {
            window * (Self::PARTS - 1.0) / above
        } else {
            window / Self::LARGEST
        }
    }

    /// Growth in a round, with this maximum.
    fn grown(top: f64, round: &Round, window: f64) -> f64 {
        let steps = (round.acked / Self::BATCH).max(1.0).floor();
        let acked = round.acked / steps;
        let mut grown = 0.0;
        for _ in 0..saturated(steps) {
            let mut count = Self::count(top, window + grown);
            if top == 0.0 {
                count = count.min(20.0);
            }
            grown += acked / (count / Self::TWICE).max(1.0);
        }
        grown
    }
}

impl Law for Bic {
    fn grow(&mut self, round: &Round, window: f64) -> f64 {
        Self::grown(self.top, round, window)
    }
    fn range(&mut self, round: &Round, window: f64) -> [f64; 2] {
        let grown = |top| Self::grown(top, round, window);
        if self.top == 0.0 {
            return [grown(0.0); 2];
        }
        let tops = [self.top, self.other.unwrap_or(self.top)];
        let all = tops.map(|top| [top - Self::INEXACT, top, top + Self::INEXACT].map(grown));
        let all = all.as_flattened();
        [
            all.iter().copied().fold(f64::INFINITY, f64::min),
            all.iter().copied().fold(0.0, f64::max),
        ]
    }
    fn shares(&self, window: f64) -> Shares {
        [if window > Self::LOW { Self::BETA } else { 0.5 }; 3]
    }
    fn lose(&mut self, _round: &Round, window: f64) {
        self.top = converged(self.top, window, Self::BETA);
    }
    fn left(&mut self, window: f64, before: f64) {
        let is_one = window > Self::BETA * Self::BETA * before;
        // The last of several reductions is below the maximum of the one before.
        self.other = (!is_one).then(|| converged(f64::INFINITY, window / Self::BETA, Self::BETA));
    }
    fn follows(&self) -> bool {
        true
    }
}

/// H-TCP (draft-leith-tcp-htcp-06).
#[derive(Debug)]
pub(super) struct Htcp {
    base: Span,
    /// RTT_max since the last loss, and one that forgets a twentieth of its excess at each loss.
    recent: f64,
    deep: f64,
    lost: f64,
    beta: f64,
}

impl Default for Htcp {
    fn default() -> Self {
        Self {
            base: Span::default(),
            recent: 0.0,
            deep: 0.0,
            lost: 0.0,
            beta: 0.5,
        }
    }
}

impl Htcp {
    /// Time of Reno's growth after a loss, in seconds.
    const LOW: f64 = 1.0;
    const BETA: (f64, f64) = (0.5, 0.8);
    const REFERENCE: f64 = 0.1;

    fn ratio(&self, most: f64) -> f64 {
        let base = self.base.base().unwrap_or(0.0);
        let ratio = if most > 0.0 { base / most } else { 0.5 };
        ratio.clamp(Self::BETA.0, Self::BETA.1)
    }
}

impl Law for Htcp {
    fn see(&mut self, round: &Round) {
        self.base.see(round);
        if let Some([.., most]) = round.rtt {
            self.recent = self.recent.max(most);
        }
    }
    fn grow(&mut self, round: &Round, window: f64) -> f64 {
        let late = round.start - self.lost - Self::LOW;
        let mut alpha = 1.0;
        if late > 0.0 {
            alpha = (1.0 + 10.0 * late + late * late / 4.0).floor();
            let base = self.base.base().unwrap_or(Self::REFERENCE);
            alpha /= (Self::REFERENCE / base).clamp(0.5, 10.0);
            alpha = alpha.max(1.0);
        }
        alpha *= 2.0 * (1.0 - self.beta);
        // An acknowledgment adds one segment at most, and the one that does is not counted.
        (alpha * round.acked / (window + alpha)).min(round.acks / 2.0)
    }
    fn shares(&self, _window: f64) -> Shares {
        let deep = self.deep.max(self.recent);
        [0.5, self.ratio(self.recent), self.ratio(deep)]
    }
    fn lose(&mut self, round: &Round, _window: f64) {
        self.lost = round.end;
        let base = self.base.base().unwrap_or(0.0);
        self.deep = base + 0.95 * (self.deep.max(self.recent) - base).max(0.0);
        self.recent = 0.0;
    }
    fn left(&mut self, window: f64, before: f64) {
        self.beta = (window / before).clamp(Self::BETA.0, Self::BETA.1);
    }
}

/// Westwood+ (Mascolo et al.): a loss leaves the product of the estimated rate and the least round
/// trip.
#[derive(Debug, Default)]
pub(super) struct Westwood {
    span: Span,
    /// The filter's two stages, in segments per second.
    rate: Option<[f64; 2]>,
}

impl Law for Westwood {
    fn see(&mut self, round: &Round) {
        self.span.see(round);
        let took = round.end - round.start;
        // The first round acknowledges the SYN.
        if took <= 0.0 || (self.rate.is_none() && round.acked <= 2.0) {
            return;
        }
        let sample = round.acked / took;
        let [near, far] = self.rate.unwrap_or([sample; 2]);
        let near = near + (sample - near) / 8.0;
        self.rate = Some([near, far + (near - far) / 8.0]);
    }
    fn shares(&self, window: f64) -> Shares {
        let base = self.span.base().unwrap_or(0.0);
        let rate = self.rate.map_or(0.0, |[_, far]| far);
        [(rate * base).max(2.0) / window; 3]
    }
}

/// TCP-Illinois (Liu, Başar and Srikant, 2006): growth and reduction depend on the mean delay.
#[derive(Debug)]
pub(super) struct Illinois {
    span: Span,
    alpha: f64,
    /// The same for delays that are less, and more, by the error of a capture.
    alphas: [f64; 2],
    beta: f64,
    /// Rounds of low delay since the delay was high.
    low: u32,
    was_high: bool,
}

impl Default for Illinois {
    fn default() -> Self {
        Self {
            span: Span::default(),
            alpha: 1.0,
            alphas: [1.0; 2],
            beta: Self::BETA.1,
            low: 0,
            was_high: false,
        }
    }
}

impl Illinois {
    const ALPHA: (f64, f64) = (0.3, 10.0);
    const BETA: (f64, f64) = (0.125, 0.5);
    /// Below this window it is Reno.
    const SMALL: f64 = 15.0;
    /// Rounds of low delay before the largest growth.
    const THETA: u32 = 5;
    /// The error of a mean delay near the receiver: a part of the largest one, and of a second.
    const INEXACT: (f64, f64) = (0.01, 0.000_3);

    /// Growth per round trip at a delay.
    fn at(delay: f64, least: f64, most: f64) -> f64 {
        if delay <= least {
            return Self::ALPHA.1;
        }
        let slope = Self::ALPHA.1 / Self::ALPHA.0 - 1.0;
        let room = most - least;
        Self::ALPHA.1 * room / (room + slope * (delay - least))
    }
}

impl Law for Illinois {
    fn see(&mut self, round: &Round) {
        self.span.see(round);
        let (Some([_, mean, _]), Some(base)) = (round.rtt, self.span.base()) else {
            return;
        };
        if round.window < Self::SMALL {
            (self.alpha, self.alphas, self.beta) = (1.0, [1.0; 2], Self::BETA.1);
            return;
        }
        let (delay, most) = (mean - base, self.span.most - base);
        let least = most / 100.0;
        if delay > least {
            self.was_high = true;
            self.alpha = Self::at(delay, least, most);
        } else if !self.was_high {
            self.alpha = Self::ALPHA.1;
        } else {
            self.low += 1;
            if self.low >= Self::THETA {
                (self.low, self.was_high, self.alpha) = (0, false, Self::ALPHA.1);
            }
        }
        let error = Self::INEXACT.0 * most + Self::INEXACT.1;
        self.alphas = [delay - error, delay + error].map(|delay| Self::at(delay, least, most));
        let part = ((delay / most.max(1e-9) - 0.1) / 0.7).clamp(0.0, 1.0);
        self.beta = Self::BETA.0 + part * (Self::BETA.1 - Self::BETA.0);
    }
    fn grow(&mut self, round: &Round, window: f64) -> f64 {
        self.alpha * round.acked / window
    }
    fn range(&mut self, round: &Round, window: f64) -> [f64; 2] {
        let [fast, slow] = self.alphas;
        [self.alpha.max(fast), self.alpha.min(slow)].map(|alpha| alpha * round.acked / window)
    }
    fn shares(&self, _window: f64) -> Shares {
        [1.0 - self.beta; 3]
    }
}

/// YeAH-TCP (Baiocchi, Castellani and Vacirca, PFLDnet 2007): Reno while it has a queue on the
/// path, else scalable growth; a queue that is too long is removed.
#[derive(Debug)]
pub(super) struct Yeah {
    span: Span,
    queue: f64,
    /// The window of a Reno flow beside it.
    reno: f64,
    /// Rounds as Reno since the last one without a queue, and the opposite.
    slow: u32,
    fast: u32,
    /// Rounds since the queue was too long.
    late: u32,
}

impl Default for Yeah {
    fn default() -> Self {
        Self {
            span: Span::default(),
            queue: 0.0,
            reno: 2.0,
            slow: 0,
            fast: 0,
            late: 0,
        }
    }
}

impl Yeah {
    /// The longest queue in segments, and the largest delay as a share of the base round trip.
    const QUEUE: f64 = 80.0;
    const DELAY: f64 = 1.0 / 8.0;
    /// Rounds as Reno after which other flows compete.
    const COMPETING: u32 = 16;
    /// Growth per acknowledgment is 1/100 at least.
    const SCALABLE: f64 = 100.0;
    /// Rounds without a queue after which the competing flow is gone.
    const GONE: u32 = 50;
    /// The queue is known to a fifth, so that its removal comes from `1 - INEXACT` of the longest queue
    /// on, and has come after `LATE` rounds above `1 + INEXACT`.
    const INEXACT: f64 = 0.2;
    const LATE: u32 = 3;

    /// The window after the removal of the queue.
    fn removed(&self, window: f64) -> f64 {
        (window - self.queue.min(window / 2.0)).max(self.reno)
    }
}

impl Law for Yeah {
    fn see(&mut self, round: &Round) {
        self.span.see(round);
        let (Some([least, ..]), Some(base)) = (round.rtt, self.span.base()) else {
            return;
        };
        if round.is_cut() {
            return;
        }
        self.queue = round.window * (least - base) / least;
        let is_late = self.queue > (1.0 + Self::INEXACT) * Self::QUEUE && round.window > self.reno;
        self.late = if is_late { self.late + 1 } else { 0 };
        if self.queue > Self::QUEUE || least - base > base * Self::DELAY {
            self.reno = if self.reno <= 2.0 {
                (round.window / 2.0).max(2.0)
            } else {
                self.reno + 1.0
            };
            self.slow += 1;
        } else {
            self.fast += 1;
            if self.fast > Self::GONE {
                (self.reno, self.fast) = (2.0, 0);
            }
            self.slow = 0;
        }
    }
    fn grow(&mut self, round: &Round, window: f64) -> f64 {
        if self.late > Self::LATE {
            self.removed(window) - window
        } else if self.slow == 0 {
            round.acked / window.min(Self::SCALABLE)
        } else {
            round.acked / window
        }
    }
    fn lowered(&self, window: f64) -> Option<f64> {
        // The window of the Reno flow, below which it is not lowered, is not known.
        let is_long = self.queue > (1.0 - Self::INEXACT) * Self::QUEUE;
        is_long.then(|| window - self.queue.min(window / 2.0))
    }
    fn shares(&self, window: f64) -> Shares {
        if self.slow < Self::COMPETING {
            [1.0 - (self.queue / window).clamp(0.125, 0.5); 3]
        } else {
            [0.5; 3]
        }
    }
    fn remaining(&self, window: f64, losses: i32) -> Shares {
        // Each loss removes the same queue.
        let [share, ..] = self.shares(window);
        [(1.0 - f64::from(losses) * (1.0 - share)).max(2.0 / window.max(2.0)); 3]
    }
    fn lose(&mut self, _round: &Round, _window: f64) {
        self.fast = 0;
        self.reno = (self.reno / 2.0).max(2.0);
    }
}

/// Vegas (Brakmo and Peterson, 1995): two to four segments in the queue.
#[derive(Debug, Default)]
pub(super) struct Vegas {
    span: Span,
    queue: Option<f64>,
}

impl Vegas {
    const LEAST: f64 = 2.0;
    const MOST: f64 = 4.0;

    /// The step by the queue in whole segments.
    fn step(queue: f64) -> f64 {
        let queue = queue.floor();
        if queue > Self::MOST {
            -1.0
        } else if queue < Self::LEAST {
            1.0
        } else {
            0.0
        }
    }
}

impl Law for Vegas {
    fn see(&mut self, round: &Round) {
        self.span.see(round);
        if let (Some([least, ..]), Some(base)) = (round.rtt, self.span.base()) {
            self.queue = Some(round.window * (least - base) / base);
        }
    }
    fn grow(&mut self, _round: &Round, _window: f64) -> f64 {
        self.queue.map_or(0.0, Self::step)
    }
    fn range(&mut self, _round: &Round, _window: f64) -> [f64; 2] {
        let queue = self.queue.unwrap_or(Self::MOST);
        [1.0, -1.0].map(|error| Self::step(queue + error))
    }
}

/// All laws: the name of each, its tolerance, and its state.
pub(super) fn all() -> [(&'static str, Tolerance, Box<dyn Law>); 8] {
    [
        ("reno", Tolerance::EXACT, Box::<Reno>::default()),
        ("cubic", Tolerance::BY_TIME, Box::<Cubic>::default()),
        ("bic", Tolerance::BY_TIME, Box::<Bic>::default()),
        ("htcp", Tolerance::BY_BASE, Box::<Htcp>::default()),
        (
            "westwood-plus",
            Tolerance::EXACT_GROWTH,
            Box::<Westwood>::default(),
        ),
        ("illinois", Tolerance::BY_DELAY, Box::<Illinois>::default()),
        ("yeah", Tolerance::EXACT_GROWTH, Box::<Yeah>::default()),
        ("vegas", Tolerance::EXACT, Box::<Vegas>::default()),
    ]
}

/// W_max after a loss with fast convergence (RFC 9438 §4.7), in whole segments.
fn converged(top: f64, window: f64, beta: f64) -> f64 {
    if window < top {
        (window * f64::midpoint(1.0, beta)).floor()
    } else {
        window
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the conversion saturates"
)]
fn saturated(steps: f64) -> u32 {
    steps as u32
}
