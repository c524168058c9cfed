//! Packets between the engine and hosts in virtual time, through one io_uring (io_uring(7)).
//!
//! Under User-Mode Linux a system call costs as much as the kernel's work on a packet. So packets that leave at one
//! time are given to the kernel in one call, hosts' answers come back with it, and one more call waits.

use std::{
    collections::VecDeque,
    io,
    os::fd::{AsRawFd, BorrowedFd},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use anabranch_core::{
    packet::{Direction, FlowId},
    units::Instant,
};
use io_uring::{
    IoUring, cqueue, opcode, squeue,
    types::{Fd, TimeoutFlags, Timespec},
};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::kernel::{
    clock::Clock,
    sys::interface::Offloads,
    tun::{Device, Drops, Passed, Tun},
};

/// Whose packet it is.
type Place = (FlowId, Direction);

/// Requests that are made in one call.
const ENTRIES: u32 = 256;
/// Reads that wait at each device: so many packets of one host come with one call.
const READS: usize = 4;

/// What a completion is of, in the upper half of its number; the lower half is an index.
const READ: u64 = 0;
const WRITE: u64 = 1 << 32;
const TIMER: u64 = 2 << 32;
const CANCEL: u64 = 3 << 32;
const KIND: u64 = 0xffff_ffff << 32;

/// Packets that are between the engine and its devices.
#[derive(Debug, Default)]
struct Waiting {
    devices: Vec<Tun>,
    leaving: Vec<Leaving>,
    /// By device: what was taken after the end.
    left: Vec<VecDeque<Vec<u8>>>,
}

/// A packet for a host.
#[derive(Debug)]
struct Leaving {
    device: usize,
    of: Place,
    octets: Vec<u8>,
}

/// The devices of a run in virtual time.
#[derive(Debug, Clone, Default)]
pub struct Exchange(Arc<Mutex<Waiting>>);

impl Exchange {
    /// A device whose packets go through the exchange.
    pub fn device(&self, tun: Tun) -> Arc<dyn Device> {
        let mut waiting = self.lock();
        waiting.devices.push(tun.clone());
        waiting.left.push(VecDeque::new());
        Arc::new(Exchanged {
            tun,
            index: waiting.devices.len() - 1,
            exchange: self.clone(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Exchanged {
    tun: Tun,
    index: usize,
    exchange: Exchange,
}

impl Device for Exchanged {
    /// The packet leaves with the next [`Ring::give`].
    fn send(&self, packet: &[u8], of: Place) -> io::Result<()> {
        self.exchange.lock().leaving.push(Leaving {
            device: self.index,
            of,
            octets: packet.to_vec(),
        });
        Ok(())
    }
    /// Once the ring is gone.
    fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let left = self.exchange.lock().left[self.index].pop_front();
        let Some(octets) = left else {
            return self.tun.receive(buffer);
        };
        buffer[..octets.len()].copy_from_slice(&octets);
        Ok(Some(octets.len()))
    }
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.tun.descriptor()
    }
    fn drops(&self) -> io::Result<Drops> {
        self.tun.drops()
    }
    fn passed(&self) -> io::Result<Option<Passed>> {
        self.tun.passed()
    }
    fn offloads(&self) -> io::Result<Offloads> {
        self.tun.offloads()
    }
}

/// A packet that a host has sent.
#[derive(Debug)]
pub struct Come {
    /// Index of the device among those of the exchange.
    pub device: usize,
    pub octets: Vec<u8>,
}

/// What has happened.
#[derive(Debug, Default)]
pub struct Happened {
    /// In the order in which hosts sent them.
    pub come: Vec<Come>,
    /// Whose packets hosts would not have.
    pub refused: Vec<Place>,
    /// Whether the time that was waited for has come.
    is_time: bool,
}

/// Moves the packets of an exchange.
pub struct Ring {
    uring: IoUring,
    exchange: Exchange,
    /// The start of the run on the monotonic clock, in nanoseconds.
    start_ns: u64,
    descriptors: Vec<i32>,
    /// [`READS`] of each device.
    rooms: Vec<Vec<u8>>,
    /// Reads that are to be asked for again.
    idle: Vec<usize>,
    /// By slot.
    writing: Vec<Option<Leaving>>,
    free: Vec<usize>,
    /// When the timer is set to.
    armed: Option<Instant>,
    /// The kernel reads it when it takes the request.
    then: Box<Timespec>,
    requests: Vec<squeue::Entry>,
}

impl Ring {
    /// For packets of up to `largest` octets.
    ///
    /// # Errors
    /// Where the kernel has no io_uring.
    pub fn new(exchange: &Exchange, clock: Clock, largest: usize) -> io::Result<Self> {
        let descriptors: Vec<_> = exchange
            .lock()
            .devices
            .iter()
            .map(|tun| {
                // A request of a descriptor that does not block is refused in place of waiting.
                set_blocking(tun.descriptor(), true)?;
                Ok(tun.descriptor().as_raw_fd())
            })
            .collect::<io::Result<_>>()?;
        let reads = descriptors.len() * READS;
        Ok(Self {
            uring: IoUring::new(ENTRIES)?,
            exchange: exchange.clone(),
            start_ns: clock.start_ns(),
            descriptors,
            rooms: vec![vec![0; largest]; reads],
            idle: (0..reads).collect(),
            writing: Vec::new(),
            free: Vec::new(),
            armed: None,
            then: Box::default(),
            requests: Vec::new(),
        })
    }

    /// Gives hosts what leaves now, and takes what they have sent by now.
    pub fn give(&mut self) -> io::Result<Happened> {
        let leaving = std::mem::take(&mut self.exchange.lock().leaving);
        if leaving.is_empty() && !self.may_hold_more() {
            return Ok(Happened::default());
        }
        for packet in leaving {
            self.write(packet);
        }
        self.read_again();
        self.submit(0)?;
        Ok(self.reap())
    }

    /// Waits until `then`, or until a host sends. Whether it is `then`.
    pub fn wait(&mut self, then: Instant) -> io::Result<(Happened, bool)> {
        self.read_again();
        self.set_timer(then);
        let mut happened = Happened::default();
        while !happened.is_time && happened.come.is_empty() {
            self.submit(1)?;
            happened = self.reap();
        }
        let is_time = happened.is_time && happened.come.is_empty();
        Ok((happened, is_time))
    }

    /// Whether a device may hold packets that no read has waited for.
    fn may_hold_more(&self) -> bool {
        let idle_of = |device| self.idle.iter().filter(|index| **index / READS == device);
        self.idle.len() >= READS
            && (0..self.descriptors.len()).any(|device| idle_of(device).count() == READS)
    }

    fn write(&mut self, packet: Leaving) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.writing.push(None);
            self.writing.len() - 1
        });
        let octets = packet.octets.as_slice();
        let len = u32::try_from(octets.len()).expect("a packet is below 64 KiB");
        let request = opcode::Write::new(Fd(self.descriptors[packet.device]), octets.as_ptr(), len);
        self.requests
            .push(request.build().user_data(WRITE | slot as u64));
        self.writing[slot] = Some(packet);
    }

    fn read_again(&mut self) {
        for index in std::mem::take(&mut self.idle) {
            let room = &mut self.rooms[index];
            let len = u32::try_from(room.len()).expect("a packet is below 64 KiB");
            let descriptor = Fd(self.descriptors[index / READS]);
            let request = opcode::Read::new(descriptor, room.as_mut_ptr(), len);
            self.requests
                .push(request.build().user_data(READ | index as u64));
        }
    }

    fn set_timer(&mut self, then: Instant) {
        if self.armed == Some(then) {
            return;
        }
        let at = self
            .start_ns
            .saturating_add(then.as_picos().div_ceil(1_000));
        *self.then = Timespec::new()
            .sec(at / 1_000_000_000)
            .nsec(u32::try_from(at % 1_000_000_000).expect("below a second"));
        let flags = TimeoutFlags::ABS;
        let request = if self.armed.is_some() {
            let update = opcode::TimeoutUpdate::new(TIMER, &raw const *self.then).flags(flags);
            // Nobody waits for this one's own completion.
            let entry = update.build().user_data(CANCEL);
            entry.flags(squeue::Flags::SKIP_SUCCESS)
        } else {
            let set = opcode::Timeout::new(&raw const *self.then).flags(flags);
            set.build().user_data(TIMER)
        };
        self.requests.push(request);
        self.armed = Some(then);
    }

    /// Makes all requests, and waits for so many completions.
    fn submit(&mut self, want: usize) -> io::Result<()> {
        let mut requests = self.requests.drain(..).peekable();
        loop {
            let mut queue = self.uring.submission();
            while let Some(request) = requests.next_if(|_| !queue.is_full()) {
                // SAFETY: what a request points to (a room, a packet in `writing`, `then`) stays where it is until its
                // completion, or until `Drop` has waited for it.
                let pushed = unsafe { queue.push(&request) };
                pushed.expect("there is room");
            }
            drop(queue);
            let is_last = requests.peek().is_none();
            match self.uring.submit_and_wait(if is_last { want } else { 0 }) {
                Ok(_) if is_last => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    if is_last {
                        return Ok(());
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn reap(&mut self) -> Happened {
        let mut happened = Happened::default();
        let done: Vec<cqueue::Entry> = self.uring.completion().collect();
        for done in done {
            let index = (done.user_data() & !KIND) as usize;
            match done.user_data() & KIND {
                READ => {
                    self.idle.push(index);
                    if let Ok(len) = usize::try_from(done.result()) {
                        happened.come.push(Come {
                            device: index / READS,
                            octets: self.rooms[index][..len].to_vec(),
                        });
                    }
                }
                WRITE => {
                    self.free.push(index);
                    let packet = self.writing[index].take();
                    if let (Some(packet), true) = (packet, done.result() < 0) {
                        happened.refused.push(packet.of);
                    }
                }
                TIMER => {
                    self.armed = None;
                    happened.is_time = true;
                }
                _ => {}
            }
        }
        happened
    }

    /// Takes back all that waits. What hosts have sent until now is left in their devices.
    fn end(&mut self) -> io::Result<()> {
        let waiting = self.rooms.len() - self.idle.len();
        for index in 0..self.rooms.len() {
            let cancel = opcode::AsyncCancel::new(READ | index as u64);
            self.requests.push(cancel.build().user_data(CANCEL));
        }
        let before = self.idle.len();
        self.submit(0)?;
        while self.idle.len() - before < waiting {
            for come in self.reap().come {
                self.exchange.lock().left[come.device].push_back(come.octets);
            }
            if self.idle.len() - before < waiting {
                self.submit(1)?;
            }
        }
        for tun in &self.exchange.lock().devices {
            set_blocking(tun.descriptor(), false)?;
        }
        Ok(())
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.end().is_err() {
            // The kernel may still write there.
            std::mem::forget(std::mem::take(&mut self.rooms));
            std::mem::forget(std::mem::take(&mut self.writing));
        }
    }
}

fn set_blocking(descriptor: BorrowedFd<'_>, blocks: bool) -> io::Result<()> {
    let mut flags = fcntl_getfl(descriptor)?;
    flags.set(OFlags::NONBLOCK, !blocks);
    Ok(fcntl_setfl(descriptor, flags)?)
}
