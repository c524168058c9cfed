//! A control's file in the Linux kernel: compiled by clang, checked by the kernel's verifier, and from
//! then on a congestion control like any other that any program on the machine can choose.
//!
//! [`attach`] keeps it there as long as the value lives; [`pinned`] beyond the life of the process.
//! Connections that use a control keep it when it goes.

pub mod pinned;

use std::{
    cell::RefCell,
    fs,
    path::Path,
    sync::{Mutex, PoisonError},
};

use anabranch_core::{interrupt::Interrupt, system};
use libbpf_rs::{
    Btf, ErrorKind, Link, MapCore as _, MapType, ObjectBuilder, PrintLevel,
    btf::types::{Composite, MemberAttr},
    set_print,
};

use crate::{Error, Source, compile, privilege::advice};

/// The kernel's own description of itself, without which no control is loaded.
pub(crate) const BTF: &str = "/sys/kernel/btf/vmlinux";
/// `TCP_CA_NAME_MAX`.
pub(crate) const NAME_MAX: usize = 16;
/// What loading takes (capabilities(7)).
const PRIVILEGE: &str =
    "loading a control into the kernel needs root, or CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN";
const CAPABILITIES: [&str; 3] = ["CAP_BPF", "CAP_PERFMON", "CAP_NET_ADMIN"];

/// A control in the kernel, as long as this lives.
#[derive(Debug)]
pub struct Attached {
    name: String,
    link: Link,
}

impl Attached {
    /// The name that programs choose it by (`TCP_CONGESTION`).
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

thread_local! {
    /// What libbpf says, of which the verifier's reasons are a part.
    static SAID: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Compiles a control, loads it and makes it known to the kernel. Raising `interrupt` ends the compiler.
///
/// # Errors
/// There is no clang, the file does not compile, the verifier refuses it, the privilege is missing, or a
/// control of its name is there already.
pub fn attach(source: &Source, interrupt: &Interrupt) -> Result<Attached, Error> {
    check_machine()?;
    let object = compile::kernel(source, interrupt)?;
    let name = name_of(source, &object)?;
    attach_object(source, &object, &name)
}

/// Whether the kernel can take controls at all.
pub(crate) fn check_machine() -> Result<(), Error> {
    if !Path::new(BTF).exists() {
        return Err(Error::System(format!(
            "this kernel cannot take eBPF congestion controls: {BTF} is missing; it needs CONFIG_DEBUG_INFO_BTF and CONFIG_BPF_JIT"
        )));
    }
    Ok(())
}

/// Makes a control that is compiled known to the kernel, by another name than its own if need be.
pub(crate) fn attach_object(source: &Source, object: &[u8], name: &str) -> Result<Attached, Error> {
    let name = name.to_owned();
    if available().contains(&name) {
        return Err(Error::System(format!(
            "the kernel has a congestion control `{name}` already; `anabranch cc unload {name}` if it was loaded so"
        )));
    }
    let (attached, said) = hearing(|| load(object, &name));
    match attached {
        Ok(Some(link)) => Ok(Attached { name, link }),
        Ok(None) => Err(without_control(source)),
        Err(error) if error.kind() == ErrorKind::PermissionDenied && !said.contains(LOG) => Err(
            Error::System(format!("{PRIVILEGE}; {}", advice(&CAPABILITIES))),
        ),
        Err(error) => Err(Error::Refused {
            file: source.name.clone(),
            message: shortened(&said).unwrap_or_else(|| system::words(&error)),
        }),
    }
}

/// One at a time: where libbpf's messages go is one place for the whole process.
static TURN: Mutex<()> = Mutex::new(());

/// Calls a function of libbpf's, and what that says meanwhile.
pub(crate) fn hearing<T>(call: impl FnOnce() -> T) -> (T, String) {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let before = set_print(Some((PrintLevel::Info, |_, text| {
        SAID.with_borrow_mut(|said| said.push_str(&text));
    })));
    SAID.take();
    let result = call();
    set_print(before);
    drop(turn);
    (result, SAID.take())
}

fn load(object: &[u8], name: &str) -> libbpf_rs::Result<Option<Link>> {
    let mut opened = ObjectBuilder::default().open_memory(object)?;
    let place = place_of_name(object);
    for mut map in opened.maps_mut() {
        let value = (map.map_type() == MapType::StructOps).then(|| map.initial_value_mut());
        if let Some((value, place)) = value.flatten().zip(place)
            && let Some(bytes) = value.get_mut(place..place + NAME_MAX)
        {
            bytes.fill(0);
            bytes[..name.len()].copy_from_slice(name.as_bytes());
            break;
        }
    }
    let mut loaded = opened.load()?;
    for mut map in loaded.maps_mut() {
        if map.map_type() == MapType::StructOps {
            return map.attach_struct_ops().map(Some);
        }
    }
    Ok(None)
}

fn without_control(source: &Source) -> Error {
    Error::Unfit {
        file: source.name.clone(),
        what: "has no control; mark a struct tcp_congestion_ops with SEC(\".struct_ops.link\")"
            .to_owned(),
    }
}

/// The name in the control's `struct tcp_congestion_ops`, wherever its own headers have it there.
pub(crate) fn name_of(source: &Source, object: &[u8]) -> Result<String, Error> {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let before = set_print(None);
    let found = read_name(object);
    set_print(before);
    drop(turn);
    let name = found.ok_or_else(|| without_control(source))?;
    let fits = (1..NAME_MAX).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+'));
    if fits {
        Ok(name)
    } else {
        Err(Error::Unfit {
            file: source.name.clone(),
            what: format!(
                "names its control {name:?}; `.name` holds 1 to {} letters, digits, `_`, `-` or `+`",
                NAME_MAX - 1
            ),
        })
    }
}

fn read_name(object: &[u8]) -> Option<String> {
    let opened = ObjectBuilder::default().open_memory(object).ok()?;
    let map = opened
        .maps()
        .find(|map| map.map_type() == MapType::StructOps)?;
    let value = map.initial_value()?;
    let start = place_of_name(object)?;
    let bytes = value.get(start..start + NAME_MAX)?;
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(NAME_MAX);
    Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
}

/// Where in the control's structure its name begins.
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

/// Where the verifier's words begin in libbpf's.
pub(crate) const LOG: &str = "-- BEGIN PROG LOAD LOG --";

/// Of the verifier's words the reason, which is the last of them, the instruction's line in the file, and
/// the function that they are about.
pub(crate) fn shortened(said: &str) -> Option<String> {
    let Some((before, log)) = said.split_once(LOG) else {
        let lines: Vec<&str> = said
            .lines()
            .filter_map(|line| line.strip_prefix("libbpf: "))
            .filter(|line| !line.starts_with("Error in bpf_object__probe_loading"))
            .take(2)
            .collect();
        return (!lines.is_empty()).then(|| lines.join("; "));
    };
    let log = log.split("-- END PROG LOAD LOG --").next()?;
    let function = before
        .rsplit_once("prog '")
        .and_then(|(_, rest)| rest.split('\'').next());
    let tells = |line: &&str| {
        !line.is_empty()
            && !line.starts_with("processed ")
            && !line.starts_with("verification time")
            && !line.starts_with("stack depth")
            && !line.starts_with("libbpf: ")
    };
    let reason = log.lines().map(str::trim).rfind(tells)?;
    // Lines of the source are set off by a semicolon: `; text @ file:line`.
    let place = log
        .lines()
        .rev()
        .find_map(|line| line.trim().strip_prefix("; "))
        .map(|line| line.split(" @ ").next().unwrap_or(line).trim().to_owned());
    Some(match (function, place) {
        (Some(function), Some(place)) => format!("{function}: {reason}, at `{place}`"),
        (Some(function), None) => format!("{function}: {reason}"),
        (None, _) => reason.to_owned(),
    })
}

/// The congestion controls that the kernel has.
#[must_use]
pub fn available() -> Vec<String> {
    words("/proc/sys/net/ipv4/tcp_available_congestion_control")
}

/// Those that any user may choose.
#[must_use]
pub fn allowed() -> Vec<String> {
    words("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
}

fn words(path: &str) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}
