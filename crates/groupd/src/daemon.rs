//! The daemon: samples counters, lets the controller decide, and takes members out and in.

use std::{
    io,
    os::unix::net::{UnixListener, UnixStream},
    path::PathBuf,
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
    guardian::{self, Guardian},
    log::say,
    netlink::{Netlink, Totals},
    packet::Sender,
    state::{self, State},
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

/// The reason why a daemon ends early.
pub enum Failure {
    /// Bad input.
    Input(String),
    /// The system refuses.
    System(String),
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
    if UnixStream::connect(&socket).is_ok() {
        return Err(Failure::Input(format!(
            "{0} is already controlled: type `anabranch-group release {0}` to end that",
            options.bond
        )));
    }
    let bond = bond::find(&mut netlink, &options.bond).map_err(Failure::Input)?;
    bond::check(&bond).map_err(Failure::Input)?;
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
    let listener = status::listen(&socket).map_err(Failure::System)?;
    let (signals, write) = UnixStream::pair().map_err(|error| Failure::System(words(&error)))?;
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        let write = write.try_clone();
        write
            .and_then(|write| signal_hook::low_level::pipe::register(signal, write))
            .map_err(|error| Failure::System(words(&error)))?;
    }
    let mut daemon = Daemon::new(options, &bond, netlink, sender)?;
    let outcome = daemon.run(&listener, &signals);
    daemon.end(outcome.is_ok());
    outcome.map_err(|error| Failure::System(format!("{}: {error}", daemon.options.bond)))
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
            member_seconds_off: times.iter().map(|times| times.sleeping).sum(),
            changes: self.steps.counts,
            members,
        }
    }

    fn new(
        options: Options,
        bond: &Bond,
        mut netlink: Netlink,
        sender: Sender,
    ) -> Result<Self, Failure> {
        let system = |error: io::Error| Failure::System(words(&error));
        let rate = match options.rate {
            Some(rate) => rate,
            None => bond::ports(&bond.name)
                .map_err(|error| words(&error))
                .and_then(|ports| bond::rate(&ports, &bond.name))
                .map_err(Failure::Input)?,
        };
        // A killed daemon's members come back first.
        let earlier = State::read(&options.directory, &bond.name).map_err(Failure::System)?;
        let mut all_active = bond.options.all_active;
        let mut names: Vec<String> = Vec::new();
        if let Some(earlier) = &earlier {
            say(&format!(
                "{}: members of an earlier daemon are brought back",
                bond.name
            ));
            let errors = earlier.bring_back(&mut netlink);
            if !errors.is_empty() {
                return Err(Failure::System(errors.join("; ")));
            }
            all_active = earlier.all_active;
            names.clone_from(&earlier.members);
        }
        let chosen: Vec<&bond::Member> = bond
            .members
            .iter()
            .filter(|member| member.is_up || names.contains(&member.name))
            .collect();
        let state = State {
            bond: bond.name.clone(),
            members: chosen.iter().map(|member| member.name.clone()).collect(),
            all_active,
        };
        state.write(&options.directory).map_err(system)?;
        let guardian = Guardian::start(&bond.name, &options.directory).map_err(system)?;
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
        let init = demand::init(rate, members.len(), options.lead);
        Ok(Self {
            demand: Demand::new(&options.control, options.sample, &init),
            steps: Members::new(members.len(), options.limits),
            energy: Ports::new(options.power, rate, members.len()),
            wanted: members.len(),
            netlink,
            sender,
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
        let span = now.saturating_sub(self.sampled);
        self.sampled = now;
        let mut bytes = 0;
        for (number, member) in self.members.iter_mut().enumerate() {
            let phase = &self.steps.phases()[number];
            let mut sent = 0;
            if *phase != Phase::Off {
                let totals = self.netlink.totals(member.index)?;
                bytes += demand::arrived(&member.totals, &totals);
                sent = totals.tx_bytes.saturating_sub(member.totals.tx_bytes);
                member.totals = totals;
                member.view.backlog = totals.backlog;
                member.view.sent = totals.tx_packets;
                member.view.received = totals.rx_packets;
            }
            self.energy.add(number, phase, span, sent);
        }
        self.bytes += bytes;
        let wanted = self.demand.sample(now, bytes);
        self.wanted = match self.ends {
            Some(_) => self.members.len(),
            None => usize::try_from(wanted).unwrap_or(self.members.len()),
        };
        if now.saturating_sub(self.observed) >= OBSERVE {
            self.observed = now;
            for member in &mut self.members {
                let link = self.netlink.link(member.index)?;
                member.view = bond::view(&link, &member.totals);
            }
        }
        if self.observed == now || self.steps.is_leaving() {
            let views: Vec<View> = self.members.iter().map(|member| member.view).collect();
            for action in self.steps.step(now, self.wanted, &views) {
                self.act(action)?;
            }
        }
        if now.saturating_sub(self.beaten) >= guardian::BEAT {
            self.beaten = now;
            if let Some(guardian) = &mut self.guardian {
                guardian.beat()?;
            }
        }
        if now.saturating_sub(self.reported) >= self.options.report {
            self.reported = now;
            self.log_energy();
        }
        Ok(())
    }

    fn act(&mut self, action: Action) -> io::Result<()> {
        match action {
            Action::Redirect { member, target } => {
                let [from, to] = [member, target].map(|number| self.members[number].index);
                self.netlink.redirect(from, to)
            }
            Action::Direct { member } => self.netlink.end_redirect(self.members[member].index),
            Action::Announce { member } => {
                // A failed announcement is repeated.
                if let Err(error) = self.announce(member) {
                    say(&format!("{}: {}", self.members[member].name, words(&error)));
                }
                Ok(())
            }
            Action::Down { member } => {
                self.say_of(member, "is down");
                self.netlink.set_up(self.members[member].index, false)
            }
            Action::Up { member } => {
                self.say_of(member, "returns");
                self.netlink.set_up(self.members[member].index, true)
            }
        }
    }

    fn say_of(&self, member: usize, event: &str) {
        let name = &self.members[member].name;
        say(&format!(
            "{name} {event}; {} members are to be on",
            self.wanted
        ));
    }

    fn announce(&self, member: usize) -> io::Result<()> {
        let member = &self.members[member];
        let ports = bond::ports(&self.options.bond)?;
        let port = ports.iter().find(|port| port.name == member.name);
        let pdu = port.and_then(announce::leave);
        let pdu = pdu.ok_or_else(|| io::Error::other("LACP has no data of the port"))?;
        let source = member.address.unwrap_or_default();
        self.sender.send(member.index, &pdu.frame(source))
    }

    fn log_energy(&self) {
        let (used, awake) = self.energy.joules();
        let hours: f64 = self.energy.times().iter().map(|times| times.sleeping).sum();
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
        let errors = self.state.bring_back(&mut self.netlink);
        for error in &errors {
            say(error);
        }
        // If something failed, the guardian tries again.
        if errors.is_empty()
            && self
                .state
                .finish(&mut self.netlink, &self.options.directory)
                .is_ok()
            && let Some(guardian) = self.guardian.take()
        {
            guardian.end();
        }
    }
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
