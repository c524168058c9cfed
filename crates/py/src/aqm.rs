//! Queues at the egress of a device, as eBPF programs.

use std::os::fd::IntoRawFd;

use anabranch_bpf::aqm::{
    KINDS, Settings,
    device::{self, Device},
    sweep,
};
use pyo3::{create_exception, exceptions::PyValueError, prelude::*};
use serde_json::{Value, json};

use crate::interruptible::quietly;

create_exception!(
    anabranch._engine,
    AqmError,
    PyValueError,
    "A queue cannot be attached to a device, confirmed, read or detached, with the reason."
);

fn raised(error: impl std::fmt::Display) -> PyErr {
    AqmError::new_err(error.to_string())
}

/// The kinds of queues that have a program, the options of each with their defaults, and the devices
/// of this network namespace, as JSON.
#[pyfunction]
pub fn aqm_kinds() -> String {
    json!({ "kinds": KINDS, "options": Settings::options(), "devices": device::names() })
        .to_string()
}

/// Attaches a queue to the egress of a device. `options` is a JSON object. With `confirm_within`, in
/// seconds, the link's file descriptor is returned, which the caller owns: the queue is attached while
/// a copy of it is open, and remains if it is confirmed. Also returns, as JSON, the file that then
/// holds the link, the mount point if a BPF file system was mounted, and the time until which the
/// queue has to be confirmed, in ns of `CLOCK_MONOTONIC`. Raises `AqmError`.
#[pyfunction]
#[pyo3(signature = (device, kind, rate, options, confirm_within=None))]
pub fn aqm_attach(
    py: Python<'_>,
    device: String,
    kind: String,
    rate: String,
    options: String,
    confirm_within: Option<u32>,
) -> PyResult<(Option<i32>, String)> {
    quietly(py, move |interrupt| {
        let Ok(Value::Object(options)) = serde_json::from_str(&options) else {
            return Err("the options are no JSON object".to_owned());
        };
        let settings = Settings::read(&kind, &rate, &options).map_err(|error| error.to_string())?;
        let device = Device::named(&device).map_err(|error| error.to_string())?;
        let attached = device.attach(&kind, &settings, confirm_within, interrupt);
        attached.map_err(|error| error.to_string())
    })?
    .map(|attached| {
        let told = json!({
            "path": attached.path,
            "mounted": attached.mounted,
            "deadline_ns": attached.deadline,
        });
        (attached.link.map(IntoRawFd::into_raw_fd), told.to_string())
    })
    .map_err(raised)
}

/// Confirms a device's queue; returns whether it had yet to be confirmed. Raises `AqmError`.
#[pyfunction]
pub fn aqm_confirm(device: &str) -> PyResult<bool> {
    Device::named(device)
        .and_then(|device| device.confirm())
        .map_err(raised)
}

/// Detaches a device's queue. If there is no such device, removes what remains of the queues of
/// devices that are gone. Raises `AqmError`.
#[pyfunction]
pub fn aqm_detach(device: &str) -> PyResult<()> {
    let found = Device::named(device).map_err(|error| match sweep() {
        0 => raised(error),
        _ => raised(format_args!(
            "there is no device `{device}`; what remained of the queues of devices that are gone was removed"
        )),
    });
    found?.detach().map_err(raised)
}

/// The queue of a device, or the queues of all devices, as a JSON array. Removes the files of devices that
/// are gone. Raises `AqmError`.
#[pyfunction]
#[pyo3(signature = (device=None))]
pub fn aqm_status(device: Option<&str>) -> PyResult<String> {
    sweep();
    let devices = match device {
        Some(name) => vec![Device::named(name).map_err(raised)?],
        // A device may disappear meanwhile.
        None => device::names()
            .iter()
            .flat_map(|name| Device::named(name))
            .collect(),
    };
    let mut queues = Vec::new();
    for device in devices {
        let status = device.status().map_err(raised)?;
        queues.extend(status);
    }
    Ok(Value::Array(queues).to_string())
}
