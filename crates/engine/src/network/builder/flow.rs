//! A flow's place in a network: its routes, and its connection or the workload that begins its
//! connections.

use std::collections::BTreeMap;

use anabranch_core::{body::Body, packet::FlowId, trace::ElementId, units::Instant};
use anabranch_path::link::Window;

use super::{
    super::{
        App, Change, End, Network,
        agent::AgentSlot,
        ahead::Approach,
        application::{exchange_ends, tcp_ends},
        connection::{Connection, Flow},
        datagrams::udp_ends,
        fabric::{LinkKind, Target},
        rounds::Round,
        script::{Script, Tardiness},
        spawner::Spawner,
    },
    FlowSpec, Stop, Traffic,
};
use crate::event_queue::{Class, Entry, Source};
use anabranch_scenario::workload::Arrivals;

/// Routes already in the table, by their stops, so that the copies of a flow share them.
type Routes = BTreeMap<Vec<(u8, u32)>, u32>;

/// The context for placing all flows of a run.
pub(super) struct Placing {
    seed: u64,
    /// The measured window.
    run: Window,
    /// See [`super::feed::folded_links`].
    folded: Vec<Option<u32>>,
    routes: Routes,
    /// The rounds of synchronized clients, by name.
    rounds: BTreeMap<String, usize>,
}

impl Placing {
    pub(super) fn new(seed: u64, run: Window, folded: Vec<Option<u32>>) -> Self {
        Self {
            seed,
            run,
            folded,
            routes: Routes::new(),
            rounds: BTreeMap::new(),
        }
    }
}

/// A connection that exists from the start of the run.
struct Standing<B: Body> {
    route: [u32; 2],
    window: Window,
    elements: [ElementId; 2],
    ends: [End<B>; 2],
    /// The index of the end that begins, and that is stopped.
    first: usize,
    start: Instant,
    stop: Option<Instant>,
    dscp: u8,
}

impl<B: Body> Network<B> {
    #[expect(clippy::too_many_lines, reason = "one arm for each kind of traffic")]
    pub(super) fn add_flow(
        &mut self,
        spec: FlowSpec<B>,
        elements: [ElementId; 2],
        placing: &mut Placing,
        ahead: [bool; 2],
    ) {
        let [receiver, sender] =
            ahead.map(|runs| if runs { Target::EndAhead } else { Target::End });
        let route = [
            self.add_route(&spec.route, receiver, placing),
            self.add_route(&spec.return_route, sender, placing),
        ];
        let run = placing.run;
        let id = FlowId(u32::try_from(self.flows.len()).expect("flows are counted in 32 bits"));
        let (window, stop) = self.measured(id, run, spec.start, spec.stop);
        let mut flow = Flow::new(spec.name, window, spec.dscp);
        let delays = [
            &spec.first_write_delays,
            &spec.read_delays,
            &spec.idle_read_delays,
        ];
        let tardiness = Tardiness::of_flow(delays, placing.seed, &flow.name);
        let standing = |ends| Standing {
            route,
            window,
            elements,
            ends,
            first: 0,
            start: spec.start,
            stop,
            dscp: spec.dscp,
        };
        match spec.traffic {
            Traffic::Poisson {
                settings,
                control,
                rate,
                sizes,
                profile,
            } => {
                flow.settings = Some(settings);
                let index = self.spawners.len();
                self.spawners.push(Spawner {
                    flow: id,
                    control,
                    fec: spec.fec,
                    arrivals: Arrivals::of_flow(
                        (rate, sizes, profile),
                        placing.seed,
                        &flow.name,
                        spec.start,
                    ),
                    stop: stop.unwrap_or(run.end()),
                    route,
                    elements,
                    vacant: Vec::new(),
                    tardiness,
                    begun: 0,
                });
                self.fabric
                    .timers
                    .push(Entry::new(spec.start, Source::new(Class::Spawn, index)));
            }
            Traffic::Tcp {
                settings,
                control,
                app,
            } => {
                let size = match app {
                    App::File(size) => size,
                    _ => u64::MAX,
                };
                let ends = tcp_ends(&settings, &control, &spec.fec, app, (&tardiness, 0));
                flow.settings = Some(settings);
                let connection = self.add_connection(id, standing(ends));
                self.connections[connection as usize].size = size;
                flow.connection = Some(connection);
            }
            Traffic::Exchange {
                settings,
                control,
                what,
                together,
            } => {
                let scripts = Script::exchange(&what, window);
                let mut ends = exchange_ends(&settings, &control, &spec.fec, scripts);
                // The server does not open the connection; the log of the other end begins when it
                // opens.
                if let (true, Some((server, _))) = (self.fabric.probe.logs(), ends[0].tcp_mut()) {
                    server.keep_window_log();
                }
                flow.settings = Some(settings);
                let standing = Standing {
                    first: 1,
                    ..standing(ends)
                };
                let connection = self.add_connection(id, standing);
                if let Some(name) = together {
                    let place = *placing.rounds.entry(name).or_insert_with(|| {
                        self.rounds.push(Round::new(&what));
                        self.rounds.len() - 1
                    });
                    self.rounds[place].join(connection);
                    let conn = &mut self.connections[connection as usize];
                    conn.round = u32::try_from(place).ok();
                    conn.size = what.response.get();
                }
                flow.connection = Some(connection);
            }
            Traffic::Datagrams(datagrams) => {
                let ends = udp_ends(datagrams, spec.start).map(|end| End::Udp(Box::new(end)));
                flow.connection = Some(self.add_connection(id, standing(ends)));
            }
            Traffic::Hosts([sender, receiver]) => {
                let ends = [End::Host(sender), End::Host(receiver)];
                flow.connection = Some(self.add_connection(id, standing(ends)));
            }
        }
        self.flows.push(flow);
    }

    /// Returns the measured window of a flow, and the time at which it is stopped if that precedes
    /// the run's end.
    fn measured(
        &mut self,
        id: FlowId,
        run: Window,
        start: Instant,
        stop: Option<Instant>,
    ) -> (Window, Option<Instant>) {
        let end = stop.map_or(run.end(), |stop| stop.min(run.end()));
        if run.start() > start {
            self.schedule(run.start(), Change::BeginMeasuring(id));
        }
        let stop = stop.filter(|stop| *stop < run.end());
        if let Some(stop) = stop {
            self.schedule(stop, Change::EndMeasuring(id));
        }
        (Window::new(start.max(run.start()), end), stop)
    }

    fn add_connection(&mut self, flow: FlowId, standing: Standing<B>) -> u32 {
        let Standing {
            route,
            window,
            elements,
            ends,
            first,
            start,
            stop,
            dscp,
        } = standing;
        let index = self.connections.len();
        let mut connection = Connection::new(flow, route, window);
        connection.started = start;
        connection.dscp = dscp;
        let identity = self.fabric.next_identity(flow);
        self.fabric.identities.push(identity);
        self.connections.push(connection);
        self.fabric.ends.extend([Approach::default(); 2]);
        for (end, element) in ends.into_iter().zip(elements) {
            let mut slot = AgentSlot::vacant(element);
            slot.end = end;
            self.agents.push(slot);
        }
        let first = index * 2 + first;
        let slot = &mut self.agents[first];
        slot.start = start;
        slot.stop = stop.unwrap_or(Instant::NEVER);
        slot.armed = start;
        self.fabric
            .timers
            .push(Entry::new(start, Source::new(Class::AgentTimer, first)));
        u32::try_from(index).expect("connections are counted in 32 bits")
    }

    fn add_route(&mut self, stops: &[Stop], end: Target, placing: &mut Placing) -> u32 {
        let key: Vec<_> = stops
            .iter()
            .map(|stop| match stop {
                Stop::Link(link) => (0, link.0),
                Stop::Middlebox(middlebox) => (1, middlebox.0),
                Stop::Processing(host) => (2, host.0),
            })
            .collect();
        // A route to an end that may run ahead is not shared in the table.
        if end == Target::End
            && let Some(&start) = placing.routes.get(&key)
        {
            return start;
        }
        let start = u32::try_from(self.fabric.routes.len()).expect("routes are counted in 32 bits");
        for stop in stops {
            if let Stop::Link(link) = stop
                && self.mtus.bounds(link.0)
            {
                self.fabric.routes.push(Target::Checked(link.0));
            }
            self.fabric.routes.push(match stop {
                Stop::Link(link) if placing.folded[link.0 as usize].is_some() => {
                    Target::Folded(link.0)
                }
                Stop::Link(link) => match self.fabric.links[link.0 as usize].kind {
                    LinkKind::Plain(_) => Target::Plain(link.0),
                    LinkKind::Served(_) => Target::Served(link.0),
                },
                Stop::Middlebox(middlebox) => Target::Middlebox(middlebox.0),
                Stop::Processing(host) => Target::Processing(host.0),
            });
        }
        self.fabric.routes.push(end);
        if end == Target::End {
            placing.routes.insert(key, start);
        }
        start
    }
}
