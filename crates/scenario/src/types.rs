//! The types of components that the scenario language uses, and their seams.

pub use anabranch_congestion::{self as cc};
pub use anabranch_fec::{self as fec};
pub use anabranch_path::{
    group::{control, lacp},
    impair,
    link::{
        propagation::Delays,
        service::{Capacity, Medium, cable, cellular, wifi},
    },
    multipath::{restore, split},
    queue,
};
pub use anabranch_tcp::{self as tcp};

pub use crate::workload;

use super::kind::Seam;

impl Seam for cc::Config {
    const NAME: &'static str = "cc";
    const MARK: &'static str = "kind:cc";
    const ALIASES: &'static [(&'static str, &'static str)] = &[("new-reno", "reno")];
    fn custom(&self) -> Option<(&str, &serde_json::Value)> {
        match self {
            Self::Custom(custom) => Some((&custom.name, &custom.params)),
            _ => None,
        }
    }
}

impl Seam for queue::Config {
    const NAME: &'static str = "queue";
    const MARK: &'static str = "kind:queue";
    fn custom(&self) -> Option<(&str, &serde_json::Value)> {
        if let Self::Custom(custom) = self {
            Some((&custom.name, &custom.params))
        } else {
            None
        }
    }
}

impl Seam for impair::Config {
    const NAME: &'static str = "impair";
    const MARK: &'static str = "kind:impair";
    fn custom(&self) -> Option<(&str, &serde_json::Value)> {
        if let Self::Custom(custom) = self {
            Some((&custom.name, &custom.params))
        } else {
            None
        }
    }
}

impl Seam for workload::Config {
    const NAME: &'static str = "workload";
    const MARK: &'static str = "kind:workload";
    fn custom(&self) -> Option<(&str, &serde_json::Value)> {
        None
    }
}

impl Seam for split::Config {
    const NAME: &'static str = "split";
    const MARK: &'static str = "kind:split";
    fn custom(&self) -> Option<(&str, &serde_json::Value)> {
        if let Self::Custom(custom) = self {
            Some((&custom.name, &custom.params))
        } else {
            None
        }
    }
}

impl Seam for control::Config {
    const NAME: &'static str = "control";
    const MARK: &'static str = "kind:control";
    fn custom(&self) -> Option<(&str, &serde_json::Value)> {
        if let Self::Custom(custom) = self {
            Some((&custom.name, &custom.params))
        } else {
            None
        }
    }
}

impl Seam for restore::Config {
    const NAME: &'static str = "restore";
    const MARK: &'static str = "kind:restore";
    fn custom(&self) -> Option<(&str, &serde_json::Value)> {
        if let Self::Custom(custom) = self {
            Some((&custom.name, &custom.params))
        } else {
            None
        }
    }
}

impl Seam for fec::Config {
    const NAME: &'static str = "fec";
    const MARK: &'static str = "kind:fec";
    fn custom(&self) -> Option<(&str, &serde_json::Value)> {
        None
    }
}
