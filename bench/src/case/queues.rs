//! Queues of the dumbbell's bottleneck that hold one bandwidth-delay product.

use anabranch::{
    queue::{self, Config},
    units::text::Limit,
};
use serde_json::{Value, json};

use super::dumbbell::BDP_PACKETS;

/// Names of the queues of `queues`.
pub const NAMES: [&str; 10] = [
    "drop-tail",
    "red",
    "preferential-red-static",
    "preferential-red-dynamic",
    "preferential-red-space-saving",
    "share-red",
    "codel",
    "pie",
    "fq-codel",
    "drr",
];

/// Returns the queue of this name.
pub fn config(name: &str) -> Option<Config> {
    let preferential = |select: Value| {
        let mut params = thresholds();
        params["select"] = select;
        read("preferential-red", &params)
    };
    Some(match name {
        "drop-tail" => Config::DropTail(queue::drop_tail::Params {
            limit: Limit::Packets(BDP_PACKETS),
        }),
        "red" => red(false),
        "preferential-red-static" => preferential(json!({ "static": { "flows": ["bulk/0"] } })),
        "preferential-red-dynamic" => preferential(json!({ "dynamic": {} })),
        "preferential-red-space-saving" => preferential(json!({ "space-saving": {} })),
        "share-red" => read("share-red", &thresholds()),
        // Default parameters, but with the limit of the other queues.
        "codel" | "pie" | "fq-codel" | "drr" => {
            read(name, &json!({ "limit": format!("{BDP_PACKETS} packets") }))
        }
        _ => return None,
    })
}

/// RED between 15 and 45 % of the limit, gentle, so that a thousand flows do not all find it full.
pub fn red(ecn: bool) -> Config {
    let mut params = thresholds();
    params["ecn"] = json!(ecn);
    read("red", &params)
}

fn thresholds() -> Value {
    json!({
        "limit": format!("{BDP_PACKETS} packets"),
        "min_threshold": "500 packets",
        "max_threshold": "1500 packets",
        "gentle": true,
    })
}

/// Builds a queue from its parameters, given as `{ "name": { … } }` where a file has `kind`.
fn read(name: &str, params: &Value) -> Config {
    let config: Config = serde_json::from_value(json!({ name: params })).expect("they are right");
    assert_eq!(config.check(), Ok(()), "{name}");
    config
}

#[cfg(test)]
mod tests {
    use super::NAMES;

    #[test]
    fn the_page_has_the_cost_of_each() {
        let page = include_str!("../../../docs/concepts/queues.md");
        let (_, costs) = page.split_once("## What they cost").expect("a heading");
        let rows: Vec<&str> = costs
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
            .collect();
        assert_eq!(rows, NAMES, "run anabranch-bench --case queues");
    }
}
