//! The states of a path against a reference model, and reports under any loss.

use anabranch_core::units::{Duration, Instant};
use anabranch_gateway::{
    path::{Ledger, Liveness, Outcome, Received, Sent, State},
    policy::Role,
    pool::Pool,
    wire::Report,
};
use proptest::prelude::*;
use std::collections::BTreeSet;

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

/// What the documentation says, from the history of packets and reports alone.
#[derive(Debug)]
struct Model {
    name: Name,
    /// Packets sent that are not reported, nor older than a reported one.
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
                    (self.hold * 2).min(30_000)
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
        // Sent at different times: a packet is named by its time.
        for (pause, action) in steps {
            now += pause;
            path.advance(at(now), LATE, DEAD);
            model.time(now);
            prop_assert_eq!(name(path.state()), model.name, "at {}", now);
            path.on_sent(at(now));
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
    fn reports_converge_whatever_is_lost(
        arrivals in proptest::collection::vec((1_u64..4, 0_u64..20), 1..80), lost in proptest::collection::vec(any::<bool>(), 200),
    ) {
        // The receiver's reports pass a path that loses any of them and any acknowledgment, but not all for ever.
        let mut received = Received::default();
        let (mut number, mut now) = (0, at(1));
        let mut seen = BTreeSet::new();
        let mut newest: Option<Report> = None;
        let mut fates = lost.into_iter().chain(std::iter::repeat(false));
        let pass = |received: &mut Received, now: Instant, newest: &mut Option<Report>, fates: &mut dyn Iterator<Item = bool>| {
            if received.due().is_none_or(|due| due > now) {
                return;
            }
            received.on_control(now);
            let report = received.report(now).expect("a report is due");
            if fates.next() == Some(false) {
                *newest = Some(report);
                if fates.next() == Some(false) {
                    received.on_acknowledged(report.version);
                }
            }
        };
        for (step, pause) in arrivals {
            number += step;
            now = now + MS * pause;
            received.on_arrival(number, now, now);
            seen.insert(number);
            pass(&mut received, now, &mut newest, &mut fates);
        }
        while let Some(due) = received.due() {
            now = due;
            pass(&mut received, now, &mut newest, &mut fates);
        }
        let report = newest.expect("at least one arrives");
        prop_assert_eq!(report.highest, number);
        let first = *seen.first().expect("at least one");
        for behind in 1..=64.min(number - first) {
            let is_reported = report.received >> (behind - 1) & 1 == 1;
            prop_assert_eq!(is_reported, seen.contains(&(number - behind)), "{} behind {}", behind, number);
        }
    }

    #[test]
    fn each_packet_has_one_fate(
        reports in proptest::collection::vec((0_u64..400, any::<u64>()), 1..60), mask: u64,
    ) {
        let (mut ledger, mut outcome, mut pool) = (Ledger::default(), Outcome::default(), Pool::default());
        let (mut fates, mut next) = (BTreeSet::new(), 0);
        for (highest, received) in reports {
            for _ in 0..9 {
                let sent = Sent { number: next, at: at(next), octets: 100, expects_report: true, kept: None };
                prop_assert_eq!(ledger.add(sent, &mut pool), 0);
                next += 1;
            }
            let report = Report { version: 0, loss: 0, highest, arrived: 0, held: 0, received: received | mask };
            ledger.on_report(&report, &mut outcome);
            for sent in outcome.arrived.iter().chain(&outcome.lost) {
                prop_assert!(fates.insert(sent.number), "{} has two fates", sent.number);
                prop_assert!(sent.number <= highest);
            }
        }
        prop_assert!(fates.len() + ledger.len() <= usize::try_from(next).expect("small"));
    }
}
