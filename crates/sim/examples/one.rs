use anabranch_elements::body::Length;
fn main() {
    let path = std::env::args().nth(1).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let mut s =
        anabranch_model::scenario::Scenario::parse(&text, &path, &Default::default()).unwrap();
    for set in std::env::args().skip(2) {
        s.set(&set).unwrap();
    }
    let r = match s.resolve(None) {
        Ok(r) => r,
        Err(e) => {
            eprintln!("{e}");
            std::process::exit(2)
        }
    };
    let run = anabranch_sim::Simulation::<Length>::new(&r).run().unwrap();
    let mut v = serde_json::to_value(&run.summary).unwrap();
    v["resolved_scenario"] = serde_json::Value::Null;
    for (_, f) in v["flows"].as_object_mut().unwrap() {
        f["reordering"] = serde_json::Value::Null;
    }
    println!("{}", serde_json::to_string_pretty(&v).unwrap());
}
