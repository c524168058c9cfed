//! Comparison of the states of a path with a reference model, and reports under any loss.

use anabranch_core::units::Duration;
use anabranch_gateway::{
    path::{Ledger, Liveness, Outcome, Received, Sent, State},
    policy::Role,
    pool::Pool,
    time::Instant,
    wire::{Arrivals, Report, WORDS},
};
use proptest::prelude::*;
use std::collections::{BTreeSet, VecDeque};

const MS: Duration = Duration::from_millis(1);
const LATE: Duration = Duration::from_millis(90);
const DEAD: Duration = Duration::from_millis(210);

/// The states by name, without their times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Unknown,
    Returning,
    Active,
    Suspect,
    Dead,
}

fn name(state: State) -> Name {
    match state {
        State::Validating { reported: None } => Name::Unknown,
        State::Validating { reported: Some(_) } => Name::Returning,
        State::Active | State::Standby => Name::Active,
        State::Suspect => Name::Suspect,
        State::Dead { .. } => Name::Dead,
    }
}

/// The documented behaviour, derived from the history of packets and reports alone.
#[derive(Debug)]
struct Model {
    name: Name,
    /// Sent packets that are neither reported nor older than a reported one.
    unreported: Vec<u64>,
    ever: bool,
    died: u64,
    returning: u64,
    returned: Option<u64>,
    hold: u64,
}

impl Model {
    fn time(&mut self, now: u64) {
        let Some(&oldest) = self.unreported.first() else {
            return;
        };
        let silent = Duration::from_millis(now - oldest);
        if self.name == Name::Active && silent >= LATE {
            self.name = Name::Suspect;
        } else if !matches!(self.name, Name::Active | Name::Dead) && silent >= DEAD {
            if let Some(returned) = self.returned.take() {
                self.hold = if now - returned < 60_000 {
                    (self.hold * 2).min(5_000)
                } else {
                    300
                };
            }
            (self.name, self.died) = (Name::Dead, now);
            self.unreported.clear();
        }
    }

    fn report(&mut self, now: u64, sent: u64) {
        self.unreported.retain(|&at| at > sent);
        match self.name {
            Name::Unknown | Name::Dead if !self.ever => self.name = Name::Active,
            Name::Unknown => (self.name, self.returning) = (Name::Returning, now),
            Name::Dead if sent > self.died => (self.name, self.returning) = (Name::Returning, now),
            Name::Returning if now - self.returning >= self.hold => {
                (self.name, self.returned) = (Name::Active, Some(now));
            }
            Name::Suspect => self.name = Name::Active,
            _ => {}
        }
        self.ever = true;
    }
}

fn at(ms: u64) -> Instant {
    Instant::START + MS * ms
}

proptest! {
    #![proptest_config(super::cases(128))]

    #[test]
    fn states_follow_the_model(steps in proptest::collection::vec((1_u64..60, 0_u8..10), 1..400), lossy in 0_u8..10) {
        let mut path = Liveness::new(Role::Active);
        let mut model = Model {
            name: Name::Unknown,
            unreported: Vec::new(),
            ever: false,
            died: 0,
            returning: 0,
            returned: None,
            hold: 300,
        };
        let mut now = 0;
        // Packets are sent at different times and identified by them.
        for (pause, action) in steps {
            now += pause;
            path.advance(at(now), LATE, DEAD);
            model.time(now);
            prop_assert_eq!(name(path.state()), model.name, "at {}", now);
            path.on_sent(at(now), None);
            model.unreported.push(now);
            if action >= lossy {
                // The newest packet is reported a moment later.
                now += 1;
                path.on_report(at(now), at(now - 1), None);
                model.report(now, now - 1);
            }
            prop_assert_eq!(name(path.state()), model.name, "at {}", now);
            if path.is_dead() {
                prop_assert!(path.timeout(LATE, DEAD).is_none());
            }
        }
    }

    #[test]
    fn reports_converge_under_any_loss(
        arrivals in proptest::collection::vec((1_u64..40, 0_u64..20, 0_u64..200), 1..120), lost in proptest::collection::vec(any::<bool>(), 300),
        delay in 0_u64..100,
    ) {
        // The receiver's reports pass a path that loses any of them and any acknowledgment, but not
        // all forever. An acknowledgment takes `delay`, so that packets arrive between a report and
        // its acknowledgment.
        let mut received = Received::default();
        let (mut highest, mut now) = (0, at(1));
        // `seen`: numbers that arrived. `told`: numbers that delivered reports showed.
        let (mut seen, mut told) = (BTreeSet::new(), BTreeSet::new());
        let mut newest: Option<Report> = None;
        let mut fates = lost.into_iter().chain(std::iter::repeat(false));
        let mut acknowledgments = VecDeque::new();
        let mut pass = |received: &mut Received, now: Instant, seen: &BTreeSet<u64>| {
            while let Some(&(at, version)) = acknowledgments.front()
                && at <= now
            {
                received.on_acknowledged(version, now);
                acknowledgments.pop_front();
            }
            if received.due().is_none_or(|due| due > now) {
                return;
            }
            received.on_control(now);
            let report = received.report(now).expect("a report is due");
            let shown: Vec<u64> = report.arrivals.numbers(report.highest).collect();
            assert_eq!(shown.last(), Some(&report.highest));
            assert!(shown.iter().all(|number| seen.contains(number)), "{shown:?}");
            if fates.next() == Some(false) {
                told.extend(shown);
                newest = Some(report);
                if fates.next() == Some(false) {
                    acknowledgments.push_back((now + MS * delay, report.version));
                }
            }
        };
        for (step, pause, late) in arrivals {
            // Late packets have a number below the highest.
            let number = if late > 100 { highest + step } else { (highest + step).saturating_sub(late) };
            highest = highest.max(number);
            now = now + MS * pause;
            if seen.insert(number) {
                received.on_arrival(number, now, now);
            }
            pass(&mut received, now, &seen);
        }
        while let Some(due) = received.due() {
            now = due;
            pass(&mut received, now, &seen);
        }
        prop_assert_eq!(newest.map(|report| report.highest), Some(highest));
        let oldest = (highest / 64 + 1).saturating_sub(WORDS as u64) * 64;
        let missed: Vec<_> = seen.range(oldest..).filter(|number| !told.contains(number)).collect();
        prop_assert!(missed.is_empty(), "{:?} of {} were never reported", missed, highest);
    }

    #[test]
    fn each_packet_has_one_outcome(
        reports in proptest::collection::vec((0_u64..400, proptest::collection::vec(any::<u64>(), 1..4)), 1..60), mask: u64,
    ) {
        let (mut ledger, mut outcome, mut pool) = (Ledger::default(), Outcome::default(), Pool::default());
        let (mut fates, mut lost, mut next, mut newest) = (BTreeSet::new(), BTreeSet::new(), 0, 0);
        let mut spurious = 0;
        for (highest, mut words) in reports {
            for _ in 0..9 {
                let sent = Sent { number: next, at: at(next), octets: 100, in_flight: 0, expects_report: true, kept: None, repairs: None };
                prop_assert_eq!(ledger.add(sent, &mut pool), 0);
                next += 1;
            }
            words[0] = (words[0] | mask) & ((1 << (highest % 64)) - 1) | 1 << (highest % 64);
            newest = newest.max(highest);
            let arrivals = Arrivals::new(words);
            let report = Report { version: 0, loss: 0, highest, arrived: 0, held: 0, arrivals };
            ledger.on_report(&report, Duration::from_secs(3_600), &mut outcome);
            // Packets presumed lost before that this report shows. The outcome counts each at most
            // once.
            let late = arrivals.numbers(highest).filter(|number| lost.remove(number)).count();
            prop_assert_eq!(outcome.spurious % 100, 0);
            prop_assert!(outcome.spurious / 100 <= late);
            spurious += outcome.spurious / 100;
            for sent in &outcome.arrived {
                prop_assert!(arrivals.numbers(highest).any(|number| number == sent.number));
            }
            for sent in outcome.arrived.iter().chain(&outcome.lost) {
                prop_assert!(fates.insert(sent.number), "{} has two fates", sent.number);
                prop_assert!(sent.number <= newest);
            }
            lost.extend(outcome.lost.iter().map(|sent| sent.number));
        }
        prop_assert!(spurious <= fates.len());
        prop_assert_eq!(fates.len() + ledger.len(), usize::try_from(next).expect("small"));
    }
}
