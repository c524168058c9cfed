//! The queue of a device: attached for some time, confirmed, read, detached.
//!
//! A link in the kernel attaches the program. A link that was not confirmed is held by a file
//! descriptor of one process: when that process ends, also by `kill -9`, the kernel detaches the
//! program. [`confirm`] pins the link to a file, which holds it from then on. The program itself
//! passes every packet after the deadline, whatever has become of the process.

use std::{
    fs,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use anabranch_core::{interrupt::Interrupt, rng::Stream};
use rustix::{
    net::{AddressFamily, SocketType, netdevice::name_to_index, socket},
    time::{ClockId, clock_gettime},
};
use serde_json::{Value, json};

use super::{
    Settings, attach as load, checked, compiled,
    config::{self, Inputs},
    pins,
};
use crate::{
    Error,
    kernel::{
        call_loader,
        pinned::{FILE_SYSTEM, is_there, mount_if_missing},
    },
    loader::{Octets, Sink, loader},
};

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

/// A device of this network namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its name.
    pub name: String,
    index: u32,
}

/// The program of a device.
#[derive(Debug, Clone, Copy)]
struct Found {
    program: u32,
    link: u32,
}

/// What [`Device::attach`] did.
#[derive(Debug)]
pub struct Attached {
    /// The link's descriptor, if the queue has yet to be confirmed: it is attached while a copy of
    /// the descriptor is open.
    pub link: Option<OwnedFd>,
    /// The time until which the queue has to be confirmed, in ns of `CLOCK_MONOTONIC`.
    pub deadline: Option<u64>,
    /// The file that holds the link when the queue is confirmed.
    pub path: PathBuf,
    /// Mount point of the BPF file system, if it had to be mounted.
    pub mounted: Option<&'static str>,
}

fn wrong<T>(message: impl Into<String>) -> Result<T, Error> {
    Err(Error::System(message.into()))
}

/// Names of the devices of this network namespace.
#[must_use]
pub fn names() -> Vec<String> {
    let text = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let named = text.lines().filter_map(|line| line.split_once(':'));
    named.map(|(name, _)| name.trim().to_owned()).collect()
}

fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.cast_unsigned() * SECOND + time.tv_nsec.cast_unsigned()
}

/// Random octets, or the clock's where there are none.
fn random() -> u64 {
    let mut octets = [0; 8];
    let read = fs::File::open("/dev/urandom")
        .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut octets));
    match read {
        Ok(()) => u64::from_ne_bytes(octets),
        Err(_) => now(),
    }
}

impl Device {
    /// The device of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn named(name: &str) -> Result<Self, Error> {
        let found = socket(AddressFamily::INET, SocketType::DGRAM, None)
            .and_then(|any| name_to_index(&any, name));
        if let Ok(index) = found {
            return Ok(Self {
                name: name.to_owned(),
                index,
            });
        }
        let names = names();
        let hint = anabranch_document::nearest(name, &names).map_or_else(
            || format!("devices: {}", names.join(", ")),
            |near| format!("did you mean `{near}`?"),
        );
        wrong(format!("there is no device `{name}`; {hint}"))
    }

    fn found(&self) -> Result<Option<Found>, Error> {
        let loader = loader()?;
        let mut octets = Vec::new();
        let mut take = |piece: &[u8]| octets.extend_from_slice(piece);
        let sink = Sink::to(&mut take);
        // SAFETY: sink and report are valid until the call returns.
        let output = call_loader(|report| unsafe { (loader.queue_find)(self.index, sink, report) });
        // A kernel without TCX has no program there.
        if output.error.contains("Invalid argument") {
            return Ok(None);
        }
        checked(&output)?;
        for pair in octets.as_chunks::<8>().0 {
            let (program, link) = pair.split_at(4);
            let number = |octets: &[u8]| octets.try_into().map_or(0, u32::from_ne_bytes);
            let found = Found {
                program: number(program),
                link: number(link),
            };
            if !found.read("aqm_about")?.is_empty() {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn required(&self) -> Result<Found, Error> {
        match self.found()? {
            Some(found) => Ok(found),
            None => wrong(format!(
                "no queue is attached to `{name}`; anabranch aqm attach {name} --kind share-red --rate RATE",
                name = self.name
            )),
        }
    }

    /// Attaches a queue. With `confirm_within`, in seconds, it remains only if it is confirmed in
    /// that time.
    ///
    /// # Errors
    /// A queue is attached already, the rate is above that of the device, or the program cannot be
    /// loaded; see [`super::attach`].
    pub fn attach(
        &self,
        kind: &str,
        settings: &Settings,
        confirm_within: Option<u32>,
        interrupt: &Interrupt,
    ) -> Result<Attached, Error> {
        if self.found()?.is_some() {
            return self.occupied();
        }
        self.check_rate(settings)?;
        let path = pins::path(self.index);
        let mounted = prepare(&path)?;
        // The time to confirm does not include the compiler's.
        compiled(interrupt)?;
        let started = now();
        let deadline = confirm_within.map(|within| started + u64::from(within) * SECOND);
        let inputs = Inputs {
            origin: started,
            deadline,
            is_test: false,
            hash_key: random(),
            stream: Stream::new(random(), "aqm"),
        };
        let about = json!({
            "kind": kind,
            "rate_bit_s": settings.rate.bits_per_s(),
            "options": settings.params,
            "version": env!("CARGO_PKG_VERSION"),
        });
        let config = config::octets(settings, &inputs);
        let queue = load(&config, &about.to_string(), self.index, interrupt)?;
        // Of processes that attach at the same time, the first in the device's order remains; the
        // queue of another ends here.
        if self.found()?.map(|found| found.program) != Some(queue.program()) {
            return self.occupied();
        }
        let link = match confirm_within {
            None => {
                self.confirm()?;
                None
            }
            Some(_) => match queue.link().map(|link| link.try_clone_to_owned()) {
                Some(Ok(link)) => Some(link),
                _ => return wrong("the link's descriptor cannot be copied"),
            },
        };
        Ok(Attached {
            link,
            deadline,
            path,
            mounted,
        })
    }

    fn occupied<T>(&self) -> Result<T, Error> {
        wrong(format!(
            "a queue is attached to `{name}` already; anabranch aqm detach {name}",
            name = self.name
        ))
    }

    /// Refuses a rate above that of the device, whose own queue would fill instead.
    fn check_rate(&self, settings: &Settings) -> Result<(), Error> {
        let read = |file: &str| {
            let path = Path::new("/sys/class/net").join(&self.name).join(file);
            let text = fs::read_to_string(path).ok()?;
            text.trim().parse::<u64>().ok()
        };
        // /sys may show the devices of another network namespace.
        if read("ifindex") != Some(u64::from(self.index)) {
            return Ok(());
        }
        match read("speed") {
            Some(speed) if speed > 0 && settings.rate.bits_per_s() > speed * 1_000_000 => {
                wrong(format!(
                    "--rate {} is above the {speed} Mbit/s of `{}`, whose own queue would fill instead; --rate '{speed} Mbit/s' at most",
                    settings.rate, self.name
                ))
            }
            _ => Ok(()),
        }
    }

    /// Confirms an attached queue: it remains until it is detached or the machine restarts. Returns
    /// whether it had yet to be confirmed.
    ///
    /// # Errors
    /// None is attached, or it cannot be pinned.
    pub fn confirm(&self) -> Result<bool, Error> {
        let found = self.required()?;
        if pins::of(found.link).is_none() {
            if !is_there() {
                return wrong(without_file_system());
            }
            pins::pin(found.link, &pins::path(self.index))?;
        } else if !found.has_deadline()? {
            return Ok(false);
        }
        let mut config = found.read("aqm_config")?;
        config::remove_deadline(&mut config);
        found.write("aqm_config", &config)?;
        Ok(true)
    }

    /// Detaches the queue, and removes its file and the files of devices that are gone.
    ///
    /// # Errors
    /// None is attached, or the privilege is missing.
    pub fn detach(&self) -> Result<(), Error> {
        pins::sweep();
        let found = self.required()?;
        let pin = pins::of(found.link);
        let loader = loader()?;
        // SAFETY: the report is valid until the call returns.
        let output = call_loader(|report| unsafe { (loader.queue_detach)(found.link, report) });
        checked(&output)?;
        if let Some(pin) = pin {
            let _ = fs::remove_file(pin.path);
            pins::tidy();
        }
        Ok(())
    }

    /// The queue's description and counters; `None` if none is attached.
    ///
    /// # Errors
    /// The privilege is missing.
    pub fn status(&self) -> Result<Option<Value>, Error> {
        let Some(found) = self.found()? else {
            return Ok(None);
        };
        let about = found.read("aqm_about")?;
        let text = about.split(|octet| *octet == 0).next().unwrap_or_default();
        let mut status: Value = serde_json::from_slice(text).unwrap_or_else(|_| json!({}));
        let config = found.read("aqm_config")?;
        let deadline = config::deadline(&config);
        status["device"] = json!(self.name);
        status["confirmed"] = json!(deadline.is_none());
        if let Some(deadline) = deadline {
            let left = deadline.saturating_sub(now()).div_ceil(SECOND);
            status["seconds_to_confirm"] = json!(left);
        }
        let counters = found.read("aqm_counters")?;
        let in_bytes = config::is_in_bytes(&config);
        config::counters(&counters, in_bytes, |name, value| status[name] = value);
        let (time, runs) = found.cost()?;
        status["ns_per_packet"] = if runs == 0 {
            Value::Null
        } else {
            json!(time as f64 / runs as f64)
        };
        Ok(Some(status))
    }
}

/// Refuses a mount namespace in which no link's file outlives the command.
fn require_lasting_files() -> Result<(), Error> {
    if is_there() {
        return Ok(());
    }
    let own = fs::read_link("/proc/self/ns/mnt").ok();
    let first = fs::read_link("/proc/1/ns/mnt").ok();
    if own.is_some() && first.is_some() && own != first {
        return wrong(without_file_system());
    }
    Ok(())
}

/// `ip netns exec` mounts another /sys for one command: a file in it would end with it.
fn without_file_system() -> String {
    format!(
        "no BPF file system is mounted at {FILE_SYSTEM} in this mount namespace, and one mounted now would end with it; in a namespace of `ip netns`: nsenter --net=/run/netns/NAME anabranch aqm …"
    )
}

/// Makes room for a link's file: the file system, and no files of devices that are gone.
fn prepare(path: &Path) -> Result<Option<&'static str>, Error> {
    require_lasting_files()?;
    let mounted = mount_if_missing()?;
    pins::sweep();
    if path.exists() {
        return wrong(format!(
            "{} holds the queue of another device, which was moved to another network namespace; detach that first",
            path.display()
        ));
    }
    Ok(mounted)
}

impl Found {
    fn read(self, map: &str) -> Result<Vec<u8>, Error> {
        let loader = loader()?;
        let mut octets = Vec::new();
        let mut take = |piece: &[u8]| octets.extend_from_slice(piece);
        let sink = Sink::to(&mut take);
        let map = Octets::of(map.as_bytes());
        // SAFETY: octets, sink and report are valid until the call returns.
        let output =
            call_loader(|report| unsafe { (loader.queue_read)(self.program, map, sink, report) });
        checked(&output)?;
        Ok(octets)
    }

    fn write(self, map: &str, value: &[u8]) -> Result<(), Error> {
        let loader = loader()?;
        let (map, value) = (Octets::of(map.as_bytes()), Octets::of(value));
        // SAFETY: octets and report are valid until the call returns.
        let output =
            call_loader(|report| unsafe { (loader.queue_write)(self.program, map, value, report) });
        checked(&output)
    }

    fn has_deadline(self) -> Result<bool, Error> {
        Ok(config::deadline(&self.read("aqm_config")?).is_some())
    }

    /// Run time in ns, and number of runs; both 0 unless the kernel counts them
    /// (`kernel.bpf_stats_enabled`).
    fn cost(self) -> Result<(u64, u64), Error> {
        let loader = loader()?;
        let mut octets = Vec::new();
        let mut take = |piece: &[u8]| octets.extend_from_slice(piece);
        let sink = Sink::to(&mut take);
        // SAFETY: sink and report are valid until the call returns.
        let output =
            call_loader(|report| unsafe { (loader.queue_cost)(self.program, sink, report) });
        checked(&output)?;
        let mut numbers = octets
            .as_chunks::<8>()
            .0
            .iter()
            .map(|one| u64::from_ne_bytes(*one));
        Ok((numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)))
    }
}

/// The counters of a program of this process, by its number, for tests.
///
/// # Errors
/// The privilege is missing.
pub fn counters(program: u32) -> Result<Value, Error> {
    let found = Found { program, link: 0 };
    let mut counted = json!({});
    let octets = found.read("aqm_counters")?;
    config::counters(&octets, false, |name, value| counted[name] = value);
    Ok(counted)
}
