//! Resolution of the names of endpoints in a separate thread: a resolver that does not answer must
//! not stop the tunnel.

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    net::{SocketAddr, ToSocketAddrs},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
    sync::mpsc::{Receiver, Sender, channel},
    thread,
};

use anabranch_core::system::words;

use crate::dns::Direct;

/// A host's name and a UDP port.
pub type Name = (String, u16);

/// The addresses of names, in the resolver's order of preference (RFC 6724).
pub type Addresses = BTreeMap<Name, Vec<SocketAddr>>;

/// The most addresses of a name that are tried.
const MOST: usize = 16;

/// Names to resolve.
pub struct Question {
    /// The names.
    pub names: Vec<Name>,
    /// Whether to skip the names after one without an address.
    pub stops_at_failure: bool,
}

/// The result of a question.
#[derive(Debug, Default)]
pub struct Answer {
    /// The names of the question.
    pub names: Vec<Name>,
    /// The addresses that were found.
    pub addresses: Addresses,
    /// A message for each name without an address.
    pub failures: Vec<String>,
}

/// Handles one question at a time. A new question replaces the previous one, whose answer is
/// dropped.
pub struct Resolver {
    questions: Sender<Question>,
    answers: Receiver<Answer>,
    readable: UnixStream,
    /// Whether the thread is working.
    is_busy: bool,
    /// Whether its answer is still needed.
    is_wanted: bool,
    /// The question for the thread after its answer.
    next: Option<Question>,
}

impl Resolver {
    /// Starts the thread, which calls `prepare` first.
    ///
    /// # Errors
    /// If the system refuses the thread, or `prepare` fails.
    pub fn start(
        prepare: impl FnOnce() -> Result<(), String> + Send + 'static,
        look_up: impl Fn(&Name) -> Result<Vec<SocketAddr>, String> + Send + 'static,
    ) -> Result<Self, String> {
        let failed = |error: io::Error| format!("resolver: {}", words(&error));
        let (questions, asked) = channel::<Question>();
        let (answer, answers) = channel();
        let (prepared, is_prepared) = channel();
        let (readable, mut wake) = UnixStream::pair().map_err(failed)?;
        readable.set_nonblocking(true).map_err(failed)?;
        let work = move || {
            let outcome = prepare();
            let is_ready = outcome.is_ok();
            if prepared.send(outcome).is_err() || !is_ready {
                return;
            }
            for question in asked {
                let is_sent = answer.send(answer_to(&question, &look_up)).is_ok();
                if !is_sent || wake.write_all(&[0]).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("resolver".to_owned());
        thread.spawn(work).map_err(failed)?;
        is_prepared
            .recv()
            .map_err(|_| "resolver: its thread has ended".to_owned())??;
        Ok(Self {
            questions,
            answers,
            readable,
            is_busy: false,
            is_wanted: false,
            next: None,
        })
    }

    /// Starts the resolution of names.
    pub fn ask(&mut self, question: Question) {
        if self.is_busy {
            self.is_wanted = false;
            self.next = Some(question);
            return;
        }
        // If its thread has ended there are no answers, but the daemon continues to carry packets.
        self.is_busy = self.questions.send(question).is_ok();
        self.is_wanted = true;
    }

    /// Drops the pending question.
    pub fn forget(&mut self) {
        self.is_wanted = false;
        self.next = None;
    }

    /// Whether an answer will arrive.
    pub fn is_asked(&self) -> bool {
        self.is_wanted || self.next.is_some()
    }

    /// The answer to the last question, if available.
    pub fn answer(&mut self) -> Option<Answer> {
        let _ = self.readable.read(&mut [0; 64]);
        let answer = self.answers.try_recv().ok()?;
        self.is_busy = false;
        let is_wanted = std::mem::take(&mut self.is_wanted);
        if let Some(next) = self.next.take() {
            self.ask(next);
            return None;
        }
        is_wanted.then_some(answer)
    }
}

impl AsFd for Resolver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.readable.as_fd()
    }
}

fn answer_to(
    question: &Question,
    look_up: impl Fn(&Name) -> Result<Vec<SocketAddr>, String>,
) -> Answer {
    let mut answer = Answer {
        names: question.names.clone(),
        ..Answer::default()
    };
    for name in &question.names {
        match look_up(name) {
            Ok(found) => {
                answer.addresses.insert(name.clone(), found);
            }
            Err(why) => {
                answer.failures.push(why);
                if question.stops_at_failure {
                    break;
                }
            }
        }
    }
    answer
}

/// Queries the system's resolver, and after its failure the name servers by datagrams that do not
/// enter the tunnel.
///
/// # Errors
/// A message that names the endpoint.
pub fn system_or_direct(name: &Name, direct: &Direct) -> Result<Vec<SocketAddr>, String> {
    system(name).or_else(|why| {
        let found = direct.look_up(&name.0);
        let addresses = found.into_iter().map(|ip| SocketAddr::new(ip, name.1));
        checked(addresses).ok_or(why)
    })
}

/// A name in messages: an endpoint, or a domain, which has no port.
pub fn label((host, port): &Name) -> String {
    match port {
        0 => format!("domain {host}"),
        port => format!("endpoint {host}:{port}"),
    }
}

/// Queries the system's resolver.
fn system((host, port): &Name) -> Result<Vec<SocketAddr>, String> {
    let none = || format!("{}: the name has no address", label(&(host.clone(), *port)));
    let found = (host.as_str(), *port).to_socket_addrs();
    let found = found.map_err(|error| {
        let words = words(&error);
        let why = words.rsplit(": ").next().unwrap_or_default();
        format!("{} ({why})", none())
    })?;
    checked(found).ok_or_else(none)
}

/// The addresses without duplicates, if there are any.
fn checked(found: impl Iterator<Item = SocketAddr>) -> Option<Vec<SocketAddr>> {
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for address in found {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses.truncate(MOST);
    (!addresses.is_empty()).then_some(addresses)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use rustix::event::{PollFd, PollFlags, poll};

    use super::{Answer, Name, Question, Resolver};

    fn question(names: &[&str], stops_at_failure: bool) -> Question {
        let names = names.iter().map(|name| ((*name).to_owned(), 1)).collect();
        Question {
            names,
            stops_at_failure,
        }
    }

    fn wait(resolver: &mut Resolver) -> Option<Answer> {
        poll(&mut [PollFd::new(resolver, PollFlags::IN)], None).expect("a descriptor");
        resolver.answer()
    }

    fn look_up((host, port): &Name) -> Result<Vec<std::net::SocketAddr>, String> {
        match host.as_str() {
            "absent" => Err("absent".to_owned()),
            _ => Ok(vec![([192, 0, 2, 1], *port).into()]),
        }
    }

    #[test]
    fn a_question_replaces_the_previous_one() {
        let (go, gate) = channel::<()>();
        let slow = move |name: &Name| {
            gate.recv().expect("the test goes on");
            look_up(name)
        };
        let mut resolver = Resolver::start(|| Ok(()), slow).expect("a thread");
        for name in ["first", "second", "third"] {
            resolver.ask(question(&[name], true));
        }
        assert!(resolver.answer().is_none());
        go.send(()).expect("the thread waits");
        assert!(wait(&mut resolver).is_none());
        go.send(()).expect("the thread waits");
        let answer = wait(&mut resolver).expect("the last question's");
        assert!(answer.addresses.contains_key(&("third".to_owned(), 1)));
        assert!(!resolver.is_asked());
    }

    #[test]
    fn a_dropped_question_has_no_answer() {
        let mut resolver = Resolver::start(|| Ok(()), look_up).expect("a thread");
        resolver.ask(question(&["first"], true));
        resolver.forget();
        assert!(wait(&mut resolver).is_none());
        resolver.ask(question(&["second"], true));
        assert!(wait(&mut resolver).is_some());
    }

    #[test]
    fn a_failure_ends_a_lookup_only_if_requested() {
        let mut resolver = Resolver::start(|| Ok(()), look_up).expect("a thread");
        for (stops, found) in [(true, 0), (false, 1)] {
            resolver.ask(question(&["absent", "there"], stops));
            let answer = wait(&mut resolver).expect("an answer");
            assert_eq!(answer.addresses.len(), found);
            assert_eq!(answer.failures, ["absent"]);
        }
    }

    #[test]
    fn a_thread_that_cannot_prepare_is_refused() {
        let refused = Resolver::start(|| Err("no".to_owned()), look_up);
        assert_eq!(refused.err().as_deref(), Some("no"));
    }
}
