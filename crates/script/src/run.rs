//! Runs a script on a target.

mod numbers;
mod packet;

use std::collections::{BTreeMap, VecDeque};

use anabranch_core::units::Duration;

use self::numbers::Numbers;
use crate::{
    error::{Cause, Error, Field, Position, choices},
    syntax::{Action, Assertion, Call, Comparison, Event, Expected, Header, Script, Value, When},
    target::{Answer, Request, Target},
};

/// The longest time of a script, far below the bound of a time.
const LONGEST: Duration = Duration::from_secs(100 * 86_400);

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
    let mut runner = Runner {
        script,
        tolerance: target.tolerance(),
        target,
        now: Duration::ZERO,
        sent: VecDeque::new(),
        numbers: Numbers::new(offset),
        handles: BTreeMap::new(),
        written: 0,
        read: 0,
    };
    for (at, name, value) in &script.options {
        runner.option(*at, name, value)?;
    }
    let mut last = Position { line: 1, column: 1 };
    for event in &script.events {
        last = event.at;
        runner.event(event)?;
    }
    runner.let_time_pass(last, runner.now)?;
    runner.nothing_unexpected(last, Duration::from_picos(u64::MAX))
}

struct Runner<'a> {
    script: &'a Script,
    target: &'a mut dyn Target,
    tolerance: Duration,
    /// The time of the last event.
    now: Duration,
    /// Packets sent by the target and not expected yet.
    sent: VecDeque<(Duration, Vec<u8>)>,
    numbers: Numbers,
    /// The target's descriptors, by the script's.
    handles: BTreeMap<i64, i64>,
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
                // A target in virtual time is exact, whatever tolerance a script sets.
                if !self.tolerance.is_zero() {
                    self.tolerance = Duration::from_micros(micros);
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
            When::Between(first, last) => (self.now + first, self.now + last),
            When::Any => (self.now, self.now + self.target.patience()),
        };
        if last > LONGEST {
            return Err(self.error(event.at, "the script lasts longer than a hundred days"));
        }
        // With a real clock, events follow the previous ones, which may have been late.
        let first = if self.tolerance.is_zero() {
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
        if let Action::Expect(expected) = &event.action {
            let sent = self.expect(event.at, expected, first, last)?;
            self.now = if first == last && self.tolerance.is_zero() {
                first
            } else {
                sent.max(self.now)
            };
            return Ok(());
        }
        self.let_time_pass(event.at, first)?;
        self.nothing_unexpected(event.at, first)?;
        self.now = first;
        match &event.action {
            Action::Expect(_) => unreachable!("dealt with above"),
            Action::Inject(header) => self.inject(event.at, header),
            Action::Call(call, expected) => self.call(event.at, call, expected),
            Action::Assert(assertions) => assertions.iter().try_for_each(|a| self.assert(a)),
            Action::Sysctl(name, value) => {
                let told = self.target.sysctl(name, *value);
                told.map_err(|message| self.error(event.at, message))
            }
        }
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
        let latest = last + self.tolerance + self.target.lateness(wait);
        while self.sent.is_empty() {
            self.advance(at, latest)?;
            let Some(sent) = self.target.take_sent() else {
                let until = seconds(latest);
                let message =
                    format!("the target has sent nothing until {until} s; expected `> {expected}`");
                let fields = vec![
                    Field::differing("packet", format!("> {expected}"), "no packet"),
                    Field::differing("time", span(first, last), format!("until {until} s")),
                ];
                return Err(self.differs(at, message, fields));
            };
            self.sent.push_back(sent);
        }
        let (sent, packet) = self.sent.pop_front().expect("there is one");
        let found = self
            .numbers
            .read(&packet, expected, self.target.towards())
            .map_err(|message| self.differs(at, message, Vec::new()))?;
        let mut fields = packet::fields(expected, &found, self.tolerance);
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
        packet::check_payload(&packet, &found, self.numbers.target_start(), self.written)
            .map_err(|message| self.differs(at, message, Vec::new()))?;
        Ok(sent)
    }

    fn inject(&mut self, at: Position, header: &Header) -> Result<(), Error> {
        let packet = self
            .numbers
            .write(header, self.target.towards())
            .map_err(|message| self.error(at, message))?;
        self.target.inject(self.now, &packet);
        Ok(())
    }

    fn call(&mut self, at: Position, call: &Call, expected: &Expected) -> Result<(), Error> {
        let content;
        let request = match call {
            Call::Socket => Request::Socket,
            Call::Bind(fd) => Request::Bind(self.handle(at, *fd)?),
            Call::Listen(fd) => Request::Listen(self.handle(at, *fd)?),
            Call::Accept(fd) => Request::Accept(self.handle(at, *fd)?),
            Call::Connect(fd) => Request::Connect(self.handle(at, *fd)?),
            Call::Read(fd, n) => Request::Read(self.handle(at, *fd)?, *n),
            Call::Write(fd, n) => {
                content = numbers::stream(numbers::WRITTEN, self.written, *n);
                Request::Write(self.handle(at, *fd)?, &content)
            }
            Call::Close(fd) => Request::Close(self.handle(at, *fd)?),
            Call::ShutdownWrite(fd) => Request::ShutdownWrite(self.handle(at, *fd)?),
            Call::SetOption(fd, name, value) => {
                Request::SetOption(self.handle(at, *fd)?, name, *value)
            }
            // Calls never block here, whatever the flags.
            Call::Fcntl(fd) => return self.handle(at, *fd).map(drop),
        };
        let answer = self.target.call(self.now, request);
        let answer = answer.map_err(|message| self.error(at, message))?;
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
            name,
            comparison,
            value,
        } = assertion;
        if !self.target.shows(name) {
            return Ok(());
        }
        let Some(found) = self.target.figure(name) else {
            let known = self.target.figures();
            if known.contains(&name.as_str()) {
                let message = format!("`{name}`: there is no connection at this time");
                return Err(self.differs(*at, message, Vec::new()));
            }
            return Err(self.error(
                *at,
                format!("there is no figure `{name}`; {}", choices(name, known)),
            ));
        };
        let wanted = match value {
            Value::Number(number) => *number,
            Value::Constant(name) => {
                let constant = CONSTANTS.iter().find(|(known, _)| known == name);
                constant.map(|(_, number)| *number).ok_or_else(|| {
                    let known = CONSTANTS.map(|(name, _)| name);
                    self.error(
                        *at,
                        format!("there is no constant `{name}`; {}", choices(name, &known)),
                    )
                })?
            }
        };
        let slack = self.target.slack(name);
        let is_near =
            *comparison == Comparison::Equal && found.abs_diff(wanted) <= slack.unsigned_abs();
        if comparison.holds(found, wanted) || is_near {
            return Ok(());
        }
        let sign = comparison.sign();
        let message = format!("expected {name} {sign} {wanted}; it is {found}");
        let fields = vec![Field::differing(
            "assertion",
            format!("{name} {sign} {wanted}"),
            format!("{name} is {found}"),
        )];
        Err(self.differs(*at, message, fields))
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
