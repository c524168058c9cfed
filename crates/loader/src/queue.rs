//! Programs that keep a virtual queue at the egress of a device (TCX).

use std::{
    ffi::{CString, c_void},
    io,
    os::fd::{AsFd as _, AsRawFd, FromRawFd as _, OwnedFd, RawFd},
    ptr,
};

use libbpf_rs::{MapCore as _, MapFlags, MapHandle, Object, ObjectBuilder, libbpf_sys as sys};

use crate::{
    abi::{Octets, QueueMaps, Report, Sink, Status},
    messages::{Failure, reported},
};

/// `BPF_TCX_EGRESS`.
const EGRESS: sys::bpf_attach_type = sys::BPF_TCX_EGRESS;
/// Programs at one device that a query returns.
const MOST: u32 = 64;

/// A loaded program, and its link if it is attached.
struct Queue {
    program: OwnedFd,
    link: Option<OwnedFd>,
    _object: Object,
}

pub unsafe extern "C" fn attach(
    object: Octets,
    maps: QueueMaps,
    device: u32,
    made: *mut *mut c_void,
    report: Report,
) -> Status {
    // SAFETY: the engine's call has not returned, and `made` is a variable of it.
    unsafe {
        let (config, about) = (maps.config.slice(), maps.about.slice());
        reported(
            || load(object.slice(), config, about, device),
            Some(made),
            report,
        )
    }
}

pub unsafe extern "C" fn link(queue: *const c_void) -> RawFd {
    // SAFETY: the engine passes a value created by `attach`.
    let queue = unsafe { &*queue.cast::<Queue>() };
    queue.link.as_ref().map_or(-1, AsRawFd::as_raw_fd)
}

pub unsafe extern "C" fn program(queue: *const c_void) -> u32 {
    // SAFETY: the engine passes a value created by `attach`.
    let queue = unsafe { &*queue.cast::<Queue>() };
    information(&queue.program).map_or(0, |found| found.id)
}

pub unsafe extern "C" fn run(queue: *const c_void, frame: Octets, context: Octets) -> i32 {
    // SAFETY: the engine passes a value created by `attach`, and its call has not returned.
    let (queue, frame, context) =
        unsafe { (&*queue.cast::<Queue>(), frame.slice(), context.slice()) };
    let mut options = sys::bpf_test_run_opts {
        sz: size_of::<sys::bpf_test_run_opts>() as sys::size_t,
        data_in: frame.as_ptr().cast(),
        data_size_in: length(frame),
        ctx_in: context.as_ptr().cast(),
        ctx_size_in: length(context),
        repeat: 1,
        ..Default::default()
    };
    // SAFETY: the options and the octets they name are valid until the call returns.
    let status =
        unsafe { sys::bpf_prog_test_run_opts(queue.program.as_raw_fd(), &raw mut options) };
    if status == 0 {
        options.retval.cast_signed()
    } else {
        i32::MIN
    }
}

pub unsafe extern "C" fn end(queue: *mut c_void) {
    // SAFETY: the engine passes a value created by `attach`, once.
    drop(unsafe { Box::from_raw(queue.cast::<Queue>()) });
}

pub unsafe extern "C" fn find(device: u32, found: Sink, report: Report) -> Status {
    let query = || -> Result<(), Failure> {
        for (program, link) in at_egress(device)? {
            // SAFETY: the engine's call has not returned.
            unsafe {
                found.write(&program.to_ne_bytes());
                found.write(&link.to_ne_bytes());
            }
        }
        Ok(())
    };
    // SAFETY: the engine's call has not returned.
    unsafe { reported(query, None, report) }
}

pub unsafe extern "C" fn read(program: u32, map: Octets, value: Sink, report: Report) -> Status {
    // SAFETY: the engine's call has not returned.
    unsafe {
        let read = || -> Result<(), Failure> {
            let map = map_of(program, map.slice())?;
            if let Some(octets) = map.and_then(|map| map.lookup(&[0; 4], MapFlags::ANY).ok()?) {
                value.write(&octets);
            }
            Ok(())
        };
        reported(read, None, report)
    }
}

pub unsafe extern "C" fn write(program: u32, map: Octets, value: Octets, report: Report) -> Status {
    // SAFETY: the engine's call has not returned.
    unsafe {
        let write = || -> Result<(), Failure> {
            let map = map_of(program, map.slice())?.ok_or_else(|| missing("map"))?;
            map.update(&[0; 4], value.slice(), MapFlags::ANY)?;
            Ok(())
        };
        reported(write, None, report)
    }
}

pub unsafe extern "C" fn cost(program: u32, cost: Sink, report: Report) -> Status {
    let read = || -> Result<(), Failure> {
        let found = information(&program_of(program)?)?;
        // SAFETY: the engine's call has not returned.
        unsafe {
            cost.write(&found.run_time_ns.to_ne_bytes());
            cost.write(&found.run_cnt.to_ne_bytes());
        }
        Ok(())
    };
    // SAFETY: the engine's call has not returned.
    unsafe { reported(read, None, report) }
}

pub unsafe extern "C" fn pin(link: u32, path: Octets, report: Report) -> Status {
    // SAFETY: the engine's call has not returned.
    unsafe {
        let pin = || -> Result<(), Failure> {
            let link = link_of(link)?;
            let path = CString::new(path.slice()).map_err(|_| missing("path"))?;
            checked(sys::bpf_obj_pin(link.as_raw_fd(), path.as_ptr()))?;
            Ok(())
        };
        reported(pin, None, report)
    }
}

pub unsafe extern "C" fn pinned(path: Octets, found: Sink, report: Report) -> Status {
    // SAFETY: the engine's call has not returned.
    unsafe {
        let read = || -> Result<(), Failure> {
            let path = CString::new(path.slice()).map_err(|_| missing("path"))?;
            let link = opened(sys::bpf_obj_get(path.as_ptr()))?;
            let mut info = sys::bpf_link_info::default();
            let mut size = octets_of::<sys::bpf_link_info>();
            checked(sys::bpf_obj_get_info_by_fd(
                link.as_raw_fd(),
                (&raw mut info).cast(),
                &raw mut size,
            ))?;
            if info.type_ != sys::BPF_LINK_TYPE_TCX {
                return Err(missing("link of TCX").into());
            }
            found.write(&info.id.to_ne_bytes());
            found.write(&info.__bindgen_anon_1.tcx.ifindex.to_ne_bytes());
            Ok(())
        };
        reported(read, None, report)
    }
}

pub unsafe extern "C" fn detach(link: u32, report: Report) -> Status {
    let detach = || -> Result<(), Failure> {
        let link = link_of(link)?;
        // SAFETY: the descriptor is open.
        checked(unsafe { sys::bpf_link_detach(link.as_raw_fd()) })?;
        Ok(())
    };
    // SAFETY: the engine's call has not returned.
    unsafe { reported(detach, None, report) }
}

fn load(object: &[u8], config: &[u8], about: &[u8], device: u32) -> Result<Queue, Failure> {
    let object = ObjectBuilder::default().open_memory(object)?.load()?;
    for map in object.maps() {
        let value = match map.name().to_str() {
            Some("aqm_config") => config,
            Some("aqm_about") => about,
            _ => continue,
        };
        let mut whole = vec![0; map.value_size() as usize];
        let room = whole
            .get_mut(..value.len())
            .ok_or_else(|| missing("room"))?;
        room.copy_from_slice(value);
        map.update(&[0; 4], &whole, MapFlags::ANY)?;
    }
    let program = object.progs().next().ok_or_else(|| missing("program"))?;
    let program = program
        .as_fd()
        .try_clone_to_owned()
        .map_err(libbpf_rs::Error::from)?;
    // The program does not use the description: it would end with this process.
    for map in object.maps() {
        if map.name() == "aqm_about" {
            let (program, map) = (program.as_raw_fd(), map.as_fd().as_raw_fd());
            // SAFETY: both descriptors are open, and no options are passed.
            checked(unsafe { sys::bpf_prog_bind_map(program, map, ptr::null()) })?;
        }
    }
    let link = if device == 0 {
        None
    } else {
        // SAFETY: the descriptor is open, and no options are passed.
        let link = unsafe {
            sys::bpf_link_create(
                program.as_raw_fd(),
                device.cast_signed(),
                EGRESS,
                ptr::null(),
            )
        };
        let link = opened(link);
        Some(link.map_err(|error| io::Error::new(error.kind(), format!("TCX: {error}")))?)
    };
    Ok(Queue {
        program,
        link,
        _object: object,
    })
}

/// Numbers of the programs at a device's egress, and of their links.
fn at_egress(device: u32) -> io::Result<Vec<(u32, u32)>> {
    let (mut programs, mut links) = ([0_u32; MOST as usize], [0_u32; MOST as usize]);
    let mut options = sys::bpf_prog_query_opts {
        sz: size_of::<sys::bpf_prog_query_opts>() as sys::size_t,
        prog_ids: programs.as_mut_ptr(),
        link_ids: links.as_mut_ptr(),
        ..Default::default()
    };
    options.__bindgen_anon_1.count = MOST;
    // SAFETY: the arrays have `count` elements and live until the call returns.
    checked(unsafe { sys::bpf_prog_query_opts(device.cast_signed(), EGRESS, &raw mut options) })?;
    // SAFETY: both members of the union are the same number.
    let count = unsafe { options.__bindgen_anon_1.count } as usize;
    let found = programs.into_iter().zip(links);
    Ok(found.take(count).collect())
}

fn information(program: &OwnedFd) -> io::Result<sys::bpf_prog_info> {
    let mut found = sys::bpf_prog_info::default();
    let mut size = octets_of::<sys::bpf_prog_info>();
    // SAFETY: the structure has `size` octets.
    checked(unsafe {
        sys::bpf_obj_get_info_by_fd(program.as_raw_fd(), (&raw mut found).cast(), &raw mut size)
    })?;
    Ok(found)
}

/// The program's map of this name.
fn map_of(program: u32, name: &[u8]) -> Result<Option<MapHandle>, Failure> {
    let program = program_of(program)?;
    let mut ids = [0_u32; MOST as usize];
    let mut found = sys::bpf_prog_info {
        nr_map_ids: MOST,
        map_ids: ids.as_mut_ptr() as u64,
        ..Default::default()
    };
    let mut size = octets_of::<sys::bpf_prog_info>();
    // SAFETY: the structure has `size` octets, and the array the given number of elements.
    checked(unsafe {
        sys::bpf_obj_get_info_by_fd(program.as_raw_fd(), (&raw mut found).cast(), &raw mut size)
    })?;
    for id in ids.into_iter().take(found.nr_map_ids as usize) {
        let map = MapHandle::from_map_id(id)?;
        if map.name().as_encoded_bytes() == name {
            return Ok(Some(map));
        }
    }
    Ok(None)
}

fn program_of(id: u32) -> Result<OwnedFd, Failure> {
    // SAFETY: the call takes a number.
    Ok(opened(unsafe { sys::bpf_prog_get_fd_by_id(id) })?)
}

fn link_of(id: u32) -> Result<OwnedFd, Failure> {
    // SAFETY: the call takes a number.
    Ok(opened(unsafe { sys::bpf_link_get_fd_by_id(id) })?)
}

/// The descriptor that a call returned.
fn opened(result: i32) -> io::Result<OwnedFd> {
    checked(result)?;
    // SAFETY: the call has just opened it.
    Ok(unsafe { OwnedFd::from_raw_fd(result) })
}

/// The error that a call returned as a negative number.
fn checked(result: i32) -> io::Result<()> {
    if result < 0 {
        return Err(io::Error::from_raw_os_error(-result));
    }
    Ok(())
}

fn octets_of<T>() -> u32 {
    u32::try_from(size_of::<T>()).unwrap_or(u32::MAX)
}

fn length(octets: &[u8]) -> u32 {
    u32::try_from(octets.len()).unwrap_or(u32::MAX)
}

fn missing(what: &str) -> libbpf_rs::Error {
    io::Error::other(format!("the program has no {what}")).into()
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Libbpf(error.into())
    }
}
