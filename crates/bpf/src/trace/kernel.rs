//! The program in the kernel.

use std::{
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    path::Path,
    sync::{Mutex, OnceLock, PoisonError, mpsc},
};

use anabranch_core::{interrupt::Interrupt, system};
use libbpf_rs::{
    ErrorKind, Link, MapCore as _, MapFlags, Object, ObjectBuilder, OpenObject, ProgramType,
    RingBuffer, RingBufferBuilder,
    btf::{
        Btf, ReferencesType as _,
        types::{FuncProto, Ptr, Typedef},
    },
};

use super::{Detail, Place, Record};
use crate::{
    Error, compile,
    kernel::{BTF, LOG, hearing, shortened},
    privilege::advice,
};

/// The program's file.
const NAME: &str = "tcp_trace.bpf.c";
const TEXT: &str = include_str!("../../../../bpf/trace/tcp_trace.bpf.c");
/// What loading takes (capabilities(7)).
const PRIVILEGE: &str = "tracing the kernel's TCP needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN outside of user namespaces";
const CAPABILITIES: [&str; 3] = ["CAP_BPF", "CAP_PERFMON", "CAP_NET_ADMIN"];
/// Octets that wait for us: a fifth of a second of 200,000 segments a second, or 2,500 events.
const ROOM_FOR_SEGMENTS: u32 = 8 << 20;
const ROOM_FOR_EVENTS: u32 = 256 << 10;

/// A trace under way; it ends with this value.
#[derive(Debug)]
pub struct Trace {
    object: Object,
    _links: Vec<Link>,
    filter: OwnedFd,
    ring: RingBuffer<'static>,
    told: mpsc::Receiver<Record>,
}

impl Trace {
    /// Compiles the program, loads it and lets it watch these flows' sockets, each with the number that its records have.
    /// Raising `interrupt` ends the compiler.
    ///
    /// # Errors
    /// There is no clang, the kernel has no types or no such tracepoints, or the privilege is missing.
    pub fn start(
        flows: &[(Place, u32)],
        detail: Detail,
        interrupt: &Interrupt,
    ) -> Result<Self, Error> {
        if !Path::new(BTF).exists() {
            return Err(Error::System(format!(
                "this kernel does not say what its structures are: {BTF} is missing; it needs CONFIG_DEBUG_INFO_BTF"
            )));
        }
        let object = compiled(interrupt)?;
        let (started, said) = hearing(|| Self::load(&object, flows, detail));
        started.map_err(|error| {
            if error.kind() == ErrorKind::PermissionDenied && !said.contains(LOG) {
                return Error::System(format!("{PRIVILEGE}; {}", advice(&CAPABILITIES)));
            }
            Error::Refused {
                file: NAME.to_owned(),
                message: shortened(&said).unwrap_or_else(|| system::words(&error)),
            }
        })
    }

    fn load(object: &[u8], flows: &[(Place, u32)], detail: Detail) -> libbpf_rs::Result<Self> {
        let mut opened = ObjectBuilder::default().open_memory(object)?;
        prepare(&mut opened, flows.len(), detail)?;
        let object = opened.load()?;
        let (tell, told) = mpsc::channel();
        let mut builder = RingBufferBuilder::new();
        for map in object.maps() {
            if map.name() == "flows" {
                for (place, flow) in flows {
                    map.update(&key(place), &flow.to_ne_bytes(), MapFlags::ANY)?;
                }
            }
        }
        let records = object.maps().find(|map| map.name() == "records");
        let records = records.ok_or_else(|| missing("map `records`"))?;
        builder.add(&records, move |octets| {
            if let Some(record) = Record::of(octets) {
                // Nobody listens any more when the trace ends.
                let _ = tell.send(record);
            }
            0
        })?;
        let ring = builder.build()?;
        let mut links = Vec::new();
        let mut filter = None;
        for program in object.progs_mut() {
            if program.prog_type() == ProgramType::SocketFilter {
                filter = Some(program.as_fd().try_clone_to_owned()?);
            } else {
                links.push(program.attach_trace()?);
            }
        }
        Ok(Self {
            object,
            _links: links,
            filter: filter.ok_or_else(|| missing("filter"))?,
            ring,
            told,
        })
    }

    /// What has been told since it was last asked, in order of time for each flow.
    pub fn take(&mut self) -> Vec<Record> {
        // What it says is only that a record was refused, which none is.
        let _ = self.ring.consume();
        self.told.try_iter().collect()
    }

    /// Records for which there was no room.
    ///
    /// # Panics
    /// Never: the map is the program's own.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let map = self.object.maps().find(|map| map.name() == "lost");
        let count = map.and_then(|map| map.lookup(&[0; 4], MapFlags::ANY).ok().flatten());
        let octets: [u8; 8] = count
            .and_then(|octets| octets.try_into().ok())
            .expect("the program counts in eight octets");
        u64::from_ne_bytes(octets)
    }

    /// What shows the program the segments that a socket receives once one of its sides is closed (`SO_ATTACH_BPF`).
    #[must_use]
    pub fn filter(&self) -> BorrowedFd<'_> {
        self.filter.as_fd()
    }
}

fn missing(what: &str) -> libbpf_rs::Error {
    std::io::Error::other(format!("the program has no {what}")).into()
}

/// Sizes of maps, and how much is told.
fn prepare(opened: &mut OpenObject, flows: usize, detail: Detail) -> libbpf_rs::Result<()> {
    let every_segment = u32::from(detail == Detail::Segments);
    let settings = every_segment | u32::from(tells_errors()?) << 1;
    for mut map in opened.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        match name.as_str() {
            "flows" => map.set_max_entries(u32::try_from(flows.max(1)).unwrap_or(u32::MAX))?,
            "records" => map.set_max_entries(match detail {
                Detail::Events => ROOM_FOR_EVENTS,
                Detail::Segments => ROOM_FOR_SEGMENTS,
            })?,
            // `settings`, the one constant of the program.
            _ if name.ends_with(".rodata") => {
                if let Some(word) = map
                    .initial_value_mut()
                    .and_then(|value| value.first_chunk_mut())
                {
                    *word = settings.to_ne_bytes();
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether this kernel's `tcp_retransmit_skb` also says whether the segment left: its prototype has the data that the
/// kernel keeps for a program, the socket, the segment, and then that.
fn tells_errors() -> libbpf_rs::Result<bool> {
    let kernel = Btf::from_vmlinux()?;
    let named = kernel.type_by_name::<Typedef<'_>>("btf_trace_tcp_retransmit_skb");
    let prototype = named
        .and_then(|named| Ptr::try_from(named.referenced_type()).ok())
        .and_then(|pointer| FuncProto::try_from(pointer.referenced_type()).ok());
    Ok(prototype.is_some_and(|prototype| prototype.len() > 3))
}

/// `struct place`.
fn key(place: &Place) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&place.namespace.to_ne_bytes());
    key[8..12].copy_from_slice(&u32::from(place.port).to_ne_bytes());
    key[12..].copy_from_slice(&u32::from(place.listens).to_ne_bytes());
    key
}

/// The object file. It is compiled once per process: that takes longer than to load it.
fn compiled(interrupt: &Interrupt) -> Result<Vec<u8>, Error> {
    static COMPILED: OnceLock<Mutex<Option<Vec<u8>>>> = OnceLock::new();
    let mut compiled = COMPILED
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if let Some(object) = &*compiled {
        return Ok(object.clone());
    }
    let object = compile::kernel_alone(NAME, TEXT, interrupt)?;
    *compiled = Some(object.clone());
    Ok(object)
}
