//! A session: its keys, the next number of each path, and the replay window of each path.

use crate::time::Instant;
use std::fmt;

use super::{aead::Cipher, handshake::SessionKeys, replay::Window};
use crate::wire::{HEADER, Header, Inner, PATHS, PathId};

/// Messages that a path may carry under one key. A session is replaced long before.
pub const MESSAGE_LIMIT: u64 = 1 << 60;

/// The keys and indices of one session.
pub struct Session {
    /// This end's index.
    pub index: u32,
    /// The other end's index.
    pub peer_index: u32,
    /// The other end's boot number.
    pub peer_boot: u64,
    /// Whether this end began the session.
    pub initiator: bool,
    /// The time at which the handshake was complete here.
    pub since: Instant,
    /// `None` if the library lacks the cipher: then nothing is sealed or opened.
    send: Option<Cipher>,
    receive: Option<Cipher>,
    next: [u64; PATHS],
    windows: [Option<Window>; PATHS],
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("index", &self.index)
            .field("since", &self.since)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// Creates a session with these keys, between two indices.
    #[must_use]
    pub fn new(
        keys: &SessionKeys,
        index: u32,
        peer_index: u32,
        initiator: bool,
        since: Instant,
    ) -> Self {
        Self {
            index,
            peer_index,
            peer_boot: keys.peer_boot,
            initiator,
            since,
            send: Cipher::new(&keys.send),
            receive: Cipher::new(&keys.receive),
            next: [0; PATHS],
            windows: Default::default(),
        }
    }

    /// Continues the numbers of the previous session, so that reports remain valid across a change
    /// of keys.
    pub fn continue_from(&mut self, before: &Self) {
        for (next, before) in self.next.iter_mut().zip(before.next) {
            *next = before.max(*next);
        }
    }

    /// The largest number of messages that a path carried.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.next.iter().copied().max().unwrap_or(0)
    }

    /// Writes a data message into `datagram`, which is cleared first, and returns its number.
    /// `None` if the path has no numbers left.
    pub fn seal(
        &mut self,
        path: PathId,
        inner: Inner,
        content: &[u8],
        datagram: &mut Vec<u8>,
    ) -> Option<u64> {
        let number = self.next[path.index()];
        if number >= MESSAGE_LIMIT {
            return None;
        }
        let header = Header {
            path,
            block: inner.kind.block(),
            receiver: self.peer_index,
            number,
        };
        let head = header.encode();
        datagram.clear();
        datagram.extend_from_slice(&head);
        datagram.extend_from_slice(&inner.encode());
        datagram.extend_from_slice(content);
        // Incremented before sealing: no number is used twice, even after an error.
        self.next[path.index()] += 1;
        let tag = self
            .send
            .as_ref()?
            .seal(nonce(header), &head, &mut datagram[HEADER..])?;
        datagram.extend_from_slice(&tag);
        Some(number)
    }

    /// Whether the number has not arrived before and is not too old.
    #[must_use]
    pub fn is_new(&self, header: Header) -> bool {
        let window = &self.windows[header.path.index()];
        window
            .as_ref()
            .is_none_or(|window| window.is_new(header.number))
    }

    /// Opens a data message in place and marks its number. Returns the opened content; `None` if
    /// the message is not authentic or not new.
    pub fn open<'a>(&mut self, header: Header, datagram: &'a mut [u8]) -> Option<&'a [u8]> {
        if header.number >= MESSAGE_LIMIT || !self.is_new(header) {
            return None;
        }
        let (head, sealed) = datagram.split_at_mut_checked(HEADER)?;
        let opened = self.receive.as_ref()?.open(nonce(header), head, sealed)?;
        // Marked only after authentication: a forged number must not push authentic ones out of the
        // window.
        self.windows[header.path.index()]
            .get_or_insert_default()
            .mark(header.number)
            .then_some(opened)
    }
}

fn nonce(header: Header) -> [u8; 12] {
    let mut octets = [0; 12];
    octets[3] = header.path.number();
    octets[4..].copy_from_slice(&header.number.to_be_bytes());
    octets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Kind;

    #[test]
    fn a_path_without_numbers_seals_nothing_and_others_continue() {
        let keys = SessionKeys {
            send: [1; 32],
            receive: [2; 32],
            peer_boot: 0,
        };
        let mut session = Session::new(&keys, 1, 2, true, Instant::START);
        session.next[0] = MESSAGE_LIMIT - 1;
        let (mut datagram, inner) = (Vec::new(), Inner { kind: Kind::Probe });
        let path = |number| PathId::new(number).expect("a small number");
        assert_eq!(
            session.seal(path(0), inner, &[], &mut datagram),
            Some(MESSAGE_LIMIT - 1)
        );
        assert_eq!(session.seal(path(0), inner, &[], &mut datagram), None);
        assert_eq!(session.seal(path(1), inner, &[], &mut datagram), Some(0));
        assert_eq!(session.messages(), MESSAGE_LIMIT);
    }
}
