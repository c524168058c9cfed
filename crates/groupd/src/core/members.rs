//! The order of steps by which members leave and return, so that switching loses no frame.
//!
//! *Out*, of a member that carries traffic:
//!
//! 1. [`Phase::Draining`]: its frames are redirected to another member whose queue is not
//!    shorter, so that no frame overtakes; its own queue empties. LACPDUs still leave over it.
//! 2. [`Phase::Announced`]: an LACPDU informs the partner that the port is not to be used, as the
//!    bonding driver does when it releases a member. The partner stops and answers.
//! 3. [`Phase::Quiet`]: frames that the partner sent before its answer arrive; a guard time without
//!    received frames follows.
//! 4. [`Phase::Off`]: the interface is set down.
//!
//! *In*: [`Phase::Joining`]: the frames are redirected, the interface is set up, and LACP
//! negotiates. When the partner collects, the redirection ends.
//!
//! Members with the lowest numbers stay. A member leaves only if enough others carry traffic; a
//! working member that fails brings back the next one. If none works, all return.

use anabranch_path::group::lacp::pdu::State;

use super::Time;

/// Limits on the steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Fewest members that stay on.
    pub least: usize,
    /// Time without a frame that ends draining and quiet.
    pub guard: Time,
    /// The longest wait for a queue as long as the member's own.
    pub order: Time,
    /// The longest wait for the partner's answer.
    pub answer: Time,
    /// The longest time of a negotiation before it is reported as failed.
    pub negotiation: Time,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            least: 1,
            guard: Time::from_millis(20),
            order: Time::from_millis(500),
            answer: Time::from_secs(3),
            negotiation: Time::from_secs(10),
        }
    }
}

/// Observation of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct View {
    /// Whether it is set up.
    pub is_up: bool,
    pub has_carrier: bool,
    /// LACP's state of this end's port.
    pub actor: State,
    /// LACP's state of the partner's port, as its last LACPDU had it.
    pub partner: State,
    /// Bytes in its queue.
    pub backlog: u64,
    /// Frames sent, LACPDUs included.
    pub sent: u64,
    /// Frames received, LACPDUs included.
    pub received: u64,
}

impl View {
    /// Whether it carries traffic in both directions.
    #[must_use]
    pub const fn works(&self) -> bool {
        self.is_up
            && self.has_carrier
            && self.actor.has(State::DISTRIBUTING)
            && self.partner.has(State::COLLECTING)
            && self.partner.has(State::DISTRIBUTING)
    }
    /// Whether this end can send over it.
    #[must_use]
    pub const fn sends(&self) -> bool {
        self.is_up && self.has_carrier && self.actor.has(State::DISTRIBUTING)
    }
}

/// Step of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// On, or meant to be: it carries traffic unless something failed.
    On,
    /// It is to leave, and waits for a queue that is not shorter.
    Chosen { since: Time },
    /// Its frames leave over `target`.
    Draining { target: usize, calm: Calm },
    /// The partner has been informed.
    Announced { target: usize, notice: Notice },
    /// The partner has stopped.
    Quiet {
        target: usize,
        notice: Notice,
        calm: Calm,
    },
    /// The interface is down.
    Off,
    /// The interface is up, and LACP negotiates.
    Joining { target: Option<usize>, since: Time },
}

/// A counter, and since when it has not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calm {
    count: u64,
    since: Time,
}

impl Calm {
    const fn new(count: u64, since: Time) -> Self {
        Self { count, since }
    }
    /// Updates the counter; returns whether it has not changed for `guard`.
    fn lasts(&mut self, count: u64, now: Time, guard: Time) -> bool {
        if count != self.count {
            *self = Self::new(count, now);
        }
        now.saturating_sub(self.since) >= guard
    }
}

/// Announcements of a leaving member.
///
/// The driver does not know of them, and its own LACPDUs bring the partner back. All other frames
/// are redirected, so each one that the member sends is an LACPDU of the driver, and the
/// announcement is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notice {
    /// Time of the first announcement.
    since: Time,
    /// Time of the last one.
    last: Time,
    /// Frames sent before the last one.
    sent: u64,
}

impl Notice {
    const fn new(now: Time, sent: u64) -> Self {
        Self {
            since: now,
            last: now,
            sent,
        }
    }
    /// Repeats the announcement if it is due. Returns whether it is.
    fn repeats(&mut self, now: Time, sent: u64) -> bool {
        let is_due = sent > self.sent + 1 || now.saturating_sub(self.last) >= ANNOUNCE;
        if is_due {
            (self.last, self.sent) = (now, sent);
        }
        is_due
    }
}

impl Phase {
    /// The member that carries its frames.
    #[must_use]
    pub const fn target(&self) -> Option<usize> {
        match self {
            Self::Draining { target, .. }
            | Self::Announced { target, .. }
            | Self::Quiet { target, .. } => Some(*target),
            Self::Joining { target, .. } => *target,
            _ => None,
        }
    }
    /// The same, to be changed.
    const fn target_mut(&mut self) -> Option<&mut usize> {
        match self {
            Self::Draining { target, .. }
            | Self::Announced { target, .. }
            | Self::Quiet { target, .. } => Some(target),
            Self::Joining { target, .. } => target.as_mut(),
            _ => None,
        }
    }
    /// The name for reports.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Chosen { .. } | Self::Draining { .. } => "draining",
            Self::Announced { .. } => "announced",
            Self::Quiet { .. } => "quiet",
            Self::Off => "off",
            Self::Joining { .. } => "joining",
        }
    }
}

/// A step for the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Send the member's frames over another one.
    Redirect { member: usize, target: usize },
    /// Send the member's frames over it again.
    Direct { member: usize },
    /// Send the LACPDU by which the port leaves.
    Announce { member: usize },
    /// Set the interface down.
    Down { member: usize },
    /// Set the interface up.
    Up { member: usize },
}

/// Counters of a group's changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Counts {
    /// Members taken out.
    pub taken_out: u64,
    /// Members brought back.
    pub brought_back: u64,
    /// Members taken out without the partner's answer.
    pub unanswered: u64,
    /// Members whose frames were redirected to a shorter queue.
    pub unordered: u64,
    /// Times at which no member worked, and all were brought back.
    pub emergencies: u64,
}

/// The members of a group.
#[derive(Debug)]
pub struct Members {
    limits: Limits,
    phases: Vec<Phase>,
    /// Changes until now.
    pub counts: Counts,
    is_emergency: bool,
}

impl Members {
    /// All members on.
    #[must_use]
    pub fn new(count: usize, limits: Limits) -> Self {
        Self {
            limits,
            phases: vec![Phase::On; count],
            counts: Counts::default(),
            is_emergency: false,
        }
    }

    /// Whether a member is leaving, and each frame that it sends counts.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.phases
            .iter()
            .any(|phase| !matches!(phase, Phase::On | Phase::Off | Phase::Joining { .. }))
    }

    /// The members' steps.
    #[must_use]
    pub fn phases(&self) -> &[Phase] {
        &self.phases
    }

    /// Members that carry traffic and are not leaving.
    fn working<'a>(&'a self, views: &'a [View]) -> impl Iterator<Item = usize> + 'a {
        let pairs = self.phases.iter().zip(views).enumerate();
        pairs.filter_map(|(member, (phase, view))| {
            (*phase == Phase::On && view.works()).then_some(member)
        })
    }

    /// Returns the steps to take now, so that `wanted` members are on.
    pub fn step(&mut self, now: Time, wanted: usize, views: &[View]) -> Vec<Action> {
        let mut actions = Vec::new();
        if views.len() != self.phases.len() {
            return actions;
        }
        self.observe(now, views);
        let works = self.working(views).next().is_some();
        let is_controlled = self.phases.iter().any(|phase| *phase != Phase::On);
        if !works && is_controlled && !self.is_emergency {
            self.is_emergency = true;
            self.counts.emergencies += 1;
        }
        self.is_emergency &= !works;
        let wanted = if self.is_emergency {
            self.phases.len()
        } else {
            wanted.max(self.limits.least).max(1)
        };
        self.bring_back(now, wanted, views, &mut actions);
        self.take_out(now, wanted, views);
        for member in 0..self.phases.len() {
            self.advance(now, member, views, &mut actions);
        }
        actions
    }

    /// Returns the steps that bring all members back at once.
    pub fn restore(&mut self, now: Time) -> Vec<Action> {
        let mut actions = Vec::new();
        for (member, phase) in self.phases.iter_mut().enumerate() {
            actions.push(Action::Direct { member });
            actions.push(Action::Up { member });
            if *phase != Phase::On {
                *phase = Phase::Joining {
                    target: None,
                    since: now,
                };
            }
        }
        actions
    }

    /// Removes a member that has left the group; the members after it move up. Returns the steps of
    /// those whose frames left over it.
    pub fn remove(&mut self, now: Time, gone: usize) -> Vec<Action> {
        let mut actions = Vec::new();
        if gone >= self.phases.len() {
            return actions;
        }
        self.phases.remove(gone);
        for (member, phase) in self.phases.iter_mut().enumerate() {
            if phase.target() == Some(gone) {
                actions.push(Action::Direct { member });
                *phase = match phase {
                    // The partner knows nothing yet.
                    Phase::Draining { .. } => Phase::On,
                    _ => Phase::Joining {
                        target: None,
                        since: now,
                    },
                };
            } else if let Some(target) = phase.target_mut() {
                *target -= usize::from(*target > gone);
            }
        }
        actions
    }

    /// Accepts changes by other programs and by failures.
    fn observe(&mut self, now: Time, views: &[View]) {
        for (phase, view) in self.phases.iter_mut().zip(views) {
            if *phase == Phase::Off && view.is_up {
                *phase = Phase::Joining {
                    target: None,
                    since: now,
                };
            }
        }
    }

    /// Brings back the members with the lowest numbers while fewer than `wanted` are on.
    fn bring_back(&mut self, now: Time, wanted: usize, views: &[View], actions: &mut Vec<Action>) {
        let anchor = self.working(views).next();
        let negotiation = self.limits.negotiation;
        let is_coming = |phase: &Phase, view: &View| match phase {
            Phase::On => view.works(),
            Phase::Joining { since, .. } => now.saturating_sub(*since) < negotiation,
            _ => false,
        };
        let pairs = self.phases.iter().zip(views);
        let mut count = pairs.filter(|(phase, view)| is_coming(phase, view)).count();
        for member in 0..self.phases.len() {
            if count >= wanted {
                break;
            }
            match self.phases[member] {
                Phase::Chosen { .. } => self.phases[member] = Phase::On,
                Phase::Draining { .. } => {
                    // The partner knows nothing yet.
                    self.phases[member] = Phase::On;
                    actions.push(Action::Direct { member });
                }
                Phase::Off => {
                    if let Some(target) = anchor {
                        actions.push(Action::Redirect { member, target });
                    }
                    actions.push(Action::Up { member });
                    self.phases[member] = Phase::Joining {
                        target: anchor,
                        since: now,
                    };
                }
                // A member whose leave was announced first goes off: the partner no longer
                // uses it. In an emergency it returns as it is.
                Phase::Announced { .. } | Phase::Quiet { .. } if self.is_emergency => {
                    actions.push(Action::Direct { member });
                    self.phases[member] = Phase::Joining {
                        target: None,
                        since: now,
                    };
                }
                _ => continue,
            }
            count += 1;
        }
    }

    /// Chooses members to leave, the highest numbers first, while more than `wanted` work.
    fn take_out(&mut self, now: Time, wanted: usize, views: &[View]) {
        let mut working: Vec<usize> = self.working(views).collect();
        let is_target =
            |phases: &[Phase], member| phases.iter().any(|phase| phase.target() == Some(member));
        while working.len() > wanted {
            let Some(member) = working.pop() else { return };
            if is_target(&self.phases, member) {
                return;
            }
            self.phases[member] = Phase::Chosen { since: now };
        }
    }

    /// Takes the next step of a member.
    fn advance(&mut self, now: Time, member: usize, views: &[View], actions: &mut Vec<Action>) {
        let view = views[member];
        let guard = self.limits.guard;
        match self.phases[member] {
            Phase::On | Phase::Off => {}
            Phase::Chosen { since } => {
                let longest = self
                    .working(views)
                    .max_by_key(|other| (views[*other].backlog, std::cmp::Reverse(*other)));
                let Some(target) = longest else {
                    self.phases[member] = Phase::On;
                    return;
                };
                let is_ordered = views[target].backlog >= view.backlog;
                if !is_ordered && now.saturating_sub(since) < self.limits.order {
                    return;
                }
                self.counts.unordered += u64::from(!is_ordered);
                actions.push(Action::Redirect { member, target });
                let calm = Calm::new(view.sent, now);
                self.phases[member] = Phase::Draining { target, calm };
            }
            Phase::Draining { target, mut calm } => {
                if self.retarget(member, target, views, actions) {
                    return;
                }
                let is_calm = calm.lasts(view.sent, now, guard);
                self.phases[member] = if view.backlog == 0 && is_calm {
                    actions.push(Action::Announce { member });
                    let notice = Notice::new(now, view.sent);
                    Phase::Announced { target, notice }
                } else {
                    Phase::Draining { target, calm }
                };
            }
            Phase::Announced { target, mut notice } => {
                let partner_sends = view.partner.has(State::DISTRIBUTING);
                if self.retarget(member, target, views, actions) {
                    return;
                }
                let is_late = now.saturating_sub(notice.since) >= self.limits.answer;
                self.phases[member] = if !partner_sends || is_late {
                    self.counts.unanswered += u64::from(partner_sends);
                    Phase::Quiet {
                        target,
                        notice,
                        calm: Calm::new(view.received, now),
                    }
                } else {
                    if notice.repeats(now, view.sent) {
                        actions.push(Action::Announce { member });
                    }
                    Phase::Announced { target, notice }
                };
            }
            Phase::Quiet { .. } => self.set_down(now, member, views, actions),
            Phase::Joining { target, since } => {
                if !view.is_up && now.saturating_sub(since) >= REPEAT {
                    actions.push(Action::Up { member });
                    self.phases[member] = Phase::Joining { target, since: now };
                } else if view.works() {
                    if target.is_some() {
                        actions.push(Action::Direct { member });
                    }
                    self.counts.brought_back += 1;
                    self.phases[member] = Phase::On;
                } else if let Some(target) = target {
                    self.retarget(member, target, views, actions);
                }
            }
        }
    }

    /// Sets a member down after the guard time.
    fn set_down(&mut self, now: Time, member: usize, views: &[View], actions: &mut Vec<Action>) {
        let Phase::Quiet {
            target,
            mut notice,
            mut calm,
        } = self.phases[member]
        else {
            return;
        };
        if self.retarget(member, target, views, actions) {
            return;
        }
        let view = views[member];
        let passed = now.saturating_sub(notice.since);
        let is_calm = calm.lasts(view.received, now, self.limits.guard);
        let is_late = passed >= self.limits.answer * 2;
        let others = self.working(views).count();
        if (is_calm || is_late) && others >= self.limits.least.max(1) {
            actions.push(Action::Down { member });
            actions.push(Action::Direct { member });
            self.counts.taken_out += 1;
            self.phases[member] = Phase::Off;
            return;
        }
        if notice.repeats(now, view.sent) {
            actions.push(Action::Announce { member });
        }
        let is_back = view.partner.has(State::DISTRIBUTING) && passed < self.limits.answer;
        self.phases[member] = if is_back {
            Phase::Announced { target, notice }
        } else {
            Phase::Quiet {
                target,
                notice,
                calm,
            }
        };
    }

    /// Ends or moves a redirection whose target no longer works. Returns whether it did.
    fn retarget(
        &mut self,
        member: usize,
        target: usize,
        views: &[View],
        actions: &mut Vec<Action>,
    ) -> bool {
        if views[target].sends() {
            return false;
        }
        let other = self.working(views).next();
        match other {
            Some(other) => actions.push(Action::Redirect {
                member,
                target: other,
            }),
            None => actions.push(Action::Direct { member }),
        }
        let phase = &mut self.phases[member];
        match (&mut *phase, other) {
            (
                Phase::Draining { target, .. }
                | Phase::Announced { target, .. }
                | Phase::Quiet { target, .. },
                Some(other),
            ) => *target = other,
            (Phase::Joining { target, .. }, other) => *target = other,
            (phase @ Phase::Draining { .. }, None) => *phase = Phase::On,
            (phase, None) => {
                *phase = Phase::Joining {
                    target: None,
                    since: Time::ZERO,
                }
            }
            _ => {}
        }
        true
    }
}

/// Time after which a lost announcement is repeated.
const ANNOUNCE: Time = Time::from_millis(350);
/// Time between two attempts to set an interface up.
const REPEAT: Time = Time::from_secs(1);

#[cfg(test)]
mod tests;
