//! What stands out in a connection, in a sentence. One file per kind; [`all`] asks each.

mod capture;
mod large;
mod loss;
mod opening;
mod reordering;
mod reset;
mod spurious;
mod time;

use crate::report::{Connection, Finding, OneWay};

/// Frames that are named, at most.
const MOST_PACKETS: usize = 8;

/// A direction and its two ends.
struct Way<'a> {
    data: &'a OneWay,
    sender: &'a str,
    receiver: &'a str,
    duration_s: f64,
    /// Most of the connection's data goes this way.
    is_main: bool,
}

impl Way<'_> {
    /// A share of the segments with data.
    fn of_segments(&self, count: u64) -> f64 {
        count as f64 / self.data.data_packets.max(1) as f64
    }

    /// The frames of the retransmissions that are meant.
    fn frames(&self, meant: impl Fn(&crate::report::Retransmission) -> bool) -> Vec<u64> {
        let all = self.data.retransmissions.iter();
        all.filter(|one| meant(one))
            .map(|one| one.packet)
            .take(MOST_PACKETS)
            .collect()
    }
}

/// What stands out in a connection, the largest share first.
pub(crate) fn all(connection: &Connection) -> Vec<Finding> {
    let [one, other] = connection.directions.all().map(|way| way.bytes);
    let (a, b) = (connection.a.as_str(), connection.b.as_str());
    let ways = connection
        .directions
        .all()
        .into_iter()
        .zip([(a, b), (b, a)]);
    let mut findings: Vec<_> = opening::find(connection).into_iter().collect();
    findings.extend(reset::find(connection));
    for (data, (sender, receiver)) in ways {
        let way = Way {
            data,
            sender,
            receiver,
            duration_s: connection.duration_s,
            is_main: data.bytes >= one.max(other),
        };
        if data.data_packets > 0 {
            findings.extend(time::find(&way));
            findings.extend(loss::find(&way));
            findings.extend(spurious::find(&way));
            findings.extend(reordering::find(&way));
            findings.extend(large::find(&way));
            findings.extend(capture::find(&way));
        }
    }
    findings.sort_by(|one, other| other.share.total_cmp(&one.share));
    findings
}

/// A share in per cent, with a digit where it is small.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 10.0 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}
