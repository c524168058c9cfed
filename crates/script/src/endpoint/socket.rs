//! A socket of the simulated host: its options, its connection, and its events.

mod options;
mod write;

use std::{collections::VecDeque, sync::Arc};

use anabranch_congestion::{self as cc};
use anabranch_core::{
    body::Octets,
    units::{Bytes, Instant, text::Limit},
};
use anabranch_tcp::{EcnMode, Endpoint, FastOpenClient, Role, Settings, State, most_syn_data};
use anabranch_wire::{
    FastOpen, Ports,
    segment::{HEADERS, TIMESTAMPS_SIZE},
};

use self::{
    options::memory,
    write::{is_writable, write_in_chunks},
};
use super::fast_open::Key;
use crate::{
    constants::{
        MSG_EOR, MSG_ERRQUEUE, MSG_MORE, MSG_PEEK, MSG_TRUNC, MSG_ZEROCOPY, POLLERR, POLLHUP,
        POLLIN, POLLOUT, POLLRDHUP,
    },
    syntax::Control,
    target::{Answer, Send},
};

/// Settings of the host that a new connection takes over.
#[derive(Debug, Clone)]
pub(super) struct HostSettings {
    pub(super) settings: Settings,
    pub(super) control: cc::Config,
    /// Octets of the largest IPv4 packet; `None` if a switch sets the MSS.
    pub(super) mtu: Option<u32>,
    /// ECN is not asked for, but agreed to (`tcp_ecn = 2`).
    pub(super) agrees_to_ecn: bool,
    /// `net.ipv4.tcp_notsent_lowat`
    pub(super) notsent_lowat: u64,
    pub(super) is_v6: bool,
    pub(super) iss: u32,
}

/// Options that the application has set, which a listener's connections take over.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "options of the application")]
struct Options {
    control: Option<cc::Config>,
    receive_buffer: Option<u64>,
    send_buffer: Option<u64>,
    /// The MSS, header options included.
    maxseg: Option<u32>,
    nodelay: Option<bool>,
    is_corked: bool,
    syn_retries: Option<u32>,
    reports_unread: bool,
    notsent_lowat: Option<u64>,
    zero_copy: bool,
    linger: Option<u32>,
    fast_open_queue: u32,
    fast_open_connect: bool,
    fast_open_without_cookie: bool,
    fast_open_keys: Vec<Key>,
}

/// A socket.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent of each other")]
pub(super) struct Socket {
    /// Ports of packets to it.
    pub(super) ports: Ports,
    pub(super) end: Option<Endpoint<Octets>>,
    pub(super) listens: bool,
    pub(super) is_closed: bool,
    /// The connection is or was open.
    pub(super) was_open: bool,
    options: Options,
    shut_read: bool,
    shut_write: bool,
    /// An ICMP error that ended the connection.
    unreachable: Option<&'static str>,
    /// The error of the connection has been returned.
    is_reported: bool,
    /// The option of our SYN, and whether its answer has been learned.
    sent_option: Option<SentOption>,
    /// `connect` has been called, and the SYN waits for data.
    pub(super) is_deferred: bool,
    /// A blocking call is about to write when the connection opens.
    pub(super) writer_waits: bool,
    /// Octets written.
    written: u64,
    /// Calls with `MSG_ZEROCOPY` whose data is not acknowledged, and the ends of their data.
    uncompleted: VecDeque<(u32, u64)>,
    /// Ranges of calls whose memory is free.
    completed: VecDeque<(u32, u32)>,
    zero_copies: u32,
    completions: u64,
    /// A write found no room (`SOCK_NOSPACE`).
    lacked_space: bool,
}

/// The option of a SYN, if it had one.
#[derive(Debug, Clone, Copy)]
struct SentOption(Option<FastOpen>);

/// State that decides which events a segment causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    state: State,
    received: u64,
    completions: u64,
}

impl Socket {
    pub(super) fn new() -> Self {
        Self {
            ports: Ports {
                source: 0,
                destination: 0,
            },
            end: None,
            listens: false,
            is_closed: false,
            was_open: false,
            options: Options::default(),
            shut_read: false,
            shut_write: false,
            unreachable: None,
            is_reported: false,
            sent_option: None,
            is_deferred: false,
            writer_waits: false,
            written: 0,
            uncompleted: VecDeque::new(),
            completed: VecDeque::new(),
            zero_copies: 0,
            completions: 0,
            lacked_space: false,
        }
    }

    /// The socket of the connection that a listener has accepted.
    pub(super) fn accept(&mut self) -> Self {
        let mut accepted = Self::new();
        accepted.options = self.options.clone();
        accepted.ports = self.ports;
        accepted.end = self.end.take();
        accepted.was_open = std::mem::take(&mut self.was_open);
        accepted.unreachable = self.unreachable.take();
        accepted
    }

    /// Creates the end of a connection.
    pub(super) fn make(&mut self, role: Role, host: &HostSettings) {
        let mut settings = host.settings.clone();
        let options = &self.options;
        if let Some(octets) = options.receive_buffer {
            // A buffer size set by the application disables autotuning (socket(7), tcp(7)).
            settings.receive_window = Limit::Bytes(Bytes::new(octets));
            settings.receive_autotuning = false;
        }
        if let Some(octets) = options.send_buffer {
            settings.send_buffer = Limit::Bytes(Bytes::new(memory(&settings, octets)));
            settings.send_autotuning_start = Bytes::ZERO;
        }
        if let Some(nodelay) = options.nodelay {
            settings.nagle = !nodelay;
        }
        if let Some(retries) = options.syn_retries {
            settings.syn_retries = retries;
        }
        if let Some(mtu) = host.mtu {
            // With IPv6, the link's MTU is assumed to be 20 octets larger.
            let stamps = if settings.timestamps {
                TIMESTAMPS_SIZE
            } else {
                0
            };
            let most = options.maxseg.unwrap_or(u32::MAX);
            settings.mss = mtu.saturating_sub(HEADERS).min(most).saturating_sub(stamps);
        }
        if host.agrees_to_ecn {
            settings.ecn = match role {
                Role::Passive => EcnMode::Rfc3168,
                Role::Active => EcnMode::Off,
            };
        }
        let control = options.control.as_ref().unwrap_or(&host.control);
        let mut end = Endpoint::controlled_by(&Arc::new(settings), control, role, host.iss);
        if host.is_v6 {
            end = end.over_ipv6();
        }
        end.set_auto_read(false);
        end.hold(options.is_corked);
        self.end = Some(end);
    }

    /// Opens the connection.
    pub(super) fn open(&mut self, now: Instant, host: &HostSettings) {
        self.make(Role::Active, host);
        if let Some(end) = &mut self.end {
            end.open(now);
        }
    }

    /// Opens the connection with `octets`, and returns how many of them its SYN carries.
    pub(super) fn open_fast(
        &mut self,
        now: Instant,
        host: &HostSettings,
        (option, mss): (Option<FastOpen>, Option<u16>),
        send: &Send<'_>,
    ) -> i64 {
        self.make(Role::Active, host);
        self.sent_option = Some(SentOption(option));
        let Some(end) = &mut self.end else {
            return 0;
        };
        let octets = send.octets.unwrap_or_default();
        // Without a known MSS data is sent by that of this end.
        let most = most_syn_data(end.settings(), mss.unwrap_or(u16::MAX));
        let is_request = option.is_some_and(|option| option.is_request());
        let taken = if is_request {
            0
        } else {
            octets.len().min(usize::try_from(most).unwrap_or(0))
        };
        end.write(Octets(octets[..taken].to_vec()));
        self.written = u64::try_from(taken).expect("a few octets");
        self.writer_waits = send.waits && taken < octets.len();
        end.open_fast(
            now,
            FastOpenClient {
                option,
                most,
                writer_waits: self.writer_waits,
            },
        );
        if send.flags & MSG_ZEROCOPY != 0 && self.options.zero_copy && taken > 0 {
            self.uncompleted.push_back((self.zero_copies, self.written));
            self.zero_copies += 1;
        }
        i64::try_from(taken).expect("a few octets")
    }

    /// The results of Fast Open that have not been learned, and the option that was sent.
    pub(super) fn take_learned(
        &mut self,
    ) -> Option<(anabranch_tcp::FastOpenOutcome, Option<FastOpen>)> {
        let end = self.end.as_ref()?;
        if !end.state().is_synchronized() {
            return None;
        }
        self.sent_option
            .take()
            .map(|sent| (end.fast_open(), sent.0))
    }

    /// Whether `connect` sends its SYN only with data.
    pub(super) const fn connects_fast(&self) -> bool {
        self.options.fast_open_connect
    }

    pub(super) const fn needs_no_cookie(&self) -> bool {
        self.options.fast_open_without_cookie
    }

    /// Connections that may wait for the end of their handshake with data, and the socket's secret.
    pub(super) fn fast_open_listener(&self) -> (u32, &[Key]) {
        (self.options.fast_open_queue, &self.options.fast_open_keys)
    }

    pub(super) fn is_early(&self) -> bool {
        self.end.as_ref().is_some_and(Endpoint::is_early)
    }

    pub(super) fn state(&self) -> Option<State> {
        self.end.as_ref().map(Endpoint::state)
    }

    /// The error that the next call returns; it is returned once.
    fn take_error(&mut self) -> Option<&'static str> {
        let error = self.error()?;
        self.is_reported = true;
        Some(error)
    }

    fn error(&self) -> Option<&'static str> {
        use anabranch_tcp::Ending;
        if self.is_reported {
            return None;
        }
        match self.end.as_ref()?.ending()? {
            Ending::Aborted if self.unreachable.is_some() => self.unreachable,
            Ending::Reset => Some("ECONNRESET"),
            Ending::Refused => Some("ECONNREFUSED"),
            Ending::TimedOut => Some("ETIMEDOUT"),
            Ending::Aborted | Ending::Abandoned => None,
        }
    }

    /// Ends the connection because of an ICMP error.
    pub(super) fn end_unreachable(&mut self, now: Instant, error: &'static str) {
        self.unreachable = Some(error);
        if let Some(end) = &mut self.end {
            end.abort(now);
            // A host that does not answer gets no RST.
            while end.poll_transmit(now).is_some() {}
        }
    }

    /// The octets and the state that events depend on.
    pub(super) fn seen(&self) -> Option<Seen> {
        let end = self.end.as_ref()?;
        Some(Seen {
            state: end.state(),
            received: end.stats().delivered_bytes + end.readable(),
            completions: self.completions,
        })
    }

    /// Updates notifications after a segment or a timer. Returns the events that wake waiting
    /// applications: all of them when the state changes.
    pub(super) fn update(&mut self, before: Option<Seen>) -> u32 {
        let Some(end) = &self.end else {
            return 0;
        };
        self.was_open |= end.state().is_synchronized() || end.is_early();
        let acknowledged = end.acknowledged();
        let is_over = end.state() == State::Closed;
        while let Some((id, edge)) = self.uncompleted.front().copied()
            && (acknowledged >= edge || is_over)
        {
            self.uncompleted.pop_front();
            self.completions += 1;
            match self.completed.back_mut() {
                Some((_, last)) if *last + 1 == id => *last = id,
                _ => self.completed.push_back((id, id)),
            }
        }
        let mut events = 0;
        if let (Some(before), Some(after)) = (before, self.seen()) {
            if before.state != after.state {
                events = u32::MAX;
            }
            if before.received != after.received {
                events |= POLLIN;
            }
            if before.completions != after.completions {
                events |= POLLERR;
            }
        }
        if self.lacked_space && self.is_writable() {
            self.lacked_space = false;
            events |= POLLOUT;
        }
        events
    }

    fn lowat(&self, host: u64) -> u64 {
        match self.options.notsent_lowat {
            None | Some(0) => host,
            Some(octets) => octets,
        }
    }

    /// Whether a third of the send buffer is free, and little of the data is unsent (tcp(7),
    /// `TCP_NOTSENT_LOWAT`).
    fn is_writable(&self) -> bool {
        let Some(end) = &self.end else {
            return true;
        };
        is_writable(end, self.lowat(u64::MAX))
    }

    /// The events of the socket (poll(2)), of those in `interest`.
    pub(super) fn events(&self, interest: u32) -> u32 {
        if self.listens {
            let ready = self.end.is_some() && self.was_open;
            return if ready { POLLIN & interest } else { 0 };
        }
        let Some(end) = &self.end else {
            return if self.is_deferred {
                POLLOUT & interest
            } else {
                POLLOUT & interest | POLLHUP
            };
        };
        let state = end.state();
        let has_end = matches!(
            state,
            State::CloseWait | State::LastAck | State::Closing | State::TimeWait | State::Closed
        );
        let is_over = state == State::Closed;
        let mut events = 0;
        if is_over || self.shut_read && self.shut_write || has_end && self.shut_write {
            events |= POLLHUP;
        }
        if has_end || self.shut_read {
            events |= POLLIN | POLLRDHUP;
        }
        if state.is_synchronized() || end.is_early() || is_over {
            if end.readable() > 0 {
                events |= POLLIN;
            }
            if self.shut_write || is_over || self.is_writable() {
                events |= POLLOUT;
            }
        }
        if self.error().is_some() || !self.completed.is_empty() {
            events |= POLLERR;
        }
        events & (interest | POLLERR | POLLHUP)
    }

    /// An application waits for room to write.
    pub(super) fn note_waiter(&mut self, interest: u32) {
        if interest & POLLOUT != 0 && !self.is_writable() {
            self.lacked_space = true;
        }
    }

    /// Reads.
    pub(super) fn read(&mut self, now: Instant, most: u32, flags: u32) -> Answer {
        if flags & MSG_ERRQUEUE != 0 {
            return Answer::Error("EAGAIN");
        }
        let Some(end) = &mut self.end else {
            let error = if self.is_deferred {
                "EAGAIN"
            } else {
                "ENOTCONN"
            };
            return Answer::Error(error);
        };
        if self.listens {
            return Answer::Error("ENOTCONN");
        }
        let octets = if flags & MSG_PEEK != 0 {
            end.peek(u64::from(most)).0
        } else {
            end.read(now, u64::from(most)).0
        };
        if !octets.is_empty() {
            if flags & MSG_TRUNC != 0 {
                return Answer::Value(i64::try_from(octets.len()).expect("a few octets"));
            }
            return Answer::Octets(octets);
        }
        let state = end.state();
        let is_over = matches!(
            state,
            State::CloseWait | State::LastAck | State::Closing | State::TimeWait | State::Closed
        );
        if let Some(error) = self.take_error() {
            return Answer::Error(error);
        }
        if is_over || self.shut_read || most == 0 {
            Answer::Octets(Vec::new())
        } else {
            Answer::Error("EAGAIN")
        }
    }

    /// Reads with control messages.
    pub(super) fn read_message(&mut self, now: Instant, most: u32, flags: u32) -> Answer {
        if flags & MSG_ERRQUEUE != 0 {
            return match self.completed.pop_front() {
                Some((first, last)) => Answer::Message(
                    Vec::new(),
                    MSG_ERRQUEUE,
                    vec![Control::ZeroCopy {
                        first,
                        last,
                        // Our TCP copies all data.
                        was_copied: true,
                    }],
                ),
                None => Answer::Error("EAGAIN"),
            };
        }
        let octets = match self.read(now, most, flags) {
            Answer::Octets(octets) => octets,
            other => return other,
        };
        let mut control = Vec::new();
        if self.options.reports_unread
            && let Some(end) = &self.end
        {
            // An end of the stream counts if nothing else is left.
            let unread = end
                .readable()
                .max(u64::from(end.state() == State::CloseWait));
            control.push(Control::Unread(i64::try_from(unread).unwrap_or(i64::MAX)));
        }
        Answer::Message(octets, 0, control)
    }

    /// Sends over an open connection, or one that is being opened. `flush` sends the segments.
    pub(super) fn send(
        &mut self,
        send: &Send<'_>,
        host_lowat: u64,
        mut flush: impl FnMut(&mut Endpoint<Octets>),
    ) -> Answer {
        self.writer_waits = false;
        if let Some(error) = self.take_error() {
            return Answer::Error(error);
        }
        let lowat = self.lowat(host_lowat);
        let Some(end) = &mut self.end else {
            return Answer::Error("EPIPE");
        };
        if self.shut_write || end.state() == State::Closed || self.listens {
            return Answer::Error("EPIPE");
        }
        if !end.state().is_synchronized() && !end.is_early() {
            return Answer::Error("EAGAIN");
        }
        let Some(octets) = send.octets else {
            return Answer::Error("EFAULT");
        };
        if send.waits && self.lacked_space && !is_writable(end, lowat) {
            return Answer::Error("EAGAIN");
        }
        let more = send.flags & MSG_MORE != 0;
        end.hold(self.options.is_corked || more);
        let taken = if end.settings().segmentation.is_tso() {
            write_in_chunks(end, octets, lowat, &mut flush)
        } else {
            end.write(Octets(octets.to_vec()))
        };
        if send.flags & MSG_EOR != 0 && taken == u64::try_from(octets.len()).unwrap_or(u64::MAX) {
            end.end_record();
        }
        flush(end);
        // Data that waits for more is sent at the next event, not now.
        end.hold(self.options.is_corked);
        self.written += taken;
        let n = i64::try_from(taken).expect("as many as given");
        if send.flags & MSG_ZEROCOPY != 0 && self.options.zero_copy && taken > 0 {
            self.uncompleted.push_back((self.zero_copies, self.written));
            self.zero_copies += 1;
        }
        if taken < u64::try_from(octets.len()).expect("a few octets") {
            self.lacked_space = true;
        }
        if taken == 0 && !octets.is_empty() {
            return Answer::Error("EAGAIN");
        }
        Answer::Value(n)
    }

    /// Closes the socket.
    pub(super) fn close(&mut self, now: Instant) {
        self.is_closed = true;
        let Some(end) = &mut self.end else {
            return;
        };
        if self.listens {
            // A connection that has not been accepted is reset.
            if self.was_open {
                end.abort(now);
            } else {
                end.close();
            }
        } else if end.readable() > 0 || self.options.linger == Some(0) {
            // Unread data is lost, and the peer has to know (RFC 1122 §4.2.2.13, RFC 2525 §2.17).
            end.abort(now);
        } else {
            self.shut_write = true;
            end.hold(false);
            end.abandon(now);
        }
    }

    /// Shuts down directions.
    pub(super) fn shut_down(&mut self, reads: bool, writes: bool) -> Answer {
        let Some(end) = &mut self.end else {
            return Answer::Error("ENOTCONN");
        };
        self.shut_read |= reads;
        if writes {
            self.shut_write = true;
            end.close();
        }
        Answer::Value(0)
    }

    /// Octets that can be read, or that are not acknowledged.
    pub(super) fn queue_size(&self, is_received: bool) -> i64 {
        let octets = match &self.end {
            Some(end) if is_received => end.readable(),
            Some(end) => end.unacknowledged(),
            None => 0,
        };
        i64::try_from(octets).unwrap_or(i64::MAX)
    }
}
