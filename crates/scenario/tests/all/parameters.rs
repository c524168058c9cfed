//! Parameters of registered components: accepted and refused values, and the messages.

mod aqm;
mod cc;
mod fec;
mod group;
mod impair;
mod queue;
mod remedy;
mod table;

use std::fmt::Write;

use anabranch_scenario::{Extensions, Resolved, Scenario};

/// A path and a flow, with one more line for the link and one for the flow.
fn scenario(link: &str, flow: &str) -> String {
    let further = |text: &str| match text {
        "" => String::new(),
        text => format!("{text}\n"),
    };
    format!(
        r#"duration = "10 s"

[link.path]
between = ["S", "R"]
rate = "10 Mbit/s"
delay = "5 ms"
{}
[flow.main]
from = "S"
to = "R"
stack = "rfc"
{}"#,
        further(link),
        further(flow)
    )
}

fn resolve(text: &str) -> Result<Resolved, String> {
    let read = Scenario::parse(text, "test.toml", &Extensions::default());
    let resolved = read.and_then(|scenario| scenario.resolve(None));
    resolved.map_err(|error| error.to_string())
}

/// The errors of these invalid scenarios.
fn refusals(texts: impl IntoIterator<Item = String>) -> String {
    let mut refusals = String::new();
    for text in texts {
        let error = resolve(&text).expect_err(&text);
        let _ = write!(refusals, "{error}\n\n");
    }
    refusals
}
