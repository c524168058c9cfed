//! Fast recoveries whose verdicts are open.

use std::collections::VecDeque;

use crate::time::Nanos;

/// Maximum number of stored recoveries.
const MOST: usize = 64;

/// A fast recovery.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Episode {
    start: Nanos,
    pub(crate) end: Option<Nanos>,
    /// Time attributed to fast recovery, and its beginning: the wait before the first retransmission
    /// is part of it.
    pub(crate) spent: Nanos,
    pub(crate) since: Nanos,
    /// Its retransmissions, and the number with a verdict.
    sent: u32,
    decided: u32,
    is_spurious: bool,
}

impl Episode {
    fn covers(&self, time: Nanos) -> bool {
        self.start <= time && self.end.is_none_or(|end| time <= end)
    }

    fn is_decided(&self) -> bool {
        self.decided >= self.sent
    }

    /// Every retransmission was spurious.
    pub(crate) fn was_spurious(&self) -> bool {
        self.is_spurious && self.is_decided()
    }
}

/// The recoveries in order of their start.
#[derive(Debug, Default)]
pub(crate) struct Episodes {
    open: VecDeque<Episode>,
}

impl Episodes {
    pub(crate) fn begin(&mut self, start: Nanos) {
        self.open.push_back(Episode {
            start,
            since: start,
            is_spurious: true,
            ..Episode::default()
        });
    }

    /// Adds time of fast recovery up to `until`, and perhaps a retransmission.
    pub(crate) fn go_on(&mut self, until: Nanos, spent: Nanos, is_retransmission: bool) {
        if let Some(episode) = self.open.back_mut().filter(|one| one.end.is_none()) {
            episode.spent += spent;
            episode.since = episode.since.min(until - spent);
            episode.sent += u32::from(is_retransmission);
        }
    }

    pub(crate) fn end(&mut self, now: Nanos) {
        if let Some(episode) = self.open.back_mut() {
            episode.end.get_or_insert(now);
        }
    }

    /// Records the verdict on a retransmission sent at `sent`.
    pub(crate) fn decide(&mut self, sent: Nanos, is_spurious: bool) {
        let mut latest = self.open.iter_mut().rev();
        if let Some(episode) = latest.find(|episode| episode.covers(sent)) {
            episode.is_spurious &= is_spurious;
            episode.decided += 1;
        }
    }

    /// Removes the oldest recovery if its verdicts are complete, or if there are too many.
    pub(crate) fn take_closed(&mut self) -> Option<Episode> {
        let oldest = self.open.front()?;
        let is_closed = oldest.is_decided() && oldest.end.is_some();
        if is_closed || self.open.len() > MOST {
            self.open.pop_front()
        } else {
            None
        }
    }
}
