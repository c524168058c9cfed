//! Records of segments, with the connections of the report.

use std::io::Cursor;

use anabranch_diagnose::{
    Bounds, Report, list,
    listing::{Listing, RECORD},
};

use crate::make::{ACK, MSS, Made, SYN, Script, pcap};

fn listed(packets: &[Made], most: usize) -> (Report, Listing) {
    let file = pcap(packets, 96);
    let name = "made.pcap";
    list(Cursor::new(&file), name, Bounds::default(), most, || false).expect("a capture")
}

fn number<const N: usize>(record: &[u8], at: usize) -> u64 {
    let mut octets = [0; 8];
    octets[..N].copy_from_slice(&record[at..at + N]);
    u64::from_le_bytes(octets)
}

fn script() -> Script {
    let mut script = Script::with_stamps();
    script.data(30, 0, MSS).data(31, 2 * MSS, MSS);
    script.ack(51, MSS, &[(2 * MSS, 3 * MSS)]);
    script
}

#[test]
fn a_record_has_the_fields_of_its_segment() {
    let script = script();
    let (report, listing) = listed(&script.packets, usize::MAX);
    let records: Vec<_> = listing.records.chunks(RECORD).collect();
    assert_eq!(records.len(), script.packets.len());
    for (place, (record, made)) in records.iter().zip(&script.packets).enumerate() {
        assert_eq!(number::<8>(record, 0), made.micros * 1000);
        assert_eq!(number::<4>(record, 8), report.connections[0].id);
        assert_eq!(number::<4>(record, 12), place as u64 + 1);
        assert_eq!(number::<4>(record, 16), u64::from(made.seq));
        let ack = if made.flags & ACK == 0 { 0 } else { made.ack };
        assert_eq!(number::<4>(record, 20), u64::from(ack));
        assert_eq!(number::<4>(record, 24), u64::from(made.payload));
        assert_eq!(number::<2>(record, 44), u64::from(made.flags));
        assert_eq!(number::<2>(record, 46), u64::from(made.window));
        assert_eq!(number::<2>(record, 50), u64::from(made.id));
        assert_eq!(record[52], made.hops);
        assert_eq!(record[54] & 1 == 1, made.from == 0);
        let is_syn = made.flags & SYN != 0;
        assert_eq!(number::<2>(record, 48), if is_syn { 1000 } else { 0 });
        assert_eq!(record[54] & (1 << 3) != 0, is_syn, "SACK permitted");
        assert_eq!(record[54] & (1 << 5) != 0, is_syn, "an MSS");
    }
    let data = records[3];
    assert_eq!((number::<4>(data, 28), data[54] & (1 << 2)), (7030, 4));
    let sack = records.last().expect("a record");
    assert_eq!(sack[55], 1);
    let length = number::<4>(sack, 40).wrapping_sub(number::<4>(sack, 36));
    assert_eq!(length & 0xffff_ffff, u64::from(MSS));
}

#[test]
fn segments_beyond_the_bound_are_counted() {
    let script = script();
    let (report, listing) = listed(&script.packets, 2);
    assert_eq!(listing.records.len(), 2 * RECORD);
    assert_eq!(listing.left_out, script.packets.len() as u64 - 2);
    assert_eq!(report.connections[0].packets, script.packets.len() as u64);
}

#[test]
fn sorted_captures_list_each_segment_once() {
    let mut first = script();
    let mut second = first.clone();
    for packet in &mut second.packets {
        packet.ports.0 = 6000;
        packet.micros += 10_000_000;
    }
    second.packets.append(&mut first.packets);
    let (report, listing) = listed(&second.packets, usize::MAX);
    let times: Vec<_> = listing
        .records
        .chunks(RECORD)
        .map(|record| number::<8>(record, 0))
        .collect();
    assert_eq!(times.len(), second.packets.len());
    assert!(times.is_sorted());
    assert_eq!(report.connections.len(), 2);
}
