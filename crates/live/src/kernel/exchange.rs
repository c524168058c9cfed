//! Packets between the engine and hosts in virtual time, through one io_uring (io_uring(7)).
//!
//! One system call writes the outgoing packets, waits, and reads the packets that hosts send: under
//! User-Mode Linux a system call costs as much as the kernel's work on a packet.

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
    IoUring, Probe, cqueue, opcode, squeue,
    types::{Fd, TimeoutFlags, Timespec},
};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::kernel::{
    clock::Clock,
    sys::interface::Offloads,
    tun::{Device, Drops, Passed, Tun},
};

/// The flow and direction of a packet.
type Place = (FlowId, Direction);

/// Requests in one call.
const ENTRIES: u32 = 256;
/// Read buffers: the largest number of packets that one call returns.
const ROOMS: u16 = 512;
/// The buffer group of the reads (io_uring_prep_provide_buffers(3)).
const GROUP: u16 = 0;

/// Kind of a request, in the upper half of its user data; the lower half is an index.
const READ: u64 = 0;
const WRITE: u64 = 1 << 32;
const TIMER: u64 = 2 << 32;
/// Requests whose completion is ignored.
const OTHER: u64 = 3 << 32;
const KIND: u64 = 0xffff_ffff << 32;

/// Packets between the engine and its devices.
#[derive(Debug, Default)]
struct Waiting {
    devices: Vec<Tun>,
    leaving: Vec<Leaving>,
    /// By device: packets read after the end of the run.
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
    /// Returns a device whose packets pass through the exchange.
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
    /// The packet leaves with the next [`Ring::turn`].
    fn send(&self, packet: &[u8], of: Place) -> io::Result<()> {
        self.exchange.lock().leaving.push(Leaving {
            device: self.index,
            of,
            octets: packet.to_vec(),
        });
        Ok(())
    }
    /// Returns packets that remained when the ring was dropped, then packets from the device.
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

/// A packet from a host.
#[derive(Debug)]
pub struct Come {
    /// Index of the device in the exchange.
    pub device: usize,
    pub octets: Vec<u8>,
}

/// The result of a turn.
#[derive(Debug, Default)]
pub struct Happened {
    /// Packets in the order in which hosts sent them.
    pub come: Vec<Come>,
    /// Flows and directions of packets that a host refused.
    pub refused: Vec<Place>,
    /// Whether the deadline of the turn passed before any packet arrived.
    pub is_then: bool,
}

/// Moves the packets of an exchange.
pub struct Ring {
    uring: IoUring,
    exchange: Exchange,
    /// The start of the run on the monotonic clock, in nanoseconds.
    start_ns: u64,
    descriptors: Vec<i32>,
    /// [`ROOMS`] consecutive buffers.
    rooms: Vec<u8>,
    /// Octets per buffer.
    room: usize,
    /// Whether one request reads several packets (multishot read, Linux 6.7 and later).
    is_lasting: bool,
    /// Devices without a pending read.
    idle: Vec<usize>,
    /// Buffers to be returned to the kernel.
    used: Vec<u16>,
    /// Packets being written, by slot.
    writing: Vec<Option<Leaving>>,
    free: Vec<usize>,
    /// The time to which the timer is set.
    armed: Option<Instant>,
    /// Argument of the timer request; the kernel reads it at submission.
    then: Box<Timespec>,
    requests: Vec<squeue::Entry>,
}

impl Ring {
    /// A ring for packets of up to `largest` octets.
    ///
    /// # Errors
    /// If the kernel has no io_uring.
    pub fn new(exchange: &Exchange, clock: Clock, largest: usize) -> io::Result<Self> {
        let descriptors: Vec<_> = exchange
            .lock()
            .devices
            .iter()
            .map(|tun| {
                // The kernel fails a request on a non-blocking descriptor immediately; on a
                // blocking one it waits.
                set_blocking(tun.descriptor(), true)?;
                Ok(tun.descriptor().as_raw_fd())
            })
            .collect::<io::Result<_>>()?;
        // Child processes do not use the ring. User-Mode Linux (6.12) miscounts its pages when they
        // are copied.
        let uring = IoUring::builder().dontfork().build(ENTRIES)?;
        let mut probe = Probe::new();
        uring.submitter().register_probe(&mut probe)?;
        Ok(Self {
            uring,
            exchange: exchange.clone(),
            start_ns: clock.start_ns(),
            idle: (0..descriptors.len()).collect(),
            descriptors,
            rooms: vec![0; largest * usize::from(ROOMS)],
            room: largest,
            is_lasting: probe.is_supported(opcode::ReadMulti::CODE),
            used: (0..ROOMS).collect(),
            writing: Vec::new(),
            free: Vec::new(),
            armed: None,
            then: Box::default(),
            requests: Vec::new(),
        })
    }

    /// Writes the outgoing packets, and waits until a host sends or until `then`.
    pub fn turn(&mut self, then: Instant) -> io::Result<Happened> {
        let mut leaving = std::mem::take(&mut self.exchange.lock().leaving);
        let mut want = leaving.len();
        for packet in leaving.drain(..) {
            self.write(packet);
        }
        self.read_again();
        self.set_timer(then);
        let mut happened = Happened::default();
        while !happened.is_then && happened.come.is_empty() {
            self.submit(want + 1)?;
            self.reap(&mut happened);
            want = 0;
        }
        Ok(happened)
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
        let len = u32::try_from(self.room).expect("a packet is below 64 KiB");
        // The kernel must have the buffers before the reads that use them.
        for room in std::mem::take(&mut self.used) {
            let octets = self.room_at(room).as_mut_ptr();
            let len = i32::try_from(len).expect("a packet is below 64 KiB");
            let request = opcode::ProvideBuffers::new(octets, len, 1, GROUP, room).build();
            let request = request.flags(squeue::Flags::SKIP_SUCCESS);
            self.requests.push(request.user_data(OTHER));
        }
        for device in std::mem::take(&mut self.idle) {
            let descriptor = Fd(self.descriptors[device]);
            let request = if self.is_lasting {
                // Length 0: the length of the buffer applies.
                opcode::ReadMulti::new(descriptor, 0, GROUP).build()
            } else {
                let request = opcode::Read::new(descriptor, std::ptr::null_mut(), len);
                let request = request.buf_group(GROUP).build();
                request.flags(squeue::Flags::BUFFER_SELECT)
            };
            self.requests.push(request.user_data(READ | device as u64));
        }
    }

    fn room_at(&mut self, room: u16) -> &mut [u8] {
        let start = usize::from(room) * self.room;
        &mut self.rooms[start..start + self.room]
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
            let entry = update.build().user_data(OTHER);
            entry.flags(squeue::Flags::SKIP_SUCCESS)
        } else {
            let set = opcode::Timeout::new(&raw const *self.then).flags(flags);
            set.build().user_data(TIMER)
        };
        self.requests.push(request);
        self.armed = Some(then);
    }

    /// Submits all requests, and waits for `want` completions.
    fn submit(&mut self, want: usize) -> io::Result<()> {
        let mut requests = self.requests.drain(..).peekable();
        loop {
            let mut queue = self.uring.submission();
            while let Some(request) = requests.next_if(|_| !queue.is_full()) {
                // SAFETY: the memory of a request (a buffer, a packet in `writing`, `then`) does
                // not move until its completion, or until `Drop` has waited for it.
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

    fn reap(&mut self, happened: &mut Happened) {
        let done: Vec<cqueue::Entry> = self.uring.completion().collect();
        for done in done {
            let index = (done.user_data() & !KIND) as usize;
            match done.user_data() & KIND {
                READ => {
                    if !cqueue::more(done.flags()) {
                        self.idle.push(index);
                    }
                    let room = cqueue::buffer_select(done.flags());
                    if let (Some(room), Ok(len)) = (room, usize::try_from(done.result())) {
                        happened.come.push(Come {
                            device: index,
                            octets: self.room_at(room)[..len].to_vec(),
                        });
                        self.used.push(room);
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
                    happened.is_then = happened.come.is_empty();
                }
                _ => {}
            }
        }
    }

    /// Cancels the reads. Packets that hosts sent before remain in their devices.
    fn end(&mut self) -> io::Result<()> {
        self.requests.clear();
        for device in 0..self.descriptors.len() {
            let cancel = opcode::AsyncCancel::new(READ | device as u64);
            self.requests.push(cancel.build().user_data(OTHER));
        }
        self.submit(0)?;
        loop {
            let mut happened = Happened::default();
            self.reap(&mut happened);
            for come in happened.come {
                self.exchange.lock().left[come.device].push_back(come.octets);
            }
            if self.idle.len() == self.descriptors.len() {
                break;
            }
            self.submit(1)?;
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
            // The kernel may still write to these buffers.
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

#[cfg(test)]
mod tests;
