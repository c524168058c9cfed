//! The daemon: samples counters, lets the controller decide, and takes members out and in.

use std::{
    io,
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anabranch_core::{system::words, units::Rate};
use anabranch_path::group::{control::Config, energy::PowerModel};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::{
    bond::{self, Bond},
    core::{
        announce,
        demand::{self, Demand},
        energy::Ports,
        members::{Action, Limits, Members, Phase, View},
    },
    failure::Failure,
    guardian::{self, Guardian},
    lock::{self, Lock},
    log::say,
    netlink::{Netlink, Totals, if_there},
    packet::Sender,
    state::{self, Saved, State},
    status::{self, MemberReport, Report},
};

/// Interval of the observations of carriers and of LACP's states.
const OBSERVE: Duration = Duration::from_millis(20);
/// The longest orderly end, in which all members negotiate.
const END: Duration = Duration::from_secs(10);

/// Options of a daemon.
#[derive(Debug, Clone)]
pub struct Options {
    pub bond: String,
    pub control: Config,
    /// Interval of the readings.
    pub sample: Duration,
    /// Rate of one member, if the driver's is not to be used.
    pub rate: Option<Rate>,
    /// Time until a member that was down carries traffic.
    pub lead: Duration,
    pub limits: Limits,
    pub power: PowerModel,
    /// Interval of the log lines with energy.
    pub report: Duration,
    pub directory: PathBuf,
}

/// A member under control.
struct Controlled {
    index: u32,
    name: String,
    address: Option<[u8; 6]>,
    totals: Totals,
    view: View,
}

/// A running daemon.
struct Daemon {
    options: Options,
    netlink: Netlink,
    sender: Sender,
    lock: Lock,
    /// The bond's name now.
    name: String,
    state: State,
    guardian: Option<Guardian>,
    members: Vec<Controlled>,
    steps: Members,
    energy: Ports,
    demand: Demand,
    rate: Rate,
    wanted: usize,
    bytes: u64,
    start: Instant,
    sampled: Duration,
    observed: Duration,
    beaten: Duration,
    reported: Duration,
    ends: Option<Duration>,
}

/// Controls a bond until a signal or a request ends it.
///
/// # Errors
/// Bad input, or the system refuses.
pub fn control(options: Options) -> Result<(), Failure> {
    let mut netlink = Netlink::new().map_err(|error| Failure::System(words(&error)))?;
    let socket = state::socket(&options.directory, &options.bond);
    refuse_second(&socket, &options.bond)?;
    let bond = bond::find(&mut netlink, &options.bond).map_err(Failure::Input)?;
    let sender = Sender::open().map_err(|error| refused(&options.bond, &error))?;
    // Without privilege this fails before anything changes.
    netlink
        .set_all_active(bond.index, bond.options.all_active)
        .map_err(|error| refused(&options.bond, &error))?;
    state::create(&options.directory).map_err(|error| {
        Failure::System(format!(
            "{}: {}",
            options.directory.display(),
            words(&error)
        ))
    })?;
    let lock = locked(&options, &socket)?;
    let (signals, write) = UnixStream::pair().map_err(|error| Failure::System(words(&error)))?;
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        let write = write.try_clone();
        write
            .and_then(|write| signal_hook::low_level::pipe::register(signal, write))
            .map_err(|error| Failure::System(words(&error)))?;
    }
    let mut daemon = Daemon::new(options, netlink, sender, lock)?;
    let outcome = status::listen(&socket).and_then(|listener| daemon.run(&listener, &signals));
    daemon.end(outcome.is_ok());
    outcome.map_err(|error| Failure::System(format!("{}: {error}", daemon.options.bond)))
}

/// Refuses a bond whose daemon answers.
fn refuse_second(socket: &Path, bond: &str) -> Result<(), Failure> {
    if UnixStream::connect(socket).is_ok() {
        return Err(Failure::Input(format!(
            "{bond} is already controlled: type `anabranch-group release {bond}` to end that"
        )));
    }
    Ok(())
}

/// Takes the lock, after the guardian of an earlier daemon has brought its members back.
fn locked(options: &Options, socket: &Path) -> Result<Lock, Failure> {
    let (directory, bond) = (&options.directory, &options.bond);
    let path = lock::path(directory, bond);
    let failed = |error| Failure::System(format!("{}: {}", path.display(), words(&error)));
    let mut is_told = false;
    let lock = Lock::wait(directory, bond, failed, || {
        if !is_told {
            is_told = true;
            say(&format!("{bond}: waits for the end of an earlier daemon"));
        }
        refuse_second(socket, bond)
    })?;
    lock.ok_or_else(|| stuck(directory, bond))
}

/// The error if a daemon neither answers nor ends.
pub fn stuck(directory: &Path, bond: &str) -> Failure {
    Failure::System(format!(
        "an earlier daemon of {bond} holds {0} and does not answer: `fuser {0}` prints its process; end it",
        lock::path(directory, bond).display()
    ))
}

fn refused(bond: &str, error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::PermissionDenied {
        Failure::Input(format!(
            "control of {bond} needs the capabilities CAP_NET_ADMIN and CAP_NET_RAW: type \
             `sudo anabranch-group control {bond} …`"
        ))
    } else {
        Failure::System(words(error))
    }
}

impl Daemon {
    /// The state now.
    fn report(&self) -> Report {
        let (used, awake) = self.energy.joules();
        let times = self.energy.times();
        let phases = self.steps.phases();
        let members: Vec<MemberReport> = self
            .members
            .iter()
            .zip(phases)
            .zip(times)
            .map(|((member, phase), seconds)| MemberReport {
                name: member.name.clone(),
                phase: phase.name().to_owned(),
                works: member.view.works(),
                seconds: *seconds,
            })
            .collect();
        Report {
            bond: self.options.bond.clone(),
            method: self.options.control.name().to_owned(),
            uptime_s: self.uptime().as_secs_f64(),
            member_rate_bit_s: self.rate.bits_per_s(),
            wanted: self.wanted,
            working: members.iter().filter(|member| member.works).count(),
            arrived_bytes: self.bytes,
            energy_joules: used,
            energy_without_control_joules: awake,
            member_seconds_off: self.energy.asleep(),
            changes: self.steps.counts,
            members,
        }
    }

    fn new(
        options: Options,
        mut netlink: Netlink,
        sender: Sender,
        lock: Lock,
    ) -> Result<Self, Failure> {
        let begun = begin(&options, &mut netlink, &lock);
        if begun.is_err() && matches!(State::read(&options.directory, &options.bond), Ok(None)) {
            // Otherwise the guardian deletes it.
            lock.delete();
        }
        let (rate, state, guardian, members) = begun?;
        let init = demand::init(rate, members.len(), options.lead);
        Ok(Self {
            demand: Demand::new(&options.control, options.sample, &init),
            steps: Members::new(members.len(), options.limits),
            energy: Ports::new(options.power, rate, members.len()),
            wanted: members.len(),
            name: options.bond.clone(),
            netlink,
            sender,
            lock,
            state,
            guardian: Some(guardian),
            members,
            rate,
            bytes: 0,
            start: Instant::now(),
            sampled: Duration::ZERO,
            observed: Duration::ZERO,
            beaten: Duration::ZERO,
            reported: Duration::ZERO,
            ends: None,
            options,
        })
    }

    /// Time since the start.
    pub fn uptime(&self) -> Duration {
        self.start.elapsed()
    }

    fn run(&mut self, listener: &UnixListener, signals: &UnixStream) -> Result<(), String> {
        if self.options.limits.least > self.members.len() {
            say(&format!(
                "{}: --least is {}, and {} members are controlled: all stay on",
                self.options.bond,
                self.options.limits.least,
                self.members.len()
            ));
        }
        say(&format!(
            "{}: {} decides about {} members of {}",
            self.options.bond,
            self.options.control.name(),
            self.members.len(),
            self.rate
        ));
        // Outside systemd there is no socket to notify.
        let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
        let mut due = self.options.sample;
        loop {
            let (is_asked, is_signalled) =
                wait(listener, signals, due.saturating_sub(self.uptime()));
            if is_signalled {
                if self.ends.is_some() {
                    return Ok(());
                }
                self.begin_end();
            }
            if is_asked
                && let Ok((stream, _)) = listener.accept()
                && status::answer(&self.report(), stream) == status::Request::Release
                && self.ends.is_none()
            {
                self.begin_end();
            }
            let now = self.uptime();
            if now < due {
                continue;
            }
            self.turn(now).map_err(|error| words(&error))?;
            if let Some(limit) = self.ends {
                let is_back = self.steps.phases().iter().all(|phase| *phase == Phase::On);
                if is_back || now >= limit {
                    return Ok(());
                }
            }
            due = next(due, now, self.options.sample);
        }
    }

    /// Starts the orderly end: all members return.
    fn begin_end(&mut self) {
        say(&format!("{}: all members return", self.options.bond));
        self.ends = Some(self.uptime() + END);
    }

    /// One reading, decision and step.
    fn turn(&mut self, now: Duration) -> io::Result<()> {
        // First of all: without a guardian nothing is changed.
        if now.saturating_sub(self.beaten) >= guardian::BEAT {
            self.beaten = now;
            if let Some(guardian) = &mut self.guardian {
                guardian.beat()?;
            }
        }
        let is_complete = self.read(now)?;
        if !is_complete || now.saturating_sub(self.observed) >= OBSERVE {
            self.observe(now)?;
        }
        if self.observed == now || self.steps.is_leaving() {
            let views: Vec<View> = self.members.iter().map(|member| member.view).collect();
            for action in self.steps.step(now, self.wanted, &views) {
                self.act(action)?;
            }
        }
        if now.saturating_sub(self.reported) >= self.options.report {
            self.reported = now;
            self.log_energy();
        }
        Ok(())
    }

    /// Reads the counters, and lets the controller decide. Returns whether all members were there.
    fn read(&mut self, now: Duration) -> io::Result<bool> {
        let span = now.saturating_sub(self.sampled);
        self.sampled = now;
        let mut bytes = 0;
        let mut is_complete = true;
        for (number, member) in self.members.iter_mut().enumerate() {
            let phase = &self.steps.phases()[number];
            let mut sent = 0;
            if *phase != Phase::Off {
                if let Some(totals) = if_there(self.netlink.totals(member.index))? {
                    bytes += demand::arrived(&member.totals, &totals);
                    sent = totals.tx_bytes.saturating_sub(member.totals.tx_bytes);
                    member.totals = totals;
                    member.view.backlog = totals.backlog;
                    member.view.sent = totals.tx_packets;
                    member.view.received = totals.rx_packets;
                } else {
                    is_complete = false;
                }
            }
            self.energy.add(number, phase, span, sent);
        }
        self.bytes += bytes;
        let wanted = self.demand.sample(now, bytes);
        let all = self.members.len();
        self.wanted = match self.ends {
            Some(_) => all,
            None => usize::try_from(wanted)
                .unwrap_or(all)
                .max(self.options.limits.least)
                .min(all),
        };
        Ok(is_complete)
    }

    /// Observes the bond and its members.
    fn observe(&mut self, now: Duration) -> io::Result<()> {
        self.observed = now;
        let Some(bond) = if_there(self.netlink.link(self.state.index))? else {
            return Err(io::Error::other("the bond was deleted"));
        };
        self.name = bond.name;
        let mut number = 0;
        while number < self.members.len() {
            let member = &mut self.members[number];
            match if_there(self.netlink.link(member.index))? {
                Some(link) if link.master == Some(self.state.index) => {
                    member.view = bond::view(&link, &member.totals);
                    member.name = link.name;
                    number += 1;
                }
                _ => self.drop_member(now, number)?,
            }
        }
        Ok(())
    }

    /// Ends the control of a member that has left the bond.
    fn drop_member(&mut self, now: Duration, number: usize) -> io::Result<()> {
        let gone = self.members.remove(number);
        say(&format!("{} has left {}", gone.name, self.name));
        if let Some(saved) = self.state.saved(gone.index) {
            let has_our_queue = saved.has_our_queue;
            // It may have been removed.
            let _ = self.netlink.end_redirect(gone.index, has_our_queue);
        }
        let members = &mut self.state.members;
        members.retain(|saved| saved.index != gone.index);
        self.state.write(&self.options.directory)?;
        self.energy.remove(number);
        for action in self.steps.remove(now, number) {
            self.act(action)?;
        }
        self.wanted = self.wanted.min(self.members.len());
        if self.members.len() < 2 {
            return Err(io::Error::other(
                "fewer than two members are left, and control needs two",
            ));
        }
        Ok(())
    }

    /// Takes a step, unless the member has left the bond, which the next observation notices.
    fn act(&mut self, action: Action) -> io::Result<()> {
        let (Action::Redirect { member, .. }
        | Action::Direct { member }
        | Action::Announce { member }
        | Action::Down { member }
        | Action::Up { member }) = action;
        let index = self.members[member].index;
        let link = if_there(self.netlink.link(index))?;
        if link.is_none_or(|link| link.master != Some(self.state.index)) {
            return Ok(());
        }
        match action {
            Action::Redirect { target, .. } => {
                let target = self.members[target].index;
                self.redirect(index, target)
            }
            Action::Direct { .. } => self.direct(index),
            Action::Announce { .. } => {
                // A failed announcement is repeated.
                if let Err(error) = self.announce(member) {
                    say(&format!("{}: {}", self.members[member].name, words(&error)));
                }
                Ok(())
            }
            Action::Down { .. } => {
                self.say_of(member, "is down");
                self.netlink.set_up(index, false)
            }
            Action::Up { .. } => {
                self.say_of(member, "returns");
                self.netlink.set_up(index, true)
            }
        }
    }

    /// Redirects frames. A queue `clsact` that this creates is noted before.
    fn redirect(&mut self, from: u32, to: u32) -> io::Result<()> {
        if !self.netlink.has_filter_queue(from) {
            self.note_queue(from, true)?;
        }
        let is_ours = self.has_our_queue(from);
        self.netlink.redirect(from, to, is_ours)
    }

    fn direct(&mut self, from: u32) -> io::Result<()> {
        let is_ours = self.has_our_queue(from);
        self.netlink.end_redirect(from, is_ours)?;
        if is_ours && !self.netlink.has_filter_queue(from) {
            self.note_queue(from, false)?;
        }
        Ok(())
    }

    fn has_our_queue(&mut self, index: u32) -> bool {
        let saved = self.state.saved(index);
        saved.is_some_and(|saved| saved.has_our_queue)
    }

    fn note_queue(&mut self, index: u32, is_ours: bool) -> io::Result<()> {
        match self.state.saved(index) {
            Some(saved) if saved.has_our_queue != is_ours => {
                saved.has_our_queue = is_ours;
                self.state.write(&self.options.directory)
            }
            _ => Ok(()),
        }
    }

    fn say_of(&self, member: usize, event: &str) {
        let name = &self.members[member].name;
        say(&format!(
            "{name} {event}; members to be on: {}",
            self.wanted
        ));
    }

    fn announce(&self, member: usize) -> io::Result<()> {
        let member = &self.members[member];
        let ports = bond::ports(&self.name)?;
        let port = ports.iter().find(|port| port.name == member.name);
        let pdu = port.and_then(announce::leave);
        let pdu = pdu.ok_or_else(|| io::Error::other("LACP has no data of the port"))?;
        let source = member.address.unwrap_or_default();
        self.sender.send(member.index, &pdu.frame(source))
    }

    fn log_energy(&self) {
        let (used, awake) = self.energy.joules();
        let hours = self.energy.asleep();
        say(&format!(
            "{}: {used:.1} J used by the ports of this end, {awake:.1} J without control; {:.3} link hours asleep",
            self.options.bond,
            hours / 3600.0
        ));
    }

    /// Brings the members back, and deletes the state.
    fn end(&mut self, is_orderly: bool) {
        self.log_energy();
        if !is_orderly {
            let _ = self.steps.restore(self.uptime());
        }
        let directory = &self.options.directory;
        let back = self.state.bring_back(directory, &mut self.netlink);
        let done = back
            .checked()
            .and_then(|()| self.state.finish(&mut self.netlink, directory));
        if let Err(error) = done {
            // The guardian tries again.
            say(&error);
            return;
        }
        if let Some(guardian) = self.guardian.take() {
            guardian.end();
        }
        self.lock.delete();
    }
}

/// Brings an earlier daemon's members back, writes the state, and starts the guardian.
fn begin(
    options: &Options,
    netlink: &mut Netlink,
    lock: &Lock,
) -> Result<(Rate, State, Guardian, Vec<Controlled>), Failure> {
    let system = |error: io::Error| Failure::System(words(&error));
    let directory = &options.directory;
    let earlier = State::read(directory, &options.bond).map_err(Failure::System)?;
    if let Some(earlier) = &earlier {
        say(&format!(
            "{}: members of an earlier daemon are brought back",
            options.bond
        ));
        let trouble = earlier.bring_back(directory, netlink);
        for missing in &trouble.missing {
            say(missing);
        }
        if !trouble.errors.is_empty() {
            return Err(Failure::System(trouble.errors.join("; ")));
        }
    }
    // The bond as it is now: the wait for the lock may have been long.
    let bond = bond::find(netlink, &options.bond).map_err(Failure::Input)?;
    bond::check(&bond)?;
    let rate = match options.rate {
        Some(rate) => rate,
        None => rate_of(&bond)?,
    };
    let all_active = match &earlier {
        Some(earlier) if earlier.index == bond.index => earlier.all_active,
        _ => bond.options.all_active,
    };
    let chosen: Vec<&bond::Member> = bond.members.iter().filter(|member| member.is_up).collect();
    let state = State {
        bond: bond.name.clone(),
        index: bond.index,
        members: chosen
            .iter()
            .map(|member| Saved {
                name: member.name.clone(),
                index: member.index,
                has_our_queue: false,
            })
            .collect(),
        all_active,
        nonce: state::nonce(),
    };
    state.write(directory).map_err(system)?;
    let guardian = Guardian::start(&state, directory, lock).map_err(system)?;
    netlink.set_all_active(bond.index, true).map_err(system)?;
    let mut members = Vec::new();
    for member in &chosen {
        let totals = netlink.totals(member.index).map_err(system)?;
        let link = netlink.link(member.index).map_err(system)?;
        members.push(Controlled {
            index: member.index,
            name: member.name.clone(),
            address: link.address,
            totals,
            view: bond::view(&link, &totals),
        });
    }
    Ok((rate, state, guardian, members))
}

/// The rate of a member. Without a carrier its speed may not be known yet.
fn rate_of(bond: &Bond) -> Result<Rate, Failure> {
    let ports = bond::ports(&bond.name).map_err(|error| words(&error));
    let rate = ports.and_then(|ports| bond::rate(&ports, &bond.name));
    rate.map_err(|why| {
        if bond.members.iter().any(|member| member.has_carrier) {
            Failure::Input(why)
        } else {
            Failure::System(why)
        }
    })
}

/// The time of the next reading: a multiple of the interval.
fn next(due: Duration, now: Duration, interval: Duration) -> Duration {
    let missed = now.saturating_sub(due).as_nanos() / interval.as_nanos().max(1);
    let missed = u32::try_from(missed).unwrap_or(u32::MAX);
    due + interval.saturating_mul(missed.saturating_add(1))
}

/// Waits for a request, a signal or the time. Returns whether there is a request, and a signal.
fn wait(listener: &UnixListener, signals: &UnixStream, longest: Duration) -> (bool, bool) {
    let mut waits = [
        PollFd::new(listener, PollFlags::IN),
        PollFd::new(signals, PollFlags::IN),
    ];
    let longest = Timespec::try_from(longest).ok();
    // An interruption is a signal, which the next turn finds.
    let _ = poll(&mut waits, longest.as_ref());
    let [asked, signalled] = waits.map(|wait| wait.revents().contains(PollFlags::IN));
    if signalled {
        let mut octets = [0; 16];
        let _ = rustix::io::read(signals, &mut octets);
    }
    (asked, signalled)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::next;

    #[test]
    fn a_late_reading_moves_no_later_one() {
        let ms = Duration::from_millis;
        assert_eq!(next(ms(5), ms(5), ms(1)), ms(6));
        assert_eq!(next(ms(5), Duration::from_micros(5_900), ms(1)), ms(6));
        assert_eq!(next(ms(5), Duration::from_micros(9_100), ms(1)), ms(10));
    }
}
