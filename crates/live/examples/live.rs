//! Runs a scenario file live and prints its summary: `cargo run -p anabranch-live --example live --
//! FILE`.

use anabranch_live::Live;
use anabranch_scenario::{Extensions, Scenario};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args()
        .nth(1)
        .ok_or("a scenario file was expected")?;
    let text = std::fs::read_to_string(&file)?;
    let mut scenario = Scenario::parse(&text, &file, &Extensions::default().live(true))?;
    for set in std::env::args().skip(2) {
        scenario.set(&set)?;
    }
    let resolved = scenario.resolve(None)?;
    let run = Live::new(&resolved).run()?;
    println!("{}", serde_json::to_string_pretty(&run.summary)?);
    Ok(())
}
