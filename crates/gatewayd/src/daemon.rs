//! The daemon: moves packets and datagrams between the kernel and the tunnels, in one thread.

mod caps;
mod change;
mod names;
mod reasons;
mod samples;
mod servers;
mod state;
mod traffic;

use std::{
    fs,
    io::{self, Read},
    os::{fd::AsFd, unix::net::UnixStream},
    path::{Path, PathBuf},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time,
};

use anabranch_core::{system::words, units::Duration};
use anabranch_gateway::{crypto::Identity, time::Instant, wire::PathId};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use self::names::Times;
use crate::{
    batch::Batches,
    bypass::{self, Domains},
    config::Config,
    confine::{Account, KEPT, confine, confine_resolver},
    device::{Batch, Delivered, Device, Routes},
    directory::Directory,
    dns::Direct,
    endpoints,
    history::Keeper,
    links::{Links, Watch},
    log::Log,
    metrics::Metrics,
    peers::{self, Change},
    protect::Protection,
    reach::Reach,
    resolver::{self, Addresses, Name, Resolver},
    status::{self, Dropped, Rejected, Request, StatusSocket},
    store::Store,
    strangers::Strangers,
    too_big::TooBig,
    usage::Usage,
    ways::{Happened, Ways},
};

/// The nice value of the thread that carries packets, if the process has none yet and may set it.
const NICE: i32 = -10;
/// Octets of the largest packet or datagram.
const LARGEST: usize = 1 << 16;

/// The state of the daemon.
struct Gateway {
    start: time::Instant,
    /// The private key, and the time at the start for stamps.
    identity: Identity,
    epoch: u64,
    /// The path of the configuration file, and its content.
    file: PathBuf,
    config: Rc<Config>,
    /// The known addresses of the names in the configuration.
    addresses: Addresses,
    resolver: Resolver,
    /// Whether names are first looked up by queries that do not enter the tunnel.
    prefers_direct: Arc<AtomicBool>,
    /// The configuration of a reload whose names are being resolved.
    wanted: Option<Config>,
    /// The times of resolutions and of checks of the paths.
    times: Times,
    /// Queries of the kernel's routes.
    reach: Reach,
    /// Logged failures of resolution, which are not repeated.
    failures: Vec<String>,
    log: Log,
    device: Device,
    protection: Protection,
    bypass: bypass::Rules,
    domains: Domains,
    ways: Ways,
    links: Links,
    /// A change of the interfaces could not be read yet.
    is_behind: bool,
    peers: Directory,
    dropped: Dropped,
    rejected: Rejected,
    /// Messages about handshakes of no peer.
    strangers: Strangers,
    buffer: Vec<u8>,
    received: Vec<u8>,
    /// The peers whose datagrams were read since the last delivery.
    senders: Vec<u32>,
    batch: Batch,
    batches: Batches,
    delivered: Delivered,
    too_big: TooBig,
    keeper: Keeper,
    /// The time of the next sample for the history.
    sampled: Instant,
    /// Octets of paths with caps, their file, and the time of the next comparison with the caps.
    usage: Usage,
    store: Option<Store>,
    capped: Instant,
}

/// Runs until a signal ends the daemon.
///
/// # Errors
/// A message if the system refuses a part of the configuration.
pub fn up(
    file: &Path,
    config: Config,
    account: Option<&Account>,
    mut log: Log,
) -> Result<(), String> {
    let failed = |error: io::Error| format!("signals: {}", words(&error));
    let ends = signals(&[SIGTERM, SIGINT]).map_err(failed)?;
    let reloads = signals(&[SIGHUP]).map_err(failed)?;
    let file =
        fs::canonicalize(file).map_err(|error| format!("{}: {}", file.display(), words(&error)))?;
    let start = time::Instant::now();
    let epoch = epoch();
    let secret = config.gateway.secret.0.as_ref();
    let identity = Identity::new(secret.ok_or("there is no private key")?.0);
    // Before anything else can fail.
    let (mut protection, bypass, domains) = protect(&config)?;
    let addresses = Addresses::new();
    let remotes = endpoints::remotes(&config, &addresses);
    let refused = |error: io::Error| format!("netlink: {}", words(&error));
    let watch = Watch::new().map_err(refused)?;
    let links = Links::now().map_err(refused)?;
    let mut ways = Ways::open(&config, &remotes)?;
    ways.hold(&links);
    let mut reach = Reach::new();
    let peers = config.peer.0.iter();
    let peers = peers
        .map(|peer| {
            let change = Change::of(&config, peer, &addresses, &ways, |routes| {
                reach.preferred(routes, &ways, &links, Instant::START)
            })?;
            let mut made = peers::peer((&identity, epoch), &peer.1, change, Instant::START);
            made.is_routed = peers::is_routable(&config, &peer.1, &addresses);
            Ok(made)
        })
        .collect::<Result<Vec<_>, String>>()?;
    let mut outside = Outside::open(&config, account, [ends, reloads], watch)?;
    let mtu = peers.iter().map(|peer| peer.tunnel.inner_mtu()).min();
    let reachable = config.peer.0.iter().map(|(_, peer)| peer);
    let reachable = reachable.filter(|peer| peers::is_routable(&config, peer, &addresses));
    let routes = Routes::of(&config, reachable);
    let device = Device::new(&config, octets(mtu.unwrap_or_default()), &routes)?;
    // An earlier daemon may have had another configuration.
    protection.prune(&config)?;
    let keeper = samples::keeper(&config, &file, account, &log)?;
    log.listen(keeper.listener());
    let (usage, store) = caps::usage(&config, &file, account, &mut log)?;
    let prefers_direct = Arc::new(AtomicBool::new(config.routes_all()));
    let mut gateway = Gateway {
        start,
        epoch,
        device,
        protection,
        bypass,
        domains,
        file,
        config: Rc::new(config),
        addresses,
        resolver: start_resolver(account, &prefers_direct)?,
        prefers_direct,
        wanted: None,
        times: Times::new(),
        reach,
        failures: Vec::new(),
        log,
        ways,
        links,
        is_behind: false,
        peers: Directory::new(identity.clone(), peers, Instant::START),
        identity,
        dropped: Dropped::default(),
        rejected: Rejected::default(),
        strangers: Strangers::default(),
        buffer: Vec::new(),
        received: vec![0; LARGEST],
        senders: Vec::new(),
        batch: Batch::new(),
        batches: Batches::default(),
        delivered: Delivered::default(),
        too_big: TooBig::default(),
        keeper,
        sampled: Instant::START,
        usage,
        store,
        capped: Instant::START,
    };
    gateway.set_caps();
    gateway.watch_paths();
    let name = gateway.config.gateway.interface.0.clone();
    gateway.log.say(&format!("{name} is up"));
    // Outside systemd there is no socket to notify.
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
    let socket = status::path_of(&gateway.config);
    raise_priority();
    let readable = gateway.config.folders(&gateway.file);
    let folder = socket.parent().map(|folder| Path::new(".").join(folder));
    if let Some(remark) = confine(account, KEPT, &readable, folder.as_deref())? {
        gateway.log.say(&remark);
    }
    let outcome = gateway
        .run(&mut outside)
        .map_err(|error| format!("{name}: {}", words(&error)));
    gateway.end(&name, outcome.as_ref().err());
    outcome
}

/// The time of the clock for stamps. Only their order matters, so that a wrong clock does no harm.
fn epoch() -> u64 {
    let epoch = time::SystemTime::now().duration_since(time::UNIX_EPOCH);
    u64::try_from(epoch.unwrap_or_default().as_nanos()).unwrap_or(0)
}

/// Raises the priority of the calling thread: a gateway that waits for the processor measures that as
/// delay of its links. A value that an operator has set remains.
fn raise_priority() {
    if rustix::process::getpriority_process(None) == Ok(0) {
        // Without CAP_SYS_NICE it remains.
        let _ = rustix::process::setpriority_process(None, NICE);
    }
}

/// Starts the thread that looks up names.
fn start_resolver(
    account: Option<&Account>,
    prefers_direct: &Arc<AtomicBool>,
) -> Result<Resolver, String> {
    let confined = account.copied();
    let direct = Direct::new();
    let is_direct_first = Arc::clone(prefers_direct);
    Resolver::start(
        move || confine_resolver(confined.as_ref()),
        move |name: &Name| {
            resolver::look_up(name, &direct, is_direct_first.load(Ordering::Relaxed))
        },
    )
}

/// Sets the protection and the rules of bypasses.
fn protect(config: &Config) -> Result<(Protection, bypass::Rules, Domains), String> {
    let mut protection = Protection::of(config)?;
    protection.add(config)?;
    let mut bypass = bypass::Rules::of(config)?;
    let mut domains = Domains::default();
    domains.configure(config, Instant::START);
    bypass.set(&bypass::selectors(config, &domains))?;
    Ok((protection, bypass, domains))
}

/// A stream that becomes readable when one of the signals arrives.
fn signals(signals: &[i32]) -> io::Result<UnixStream> {
    let (read, write) = UnixStream::pair()?;
    for &signal in signals {
        signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
    }
    read.set_nonblocking(true)?;
    Ok(read)
}

/// Sources of requests and notifications.
struct Outside {
    ends: UnixStream,
    reloads: UnixStream,
    watch: Watch,
    status: StatusSocket,
    view: StatusSocket,
    metrics: Option<Metrics>,
}

impl Outside {
    fn open(
        config: &Config,
        account: Option<&Account>,
        [ends, reloads]: [UnixStream; 2],
        watch: Watch,
    ) -> Result<Self, String> {
        Ok(Self {
            ends,
            reloads,
            watch,
            status: StatusSocket::open(status::path_of(config), account)?,
            view: StatusSocket::open_view(status::view_of(config), account)?,
            metrics: config.status.metrics.map(Metrics::open).transpose()?,
        })
    }
}

impl Gateway {
    /// Logs the end and stores counts and history.
    fn end(mut self, name: &str, why: Option<&String>) {
        let said = why.map_or_else(|| format!("{name} is going down"), Clone::clone);
        self.log.say(&said);
        self.save_caps();
        self.keeper.end();
    }

    fn run(&mut self, outside: &mut Outside) -> io::Result<()> {
        loop {
            self.flush();
            self.follow_servers();
            self.follow_mtu();
            self.follow_names();
            self.follow_samples();
            self.follow_caps();
            let ready = self.wait(outside)?;
            if ready.ends && outside.ends.read(&mut [0]).is_ok() {
                return Ok(());
            }
            if ready.reloads && outside.reloads.read(&mut [0; 64]).is_ok() {
                outside.status.answer_if(self.reload());
            }
            if ready.links || self.is_behind {
                outside.watch.drain();
                self.follow_links();
            }
            if ready.resolver
                && let Some(answer) = self.resolver.answer()
            {
                outside.status.answer_if(self.on_answer(answer));
            }
            if ready.device {
                self.take_packets()?;
            }
            self.take_datagrams(&ready.sockets);
            if ready.client {
                let mut outcome = None;
                let mut ends = false;
                let mut queries = Vec::new();
                outside.status.serve(
                    |request| match request {
                        Request::Status => serde_json::to_string(&self.report()).ok(),
                        Request::Reload => {
                            outcome = self.reload();
                            None
                        }
                        Request::Down => {
                            ends = true;
                            Some(self.end_protection())
                        }
                    },
                    |client, query| queries.push((client, query)),
                );
                outside.view.serve(
                    |_| serde_json::to_string(&self.report()).ok(),
                    |client, query| queries.push((client, query)),
                );
                for (client, query) in queries {
                    self.keeper.answer(client, query);
                }
                outside.status.answer_if(outcome);
                if ends {
                    return Ok(());
                }
                if let Some(metrics) = &mut outside.metrics {
                    metrics.serve(|| self.report());
                }
            }
        }
    }

    /// Logs deaths and returns of a peer's paths, and sets the routes to a peer that is up although
    /// not all of its names have addresses.
    fn follow_peer(&mut self, number: u32) {
        let Some(peer) = self.peers.polled(number) else {
            return;
        };
        peer.report_changes(|name, path, delivers| {
            let what = if delivers { "delivers" } else { "is dead" };
            let path = self.ways.name(path);
            self.log.say(&format!("peer {name}: path {path} {what}"));
        });
        if let Some(hindrance) = peer.new_hindrance() {
            self.log.say(&format!("peer {}: {hindrance}", peer.name));
        }
        if peer.is_routed || !peer.tunnel.is_up() {
            return;
        }
        peer.is_routed = true;
        let routes = self.routes(&self.config, &self.addresses);
        if let Err(why) = self.device.set_routes(&routes) {
            self.log.say(&why);
        }
    }

    fn follow_links(&mut self) {
        // Listing the interfaces takes a descriptor. Without one the next turn repeats it.
        let links = Links::now();
        self.is_behind = links.is_err();
        let Ok(links) = links else { return };
        let happened = self.ways.follow(&self.links, &links);
        self.ways.hold(&links);
        self.links = links;
        if self.config.path.is_empty() {
            return;
        }
        let now = self.now();
        for (number, what) in happened {
            let Some(path) = u8::try_from(number).ok().and_then(PathId::new) else {
                continue;
            };
            let name = self.ways.name(path);
            let lack = match what {
                Happened::Lost => self.lack(path),
                Happened::Changed => None,
            };
            let why = lack.map(|lack| format!(": {lack}")).unwrap_or_default();
            self.log.say(&format!("path {name}: {what}{why}"));
            for peer in self.peers.all() {
                match what {
                    Happened::Lost => peer.tunnel.on_carrier_loss(path, now),
                    Happened::Changed => peer.tunnel.validate_path(path, now),
                }
            }
        }
    }

    /// Ends the protection before the daemon ends. Returns the answer for the client.
    fn end_protection(&mut self) -> String {
        let ended = self.protection.end().and_then(|_| self.bypass.end());
        let said = ended.map_or_else(|why| why, |_| status::ENDED.to_owned());
        self.log.say(&said);
        said
    }

    fn now(&self) -> Instant {
        since(self.start)
    }

    fn wait(&self, outside: &Outside) -> io::Result<Ready> {
        let read = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let first = [
            outside.ends.as_fd(),
            outside.reloads.as_fd(),
            outside.watch.as_fd(),
            self.resolver.as_fd(),
            self.device.as_fd(),
        ];
        let mut descriptors: Vec<PollFd<'_>> = first.map(read).into();
        descriptors.extend(self.ways.sockets().map(|(_, socket)| read(socket.as_fd())));
        let scrapers = outside.metrics.as_ref().map(Metrics::descriptors);
        let sockets = [&outside.status, &outside.view].map(StatusSocket::descriptors);
        for [readable, writable] in sockets.into_iter().chain(scrapers) {
            descriptors.extend(readable.into_iter().map(read));
            let write = |fd| PollFd::from_borrowed_fd(fd, PollFlags::OUT);
            descriptors.extend(writable.into_iter().map(write));
        }
        let due = self.peers.timeout().into_iter();
        let timeout = due
            .chain(self.times.due())
            .chain(self.domains.due())
            .chain([self.sampled])
            .chain((!self.usage.is_empty()).then_some(self.capped))
            .min()
            .map(|due| due.saturating_since(self.now()));
        let timeout = timeout.map(timespec);
        match poll(&mut descriptors, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ready = descriptors
            .iter()
            .map(|polled| !polled.revents().is_empty());
        Ok(Ready {
            ends: ready.next().unwrap_or_default(),
            reloads: ready.next().unwrap_or_default(),
            links: ready.next().unwrap_or_default(),
            resolver: ready.next().unwrap_or_default(),
            device: ready.next().unwrap_or_default(),
            sockets: self
                .ways
                .sockets()
                .zip(ready.by_ref())
                .filter_map(|((number, _), is_ready)| is_ready.then_some(number))
                .collect(),
            client: ready.any(|is_ready| is_ready),
        })
    }
}

fn since(start: time::Instant) -> Instant {
    let nanos = start.elapsed().as_nanos();
    Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Readable descriptors.
#[expect(
    clippy::struct_excessive_bools,
    reason = "one for each kind of descriptor"
)]
struct Ready {
    ends: bool,
    reloads: bool,
    links: bool,
    resolver: bool,
    device: bool,
    /// Sockets by number.
    sockets: Vec<u32>,
    /// A client of the status socket or of the metrics.
    client: bool,
}

fn timespec(wait: Duration) -> Timespec {
    let nanos = i64::try_from(wait.as_nanos()).unwrap_or(i64::MAX);
    Timespec {
        tv_sec: nanos / 1_000_000_000,
        tv_nsec: nanos % 1_000_000_000,
    }
}

/// The MTU as the kernel's type.
fn octets(mtu: usize) -> u16 {
    u16::try_from(mtu).unwrap_or(u16::MAX)
}
