//! Queues distinguish connections as by addresses and ports: no two transfers share a number, and
//! all packets of a transfer have its number.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex},
};

use anabranch_core::units::{Rate, text::Limit};
use anabranch_engine::Simulation;
use anabranch_path::queue::{Factory, Init, Item, QueueContext, QueueDiscipline};
use anabranch_scenario::{Extensions, Scenario};

/// Flow and connection of every packet, in order of arrival.
type Seen = Arc<Mutex<Vec<(u32, u32)>>>;

#[derive(Debug)]
struct Witness {
    seen: Seen,
    items: VecDeque<Item>,
}

impl QueueDiscipline for Witness {
    fn enqueue(&mut self, item: Item, _cx: &mut QueueContext<'_>) {
        let mut seen = self.seen.lock().expect("one thread");
        seen.push((item.flow.0, item.connection.0));
        self.items.push_back(item);
    }
    fn dequeue(&mut self, _cx: &mut QueueContext<'_>) -> Option<Item> {
        self.items.pop_front()
    }
    fn len(&self) -> usize {
        self.items.len()
    }
    fn bytes(&self) -> u64 {
        0
    }
    fn set_limit(&mut self, _limit: Limit) -> bool {
        false
    }
}

#[test]
fn successive_transfers_are_separate_connections() {
    let text = r#"
        duration = "20 s"
        [link.path]
        between = ["A", "B"]
        rate = "10 Mbit/s"
        delay = "5 ms"
        forward.queue = "witness"
        [flow.bulk]
        from = "A"
        to = "B"
        count = 2
        stop = "1 s"
        [flow.web]
        from = "A"
        to = "B"
        workload = { kind = "poisson", rate = "1 Mbit/s", sizes = { kind = "fixed", size = "20 kB" } }
        "#;
    let seen = Seen::default();
    let names = Arc::new(Mutex::new(Vec::new()));
    let (witnessed, told) = (seen.clone(), names.clone());
    let extensions = Extensions::default().queue("witness", move |_| {
        let (seen, names) = (witnessed.clone(), told.clone());
        let make: Factory = Arc::new(move |init: &Init<'_>| {
            *names.lock().expect("one thread") = init.flows.to_vec();
            assert_eq!(init.rate.map(Rate::bits_per_s), Some(10_000_000));
            let numbers = |name| {
                init.flows_named(name)
                    .map(|flow| flow.0)
                    .collect::<Vec<_>>()
            };
            assert_eq!(numbers("bulk"), [0, 1]);
            assert_eq!(numbers("bulk/1"), [1]);
            assert_eq!(numbers("web"), [2]);
            assert!(numbers("bul").is_empty());
            Box::new(Witness {
                seen: seen.clone(),
                items: VecDeque::new(),
            })
        });
        Ok(make)
    });
    let scenario = Scenario::parse(text, "identity.toml", &extensions).expect("valid");
    let resolved = scenario.resolve(None).expect("valid");
    let run = Simulation::<anabranch_core::body::Length>::new(&resolved)
        .run()
        .expect("it runs");
    let mut connections: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for (flow, connection) in seen.lock().expect("one thread").iter() {
        connections.entry(*flow).or_default().insert(*connection);
    }
    assert_eq!(connections[&0].len(), 1);
    assert_eq!(connections[&1].len(), 1);
    let transfers = run.summary.flows["web"]["transfers"]["started"]
        .as_u64()
        .expect("a count");
    assert!(transfers > 50, "{transfers}");
    assert_eq!(connections[&2].len() as u64, transfers);
    let all: BTreeSet<u32> = connections.values().flatten().copied().collect();
    assert_eq!(
        all.len(),
        connections.values().map(BTreeSet::len).sum::<usize>()
    );
}
