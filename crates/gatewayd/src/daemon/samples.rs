//! Samples for the history.

use std::{
    fs::{self, DirBuilder},
    os::unix::fs::DirBuilderExt,
    path::Path,
};

use anabranch_core::{system::words, units::Duration};

use super::Gateway;
use crate::{
    config::Config,
    confine::{Account, confine_keeper},
    history::{self, Keeper, MOST_PEERS, Place, Sample, Subject, Value},
    log::Log,
    status::PeerReport,
};

const INTERVAL: Duration = Duration::from_secs(history::SAMPLE);

/// Starts the history of a configuration's daemon.
///
/// # Errors
/// If the system refuses the thread, or the state directory cannot be made.
pub(super) fn keeper(
    config: &Config,
    file: &Path,
    account: Option<&Account>,
    log: &Log,
) -> Result<Keeper, String> {
    let folder = config.state_folder(file);
    if let Some(folder) = &folder {
        make(folder, account)?;
    }
    let place = folder.clone().map(|folder| Place {
        folder,
        interface: config.gateway.interface.0.clone(),
    });
    let account = account.copied();
    let prepare = move || confine_keeper(account.as_ref(), folder.as_deref());
    Keeper::start(place, log.another(), prepare)
}

/// Makes the state directory if there is none, for the user of the daemon alone.
pub(super) fn make(folder: &Path, account: Option<&Account>) -> Result<(), String> {
    let failed = |error: std::io::Error| {
        format!(
            "{}: {}; expected a folder, or one that can be made, for `state_directory`",
            folder.display(),
            words(&error)
        )
    };
    if fs::metadata(folder).is_ok_and(|there| there.is_dir()) {
        return Ok(());
    }
    let mut builder = DirBuilder::new();
    builder
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(failed)?;
    match account {
        Some(account) => account.own(folder).map_err(failed),
        None => Ok(()),
    }
}

impl Gateway {
    /// Passes a sample on if one is due.
    pub(super) fn follow_samples(&mut self) {
        let now = self.now();
        if now < self.sampled {
            return;
        }
        self.sampled = self.sampled + INTERVAL;
        // After a pause of the process there is one sample, not one for each missed time.
        if self.sampled <= now {
            self.sampled = now + INTERVAL;
        }
        let mut sample = Sample::new();
        for peer in self.peers.iter().take(MOST_PEERS) {
            add(&mut sample, &peer.name, &self.report_of(peer));
        }
        self.keeper.sample(sample);
    }
}

/// Adds the series of a peer.
fn add(sample: &mut Sample, name: &str, report: &PeerReport) {
    let subject = |path: Option<&String>, class: Option<&String>| Subject {
        peer: name.to_owned(),
        path: path.cloned(),
        class: class.cloned(),
    };
    let flag = |is_so: bool| Value::Now(f64::from(u8::from(is_so)));
    let totals = [
        report.sent_packets,
        report.received_packets,
        report.repaired_packets,
        report.correction_packets,
        report.rebuilt_packets,
        report.reordered_packets,
        report.dropped.queue + report.dropped.unsendable,
    ];
    let up = flag(report.state == "up");
    let values = std::iter::once(up).chain(totals.map(Value::Total));
    sample.push((subject(None, None), values.collect()));
    for (path, report) in &report.paths {
        let rtt = Value::Now(report.rtt_ms.unwrap_or(f64::NAN));
        let values = vec![
            flag(report.delivers()),
            Value::Total(report.sent_bytes),
            Value::Total(report.received_bytes),
            Value::Now(report.rate_mbit_s),
            Value::Now(report.loss),
            Value::Now(report.loss),
            rtt,
            rtt,
        ];
        sample.push((subject(Some(path), None), values));
    }
    for (class, report) in &report.classes {
        let values = vec![
            Value::Total(report.sent_packets),
            Value::Total(report.sent_bytes),
            Value::Total(report.dropped_packets),
            Value::Now(report.queued_packets as f64),
        ];
        sample.push((subject(None, Some(class)), values));
    }
}
