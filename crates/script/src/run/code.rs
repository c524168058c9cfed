//! Evaluates assertions and assignments.

use super::Runner;
use crate::{
    constants,
    error::{Error, Field, Position, choices},
    syntax::{Assertion, Comparison, Statement, Value},
};

impl Runner<'_> {
    pub(super) fn execute(&mut self, statement: &Statement) -> Result<(), Error> {
        match statement {
            Statement::Assert(assertion) => self.assert(assertion),
            Statement::Assign(at, name, value) => {
                if self.can_evaluate(value) {
                    let value = self.evaluate(*at, value)?;
                    self.variables.insert(name.clone(), value);
                }
                Ok(())
            }
        }
    }

    /// Whether the target provides all figures of a value.
    fn can_evaluate(&self, value: &Value) -> bool {
        let mut names = Vec::new();
        value.names(&mut names);
        names.iter().all(|name| {
            self.variables.contains_key(*name)
                || constants::value_of(name).is_some()
                || self.target.shows(name)
        })
    }

    fn assert(&self, assertion: &Assertion) -> Result<(), Error> {
        let Assertion {
            at,
            left,
            comparison,
            right,
        } = assertion;
        if !self.can_evaluate(left) || !self.can_evaluate(right) {
            return Ok(());
        }
        let (one, other) = (self.evaluate(*at, left)?, self.evaluate(*at, right)?);
        let mut names = Vec::new();
        left.names(&mut names);
        right.names(&mut names);
        let slack = names.iter().map(|name| self.target.slack(name)).max();
        let slack = slack.unwrap_or(0).unsigned_abs();
        let is_near = *comparison == Comparison::Equal && one.abs_diff(other) <= slack;
        if comparison.holds(one, other) || is_near {
            return Ok(());
        }
        let sign = comparison.sign();
        let (said, found, name) = match left {
            Value::Number(_) => (format!("{one} {sign} {right}"), other, right),
            _ => (format!("{left} {sign} {other}"), one, left),
        };
        let message = format!("expected {said}; it is {found}");
        let actual = format!("{name} is {found}");
        let fields = vec![Field::differing("assertion", said, actual)];
        Err(self.differs(*at, message, fields))
    }

    fn evaluate(&self, at: Position, value: &Value) -> Result<i64, Error> {
        match value {
            Value::Number(number) => Ok(*number),
            Value::Name(name) => {
                if let Some(value) = self.variables.get(name) {
                    return Ok(*value);
                }
                match constants::value_of(name) {
                    Some(value) => Ok(value),
                    None if name.starts_with("TCP") => Err(self.no_constant(at, name)),
                    None => self.figure(at, name),
                }
            }
            Value::Joined(operator, pair) => {
                let (left, right) = (self.evaluate(at, &pair.0)?, self.evaluate(at, &pair.1)?);
                operator.of(left, right).ok_or_else(|| {
                    let sign = operator.sign();
                    self.error(at, format!("{left} {sign} {right} has no value"))
                })
            }
        }
    }

    fn no_constant(&self, at: Position, name: &str) -> Error {
        let known = constants::names("TCP");
        let message = format!("there is no constant `{name}`; {}", choices(name, &known));
        self.error(at, message)
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
}
