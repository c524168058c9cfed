//! Congestion controls of a run: those in the kernel, and eBPF controls loaded for the duration of
//! the run.

use std::{path::Path, sync::Arc};

use anabranch_bpf::{
    Error as BpfError, Source,
    privilege::advice,
    shipped, source_of,
    temporary::{self, Temporary},
};
use anabranch_congestion::{self as cc};
use anabranch_core::{interrupt::Interrupt, system};
use anabranch_engine::summary::Named;
use anabranch_files::Files;
use anabranch_scenario::{Protocol, Resolved, ResolvedFlow};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    kernel::namespace::Namespace,
    plan::{
        defaults::says_default,
        refusal::Refusal,
        settings::{
            self, OptionError, SocketOption, SocketSettings, is_carried, kernel_name, kernel_sends,
        },
    },
};

/// Access to the sources of eBPF controls.
#[derive(Debug, Clone, Copy)]
pub struct Reading<'a> {
    /// The folder of their files.
    pub folder: &'a Path,
    pub files: &'a Files,
    /// Raising it ends the compiler.
    pub interrupt: &'a Interrupt,
}

/// The congestion control of one flow's sockets.
#[derive(Debug, Clone)]
struct Control {
    /// The name passed to the sockets.
    name: String,
    /// Its file, if it is an eBPF control.
    file: Option<String>,
    /// The loaded control, if it was loaded for this run.
    held: Option<Arc<Temporary>>,
}

/// A flow's congestion control in the kernel.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(extend("engine" = "live"))]
pub struct LiveControl {
    /// Its name in the kernel.
    name: String,
    /// File of the eBPF program; null for a control of the kernel.
    file: Option<String>,
    /// Whether this run loaded it.
    loaded: bool,
}

/// The controls of all flows, in their order. Loaded controls stay loaded while this value lives.
#[derive(Debug, Default)]
pub struct Controls {
    by_flow: Vec<Option<Control>>,
}

impl Controls {
    /// Finds or loads the controls of the flows. Sockets are tested in `namespace`, where this
    /// process has the most rights.
    ///
    /// # Errors
    /// With the first flow whose control the kernel neither has nor accepts.
    pub fn of(
        resolved: &Resolved,
        namespace: &Namespace,
        reading: &Reading<'_>,
    ) -> std::io::Result<Result<Self, Refusal>> {
        namespace.inside(|| {
            let mut checked = Vec::new();
            let by_flow = resolved.flows.iter().map(|flow| {
                let ours = flow.protocol == Protocol::Tcp
                    && !is_carried(flow, resolved)
                    && kernel_sends(flow, resolved);
                let wanted = ours || says_default(flow, resolved);
                wanted
                    .then(|| {
                        let control = Control::of(flow, reading)?;
                        if ours {
                            checked.push((flow, control.name.clone()));
                        }
                        Ok(control)
                    })
                    .transpose()
            });
            let by_flow = match by_flow.collect::<Result<_, _>>() {
                Ok(by_flow) => by_flow,
                Err(refusal) => return Ok(Err(refusal)),
            };
            for (flow, name) in checked {
                if let Err(refusal) = check_socket(flow, resolved, &name)? {
                    return Ok(Err(refusal));
                }
            }
            Ok(Ok(Self { by_flow }))
        })
    }

    /// The controls around a shell, where no flow sends. Controls that the kernel neither has nor
    /// accepts are omitted.
    pub fn beside_a_shell(
        resolved: &Resolved,
        namespace: &Namespace,
        reading: &Reading<'_>,
    ) -> std::io::Result<Self> {
        namespace.inside(|| {
            let by_flow = resolved.flows.iter().map(|flow| {
                says_default(flow, resolved)
                    .then(|| Control::of(flow, reading).ok())
                    .flatten()
            });
            Ok(Self {
                by_flow: by_flow.collect(),
            })
        })
    }

    /// The name of a flow's control for its sockets.
    pub fn name(&self, flow: usize) -> Option<&str> {
        let control = self.by_flow.get(flow)?.as_ref()?;
        Some(&control.name)
    }

    /// The controls for the summary, by flow.
    pub fn described(&self, resolved: &Resolved) -> Named<LiveControl> {
        let of = |(flow, control): (&ResolvedFlow, &Option<Control>)| {
            let control = control.as_ref()?;
            let described = LiveControl {
                name: control.name.clone(),
                file: control.file.clone(),
                loaded: control.held.is_some(),
            };
            Some((flow.name.clone(), described))
        };
        resolved
            .flows
            .iter()
            .zip(&self.by_flow)
            .filter_map(of)
            .collect()
    }
}

/// Checks on a test socket whether the flow's socket options are accepted.
fn check_socket(
    flow: &ResolvedFlow,
    resolved: &Resolved,
    congestion: &str,
) -> std::io::Result<Result<(), Refusal>> {
    let told = settings::takes(&SocketSettings::of(flow, resolved, Some(congestion)))?;
    Ok(told.map_err(|error| refusal(flow, &error)))
}

/// The refusal of an option, at its key of the scenario.
fn refusal(flow: &ResolvedFlow, error: &OptionError) -> Refusal {
    let (key, what, help): (&[&str], _, _) = match error.option {
        SocketOption::Congestion => (
            &["cc"],
            "a socket may not have this congestion control",
            format!("{}, or choose another control", advice(NET_ADMIN)),
        ),
        SocketOption::MaxSegment => (
            &["transport", "mss"],
            "a socket cannot have segments of this size",
            "expected the size of another".to_owned(),
        ),
        SocketOption::Window => (
            &["transport", "receive_window"],
            "a socket may not offer the window that it is to have",
            format!(
                "{}, or leave `receive_window` and `receive_autotuning` out",
                advice(NET_ADMIN)
            ),
        ),
        SocketOption::Class => (
            &["dscp"],
            "a socket cannot have this code point",
            "expected another, or none".to_owned(),
        ),
    };
    let mut path = vec!["flow", &flow.table];
    path.extend(key);
    Refusal::new(&path, format!("{what}: {error}"), help)
}

/// The capability for restricted socket options.
const NET_ADMIN: &[&str] = &["CAP_NET_ADMIN"];

/// The expected values if the kernel does not offer a control.
fn not_offered(name: &str) -> String {
    let offered = settings::offered();
    let expected = format!(
        "expected one of `{}`, or one that ships as an eBPF program",
        offered.join("`, `")
    );
    let module = format!("tcp_{name}");
    if offered.iter().any(|offered| offered == name) {
        format!(
            "{expected}; for `{name}`, which is restricted: {}",
            advice(NET_ADMIN)
        )
    } else if has_module(&module) {
        format!("{expected}; for `{name}`, as root: modprobe {module}")
    } else {
        expected
    }
}

/// Whether a module for the running kernel is installed.
fn has_module(name: &str) -> bool {
    let release = rustix::system::uname();
    let release = release.release().to_string_lossy();
    let all = std::fs::read_to_string(format!("/lib/modules/{release}/modules.dep"));
    let file = format!("/{name}.ko");
    all.is_ok_and(|all| {
        let modules = all.lines().filter_map(|line| line.split(':').next());
        modules
            .map(|path| format!("/{path}"))
            .any(|path| path.contains(&file))
    })
}

impl Control {
    fn of(flow: &ResolvedFlow, reading: &Reading<'_>) -> Result<Self, Refusal> {
        let refused = |message: String, help: String| {
            Refusal::new(&["flow", &flow.table, "cc"], message, help)
        };
        let name = flow.cc.name();
        let (source, there) = match &flow.cc {
            cc::Config::Custom(custom) if custom.name == "bpf" => {
                let (message, help) = ("an eBPF control cannot be read", "give `file` or `name`");
                let source = source_of(&custom.params, reading.folder, reading.files)
                    .map_err(|error| refused(format!("{message}: {error}"), help.to_owned()))?;
                // A control that `anabranch cc load` keeps in the kernel is available to users who
                // may not load one.
                let there =
                    settings::shipped(&flow.cc).map(|shipped| shipped.kernel_name.to_owned());
                (source, there)
            }
            control => {
                let own = kernel_name(control);
                let Err(error) = settings::offers(&own) else {
                    return Ok(Self {
                        name: own,
                        file: None,
                        held: None,
                    });
                };
                let Some(shipped) = shipped::find(name) else {
                    return Err(refused(
                        format!(
                            "this machine's kernel does not let a socket have the congestion control `{own}`: {}",
                            system::words(&error)
                        ),
                        not_offered(&own),
                    ));
                };
                let source = Source::shipped(name)
                    .map_err(|error| refused(error.to_string(), String::new()))?;
                (source, Some(shipped.kernel_name.to_owned()))
            }
        };
        let file = Some(source.name.clone());
        match temporary::load(&source, reading.interrupt) {
            Ok(held) => settings::offers(held.name())
                .map(|()| Self {
                    name: held.name().to_owned(),
                    file,
                    held: Some(Arc::clone(&held)),
                })
                .map_err(|error| {
                    refused(
                        format!(
                            "`{}` is loaded, and a socket may not have it: {}",
                            source.name,
                            system::words(&error)
                        ),
                        format!(
                            "expected `.flags = TCP_CONG_NON_RESTRICTED`; or {}",
                            advice(NET_ADMIN)
                        ),
                    )
                }),
            Err(BpfError::System(why)) => match there {
                Some(there) if settings::offers(&there).is_ok() => Ok(Self {
                    name: there,
                    file,
                    held: None,
                }),
                _ => {
                    let (message, help) = why
                        .split_once("; ")
                        .unwrap_or((&why, "expected a control that the kernel has"));
                    Err(refused(
                        format!(
                            "this machine's kernel has no congestion control `{name}`, and cannot be given `{}`: {message}",
                            source.name
                        ),
                        help.to_owned(),
                    ))
                }
            },
            Err(error) => Err(refused(
                error.to_string(),
                "mend the file, or choose another control".to_owned(),
            )),
        }
    }
}
