//! Obstacles to live runs on this machine, and their remedies.

use std::{fs, io, path::Path};

use anabranch_bpf::privilege::{self, Privileges};
use rustix::io::Errno;

use crate::plan::{error::Error, refusal::Refusal};

/// The properties of a machine on which an operation failed.
#[derive(Debug, Clone)]
struct Machine {
    privileges: Privileges,
    /// Settings below `/proc/sys` that limit the creation of namespaces; `None` if the kernel lacks
    /// the setting.
    most_user_namespaces: Option<u64>,
    most_network_namespaces: Option<u64>,
    /// A setting of Debian's kernels, then one of Ubuntu's.
    is_open_to_users: Option<u64>,
    is_restricted_by_apparmor: Option<u64>,
    has_namespaces: bool,
    has_tun: bool,
    threads: usize,
}

impl Machine {
    fn here() -> Self {
        let setting = |name: &str| {
            let text = fs::read_to_string(format!("/proc/sys/{name}")).ok()?;
            text.trim().parse().ok()
        };
        Self {
            privileges: Privileges::own(),
            most_user_namespaces: setting("user/max_user_namespaces"),
            most_network_namespaces: setting("user/max_net_namespaces"),
            is_open_to_users: setting("kernel/unprivileged_userns_clone"),
            is_restricted_by_apparmor: setting("kernel/apparmor_restrict_unprivileged_userns"),
            has_namespaces: Path::new("/proc/self/ns/net").exists(),
            has_tun: Path::new("/dev/net/tun").exists(),
            threads: fs::read_dir("/proc/self/task").map_or(1, Iterator::count),
        }
    }

    /// The reason why no network namespace can be created, and the remedy.
    fn namespaces(&self, errno: Option<Errno>) -> (String, String) {
        const NEEDS: &str =
            "making a network namespace needs CAP_SYS_ADMIN, or user namespaces for everybody";
        if !self.has_namespaces {
            return (
                "this kernel has no network namespaces (CONFIG_NET_NS)".to_owned(),
                "use another kernel".to_owned(),
            );
        }
        if errno == Some(Errno::NOSPC) || self.most_network_namespaces == Some(0) {
            let most = self.most_network_namespaces.unwrap_or(0);
            return (
                format!(
                    "{NEEDS}; no more network namespaces are permitted (user.max_net_namespaces is {most})"
                ),
                format!(
                    "as root: sysctl user.max_net_namespaces={}",
                    most.max(1024) * 2
                ),
            );
        }
        if errno == Some(Errno::MFILE) || errno == Some(Errno::NFILE) {
            return (
                "this process may have no more open files".to_owned(),
                "raise the limit (ulimit -n)".to_owned(),
            );
        }
        let needed = ["CAP_SYS_ADMIN", "CAP_NET_ADMIN"];
        let mut advice = self.privileges.advice(&needed, true);
        if self.privileges.user == 0 {
            if advice.contains("--cap-add") {
                advice.push_str(" --device=/dev/net/tun");
            }
            return (NEEDS.to_owned(), advice);
        }
        let switched_off = [
            (
                self.most_user_namespaces == Some(0),
                "user.max_user_namespaces",
                "15000",
            ),
            (
                self.is_open_to_users == Some(0),
                "kernel.unprivileged_userns_clone",
                "1",
            ),
            (
                self.is_restricted_by_apparmor
                    .is_some_and(|value| value != 0),
                "kernel.apparmor_restrict_unprivileged_userns",
                "0",
            ),
        ];
        if let Some((_, name, value)) = switched_off.into_iter().find(|(is_off, ..)| *is_off) {
            return (
                format!("{NEEDS}, which {name} does not permit here"),
                format!(
                    "{advice}, or let everybody have user namespaces, as root: sysctl {name}={value}"
                ),
            );
        }
        if self.threads > 1 {
            return (
                format!("{NEEDS}, into which a process of several threads cannot move"),
                format!(
                    "{advice}, or call anabranch.live.prepare() before anything starts a thread"
                ),
            );
        }
        (NEEDS.to_owned(), advice)
    }

    /// The reason why there is no TUN device, and the remedy.
    fn tun(&self, errno: Option<Errno>) -> (String, String) {
        let is_root = self.privileges.user == 0;
        let as_root = if is_root { "" } else { "as root: " };
        match errno {
            Some(Errno::NOENT | Errno::NODEV | Errno::NXIO) => (
                "a TUN device needs /dev/net/tun, which this machine does not have".to_owned(),
                format!(
                    "{as_root}modprobe tun; in a container: start it with --device=/dev/net/tun; a kernel without CONFIG_TUN cannot run live"
                ),
            ),
            Some(Errno::ACCESS) if self.has_tun => (
                "a TUN device needs /dev/net/tun, which this user may not open".to_owned(),
                "run as root, or let everybody open it, as root: chmod 666 /dev/net/tun".to_owned(),
            ),
            _ => (
                "making a TUN device needs CAP_NET_ADMIN, and /dev/net/tun".to_owned(),
                self.privileges.advice(&["CAP_NET_ADMIN"], true),
            ),
        }
    }
}

fn errno(source: &io::Error) -> Option<Errno> {
    source.raw_os_error().map(Errno::from_raw_os_error)
}

fn missing((what, help): (String, String), source: io::Error) -> Error {
    Error::Missing { what, help, source }
}

/// The error if no network namespace can be created.
pub fn no_namespace(source: io::Error) -> Error {
    missing(Machine::here().namespaces(errno(&source)), source)
}

/// The error if no TUN device can be created.
pub fn no_tun(source: io::Error) -> Error {
    missing(Machine::here().tun(errno(&source)), source)
}

/// The error if the settings of a namespace cannot be made.
pub fn no_settings(source: io::Error) -> Error {
    let what = "a namespace's settings below /proc/sys must be writable".to_owned();
    let help = match source.kind() {
        io::ErrorKind::ReadOnlyFilesystem => {
            "/proc/sys is read-only here, as in a container: start it with --security-opt systempaths=unconfined, or --privileged".to_owned()
        }
        _ => Privileges::own().advice(&["CAP_NET_ADMIN", "CAP_SYS_ADMIN"], true),
    };
    missing((what, help), source)
}

/// The error if the routes of several devices or the further addresses of a host cannot be set.
pub fn no_routes(source: io::Error) -> Error {
    let what = "hosts with `devices` or `addresses` need routing rules by address and port (ip-rule(8)), and addresses of both versions of IP";
    let help = "a kernel with CONFIG_IP_MULTIPLE_TABLES and CONFIG_IPV6_MULTIPLE_TABLES, or a scenario without these keys";
    missing((what.to_owned(), help.to_owned()), source)
}

/// The error if the interface of a host cannot be opened.
pub fn no_interface(host: &str, name: &str, source: io::Error) -> Error {
    if errno(&source) == Some(Errno::NODEV) {
        return Refusal::new(
            &["host", host, "attach"],
            format!("the interface `{name}` must be there, and this machine has none of that name"),
            match interfaces().join("`, `") {
                names if names.is_empty() => {
                    "expected an interface, and this machine has none but a loopback".to_owned()
                }
                names => format!("expected one of `{names}`"),
            },
        )
        .into();
    }
    let what = format!("listening to the interface `{name}` needs CAP_NET_RAW");
    let help = privilege::advice(&["CAP_NET_RAW"]);
    missing((what, help), source)
}

/// The interfaces of the calling thread's namespace, except loopbacks.
fn interfaces() -> Vec<String> {
    let table = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let names = table.lines().filter_map(|line| line.split_once(':'));
    let names = names.map(|(name, _)| name.trim().to_owned());
    names.filter(|name| name != "lo").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(user: u32, capabilities: u64) -> Machine {
        Machine {
            privileges: Privileges {
                user,
                is_in_user_namespace: false,
                capabilities,
            },
            most_user_namespaces: Some(15_000),
            most_network_namespaces: Some(15_000),
            is_open_to_users: None,
            is_restricted_by_apparmor: None,
            has_namespaces: true,
            has_tun: true,
            threads: 1,
        }
    }

    #[test]
    fn the_remedy_names_the_missing_right() {
        let user = machine(1000, 0);
        let root = machine(0, u64::MAX);
        let denied = Some(Errno::PERM);
        let of = |machine: &Machine| machine.namespaces(denied);
        assert_eq!(of(&user).1, "run as root");
        let closed = Machine {
            most_user_namespaces: Some(0),
            ..user.clone()
        };
        assert!(
            of(&closed)
                .1
                .ends_with("sysctl user.max_user_namespaces=15000")
        );
        let debian = Machine {
            is_open_to_users: Some(0),
            ..user.clone()
        };
        assert!(of(&debian).1.contains("kernel.unprivileged_userns_clone=1"));
        let ubuntu = Machine {
            is_restricted_by_apparmor: Some(1),
            ..user.clone()
        };
        assert!(
            of(&ubuntu)
                .1
                .contains("kernel.apparmor_restrict_unprivileged_userns=0")
        );
        let threads = Machine {
            threads: 4,
            ..user.clone()
        };
        assert!(of(&threads).1.contains("before anything starts a thread"));
        // The remedy for root is not to become root.
        let container = machine(0, 0);
        assert!(
            of(&container)
                .1
                .contains("--cap-add=SYS_ADMIN --cap-add=NET_ADMIN --device=/dev/net/tun")
        );
        for told in [of(&root), of(&container), root.tun(denied)] {
            assert!(!told.1.contains("run as root"), "{told:?}");
        }
        let full = Machine {
            most_network_namespaces: Some(7),
            ..root.clone()
        };
        assert!(
            full.namespaces(Some(Errno::NOSPC))
                .1
                .contains("user.max_net_namespaces")
        );
        let old = Machine {
            has_namespaces: false,
            ..root.clone()
        };
        assert!(of(&old).0.contains("CONFIG_NET_NS"));
        assert!(root.tun(Some(Errno::NOENT)).1.starts_with("modprobe tun"));
        assert!(
            user.tun(Some(Errno::NOENT))
                .1
                .starts_with("as root: modprobe tun")
        );
        assert!(
            user.tun(Some(Errno::ACCESS))
                .1
                .contains("chmod 666 /dev/net/tun")
        );
    }
}
