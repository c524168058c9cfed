//! Our own TCP and the kernel's exchange files: over clean and lossy paths, in both directions,
//! with and without each option. The same checks detect wrong systems.
use std::{fmt::Write as _, path::Path};

use crate::common::{Fault, Wrong, exact, live, resolve};
use anabranch_core::{body::Octets, units::Instant};
use anabranch_live::{Around, Error, Frame, departing, write};
use anabranch_path::host::{Arrived, Departing, Host};
use anabranch_scenario::Extensions;
use anabranch_wire::{self as wire, Flags, Segment};
use serde_json::{Value, json};

/// Size of each file; every connection must finish in time.
const SIZE: u64 = 1_000_000;
/// Seconds of each run. A connection takes one at most, two if its last segment is lost.
const DURATION: u32 = 6;

/// The paths: name, keys of the link, and the counters of the link that must not be zero.
const PATHS: [(&str, &str, &[&str]); 4] = [
    ("clean", "", &[]),
    (
        "loss",
        "impair = [{ kind = \"bernoulli-loss\", rate = 0.01 }]",
        &["lost_packets"],
    ),
    (
        "reorder",
        "queue = { kind = \"drop-tail\", limit = \"100 packets\", reorder = { kind = \"interval\", interval = 5 } }",
        &["reordered_packets"],
    ),
    (
        "both",
        "queue = { kind = \"drop-tail\", limit = \"100 packets\", reorder = { kind = \"interval\", interval = 5 } }\n\
         impair = [{ kind = \"bernoulli-loss\", rate = 0.01 }, { kind = \"duplicate\", rate = 0.01 }]",
        &["lost_packets", "reordered_packets"],
    ),
];

/// A scenario with a flow to the kernel and one from it over each path.
fn scenario(keys: &str) -> String {
    let mut text = format!("duration = \"{DURATION} s\"\nseed = 3\n");
    for (path, link, _) in PATHS {
        for (way, own) in [("to-kernel", "from"), ("from-kernel", "to")] {
            let name = format!("{path}-{way}");
            let _ = write!(
                text,
                "[link.{name}]\nbetween = [\"{name}-from\", \"{name}-to\"]\nrate = \"20 Mbit/s\"\ndelay = \"10 ms\"\n{link}\n\
                 [host.{name}-{own}]\ntcp = \"own\"\n\
                 [flow.{name}]\nfrom = \"{name}-from\"\nto = \"{name}-to\"\n\
                 workload = {{ kind = \"file\", size = \"{SIZE} bytes\" }}\n{keys}\n"
            );
        }
    }
    text
}

/// The summary of a run.
fn run(text: &str, around: Option<Around>) -> Result<Value, Error> {
    let resolved = resolve(
        text,
        Path::new("interoperability.toml"),
        Extensions::default(),
    );
    let mut live = live(&resolved);
    if let Some(around) = around {
        live = live.around_own_ends(around);
    }
    let done = exact(live.run())?;
    Ok(serde_json::to_value(&done.summary).expect("plain data"))
}

/// The faults of a run, by connection. `agreed` holds the expected negotiated options of both ends.
fn judge(done: &Result<Value, Error>, agreed: &[(&str, bool)]) -> Vec<String> {
    let summary = match done {
        Ok(summary) => summary,
        Err(error) => return vec![format!("failed: {error}")],
    };
    let mut wrong = Vec::new();
    for (path, _, caused) in PATHS {
        for way in ["to-kernel", "from-kernel"] {
            let name = format!("{path}-{way}");
            let mut expect = |what: &str, found: &Value, wanted: &Value| {
                if found != wanted {
                    wrong.push(format!("{name}: {what} is {found}, not {wanted}"));
                }
            };
            let ends = &summary["live"]["ends"][&name];
            expect("written", &ends["from"]["written_bytes"], &json!(SIZE));
            expect("read", &ends["to"]["read_bytes"], &json!(SIZE));
            let (own, kernel) = match way {
                "to-kernel" => ("from", "to"),
                _ => ("to", "from"),
            };
            expect("tcp", &ends[own]["tcp"], &json!("own"));
            expect("tcp", &ends[kernel]["tcp"], &json!("kernel"));
            for (option, on) in agreed {
                expect(option, &ends["from"][option], &json!(on));
                expect(option, &ends["to"][option], &json!(on));
            }
            let endpoint = &ends[own]["endpoint"];
            for count in ["resets_sent", "resets_received", "foreign_packets"] {
                expect(count, &endpoint[count], &json!(0));
            }
            expect("discarded", &endpoint["discarded_packets"], &json!({}));
            let mut refused = endpoint["refused_packets"].clone();
            if path == "reorder" || path == "both" {
                // An acknowledgment overtaken by another is old, also by its timestamp (RFC 7323
                // §5.3).
                for old in ["old_timestamp", "old_ack"] {
                    refused.as_object_mut().map(|refused| refused.remove(old));
                }
            }
            expect("refused", &refused, &json!({}));
            expect("ending", &endpoint["ending"], &Value::Null);
            let counters = &summary["live"]["tcp_counters"][format!("{name}-{kernel}")];
            for count in ["InErrs", "InCsumErrors", "EstabResets", "AttemptFails"] {
                expect(count, &counters[count], &json!(0));
            }
            if path != "both" {
                // A duplicate may arrive after the close, and is answered with a reset (RFC 9293
                // §3.10.7.1).
                expect("OutRsts", &counters["OutRsts"], &json!(0));
            }
            // The path caused the intended impairments.
            let link = &summary["links"][&name]["forward"];
            for count in caused {
                if link[count].as_u64().is_none_or(|count| count == 0) {
                    wrong.push(format!("{name}: {count} is {}", link[count]));
                }
            }
            // Every packet that was sent arrived, was lost or was duplicated.
            let number = |value: &Value| value.as_i64().unwrap_or(i64::MIN);
            let (ours, theirs) = (&endpoint["sent_packets"], &counters["InSegs"]);
            let (back, got) = (&counters["OutSegs"], &endpoint["received_packets"]);
            // The kernel counts retransmissions separately (RFC 4022).
            let sent_again = number(&counters["RetransSegs"]);
            let sent = number(ours) + number(back) + sent_again;
            let came = number(theirs) + number(got);
            let both = &summary["links"][&name];
            let gone: i64 = ["forward", "reverse"]
                .iter()
                .flat_map(|way| {
                    ["dropped_packets", "lost_packets"].map(|key| number(&both[way][key]))
                })
                .sum();
            let doubled = came + gone - sent;
            let most = if path == "both" { sent / 20 } else { 0 };
            if !(0..=most).contains(&doubled) {
                wrong.push(format!(
                    "{name}: {sent} packets sent, {came} came, {gone} gone"
                ));
            }
        }
    }
    wrong
}

/// Runs the matrix and expects no fault.
fn holds(keys: &str, agreed: &[(&str, bool)], around: Option<Around>) {
    let done = run(&scenario(keys), around);
    assert_eq!(judge(&done, agreed), Vec::<String>::new());
}

const ALL: [(&str, bool); 4] = [
    ("timestamps", true),
    ("sack", true),
    ("window_scaling", true),
    ("ecn", false),
];

fn but(option: &str, on: bool) -> [(&str, bool); 4] {
    ALL.map(|(name, usual)| (name, if name == option { on } else { usual }))
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn both_directions_with_every_option() {
    holds("cc = \"cubic\"", &ALL, None);
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn both_directions_without_timestamps() {
    holds(
        "transport = { timestamps = false }\ncc = \"cubic\"",
        &but("timestamps", false),
        None,
    );
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn both_directions_without_sack() {
    let keys = "transport = { sack = false, recovery = \"new-reno\" }\ncc = \"reno\"";
    holds(keys, &but("sack", false), None);
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn both_directions_with_ecn() {
    holds(
        "transport = { ecn = \"rfc3168\" }\ncc = \"cubic\"",
        &but("ecn", true),
        None,
    );
}

/// The kernel has no accurate ECN and answers with classic ECN.
#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn both_directions_with_accurate_ecn_at_one_end() {
    holds(
        "transport = { ecn = \"accecn\" }\ncc = \"cubic\"",
        &but("ecn", true),
        None,
    );
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn both_directions_with_another_stack() {
    holds(
        "stack = \"rfc\"\ntransport = { timestamps = true }\ncc = \"reno\"",
        &ALL,
        None,
    );
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn both_directions_over_ipv6() {
    holds("family = 6\ncc = \"cubic\"", &ALL, None);
}

/// Changes to each packet that leaves or arrives.
#[derive(Debug)]
struct Changes {
    leaves: fn(&mut Segment<Octets>),
    /// Applied to the octets of a sent packet.
    sent: fn(&mut Vec<u8>),
    comes: fn(&mut Vec<u8>),
}

impl Fault for Changes {
    fn on_packet(&mut self, right: &mut dyn Host<Frame>, now: Instant, packet: Arrived<'_, Frame>) {
        let mut octets = write(packet.transport, packet.ecn).into_owned();
        (self.comes)(&mut octets);
        let changed = departing(&octets).expect("still a packet");
        let packet = Arrived {
            transport: &changed.transport,
            ..packet
        };
        right.on_packet(now, packet);
    }
    fn poll_transmit(
        &mut self,
        right: &mut dyn Host<Frame>,
        now: Instant,
    ) -> Option<Departing<Frame>> {
        let packet = right.poll_transmit(now)?;
        let octets = write(&packet.transport, packet.ecn);
        let mut decoded = wire::decode(&octets).expect("ours is right");
        (self.leaves)(&mut decoded.segment);
        let mut octets = Vec::new();
        wire::encode(&decoded.ip, decoded.ports, &decoded.segment, &mut octets).expect("it fits");
        (self.sent)(&mut octets);
        departing(&octets)
    }
}

/// No change.
const AS_IS: Changes = Changes {
    leaves: |_| {},
    sent: |_| {},
    comes: |_| {},
};

/// Offset of TCP's checksum after an IPv4 header without options.
const CHECKSUM: usize = 20 + 16;

/// Asserts that this check, among others, detects the fault.
#[track_caller]
fn is_told(around: Around, by: &str) {
    let done = run(&scenario("cc = \"cubic\""), Some(around));
    let wrong = judge(&done, &ALL);
    assert!(wrong.iter().any(|line| line.contains(by)), "{wrong:?}");
}

/// The wrapper itself changes nothing.
#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_wrapped_right_system_passes() {
    holds(
        "cc = \"cubic\"",
        &ALL,
        Some(|right| {
            Box::new(Wrong {
                right,
                fault: AS_IS,
            })
        }),
    );
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_checksum_that_is_off_by_one_is_detected() {
    let around: Around = |right| {
        Box::new(Wrong {
            right,
            fault: Changes {
                sent: |octets| octets[CHECKSUM + 1] = octets[CHECKSUM + 1].wrapping_add(1),
                ..AS_IS
            },
        })
    };
    is_told(around, "InCsumErrors");
}

/// The end acknowledges one segment more than it has, so that a lost segment is never
/// retransmitted.
#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn an_acknowledgment_of_missing_data_is_detected() {
    let around: Around = |right| {
        Box::new(Wrong {
            right,
            fault: Changes {
                leaves: |segment| {
                    if !segment.flags.any(Flags::SYN) {
                        segment.ack = segment.ack.wrapping_add(1448);
                    }
                },
                ..AS_IS
            },
        })
    };
    is_told(around, "loss-from-kernel: read");
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn content_changed_by_the_sender_is_detected() {
    let around: Around = |right| {
        Box::new(Wrong {
            right,
            fault: Changes {
                leaves: |segment| {
                    if let Some(last) = segment.body.0.last_mut() {
                        *last ^= 1;
                    }
                },
                ..AS_IS
            },
        })
    };
    is_told(around, "differs from the written data");
}

/// A receiver without checksum verification, modelled by a changed packet with a corrected
/// checksum.
#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_receiver_that_accepts_bad_packets_is_detected() {
    let around: Around = |right| {
        Box::new(Wrong {
            right,
            fault: Changes {
                comes: |octets| {
                    let mut decoded = wire::decode(octets).expect("the kernel's is right");
                    if let Some(last) = decoded.segment.body.0.last_mut() {
                        *last ^= 1;
                    }
                    octets.clear();
                    wire::encode(&decoded.ip, decoded.ports, &decoded.segment, octets)
                        .expect("it fits");
                },
                ..AS_IS
            },
        })
    };
    is_told(around, "differs from the written data");
}

/// The same packets with their original checksum: our TCP discards each of them, so nothing
/// arrives.
#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn bad_packets_are_discarded() {
    let around: Around = |right| {
        Box::new(Wrong {
            right,
            fault: Changes {
                comes: |octets| {
                    if octets.len() > 1000
                        && let Some(last) = octets.last_mut()
                    {
                        *last ^= 1;
                    }
                },
                ..AS_IS
            },
        })
    };
    is_told(around, "clean-from-kernel: discarded is {\"tcp-checksum\"");
}

#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_reset_is_detected() {
    let around: Around = |right| {
        Box::new(Wrong {
            right,
            fault: Changes {
                leaves: |segment| {
                    if segment.flags.any(Flags::FIN) {
                        segment.flags = Flags::RST | Flags::ACK;
                    }
                },
                ..AS_IS
            },
        })
    };
    is_told(around, "EstabResets");
}

/// An end that offers an option on the wire differently than it believes: the two ends disagree on
/// the negotiated options.
#[test]
#[ignore = "needs a kernel in virtual time: make kernel test-kernel"]
fn a_disagreement_about_an_option_is_detected() {
    let around: Around = |right| {
        Box::new(Wrong {
            right,
            fault: Changes {
                leaves: |segment| {
                    if let anabranch_wire::Options::Syn { sack_permitted, .. } =
                        &mut segment.options
                    {
                        *sack_permitted = false;
                    }
                },
                ..AS_IS
            },
        })
    };
    is_told(around, "sack is");
}
