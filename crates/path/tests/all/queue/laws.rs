//! Laws of every registered queue discipline, in its default form and with every switch inverted.
//!
//! The laws are in [`Bench`], which keeps a ledger of every packet. A packet is sent or dropped
//! exactly once. No packet leaves that did not arrive, and a packet changes only by a mark that its
//! transport allows. The order is kept, of all packets or at least within each connection. The
//! backlog never exceeds the limit. Reported lengths are right. The link is never idle while
//! packets wait.

use crate::queue::support;

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use anabranch_core::{
    packet::Ecn,
    registry::Meta,
    units::{Bytes, Duration, Rate, text::Limit},
};
use anabranch_path::queue::{
    Config, Custom, Init, Item, Outcome, QueueContext, QueueDiscipline, registry,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use support::{Bench, Calls, Fate, Op, arrive, arrive_capable, flow_names};

const RATE: Rate = Rate::from_mbit_per_s(10);
/// Transmission time of 1,500 bytes at [`RATE`].
const PACKET_TIME: Duration = Duration::from_micros(1200);

/// The parameters of a schema, by name.
fn properties(schema: &schemars::Schema) -> Vec<(String, Value)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn read(meta: &Meta, params: &Value) -> Config {
    serde_json::from_value(json!({ meta.name: params })).expect("these parameters can be read")
}

/// Every discipline by default and with each switch of its schema inverted, individually and all of
/// them, without and with limits, if such parameters are consistent.
fn variants() -> Vec<(String, Config)> {
    let mut variants = Vec::new();
    for (meta, default, schema) in registry() {
        let text = serde_json::to_value(&default).expect("parameters can be written");
        let defaults = &text[meta.name];
        let switches: Vec<(String, Value)> = properties(&schema)
            .into_iter()
            .filter_map(|(name, _)| {
                let turned = !defaults[&name].as_bool()?;
                Some((name, json!(turned)))
            })
            .collect();
        let mut turned: Vec<Vec<(String, Value)>> = vec![Vec::new(), switches.clone()];
        turned.extend(switches.into_iter().map(|switch| vec![switch]));
        turned.dedup();
        let mut limited = 0;
        for limit in [None, Some("20 packets"), Some("30 kB")] {
            for switches in &turned {
                let mut params = serde_json::Map::from_iter(switches.clone());
                params.extend(limit.map(|limit| ("limit".to_owned(), json!(limit))));
                let params = Value::Object(params);
                let config = read(meta, &params);
                if config.check().is_ok() {
                    limited += usize::from(limit.is_some());
                    variants.push((format!("{} {params}", meta.name), config));
                }
            }
        }
        assert!(limited > 0, "{} with a limit is never tried", meta.name);
    }
    variants
}

/// Twice the capacity for a while, then a burst, a pause and light load.
fn overload() -> Vec<Op> {
    let mut script = Vec::new();
    let connection = |k: u32| (k * k) % 7;
    let half = Duration::from_micros(600);
    for k in 0..3_000 {
        let packet = if k % 3 == 0 { arrive_capable } else { arrive };
        script.push(packet(half, 1500, connection(k)));
    }
    for k in 0..200 {
        script.push(arrive(Duration::ZERO, 40 + k * 7, connection(k)));
    }
    script.push(arrive(Duration::from_secs(10), 1500, 0));
    for k in 0..100 {
        script.push(arrive(PACKET_TIME, 1500, connection(k)));
        script.push(arrive(PACKET_TIME, 1500, connection(k)));
    }
    script
}

fn op() -> impl Strategy<Value = Op> {
    let gap = prop_oneof![
        4 => Just(Duration::ZERO),
        8 => (0..2_400_u64).prop_map(Duration::from_micros),
        1 => (0..20_u64).prop_map(Duration::from_secs),
    ];
    let size = prop_oneof![4 => Just(1500_u32), 2 => 1..1500_u32, 1 => 1500..=65_535_u32];
    let connection = prop_oneof![8 => 0..5_u32, 1 => any::<u32>()];
    let ecn = prop_oneof![
        Just(Ecn::NotEct),
        Just(Ecn::Ect0),
        Just(Ecn::Ect1),
        Just(Ecn::Ce)
    ];
    let limit = prop_oneof![
        Just(Limit::Unlimited),
        (0..40_u64).prop_map(Limit::Packets),
        (0..60_000_u64).prop_map(|bytes| Limit::Bytes(Bytes::new(bytes))),
    ];
    let rate = prop_oneof![
        Just(None),
        (1..100_u64).prop_map(|mbit| Some(Rate::from_mbit_per_s(mbit)))
    ];
    prop_oneof![
        60 => (gap, size, connection, ecn).prop_map(|(gap, size, connection, ecn)| Op::Arrive {
            gap, size, connection, ecn,
        }),
        1 => limit.prop_map(Op::SetLimit),
        1 => rate.prop_map(Op::SetRate),
    ]
}

fn run(config: &Config, calls: Calls, script: &[Op]) -> Result<Vec<Fate>, String> {
    let flows = flow_names();
    let init = Init {
        rate: calls.rate,
        flows: &flows,
        hosts: &[],
    };
    Bench::new(config.build(&init), calls).run(script)
}

/// All conventions by which the laws call a queue.
fn every_way(config: &Config) -> Vec<Calls> {
    let usual = Calls::of(config, Some(RATE));
    vec![
        usual,
        Calls {
            passes: false,
            ..usual
        },
        Calls {
            held_bytes: Some(1500),
            ..usual
        },
        Calls {
            rate: None,
            ..usual
        },
    ]
}

#[test]
fn every_queue_describes_itself() {
    let mut names = BTreeSet::new();
    for (meta, config, schema) in registry() {
        let name = meta.name;
        assert!(names.insert(name), "{name} is there twice");
        assert_eq!(config.name(), name);
        assert!(
            !meta.title.is_empty() && meta.summary.ends_with('.'),
            "{name}"
        );
        assert!(!meta.sources.is_empty(), "{name} has no source");
        for (parameter, property) in properties(&schema) {
            let text = property["description"].as_str().unwrap_or_default();
            assert!(!text.is_empty(), "{name}: {parameter} has no description");
            assert!(
                property.get("default").is_some(),
                "{name}: {parameter} has no default"
            );
        }
        assert_eq!(
            config.check(),
            Ok(()),
            "{name}: its own defaults contradict"
        );
    }
    assert!(names.contains("drop-tail"));
}

/// Converts every `{ kind = "name", … }` to `{ name: { … } }`, the form that is read without
/// `kind`.
fn named_outside(value: Value) -> Value {
    let Value::Object(table) = value else {
        return value;
    };
    let mut inside: serde_json::Map<_, _> = table
        .into_iter()
        .map(|(key, value)| (key, named_outside(value)))
        .collect();
    match inside.remove("kind") {
        Some(Value::String(name)) => json!({ name: inside }),
        _ => Value::Object(inside),
    }
}

#[test]
fn parameters_survive_writing_and_reading() {
    for (name, config) in variants() {
        let text = serde_json::to_value(&config).expect("parameters can be written");
        let again = serde_json::from_value::<Config>(named_outside(text)).expect("and read");
        assert_eq!(again, config, "{name}");
    }
}

#[test]
fn no_bandwidth_delay_product_is_left_once_it_is_known() {
    for (meta, ..) in registry() {
        let mut config = read(meta, &json!({ "limit": "2 bdp" }));
        assert!(config.in_bdp().is_some(), "{}", meta.name);
        config.set_bdp(Bytes::new(100_000));
        assert!(config.in_bdp().is_none(), "{}", meta.name);
        assert_eq!(config.limit(), Some(Limit::Bytes(Bytes::new(200_000))));
    }
}

/// Two runs are compared with the first: the packets are enqueued and dequeued instead of passed,
/// and the same arrivals are repeated.
#[test]
fn the_laws_hold_in_overload_and_outcomes_are_equal() {
    let script = overload();
    for (name, config) in variants() {
        let runs: Vec<_> = every_way(&config)
            .into_iter()
            .map(|calls| {
                run(&config, calls, &script)
                    .unwrap_or_else(|wrong| panic!("{name}, {calls:?}: {wrong}"))
            })
            .collect();
        for fates in &runs {
            let sent = fates.iter().filter(|fate| fate.sent.is_some()).count();
            assert!(sent > 1_000, "{name}: {sent} packets were sent");
        }
        assert!(runs[0] == runs[1], "{name}: passing differs from joining");
        let again = run(&config, Calls::of(&config, Some(RATE)), &script);
        assert!(
            again.as_ref() == Ok(&runs[0]),
            "{name}: the outcomes differ"
        );
    }
}

#[test]
fn a_limited_queue_in_overload_drops() {
    let script = overload();
    for (name, config) in variants() {
        // A limit so short that the script far exceeds it.
        let bounded = config
            .limit()
            .is_some_and(|limit| !limit.admits(100, 150_000));
        if bounded {
            let fates =
                run(&config, Calls::of(&config, Some(RATE)), &script).expect("the laws hold");
            let dropped = fates.iter().filter(|fate| fate.dropped.is_some()).count();
            assert!(dropped > 1_000, "{name}: {dropped} packets were dropped");
        }
    }
}

/// If nothing ever waits, no discipline acts.
#[test]
fn nothing_is_dropped_or_marked_where_nothing_waits() {
    let script: Vec<Op> = (0..500)
        .map(|k| arrive_capable(PACKET_TIME + PACKET_TIME, 1500, k % 3))
        .collect();
    for (name, config) in variants() {
        let fates = run(&config, Calls::of(&config, Some(RATE)), &script).expect("the laws hold");
        for (k, fate) in fates.iter().enumerate() {
            assert!(!fate.marked, "{name}: packet {k}");
            assert_eq!(fate.sent, Some(fate.arrived), "{name}: packet {k}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_laws_hold_whatever_arrives(
        script in proptest::collection::vec(op(), 1..250),
        seed in any::<u64>(),
    ) {
        for (name, config) in variants() {
            for calls in every_way(&config) {
                let outcome = run(&config, Calls { seed, ..calls }, &script);
                prop_assert!(outcome.is_ok(), "{name}, {calls:?}: {:?}", outcome.err());
            }
        }
    }
}

// The laws detect wrong queues.

#[derive(Debug, Clone, Copy, PartialEq)]
enum Wrong {
    Not,
    LosesPackets,
    DropsTwice,
    SendsTwice,
    TakesOneTooMany,
    ForgetsTheHeldPacket,
    LastInFirstOut,
    Sleeps,
    MarksTheIncapable,
    MarksInSilence,
    MiscountsBytes,
    PassesOnWithoutCount,
}

/// A queue of ten packets with a mistake.
#[derive(Debug)]
struct Mistaken {
    wrong: Wrong,
    items: VecDeque<Item>,
    calls: u32,
    /// Number of arrivals, which determines the drops.
    arrivals: u32,
}

impl QueueDiscipline for Mistaken {
    fn enqueue(&mut self, mut item: Item, cx: &mut QueueContext<'_>) {
        self.arrivals += 1;
        let limit = match self.wrong {
            Wrong::TakesOneTooMany => 11,
            _ => 10,
        };
        let held = match self.wrong {
            Wrong::ForgetsTheHeldPacket => 0,
            _ => cx.held_packets as usize,
        };
        if self.items.len() + held >= limit || self.arrivals.is_multiple_of(10) {
            cx.drop(item);
            if self.wrong == Wrong::DropsTwice {
                cx.drop(item);
            }
            return;
        }
        match self.wrong {
            Wrong::LosesPackets if self.arrivals.is_multiple_of(7) => return,
            Wrong::MarksTheIncapable => {
                item.ecn = Ecn::Ce;
                cx.outcomes.push(Outcome::Marked(item));
            }
            Wrong::MarksInSilence if item.ecn.is_capable() => item.ecn = Ecn::Ce,
            _ => {}
        }
        self.items.push_back(item);
    }
    fn dequeue(&mut self, _cx: &mut QueueContext<'_>) -> Option<Item> {
        self.calls += 1;
        match self.wrong {
            Wrong::LastInFirstOut => self.items.pop_back(),
            Wrong::Sleeps if self.calls.is_multiple_of(50) => None,
            Wrong::SendsTwice if self.calls.is_multiple_of(50) => self.items.front().copied(),
            _ => self.items.pop_front(),
        }
    }
    fn pass(&mut self, item: &mut Item, cx: &mut QueueContext<'_>) -> bool {
        if self.wrong == Wrong::PassesOnWithoutCount {
            return true;
        }
        self.enqueue(*item, cx);
        self.dequeue(cx).map(|next| *item = next).is_some()
    }
    fn len(&self) -> usize {
        self.items.len()
    }
    fn bytes(&self) -> u64 {
        let bytes = self.items.iter().map(|item| u64::from(item.size)).sum();
        match self.wrong {
            Wrong::MiscountsBytes if bytes > 9_000 => bytes - 1,
            _ => bytes,
        }
    }
}

fn mistaken(wrong: Wrong) -> (Config, Calls) {
    let config = Config::Custom(Custom {
        name: "mistaken".to_owned(),
        params: json!({}),
        build: Arc::new(move |_| {
            Box::new(Mistaken {
                wrong,
                items: VecDeque::new(),
                calls: 0,
                arrivals: 0,
            })
        }),
    });
    let calls = Calls {
        limit: Some(Limit::Packets(10)),
        fifo: true,
        ..Calls::of(&config, Some(RATE))
    };
    (config, calls)
}

#[test]
fn wrong_queues_are_detected() {
    let script = overload();
    for (wrong, complaint) in [
        (Wrong::LosesPackets, "the queue says"),
        (Wrong::DropsTwice, "was dropped and did not wait"),
        (Wrong::SendsTwice, "the queue says"),
        (Wrong::TakesOneTooMany, "more than the limit"),
        (Wrong::ForgetsTheHeldPacket, "more than the limit"),
        (Wrong::LastInFirstOut, "overtook one of its connection"),
        (Wrong::Sleeps, "nothing is sent"),
        (Wrong::MarksTheIncapable, "was marked as"),
        (Wrong::MarksInSilence, "was changed"),
        (Wrong::MiscountsBytes, "the queue says"),
    ] {
        let (config, calls) = mistaken(wrong);
        let calls = Calls {
            held_bytes: Some(1500),
            ..calls
        };
        let found = run(&config, calls, &script).expect_err("a mistake");
        assert!(found.contains(complaint), "{wrong:?}: {found}");
    }
    let (config, calls) = mistaken(Wrong::Not);
    assert_eq!(run(&config, calls, &script).err(), None);
}

#[test]
fn a_wrong_pass_is_detected() {
    let script = overload();
    let fates = |wrong, passes| {
        let (config, calls) = mistaken(wrong);
        run(&config, Calls { passes, ..calls }, &script).expect("the ledger finds nothing wrong")
    };
    assert!(fates(Wrong::Not, true) == fates(Wrong::Not, false));
    assert!(fates(Wrong::PassesOnWithoutCount, true) != fates(Wrong::PassesOnWithoutCount, false));
}
