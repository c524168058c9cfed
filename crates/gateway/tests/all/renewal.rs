//! New sessions while the path in use delivers data but no handshakes.

use super::network::{Network, Wire};
use anabranch_core::units::Duration;
use anabranch_gateway::policy::Role;

const MS: Duration = Duration::from_millis(1);
const ROLES: [Role; 3] = [Role::Overflow, Role::Backup, Role::Metered];

/// A path in use, and a spare one of this role.
fn network(seed: u64, role: Role) -> Network {
    let mut network = Network::new(seed, vec![[Wire::default(); 2]; 2], false);
    network.role(&[0, 1], 1, role);
    network.run(MS * 5_000);
    network
}

#[test]
fn keys_are_replaced_over_a_spare_path_if_the_path_in_use_loses_handshakes() {
    for role in ROLES {
        let mut network = network(1, role);
        network.without_handshakes.insert(0);
        let since = network.now;
        for end in [0, 1] {
            network.flow(end, 1, MS * 100, MS * 600_000);
        }
        network.run(MS * 600_000);
        for end in [0, 1] {
            let ms = network.gap(end, since).as_millis_f64();
            assert!(ms <= 500.0, "{role:?}, end {end}: {ms} ms");
        }
        let sessions = network.stats(0).sessions;
        assert!(sessions >= 4, "{role:?}: {sessions} sessions");
    }
}

/// The session has ended, so no report changes the state of the path.
#[test]
fn a_tunnel_without_a_session_begins_one_over_a_spare_path() {
    for role in ROLES {
        let mut network = network(2, role);
        network.without_handshakes.extend([0, 1]);
        network.run(MS * 300_000);
        assert!(!network.tunnel(0).is_up() && !network.tunnel(1).is_up());
        network.without_handshakes.remove(&1);
        // In the long run a held path carries an initiation each 30 s.
        network.run(MS * 31_000);
        for end in [0, 1] {
            assert!(network.tunnel(end).is_up(), "{role:?}, end {end}");
        }
        let since = network.now;
        network.flow(0, 1, MS * 10, MS * 2_000);
        network.run(MS * 2_000);
        let ms = network.gap(1, since).as_millis_f64();
        assert!(ms <= 500.0, "{role:?}: {ms} ms");
    }
}
