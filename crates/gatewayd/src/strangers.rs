//! Messages about handshakes of no peer. Anyone can send such handshakes: the number of messages is
//! limited, and each origin has one now and then.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
};

use anabranch_core::units::Duration;
use anabranch_gateway::{
    crypto::{Meter, Unread},
    time::Instant,
};

use crate::key::Key;

/// An origin has another message after this time.
const AGAIN: Duration = Duration::from_secs(600);
/// Remembered origins; another one replaces the oldest.
const MOST: usize = 64;
/// Messages per second in the long run, and in a row.
const PER_S: f64 = 1.0 / 60.0;
const BURST: f64 = 5.0;

/// An origin: the public key that it claims, or its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    Key([u8; 32]),
    Address(IpAddr),
}

/// The origins of handshakes that were refused.
#[derive(Debug)]
pub struct Strangers {
    known: BTreeMap<Origin, Instant>,
    rate: Meter,
}

impl Default for Strangers {
    fn default() -> Self {
        Self {
            known: BTreeMap::new(),
            rate: Meter::new(PER_S, BURST),
        }
    }
}

impl Strangers {
    /// The message about a handshake that was refused, if it is time for one.
    pub fn message(&mut self, why: Unread, from: SocketAddr, now: Instant) -> Option<String> {
        let (origin, what) = match why {
            Unread::Unknown(key) => (
                Origin::Key(key),
                format!("has the public key {}, which no peer here has", Key(key)),
            ),
            Unread::Misdirected => (
                Origin::Address(from.ip()),
                "is not for this gateway's public key".to_owned(),
            ),
            Unread::Unauthentic => return None,
        };
        let is_recent = |at: &Instant| now.saturating_since(*at) < AGAIN;
        if self.known.get(&origin).is_some_and(is_recent) || !self.rate.take(0.0, now) {
            return None;
        }
        if self.known.len() >= MOST {
            let oldest = self.known.iter().min_by_key(|(_, at)| **at);
            let oldest = oldest.map(|(origin, _)| *origin);
            oldest.and_then(|oldest| self.known.remove(&oldest));
        }
        self.known.insert(origin, now);
        Some(format!("a handshake from {from} {what}"))
    }
}

#[cfg(test)]
mod tests {
    use super::{AGAIN, BURST, Duration, Instant, MOST, Strangers, Unread};

    #[test]
    fn an_origin_has_one_message_now_and_then() {
        let mut strangers = Strangers::default();
        let mut now = Instant::START;
        let from = "192.0.2.1:7".parse().expect("an address");
        let unknown = Unread::Unknown([9; 32]);
        let said = strangers.message(unknown, from, now).expect("the first");
        assert_eq!(
            said,
            "a handshake from 192.0.2.1:7 has the public key \
             CQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQk=, which no peer here has"
        );
        assert_eq!(strangers.message(unknown, from, now), None);
        assert_eq!(strangers.message(Unread::Unauthentic, from, now), None);
        let said = strangers.message(Unread::Misdirected, from, now);
        let expected = "a handshake from 192.0.2.1:7 is not for this gateway's public key";
        assert_eq!(said.as_deref(), Some(expected));
        now = now + AGAIN;
        assert!(strangers.message(unknown, from, now).is_some());
    }

    #[test]
    fn many_origins_have_few_messages() {
        let mut strangers = Strangers::default();
        let mut now = Instant::START;
        let from = "192.0.2.1:7".parse().expect("an address");
        let mut said = 0.0;
        for number in 0..100_000_u32 {
            let mut key = [0; 32];
            key[..4].copy_from_slice(&number.to_be_bytes());
            let message = strangers.message(Unread::Unknown(key), from, now);
            said += f64::from(u8::from(message.is_some()));
            now = now + Duration::from_millis(100);
        }
        // 10,000 s.
        assert!(said <= BURST + 167.0, "{said}");
        assert!(strangers.known.len() <= MOST);
    }
}
