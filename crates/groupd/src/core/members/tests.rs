//! Laws of the members' steps, against a model of the driver and of its partner.

use proptest::prelude::*;

use super::{Action, Limits, Members, Phase, State, Time, View};

/// The state of a port that collects and distributes, or not.
fn traffic(is_on: bool) -> State {
    State::default()
        .with(State::COLLECTING, is_on)
        .with(State::DISTRIBUTING, is_on)
}

/// Interval of the steps.
const STEP: Time = Time::from_millis(20);
/// Time of a negotiation in the model.
const NEGOTIATION: Time = Time::from_millis(2_300);

/// A member as the driver and its partner have it.
#[derive(Debug, Clone)]
struct Driver {
    is_up: bool,
    has_failed: bool,
    /// When it works again after it was set up.
    ready: Time,
    /// When the partner stops after an announcement.
    stops: Option<Time>,
    target: Option<usize>,
    backlog: u64,
    frames: u64,
}

struct Model {
    members: Vec<Driver>,
    now: Time,
    answer: Option<Time>,
}

impl Model {
    fn new(count: usize, answer: Option<Time>) -> Self {
        let driver = Driver {
            is_up: true,
            has_failed: false,
            ready: Time::ZERO,
            stops: None,
            target: None,
            backlog: 0,
            frames: 0,
        };
        Self {
            members: vec![driver; count],
            now: Time::ZERO,
            answer,
        }
    }

    fn views(&self) -> Vec<View> {
        let view = |driver: &Driver| {
            let has_carrier = driver.is_up && !driver.has_failed;
            let works = has_carrier && self.now >= driver.ready;
            let has_stopped = driver.stops.is_some_and(|at| self.now >= at);
            View {
                is_up: driver.is_up,
                has_carrier,
                actor: traffic(works),
                partner: traffic(works && !has_stopped),
                backlog: driver.backlog,
                sent: driver.frames,
                received: driver.frames,
            }
        };
        self.members.iter().map(view).collect()
    }

    /// Members that carry traffic in both directions.
    fn carrying(&self) -> usize {
        self.views().iter().filter(|view| view.works()).count()
    }

    fn apply(&mut self, action: Action) {
        match action {
            Action::Redirect { member, target } => {
                assert_ne!(member, target);
                self.members[member].target = Some(target);
            }
            Action::Direct { member } => self.members[member].target = None,
            Action::Announce { member } => {
                assert!(
                    self.members[member].target.is_some(),
                    "frames would be lost"
                );
                assert_eq!(self.members[member].backlog, 0, "frames would be lost");
                if let Some(answer) = self.answer {
                    self.members[member].stops.get_or_insert(self.now + answer);
                }
            }
            Action::Down { member } => {
                let driver = &mut self.members[member];
                driver.is_up = false;
                driver.stops = None;
                assert!(self.carrying() >= 1, "no member is left");
            }
            Action::Up { member } => {
                let driver = &mut self.members[member];
                if !driver.is_up {
                    driver.ready = self.now + NEGOTIATION;
                }
                driver.is_up = true;
            }
        }
    }

    fn step(&mut self, members: &mut Members, wanted: usize) {
        self.now += STEP;
        for driver in &mut self.members {
            driver.backlog = driver.backlog.saturating_sub(20_000);
        }
        for action in members.step(self.now, wanted, &self.views()) {
            self.apply(action);
        }
        for (phase, driver) in members.phases().iter().zip(&self.members) {
            assert_eq!(
                phase.target(),
                driver.target,
                "the redirection follows the phase"
            );
            if let Some(target) = driver.target {
                assert!(self.members[target].is_up, "the target carries no frames");
            }
        }
    }

    fn run(&mut self, members: &mut Members, wanted: usize, steps: u32) {
        for _ in 0..steps {
            self.step(members, wanted);
        }
    }
}

fn on(members: &Members) -> usize {
    let phases = members.phases().iter();
    phases.filter(|phase| **phase == Phase::On).count()
}

const ANSWER: Option<Time> = Some(Time::from_millis(300));

#[test]
fn the_number_of_members_follows_the_request() {
    let mut model = Model::new(4, ANSWER);
    let mut members = Members::new(4, Limits::default());
    for wanted in [1, 3, 2, 4, 1] {
        model.run(&mut members, wanted, 400);
        assert_eq!((on(&members), model.carrying()), (wanted, wanted));
    }
    assert_eq!(members.counts.taken_out, 3 + 1 + 3);
    assert_eq!(members.counts.unanswered, 0);
}

#[test]
fn zero_is_one() {
    let mut model = Model::new(3, ANSWER);
    let mut members = Members::new(3, Limits::default());
    model.run(&mut members, 0, 400);
    assert_eq!(model.carrying(), 1);
}

#[test]
fn a_partner_that_never_answers_delays_but_does_not_prevent_sleep() {
    let mut model = Model::new(2, None);
    let mut members = Members::new(2, Limits::default());
    model.run(&mut members, 1, 100);
    assert_eq!(on(&members), 1);
    assert!(matches!(members.phases()[1], Phase::Announced { .. }));
    model.run(&mut members, 1, 300);
    assert_eq!(members.phases()[1], Phase::Off);
    assert_eq!(members.counts.unanswered, 1);
}

#[test]
fn the_failure_of_the_last_member_brings_all_back() {
    let mut model = Model::new(3, ANSWER);
    let mut members = Members::new(3, Limits::default());
    model.run(&mut members, 1, 400);
    model.members[0].has_failed = true;
    model.step(&mut members, 1);
    assert!(model.members.iter().all(|driver| driver.is_up));
    model.run(&mut members, 1, 400);
    assert_eq!(model.carrying(), 1);
    assert_eq!(members.counts.emergencies, 1);
}

#[test]
fn a_long_queue_delays_the_redirection_to_a_shorter_one() {
    let mut model = Model::new(2, ANSWER);
    let mut members = Members::new(2, Limits::default());
    model.members[1].backlog = 90_000;
    model.step(&mut members, 1);
    assert!(matches!(members.phases()[1], Phase::Chosen { .. }));
    while matches!(members.phases()[1], Phase::Chosen { .. }) {
        model.step(&mut members, 1);
    }
    assert_eq!(model.members[1].backlog, 0);
    assert_eq!(members.counts.unordered, 0);
    // A queue that never gets shorter than the others delays it for half a second.
    let mut model = Model::new(2, ANSWER);
    let mut members = Members::new(2, Limits::default());
    for _ in 0..30 {
        if model.members[1].target.is_none() {
            model.members[1].backlog = 90_000;
        }
        model.step(&mut members, 1);
    }
    assert_eq!(members.counts.unordered, 1);
}

#[test]
fn restoring_sets_every_member_up() {
    let mut model = Model::new(3, ANSWER);
    let mut members = Members::new(3, Limits::default());
    model.run(&mut members, 1, 400);
    for action in members.restore(model.now) {
        model.apply(action);
    }
    assert!(
        model
            .members
            .iter()
            .all(|driver| driver.is_up && driver.target.is_none())
    );
}

/// An event of the world.
#[derive(Debug, Clone)]
enum Event {
    Want(usize, u32),
    Fail(usize),
    Repair(usize),
    SetUp(usize),
    Queue(usize, u64),
}

fn events(count: usize) -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => (0..=count, 1_u32..300).prop_map(|(wanted, steps)| Event::Want(wanted, steps)),
        1 => (0..count).prop_map(Event::Fail),
        2 => (0..count).prop_map(Event::Repair),
        1 => (0..count).prop_map(Event::SetUp),
        2 => (0..count, 0_u64..200_000).prop_map(|(member, bytes)| Event::Queue(member, bytes)),
    ];
    prop::collection::vec(event, 1..40)
}

proptest! {
    /// In any order of requests, failures and interventions no step removes the last member that
    /// carries traffic (asserted by the model), and at the end the request is met.
    #[test]
    fn no_step_removes_the_last_member(
        events in events(5), answers in any::<bool>(), least in 1_usize..4
    ) {
        let limits = Limits { least, ..Limits::default() };
        let mut members = Members::new(5, limits);
        let mut model = Model::new(5, answers.then_some(Time::from_millis(300)));
        let mut wanted = 5;
        for event in events {
            match event {
                Event::Want(count, steps) => {
                    wanted = count;
                    model.run(&mut members, wanted, steps);
                }
                Event::Fail(member) => model.members[member].has_failed = true,
                Event::Repair(member) => {
                    model.members[member].has_failed = false;
                    model.members[member].ready = model.now + NEGOTIATION;
                }
                Event::SetUp(member) => model.apply(Action::Up { member }),
                Event::Queue(member, bytes) => {
                    let driver = &mut model.members[member];
                    // Redirected frames are not in its queue.
                    driver.backlog = if driver.target.is_none() { bytes } else { 0 };
                }
            }
            model.step(&mut members, wanted);
        }
        for driver in &mut model.members {
            driver.has_failed = false;
        }
        model.run(&mut members, wanted, 1_500);
        prop_assert_eq!(model.carrying(), wanted.max(least));
    }
}

#[test]
fn members_whose_frames_left_over_a_removed_one_send_themselves() {
    let works = View {
        is_up: true,
        has_carrier: true,
        actor: traffic(true),
        partner: traffic(true),
        ..View::default()
    };
    let mut members = Members::new(3, Limits::default());
    let actions = members.step(STEP, 2, &[works; 3]);
    assert_eq!(
        actions,
        [Action::Redirect {
            member: 2,
            target: 0
        }]
    );
    let mut others = Members::new(3, Limits::default());
    others.phases.clone_from(&members.phases);
    assert_eq!(
        members.remove(STEP, 0),
        [Action::Direct { member: 1 }],
        "the third is now the second"
    );
    assert_eq!(members.phases(), [Phase::On, Phase::On]);
    assert_eq!(others.remove(STEP, 1), []);
    assert_eq!(others.phases()[1].target(), Some(0));
}
