//! Unnamed network namespaces, which last while a process holds them.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    net::{IpAddr, Ipv4Addr},
    os::fd::AsFd,
    sync::Arc,
    thread,
};

use anabranch_bpf::privilege;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::kernel::{
    address::{V4_PREFIX, V6_PREFIX, address_of, v4_of, v6_of},
    sys::{
        contain,
        interface::{Interface, Offloads, Selector, open_tun, rule},
    },
    tun::{Drops, Passed, Tun},
};

/// The device name of a host with one device.
pub const DEVICE: &str = "path";
/// The routing table of the first of several devices; the tables of the others follow.
const FIRST_TABLE: u32 = 1000;
/// Priorities of the rules (ip-rule(8)) by address and by port. All precede the table `main`.
const BY_ADDRESS: u32 = 1000;
const BY_PORT: u32 = 2000;
/// Packets that may wait in a device for the engine. It is long because only a queue of the
/// scenario should drop packets.
const DEVICE_QUEUE: u32 = 10_000;

/// A route of a host with several devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    pub to: IpAddr,
    /// The number of the device, whose address is the source.
    pub device: usize,
    /// Port ranges; the source or destination port must lie in one of them. Any port matches if
    /// there is none.
    pub ports: Vec<[u16; 2]>,
}

/// A network namespace.
#[derive(Debug, Clone)]
pub struct Namespace {
    file: Arc<File>,
}

impl Namespace {
    /// Creates a namespace that holds only a loopback interface.
    pub fn new() -> io::Result<Self> {
        let made = thread::spawn(|| {
            // SAFETY: a new network namespace for this thread alone touches no descriptor and no
            // memory.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
            let file = Arc::new(File::open("/proc/thread-self/ns/net")?);
            Interface::new("lo")?.up()?;
            Ok(Self { file })
        });
        made.join()
            .expect("a thread that makes a namespace does not panic")
    }

    /// Moves the calling thread there for good.
    pub fn enter(&self) -> io::Result<()> {
        let network = Some(LinkNameSpaceType::Network);
        Ok(move_into_link_name_space(self.file.as_fd(), network)?)
    }

    /// Calls a function in a thread in the namespace.
    pub fn inside<T: Send>(&self, call: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        thread::scope(|scope| {
            let done = scope.spawn(|| {
                self.enter()?;
                call()
            });
            done.join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Sets kernel settings, each `net/…` below `/proc/sys`. Skips settings that this kernel lacks,
    /// and returns the rest.
    pub fn set<'a>(&self, settings: &[(&'a str, String)]) -> io::Result<Vec<(&'a str, String)>> {
        self.inside(|| {
            let mut made = Vec::with_capacity(settings.len());
            for (name, value) in settings {
                match fs::write(format!("/proc/sys/{name}"), value) {
                    Ok(()) => made.push((*name, value.clone())),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => {
                        return Err(io::Error::new(error.kind(), format!("{name}: {error}")));
                    }
                }
            }
            Ok(made)
        })
    }

    /// Whether the kernel has a setting of this name.
    pub fn has(&self, setting: &str) -> io::Result<bool> {
        self.inside(|| fs::exists(format!("/proc/sys/{setting}")))
    }

    /// Creates the device through which a host reaches all others, with the addresses of this
    /// number.
    pub fn device(&self, name: &str, number: usize, mtu: i32) -> io::Result<Tun> {
        self.device_within(name, number, mtu, [V4_PREFIX, V6_PREFIX])
    }

    /// Creates one of several devices. No host is reachable over it without a [`Way`].
    pub fn one_of_several(&self, name: &str, number: usize, mtu: i32) -> io::Result<Tun> {
        self.device_within(name, number, mtu, [32, 128])
    }

    fn device_within(
        &self,
        name: &str,
        number: usize,
        mtu: i32,
        prefixes: [u32; 2],
    ) -> io::Result<Tun> {
        self.inside(|| {
            let file = open_tun(name)?;
            let interface = Interface::new(name)?;
            interface.queue_length(DEVICE_QUEUE)?;
            interface.mtu(mtu)?;
            interface.offloads_off()?;
            interface.address_v4(v4_of(number), prefixes[0])?;
            interface.up()?;
            // If the kernel has no IPv6, no flow of that family runs.
            if interface.address_v6(v6_of(number), prefixes[1]).is_ok() {
                wait_for_address(name)?;
            }
            Ok(Tun::new(file, self.clone(), name))
        })
    }

    /// Adds an address to a device.
    pub fn further_address(&self, device: &str, address: IpAddr) -> io::Result<()> {
        self.inside(|| Interface::new(device)?.further_address(address))
    }

    /// Chooses the device of each packet: the one with its source address, or else the first
    /// matching entry of `ways`. Sockets bound to a device need no rule.
    ///
    /// `devices` holds numbers and names.
    pub fn route(&self, devices: &[(usize, &str)], ways: &[Way]) -> io::Result<()> {
        self.inside(|| {
            for ((number, name), table) in devices.iter().zip(FIRST_TABLE..) {
                let interface = Interface::new(name)?;
                for is_v6 in versions()? {
                    let own = address_of(*number, *is_v6);
                    interface.route(None, own, Some(table))?;
                    rule(*is_v6, BY_ADDRESS, table, &Selector::From(own))?;
                }
            }
            let versions = versions()?;
            for way in ways
                .iter()
                .filter(|way| versions.contains(&way.to.is_ipv6()))
            {
                let place = devices.iter().position(|(number, _)| *number == way.device);
                let Some(place) = place else { continue };
                let (number, name) = devices[place];
                if way.ports.is_empty() {
                    let own = address_of(number, way.to.is_ipv6());
                    Interface::new(name)?.route(Some(way.to), own, None)?;
                }
                let table = FIRST_TABLE + u32::try_from(place).expect("few devices");
                for range in &way.ports {
                    for port in [
                        Selector::PortThere(*range, way.to),
                        Selector::PortHere(*range, way.to),
                    ] {
                        rule(way.to.is_ipv6(), BY_PORT, table, &port)?;
                    }
                }
            }
            Ok(())
        })
    }

    /// Adds routes to these addresses over the only device of a host.
    pub fn reach(&self, number: usize, to: &[IpAddr]) -> io::Result<()> {
        self.inside(|| {
            let interface = Interface::new(DEVICE)?;
            for to in to {
                if versions()?.contains(&to.is_ipv6()) {
                    let own = address_of(number, to.is_ipv6());
                    interface.route(Some(*to), own, None)?;
                }
            }
            Ok(())
        })
    }

    /// Sets the congestion control of the routes from host number `host`, which has one device, to
    /// all others.
    pub fn route_control(&self, host: usize, control: &str) -> io::Result<()> {
        self.inside(|| {
            let interface = Interface::new(DEVICE)?;
            let [v4, v6] = [v4_of(host).octets().to_vec(), v6_of(host).octets().to_vec()];
            interface.route_control(&v4, V4_PREFIX, control)?;
            // A kernel without IPv6 has no such route.
            match interface.route_control(&v6, V6_PREFIX, control) {
                Err(error) if fs::exists("/proc/sys/net/ipv6")? => Err(error),
                _ => Ok(()),
            }
        })
    }

    /// TCP counters of the namespace (`/proc/net/snmp`), by the kernel's names.
    pub fn tcp_counters(&self) -> io::Result<BTreeMap<String, u64>> {
        let table = self.inside(|| fs::read_to_string("/proc/thread-self/net/snmp"))?;
        let mut lines = table.lines().filter_map(|line| line.strip_prefix("Tcp:"));
        let names = lines.next().unwrap_or_default().split_whitespace();
        let figures = lines.next().unwrap_or_default().split_whitespace();
        // `MaxConn` is -1: no count.
        let counts = names.zip(figures);
        Ok(counts
            .filter_map(|(name, figure)| Some((name.to_owned(), figure.parse().ok()?)))
            .collect())
    }

    /// The offloads of a device.
    pub fn device_offloads(&self, name: &str) -> io::Result<Offloads> {
        self.inside(|| Ok(Interface::new(name)?.offloads()))
    }

    /// Packets that the device passed on, and packets that it dropped in either direction.
    pub fn device_counters(&self, name: &str) -> io::Result<(Passed, Drops)> {
        self.inside(|| {
            let table = fs::read_to_string("/proc/thread-self/net/dev")?;
            let line = table
                .lines()
                .find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':'));
            let figures: Vec<u64> = line
                .unwrap_or_default()
                .split_whitespace()
                .map_while(|figure| figure.parse().ok())
                .collect();
            // Columns of proc(5): receive packets, errs and drop are 2nd to 4th, transmit ones 10th
            // to 12th.
            let sum = |columns: [usize; 2]| columns.iter().filter_map(|at| figures.get(*at)).sum();
            let of = |column: usize| figures.get(column).copied().unwrap_or(0);
            let passed = Passed {
                from_host: of(9),
                to_host: of(1),
            };
            let drops = Drops {
                from_host: sum([10, 11]),
                to_host: sum([2, 3]),
            };
            Ok((passed, drops))
        })
    }
}

/// The IP versions that this kernel has; `true` is IPv6.
fn versions() -> io::Result<&'static [bool]> {
    let has_v6 = fs::exists("/proc/sys/net/ipv6")?;
    Ok(if has_v6 { &[false, true] } else { &[false] })
}

/// Makes the kernel's TCP send every segment separately over the calling thread's device. With
/// larger TSO bursts it would also defer segments to fill a burst.
pub fn send_one_by_one() -> io::Result<()> {
    Interface::new(DEVICE)?.merged_segments(1)
}

/// Gives the calling thread's device this address instead of its first one, and a route to `peer`.
pub fn set_addresses(own: Ipv4Addr, peer: Ipv4Addr) -> io::Result<()> {
    let interface = Interface::new(DEVICE)?;
    interface.address_v4(own, 32)?;
    interface.route(Some(peer.into()), own.into(), None)
}

/// Sets the largest packet of the calling thread's device.
pub fn set_mtu(mtu: i32) -> io::Result<()> {
    Interface::new(DEVICE)?.mtu(mtu)
}

/// Waits until an IPv6 address is usable: the kernel takes a moment even if no other host could
/// have it.
fn wait_for_address(name: &str) -> io::Result<()> {
    /// `IFA_F_TENTATIVE` (`linux/if_addr.h`).
    const TENTATIVE: u32 = 0x40;
    for _ in 0..1000 {
        let table = fs::read_to_string("/proc/thread-self/net/if_inet6")?;
        // Address, interface, prefix length, scope, flags, name.
        let tentative = table.lines().any(|line| {
            let columns: Vec<&str> = line.split_whitespace().collect();
            let flags = columns
                .get(4)
                .and_then(|flags| u32::from_str_radix(flags, 16).ok());
            columns.last() == Some(&name) && flags.is_some_and(|flags| flags & TENTATIVE != 0)
        });
        if !tentative {
            return Ok(());
        }
        thread::sleep(std::time::Duration::from_millis(1));
    }
    Ok(())
}

/// Ensures that this process may create network namespaces: either with its present rights, or as
/// root of a new user namespace (user_namespaces(7)). A process with several threads cannot enter a
/// user namespace.
pub fn may_make() -> io::Result<()> {
    let refused = match Namespace::new() {
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => error,
        Err(error) => return Err(error),
    };
    // The kernel may still list the thread that made the attempt above although it is joined.
    for _ in 0..100 {
        if fs::read_dir("/proc/self/task")?.count() == 1 {
            break;
        }
        thread::sleep(std::time::Duration::from_millis(1));
    }
    if fs::read_dir("/proc/self/task")?.count() > 1 {
        return Err(refused);
    }
    // A process cannot leave a user namespace, so a child process tries first.
    let enough = contain::succeeds_elsewhere(|| {
        become_root_of_own()?;
        Namespace::new().map(drop)
    });
    if !enough? {
        return Err(refused);
    }
    privilege::about_to_move();
    become_root_of_own()
}

/// Moves this process into a new user namespace, as root there. The kernel refuses if the process
/// has several threads.
fn become_root_of_own() -> io::Result<()> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    // SAFETY: a new user namespace touches no descriptor and no memory.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER) }?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {} 1", user.as_raw()))?;
    fs::write("/proc/self/gid_map", format!("0 {} 1", group.as_raw()))
}
