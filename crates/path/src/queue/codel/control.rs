//! CoDel's control law, for a single queue or each of many (RFC 8289 §5.5, §5.6).

use anabranch_core::units::{Duration, Instant};

use crate::queue::{Item, QueueContext};

/// Parameters of the control law.
#[derive(Debug, Clone, Copy)]
pub(in crate::queue) struct Settings {
    pub target: Duration,
    pub interval: Duration,
    /// Backlog in bytes up to which nothing is dropped: one packet.
    pub mtu: u64,
    /// Marks instead of dropping.
    pub ecn: bool,
    pub ce_threshold: Option<Duration>,
}

/// Packets under one control law.
pub(in crate::queue) trait Waiting {
    /// Takes the first packet.
    fn take(&mut self) -> Option<Item>;
    /// Bytes that wait.
    fn bytes(&self) -> u64;
}

/// The state of one control law, named as in RFC 8289 §5.2.
#[derive(Debug, Clone, Copy)]
pub(in crate::queue) struct Control {
    /// When the sojourn time will have been above the target for an interval; [`Instant::NEVER`]
    /// while it is below.
    first_above_time: Instant,
    drop_next: Instant,
    count: u32,
    lastcount: u32,
    dropping: bool,
}

/// Packet taken from the head.
struct Head {
    item: Item,
    ok_to_drop: bool,
}

impl Control {
    pub const NEW: Self = Self {
        first_above_time: Instant::NEVER,
        drop_next: Instant::START,
        count: 0,
        lastcount: 0,
        dropping: false,
    };

    /// Notes that the queue is empty, or that its packet has not waited.
    #[inline]
    pub fn idle(&mut self) {
        self.first_above_time = Instant::NEVER;
        self.dropping = false;
    }

    /// Returns the packet to send, if one waits (RFC 8289 §5.5).
    #[inline]
    pub fn dequeue(
        &mut self,
        settings: &Settings,
        waiting: &mut impl Waiting,
        cx: &mut QueueContext<'_>,
    ) -> Option<Item> {
        let mut head = self.look(settings, waiting, cx.now);
        let above = head.as_ref().is_some_and(|head| head.ok_to_drop);
        if self.dropping || above {
            self.act(settings, waiting, cx, &mut head);
        }
        let mut item = head?.item;
        if let Some(threshold) = settings.ce_threshold
            && sojourn(&item, cx.now) > threshold
            && item.ecn != anabranch_core::packet::Ecn::Ce
        {
            cx.mark(&mut item);
        }
        Some(item)
    }

    /// Drops or marks packets while the sojourn time is above the target, or leaves the dropping
    /// state.
    fn act(
        &mut self,
        settings: &Settings,
        waiting: &mut impl Waiting,
        cx: &mut QueueContext<'_>,
        head: &mut Option<Head>,
    ) {
        let ok_to_drop = |head: &Option<Head>| head.as_ref().is_some_and(|head| head.ok_to_drop);
        if !self.dropping {
            self.signal(settings, waiting, cx, head);
            self.dropping = true;
            // If the last dropping period is recent, start at the rate that sufficed then.
            let delta = self.count - self.lastcount;
            let since = cx.now.saturating_since(self.drop_next);
            let recent = since < settings.interval.saturating_mul(16);
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.lastcount = self.count;
            self.drop_next = control_law(settings, cx.now, self.count);
            return;
        }
        self.dropping = ok_to_drop(head);
        while self.dropping && cx.now >= self.drop_next {
            self.count = self.count.saturating_add(1);
            let marked = self.signal(settings, waiting, cx, head);
            self.dropping = ok_to_drop(head);
            if self.dropping {
                self.drop_next = control_law(settings, self.drop_next, self.count);
            }
            if marked {
                break;
            }
        }
    }

    /// Marks the packet, or drops it and takes the next. Returns whether it was marked.
    fn signal(
        &mut self,
        settings: &Settings,
        waiting: &mut impl Waiting,
        cx: &mut QueueContext<'_>,
        head: &mut Option<Head>,
    ) -> bool {
        let Some(taken) = head else {
            return false;
        };
        if settings.ecn && cx.mark(&mut taken.item) {
            return true;
        }
        cx.drop(taken.item);
        *head = self.look(settings, waiting, cx.now);
        false
    }

    /// Takes the first packet and checks its sojourn time (RFC 8289 §5.6).
    #[inline]
    fn look(
        &mut self,
        settings: &Settings,
        waiting: &mut impl Waiting,
        now: Instant,
    ) -> Option<Head> {
        let Some(item) = waiting.take() else {
            self.first_above_time = Instant::NEVER;
            return None;
        };
        let mut ok_to_drop = false;
        if sojourn(&item, now) < settings.target || waiting.bytes() <= settings.mtu {
            self.first_above_time = Instant::NEVER;
        } else if self.first_above_time == Instant::NEVER {
            self.first_above_time = now.saturating_add(settings.interval);
        } else {
            ok_to_drop = now >= self.first_above_time;
        }
        Some(Head { item, ok_to_drop })
    }
}

#[inline]
fn sojourn(item: &Item, now: Instant) -> Duration {
    now.saturating_since(item.arrived)
}

fn control_law(settings: &Settings, t: Instant, count: u32) -> Instant {
    t.saturating_add(settings.interval.mul_f64(1.0 / f64::from(count).sqrt()))
}
