//! A sender whose acknowledgments are written by the test.

use anabranch_core::{body::Length, packet::Ecn, units::Instant};
use anabranch_tcp::{
    DelayedAck, EcnMode, Endpoint, Profile, Recovery, RetransmitCause, Role, Settings, Stats,
    WindowChange,
};
use anabranch_wire::{Flags, Options, SackBlock, Segment, Timestamps};

use super::endpoint;

pub const MSS: u32 = 1000;

pub fn ms(n: u64) -> Instant {
    Instant::from_millis(n)
}

/// Only RACK-TLP as in RFC 8985.
pub fn racked() -> Settings {
    Settings {
        mss: MSS,
        delayed_ack: DelayedAck::Off,
        timestamps: false,
        recovery: Recovery::Rack,
        tlp: true,
        ..Profile::named("rfc").expect("it exists").settings
    }
}

/// Everything on.
pub fn all() -> Settings {
    Settings {
        mss: MSS,
        delayed_ack: DelayedAck::Off,
        ..Profile::named("linux").expect("it exists").settings
    }
}

/// A transmission: the number of the segment, counted from 0, and the cause of a retransmission.
pub type Left = (u32, Option<RetransmitCause>);

pub fn first(numbers: std::ops::Range<u32>) -> Vec<Left> {
    numbers.map(|n| (n, None)).collect()
}
pub fn again(cause: RetransmitCause, numbers: &[u32]) -> Vec<Left> {
    numbers.iter().map(|&n| (n, Some(cause))).collect()
}

pub struct Sender {
    pub end: Endpoint<Length>,
    pub now: Instant,
    /// The timestamp that the peer echoes.
    pub echo: u32,
    /// One past the highest segment sent.
    pub behind: u32,
}

impl Sender {
    /// An open connection with a round-trip time of 40 ms, with the clock at that time.
    pub fn new(settings: &Settings) -> Self {
        let mut end: Endpoint<Length> = endpoint(settings, Role::Active, 0);
        end.keep_window_log();
        end.open(Instant::START);
        end.poll_transmit(Instant::START).expect("a SYN");
        let mut sender = Self {
            end,
            now: ms(40),
            echo: 0,
            behind: 0,
        };
        let mut answer = sender.segment(0, &[]);
        answer.seq = 99;
        answer.flags = Flags::SYN | Flags::ACK;
        if settings.ecn == EcnMode::Rfc3168 {
            answer.flags |= Flags::ECE;
        }
        answer.options = Options::Syn {
            mss: u16::try_from(settings.mss).unwrap() + if settings.timestamps { 12 } else { 0 },
            window_scale: Some(7),
            sack_permitted: settings.sack,
            accecn: None,
            fast_open: None,
        };
        sender.end.on_segment(ms(40), &answer, Ecn::NotEct);
        assert!(sender.left().is_empty());
        sender
    }

    /// An acknowledgment of a peer that expects segment `ack` and has the segments `from..to`.
    pub fn segment(&self, ack: u32, blocks: &[(u32, u32)]) -> Segment<Length> {
        let octet = |n: u32| 1 + n * MSS;
        let mut list = [SackBlock::default(); 4];
        for (slot, &(from, to)) in list.iter_mut().zip(blocks) {
            *slot = SackBlock {
                left: octet(from),
                right: octet(to),
            };
        }
        Segment {
            seq: 100,
            ack: octet(ack),
            window: 60_000,
            flags: Flags::ACK,
            timestamps: self.end.settings().timestamps.then_some(Timestamps {
                value: u32::try_from(self.now.as_picos() / 1_000_000_000).unwrap(),
                echo: self.echo,
            }),
            options: if blocks.is_empty() {
                Options::None
            } else {
                Options::Sack(u8::try_from(blocks.len()).unwrap(), list)
            },
            body: Length(0),
        }
    }

    pub fn left(&mut self) -> Vec<Left> {
        let mut left = Vec::new();
        while let Some(out) = self.end.poll_transmit(self.now) {
            if out.segment.body.0 > 0 {
                let number = (out.segment.seq - 1) / MSS;
                self.behind = self.behind.max(number + 1);
                left.push((number, out.retransmission));
            }
        }
        left
    }

    pub fn write(&mut self, at: u64, segments: u32) -> Vec<Left> {
        self.now = ms(at);
        self.end.write_all(Length(segments * MSS));
        self.left()
    }

    pub fn ack(&mut self, at: u64, ack: u32, blocks: &[(u32, u32)]) -> Vec<Left> {
        self.now = ms(at);
        let segment = self.segment(ack, blocks);
        self.end.on_segment(self.now, &segment, Ecn::NotEct);
        self.left()
    }

    /// Like [`Self::ack`], with the echo of a mark.
    pub fn ack_with_echo(&mut self, at: u64, ack: u32) -> Vec<Left> {
        self.now = ms(at);
        let mut segment = self.segment(ack, &[]);
        segment.flags |= Flags::ECE;
        self.end.on_segment(self.now, &segment, Ecn::NotEct);
        self.left()
    }

    /// Advances to the next deadline.
    pub fn expire(&mut self) -> Vec<Left> {
        self.now = self.now.max(self.end.deadline());
        self.end.on_deadline(self.now);
        self.left()
    }

    /// Advances to the next deadline, which must be at this time.
    pub fn wait(&mut self, at: u64) -> Vec<Left> {
        assert_eq!(self.end.deadline(), ms(at));
        self.expire()
    }

    pub fn stats(&self) -> Stats {
        self.end.stats()
    }
    pub fn cwnd(&self) -> u64 {
        self.end.cwnd().get() / u64::from(MSS)
    }
    pub fn changes(&mut self) -> Vec<WindowChange> {
        let log = self.end.take_window_log();
        log.into_iter().map(|event| event.change).collect()
    }
}
