//! The program that traces the kernel's TCP.

use std::{
    ffi::c_void,
    os::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd},
    sync::mpsc,
};

use libbpf_rs::{
    Link, MapCore as _, MapFlags, Object, ObjectBuilder, OpenObject, ProgramType, RingBuffer,
    RingBufferBuilder,
    btf::{
        Btf, ReferencesType as _,
        types::{FuncProto, Ptr, Typedef},
    },
};

use crate::{
    abi::{FLOW, Octets, PLACE, Report, Sink, Status, Watch},
    messages::{Failure, reported},
};

/// A trace in progress.
struct Trace {
    object: Object,
    _links: Vec<Link>,
    filter: OwnedFd,
    ring: RingBuffer<'static>,
    told: mpsc::Receiver<Vec<u8>>,
}

pub unsafe extern "C" fn start(
    object: Octets,
    watch: Watch,
    made: *mut *mut c_void,
    report: Report,
) -> Status {
    // SAFETY: the engine's call has not returned, and `made` is a variable of it.
    unsafe { reported(|| load(object.slice(), watch), Some(made), report) }
}

pub unsafe extern "C" fn take(trace: *mut c_void, records: Sink) {
    // SAFETY: the engine passes a value created by `start`, from one thread at a time; its call has
    // not returned.
    unsafe {
        let trace = &mut *trace.cast::<Trace>();
        // It fails only if the callback rejects a record, and ours returns 0.
        let _ = trace.ring.consume();
        for record in trace.told.try_iter() {
            records.write(&record);
        }
    }
}

pub unsafe extern "C" fn lost(trace: *const c_void) -> u64 {
    // SAFETY: the engine passes a value created by `start`.
    let trace = unsafe { &*trace.cast::<Trace>() };
    let map = trace.object.maps().find(|map| map.name() == "lost");
    let count = map.and_then(|map| map.lookup(&[0; 4], MapFlags::ANY).ok().flatten());
    let octets: Option<[u8; 8]> = count.and_then(|octets| octets.try_into().ok());
    octets.map_or(0, u64::from_ne_bytes)
}

pub unsafe extern "C" fn filter(trace: *const c_void) -> RawFd {
    // SAFETY: the engine passes a value created by `start`.
    unsafe { (*trace.cast::<Trace>()).filter.as_raw_fd() }
}

pub unsafe extern "C" fn end(trace: *mut c_void) {
    // SAFETY: the engine passes a value created by `start`, once.
    drop(unsafe { Box::from_raw(trace.cast::<Trace>()) });
}

/// # Safety
/// The call that passed `watch` has not returned.
unsafe fn load(object: &[u8], watch: Watch) -> Result<Trace, Failure> {
    // SAFETY: as promised.
    let (flows, _) = unsafe { watch.flows.slice() }.as_chunks::<FLOW>();
    let mut opened = ObjectBuilder::default().open_memory(object)?;
    prepare(&mut opened, flows.len(), watch)?;
    let object = opened.load()?;
    let (tell, told) = mpsc::channel();
    let mut builder = RingBufferBuilder::new();
    for map in object.maps() {
        if map.name() == "flows" {
            for flow in flows {
                let (place, number) = flow.split_at(PLACE);
                map.update(place, number, MapFlags::ANY)?;
            }
        }
    }
    let records = object.maps().find(|map| map.name() == "records");
    let records = records.ok_or_else(|| missing("map `records`"))?;
    builder.add(&records, move |octets| {
        // The receiver is gone when the trace ends.
        let _ = tell.send(octets.to_vec());
        0
    })?;
    let ring = builder.build()?;
    let mut links = Vec::new();
    let mut filter = None;
    for program in object.progs_mut() {
        if program.prog_type() == ProgramType::SocketFilter {
            filter = Some(
                program
                    .as_fd()
                    .try_clone_to_owned()
                    .map_err(libbpf_rs::Error::from)?,
            );
        } else {
            links.push(program.attach_trace()?);
        }
    }
    Ok(Trace {
        filter: filter.ok_or_else(|| missing("filter"))?,
        object,
        _links: links,
        ring,
        told,
    })
}

fn missing(what: &str) -> libbpf_rs::Error {
    std::io::Error::other(format!("the program has no {what}")).into()
}

/// Sets the sizes of maps, and the detail of the trace.
fn prepare(opened: &mut OpenObject, flows: usize, watch: Watch) -> libbpf_rs::Result<()> {
    let settings = u32::from(watch.segments != 0) | u32::from(tells_errors()?) << 1;
    for mut map in opened.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        match name.as_str() {
            "flows" => map.set_max_entries(u32::try_from(flows.max(1)).unwrap_or(u32::MAX))?,
            "records" => map.set_max_entries(watch.room)?,
            // `settings`, the only constant of the program.
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

/// Whether this kernel's `tcp_retransmit_skb` also reports whether the segment was sent. Its
/// prototype has the program's context, the socket, the segment, and then this result.
fn tells_errors() -> libbpf_rs::Result<bool> {
    let kernel = Btf::from_vmlinux()?;
    let named = kernel.type_by_name::<Typedef<'_>>("btf_trace_tcp_retransmit_skb");
    let prototype = named
        .and_then(|named| Ptr::try_from(named.referenced_type()).ok())
        .and_then(|pointer| FuncProto::try_from(pointer.referenced_type()).ok());
    Ok(prototype.is_some_and(|prototype| prototype.len() > 3))
}
