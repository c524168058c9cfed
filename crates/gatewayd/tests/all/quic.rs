//! QUIC inside the tunnel (quinn, with CUBIC and with BBR).

use std::{
    net::{SocketAddr, UdpSocket},
    sync::{Arc, mpsc},
    thread::JoinHandle,
};

use quinn::{
    ClientConfig, Endpoint, EndpointConfig, ServerConfig, TokioRuntime, TransportConfig,
    congestion::{BbrConfig, ControllerFactory, CubicConfig},
    rustls::{RootCertStore, pki_types::PrivatePkcs8KeyDer},
};

use super::namespaces::{Host, TRANSFER, both_up, content, may_run, ping, wait};

/// A certificate and its key.
type Identity = rcgen::CertifiedKey<rcgen::KeyPair>;

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(work)
}

fn endpoint(socket: UdpSocket, server: Option<ServerConfig>) -> Endpoint {
    let config = EndpointConfig::default();
    Endpoint::new(config, server, socket, Arc::new(TokioRuntime)).expect("a socket")
}

/// Receives one stream, and signals when a quarter of the content has arrived. Returns the received
/// octets.
fn receiver(host: &Host, identity: &Identity, midway: mpsc::Sender<()>) -> JoinHandle<Vec<u8>> {
    let chain = vec![identity.cert.der().clone()];
    let key = PrivatePkcs8KeyDer::from(identity.signing_key.serialize_der());
    host.inside(move || {
        let socket = UdpSocket::bind("10.9.0.2:4433").expect("it is free");
        let config = ServerConfig::with_single_cert(chain, key.into()).expect("a certificate");
        run(async {
            let endpoint = endpoint(socket, Some(config));
            let connection = endpoint.accept().await.expect("it comes");
            let connection = connection.await.expect("it is accepted");
            let mut stream = connection.accept_uni().await.expect("it comes");
            let mut arrived = Vec::new();
            let mut midway = Some(midway);
            while let Some(chunk) = stream.read_chunk(1 << 16, true).await.expect("it arrives") {
                arrived.extend_from_slice(&chunk.bytes);
                if arrived.len() >= TRANSFER / 4 {
                    // The receiver of the signal may be gone.
                    midway.take().map(|midway| midway.send(()));
                }
            }
            connection.close(0_u32.into(), b"");
            endpoint.wait_idle().await;
            arrived
        })
    })
}

fn sender(
    host: &Host,
    identity: &Identity,
    control: Arc<dyn ControllerFactory + Send + Sync>,
) -> JoinHandle<()> {
    let mut roots = RootCertStore::empty();
    roots
        .add(identity.cert.der().clone())
        .expect("a certificate");
    host.inside(move || {
        let socket = UdpSocket::bind("10.9.0.1:0").expect("it is free");
        let mut config = ClientConfig::with_root_certificates(Arc::new(roots)).expect("roots");
        let mut transport = TransportConfig::default();
        transport.congestion_controller_factory(control);
        config.transport_config(Arc::new(transport));
        run(async {
            let endpoint = endpoint(socket, None);
            let to: SocketAddr = "10.9.0.2:4433".parse().expect("an address");
            let connecting = endpoint.connect_with(config, to, "gateway.test");
            let connection = connecting.expect("a name").await.expect("it is accepted");
            let mut stream = connection.open_uni().await.expect("one is allowed");
            stream.write_all(&content()).await.expect("it is taken");
            stream.finish().expect("it is open");
            // The receiver closes the connection when it has all.
            connection.closed().await;
        });
    })
}

#[test]
fn quic_outlives_a_path_with_cubic_and_bbr() {
    if !may_run() {
        return;
    }
    let hosts = both_up();
    wait("an answer", || ping(&hosts));
    let identity = rcgen::generate_simple_self_signed(vec!["gateway.test".to_owned()]);
    let identity = identity.expect("a certificate");
    let controls: [Arc<dyn ControllerFactory + Send + Sync>; 2] = [
        Arc::new(CubicConfig::default()),
        Arc::new(BbrConfig::default()),
    ];
    for control in controls {
        let (midway, is_midway) = mpsc::channel();
        let receiver = receiver(&hosts[1], &identity, midway);
        let sender = sender(&hosts[0], &identity, control);
        is_midway.recv().expect("it arrives");
        hosts[1].ip(&["link", "set", "w1", "down"]);
        sender.join().expect("no panic");
        assert!(
            receiver.join().expect("no panic") == content(),
            "the content differs"
        );
        hosts[1].ip(&["link", "set", "w1", "up"]);
        wait("the path's return", || {
            hosts[0].status()["peers"]["other"]["paths"]["one"]["state"] == "active"
        });
    }
}
