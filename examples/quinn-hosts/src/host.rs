//! A QUIC endpoint as a host of the simulator.
//!
//! The stack is `quinn-proto`, unmodified. It is sans-I/O as the simulator's hosts are, so this file
//! is a translation of names and of time.

use std::{
    collections::VecDeque,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use anabranch::{
    Octets, Transport,
    host::{Arrived, Departing, Host},
    packet::Ecn,
    units::Instant,
};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint,
    EndpointConfig, Event, ServerConfig,
};

/// What runs on top of a connection.
pub trait Application: std::fmt::Debug + Send {
    /// QUIC has news.
    fn on_event(&mut self, now: Instant, connection: &mut Connection, event: Event);
    /// Whether the connection may be closed.
    fn is_done(&self) -> bool {
        false
    }
    /// Octets that came in order.
    fn delivered_bytes(&self) -> u64 {
        0
    }
}

/// Which end this is.
#[derive(Debug, Clone)]
pub enum Role {
    /// Connects when the flow starts.
    Client(ClientConfig),
    /// Takes the first connection that comes.
    Server(Arc<ServerConfig>),
}

/// The name that the server's certificate is for.
pub const SERVER_NAME: &str = "server.example";

/// Addresses exist only between the two endpoints; the simulator routes by flow.
const CLIENT: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 50_000);
const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)), 443);

/// IPv4 and UDP headers in bytes.
const HEADERS: usize = 20 + 8;

/// One endpoint with one connection.
#[derive(Debug)]
pub struct QuicHost {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    role: Role,
    application: Box<dyn Application>,
    clock: Clock,
    /// What the endpoint answers outside a connection.
    answers: VecDeque<Departing<Octets>>,
    /// The stack's next timeout. `quinn-proto` tells it to `&mut self` only, so it is kept here for
    /// [`Host::timer`].
    due: Option<Instant>,
}

impl QuicHost {
    /// An endpoint before its start. `seed` picks what QUIC itself draws: packet numbers to skip,
    /// the order and greasing of transport parameters. TLS has randomness of its own.
    pub fn new(role: Role, seed: u8, application: Box<dyn Application>) -> Self {
        let mut config = EndpointConfig::default();
        config.rng_seed(Some([seed; 32]));
        let server = match &role {
            Role::Client(_) => None,
            Role::Server(server) => Some(Arc::clone(server)),
        };
        Self {
            // The simulator never fragments: path MTU discovery may trust what arrives.
            endpoint: Endpoint::new(Arc::new(config), server, true, None),
            connection: None,
            role,
            application,
            clock: Clock::new(),
            answers: VecDeque::new(),
            due: None,
        }
    }

    fn peer(&self) -> SocketAddr {
        match self.role {
            Role::Client(_) => SERVER,
            Role::Server(_) => CLIENT,
        }
    }

    /// Passes events on between endpoint, connection and application until there are none.
    fn settle(&mut self, now: Instant) {
        let Some((handle, connection)) = &mut self.connection else {
            return;
        };
        loop {
            if let Some(event) = connection.poll_endpoint_events() {
                if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                    connection.handle_event(answer);
                }
            } else if let Some(event) = connection.poll() {
                self.application.on_event(now, connection, event);
            } else if self.application.is_done() && !connection.is_closed() {
                connection.close(self.clock.quic(now), 0_u32.into(), Default::default());
            } else {
                return;
            }
        }
    }
}

impl Host<Octets> for QuicHost {
    fn start(&mut self, now: Instant) {
        if let Role::Client(config) = &self.role {
            let connected =
                self.endpoint
                    .connect(self.clock.quic(now), config.clone(), SERVER, SERVER_NAME);
            self.connection = Some(connected.expect("address, name and version are valid"));
        }
    }

    fn on_packet(&mut self, now: Instant, packet: Arrived<'_, Octets>) {
        let Transport::Datagram(Octets(datagram)) = packet.transport else {
            return;
        };
        let mut buffer = Vec::new();
        let at = self.clock.quic(now);
        let ecn = EcnCodepoint::from_bits(packet.ecn as u8);
        let data = datagram.as_slice().into();
        let answer = match self
            .endpoint
            .handle(at, self.peer(), None, ecn, data, &mut buffer)
        {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
                None
            }
            Some(DatagramEvent::NewConnection(incoming)) if self.connection.is_none() => {
                match self.endpoint.accept(incoming, at, &mut buffer, None) {
                    Ok(accepted) => {
                        self.connection = Some(accepted);
                        None
                    }
                    Err(refused) => refused.response,
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                Some(self.endpoint.refuse(incoming, &mut buffer))
            }
            Some(DatagramEvent::Response(answer)) => Some(answer),
            None => None,
        };
        if let Some(answer) = answer {
            buffer.truncate(answer.size);
            self.answers.push_back(departing(buffer, answer.ecn));
        }
    }

    fn on_timer(&mut self, now: Instant) {
        if let Some((_, connection)) = &mut self.connection {
            connection.handle_timeout(self.clock.quic(now));
        }
    }

    fn timer(&self) -> Option<Instant> {
        self.due
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Departing<Octets>> {
        if let Some(answer) = self.answers.pop_front() {
            return Some(answer);
        }
        self.settle(now);
        let (_, connection) = self.connection.as_mut()?;
        let mut datagram = Vec::new();
        let sent = connection.poll_transmit(self.clock.quic(now), 1, &mut datagram);
        self.due = connection
            .poll_timeout()
            .map(|due| self.clock.simulated(due));
        sent.map(|sent| departing(datagram, sent.ecn))
    }

    fn delivered_bytes(&self) -> u64 {
        self.application.delivered_bytes()
    }
}

fn departing(datagram: Vec<u8>, ecn: Option<EcnCodepoint>) -> Departing<Octets> {
    Departing {
        size: u32::try_from(datagram.len() + HEADERS).expect("a datagram is below 64 KiB"),
        ecn: Ecn::from_bits(ecn.map_or(0, |codepoint| codepoint as u8)),
        dscp: 0,
        transport: Transport::Datagram(Octets(datagram)),
    }
}

/// Simulated time in the stack's terms.
///
/// `quinn-proto` has no clock, but its points in time are `std::time::Instant`s, and the only way to
/// get one is to read the clock. It is read once; whatever it says stands for the start of the run.
/// The stack looks at nothing but differences, so the value does not matter.
#[derive(Debug)]
struct Clock {
    start: std::time::Instant,
}

impl Clock {
    fn new() -> Self {
        Self {
            start: std::time::Instant::now(),
        }
    }
    /// To the nanosecond, which is all that the stack's type holds; rounded down.
    fn quic(&self, now: Instant) -> std::time::Instant {
        self.start + std::time::Duration::from_nanos(now.as_picos() / 1000)
    }
    fn simulated(&self, due: std::time::Instant) -> Instant {
        let nanos = due.saturating_duration_since(self.start).as_nanos();
        u64::try_from(nanos)
            .ok()
            .and_then(|nanos| nanos.checked_mul(1000))
            .map_or(Instant::NEVER, Instant::from_picos)
    }
}
