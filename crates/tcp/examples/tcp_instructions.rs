//! Two endpoints back to back, for counting instructions: `tcp_instructions PACKETS [PROFILE]`
//! under `valgrind --tool=callgrind`, twice with different counts, so that set-up cancels. The
//! endpoints' own share is the inclusive cost of [`arrive`] and [`leave`].

use std::{collections::VecDeque, sync::Arc};

use anabranch_congestion::{Config, Init};
use anabranch_core::{
    body::Length,
    packet::Ecn,
    units::{Bytes, Duration, Instant, text::Limit},
};
use anabranch_tcp::{DelayedAck, Endpoint, Outgoing, Profile, Role};
use anabranch_wire::Segment;

#[inline(never)]
fn arrive(end: &mut Endpoint<Length>, now: Instant, segment: &Segment<Length>) {
    end.on_segment(now, segment, Ecn::NotEct);
}

#[inline(never)]
fn leave(end: &mut Endpoint<Length>, now: Instant) -> Option<Outgoing<Length>> {
    end.poll_transmit(now)
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let packets: u64 = arguments
        .next()
        .and_then(|a| a.parse().ok())
        .unwrap_or(100_000);
    let profile = arguments.next().unwrap_or_else(|| "rfc".to_owned());
    let mut settings = Profile::named(&profile).expect("a profile").settings;
    settings.delayed_ack = DelayedAck::Off;
    // The send buffer ends slow start: no losses, and more data than leaves.
    settings.send_buffer = Limit::Packets(100);
    let settings = Arc::new(settings);
    let config = Config::Reno(anabranch_congestion::reno::Params::default());
    let control = || {
        config.build(&Init::new(
            Bytes::new(u64::from(settings.mss)),
            settings.initial_cwnd_bytes(),
        ))
    };
    let mut sender = Endpoint::<Length>::new(&settings, control(), Role::Active, 1);
    let mut receiver = Endpoint::<Length>::new(&settings, control(), Role::Passive, 2);
    let mut data: VecDeque<(Instant, Segment<Length>)> = VecDeque::with_capacity(1024);
    let mut acks: VecDeque<(Instant, Segment<Length>)> = VecDeque::with_capacity(1024);
    let (gap, delay) = (Duration::from_micros(12), Duration::from_millis(5));
    let mut now = Instant::START;
    let mut free_at = now;
    sender.write_endless();
    sender.open(now);
    loop {
        while let Some(out) = leave(&mut sender, now) {
            free_at = free_at.max(now) + gap;
            data.push_back((free_at + delay, out.segment));
        }
        if sender.stats().sent_packets >= packets {
            break;
        }
        let next = |queue: &VecDeque<(Instant, Segment<Length>)>| {
            queue.front().map_or(Instant::NEVER, |f| f.0)
        };
        if next(&acks) <= next(&data) {
            let Some((at, segment)) = acks.pop_front() else {
                break;
            };
            now = at;
            arrive(&mut sender, now, &segment);
        } else if let Some((at, segment)) = data.pop_front() {
            now = at;
            arrive(&mut receiver, now, &segment);
            while let Some(out) = leave(&mut receiver, now) {
                acks.push_back((now + delay, out.segment));
            }
        }
        if sender.deadline() <= now {
            sender.on_deadline(now);
        }
    }
    assert_eq!(sender.stats().retransmitted_packets, 0);
    println!(
        "{} packets sent, {} bytes delivered, {} bytes of an endpoint",
        sender.stats().sent_packets,
        receiver.stats().delivered_bytes,
        size_of::<Endpoint<Length>>()
    );
}
