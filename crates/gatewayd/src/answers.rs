//! Answers to clients of a socket that does not block: an answer may be larger than the socket's
//! buffer.

use std::{
    io::{self, Write},
    os::fd::{AsFd, BorrowedFd},
};

/// Answers that are not completely written.
pub struct Answers<S> {
    waiting: Vec<(S, Vec<u8>)>,
}

impl<S> Default for Answers<S> {
    fn default() -> Self {
        Self {
            waiting: Vec::new(),
        }
    }
}

/// The most clients that read slowly; another one replaces the oldest.
const MOST: usize = 8;

impl<S: Write + AsFd> Answers<S> {
    /// Writes an answer as far as the client's buffer has room, and the rest later. The connection
    /// ends with the answer.
    pub fn send(&mut self, client: S, answer: Vec<u8>) {
        self.waiting.push((client, answer));
        self.flush();
        let surplus = self.waiting.len().saturating_sub(MOST);
        self.waiting.drain(..surplus);
    }

    /// Continues the answers.
    pub fn flush(&mut self) {
        self.waiting.retain_mut(|(client, rest)| {
            loop {
                match client.write(rest) {
                    Ok(written) if written > 0 && written < rest.len() => {
                        rest.drain(..written);
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                    // The answer is complete, or the client has gone.
                    Ok(_) | Err(_) => return false,
                }
            }
        });
    }

    /// The descriptors that must become writable.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.waiting.iter().map(|(client, _)| client.as_fd())
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Read, os::unix::net::UnixStream};

    use super::{Answers, MOST};

    fn pair() -> (UnixStream, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        ours.set_nonblocking(true).expect("a socket");
        (ours, theirs)
    }

    #[test]
    fn an_answer_larger_than_the_buffer_arrives_whole() {
        let mut answers = Answers::default();
        let (ours, mut theirs) = pair();
        let content: Vec<u8> = (0..=250).cycle().take(8 << 20).collect();
        answers.send(ours, content.clone());
        assert_eq!(answers.descriptors().count(), 1);
        let reader = std::thread::spawn(move || {
            let mut arrived = Vec::new();
            theirs.read_to_end(&mut arrived).expect("it ends");
            arrived
        });
        while answers.descriptors().count() > 0 {
            answers.flush();
            std::thread::yield_now();
        }
        assert!(reader.join().expect("no panic") == content);
    }

    #[test]
    fn clients_that_do_not_read_are_dropped() {
        let mut answers = Answers::default();
        let mut theirs = Vec::new();
        for _ in 0..MOST + 2 {
            let (ours, other) = pair();
            answers.send(ours, vec![7; 1 << 20]);
            theirs.push(other);
        }
        assert_eq!(answers.descriptors().count(), MOST);
        drop(theirs);
        answers.flush();
        assert_eq!(answers.descriptors().count(), 0);
        let (ours, mut other) = pair();
        answers.send(ours, b"short".to_vec());
        assert_eq!(answers.descriptors().count(), 0);
        let mut arrived = String::new();
        other.read_to_string(&mut arrived).expect("it ends");
        assert_eq!(arrived, "short");
    }
}
