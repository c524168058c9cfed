//! The last message of the end that opened a connection, if the other end never answered it.

use super::{Connection, handshake::Handshake};
use crate::{
    entries::Stall,
    limit::Limit,
    time::{Nanos, seconds},
};

/// A message without an answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Request {
    pub(crate) sent: Nanos,
    /// The first FIN or RST after it, if there is one.
    pub(crate) closed: Option<Nanos>,
    /// The other end's TCP acknowledged all of it.
    pub(crate) is_acknowledged: bool,
    /// The mean time of earlier answers, in seconds.
    pub(crate) mean_answer_s: f64,
}

/// Least time for which an answer is missing, and as a multiple of the mean time of earlier answers.
const LEAST_S: f64 = 1.0;
const LATE: f64 = 4.0;
/// Segments of a first flight (RFC 6928).
const INITIAL_WINDOW: i64 = 10;

/// Whether an answer is missing, rather than late as others were.
pub(crate) fn is_missing(waited_s: f64, mean_answer_s: f64) -> bool {
    waited_s >= LEAST_S && waited_s > LATE * mean_answer_s
}

impl Connection {
    /// The last message of the end that opened the connection, if no data of the other end follows.
    ///
    /// If the other end has sent no data at all, several messages or a long one are a transfer without
    /// answers.
    pub(crate) fn last_request(&self) -> Option<Request> {
        let [asking, answering] = &self.directions;
        let is_open = self.is_tcp && self.handshake() == Handshake::Seen;
        if !is_open || self.not_captured().is_some() || self.spoke_last() != Some(0) {
            return None;
        }
        let sent = asking.counts.last_data?;
        let stalls = &asking.account.clock.stalls;
        // A FIN ends a pause after the message.
        let is_pause = |one: &Stall| one.cause == Limit::Application && one.start_s < seconds(sent);
        let is_flight = asking.scoreboard.octets() <= INITIAL_WINDOW * asking.sender.mss();
        let is_single = || is_flight && !stalls.iter().any(is_pause);
        let is_closing = self.closed.is_some_and(|closed| closed < sent);
        if is_closing || (answering.counts.data_packets == 0 && !is_single()) {
            return None;
        }
        let sent_all = asking.scoreboard.octets();
        let (answers, time) = (answering.account.turns, answering.account.answering);
        Some(Request {
            mean_answer_s: seconds(time) / answers.max(1) as f64,
            sent,
            closed: self.closed,
            is_acknowledged: asking.scoreboard.acknowledged.una >= sent_all,
        })
    }

    /// Attributes the time after a request to the program that did not answer it.
    pub(crate) fn await_answer(&mut self) {
        let request = self.last_request().filter(|one| one.is_acknowledged);
        if let Some(request) = request
            && let closed = request.closed.unwrap_or(self.last)
            && is_missing(seconds(closed - request.sent), request.mean_answer_s)
        {
            let rest = (self.last - closed).max(0);
            let [asking, answering] = &mut self.directions;
            asking.account.await_answer(rest, true);
            answering.account.await_answer(rest, false);
        }
    }
}
