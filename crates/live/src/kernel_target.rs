//! The kernel's TCP under a behaviour script: sockets in a separate namespace, and a TUN device
//! that carries the script's packets in real time.

mod calls;
mod options;

use std::{
    io,
    net::Ipv4Addr,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::mpsc::Receiver,
    time::Instant,
};

use anabranch_core::{
    packet::{Direction, FlowId},
    system,
    units::Duration,
};
use anabranch_script::{Answer, KERNEL_FIGURES, Request, Target};
use anabranch_wire::{Ports, Version};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

use crate::{
    kernel::{
        address::v4_of,
        namespace::{DEVICE, Namespace},
        sys::{priority, tcp_info::TcpInfo},
        tun::{Device, Tun},
    },
    plan::frame::LARGEST,
};

/// The host, and the peer that the script plays; no host exists there.
const HOST: usize = 0;
const PEER: usize = 1;
/// The ports of the peer and of the host.
const PORTS: Ports = Ports {
    source: 40_000,
    destination: 8080,
};
/// Default MTU of the device.
const MTU: i32 = 1500;
/// Tolerance of times: a thread is woken late, and the kernel's timers count in ticks of up to 10
/// ms.
const TOLERANCE: Duration = Duration::from_millis(10);
/// A timer of the kernel is late by up to an eighth of its time: each level of the timer wheel is
/// eight times coarser than the one before (`kernel/time/timer.c`, `LVL_CLK_SHIFT`).
const TIMER_SHARE: u64 = 8;
/// Longest wait for a packet without a time in the script.
const PATIENCE: Duration = Duration::from_secs(30);

/// A socket, or a set of watched sockets.
#[derive(Debug, Default)]
struct Socket {
    /// `None` once it is closed.
    descriptor: Option<OwnedFd>,
    /// The application has closed it.
    is_closed: bool,
    listens: bool,
    /// It has a local address.
    is_bound: bool,
    /// The result of a call that blocks.
    blocked: Option<Receiver<io::Result<usize>>>,
}

/// A kernel's TCP without other traffic. It lives on the thread that made it.
#[derive(Debug)]
pub struct KernelTarget {
    namespace: Namespace,
    device: Tun,
    start: Option<Instant>,
    sockets: Vec<Socket>,
    /// The index of the connection's socket, if there is a connection.
    connection: Option<usize>,
    /// Addresses of the host and of the peer that the script plays.
    addresses: [Ipv4Addr; 2],
    /// Number of connections, and ports of packets to the last one.
    connections: u64,
    ports: Ports,
    congestion: String,
    buffer: Vec<u8>,
    sent: Option<(Duration, Vec<u8>)>,
    hindrance: Option<String>,
    trouble: Option<String>,
    /// The time that this thread had waited for a processor at the last check, and the longest wait
    /// between two checks.
    waited: Duration,
    late: Duration,
}

impl KernelTarget {
    /// Creates a namespace, which the calling thread enters for good.
    ///
    /// # Errors
    /// If this process may not create one.
    pub fn new() -> std::io::Result<Self> {
        let namespace = Namespace::new()?;
        namespace.set(&[
            ("net/ipv4/tcp_no_metrics_save", "1".to_owned()),
            // Without IPv6 the device sends nothing by itself, such as neighbour discovery.
            ("net/ipv6/conf/default/disable_ipv6", "1".to_owned()),
            ("net/ipv6/conf/all/disable_ipv6", "1".to_owned()),
        ])?;
        let device = namespace.device(DEVICE, HOST, MTU)?;
        namespace.enter()?;
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let _ = priority::prefer(-20);
        Ok(Self {
            namespace,
            device,
            start: None,
            sockets: Vec::new(),
            connection: None,
            addresses: [v4_of(HOST), v4_of(PEER)],
            connections: 0,
            ports: PORTS,
            congestion: "reno".to_owned(),
            buffer: vec![0; LARGEST],
            sent: None,
            hindrance: None,
            trouble: None,
            waited: waited_for_processor(),
            late: Duration::ZERO,
        })
    }

    /// The longest time that the runner waited for a processor. Measured times are no more accurate
    /// than this.
    #[must_use]
    pub const fn lateness_seen(&self) -> Duration {
        self.late
    }

    fn note_lateness(&mut self) {
        let waited = waited_for_processor();
        self.late = self.late.max(waited.saturating_sub(self.waited));
        self.waited = waited;
    }

    /// The setting required by the script that this kernel does not have, if any.
    #[must_use]
    pub fn hindrance(&self) -> Option<&str> {
        self.hindrance.as_deref()
    }

    /// The error of the device, if it failed: packets that the kernel sent since are unknown.
    #[must_use]
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// The next packet from the device, if it arrives before `until`.
    fn receive(&mut self, until: Duration) -> std::io::Result<Option<usize>> {
        loop {
            if let Some(len) = self.device.receive(&mut self.buffer)? {
                return Ok(Some(len));
            }
            let left = until.saturating_sub(self.now());
            if left.is_zero() {
                return Ok(None);
            }
            let nanos = left.as_nanos();
            let timeout = Timespec {
                tv_sec: i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
                tv_nsec: i64::try_from(nanos % 1_000_000_000).expect("below a second"),
            };
            let mut waiting = [PollFd::from_borrowed_fd(
                self.device.descriptor(),
                PollFlags::IN,
            )];
            match poll(&mut waiting, Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn hinder(&mut self, why: &str) -> String {
        self.hindrance
            .get_or_insert_with(|| system::words(why))
            .clone()
    }

    fn now(&mut self) -> Duration {
        let start = *self.start.get_or_insert_with(Instant::now);
        Duration::from_nanos(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Sleeps until `until`.
    fn wait(&mut self, until: Duration) {
        loop {
            let left = until.saturating_sub(self.now());
            if left.is_zero() {
                self.note_lateness();
                return;
            }
            std::thread::sleep(std::time::Duration::from_nanos(left.as_nanos()));
        }
    }

    fn info(&self) -> Option<TcpInfo> {
        let socket = self.sockets.get(self.connection.unwrap_or(0))?;
        TcpInfo::of(socket.descriptor.as_ref()?).ok()
    }
}

/// The second field of this thread's `schedstat` (`Documentation/scheduler/sched-stats.rst`).
fn waited_for_processor() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split_whitespace().nth(1);
    Duration::from_nanos(nanos.and_then(|nanos| nanos.parse().ok()).unwrap_or(0))
}

impl Target for KernelTarget {
    fn tolerance(&self) -> Duration {
        TOLERANCE
    }

    fn lateness(&self, wait: Duration) -> Duration {
        Duration::from_picos(wait.as_picos() / TIMER_SHARE)
    }

    fn patience(&self) -> Duration {
        PATIENCE
    }

    fn slack(&self, figure: &str) -> i64 {
        match figure {
            // Microseconds.
            "tcpi_rtt" | "tcpi_rttvar" | "tcpi_min_rtt" | "tcpi_rto" => {
                i64::try_from(TOLERANCE.as_nanos() / 1000).expect("a few milliseconds")
            }
            _ => 0,
        }
    }

    fn option(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            // The kernel is the stack.
            "stack" => Ok(()),
            "mtu" => {
                let mtu = value.parse().ok().filter(|mtu| (68..=65_535).contains(mtu));
                let mtu = mtu.ok_or_else(|| format!("`{value}`: expected octets, 68 to 65535"))?;
                let set = self
                    .namespace
                    .inside(|| crate::kernel::namespace::set_mtu(mtu));
                set.map_err(|error| {
                    self.hinder(&format!("the device cannot have an MTU of {mtu}: {error}"))
                })
            }
            "cc" => {
                value.clone_into(&mut self.congestion);
                crate::plan::settings::offers(value).map_err(|error| {
                    self.hinder(&format!("the kernel does not offer `{value}`: {error}"))
                })
            }
            "local_ip" | "remote_ip" => {
                let given = value
                    .parse()
                    .map_err(|_| format!("`{value}`: expected an IPv4 address"))?;
                self.addresses[if name == "local_ip" { HOST } else { PEER }] = given;
                let [own, peer] = self.addresses;
                let set = self
                    .namespace
                    .inside(|| crate::kernel::namespace::set_addresses(own, peer));
                set.map_err(|error| {
                    self.hinder(&format!(
                        "the device cannot have the address {value}: {error}"
                    ))
                })
            }
            // Without TSO bursts no segment is deferred to fill one.
            "transport.segmentation" if value == "none" => {
                let set = self
                    .namespace
                    .inside(crate::kernel::namespace::send_one_by_one);
                set.map_err(|error| {
                    self.hinder(&format!("the device cannot do without merging: {error}"))
                })
            }
            _ => Err(self.hinder(&format!("the kernel has no switch like `--{name}`"))),
        }
    }

    fn sysctl(&mut self, name: &str, value: &str) -> Result<(), String> {
        // Each socket is given a control.
        if name == "net.ipv4.tcp_congestion_control" {
            return self.option("cc", value);
        }
        // Other settings belong to the whole machine.
        if !name.starts_with("net.") {
            return Err(format!(
                "`{name}` is no setting of a network: expected `net.` and a name"
            ));
        }
        let file = file_of(name);
        // The sysctl belongs to the network namespace of the calling thread.
        let written = self.namespace.inside(|| std::fs::write(&file, value));
        written.map_err(|error| {
            self.hinder(&format!("the kernel does not take {name}={value}: {error}"))
        })
    }

    fn knows(&self, name: &str) -> bool {
        self.namespace
            .inside(|| std::fs::metadata(file_of(name)))
            .is_ok()
    }

    fn has(&self, name: &str) -> bool {
        self.knows(name)
    }

    fn forget_cookies(&mut self) {
        if self.connections > 0 {
            let why = "the cookies of Fast Open cannot be forgotten within a script";
            self.hindrance.get_or_insert_with(|| why.to_owned());
        }
    }

    fn connection(&self) -> u64 {
        self.connections
    }

    fn call(&mut self, now: Duration, request: Request<'_>) -> Result<Answer, String> {
        self.wait(now);
        Ok(match self.carry_out(request)? {
            Ok(answer) => answer,
            Err(error) => Answer::Error(named(error)),
        })
    }

    fn towards(&self) -> (Version, Ports) {
        let [own, peer] = self.addresses;
        let version = Version::between(peer.into(), own.into());
        (version.expect("both are of one version"), self.ports)
    }

    fn inject(&mut self, now: Duration, packet: &[u8]) {
        self.wait(now);
        // A packet that the device refuses is discarded, as at a host.
        let _ = self.device.send(packet, (FlowId(0), Direction::Forward));
        self.note_lateness();
    }

    fn advance(&mut self, until: Duration) -> Result<(), String> {
        if self.sent.is_some() {
            return Ok(());
        }
        if let Some(trouble) = &self.trouble {
            return Err(trouble.clone());
        }
        let received = self.receive(until).map_err(|error| {
            let trouble = format!("the device cannot be read: {}", system::words(&error));
            self.trouble.get_or_insert(trouble).clone()
        })?;
        if let Some(len) = received {
            self.sent = Some((self.now(), self.buffer[..len].to_vec()));
            self.note_lateness();
        }
        Ok(())
    }

    fn take_sent(&mut self) -> Option<(Duration, Vec<u8>)> {
        self.sent.take()
    }

    fn figure(&self, name: &str) -> Option<i64> {
        let info = self.info()?;
        Some(match name {
            "tcpi_state" => info.state.into(),
            "tcpi_ca_state" => info.ca_state.into(),
            "tcpi_snd_cwnd" => info.snd_cwnd.into(),
            "tcpi_snd_ssthresh" => info.snd_ssthresh.into(),
            "tcpi_snd_mss" => info.snd_mss.into(),
            "tcpi_unacked" => info.unacked.into(),
            "tcpi_sacked" => info.sacked.into(),
            "tcpi_lost" => info.lost.into(),
            "tcpi_retrans" => info.retrans.into(),
            "tcpi_notsent_bytes" => info.notsent_bytes.into(),
            "tcpi_data_segs_out" => info.data_segs_out.into(),
            "tcpi_busy_time" => i64::try_from(info.busy_us).ok()?,
            "tcpi_rwnd_limited" => i64::try_from(info.rwnd_limited_us).ok()?,
            "tcpi_sndbuf_limited" => i64::try_from(info.sndbuf_limited_us).ok()?,
            "tcpi_rtt" => info.rtt_us.into(),
            "tcpi_rttvar" => info.rttvar_us.into(),
            "tcpi_rto" => info.rto_us.into(),
            "tcpi_min_rtt" => info.min_rtt_us.into(),
            "tcpi_total_retrans" => info.total_retrans.into(),
            "tcpi_dsack_dups" => info.dsack_dups.into(),
            "tcpi_options" => info.options.into(),
            "tcpi_delivered" => info.delivered.into(),
            "tcpi_advmss" => info.advmss.into(),
            "tcpi_backoff" => info.backoff.into(),
            "tcpi_probes" => info.probes.into(),
            "tcpi_reordering" => info.reordering.into(),
            "timeouts" => info.total_rto.into(),
            _ => return None,
        })
    }

    fn figures(&self) -> &'static [&'static str] {
        &KERNEL_FIGURES
    }

    fn shows(&self, name: &str) -> bool {
        // The kernel does not reveal why it refuses a segment.
        KERNEL_FIGURES.contains(&name)
    }
}

/// The file of a kernel setting.
fn file_of(name: &str) -> PathBuf {
    Path::new("/proc/sys").join(name.replace('.', "/"))
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::INVAL)
}

fn named(error: Errno) -> &'static str {
    match error {
        Errno::AGAIN => "EAGAIN",
        Errno::INPROGRESS => "EINPROGRESS",
        Errno::ALREADY => "EALREADY",
        Errno::ISCONN => "EISCONN",
        Errno::NOTCONN => "ENOTCONN",
        Errno::CONNREFUSED => "ECONNREFUSED",
        Errno::CONNRESET => "ECONNRESET",
        Errno::CONNABORTED => "ECONNABORTED",
        Errno::TIMEDOUT => "ETIMEDOUT",
        Errno::HOSTUNREACH => "EHOSTUNREACH",
        Errno::PIPE => "EPIPE",
        Errno::OPNOTSUPP => "EOPNOTSUPP",
        Errno::FAULT => "EFAULT",
        Errno::BADF => "EBADF",
        Errno::NETUNREACH => "ENETUNREACH",
        Errno::EXIST => "EEXIST",
        Errno::NOENT => "ENOENT",
        Errno::NOTSOCK => "ENOTSOCK",
        Errno::MSGSIZE => "EMSGSIZE",
        Errno::NOBUFS => "ENOBUFS",
        Errno::INVAL => "EINVAL",
        _ => "another error",
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    /// Detects a target that takes an error as "nothing was sent", and polls in a busy loop.
    #[test]
    fn a_failure_of_the_device_is_reported() {
        // A separate thread, because a thread stays in the namespace that it entered.
        let thread = std::thread::spawn(|| {
            let mut target = match KernelTarget::new() {
                Ok(target) => target,
                Err(why) => {
                    let required = std::env::var("ANABRANCH_LIVE").as_deref() == Ok("required");
                    assert!(!required, "ANABRANCH_LIVE=required: {why}");
                    eprintln!("SKIPPED: {why}");
                    return;
                }
            };
            // A folder cannot be read as a file.
            let folder = File::open("/").expect("it is there");
            target.device = Tun::new(folder, target.namespace.clone(), DEVICE);
            let began = Instant::now();
            let told = target.advance(Duration::from_secs(600));
            assert!(told.is_err_and(|told| told.contains("cannot be read")));
            assert!(began.elapsed().as_secs() < 300);
            assert!(target.trouble().is_some());
        });
        thread.join().expect("as it should be");
    }
}
