//! Congestion controls.

use std::{ffi::OsStr, ffi::c_void, os::unix::ffi::OsStrExt as _};

use libbpf_rs::{
    Btf, Link, MapCore as _, MapType, ObjectBuilder,
    btf::types::{Composite, MemberAttr},
};

use crate::{
    abi::{DONE, NO_CONTROL, Octets, Report, Sink, Status},
    messages::{Failure, hearing, reported},
};

/// `TCP_CA_NAME_MAX`.
const NAME_MAX: usize = 16;

pub unsafe extern "C" fn name(object: Octets, name: Sink) -> Status {
    // SAFETY: the engine's call has not returned.
    let (found, _) = hearing(|| read_name(unsafe { object.slice() }));
    let Some(found) = found else {
        return NO_CONTROL;
    };
    // SAFETY: as above.
    unsafe { name.write(&found) };
    DONE
}

pub unsafe extern "C" fn attach(
    object: Octets,
    name: Octets,
    made: *mut *mut c_void,
    report: Report,
) -> Status {
    // SAFETY: the engine's call has not returned, and `made` is a variable of it.
    unsafe { reported(|| load(object.slice(), name.slice()), Some(made), report) }
}

pub unsafe extern "C" fn pin(attached: *mut c_void, path: Octets, report: Report) -> Status {
    // SAFETY: the engine passes a value created by `attach`, from one thread at a time; its call
    // has not returned.
    unsafe {
        let link = &mut *attached.cast::<Link>();
        let path = OsStr::from_bytes(path.slice());
        reported(|| Ok(link.pin(path)?), None, report)
    }
}

pub unsafe extern "C" fn detach(attached: *mut c_void) {
    // SAFETY: the engine passes a value created by `attach`, once.
    drop(unsafe { Box::from_raw(attached.cast::<Link>()) });
}

fn load(object: &[u8], name: &[u8]) -> Result<Link, Failure> {
    let mut opened = ObjectBuilder::default().open_memory(object)?;
    let place = place_of_name(object);
    for mut map in opened.maps_mut() {
        let value = (map.map_type() == MapType::StructOps).then(|| map.initial_value_mut());
        if let Some((value, place)) = value.flatten().zip(place)
            && let Some(octets) = value.get_mut(place..place + NAME_MAX)
            && let Some(room) = octets.get_mut(..name.len())
        {
            room.copy_from_slice(name);
            octets[name.len()..].fill(0);
            break;
        }
    }
    let mut loaded = opened.load()?;
    for mut map in loaded.maps_mut() {
        if map.map_type() == MapType::StructOps {
            return Ok(map.attach_struct_ops()?);
        }
    }
    Err(Failure::Status(NO_CONTROL))
}

fn read_name(object: &[u8]) -> Option<Vec<u8>> {
    let opened = ObjectBuilder::default().open_memory(object).ok()?;
    let map = opened
        .maps()
        .find(|map| map.map_type() == MapType::StructOps)?;
    let value = map.initial_value()?;
    let start = place_of_name(object)?;
    let octets = value.get(start..start + NAME_MAX)?;
    octets.split(|octet| *octet == 0).next().map(<[u8]>::to_vec)
}

/// Offset of the name in the control's structure, by the control's own type information.
fn place_of_name(object: &[u8]) -> Option<usize> {
    let btf = Btf::from_raw("control", object).ok()??;
    let ops: Composite<'_> = btf.type_by_name("tcp_congestion_ops")?;
    let member = ops
        .iter()
        .find(|member| member.name.is_some_and(|name| name == "name"))?;
    let MemberAttr::Normal { offset } = member.attr else {
        return None;
    };
    Some(offset as usize / 8)
}
