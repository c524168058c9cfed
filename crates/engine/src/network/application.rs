//! Applications over our TCP, and the two ends of a connection that they use.

use std::sync::Arc;

use anabranch_congestion::{self as cc};
use anabranch_core::{body::Body, units::Instant};
use anabranch_fec::{self as fec};
use anabranch_tcp::{Endpoint, Role, Settings, State};

use super::{
    agent::End,
    script::{self, Late, Script, Tardiness},
};

/// The application at an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum App {
    /// Sends until it is stopped.
    Bulk,
    /// Sends this many bytes, then closes.
    File(u64),
    /// Receives, and closes after the other end has closed.
    Sink,
    /// Driven by the clock, or by received data.
    Scripted(Box<Script>),
    /// Begins some time after the connection is established.
    Late(Box<Late>),
    /// Has finished sending.
    Finished,
}

/// Both ends of a TCP connection: the sender opens it, and the receiver listens and reads.
pub(super) fn tcp_ends<B: Body>(
    settings: &Arc<Settings>,
    control: &cc::Config,
    fec: &fec::Config,
    app: App,
    (tardiness, number): (&Tardiness, u64),
) -> [End<B>; 2] {
    let reader = tardiness.reader(number);
    let app = tardiness.writer(number, app);
    let reads_at_once = reader.is_none();
    let sink = reader.map_or(App::Sink, |reader| {
        App::Scripted(Box::new(Script::Reader(reader)))
    });
    let mut ends = ends(
        (settings, control, fec),
        [(Role::Active, app), (Role::Passive, sink)],
    );
    if let Some((endpoint, _)) = ends[1].tcp_mut() {
        endpoint.set_auto_read(reads_at_once);
    }
    ends
}

/// Both ends of a connection that the far end opens, as clients do.
pub(super) fn exchange_ends<B: Body>(
    settings: &Arc<Settings>,
    control: &cc::Config,
    fec: &fec::Config,
    scripts: [Script; 2],
) -> [End<B>; 2] {
    let [server, client] = scripts.map(|script| App::Scripted(Box::new(script)));
    ends(
        (settings, control, fec),
        [(Role::Passive, server), (Role::Active, client)],
    )
}

fn ends<B: Body>(
    (settings, control, fec): (&Arc<Settings>, &cc::Config, &fec::Config),
    ends: [(Role, App); 2],
) -> [End<B>; 2] {
    ends.map(|(role, app)| {
        let endpoint = Endpoint::controlled_by(settings, control, role, 0);
        match fec {
            fec::Config::Off => End::Tcp(endpoint, app),
            fec => End::Protected(Box::new(fec::Protected::new(endpoint, fec)), app),
        }
    })
}

/// The period of a bulk application's stream, in octets.
pub(super) const PATTERN: u32 = 251 * 256;

/// [`drive`], out of line: it is inlined only for bare TCP, which has nothing to do in most cases.
#[inline(never)]
pub(super) fn drive_rarely<B: Body>(
    endpoint: &mut Endpoint<B>,
    app: &mut App,
    now: Instant,
    wake: &mut Instant,
) {
    drive(endpoint, app, now, wake);
}

/// Stops the application.
pub(super) fn stop<B: Body>(
    endpoint: &mut Endpoint<B>,
    app: &mut App,
    now: Instant,
    wake: &mut Instant,
) {
    match app {
        App::Scripted(script) => script.stop(),
        App::Late(late) => {
            *wake = Instant::NEVER;
            *app = late.stop();
        }
        App::Bulk | App::File(_) | App::Sink | App::Finished => *app = App::Finished,
    }
    // The remainder of a late application is a file, which is written next before the connection is
    // closed.
    if !matches!(app, App::File(_)) {
        endpoint.abandon(now);
    }
}

/// Runs the application. A scripted one sets the time at which it continues.
#[expect(
    clippy::inline_always,
    reason = "measured: most often nothing is to be done"
)]
#[inline(always)]
pub(super) fn drive<B: Body>(
    endpoint: &mut Endpoint<B>,
    app: &mut App,
    now: Instant,
    wake: &mut Instant,
) {
    // A close before the handshake is complete would abort the connection (RFC 9293 §3.10.4).
    if matches!(
        endpoint.state(),
        State::Closed | State::Listen | State::SynSent | State::SynReceived
    ) {
        return;
    }
    match app {
        App::Bulk => {
            endpoint.write_repeating(B::filler(PATTERN));
            *app = App::Finished;
        }
        App::File(remaining) => {
            script::write(endpoint, *remaining);
            endpoint.close();
            *app = App::Finished;
        }
        App::Sink => {
            if matches!(endpoint.state(), State::CloseWait) {
                endpoint.close();
                *app = App::Finished;
            }
        }
        App::Scripted(script) => *wake = script.drive(endpoint, now),
        App::Late(late) => {
            *wake = late.due(now);
            if *wake <= now {
                *wake = Instant::NEVER;
                *app = late.take();
                drive_rarely(endpoint, app, now, wake);
            }
        }
        App::Finished => {}
    }
}
