//! State that the applications of a run share: start, end, the sampled sockets, and further
//! samples.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration as Pause,
};

use anabranch_core::units::Instant;

use crate::{
    apps::{marks::Marks, sampler::Sample},
    kernel::{
        clock::{Clock, StartingLine},
        sys::tcp_info::{TcpInfo, attach_filter},
    },
};

/// Interval at which a waiting thread checks whether the run is over.
pub const LOOK: Pause = Pause::from_millis(20);

/// The end of a flow at which a socket is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// At `from`.
    Sender,
    /// At `to`.
    Receiver,
}

/// A connection of our own TCP that reports its state in the kernel's form.
pub trait Informed: std::fmt::Debug + Send + Sync {
    fn info(&self, now: Instant) -> TcpInfo;
}

/// The source of a connection's state.
#[derive(Debug)]
pub enum Socket {
    Kernel(OwnedFd),
    /// Our own endpoint.
    Own(Arc<dyn Informed>),
}

impl Socket {
    /// # Errors
    /// If the kernel does not report its state.
    pub fn info(&self, now: Instant) -> io::Result<TcpInfo> {
        match self {
            Self::Kernel(socket) => TcpInfo::of(socket),
            Self::Own(own) => Ok(own.info(now)),
        }
    }
}

/// The connections of a run, for samplers.
#[derive(Debug, Default)]
pub struct Sockets {
    all: Mutex<Vec<(usize, Side, Socket)>>,
    /// The filter on packets that senders receive.
    filter: OnceLock<OwnedFd>,
}

impl Sockets {
    /// Removes a socket from sampling, and closes this copy of it.
    pub(crate) fn forget(&self, flow: usize, side: Side) {
        self.lock()
            .retain(|(of, which, _)| (*of, *which) != (flow, side));
    }
    pub(crate) fn add(&self, flow: usize, side: Side, socket: &impl AsFd) -> io::Result<()> {
        if side == Side::Sender {
            self.watch(socket)?;
        }
        let copy = socket.as_fd().try_clone_to_owned()?;
        self.lock().push((flow, side, Socket::Kernel(copy)));
        Ok(())
    }
    /// Attaches this filter to every sender's socket from now on.
    pub fn watch_with(&self, filter: OwnedFd) {
        let _ = self.filter.set(filter);
    }
    /// Attaches the filter to a sender's socket, if there is a filter.
    pub fn watch(&self, socket: &impl AsFd) -> io::Result<()> {
        self.filter
            .get()
            .map_or(Ok(()), |filter| attach_filter(socket, filter))
    }
    pub fn add_own(&self, flow: usize, side: Side, own: Arc<dyn Informed>) {
        self.lock().push((flow, side, Socket::Own(own)));
    }
    pub fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(usize, Side, Socket)>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// State that all applications of a run share.
#[derive(Debug, Default)]
pub struct Stage {
    pub line: StartingLine,
    pub sockets: Sockets,
    /// The run is over, and all threads end.
    pub over: AtomicBool,
    /// The user has left the shell.
    pub left: AtomicBool,
    /// Moments at which flows are over.
    pub marks: Arc<Marks>,
    /// The number of programs except a shell; of these, the numbers that have started and that have
    /// ended by themselves.
    pub programs: usize,
    pub started: AtomicUsize,
    pub ended: AtomicUsize,
    /// Samples in addition to the regular ones.
    noted: Mutex<Vec<Sample>>,
}

impl Stage {
    /// State for this number of programs.
    pub fn of(marks: &Arc<Marks>, programs: usize) -> Self {
        Self {
            marks: Arc::clone(marks),
            programs,
            ..Self::default()
        }
    }

    /// Whether the run is over.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Waits until all programs have started, or one cannot.
    pub fn wait_for_programs(&self) {
        while self.started.load(Ordering::Relaxed) < self.programs
            && !self.left.load(Ordering::Relaxed)
            && !self.is_over()
        {
            std::thread::sleep(Pause::from_millis(1));
        }
    }

    /// Waits until `then`. Returns false if the run is over before.
    pub fn wait_until(&self, clock: Clock, then: Instant) -> bool {
        while clock.now() < then || !clock.until(then).is_zero() {
            if self.is_over() {
                return false;
            }
            std::thread::sleep(clock.until(then).min(LOOK));
        }
        !self.is_over()
    }

    /// Samples a flow's sockets now.
    pub(crate) fn note(&self, flow: usize, clock: Clock) {
        let sockets = self.sockets.lock();
        let own = sockets.iter().filter(|(of, ..)| *of == flow);
        let samples = own.filter_map(|(_, side, socket)| Sample::of(flow, *side, socket, clock));
        self.noted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(samples);
    }

    /// The samples of [`Self::note`].
    pub fn take_noted(&self) -> Vec<Sample> {
        std::mem::take(&mut *self.noted.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
