//! The hot path: segments of the steady state and, in [`recovery`], of the repair of losses.
//!
//! In a bulk transfer most segments are data in order, or acknowledge whole segments of it.
//! [`Endpoint::is_hot_sender`] and [`Endpoint::is_hot_receiver`] check every condition that such
//! segments cannot change. The owner calls one of them after every other event and keeps the
//! result. While it holds, [`Endpoint::hot_data`], [`Endpoint::hot_ack`] and [`Endpoint::hot_send`]
//! replace [`Endpoint::on_segment`] and [`Endpoint::poll_transmit`]. They check what a segment can
//! change before they change anything, and otherwise leave the segment to the general path. The
//! state afterwards is the general path's, of which each step names the function.

mod recovery;

use anabranch_core::{
    body::Body,
    packet::Ecn,
    units::{Bytes, Instant},
};

use super::Endpoint;
use crate::{
    clock::age_tick, send_limit::SendLimit, send_queue::Stream, settings::Settings, state::State,
};
use anabranch_congestion::Ack;
use anabranch_wire::segment::{Flags, Options, Segment};

/// Result of [`Endpoint::hot_data`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HotData {
    /// The segment is left to the general path.
    NotHot,
    /// The data is taken, and its acknowledgment waits.
    Waits,
    /// The acknowledgment has replaced the data in its place; the IP packet has this size.
    Answered(u32),
}

/// Result of [`Endpoint::hot_send`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HotSend {
    /// A segment was written; the IP packet has this size. Another may follow.
    Sent(u32),
    /// The same, and the window is used up.
    SentLast(u32),
    /// The window is used up.
    Full,
    /// The next segment is left to the general path.
    NotHot,
}

/// Whether these settings permit the hot path at all. A new setting must be listed here.
pub(super) fn permits(settings: &Settings) -> bool {
    let Settings {
        // Checked by a part of the endpoint below.
        segmentation: _,
        pacing: _,
        idle_restart: _,
        mtu_discovery: _,
        ecn: _,
        tlp: _,
        receive_autotuning: _,
        delayed_ack: _,
        timers,
        // Taken into account by the functions that the hot path calls.
        mss: _,
        timestamps: _,
        window_scaling: _,
        initial_cwnd: _,
        min_rto: _,
        max_rto: _,
        initial_rto: _,
        send_buffer: _,
        send_autotuning_start: _,
        receive_window: _,
        cwnd_validation: _,
        window_rules: _,
        hystart: _,
        slow_start_limit: _,
        arithmetic: _,
        // Without effect outside a recovery, whose segments take functions of the general path.
        reordering: _,
        sack: _,
        dsack: _,
        recovery: _,
        recovery_pace: _,
        dupthresh: _,
        max_dupthresh: _,
        frto: _,
        eifel: _,
        undo: _,
        limited_transmit: _,
        recover_inclusive: _,
        partial_ack_restarts_timer: _,
        receiver: _,
        // Read only by functions of the general path.
        challenge_ack_interval: _,
        clock_tick: _,
        retries: _,
        syn_retries: _,
        syn_ack_retries: _,
        nagle: _,
        time_wait: _,
        reduce_from: _,
    } = settings;
    !timers.count_ticks()
}

/// The conditions.
impl<B: Body> Endpoint<B> {
    /// Whether neither half has anything to do but for the next segment and one timer.
    fn is_at_rest(&self) -> bool {
        self.permits_hot
            && self.state == State::Established
            && self.rcv.is_at_rest()
            && !self.snd.wake
            && self.snd.queue.stream() == Stream::Open
            && self.snd.pacer.deadline() == Instant::NEVER
            && self.snd.window.deadline() == Instant::NEVER
    }

    /// Whether [`Self::hot_ack`] may be called, and [`Self::hot_other_ack`] after it.
    #[must_use]
    pub fn is_hot_sender(&self) -> bool {
        let snd = &self.snd;
        self.is_at_rest()
            && !self.rcv.gaps
            && snd.recovery.permits_hot()
            && snd.recovery.timer().waits_for_ack()
            && !snd.window.is_rated()
            && !snd.window.is_validated()
            && !snd.window.hears_sent()
            && !snd.pacer.is_active()
            && !snd.mtu.suspects()
            && self.rcv.has_answered()
    }

    /// Whether [`Self::hot_data`] may be called.
    #[must_use]
    pub fn is_hot_receiver(&self) -> bool {
        let snd = &self.snd;
        self.is_at_rest() && snd.recovery.is_idle() && snd.nxt >= snd.queue.end()
    }

    /// Whether the segment is the next one of the peer and has nothing unusual in its header:
    /// `is_usual`.
    #[inline]
    fn is_next(&self, segment: &Segment<B>) -> bool {
        segment.seq == self.rcv.nxt.wire()
            && segment.options == Options::None
            && self.has_usual_timestamp(segment)
    }

    /// The timestamp of the next segment: `on_usual_segment`.
    #[inline]
    fn take_timestamp(&mut self, now: Instant, segment: &Segment<B>) {
        if let Some(timestamps) = segment.timestamps {
            self.rcv.ts_recent = timestamps.value;
            self.rcv.ts_recent_at = age_tick(now);
        }
    }
}

/// The work.
impl<B: Body> Endpoint<B> {
    /// Takes the data in `place`. An acknowledgment that is due replaces it.
    #[expect(
        clippy::inline_always,
        reason = "measured: each has one caller that counts"
    )]
    #[inline(always)]
    pub fn hot_data(&mut self, now: Instant, place: &mut Segment<B>, ecn: Ecn) -> HotData {
        debug_assert!(self.is_hot_receiver(), "judged after the last event");
        let len = place.body.len();
        let (snd, rcv) = (&self.snd, &self.rcv);
        if self.rcv.gaps
            || place.flags.without(Flags::PSH) != Flags::ACK
            || !self.is_next(place)
            || len == 0
            || u64::from(len) > rcv.edge.since(rcv.nxt)
            || ecn == Ecn::Ce
            || place.ack != snd.peer.una().wire()
            || snd.peer.scaled(place.window) != snd.peer.wnd()
        {
            return self.hot_data_at_gap(now, place, ecn);
        }
        // `on_usual_segment`
        self.rcv.stats.received_packets += 1;
        if self.rcv.nxt <= self.rcv.acked {
            self.take_timestamp(now, place);
        }
        let rcv = &mut self.rcv;
        rcv.nxt += u64::from(len);
        rcv.deliver(&place.body);
        if rcv.agreed.tuned {
            rcv.tune_in_order(now, place);
        }
        rcv.ack.in_order(now, self.snd.rtt.rto(), false);
        if place.flags != Flags::ACK || len < self.snd.smss {
            rcv.on_push();
        }
        if !rcv.ack.due() {
            return HotData::Waits;
        }
        // `next_outgoing`, `Receiver::acknowledgment`
        rcv.stats.sent_acks += 1;
        let window = rcv.advertise();
        rcv.acked = rcv.nxt;
        rcv.ack.sent();
        HotData::Answered(rcv.hot_outgoing(
            now,
            self.snd.nxt,
            window,
            (Flags::ACK, B::default()),
            place,
        ))
    }

    /// Processes an acknowledgment of whole segments, but not of all that are outstanding. Returns
    /// `false` if it is left to the general path.
    #[expect(
        clippy::inline_always,
        reason = "measured: each has one caller that counts"
    )]
    #[inline(always)]
    pub fn hot_ack(&mut self, now: Instant, segment: &Segment<B>, ecn: Ecn) -> bool {
        debug_assert!(self.is_hot_sender(), "judged after the last event");
        let una = self.snd.peer.una();
        let ack = una.near(segment.ack);
        if segment.flags != Flags::ACK
            || !self.is_next(segment)
            || !segment.body.is_empty()
            || ecn == Ecn::Ce
            || ack <= una
            || ack >= self.snd.nxt
            || !self.snd.recovery.is_undisturbed()
        {
            return false;
        }
        // `on_plain_progress`
        let prior_in_flight = self.snd.recovery.in_flight();
        let Some(plain) = self.snd.recovery.on_plain_ack(ack) else {
            return false;
        };
        // `on_usual_segment`
        self.rcv.stats.received_packets += 1;
        // All data is acknowledged: `has_answered`.
        self.take_timestamp(now, segment);
        // `Sender::on_acknowledgment`
        let snd = &mut self.snd;
        snd.peer.update(segment.window, self.rcv.nxt, ack);
        // `on_plain_progress`
        snd.advance(now, ack);
        let rtt = now.saturating_since(plain.last_sent_at);
        snd.rtt.note_min(rtt);
        let (flight, bounds) = (snd.flight(), snd.settings.rto_bounds());
        snd.rtt
            .sample(now.saturating_since(plain.first_sent_at), &flight, &bounds);
        // `after_progress`
        snd.pacer.on_rate_change();
        snd.window.ends_round(ack, snd.nxt);
        snd.recovery.restart_timers(now, &snd.rtt, &snd.settings);
        let acked = Bytes::new(plain.octets);
        let srtt = snd.rtt.srtt();
        let cwnd_limited = snd.window.is_limiting(now, ack, acked.get(), srtt);
        snd.window.on_hot_ack(&Ack {
            now,
            acked,
            sacked: Bytes::ZERO,
            delivered: acked,
            lost: Bytes::ZERO,
            ce_marked: Bytes::ZERO,
            prior_in_flight: Bytes::new(prior_in_flight),
            in_flight: Bytes::new(snd.recovery.in_flight()),
            rtt: Some(rtt),
            rtt_by_timestamp: None,
            srtt,
            min_rtt: snd.rtt.min_rtt(),
            rate: None,
            round: snd.window.round(),
            cwnd_limited,
            app_limited: snd.limits.limit() == SendLimit::Application,
            in_recovery: false,
        });
        true
    }

    /// Writes the next segment of new data to `place`. Called after [`Self::hot_ack`] until there
    /// is none.
    #[expect(
        clippy::inline_always,
        reason = "measured: each has one caller that counts"
    )]
    #[inline(always)]
    pub fn hot_send(&mut self, now: Instant, place: &mut Segment<B>) -> HotSend {
        let snd = &mut self.snd;
        let (start, len) = (snd.nxt, snd.smss);
        let whole = u64::from(len);
        let left = snd.edge().min(snd.queue.end()).since(start);
        let window = snd.window.available();
        let in_flight = snd.recovery.in_flight();
        if left < 2 * whole || in_flight == 0 {
            // Little data or window is left after this segment (PSH, a part of a segment, a limit
            // other than cwnd: `note_used_window`), or nothing is in flight (`note_idle`).
            snd.wake = true;
            return HotSend::NotHot;
        }
        if in_flight + whole > window {
            // `new_data`
            snd.note_cwnd_limit(now);
            return HotSend::Full;
        }
        let full = in_flight + 2 * whole > window;
        let mut flags = Flags::ACK;
        if snd.pacer.sends_bursts() {
            // `new_data`
            if snd.queue.chunk_left(start, whole) <= whole {
                // `ends_chunk` handles the last segment of a chunk.
                snd.wake = true;
                return HotSend::NotHot;
            }
            if snd.pacer.begins_burst(now) && snd.is_deferred(now, window, in_flight) {
                snd.note_deferral(now, window, in_flight);
                return HotSend::Full;
            }
            // Measured before the segment is counted.
            snd.longest_burst();
            if snd.pacer.ends_burst(now, !full) {
                flags |= Flags::PSH;
            }
        }
        // `transmit_new`
        let body = snd.queue.body(start, len);
        snd.nxt += whole;
        snd.recovery
            .on_hot_sent(now, start, len, &snd.rtt, &snd.settings);
        snd.stats.sent_packets += 1;
        snd.pacer.on_sent(now);
        if full {
            // `note_used_window`
            snd.note_cwnd_limit(now);
        }
        let rcv = &mut self.rcv;
        let size = rcv.hot_outgoing(now, start, rcv.field, (flags, body), place);
        rcv.ack.answered(now);
        if full {
            HotSend::SentLast(size)
        } else {
            HotSend::Sent(size)
        }
    }

    /// The deadline of a hot sender: [`Self::deadline`].
    #[must_use]
    #[inline]
    pub const fn hot_sender_deadline(&self) -> Instant {
        self.snd.recovery.deadline()
    }

    /// The deadline of a hot receiver: [`Self::deadline`].
    #[must_use]
    #[inline]
    pub const fn hot_receiver_deadline(&self) -> Instant {
        self.rcv.ack.deadline()
    }
}
