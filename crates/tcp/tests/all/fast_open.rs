//! TCP Fast Open between two endpoints (RFC 7413).

use std::{collections::VecDeque, sync::Arc};

use anabranch_congestion::{Config, reno};
use anabranch_core::{
    body::Octets,
    packet::Ecn,
    units::{Duration, Instant},
};
use anabranch_tcp::{
    Endpoint, FastOpenClient, FastOpenOutcome, FastOpenServer, Profile, Role, Settings, State,
    most_syn_data,
};
use anabranch_wire::{FastOpen, Flags, Segment};

const ONE_WAY: Duration = Duration::from_millis(50);
const REQUEST: usize = 500;

fn settings() -> Arc<Settings> {
    Arc::new(Profile::named("rfc").expect("it exists").settings)
}

fn end(role: Role) -> Endpoint<Octets> {
    let config = Config::Reno(reno::Params::default());
    let mut end = Endpoint::controlled_by(&settings(), &config, role, 0);
    end.set_auto_read(false);
    end
}

fn cookie(octet: u8) -> FastOpen {
    FastOpen::new(&[octet; 8]).expect("a valid length")
}

/// A client and a server, with the segments on their way.
struct Path {
    ends: [Endpoint<Octets>; 2],
    on_the_way: VecDeque<(Instant, usize, Segment<Octets>)>,
    now: Instant,
    /// Drops a segment to this end.
    drops: fn(usize, &Segment<Octets>) -> bool,
    /// SYNs of the client, as sent.
    syns: Vec<Segment<Octets>>,
}

impl Path {
    fn new(server: Option<FastOpenServer>) -> Self {
        let mut ends = [end(Role::Active), end(Role::Passive)];
        ends[1].accept_fast_open(server);
        Self {
            ends,
            on_the_way: VecDeque::new(),
            now: Instant::START,
            drops: |_, _| false,
            syns: Vec::new(),
        }
    }

    fn open(&mut self, option: Option<FastOpen>) {
        let client = FastOpenClient {
            option,
            most: most_syn_data(&settings(), 1460),
            writer_waits: false,
        };
        self.ends[0].write(Octets(vec![7; REQUEST]));
        self.ends[0].open_fast(self.now, client);
    }

    fn flush(&mut self) {
        for from in 0..2 {
            while let Some(out) = self.ends[from].poll_transmit(self.now) {
                if from == 0 && out.segment.flags.any(Flags::SYN) {
                    self.syns.push(out.segment.clone());
                }
                if !(self.drops)(1 - from, &out.segment) {
                    let at = self.now + ONE_WAY;
                    self.on_the_way.push_back((at, 1 - from, out.segment));
                }
            }
        }
    }

    /// Runs until the server has the whole request, and returns the time.
    fn time_of_request(&mut self) -> Duration {
        let mut received = 0;
        loop {
            self.flush();
            if self.ends[1].state().is_synchronized() || self.ends[1].is_early() {
                received += self.ends[1].read(self.now, u64::MAX).0.len();
            }
            if received >= REQUEST {
                return self.now - Instant::START;
            }
            let arrival = self
                .on_the_way
                .front()
                .map_or(Instant::NEVER, |first| first.0);
            let timer = self.ends.iter().map(Endpoint::deadline).min();
            self.now = arrival.min(timer.expect("two ends"));
            assert!(self.now < Instant::from_millis(60_000), "it arrives");
            if self.now == arrival {
                let (_, to, segment) = self.on_the_way.pop_front().expect("it arrives");
                self.ends[to].on_segment(self.now, &segment, Ecn::NotEct);
            } else {
                for end in &mut self.ends {
                    end.on_deadline(self.now);
                }
            }
        }
    }

    fn client(&self) -> FastOpenOutcome {
        self.ends[0].fast_open()
    }
}

fn server() -> FastOpenServer {
    FastOpenServer {
        cookie: cookie(1),
        older: Some(cookie(2)),
        without_cookie: false,
    }
}

#[test]
fn a_cookie_saves_one_round_trip_of_a_request() {
    let mut first = Path::new(Some(server()));
    first.open(Some(FastOpen::REQUEST));
    let without = first.time_of_request();
    let learned = first.client().cookie;
    assert_eq!(learned, Some(cookie(1)));
    let mut second = Path::new(Some(server()));
    second.open(learned);
    let with = second.time_of_request();
    assert_eq!((without, with), (ONE_WAY * 3, ONE_WAY));
    assert!(second.ends[1].fast_open().syn_data);
}

#[test]
fn a_wrong_cookie_costs_no_round_trip_and_brings_the_right_one() {
    let mut path = Path::new(Some(server()));
    path.open(Some(cookie(9)));
    assert_eq!(path.time_of_request(), ONE_WAY * 3);
    assert_eq!(path.client().cookie, Some(cookie(1)));
    assert!(!path.client().syn_data && !path.ends[1].fast_open().syn_data);
}

#[test]
fn the_cookie_of_the_older_secret_is_accepted_and_replaced() {
    let mut path = Path::new(Some(server()));
    path.open(Some(cookie(2)));
    assert_eq!(path.time_of_request(), ONE_WAY);
    path.flush();
    while let Some((at, to, segment)) = path.on_the_way.pop_front() {
        path.now = at;
        path.ends[to].on_segment(at, &segment, Ecn::NotEct);
        path.flush();
    }
    assert_eq!(path.client().cookie, Some(cookie(1)));
    assert!(path.client().syn_data);
    assert_eq!(path.ends[0].state(), State::Established);
    assert_eq!(path.ends[1].state(), State::Established);
}

#[test]
fn a_server_without_fast_open_takes_data_after_the_handshake() {
    let mut path = Path::new(None);
    path.open(Some(cookie(1)));
    assert_eq!(path.time_of_request(), ONE_WAY * 3);
    assert_eq!(path.client().cookie, None);
}

#[test]
fn a_retransmitted_syn_has_neither_option_nor_data() {
    let mut path = Path::new(Some(server()));
    path.drops = |to, segment| to == 1 && segment.options.fast_open().is_some();
    path.open(Some(cookie(1)));
    let second = Duration::from_secs(1);
    assert_eq!(path.time_of_request(), second + ONE_WAY * 3);
    let parts = |syn: &Segment<Octets>| (syn.options.fast_open(), syn.body.0.len());
    let syns: Vec<_> = path.syns.iter().map(parts).collect();
    assert_eq!(syns, [(Some(cookie(1)), REQUEST), (None, 0)]);
    assert!(path.client().is_retransmitted && !path.client().syn_data);
}
