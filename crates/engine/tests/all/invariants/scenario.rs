//! Random scenarios over all features of the simulator: stacks, controls, queues, impairments,
//! services, MTUs, error correction, gateways, groups, workloads, changes.

use std::fmt::Write;

use anabranch_core::rng::{Draw, Stream};

/// A scenario with the properties needed to check its figures.
#[derive(Debug, Default)]
pub struct Random {
    pub text: String,
    /// Length of the run and of the warm-up, in seconds.
    pub duration: f64,
    pub warmup: f64,
    pub flows: Vec<Flow>,
    /// The highest capacity of the path in bit/s, including changes.
    pub capacity: f64,
    /// The smallest one-way propagation delay in seconds, including changes.
    pub delay: f64,
    /// The largest lateness of packets in seconds: queues of a slow link, changes of the delay,
    /// jitter.
    pub slack: f64,
    /// Whether links or gateways duplicate packets.
    pub duplicates: bool,
    /// The number of members of the group, if there is one.
    pub members: u64,
}

/// A flow of the scenario; copies have one entry.
#[derive(Debug, Clone, Default)]
pub struct Flow {
    pub name: String,
    pub start: f64,
    pub stop: Option<f64>,
    /// Bytes, if it is a file.
    pub file: Option<u64>,
    pub udp: bool,
}

struct Generator {
    d: Draw,
    out: Random,
}

impl Generator {
    fn pick(&mut self, n: u64) -> u64 {
        u64::from(self.d.bits()) % n
    }
    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.d.bits() as usize % choices.len()]
    }
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.out.text, "{line}");
    }

    fn queue(&mut self) -> String {
        let packets = 20 + self.pick(60);
        let limit = format!("{packets} packets");
        let ecn = self.d.chance(0.5);
        match self.pick(12) {
            0 => "\"drop-tail\"".to_owned(),
            1 => format!(
                "{{ kind = \"red\", limit = \"{limit}\", min_threshold = \"3 packets\", max_threshold = \"9 packets\", ecn = {ecn} }}"
            ),
            2 => format!("{{ kind = \"codel\", ecn = {ecn} }}"),
            3 => format!("{{ kind = \"fq-codel\", ecn = {ecn} }}"),
            4 => format!("{{ kind = \"pie\", ecn = {ecn} }}"),
            5 => format!("{{ kind = \"drr\", limit = \"{limit}\" }}"),
            6 => format!(
                "{{ kind = \"threshold-mark\", limit = \"{limit}\", threshold = \"2 packets\" }}"
            ),
            9 => format!("{{ kind = \"dualpi2\", limit = \"{limit}\" }}"),
            10 => {
                let bandwidth = self.of(&["unlimited", "300 kbit/s", "5 Mbit/s"]);
                format!("{{ kind = \"cake\", limit = \"{limit}\", rate = \"{bandwidth}\" }}")
            }
            7 => format!("{{ kind = \"share-red\", limit = \"{limit}\" }}"),
            8 => format!(
                "{{ kind = \"drop-tail\", limit = \"{limit}\", reorder = {{ kind = \"interval\", interval = 9 }} }}"
            ),
            _ => format!("{{ kind = \"drop-tail\", limit = \"{limit}\" }}"),
        }
    }

    fn impairments(&mut self) -> String {
        let mut all = Vec::new();
        if self.d.chance(0.3) {
            all.push(format!(
                "{{ kind = \"bernoulli-loss\", rate = {} }}",
                self.pick(50) as f64 / 1e3
            ));
        }
        if self.d.chance(0.15) {
            all.push("{ kind = \"gilbert-elliott\", loss_rate = 0.02, mean_burst = 3 }".to_owned());
        }
        if self.d.chance(0.2) {
            all.push(format!(
                "{{ kind = \"duplicate\", rate = {} }}",
                self.pick(100) as f64 / 1e3
            ));
            self.out.duplicates = true;
        }
        if self.d.chance(0.2) {
            let mean = 1 + self.pick(30);
            let reorder = self.d.chance(0.7);
            all.push(format!(
                "{{ kind = \"jitter\", mean = \"{mean} ms\", reorder = {reorder} }}"
            ));
            self.out.slack += mean as f64 / 1e3 * 20.0;
        }
        if self.d.chance(0.1) {
            all.push("{ kind = \"policer\", rate = \"2 Mbit/s\", burst = \"20 kB\" }".to_owned());
        }
        if self.d.chance(0.1) {
            all.push("{ kind = \"corrupt\", rate = 0.01 }".to_owned());
        }
        format!("[{}]", all.join(", "))
    }

    /// Writes a link's keys after `between`, and returns its propagation delay in milliseconds.
    fn link(&mut self, table: &str, between: [&str; 2]) -> u64 {
        let [a, b] = between;
        self.line(&format!("[{table}]\nbetween = [\"{a}\", \"{b}\"]"));
        let (rate, delay) = (1 + self.pick(12), self.pick(40));
        let mut queue = self.queue();
        // Groups refuse queues that shape, and with `per-flow` queues that decide at dequeue.
        if table.starts_with("group") && (queue.contains("cake") || queue.contains("dualpi2")) {
            "\"drop-tail\"".clone_into(&mut queue);
        }
        let impair = self.impairments();
        self.line(&format!(
            "rate = \"{rate} Mbit/s\"\ndelay = \"{delay} ms\"\nqueue = {queue}\nimpair = {impair}"
        ));
        self.out.capacity = self.out.capacity.max(rate as f64 * 1e6);
        if table.starts_with("link") {
            self.service();
            self.mtu();
        }
        delay
    }

    /// Writes a service for one direction; the other stays fixed.
    fn service(&mut self) {
        let stations = 1 + self.pick(3);
        let service = match self.pick(12) {
            0 => format!("{{ kind = \"wifi\", stations = {stations}, frame_error = 0.05 }}"),
            1 => "{ kind = \"cable\", collision = 0.1 }".to_owned(),
            2 => "{ kind = \"cellular\", sr_period = \"10 ms\", error_rate = 0.1 }".to_owned(),
            3 => "\"cellular\"".to_owned(),
            _ => return,
        };
        let way = self.of(&["forward", "reverse"]);
        self.line(&format!("{way}.service = {service}"));
        self.out.slack += 0.5;
    }

    fn mtu(&mut self) {
        if self.d.chance(0.15) {
            let mtu = 600 + self.pick(900);
            let reports = self.d.chance(0.5);
            self.line(&format!("mtu = \"{mtu} bytes\"\nmtu_reports = {reports}"));
        }
    }

    fn middle(&mut self) {
        match self.pick(4) {
            0 => {
                for name in ["one", "two"] {
                    self.link(&format!("link.{name}"), ["g", "h"]);
                }
                let split = self.of(&[
                    "weighted-round-robin",
                    "deficit",
                    "earliest-arrival",
                    "redundant",
                ]);
                let restore = self.of(&["none", "in-order", "timed", "adaptive"]);
                self.line(&format!("[gateway.pair]\nbetween = [\"g\", \"h\"]\nroutes = [\"one\", \"two\"]\nsplit = \"{split}\"\nrestore = \"{restore}\""));
                self.out.capacity *= 2.0;
                self.out.duplicates = true;
                self.out.slack += 1.0;
            }
            1 => {
                let delay = self.link("group.core", ["g", "h"]);
                self.out.members = 1 + self.pick(4);
                let spread = self.of(&["per-packet", "per-flow"]);
                let members = self.out.members;
                self.line(&format!("members = {members}\nspread = \"{spread}\""));
                // Queues that decide at dequeue are refused if flows are spread over members.
                let text = &self.out.text;
                let late = ["codel", "pie", "drr"].iter().any(|kind| {
                    text.contains(&format!("\"{kind}\"")) || text.contains("\"fq-codel\"")
                });
                if late {
                    self.out.text = self
                        .out
                        .text
                        .replace("spread = \"per-flow\"", "spread = \"per-packet\"");
                }
                self.out.capacity *= members as f64;
                self.out.delay += delay as f64 / 1e3;
            }
            _ => {
                let delay = self.link("link.core", ["g", "h"]);
                self.out.delay += delay as f64 / 1e3;
                self.changes();
            }
        }
    }

    /// Writes changes in mid-run, before the tables of flows.
    fn changes(&mut self) {
        for _ in 0..self.pick(3) {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "some seconds"
            )]
            let milliseconds = (self.out.duration * 1e3) as u64;
            let at = 50 + self.pick(milliseconds - 60);
            let set = match self.pick(5) {
                // The rate of a station, a modem or a cell cannot change.
                0 if !self.out.text.contains("service") => {
                    let rate = 1 + self.pick(12);
                    self.out.capacity = self.out.capacity.max(rate as f64 * 1e6);
                    format!("rate\" = \"{rate} Mbit/s\"")
                }
                1 => {
                    self.out.delay = 0.0;
                    self.out.slack += 0.1;
                    format!("delay\" = \"{} ms\"", self.pick(40))
                }
                2 => "up\" = false".to_owned(),
                _ => "up\" = true".to_owned(),
            };
            self.line(&format!(
                "[[at]]\ntime = \"{at} ms\"\nset = {{ \"link.core.{set} }}"
            ));
        }
    }

    fn flow(&mut self, number: u64) {
        let mut flow = Flow {
            name: format!("f{number}"),
            start: self.pick(10) as f64 / 20.0,
            ..Flow::default()
        };
        let turned = self.d.chance(0.3);
        let (from, to) = if turned { ("h", "g") } else { ("g", "h") };
        self.line(&format!(
            "[flow.f{number}]\nfrom = \"{from}\"\nto = \"{to}\"\nstart = \"{} ms\"",
            (flow.start * 1e3).round()
        ));
        if self.d.chance(0.2) {
            let stop = flow.start + 0.1 + self.pick(1_000) as f64 / 1e3;
            self.line(&format!("stop = \"{} ms\"", (stop * 1e3).round()));
            flow.stop = Some(stop);
        }
        if self.d.chance(0.25) {
            flow.udp = true;
            let rate = 100 + self.pick(4_000);
            let workload = match self.pick(3) {
                0 => format!(
                    "{{ kind = \"on-off\", rate = \"{rate} kbit/s\", on = {{ kind = \"exponential\", mean = \"100 ms\" }}, off = {{ kind = \"exponential\", mean = \"100 ms\" }}, payload = \"400 bytes\" }}"
                ),
                1 => format!(
                    "{{ kind = \"poisson\", rate = \"{rate} kbit/s\", sizes = {{ kind = \"fixed\", size = \"700 bytes\" }} }}"
                ),
                _ => format!(
                    "{{ kind = \"paced\", rate = \"{rate} kbit/s\", payload = \"{} bytes\" }}",
                    100 + self.pick(1_300)
                ),
            };
            self.line(&format!("protocol = \"udp\"\nworkload = {workload}"));
        } else {
            self.tcp(&mut flow);
        }
        self.out.flows.push(flow);
    }

    fn tcp(&mut self, flow: &mut Flow) {
        if self.d.chance(0.2) {
            let dscp = self.pick(64);
            self.line(&format!("dscp = {dscp}"));
        }
        let stack = self.of(&[
            "linux",
            "rfc",
            "ns2-sack1",
            "ns3-2018",
            "bsd44-lite",
            "linux-2.6.35",
            "windows-7",
        ]);
        let cc = self.of(&[
            "reno",
            "cubic",
            "cubic-plus",
            "bic",
            "htcp",
            "westwood-plus",
            "vegas",
            "compound",
            "dctcp",
            "bbr",
            "bbr3",
            "prague",
        ]);
        self.line(&format!("stack = \"{stack}\"\ncc = \"{cc}\""));
        let ecn = self.of(&["off", "rfc3168", "accecn", "dctcp", "l4s"]);
        let fec = self.d.chance(0.3);
        let mut switches = Vec::new();
        if cc == "dctcp" {
            switches.push("ecn = \"dctcp\"".to_owned());
        } else if cc == "prague" {
            switches.push("ecn = \"l4s\"".to_owned());
        } else if ecn != "off" {
            switches.push(format!("ecn = \"{ecn}\""));
        }
        if self.d.chance(0.3) {
            switches.push("delayed_ack = \"off\"".to_owned());
        }
        if self.d.chance(0.3) {
            let discovery = self.of(&["off", "icmp", "black-hole", "probing"]);
            switches.push(format!("mtu_discovery = \"{discovery}\""));
        }
        if self.d.chance(0.3) {
            switches.push(format!("mss = \"{} bytes\"", 200 + self.pick(1_200)));
        }
        if self.d.chance(0.3) {
            switches.push(format!("receive_window = \"{} KiB\"", 8 + self.pick(100)));
        }
        self.line(&format!("transport = {{ {} }}", switches.join(", ")));
        if fec {
            let kind = self.of(&["xor", "reed-solomon", "sliding-rlc"]);
            let redundancy = self.of(&["cwnd", "fixed", "loss-adaptive"]);
            let hold = self.d.chance(0.5);
            self.line(&format!(
                "fec = {{ kind = \"{kind}\", redundancy = \"{redundancy}\", hold_acks = {hold} }}"
            ));
        }
        match self.pick(6) {
            0 | 1 => {
                let size = 1 + self.pick(200_000);
                flow.file = Some(size);
                self.line(&format!("workload = {{ kind = \"file\", size = \"{size} bytes\" }}"));
            }
            2 => self.line("workload = { kind = \"poisson\", rate = \"800 kbit/s\", sizes = { kind = \"exponential\", mean = \"20 kB\" } }"),
            3 => self.line("workload = { kind = \"request-response\", request = \"300 bytes\", response = \"20 kB\", think = \"30 ms\" }"),
            4 => self.line("workload = { kind = \"paced\", rate = \"900 kbit/s\" }"),
            _ => {}
        }
    }
}

/// The `number`-th random scenario.
pub fn random(number: u64) -> Random {
    let mut generator = Generator {
        d: Stream::new(number, "invariants").at(0),
        out: Random {
            slack: 0.05,
            ..Random::default()
        },
    };
    let g = &mut generator;
    g.out.duration = if g.d.chance(0.15) {
        6.0
    } else {
        1.0 + g.pick(15) as f64 / 10.0
    };
    if g.d.chance(0.3) {
        g.out.warmup = 0.3;
    }
    let (duration, warmup) = (g.out.duration, g.out.warmup);
    g.line(&format!(
        "duration = \"{} ms\"\nwarmup = \"{} ms\"\nseed = {}",
        (duration * 1e3).round(),
        (warmup * 1e3).round(),
        number + 1
    ));
    g.middle();
    for number in 0..=g.pick(4) {
        g.flow(number);
    }
    generator.out
}
