//! Runs a script on a target.

mod numbers;
mod packet;

use std::collections::{BTreeMap, VecDeque};

use anabranch_core::units::Duration;

use self::numbers::Numbers;
use crate::{
    error::{Cause, Error, Field, Position, choices},
    syntax::{
        Action, Assertion, Call, Comparison, Event, Expected, Header, Script, Setting, Value, When,
    },
    target::{Answer, Request, Target},
};

/// The longest time of a script, far below the bound of a time.
const LONGEST: Duration = Duration::from_secs(100 * 86_400);

/// Tolerance of times in a script for Linux, whatever the target: a kernel's timers end with ticks of
/// 1 to 10 ms, and scripts are written for one of them.
const LINUX_TOLERANCE: Duration = Duration::from_millis(10);
/// A timer of a kernel is late by up to this part of its time (`kernel/time/timer.c`,
/// `LVL_CLK_SHIFT`).
const LINUX_TIMER_SHARE: u64 = 8;

/// States and phases by their names in the socket interface (`netinet/tcp.h`).
const CONSTANTS: [(&str, i64); 16] = [
    ("TCP_ESTABLISHED", 1),
    ("TCP_SYN_SENT", 2),
    ("TCP_SYN_RECV", 3),
    ("TCP_FIN_WAIT1", 4),
    ("TCP_FIN_WAIT2", 5),
    ("TCP_TIME_WAIT", 6),
    ("TCP_CLOSE", 7),
    ("TCP_CLOSE_WAIT", 8),
    ("TCP_LAST_ACK", 9),
    ("TCP_LISTEN", 10),
    ("TCP_CLOSING", 11),
    ("TCP_CA_Open", 0),
    ("TCP_CA_Disorder", 1),
    ("TCP_CA_CWR", 2),
    ("TCP_CA_Recovery", 3),
    ("TCP_CA_Loss", 4),
];

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
        numbers: Numbers::new(offset),
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
    numbers: Numbers,
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
            Action::Call(call, expected) => {
                let mut blocked = Blocked {
                    at: event.at,
                    call: call.clone(),
                    expected: expected.clone(),
                    last,
                    written: 0,
                };
                let may_block = matches!(event.when, When::Blocking(..));
                if self.call(&mut blocked, then, may_block)? {
                    return Ok(());
                }
                self.blocked.push(blocked);
                Ok(())
            }
            Action::Assert(assertions) => assertions.iter().try_for_each(|a| self.assert(a)),
            Action::Command(settings) => settings.iter().try_for_each(|setting| {
                let told = match setting {
                    Setting::Default(name, _) if !self.target.knows(name) => Ok(()),
                    Setting::Sysctl(name, value) | Setting::Default(name, value) => {
                        self.target.sysctl(name, value)
                    }
                    Setting::Mtu(mtu) => self.target.option("mtu", &mtu.to_string()),
                    Setting::Paced => self.target.option("transport.pacing", "on"),
                    Setting::SegmentsAlone => self.target.option("transport.segmentation", "none"),
                };
                told.map_err(|message| self.error(event.at, message))
            }),
        }?;
        self.try_blocked(then)
    }

    /// Announces the options that the script sets on a connection before it writes.
    fn announce(&mut self) {
        for event in &self.script.events {
            match &event.action {
                Action::Call(Call::SetOption(_, name, value), _) => {
                    self.target.announce(name, *value);
                }
                Action::Call(Call::Write(..), _) => return,
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

    /// Waits for a packet until `latest`; returns whether there is one.
    fn await_packet(&mut self, at: Position, latest: Duration) -> Result<bool, Error> {
        if self.sent.is_empty() {
            self.advance(at, latest)?;
            self.sent.extend(self.target.take_sent());
        }
        Ok(!self.sent.is_empty())
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
        let start = self.numbers.target_start();
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

    /// Executes a call. Returns `false` if it would block and may; then it has had no other effect
    /// than to write a part.
    fn call(
        &mut self,
        blocked: &mut Blocked,
        now: Duration,
        may_block: bool,
    ) -> Result<bool, Error> {
        let Blocked {
            at, call, expected, ..
        } = blocked.clone();
        let content;
        let request = match &call {
            Call::Socket => Request::Socket,
            Call::Bind(fd) => Request::Bind(self.handle(at, *fd)?),
            Call::Listen(fd) => Request::Listen(self.handle(at, *fd)?),
            Call::Accept(fd) => Request::Accept(self.handle(at, *fd)?),
            Call::Connect(fd) => Request::Connect(self.handle(at, *fd)?),
            Call::Read(fd, n) => Request::Read(self.handle(at, *fd)?, *n),
            Call::Write(fd, n) => {
                let left = n - u32::try_from(blocked.written).expect("a part of it");
                content = numbers::stream(numbers::WRITTEN, self.written, left);
                Request::Write(self.handle(at, *fd)?, &content)
            }
            Call::Close(fd) => Request::Close(self.handle(at, *fd)?),
            Call::ShutdownWrite(fd) => Request::ShutdownWrite(self.handle(at, *fd)?),
            Call::ShutdownRead(fd) => Request::ShutdownRead(self.handle(at, *fd)?),
            Call::ShutdownBoth(fd) => Request::ShutdownBoth(self.handle(at, *fd)?),
            Call::SetOption(fd, name, value) => {
                Request::SetOption(self.handle(at, *fd)?, name, *value)
            }
            Call::GetOption(fd, name, _) => Request::GetOption(self.handle(at, *fd)?, name),
            // No call blocks whose time has no end, whatever the flags.
            Call::Fcntl(fd) => return self.handle(at, *fd).map(|_| true),
        };
        let answer = self.target.call(now, request);
        let answer = answer.map_err(|message| self.error(at, message))?;
        let would_block = match (&call, &answer) {
            (_, Answer::Error("EAGAIN" | "EINPROGRESS" | "EALREADY")) => true,
            (Call::Write(_, n), Answer::Value(taken)) => blocked.written + taken < i64::from(*n),
            _ => false,
        };
        if may_block && would_block {
            if let Answer::Value(taken) = answer {
                blocked.written += taken;
                self.written += taken.unsigned_abs();
            }
            return Ok(false);
        }
        self.judge(&call, &expected, at, answer, blocked.written)?;
        Ok(true)
    }

    /// Compares the result of a call, of which `earlier` octets were written before.
    fn judge(
        &mut self,
        call: &Call,
        expected: &Expected,
        at: Position,
        answer: Answer,
        earlier: i64,
    ) -> Result<(), Error> {
        let value = match answer {
            Answer::Error(name) => {
                let told = match expected {
                    Expected::Any => return Ok(()),
                    Expected::Error(expected) if expected == name => return Ok(()),
                    Expected::Error(expected) => format!("-1 {expected}"),
                    Expected::Value(expected) => expected.to_string(),
                };
                let message = format!("expected {told}; the call returns -1 {name}");
                return Err(self.returned(at, message, told, format!("-1 {name}")));
            }
            Answer::Octets(octets) => {
                let n = u32::try_from(octets.len()).expect("as many as asked for");
                if octets != numbers::stream(numbers::INJECTED, self.read, n) {
                    let message = "the octets read are not those sent to the target";
                    return Err(self.differs(at, message, Vec::new()));
                }
                self.read += u64::from(n);
                i64::from(n)
            }
            Answer::Value(value) => value,
        };
        if let (Call::Write(..), Ok(taken)) = (call, u64::try_from(value)) {
            self.written += taken;
        }
        if let Call::GetOption(_, name, wanted) = call {
            if value != *wanted {
                let message = format!("expected {name} to be {wanted}; it is {value}");
                return Err(self.returned(at, message, wanted.to_string(), value.to_string()));
            }
            return Ok(());
        }
        let value = value + earlier;
        let Expected::Value(wanted) = expected else {
            return match expected {
                Expected::Error(name) => {
                    let message = format!("expected -1 {name}; the call returns {value}");
                    Err(self.returned(at, message, format!("-1 {name}"), value.to_string()))
                }
                _ => Ok(()),
            };
        };
        if matches!(call, Call::Socket | Call::Accept(_)) {
            self.handles.insert(*wanted, value);
        } else if value != *wanted {
            let message = format!("expected {wanted}; the call returns {value}");
            return Err(self.returned(at, message, wanted.to_string(), value.to_string()));
        }
        Ok(())
    }

    fn returned(&self, at: Position, message: String, expected: String, actual: String) -> Error {
        let fields = vec![Field::differing("returned value", expected, actual)];
        self.differs(at, message, fields)
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

    fn assert(&self, assertion: &Assertion) -> Result<(), Error> {
        let Assertion {
            at,
            left,
            comparison,
            right,
        } = assertion;
        let name = match (left, right) {
            (Value::Name(name), _) | (_, Value::Name(name)) => Some(name.as_str()),
            _ => None,
        };
        if name.is_some_and(|name| !self.target.shows(name)) {
            return Ok(());
        }
        let (left, right) = match (left, right) {
            (Value::Name(name), _) => (self.figure(*at, name)?, self.constant(*at, right)?),
            (Value::Number(number), Value::Name(name)) => (*number, self.figure(*at, name)?),
            (Value::Number(left), Value::Number(right)) => (*left, *right),
        };
        let slack = name
            .map_or(0, |name| self.target.slack(name))
            .unsigned_abs();
        let is_near = *comparison == Comparison::Equal && left.abs_diff(right) <= slack;
        if comparison.holds(left, right) || is_near {
            return Ok(());
        }
        let sign = comparison.sign();
        let (said, found) = match &assertion.left {
            Value::Name(name) => (format!("{name} {sign} {right}"), left),
            Value::Number(_) => (format!("{left} {sign} {}", name.unwrap_or_default()), right),
        };
        let message = format!("expected {said}; it is {found}");
        let actual = format!("{} is {found}", name.unwrap_or_default());
        let fields = vec![Field::differing("assertion", said, actual)];
        Err(self.differs(*at, message, fields))
    }

    fn figure(&self, at: Position, name: &str) -> Result<i64, Error> {
        if let Some(found) = self.target.figure(name) {
            return Ok(found);
        }
        let known = self.target.figures();
        if known.contains(&name) {
            let message = format!("`{name}`: there is no connection at this time");
            return Err(self.differs(at, message, Vec::new()));
        }
        let message = format!("there is no figure `{name}`; {}", choices(name, known));
        Err(self.error(at, message))
    }

    fn constant(&self, at: Position, value: &Value) -> Result<i64, Error> {
        let name = match value {
            Value::Number(number) => return Ok(*number),
            Value::Name(name) => name,
        };
        let constant = CONSTANTS.iter().find(|(known, _)| known == name);
        constant.map(|(_, number)| *number).ok_or_else(|| {
            let known = CONSTANTS.map(|(name, _)| name);
            let message = format!("there is no constant `{name}`; {}", choices(name, &known));
            self.error(at, message)
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
