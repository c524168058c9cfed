//! Runs a script on a target.

mod call;
mod code;
mod numbers;
mod packet;

use std::collections::{BTreeMap, VecDeque};

use anabranch_core::units::Duration;
use anabranch_wire::Flags;

use self::numbers::Numbers;
use crate::{
    error::{Cause, Error, Field, Position},
    syntax::{Action, Call, Event, Expected, Header, Icmp, OptionValue, Script, Setting, When},
    target::Target,
};

/// The longest time of a script, far below the bound of a time.
const LONGEST: Duration = Duration::from_secs(100 * 86_400);

/// Tolerance of times in a script for Linux, whatever the target: a kernel's timers end with ticks of
/// 1 to 10 ms, and scripts are written for one of them.
const LINUX_TOLERANCE: Duration = Duration::from_millis(10);
/// A timer of a kernel is late by up to this part of its time (`kernel/time/timer.c`,
/// `LVL_CLK_SHIFT`).
const LINUX_TIMER_SHARE: u64 = 8;

/// Runs `script`. `offset` is added to the peer's sequence numbers in packets, so that a script can
/// be run with numbers that wrap.
///
/// # Errors
/// The first event that does not match the script.
pub fn run(script: &Script, target: &mut dyn Target, offset: u32) -> Result<(), Error> {
    let is_exact = target.tolerance().is_zero();
    let tolerance = if script.is_for_linux {
        target.tolerance().max(LINUX_TOLERANCE)
    } else {
        target.tolerance()
    };
    let mut runner = Runner {
        script,
        is_exact,
        tolerance,
        target,
        now: Duration::ZERO,
        floor: Duration::ZERO,
        sent: VecDeque::new(),
        offset,
        has_begun: false,
        numbers: Numbers::new(offset, script.is_for_linux),
        connection: 0,
        writer: None,
        variables: BTreeMap::new(),
        handles: BTreeMap::new(),
        blocked: Vec::new(),
        written: 0,
        read: 0,
    };
    for (at, name, value) in &script.options {
        runner.option(*at, name, value)?;
    }
    runner.announce();
    let mut last = Position { line: 1, column: 1 };
    for event in &script.events {
        last = event.at;
        runner.event(event)?;
    }
    let returned = runner.blocked.iter().map(|call| call.last).max();
    let end = returned.map_or(runner.now, |last| last.max(runner.now));
    runner.let_time_pass(last, end)?;
    runner.try_blocked(end)?;
    if let Some(call) = runner.blocked.first() {
        return Err(runner.not_returned(call));
    }
    runner.nothing_unexpected(last, Duration::from_picos(u64::MAX))
}

/// A call that has not returned.
#[derive(Debug, Clone)]
struct Blocked {
    at: Position,
    call: Call,
    expected: Expected,
    /// The time at which it returns.
    last: Duration,
    /// Octets that it has written.
    written: i64,
    /// The time at which it was called.
    began: Duration,
}

struct Runner<'a> {
    script: &'a Script,
    target: &'a mut dyn Target,
    /// Whether the target's time is virtual.
    is_exact: bool,
    tolerance: Duration,
    /// The time of the last event.
    now: Duration,
    /// The time of the target, later than that of an event whose packet came late within the
    /// tolerance.
    floor: Duration,
    /// Packets sent by the target and not expected yet.
    sent: VecDeque<(Duration, Vec<u8>)>,
    /// An event other than a command has begun.
    has_begun: bool,
    /// Added to the peer's numbers.
    offset: u32,
    numbers: Numbers,
    /// The connection that the numbers and streams belong to.
    connection: u64,
    /// The target's descriptor that has written last.
    writer: Option<i64>,
    /// Variables of the script's code.
    variables: BTreeMap<String, i64>,
    /// The target's descriptors, by the script's.
    handles: BTreeMap<i64, i64>,
    blocked: Vec<Blocked>,
    /// Octets of each stream up to now.
    written: u64,
    read: u64,
}

impl Runner<'_> {
    fn error(&self, at: Position, message: impl Into<String>) -> Error {
        Error {
            file: self.script.file.clone(),
            at,
            message: message.into(),
            cause: Cause::Script,
        }
    }

    /// An error of the target.
    fn differs(&self, at: Position, message: impl Into<String>, fields: Vec<Field>) -> Error {
        Error {
            cause: Cause::Target(fields),
            ..self.error(at, message)
        }
    }

    fn option(&mut self, at: Position, name: &str, value: &str) -> Result<(), Error> {
        if name != "tolerance_usecs" {
            let told = self.target.option(name, value);
            return told.map_err(|message| self.error(at, message));
        }
        match value.parse() {
            Ok(micros) => {
                // A target in virtual time is exact, whatever tolerance a script of ours sets.
                let given = Duration::from_micros(micros);
                if self.script.is_for_linux {
                    self.tolerance = self.tolerance.max(given);
                } else if !self.is_exact {
                    self.tolerance = given;
                }
                Ok(())
            }
            Err(_) => Err(self.error(at, format!("`{value}`: expected microseconds"))),
        }
    }

    fn event(&mut self, event: &Event) -> Result<(), Error> {
        // Commands that set up a host take no time of the script: a target with a real clock starts it
        // with the first other event.
        let is_setup = !self.has_begun && event.when == When::After(Duration::ZERO);
        if let (Action::Command(settings), true) = (&event.action, is_setup) {
            return settings
                .iter()
                .try_for_each(|setting| self.set(setting))
                .map_err(|message| self.error(event.at, message));
        }
        self.has_begun = true;
        let (first, last) = match event.when {
            When::At(at) => (at, at),
            When::After(wait) => (self.now + wait, self.now + wait),
            When::Between(first, last) | When::Blocking(first, last) => {
                (self.now + first, self.now + last)
            }
            When::Any => (self.now, self.now + self.target.patience()),
        };
        if last > LONGEST {
            return Err(self.error(event.at, "the script lasts longer than a hundred days"));
        }
        // With a real clock, events follow the previous ones, which may have been late.
        let first = if self.is_exact {
            first
        } else {
            first.max(self.now)
        };
        let last = last.max(first);
        if first < self.now {
            let message = format!(
                "this comes before the event above it, which is at {} s",
                seconds(self.now)
            );
            return Err(self.error(event.at, message));
        }
        self.overdue(first)?;
        if let Action::Expect(expected) = &event.action {
            let sent = self.expect(event.at, expected, first, last)?;
            self.floor = self.floor.max(sent);
            self.now = if first == last && self.is_exact {
                first
            } else {
                sent.max(self.now)
            };
            return self.try_blocked(self.floor.max(self.now));
        }
        let then = first.max(self.floor);
        self.let_time_pass(event.at, then)?;
        self.nothing_unexpected(event.at, then)?;
        self.now = first;
        self.try_blocked(then)?;
        match &event.action {
            Action::Expect(_) => unreachable!("dealt with above"),
            Action::Inject(header) => self.inject(event.at, then, header),
            Action::InjectIcmp(icmp) => self.inject_icmp(event.at, then, *icmp),
            Action::Call(call, expected) => {
                let mut blocked = Blocked {
                    at: event.at,
                    call: call.clone(),
                    expected: expected.clone(),
                    last,
                    written: 0,
                    began: then,
                };
                let may_block = matches!(event.when, When::Blocking(..));
                if self.call(&mut blocked, then, may_block)? {
                    return Ok(());
                }
                self.blocked.push(blocked);
                Ok(())
            }
            Action::Code(statements) => statements.iter().try_for_each(|one| self.execute(one)),
            Action::Command(settings) => settings
                .iter()
                .try_for_each(|setting| self.set(setting))
                .map_err(|message| self.error(event.at, message)),
        }?;
        self.try_blocked(then)
    }

    fn set(&mut self, setting: &Setting) -> Result<(), String> {
        match setting {
            Setting::Default(name, _) if !self.target.knows(name) => Ok(()),
            Setting::Sysctl(name, value) | Setting::Default(name, value) => {
                self.target.sysctl(name, value)
            }
            Setting::Mtu(mtu) => self.target.option("mtu", &mtu.to_string()),
            Setting::Paced => self.target.option("transport.pacing", "on"),
            Setting::SegmentsAlone => self.target.option("transport.segmentation", "none"),
            Setting::ForgetCookies => {
                self.target.forget_cookies();
                Ok(())
            }
            Setting::Either(first, second) => {
                let has_first = first.iter().all(|setting| match setting {
                    Setting::Sysctl(name, _) | Setting::Default(name, _) => self.target.has(name),
                    _ => true,
                });
                let chosen = if has_first { first } else { second };
                chosen.iter().try_for_each(|setting| self.set(setting))
            }
        }
    }

    /// Announces the options that the script sets on a connection before it writes.
    fn announce(&mut self) {
        for event in &self.script.events {
            match &event.action {
                Action::Call(Call::SetOption(_, name, OptionValue::Number(value)), _) => {
                    self.target.announce(name, *value);
                }
                Action::Call(Call::Write { .. }, _) => return,
                _ => {}
            }
        }
    }

    /// Fails if a call should have returned before `now`.
    fn overdue(&self, now: Duration) -> Result<(), Error> {
        let late = self
            .blocked
            .iter()
            .find(|call| call.last + self.tolerance < now);
        late.map_or(Ok(()), |call| Err(self.not_returned(call)))
    }

    fn not_returned(&self, blocked: &Blocked) -> Error {
        let until = seconds(blocked.last + self.tolerance);
        let message = format!("the call has not returned until {until} s");
        let fields = vec![Field::differing(
            "time",
            format!("returns at {} s", seconds(blocked.last)),
            format!("not until {until} s"),
        )];
        self.differs(blocked.at, message, fields)
    }

    /// Tries the calls that have not returned.
    fn try_blocked(&mut self, now: Duration) -> Result<(), Error> {
        for mut blocked in std::mem::take(&mut self.blocked) {
            if !self.call(&mut blocked, now, true)? {
                self.blocked.push(blocked);
                continue;
            }
            let early = now + self.tolerance < blocked.last;
            if early {
                let (last, now) = (seconds(blocked.last), seconds(now));
                let message =
                    format!("expected the call to return at {last} s; it returns at {now} s");
                let fields = vec![Field::differing(
                    "time",
                    format!("returns at {last} s"),
                    format!("at {now} s"),
                )];
                return Err(self.differs(blocked.at, message, fields));
            }
        }
        Ok(())
    }

    /// Collects all packets sent until then.
    fn let_time_pass(&mut self, at: Position, until: Duration) -> Result<(), Error> {
        loop {
            self.advance(at, until)?;
            let before = self.sent.len();
            while let Some(sent) = self.target.take_sent() {
                self.sent.push_back(sent);
            }
            if self.sent.len() == before {
                return Ok(());
            }
        }
    }

    fn advance(&mut self, at: Position, until: Duration) -> Result<(), Error> {
        let told = self.target.advance(until);
        told.map_err(|message| self.differs(at, message, Vec::new()))
    }

    /// Fails if a packet was sent before `then` that the script does not expect.
    fn nothing_unexpected(&mut self, at: Position, then: Duration) -> Result<(), Error> {
        // packetdrill compares packets with the lines that expect one, and with no others.
        if self.script.is_for_linux {
            return Ok(());
        }
        match self.sent.front() {
            Some((sent, packet)) if *sent + self.tolerance < then => {
                let what = self.numbers.describe(packet);
                let when = seconds(*sent);
                let message = format!(
                    "the target has sent `> {what}` at {when} s, which no line above expects"
                );
                let fields = vec![
                    Field::differing("packet", "no packet", format!("> {what}")),
                    Field::differing("time", "", format!("{when} s")),
                ];
                Err(self.differs(at, message, fields))
            }
            _ => Ok(()),
        }
    }

    /// Waits for the next packet, which must match and arrive within the span.
    fn expect(
        &mut self,
        at: Position,
        expected: &Header,
        first: Duration,
        last: Duration,
    ) -> Result<Duration, Error> {
        let wait = last.saturating_sub(self.now);
        let lateness = if self.script.is_for_linux {
            Duration::from_picos(wait.as_picos() / LINUX_TIMER_SHARE)
        } else {
            self.target.lateness(wait)
        };
        let latest = last + self.tolerance + lateness;
        if !self.await_packet(at, latest)? {
            let until = seconds(latest);
            let message =
                format!("the target has sent nothing until {until} s; expected `> {expected}`");
            let fields = vec![
                Field::differing("packet", format!("> {expected}"), "no packet"),
                Field::differing("time", span(first, last), format!("until {until} s")),
            ];
            return Err(self.differs(at, message, fields));
        }
        let (sent, packet) = self.take_packet(at, expected)?;
        let mut found = self.take_apart(at, &packet, expected)?;
        self.check_payload(at, &packet, &found)?;
        // A line may be a burst of several segments, as they leave a host with segmentation offload.
        while self.script.is_for_linux
            && found.len > 0
            && found.len < expected.len
            && self.await_packet(at, latest)?
        {
            let (when, packet) = self.sent.pop_front().expect("it has arrived");
            let next = self.take_apart(at, &packet, expected)?;
            if !packet::continues(&found, &next) || found.len + next.len > expected.len {
                self.sent.push_front((when, packet));
                break;
            }
            self.check_payload(at, &packet, &next)?;
            found.len += next.len;
            found.flags |= next.flags;
            self.floor = self.floor.max(when);
        }
        let mut fields = packet::fields(expected, &found, self.stamps());
        let what = packet::difference(&fields);
        let in_time = sent + self.tolerance >= first && sent <= latest;
        if what.is_some() || !in_time {
            let when = seconds(sent);
            let message = if let Some(what) = what {
                format!("expected `> {expected}`; the target sent `> {found}` at {when} s: {what}")
            } else {
                let span = span(first, last);
                format!("expected `> {expected}` {span}; the target sent it at {when} s")
            };
            fields.push(Field {
                name: "time",
                expected: span(first, last),
                actual: format!("at {when} s"),
                differs: !in_time,
            });
            return Err(self.differs(at, message, fields));
        }
        Ok(sent)
    }

    /// How far timestamps may be apart, in milliseconds; `None` if a script for Linux does not give their
    /// tick, as for packetdrill.
    fn stamps(&self) -> Option<u64> {
        let given = !self.script.is_for_linux || self.script.has_timestamp_tick;
        given.then(|| self.tolerance.as_picos().div_ceil(1_000_000_000))
    }

    /// Waits for a packet until `latest`; returns whether there is one. In a script for Linux,
    /// packets of earlier connections are not seen.
    fn await_packet(&mut self, at: Position, latest: Duration) -> Result<bool, Error> {
        loop {
            if self.sent.is_empty() {
                self.advance(at, latest)?;
                self.sent.extend(self.target.take_sent());
            }
            let Some((_, packet)) = self.sent.front() else {
                return Ok(false);
            };
            let towards = self.target.towards();
            if !self.script.is_for_linux || !numbers::is_foreign(packet, towards) {
                return Ok(true);
            }
            self.sent.pop_front();
        }
    }

    /// Begins the numbers and streams of another connection, if a call has created one.
    fn note_connection(&mut self) {
        let connection = self.target.connection();
        if connection != self.connection {
            self.connection = connection;
            self.numbers = Numbers::new(self.offset, self.script.is_for_linux);
            (self.written, self.read) = (0, 0);
        }
    }

    /// Takes the next packet. A burst that is longer than the expected segment is divided after it,
    /// in a script for Linux.
    fn take_packet(
        &mut self,
        at: Position,
        expected: &Header,
    ) -> Result<(Duration, Vec<u8>), Error> {
        let (sent, packet) = self.sent.pop_front().expect("the caller has seen it");
        if !self.script.is_for_linux || expected.len == 0 {
            return Ok((sent, packet));
        }
        let parts = numbers::divide(&packet, expected.len)
            .map_err(|message| self.differs(at, message, Vec::new()))?;
        let Some((packet, rest)) = parts else {
            return Ok((sent, packet));
        };
        self.sent.push_front((sent, rest));
        Ok((sent, packet))
    }

    fn take_apart(
        &mut self,
        at: Position,
        packet: &[u8],
        expected: &Header,
    ) -> Result<Header, Error> {
        let told = self.numbers.read(packet, expected, self.target.towards());
        told.map_err(|message| self.differs(at, message, Vec::new()))
    }

    fn check_payload(&self, at: Position, packet: &[u8], found: &Header) -> Result<(), Error> {
        let start = self.numbers.target_start(found.flags);
        let told = packet::check_payload(packet, found, start, self.written);
        told.map_err(|message| self.differs(at, message, Vec::new()))
    }

    fn inject(&mut self, at: Position, now: Duration, header: &Header) -> Result<(), Error> {
        let packet = self
            .numbers
            .write(header, self.target.towards())
            .map_err(|message| self.error(at, message))?;
        self.target.inject(now, &packet);
        Ok(())
    }

    fn inject_icmp(&mut self, at: Position, now: Duration, icmp: Icmp) -> Result<(), Error> {
        let oldest = self.numbers.target_start(Flags::ACK).wrapping_sub(1);
        let packet = self
            .numbers
            .write_icmp(icmp, oldest, self.target.towards())
            .map_err(|message| self.error(at, message))?;
        self.target.inject(now, &packet);
        Ok(())
    }

    fn handle(&self, at: Position, descriptor: i64) -> Result<i64, Error> {
        let known = self.handles.get(&descriptor).copied();
        known.ok_or_else(|| {
            self.error(
                at,
                format!("no call above returned the descriptor {descriptor}"),
            )
        })
    }
}

/// The time at which a packet is due, for messages.
fn span(first: Duration, last: Duration) -> String {
    if first == last {
        format!("at {} s", seconds(first))
    } else {
        format!("between {} s and {} s", seconds(first), seconds(last))
    }
}

/// Seconds without trailing zeros.
fn seconds(time: Duration) -> String {
    let picos = time.as_picos();
    let text = format!(
        "{}.{:012}",
        picos / 1_000_000_000_000,
        picos % 1_000_000_000_000
    );
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
