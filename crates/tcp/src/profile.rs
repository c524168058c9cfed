//! Stack profiles: named sets of switches, one to a file. A released profile never changes.

mod bsd44_lite;
mod linux_2_6_35;
mod linux_6_12;
mod linux_6_18;
mod ns2_sack1;
mod ns3_2018;
mod rfc;
mod windows_7;

use anabranch_core::{registry::Meta, units::Duration};

use super::{
    policy::DelayedAckTable,
    settings::{DelayedAck, Settings},
};

/// A profile.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Description for registry, docs and command line.
    pub meta: Meta,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// The congestion control it uses unless a scenario names another.
    pub cc: &'static str,
    /// Reasons for the values of switches.
    pub reasons: &'static [(&'static str, &'static str)],
    /// Behaviour of the real stack that this version does not have.
    pub not_modelled: &'static [&'static str],
    /// The switches.
    pub settings: Settings,
}

impl Profile {
    /// Returns the profile with this name or alias.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        profiles()
            .into_iter()
            .find(|profile| profile.meta.name == name || profile.aliases.contains(&name))
    }
}

/// Every profile, in registry order.
#[must_use]
pub fn profiles() -> Vec<Profile> {
    vec![
        linux_6_18::linux_6_18(),
        linux_6_12::linux_6_12(),
        rfc::rfc(),
        ns3_2018::ns3_2018(),
        ns2_sack1::ns2_sack1(),
        linux_2_6_35::linux_2_6_35(),
        windows_7::windows_7(),
        bsd44_lite::bsd44_lite(),
    ]
}

/// Returns a setting with an acknowledgment for every `segments` segments, or after a fixed time.
const fn delayed_ack(segments: u32, timeout_ms: u64) -> DelayedAck {
    DelayedAck::On(DelayedAckTable {
        segments,
        timeout: Duration::from_millis(timeout_ms),
        max_timeout: None,
        quick_segments: 0,
        quick_again: false,
        push: false,
        ticking: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Overrides;

    #[test]
    fn every_profile_is_valid_without_overrides() {
        for profile in profiles() {
            let settings = profile.settings.with(&Overrides::default());
            assert_eq!(
                settings.as_ref(),
                Ok(&profile.settings),
                "{}",
                profile.meta.name
            );
            assert!(!profile.meta.sources.is_empty());
        }
        assert_eq!(
            Profile::named("linux").map(|p| p.meta.name),
            Some("linux-6.18")
        );
        assert!(Profile::named("linux-7").is_none());
    }
}
