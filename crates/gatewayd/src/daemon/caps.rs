//! Data caps and rate limits of paths: counting, messages, roles, and the file of the counts.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anabranch_core::units::Duration;
use anabranch_gateway::{policy::Role, wire::PathId};

use super::{Gateway, samples};
use crate::{
    calendar::Day,
    config::{AtCap, Config},
    confine::{Account, confine_keeper},
    endpoints,
    log::Log,
    store::Store,
    usage::{Event, Usage},
};

/// The interval at which counts are compared with caps.
const INTERVAL: Duration = Duration::from_secs(1);

/// The counts and their file, as far as the configuration has a folder for it.
///
/// # Errors
/// If a path has a cap and there is no folder, or the file cannot be read.
pub(super) fn usage(
    config: &Config,
    file: &Path,
    account: Option<&Account>,
    log: &mut Log,
) -> Result<(Usage, Option<Store>), String> {
    let Some(folder) = config.state_folder(file) else {
        config.counts_caps(file)?;
        return Ok((Usage::default(), None));
    };
    samples::make(&folder, account)?;
    let file = folder.join(format!("usage-{}.json", config.gateway.interface.0));
    let account = account.copied();
    let prepare = move || confine_keeper(account.as_ref(), Some(&folder));
    let (store, content) = Store::open(file.clone(), prepare)?;
    let usage = match content.as_deref().map(Usage::load) {
        None => Usage::default(),
        Some(Ok(usage)) => usage,
        Some(Err(why)) => {
            let aside = beside(&file);
            // If it cannot be kept, it is replaced.
            let _ = fs::rename(&file, &aside);
            log.say(&format!(
                "usage: {}: {why}; the counts of data caps begin again at 0, and the file is kept as {}",
                file.display(),
                aside.display()
            ));
            Usage::default()
        }
    };
    Ok((usage, Some(store)))
}

fn beside(file: &Path) -> PathBuf {
    let mut aside = file.as_os_str().to_owned();
    aside.push(".unreadable");
    aside.into()
}

impl Gateway {
    /// Whether a changed configuration has a file for its caps.
    pub(super) fn may_have_caps(&self, config: &Config) -> Result<(), String> {
        match self.store {
            Some(_) => Ok(()),
            None => config.uncounted.clone().map_or(Ok(()), Err),
        }
    }

    /// Applies the caps and limits of the configuration, after a start or a change of it.
    pub(super) fn set_caps(&mut self) {
        self.usage.configure(&self.config, &self.ways, Day::today());
        self.capped = self.now();
        let paths: Vec<(PathId, String)> = self
            .ways
            .paths()
            .map(|(path, name)| (path, name.to_owned()))
            .collect();
        for (path, name) in paths {
            self.set_cap(path, &name);
            if !self.ways.may_send(path.number().into()) {
                self.lose_path(path);
            }
        }
    }

    /// Reports to each peer's tunnel that a path cannot send. A tunnel that was just made assumes
    /// that all its paths can.
    fn lose_path(&mut self, path: PathId) {
        let now = self.now();
        for peer in self.peers.all() {
            peer.tunnel.on_carrier_loss(path, now);
        }
    }

    /// Applies the cap and the limit of a path.
    fn set_cap(&mut self, path: PathId, name: &str) {
        let Some((_, way)) = self.config.path.0.iter().find(|(other, _)| other == name) else {
            return;
        };
        let reached = self.usage.reached(name);
        let role = endpoints::role(way.policy);
        let role = reached.map_or(role, |_| Role::Metered.max(role));
        let limit = way.max_rate.map(|limit| limit.0.bits_per_s() as f64 / 8.0);
        let is_off = reached == Some(AtCap::Off);
        let changes = self.ways.close(path.number().into(), is_off);
        let now = self.now();
        for peer in self.peers.all() {
            peer.tunnel.set_role(path, role, now);
            peer.tunnel.limit_rate(path, limit);
            match (changes, is_off) {
                (true, true) => peer.tunnel.on_carrier_loss(path, now),
                (true, false) => peer.tunnel.validate_path(path, now),
                (false, _) => {}
            }
        }
    }

    /// Compares the counts with the caps, and writes them, if it is time.
    pub(super) fn follow_caps(&mut self) {
        let now = self.now();
        if self.usage.is_empty() || now < self.capped {
            return;
        }
        self.capped = now + INTERVAL;
        for event in self.usage.follow(Day::today()) {
            match event {
                Event::Level(message) => self.log.say(&message),
                Event::Cap { path, message } => {
                    self.log.say(&message);
                    let number = self.ways.paths().find(|(_, name)| *name == path);
                    if let Some((number, _)) = number {
                        self.set_cap(number, &path);
                    }
                }
            }
        }
        let Some(store) = &self.store else { return };
        if let Some(content) = self.usage.unsaved(now) {
            store.write(content);
        }
        if let Some(failure) = store.failure()
            && self.failures.last() != Some(&failure)
        {
            self.log.say(&format!(
                "usage: {failure}; the counts of data caps are lost with the next restart"
            ));
            self.failures.push(failure);
        }
    }

    /// Writes the counts for the last time.
    pub(super) fn save_caps(&mut self) {
        let now = self.now();
        if let Some(store) = self.store.take()
            && !self.usage.is_empty()
        {
            store.write(self.usage.save(now));
        }
    }
}
