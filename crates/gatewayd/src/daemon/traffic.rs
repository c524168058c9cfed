//! Packets and datagrams: from the interface to the tunnels, from the sockets to the tunnels, and
//! from the tunnels to both.

use std::{
    io,
    net::{IpAddr, SocketAddr},
};

use anabranch_core::{packet::Ecn, units::Duration};
use anabranch_gateway::{
    path::Route,
    reception::Admission,
    time::Instant,
    tunnel::Refused,
    wire::{Initiation, Message},
};

use super::Gateway;
use crate::{device::Batch, socket::Marks};

/// Batches of packets taken from the interface before other descriptors have their turn.
const BATCHES: usize = 16;
/// Reads of one socket before other descriptors have their turn.
const DRAIN: usize = 1024;
/// Datagrams after whose reading their packets are delivered, while these are in the processor's cache.
const TOGETHER: usize = 128;

impl Gateway {
    /// Takes the packets that wait at the interface, up to a limit.
    pub(super) fn take_packets(&mut self) -> io::Result<()> {
        let mut batch = std::mem::take(&mut self.batch);
        let taken = self.take_batches(&mut batch);
        self.batch = batch;
        taken
    }

    fn take_batches(&mut self, batch: &mut Batch) -> io::Result<()> {
        for _ in 0..BATCHES {
            match self.device.receive(batch) {
                Ok(()) => {
                    let now = self.now();
                    let packets = batch.packets();
                    packets.for_each(|packet| self.on_packet(packet, now));
                }
                Err(error) if is_transient(&error) => break,
                // A packet that cannot be split.
                Err(error) if error.raw_os_error().is_none() => self.dropped.not_ip += 1,
                // The interface was deleted.
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn on_packet(&mut self, packet: &[u8], now: Instant) {
        let Some(destination) = destination(packet) else {
            self.dropped.not_ip += 1;
            return;
        };
        let number = self.peers.of(destination);
        let Some(peer) = number.and_then(|number| self.peers.get(number)) else {
            self.dropped.no_peer += 1;
            return;
        };
        let mut buffer = peer.tunnel.buffer();
        buffer.extend_from_slice(packet);
        match peer.tunnel.handle_inner(buffer, now) {
            Ok(()) => {}
            Err(Refused::NotIp) => self.dropped.not_ip += 1,
            Err(Refused::TooBig(mtu)) => {
                self.dropped.too_big += 1;
                if let Some(message) = self.too_big.message(packet, mtu, now) {
                    self.deliver(&message);
                }
            }
        }
    }

    /// Takes waiting datagrams, up to a limit: a report that waits after other datagrams would make
    /// its path appear silent. Packets are delivered while the last socket is read, because packets
    /// of a flow that uses several paths wait for each other.
    pub(super) fn take_datagrams(&mut self, sockets: &[u32]) {
        let mut taken = 0;
        for (at, &local) in sockets.iter().enumerate() {
            let is_last = at + 1 == sockets.len();
            for count in 0..DRAIN {
                let datagrams = self.take_from(local, count == 0);
                if datagrams == 0 {
                    break;
                }
                taken += datagrams;
                if is_last && taken >= TOGETHER {
                    taken = 0;
                    self.deliver_ready();
                }
            }
        }
    }

    /// Takes the datagrams of one read. Returns their number.
    fn take_from(&mut self, local: u32, is_first: bool) -> usize {
        let Some(socket) = self.ways.socket(local) else {
            return 0;
        };
        let mut buffer = std::mem::take(&mut self.received);
        let Ok(received) = socket.receive(&mut buffer) else {
            self.received = buffer;
            // A socket that is readable without a datagram has an ICMP message.
            if is_first {
                self.ways.read_errors(local);
            }
            return 0;
        };
        let now = self.now();
        let age = Duration::from_nanos(u64::try_from(received.age.as_nanos()).unwrap_or(0));
        let arrived = now.saturating_sub(age);
        let remote = received.from;
        let from = (Route { local, remote }, received.ecn);
        let segments = received.length.div_ceil(received.segment.max(1));
        self.usage
            .count(local, is_v4(&remote), received.length, segments);
        for datagram in buffer[..received.length].chunks_mut(received.segment) {
            self.on_datagram(datagram, from, arrived, now);
        }
        self.received = buffer;
        segments.max(1)
    }

    /// Delivers the packets that wait for no other one. Gives up no gap: the missing packet may be in
    /// a socket.
    fn deliver_ready(&mut self) {
        let mut numbers = std::mem::take(&mut self.senders);
        for number in numbers.drain(..) {
            let Some(peer) = self.peers.polled(number) else {
                continue;
            };
            while let Some(packet) = peer.tunnel.poll_ready() {
                self.delivered.add(&packet);
                peer.tunnel.recycle(packet);
                if self.delivered.is_full() {
                    self.dropped.not_delivered += self.device.send(&mut self.delivered);
                }
            }
        }
        self.senders = numbers;
        self.dropped.not_delivered += self.device.send(&mut self.delivered);
    }

    /// Passes a datagram to the tunnel with the index in it. An initiation has no index: the key in
    /// it gives the tunnel.
    fn on_datagram(
        &mut self,
        datagram: &mut [u8],
        from: (Route, Ecn),
        arrived: Instant,
        now: Instant,
    ) {
        let (index, path) = match Message::decode(datagram) {
            Err(_) => {
                self.rejected.malformed += 1;
                return;
            }
            Ok(Message::Initiation(initiation)) => {
                return self.on_initiation(&initiation, from.0, now);
            }
            Ok(Message::Response(response)) => (response.receiver, None),
            Ok(Message::CookieReply(reply)) => (reply.receiver, None),
            Ok(Message::StampReply(reply)) => (reply.receiver, None),
            Ok(Message::Data(header)) => (header.receiver, Some(header.path)),
        };
        let mut numbers = self.peers.with_index(index);
        let (Some(number), others) = (numbers.next(), numbers.collect::<Vec<u32>>()) else {
            self.rejected.unknown_session += 1;
            return;
        };
        // Opening may alter the datagram.
        let copy = (!others.is_empty()).then(|| datagram.to_vec());
        for other in others {
            if let (Some(mut copy), Some(peer)) = (copy.clone(), self.peers.get(other)) {
                peer.tunnel.handle_marked(&mut copy, from, arrived, now);
            }
        }
        let Some(peer) = self.peers.get(number) else {
            return;
        };
        if let Some(path) = path {
            peer.traffic[path.index()].received += datagram.len() as u64;
        }
        peer.tunnel.handle_marked(datagram, from, arrived, now);
        if self.senders.last() != Some(&number) {
            self.senders.push(number);
        }
    }

    fn on_initiation(&mut self, initiation: &Initiation, route: Route, now: Instant) {
        match self.peers.admit(initiation, route.remote, now) {
            Admission::Refused(why) => {
                self.rejected.unknown_key += 1;
                if let Some(message) = self.strangers.message(why, route.remote, now) {
                    self.log.say(&message);
                }
            }
            Admission::Limited => self.rejected.limited += 1,
            Admission::Cookie(reply) => {
                self.rejected.limited += 1;
                let reply = reply.encode();
                self.batches
                    .add(route, Marks::default(), &reply, &mut self.ways);
            }
            Admission::Copy(number) => {
                if let Some(peer) = self.peers.get(number) {
                    peer.tunnel.handle_copy(initiation, route, now);
                }
            }
            Admission::Opened(number, opened) => {
                if let Some(peer) = self.peers.get(number) {
                    peer.tunnel.handle_opened(*opened, route, now);
                }
            }
        }
    }

    fn deliver(&mut self, packet: &[u8]) {
        self.delivered.add(packet);
        if self.delivered.is_full() {
            self.dropped.not_delivered += self.device.send(&mut self.delivered);
        }
    }

    /// Sends and delivers the tunnels' datagrams and packets, all at the same time: a tunnel
    /// handles due events once per time.
    pub(super) fn flush(&mut self) {
        let now = self.now();
        self.senders.clear();
        let due = self.peers.take_due(now);
        for &number in &due {
            let Some(peer) = self.peers.polled(number) else {
                continue;
            };
            while let Some(packet) = peer.tunnel.poll_deliver(now) {
                self.delivered.add(&packet);
                peer.tunnel.recycle(packet);
                if self.delivered.is_full() {
                    self.dropped.not_delivered += self.device.send(&mut self.delivered);
                }
            }
            while let Some(transmit) = peer.tunnel.poll_transmit(now, &mut self.buffer) {
                peer.traffic[transmit.path.index()].sent += self.buffer.len() as u64;
                let marks = Marks {
                    ecn: transmit.ecn,
                    is_confirmed: peer.delivers(transmit.path),
                    is_alone: transmit.is_mtu_probe,
                };
                let route = transmit.route;
                if !self.ways.is_closed(route.local) {
                    let octets = self.buffer.len();
                    self.usage
                        .count(route.local, is_v4(&route.remote), octets, 1);
                }
                self.batches.add(route, marks, &self.buffer, &mut self.ways);
            }
        }
        self.dropped.not_delivered += self.device.send(&mut self.delivered);
        self.batches.flush(&mut self.ways);
        self.dropped.not_sent = self.batches.not_sent;
        for &number in &due {
            self.follow_peer(number);
            self.peers.settle(number, now);
        }
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

fn is_v4(remote: &SocketAddr) -> bool {
    remote.ip().to_canonical().is_ipv4()
}

fn destination(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => Some(packet.get(16..20)?.first_chunk::<4>().copied()?.into()),
        6 => Some(packet.get(24..40)?.first_chunk::<16>().copied()?.into()),
        _ => None,
    }
}
