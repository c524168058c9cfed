//! What happened to the window, for those who ask why.

use anabranch_core::{
    body::Body,
    units::{Bytes, Instant},
};

use super::Endpoint;
use crate::recovery::window_log::{WindowChange, WindowEvent};
use anabranch_congestion::CongestionControl;

/// cwnd and ssthresh.
pub(super) type Window = (Bytes, Option<Bytes>);

impl<B: Body> Endpoint<B> {
    /// Keeps every change of the window from now on, for [`Self::take_window_log`].
    pub fn keep_window_log(&mut self) {
        let notes = self.cold.notes.get_or_insert_default();
        notes.windows.get_or_insert_default();
    }

    /// The changes of the window since the last call, oldest first; none unless they are kept.
    pub fn take_window_log(&mut self) -> Vec<WindowEvent> {
        let notes = self.cold.notes.as_mut();
        let log = notes.and_then(|notes| notes.windows.as_mut());
        log.map(|log| std::mem::take(&mut log.events))
            .unwrap_or_default()
    }

    pub(super) fn window(&self) -> Window {
        (self.snd.control.cwnd(), self.snd.control.ssthresh())
    }

    pub(super) fn log_window(&mut self, at: Instant, change: WindowChange, before: Window) {
        let after = self.window();
        let notes = self.cold.notes.as_mut();
        if let Some(log) = notes.and_then(|notes| notes.windows.as_mut()) {
            log.events.push(WindowEvent {
                at,
                change,
                cwnd: (before.0, after.0),
                ssthresh: (before.1, after.1),
            });
        }
    }
}
