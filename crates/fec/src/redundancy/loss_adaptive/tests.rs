use super::*;

fn controller(most: u16) -> LossAdaptive {
    LossAdaptive::new(&Params::default(), most)
}

fn view(cwnd: u32) -> View {
    View {
        now: Instant::START,
        cwnd,
    }
}

fn send(controller: &mut LossAdaptive, packets: u32) {
    for _ in 0..packets {
        controller.on_sent(Instant::START, false);
    }
}

/// A slow start that ends at a window of 400, then seven bursts of `burst` packets, one every
/// `interval` packets, at a window of 100. While the window of 400 is stored, these are below the
/// crest.
fn after(most: u16, interval: u32, burst: u32) -> LossAdaptive {
    let mut controller = controller(most);
    controller.next_group(&view(400));
    controller.on_hidden_losses(Instant::START, 25);
    send(&mut controller, 1_600);
    controller.next_group(&view(100));
    for _ in 0..7 {
        send(&mut controller, interval);
        // The peer reports at most two per acknowledgment.
        for told in (0..burst).step_by(2) {
            controller.on_hidden_losses(Instant::START, 2.min(burst - told));
        }
    }
    controller
}

/// Compares the distribution with the sum over numbers and lengths of bursts.
#[test]
fn losses_follow_a_poisson_number_of_geometric_bursts() {
    for (lambda, b) in [(0.01, 1.0), (0.002, 4.0), (0.05, 2.5)] {
        let total = 40.0;
        let mean: f64 = total * lambda;
        // lost[k]: probability of k losses in `bursts` bursts.
        let mut lost = vec![0.0; 60];
        lost[0] = 1.0;
        let mut weight = exp(-mean);
        let mut sum = vec![0.0; 60];
        for bursts in 1..40 {
            for (all, one) in sum.iter_mut().zip(&lost) {
                *all += weight * one;
            }
            let mut next = vec![0.0; 60];
            for (k, one) in lost.iter().enumerate() {
                let mut length = 1.0 / b;
                for more in next.iter_mut().skip(k + 1) {
                    *more += one * length;
                    length *= 1.0 - 1.0 / b;
                }
            }
            lost = next;
            weight *= mean / f64::from(bursts);
        }
        for m in 0..20 {
            let expected = 1.0 - sum[..=usize::from(m)].iter().sum::<f64>();
            let f = incomplete(total, m, (lambda, b));
            assert!(
                (f - expected).abs() < 1e-9,
                "{m} of {lambda} {b}: {f} {expected}"
            );
        }
    }
}

/// The shape has the least cost of all shapes for the λ and b of the input.
#[test]
fn the_shape_costs_hardly_more_than_the_best() {
    for (interval, burst, cwnd) in [(2_000, 1, 100), (300, 1, 60), (1_000, 3, 200)] {
        let mut controller = after(16, interval, burst);
        let losses = controller.losses(f64::from(cwnd));
        // The prior is one burst of one packet.
        let expected = (
            1.0 / f64::from(interval),
            (1.0 + 7.0 * f64::from(burst)) / 8.0,
        );
        assert!(
            (losses.0 / expected.0 - 1.0).abs() < 0.05,
            "{losses:?} {expected:?}"
        );
        assert!(
            (losses.1 / expected.1 - 1.0).abs() < 0.05,
            "{losses:?} {expected:?}"
        );
        let shape = controller.next_group(&view(cwnd));
        let least = (1..=16_u16)
            .flat_map(|m| (1..=40).map(move |n| (n, m)))
            .map(|(n, m)| cost(n, m, losses, f64::from(cwnd)))
            .fold(f64::INFINITY, f64::min);
        let own = cost(shape.sources, shape.redundant, losses, f64::from(cwnd));
        assert!(own <= 1.05 * least, "{shape:?}: {own} {least}");
    }
}

/// A controller that receives all events `lag` packets late.
struct Late {
    inner: LossAdaptive,
    lag: usize,
    /// The packets sent, with the losses reported before the next one.
    waiting: VecDeque<u32>,
}

impl Redundancy for Late {
    fn next_group(&mut self, view: &View) -> Shape {
        self.inner.next_group(view)
    }
    fn on_sent(&mut self, now: Instant, _retransmission: bool) {
        self.waiting.push_back(0);
        while self.waiting.len() > self.lag {
            let losses = self.waiting.pop_front().unwrap_or(0);
            self.inner.on_sent(now, false);
            if losses > 0 {
                self.inner.on_hidden_losses(now, losses);
            }
        }
    }
    fn on_hidden_losses(&mut self, now: Instant, losses: u32) {
        match self.waiting.back_mut() {
            Some(last) => *last += losses,
            None => self.inner.on_hidden_losses(now, losses),
        }
    }
}

/// The channel becomes thirty times worse. After eight losses at the new rate, the shape costs
/// hardly more than the best. Detects a controller that is notified of losses late.
#[test]
fn eight_losses_suffice_to_follow_a_channel() {
    let cwnd = 100;
    let times_the_least = |controller: &mut dyn Redundancy| {
        let send = |controller: &mut dyn Redundancy, cwnd, packets| {
            controller.next_group(&view(cwnd));
            for _ in 0..packets {
                controller.on_sent(Instant::START, false);
            }
        };
        for interval in [9_000, 300] {
            // The crest is stored for eight events: losses below it are the channel's.
            send(controller, 400, 400);
            controller.on_hidden_losses(Instant::START, 1);
            send(controller, 400, 1_600);
            for _ in 0..8 {
                send(controller, cwnd, interval);
                controller.on_hidden_losses(Instant::START, 1);
            }
        }
        let losses = (1.0 / 300.0, 1.0);
        let of = |n, m| cost(n, m, losses, f64::from(cwnd));
        let shapes = (1..=16_u16).flat_map(|m| (1..=40).map(move |n| (n, m)));
        let least = shapes.map(|(n, m)| of(n, m)).fold(f64::INFINITY, f64::min);
        let shape = controller.next_group(&view(cwnd));
        of(shape.sources, shape.redundant) / least
    };
    let own = times_the_least(&mut controller(16));
    assert!(own < 1.1, "{own} times the least");
    let late = times_the_least(&mut Late {
        inner: controller(16),
        lag: 5_000,
        waiting: VecDeque::new(),
    });
    assert!(late > 1.5, "late: {late} times the least");
}

#[test]
fn bursts_get_redundancy_of_their_length() {
    let single = after(16, 1_000, 1).next_group(&view(100));
    let bursts = after(16, 1_000, 4).next_group(&view(100));
    assert!(
        bursts.redundant > 2 * single.redundant,
        "{single:?} {bursts:?}"
    );
}

/// Losses at the window's crest are the queue's and lead to no redundancy; the same losses below it
/// do. Detects a controller that attributes every loss to the channel.
#[test]
fn losses_of_a_full_queue_add_no_redundancy() {
    let sawtooth = |at_crest: bool| {
        let mut controller = controller(16);
        controller.next_group(&view(400));
        controller.on_hidden_losses(Instant::START, 1);
        send(&mut controller, 1_600);
        for round in 0..30 {
            for cwnd in 200..400 {
                controller.next_group(&view(cwnd));
                let anywhere = 200 + round * 71 % 200;
                let lost = if at_crest { 399 } else { anywhere };
                send(&mut controller, cwnd);
                if cwnd == lost {
                    controller.on_hidden_losses(Instant::START, 7);
                }
            }
        }
        controller.next_group(&view(300))
    };
    let queue = sawtooth(true);
    let channel = sawtooth(false);
    assert_eq!(queue.redundant, 1, "{queue:?}");
    assert!(channel.redundant > 4, "{channel:?}");
}

#[test]
fn a_group_fits_the_window_and_the_limit() {
    for cwnd in [0, 1, 2, 3, 10, 1_000] {
        let shape = after(8, 100_000, 1).next_group(&view(cwnd));
        let room = cwnd.saturating_sub(u32::from(shape.redundant)).max(1);
        assert!(shape.sources <= room.min(40), "{shape:?} in {cwnd}");
    }
}
