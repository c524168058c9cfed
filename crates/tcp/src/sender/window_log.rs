//! What happened to the window, for those who ask why.

use anabranch_core::{
    body::Body,
    units::{Bytes, Instant},
};

use super::Sender;
use crate::recovery::window_log::{WindowChange, WindowEvent};
use anabranch_congestion::CongestionControl;

/// cwnd and ssthresh.
pub(super) type Window = (Bytes, Option<Bytes>);

impl<B: Body> Sender<B> {
    /// Keeps every change of the window from now on, for [`Self::take_window_log`].
    pub(crate) fn keep_window_log(&mut self) {
        self.cold.windows.get_or_insert_default();
    }

    /// The changes of the window since the last call, oldest first; none unless they are kept.
    pub(crate) fn take_window_log(&mut self) -> Vec<WindowEvent> {
        let log = self.cold.windows.as_mut();
        log.map(|log| std::mem::take(&mut log.events))
            .unwrap_or_default()
    }

    pub(super) fn window(&self) -> Window {
        (self.control.cwnd(), self.control.ssthresh())
    }

    pub(super) fn log_window(&mut self, at: Instant, change: WindowChange, before: Window) {
        let after = self.window();
        if let Some(log) = &mut self.cold.windows {
            log.events.push(WindowEvent {
                at,
                change,
                cwnd: (before.0, after.0),
                ssthresh: (before.1, after.1),
            });
        }
    }
}
