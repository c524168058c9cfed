//! `page`: serves one HTML page with the state and the history of the gateway that is up.
//!
//! The page is a separate process. It parses HTTP from browsers, and reads neither the daemon's keys
//! nor, after its start, any file. It has the view socket, which takes only questions. If it has
//! another user than the daemon, it cannot end or reload it.

mod http;
mod token;

use std::{
    fs,
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anabranch_core::{shown, system::words};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;

use crate::{
    Failure,
    confine::{Account, confine_page},
    history::{Query, Range},
    status::ask_at,
};
use http::{Answer, Parsed, Request};
use token::Token;

/// The most connected clients; another one replaces the oldest.
const CLIENTS: usize = 32;
/// The time for a request and its answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time for which the daemon's answer is awaited. Other clients wait meanwhile.
const DAEMON: Duration = Duration::from_secs(2);

const PAGE: &str = include_str!("page/page.html");

/// A listening address.
pub struct Options<'a> {
    /// The daemon's view socket.
    pub socket: PathBuf,
    pub listen: SocketAddr,
    /// The file with the token that clients must give; made if there is none.
    pub token: Option<&'a Path>,
    pub account: Option<&'a Account>,
}

/// Serves the page until a signal ends the process.
///
/// # Errors
/// If the address is not a loopback one and there is no token, or if the system refuses.
pub fn serve(options: &Options<'_>) -> Result<(), Failure> {
    let listen = options.listen;
    let (token, is_new) = match options.token {
        Some(file) => {
            let (token, is_new) = Token::read_or_make(file).map_err(Failure::Input)?;
            (Some(token), is_new.then_some(file))
        }
        None => (None, None),
    };
    if !listen.ip().is_loopback() && token.is_none() {
        let message = format!(
            "{listen} can be reached by others, and there is no token; expected --token FILE, or a loopback address such as 127.0.0.1:9470"
        );
        return Err(Failure::Input(message));
    }
    let failed = |error: io::Error| Failure::System(format!("{listen}: {}", words(&error)));
    let listener = TcpListener::bind(listen).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    if let Some(file) = is_new {
        println!("a token was written to {}", file.display());
    }
    println!("http://{bound}/");
    let account = options.account.copied().or_else(Account::nobody_if_root);
    let account = account.map(|account| account.in_group_of(&options.socket));
    let remark = confine_page(account.as_ref()).map_err(Failure::System)?;
    let about = fs::symlink_metadata(&options.socket);
    let was_open = !is_denied(&about);
    let own = rustix::process::geteuid().as_raw();
    let is_owner = about.is_ok_and(|about| about.uid() == own);
    let of_user = is_owner.then(|| {
        "the page has the gateway's user, so that an intruder in it could end the gateway; expected root, which changes to another user, or a user in the gateway's group".to_owned()
    });
    for remark in remark.into_iter().chain(of_user) {
        eprintln!("remark: {}", shown::terminal(&remark));
    }
    let mut server = Server {
        listener,
        clients: Vec::new(),
        source: Source {
            socket: options.socket.clone(),
            token,
            group: account.map(Account::group).filter(|_| was_open),
        },
    };
    let failed = |error: io::Error| Failure::System(format!("{listen}: {}", words(&error)));
    loop {
        server.turn().map_err(failed)?;
        if let Some(why) = server.source.has_another_group() {
            return Err(Failure::System(why));
        }
    }
}

struct Server {
    listener: TcpListener,
    clients: Vec<Client>,
    source: Source,
}

/// A connection. One request is answered, then it is closed.
struct Client {
    stream: TcpStream,
    ends: Instant,
    received: Vec<u8>,
    /// The rest of the answer, once there is one.
    answer: Option<Vec<u8>>,
}

impl Server {
    /// Waits for clients and serves the ready ones.
    fn turn(&mut self) -> io::Result<()> {
        let clients = self.clients.iter().map(|client| {
            let flags = match client.answer {
                Some(_) => PollFlags::OUT,
                None => PollFlags::IN,
            };
            PollFd::new(&client.stream, flags)
        });
        let listener = PollFd::new(&self.listener, PollFlags::IN);
        let mut descriptors: Vec<PollFd<'_>> = std::iter::once(listener).chain(clients).collect();
        let wait = Timespec {
            tv_sec: 1,
            tv_nsec: 0,
        };
        let timeout = (!self.clients.is_empty()).then_some(wait);
        match poll(&mut descriptors, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<bool> = descriptors
            .iter()
            .map(|polled| !polled.revents().is_empty())
            .collect();
        let now = Instant::now();
        let mut ready = ready.into_iter();
        let is_new = ready.next().unwrap_or_default();
        let source = &self.source;
        self.clients.retain_mut(|client| {
            let is_ready = ready.next().unwrap_or_default();
            now < client.ends && (!is_ready || client.serve(source))
        });
        if is_new {
            self.accept(now);
        }
        Ok(())
    }

    fn accept(&mut self, now: Instant) {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) if stream.set_nonblocking(true).is_ok() => {
                    if self.clients.len() == CLIENTS {
                        self.clients.remove(0);
                    }
                    self.clients.push(Client {
                        stream,
                        ends: now + PATIENCE,
                        received: Vec::new(),
                        answer: None,
                    });
                }
                Ok(_) => {}
                // Without a descriptor the oldest client is dropped; otherwise the listener would
                // stay readable.
                Err(error)
                    if error.kind() != io::ErrorKind::WouldBlock && !self.clients.is_empty() =>
                {
                    self.clients.remove(0);
                }
                Err(_) => return,
            }
        }
    }
}

impl Client {
    /// Reads or writes. Returns whether the connection stays.
    fn serve(&mut self, source: &Source) -> bool {
        if self.answer.is_none() {
            match self.receive() {
                Ok(None) => return true,
                Ok(Some(answer)) => {
                    let answer = match answer {
                        Received::Request(request) => source.answer(&request),
                        Received::Refused(answer) => answer.octets(false),
                    };
                    self.answer = Some(answer);
                }
                Err(_) => return false,
            }
        }
        self.send().unwrap_or(false)
    }

    fn receive(&mut self) -> io::Result<Option<Received>> {
        let mut buffer = [0; 4096];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.received.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            }
            match http::parse(&self.received) {
                Parsed::Part => {}
                Parsed::Whole(request) => return Ok(Some(Received::Request(request))),
                Parsed::Wrong(answer) => return Ok(Some(Received::Refused(answer))),
            }
        }
    }

    /// Writes a part of the answer. Returns whether more is left.
    fn send(&mut self) -> io::Result<bool> {
        let Some(answer) = &mut self.answer else {
            return Ok(true);
        };
        while !answer.is_empty() {
            match self.stream.write(answer) {
                Ok(0) => return Ok(false),
                Ok(length) => drop(answer.drain(..length)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        // The rest of a request that was refused would make the kernel discard the answer.
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
        let mut rest = [0; 4096];
        for _ in 0..16 {
            match self.stream.read(&mut rest) {
                Ok(length) if length > 0 => {}
                _ => break,
            }
        }
        Ok(false)
    }
}

enum Received {
    Request(Request),
    Refused(Answer),
}

/// The daemon, and the condition of its clients.
struct Source {
    socket: PathBuf,
    token: Option<Token>,
    /// The group of this process, if it has changed to that of the socket and had access.
    group: Option<u32>,
}

impl Source {
    /// Whether the daemon was started again with a user of another group, to whose socket this
    /// process, which can no longer change its group, has no access. Returns the reason for its end,
    /// after which a supervisor starts it again in the new group.
    fn has_another_group(&self) -> Option<String> {
        let own = self.group?;
        let about = fs::metadata(&self.socket);
        let is_another = is_denied(&about) || about.is_ok_and(|about| about.gid() != own);
        is_another.then(|| {
            let at = self.socket.display();
            format!("{at}: it has another group than at the start of the page; the page takes the new one when it is started again")
        })
    }

    fn answer(&self, request: &Request) -> Vec<u8> {
        self.choose(request).octets(request.is_head)
    }

    fn choose(&self, request: &Request) -> Answer {
        if let Some(token) = &self.token {
            if !request.secret.as_ref().is_some_and(|given| token.is(given)) {
                return Answer::unauthorized();
            }
        } else if !request.is_local {
            // Another name may be one that a foreign page has made point here.
            let why =
                "without a token this page has the names localhost, 127.0.0.1 and [::1] only\n";
            return Answer::text(421, why);
        }
        match request.path.as_str() {
            "/" => {
                let mut random = [0; 16];
                match getrandom::fill(&mut random) {
                    Ok(()) => Answer::page(PAGE, random),
                    Err(_) => Answer::text(503, "the system has no randomness\n"),
                }
            }
            "/status" => self.of_daemon("status\n"),
            "/history" => match query(request) {
                Ok(query) => self.of_daemon(&query.line()),
                Err(why) => Answer::text(400, &why),
            },
            _ => Answer::text(404, "there are /, /status and /history\n"),
        }
    }

    fn of_daemon(&self, line: &str) -> Answer {
        match ask_at(&self.socket, line, DAEMON) {
            Ok(answer) => Answer::json(200, &shown::printable_json(&answer)),
            Err(why) => Answer::json(503, &json!({ "error": why }).to_string()),
        }
    }
}

/// Whether this process may not reach a file.
fn is_denied(about: &io::Result<fs::Metadata>) -> bool {
    matches!(about, Err(error) if error.kind() == io::ErrorKind::PermissionDenied)
}

fn query(request: &Request) -> Result<Query, String> {
    let mut query = Query {
        range: Range::Hour,
        peer: None,
    };
    for (key, value) in &request.query {
        match key.as_str() {
            "range" => {
                query.range = Range::of(value)
                    .ok_or_else(|| "expected range=hour, range=day or range=month\n".to_owned())?;
            }
            "peer" => query.peer = Some(value.clone()),
            _ => return Err("expected `range` and `peer`\n".to_owned()),
        }
    }
    Ok(query)
}
