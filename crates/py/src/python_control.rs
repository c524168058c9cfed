//! Congestion controls written in Python.
//!
//! Each event calls a method of the object, and then reads its attributes. This costs several
//! microseconds, most of them in Python. A class with `every` is instead called once for a round trip or a
//! number of acknowledgments, with their sum. An exception ends the run.

use std::sync::{Arc, Mutex, PoisonError};

use anabranch::{
    Extensions, Interrupt,
    cc::{
        Ack, Congestion, CongestionControl, Factory, Idle, Init, Recovered, Rto, Signal, Spurious,
    },
    units::{Bytes, Duration, Instant, Rate},
};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyDict, PyType},
};
use serde_json::Value;

/// The classes of a scenario, by the names used in it.
#[derive(Clone, Default)]
pub struct PythonControls {
    classes: Arc<Vec<(String, Py<PyType>)>>,
    raised: Raised,
}

/// The first error that a control raised.
#[derive(Clone, Default)]
struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    fn put(&self, error: PyErr, interrupt: &Interrupt) {
        let mut raised = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        raised.get_or_insert(error);
        interrupt.raise();
    }
}

impl PythonControls {
    pub fn new(classes: Vec<(String, Py<PyType>)>) -> Self {
        Self {
            classes: Arc::new(classes),
            raised: Raised::default(),
        }
    }

    /// Returns the exception of a control, and clears it.
    pub fn raised(&self) -> Option<PyErr> {
        let mut raised = self.raised.0.lock().unwrap_or_else(PoisonError::into_inner);
        raised.take()
    }

    pub fn extend(&self, extensions: Extensions, interrupt: &Interrupt) -> Extensions {
        let add = |extensions: Extensions, place: usize| {
            let (own, interrupt) = (self.clone(), interrupt.clone());
            let name = own.classes[place].0.clone();
            extensions.congestion_control(&name, move |params| {
                Ok(own.factory(place, params, &interrupt))
            })
        };
        (0..self.classes.len()).fold(extensions, add)
    }

    fn factory(&self, place: usize, params: &Value, interrupt: &Interrupt) -> Factory {
        let (own, params, interrupt) = (self.clone(), params.to_string(), interrupt.clone());
        Arc::new(move |init| {
            let mut control = PythonControl {
                object: None,
                calls: Calls::default(),
                every: None,
                sum: AckSum::default(),
                view: View {
                    cwnd: init.initial_cwnd,
                    ssthresh: None,
                    pacing_rate: None,
                },
                raised: own.raised.clone(),
                interrupt: interrupt.clone(),
            };
            let made =
                Python::attach(|py| control.make(own.classes[place].1.bind(py), &params, init));
            if let Err(error) = made {
                control.raised.put(error, &control.interrupt);
            }
            Box::new(control)
        })
    }
}

/// State of a control that the engine reads between events.
#[derive(Debug, Clone, Copy)]
struct View {
    cwnd: Bytes,
    ssthresh: Option<Bytes>,
    pacing_rate: Option<Rate>,
}

/// The optional methods that the class has.
#[derive(Debug, Clone, Copy, Default)]
struct Calls {
    recovered: bool,
    spurious: bool,
    idle: bool,
}

/// The acknowledgments that one call sums up.
#[derive(Debug, Clone, Copy)]
enum Every {
    RoundTrip,
    Acks(u64),
}

impl Every {
    /// Reads the class's attribute.
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let value = match object.getattr_opt("every")? {
            Some(value) if !value.is_none() => value,
            _ => return Ok(None),
        };
        match (value.extract::<u64>(), value.extract::<String>()) {
            (Ok(acks), _) if acks > 0 => Ok(Some(Self::Acks(acks))),
            (_, Ok(word)) if word == "rtt" => Ok(Some(Self::RoundTrip)),
            _ => Err(PyValueError::new_err(format!(
                "{}.every is {}; expected None, \"rtt\", or a number of acknowledgments above 0",
                object.get_type().name()?,
                value.repr()?
            ))),
        }
    }
}

/// The sum of the acknowledgments since the last call.
#[derive(Debug, Clone, Copy, Default)]
struct AckSum {
    acks: u64,
    delivered: u64,
    lost: u64,
    ce_marked: u64,
    rtt_sum_s: f64,
    rtts: u32,
    began_s: f64,
    round: u64,
}

impl AckSum {
    fn add(&mut self, ack: &Ack) {
        self.acks += 1;
        self.delivered += ack.delivered.get();
        self.lost += ack.lost.get();
        self.ce_marked += ack.ce_marked.get();
        if let Some(rtt) = ack.rtt {
            self.rtt_sum_s += rtt.as_secs_f64();
            self.rtts += 1;
        }
    }
    const fn is_due(&self, every: Every, ack: &Ack) -> bool {
        match every {
            Every::RoundTrip => ack.round > self.round,
            Every::Acks(acks) => self.acks >= acks,
        }
    }
    /// Returns the sum up to this acknowledgment, and begins the next one.
    fn take(&mut self, ack: &Ack) -> PyAcks {
        let now_s = seconds(ack.now);
        let sum = PyAcks {
            now_s,
            duration_s: now_s - self.began_s,
            acks: self.acks,
            delivered: self.delivered,
            lost: self.lost,
            ce_marked: self.ce_marked,
            rtt_s: (self.rtts > 0).then(|| self.rtt_sum_s / f64::from(self.rtts)),
            srtt_s: ack.srtt.as_secs_f64(),
            min_rtt_s: ack.min_rtt.as_secs_f64(),
            in_flight: ack.in_flight.get(),
            round: ack.round,
            cwnd_limited: ack.cwnd_limited,
            app_limited: ack.app_limited,
            in_recovery: ack.in_recovery,
        };
        *self = Self {
            began_s: now_s,
            round: ack.round,
            ..Self::default()
        };
        sum
    }
}

/// The control of one flow. Without an object it has failed, and the run is about to end.
struct PythonControl {
    object: Option<Py<PyAny>>,
    calls: Calls,
    /// The acknowledgments of a call; without it, each is a call.
    every: Option<Every>,
    sum: AckSum,
    view: View,
    raised: Raised,
    interrupt: Interrupt,
}

impl std::fmt::Debug for PythonControl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.view.fmt(f)
    }
}

impl PythonControl {
    fn make(&mut self, class: &Bound<'_, PyType>, params: &str, init: &Init) -> PyResult<()> {
        let py = class.py();
        let start = Start {
            smss: init.smss.get(),
            initial_cwnd: init.initial_cwnd.get(),
        };
        let given = py.import("json")?.call_method1("loads", (params,))?;
        let object = class.call((start,), Some(given.cast::<PyDict>()?))?;
        let has = |name: &str| object.hasattr(name);
        self.calls = Calls {
            recovered: has("on_recovered")?,
            spurious: has("on_spurious")?,
            idle: has("on_idle")?,
        };
        self.every = Every::of(&object)?;
        self.view = View::of(&object)?;
        self.object = Some(object.unbind());
        Ok(())
    }

    fn call<'py, E: IntoPyObject<'py>>(
        py: Python<'py>,
        object: &Py<PyAny>,
        name: &str,
        event: E,
    ) -> PyResult<View> {
        let object = object.bind(py);
        object.call_method1(name, (event,))?;
        View::of(object)
    }

    fn on<E: for<'py> IntoPyObject<'py>>(&mut self, name: &str, event: E) {
        let Some(object) = &self.object else { return };
        match Python::attach(|py| Self::call(py, object, name, event)) {
            Ok(view) => self.view = view,
            Err(error) => {
                self.raised.put(error, &self.interrupt);
                self.object = None;
            }
        }
    }
}

impl View {
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let wrong = |name: &str, value: &dyn std::fmt::Display| -> PyResult<String> {
            let class = object.get_type().name()?;
            Ok(format!(
                "{class}.{name} is {value}; expected a number above 0"
            ))
        };
        let number = |name: &str| -> PyResult<Option<f64>> {
            let value = object.getattr(name)?;
            match value.extract::<Option<f64>>() {
                Ok(Some(number)) if !number.is_finite() || number <= 0.0 => {
                    Err(PyValueError::new_err(wrong(name, &number)?))
                }
                Ok(number) => Ok(number),
                Err(_) => Err(PyTypeError::new_err(wrong(name, &value.repr()?)?)),
            }
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "above 0, and what is beyond the type's end becomes its end"
        )]
        let whole = |value: f64| value.round() as u64;
        let Some(cwnd) = number("cwnd")? else {
            return Err(PyValueError::new_err(wrong("cwnd", &"None")?));
        };
        Ok(Self {
            cwnd: Bytes::new(whole(cwnd).max(1)),
            ssthresh: number("ssthresh")?.map(|value| Bytes::new(whole(value))),
            pacing_rate: number("pacing_rate")?.and_then(|value| Rate::new(whole(value).max(1))),
        })
    }
}

impl CongestionControl for PythonControl {
    fn on_ack(&mut self, ack: &Ack) {
        let Some(every) = self.every else {
            self.on("on_ack", PyAck::from(ack));
            return;
        };
        self.sum.add(ack);
        if self.sum.is_due(every, ack) {
            let sum = self.sum.take(ack);
            self.on("on_acks", sum);
        }
    }
    fn on_congestion(&mut self, event: &Congestion) {
        let signal = match event.signal {
            Signal::Loss => "loss",
            Signal::EcnCe => "ecn",
        };
        self.on(
            "on_congestion",
            PyCongestion {
                now_s: seconds(event.now),
                signal,
                in_flight: event.in_flight.get(),
            },
        );
    }
    fn on_rto(&mut self, event: &Rto) {
        self.on(
            "on_rto",
            PyRto {
                now_s: seconds(event.now),
                in_flight: event.in_flight.get(),
                consecutive: event.consecutive,
            },
        );
    }
    fn on_recovered(&mut self, event: &Recovered) {
        if self.calls.recovered {
            self.on("on_recovered", seconds(event.now));
        }
    }
    fn on_spurious(&mut self, event: &Spurious) {
        if self.calls.spurious {
            self.on("on_spurious", seconds(event.now));
        }
    }
    fn on_idle(&mut self, event: &Idle) {
        if self.calls.idle {
            self.on("on_idle", event.idle.as_secs_f64());
        }
    }
    fn cwnd(&self) -> Bytes {
        self.view.cwnd
    }
    fn ssthresh(&self) -> Option<Bytes> {
        self.view.ssthresh
    }
    fn pacing_rate(&self) -> Option<Rate> {
        self.view.pacing_rate
    }
}

fn seconds(time: Instant) -> f64 {
    time.as_secs_f64()
}

/// Inputs for creating a control.
#[pyclass(frozen, get_all, name = "Start", module = "anabranch.control")]
struct Start {
    smss: u64,
    initial_cwnd: u64,
}

/// An acknowledgment. Octets, and times in seconds.
#[pyclass(frozen, get_all, name = "Ack", module = "anabranch.control")]
struct PyAck {
    now_s: f64,
    acked: u64,
    sacked: u64,
    delivered: u64,
    lost: u64,
    ce_marked: u64,
    prior_in_flight: u64,
    in_flight: u64,
    rtt_s: Option<f64>,
    srtt_s: f64,
    min_rtt_s: f64,
    round: u64,
    cwnd_limited: bool,
    app_limited: bool,
    in_recovery: bool,
}

impl From<&Ack> for PyAck {
    fn from(ack: &Ack) -> Self {
        Self {
            now_s: seconds(ack.now),
            acked: ack.acked.get(),
            sacked: ack.sacked.get(),
            delivered: ack.delivered.get(),
            lost: ack.lost.get(),
            ce_marked: ack.ce_marked.get(),
            prior_in_flight: ack.prior_in_flight.get(),
            in_flight: ack.in_flight.get(),
            rtt_s: ack.rtt.map(Duration::as_secs_f64),
            srtt_s: ack.srtt.as_secs_f64(),
            min_rtt_s: ack.min_rtt.as_secs_f64(),
            round: ack.round,
            cwnd_limited: ack.cwnd_limited,
            app_limited: ack.app_limited,
            in_recovery: ack.in_recovery,
        }
    }
}

/// The sum of several acknowledgments. Octets, and times in seconds.
#[pyclass(frozen, get_all, name = "Acks", module = "anabranch.control")]
struct PyAcks {
    now_s: f64,
    duration_s: f64,
    acks: u64,
    delivered: u64,
    lost: u64,
    ce_marked: u64,
    rtt_s: Option<f64>,
    srtt_s: f64,
    min_rtt_s: f64,
    in_flight: u64,
    round: u64,
    cwnd_limited: bool,
    app_limited: bool,
    in_recovery: bool,
}

/// A reduction is due.
#[pyclass(frozen, get_all, name = "Congestion", module = "anabranch.control")]
struct PyCongestion {
    now_s: f64,
    signal: &'static str,
    in_flight: u64,
}

/// The retransmission timer expired.
#[pyclass(frozen, get_all, name = "Rto", module = "anabranch.control")]
struct PyRto {
    now_s: f64,
    in_flight: u64,
    consecutive: u32,
}
