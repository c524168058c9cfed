//! QUIC, as others wrote it, on a simulated path.
//!
//! Two unmodified `quinn-proto` endpoints with real TLS take the place of the TCP of a scenario's
//! flow. Packets carry their real octets through loss and reordering; the receiver checks every
//! one of them.
//!
//! What repeats: with the same seeds every packet's time, size and fate, and so the digest. What does
//! not: the octets on the wire. TLS and the connection IDs draw from the system and the certificate is
//! made anew, but nothing that is drawn there varies in length. Every run is made twice to compare.
//! Other processors may round differently: the stack's own CUBIC uses the platform's `cbrt`.

mod host;
mod transfer;

use std::{error::Error, sync::Arc};

use anabranch::{Extensions, Finished, Octets, Resolved, Scenario, Simulation, units::Instant};
use quinn_proto::{
    ClientConfig, ServerConfig,
    rustls::{
        RootCertStore,
        pki_types::{CertificateDer, PrivateKeyDer},
    },
};

use host::{QuicHost, Role, SERVER_NAME};
use transfer::{Figures, Report, Sink, Upload};

/// Octets to transfer.
const SIZE: u64 = 2_000_000;

const SCENARIO: &str = r#"
title = "QUIC over loss and reordering"
duration = "20 s"

[link.path]
between = ["client", "server"]
rate = "20 Mbit/s"
delay = "20 ms"
queue = { kind = "drop-tail", limit = "100 packets" }

[flow.quic]
from = "client"
to = "server"
"#;

/// What is set over the scenario, by the name of its row. A packet that is late by 8 leaves the
/// bottleneck behind eight that came after it.
const PATHS: [(&str, &[&str]); 5] = [
    ("as it is", &[]),
    ("1 % loss", &[LOSS]),
    ("late by 2", &[LATE_BY_2]),
    ("late by 8", &[LATE_BY_8]),
    ("both", &[LOSS, LATE_BY_8]),
];
const LOSS: &str = r#"link.path.forward.impair=[{ kind = "bernoulli-loss", rate = 0.01 }]"#;
const LATE_BY_2: &str = r#"link.path.forward.queue.reorder={ kind = "interval", interval = 2 }"#;
const LATE_BY_8: &str = r#"link.path.forward.queue.reorder={ kind = "interval", interval = 8 }"#;

fn main() -> Result<(), Box<dyn Error>> {
    let identity = Identity::new()?;
    println!("path       handshake (ms)  goodput (Mbit/s)  lost  thought lost  reordered  digest");
    let mut goodputs = [0.0; PATHS.len()];
    for ((name, settings), goodput) in PATHS.into_iter().zip(&mut goodputs) {
        let mut scenario = Scenario::parse(SCENARIO, "quic.toml", &Extensions::default())?;
        for setting in settings {
            scenario.set(setting)?;
        }
        let resolved = scenario.resolve(None)?;
        let (run, figures) = transfer(&resolved, &identity)?;
        let (again, _) = transfer(&resolved, &identity)?;
        assert_eq!(
            run.summary.digest, again.summary.digest,
            "{name}: the run does not repeat"
        );
        *goodput = row(name, &run, figures)?;
    }
    let [as_it_is, loss, by_2, by_8, both] = goodputs;
    assert!(
        as_it_is > 15.0 && as_it_is < 19.5,
        "the path is filled: {as_it_is}"
    );
    // RFC 9002 §6.1.1: a packet is lost when one sent three later is acknowledged.
    assert!(
        (by_2 / as_it_is - 1.0).abs() < 0.02,
        "two places are tolerated: {by_2}"
    );
    assert!(
        by_8 < 0.6 * as_it_is,
        "eight places are taken for a loss: {by_8}"
    );
    assert!(loss < 0.6 * as_it_is, "losses cost goodput: {loss}");
    assert!(both > 1.0, "the transfer goes on under both: {both}");
    Ok(())
}

/// The server's certificate and key.
struct Identity {
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Identity {
    /// A new one. Ed25519 signatures and this serial number have the same length every time.
    fn new() -> Result<Self, rcgen::Error> {
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519)?;
        let mut params = rcgen::CertificateParams::new([SERVER_NAME.to_owned()])?;
        params.serial_number = Some(1_u64.into());
        Ok(Self {
            certificate: params.self_signed(&key)?.der().clone(),
            key: key.serialize_der(),
        })
    }

    /// Configurations of both ends. They remember sessions, so every run gets its own.
    fn roles(&self) -> Result<[Role; 2], Box<dyn Error>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone())?;
        let key = PrivateKeyDer::try_from(self.key.clone())?;
        let server = ServerConfig::with_single_cert(vec![self.certificate.clone()], key)?;
        Ok([
            Role::Client(ClientConfig::with_root_certificates(Arc::new(roots))?),
            Role::Server(Arc::new(server)),
        ])
    }
}

/// One run: the client sends [`SIZE`] octets to the server.
fn transfer(
    resolved: &Resolved,
    identity: &Identity,
) -> Result<(Finished<Octets>, Figures), Box<dyn Error>> {
    let report = Report::default();
    let [client, server] = identity.roles()?;
    let client = QuicHost::new(client, 1, Box::new(Upload::new(SIZE, &report)));
    let server = QuicHost::new(server, 2, Box::new(Sink::new(&report)));
    let run = Simulation::<Octets>::new(resolved)
        .hosts("quic", [Box::new(client), Box::new(server)])
        .run()?;
    Ok((run, report.figures()))
}

/// Checks a run and prints it; returns its goodput in Mbit/s.
fn row(name: &str, run: &Finished<Octets>, figures: Figures) -> Result<f64, String> {
    let missing = |what: &str| format!("{name}: {what} ({figures:?})");
    let connected = figures.connected.ok_or_else(|| missing("no handshake"))?;
    let completed = figures
        .completed
        .ok_or_else(|| missing("the transfer did not end"))?;
    let sender = figures
        .sender
        .ok_or_else(|| missing("the connection was not closed"))?;
    assert_eq!(
        (figures.received, figures.wrong),
        (SIZE, 0),
        "{name}: the content is not what was sent"
    );
    assert_eq!(run.summary.flows["quic"]["delivered_bytes"], SIZE, "{name}");

    let handshake_ms = (connected - Instant::START).as_millis_f64();
    // One round trip of 40 ms (RFC 9001 §4.1.1): nothing of the handshake is lost with this seed.
    assert!(
        (40.0..80.0).contains(&handshake_ms),
        "{name}: a handshake of {handshake_ms} ms"
    );
    let goodput = SIZE as f64 * 8.0 / (completed - connected).as_secs_f64() / 1e6;
    let link = &run.summary.links["path"]["forward"];
    let count = |figure: &str| link[figure].as_u64().unwrap_or(0);
    println!(
        "{name:<11}{handshake_ms:>14.1}{goodput:>18.2}{:>6}{:>14}{:>11.4}  {:.8}",
        count("lost_packets") + count("dropped_packets"),
        sender.lost_packets,
        run.summary.flows["quic"]["reordered_ratio"]
            .as_f64()
            .unwrap_or(0.0),
        run.summary.digest.as_deref().unwrap_or("none"),
    );
    Ok(goodput)
}
