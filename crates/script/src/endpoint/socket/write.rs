//! Writing as Linux does.

use anabranch_core::body::Octets;
use anabranch_tcp::Endpoint;

/// Octets of the largest chunk that Linux takes memory for at a time.
const LARGEST_CHUNK: u64 = 65_535;

/// Whether a third of the send buffer is free, and little of the data is unsent (tcp(7),
/// `TCP_NOTSENT_LOWAT`).
pub(super) fn is_writable(end: &Endpoint<Octets>, lowat: u64) -> bool {
    let used = end.unacknowledged();
    end.send_buffer().saturating_sub(used) >= used / 2
        && (lowat == u64::MAX || 2 * end.unsent() < lowat)
}

/// Writes as Linux does: until the send buffer is full, or `lowat` octets are unsent. Both are checked
/// before memory is taken for a chunk, half of the largest window, which is then filled. Data is sent
/// while it is written. Measured with packetdrill's scripts of partial writes.
pub(super) fn write_in_chunks(
    end: &mut Endpoint<Octets>,
    octets: &[u8],
    lowat: u64,
    flush: &mut impl FnMut(&mut Endpoint<Octets>),
) -> u64 {
    let smss = u64::from(end.smss()).max(1);
    let most = end.largest_window() / 2;
    let goal = (most.min(LARGEST_CHUNK) / smss).max(1) * smss;
    let mut taken = 0_usize;
    let mut chunk = 0;
    while taken < octets.len() {
        let unsent = end.unsent();
        if chunk == 0 {
            chunk = goal - unsent.min(goal);
        }
        if chunk == 0 {
            if unsent >= lowat || end.unacknowledged() >= end.send_buffer() {
                break;
            }
            chunk = goal;
        }
        let room = usize::try_from(chunk).unwrap_or(usize::MAX);
        let piece = &octets[taken..octets.len().min(taken.saturating_add(room))];
        end.write_all(Octets(piece.to_vec()));
        taken += piece.len();
        flush(end);
        chunk = 0;
    }
    u64::try_from(taken).expect("a few octets")
}
