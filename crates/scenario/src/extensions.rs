//! Components of other crates, by name.

use std::{any::Any, collections::BTreeMap, fmt, path::Path, sync::Arc};

use anabranch_congestion::{self as cc};
use anabranch_path::{group::control, impair, queue};
use serde_json::Value;

use super::{
    de::Names,
    kind::{Kind, Seam},
    unavailable,
};

type Factory<T> = Arc<dyn Fn(&Value) -> Result<T, String> + Send + Sync>;

/// Congestion controls, queues, impairments, controllers, splitters, restorers and hosts from
/// outside the workspace. Scenario files accept an added name wherever they accept a component of
/// that kind.
///
/// ```
/// use std::sync::Arc;
/// use anabranch_congestion as cc;
/// use anabranch_scenario::Extensions;
///
/// let extensions = Extensions::default().congestion_control("my-reno", |_params| {
///     let make: cc::Factory = Arc::new(|init| {
///         Box::new(cc::Config::Reno(cc::reno::Params::default()).build(init))
///     });
///     Ok(make)
/// });
/// ```
#[derive(Clone, Default)]
pub struct Extensions {
    /// By seam, then by name; each is a [`Factory`] of the seam's type.
    factories: BTreeMap<&'static str, BTreeMap<String, Arc<dyn Any + Send + Sync>>>,
    /// Reads the files that scenarios name.
    files: Option<Files>,
    /// Whether to stop reading.
    stop: Option<Stop>,
    live: bool,
    untrusted: bool,
}

type Files = Arc<dyn Fn(&Path, u64) -> Result<Vec<u8>, String> + Send + Sync>;
type Stop = Arc<dyn Fn() -> bool + Send + Sync>;

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(
                self.factories
                    .iter()
                    .map(|(seam, by_name)| (seam, by_name.keys())),
            )
            .finish()
    }
}

impl Extensions {
    /// Adds a component of any seam. `factory` receives the keys next to `kind` as an object. Its
    /// error is reported at the place of the component, and the text after the first `"; "` of the
    /// message is shown as help.
    #[must_use]
    pub fn with<T: Seam>(
        mut self,
        name: &str,
        factory: impl Fn(&Value) -> Result<T, String> + Send + Sync + 'static,
    ) -> Self {
        let factory: Factory<T> = Arc::new(factory);
        self.factories
            .entry(T::NAME)
            .or_default()
            .insert(name.to_owned(), Arc::new(factory));
        self
    }

    /// Adds a congestion control: `cc = "NAME"` or `cc = { kind = "NAME", … }`.
    #[must_use]
    pub fn congestion_control(
        self,
        name: &str,
        factory: impl Fn(&Value) -> Result<cc::Factory, String> + Send + Sync + 'static,
    ) -> Self {
        let own_name = name.to_owned();
        self.with(name, move |params| {
            Ok(cc::Config::Custom(cc::Custom {
                name: own_name.clone(),
                params: params.clone(),
                build: factory(params)?,
            }))
        })
    }

    /// Adds a queue discipline: `queue = "NAME"` or `queue = { kind = "NAME", … }`.
    #[must_use]
    pub fn queue(
        self,
        name: &str,
        factory: impl Fn(&Value) -> Result<queue::Factory, String> + Send + Sync + 'static,
    ) -> Self {
        let own_name = name.to_owned();
        self.with(name, move |params| {
            Ok(queue::Config::Custom(queue::Custom {
                name: own_name.clone(),
                params: params.clone(),
                build: factory(params)?,
            }))
        })
    }

    /// Adds a group's controller: `control = "NAME"` or `control = { kind = "NAME", … }`.
    #[must_use]
    pub fn controller(
        self,
        name: &str,
        factory: impl Fn(&Value) -> Result<control::Factory, String> + Send + Sync + 'static,
    ) -> Self {
        let own_name = name.to_owned();
        self.with(name, move |params| {
            Ok(control::Config::Custom(control::Custom {
                name: own_name.clone(),
                params: params.clone(),
                build: factory(params)?,
            }))
        })
    }

    /// Adds an impairment: `{ kind = "NAME", … }` in a list of `impair`.
    #[must_use]
    pub fn impairment(
        self,
        name: &str,
        factory: impl Fn(&Value) -> Result<impair::Factory, String> + Send + Sync + 'static,
    ) -> Self {
        let own_name = name.to_owned();
        self.with(name, move |params| {
            Ok(impair::Config::Custom(impair::Custom {
                name: own_name.clone(),
                params: params.clone(),
                build: factory(params)?,
            }))
        })
    }

    /// Lets scenarios name files. Resolving calls `read` for each file with its path, which is
    /// joined to the folder of the scenario's file, and the maximum number of bytes for its use. An
    /// error of `read` is shown as the reason. The engine itself does no I/O. Without `read`,
    /// scenarios that name files are refused.
    #[must_use]
    pub fn files(
        mut self,
        read: impl Fn(&Path, u64) -> Result<Vec<u8>, String> + Send + Sync + 'static,
    ) -> Self {
        self.files = Some(Arc::new(read));
        self
    }

    /// Cancels the decoding of a large file: `stop` is polled every few milliseconds.
    #[must_use]
    pub fn stop(mut self, stop: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.stop = Some(Arc::new(stop));
        self
    }
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop())
    }

    /// Accepts keys that only the live engine implements: `attach`, `exec`, IPv6. The simulator
    /// runs no such scenario.
    #[must_use]
    pub fn live(mut self, on: bool) -> Self {
        self.live = on;
        self
    }
    pub(super) const fn is_live(&self) -> bool {
        self.live
    }

    /// Refuses keys that require a trusted author: programs to run (`exec`) and interfaces of this
    /// machine (`attach`). Access to files is decided by [`Self::files`].
    #[must_use]
    pub fn untrusted(mut self, on: bool) -> Self {
        self.untrusted = on;
        self
    }
    pub(super) const fn is_untrusted(&self) -> bool {
        self.untrusted
    }

    /// Returns the content of a file of at most `most` bytes.
    pub(super) fn read(&self, path: &Path, most: u64) -> Result<Vec<u8>, String> {
        match &self.files {
            Some(read) => read(path, most),
            None => Err("this program reads no files for scenarios".to_owned()),
        }
    }

    /// Makes the component.
    pub(super) fn build<T: Seam>(&self, kind: &Kind<T>) -> Result<T, String> {
        match kind {
            Kind::BuiltIn(value) => Ok(value.clone()),
            Kind::Extension { name, params } => {
                let factory = self
                    .factories
                    .get(T::NAME)
                    .and_then(|by_name| by_name.get(name))
                    .and_then(|any| any.downcast_ref::<Factory<T>>())
                    .ok_or_else(|| format!("no {} `{name}` was added", T::NAME))?;
                factory(params)
            }
        }
    }
}

impl Names for Extensions {
    fn added(&self, seam: &str) -> Vec<&str> {
        self.factories
            .get(seam)
            .map(|by_name| by_name.keys().map(String::as_str).collect())
            .unwrap_or_default()
    }
    fn later(&self, seam: &str) -> &[&str] {
        unavailable::names(seam)
    }
    fn noun(&self, seam: &str) -> &'static str {
        match seam {
            "cc" => "congestion control",
            "queue" => "queue",
            "impair" => "impairment",
            "workload" => "workload",
            "fec" => "error correction",
            "service" => "service",
            "split" => "splitter",
            "restore" => "restorer",
            _ => "name",
        }
    }
}
