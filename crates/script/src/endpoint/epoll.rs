//! Sets of watched sockets (epoll(7)), with edge-triggered and level-triggered events.

use std::collections::VecDeque;

use crate::{
    constants::{EPOLLET, EPOLLONESHOT, POLLERR, POLLHUP},
    syntax::EpollOperation,
};

/// Events that are always watched.
const ALWAYS: u32 = POLLERR | POLLHUP;
/// Events, without the flags that say how they are reported.
const EVENTS: u32 = 0xffff;

/// A watched socket.
#[derive(Debug, Clone, Copy)]
struct Watched {
    handle: i64,
    events: u32,
    /// A one-shot event has been reported.
    is_disabled: bool,
}

impl Watched {
    const fn interest(&self) -> u32 {
        if self.is_disabled {
            0
        } else {
            self.events & EVENTS | ALWAYS
        }
    }
}

/// A set.
#[derive(Debug, Default)]
pub(super) struct Epoll {
    watched: Vec<Watched>,
    /// Sockets with an event that has not been taken.
    ready: VecDeque<i64>,
}

impl Epoll {
    /// Changes the set. `mask` has the events that the socket has now.
    pub(super) fn control(
        &mut self,
        operation: EpollOperation,
        handle: i64,
        events: u32,
        mask: u32,
    ) -> Result<(), &'static str> {
        let place = self.watched.iter().position(|one| one.handle == handle);
        let new = Watched {
            handle,
            events,
            is_disabled: false,
        };
        match (operation, place) {
            (EpollOperation::Add, Some(_)) => return Err("EEXIST"),
            (EpollOperation::Modify | EpollOperation::Delete, None) => return Err("ENOENT"),
            (EpollOperation::Add, None) => self.watched.push(new),
            (EpollOperation::Modify, Some(place)) => self.watched[place] = new,
            (EpollOperation::Delete, Some(place)) => {
                self.watched.remove(place);
                self.ready.retain(|ready| *ready != handle);
                return Ok(());
            }
        }
        if mask & new.interest() != 0 {
            self.enqueue(handle);
        }
        Ok(())
    }

    fn enqueue(&mut self, handle: i64) {
        if !self.ready.contains(&handle) {
            self.ready.push_back(handle);
        }
    }

    /// A socket is closed.
    pub(super) fn forget(&mut self, handle: i64) {
        self.watched.retain(|one| one.handle != handle);
        self.ready.retain(|ready| *ready != handle);
    }

    /// A socket reports `events` to its waiters.
    pub(super) fn wake(&mut self, handle: i64, events: u32) {
        let one = self.watched.iter().find(|one| one.handle == handle);
        if one.is_some_and(|one| one.interest() & events != 0) {
            self.enqueue(handle);
        }
    }

    /// Takes the next event. `mask_of` returns the events that a socket has now.
    pub(super) fn wait(&mut self, mask_of: impl Fn(i64, u32) -> u32) -> Option<(u32, i64)> {
        for _ in 0..self.ready.len() {
            let handle = self.ready.pop_front()?;
            let one = self.watched.iter_mut().find(|one| one.handle == handle);
            let Some(one) = one else {
                continue;
            };
            let found = mask_of(handle, one.interest()) & one.interest();
            if found == 0 {
                continue;
            }
            if one.events & EPOLLONESHOT != 0 {
                one.is_disabled = true;
            } else if one.events & EPOLLET == 0 {
                self.ready.push_back(handle);
            }
            return Some((found, handle));
        }
        None
    }
}
