//! UDP datagrams (RFC 768).

use super::{Carried, EncodeError, IpHeader, Ports, Prefix, Protocol, encode_ip};

const HEADER: usize = 8;

/// Appends a UDP packet, or its first octets. The checksums are correct for the whole packet, whose
/// length is returned.
///
/// # Errors
/// If the payload is too long.
///
/// # Panics
/// Never: IP's length field limits the packet to far less than 4 GiB.
pub fn encode_datagram(
    ip: &IpHeader,
    ports: Ports,
    payload: Carried<'_>,
    to: Prefix<'_>,
) -> Result<u32, EncodeError> {
    let Prefix { octets: out, most } = to;
    let start = out.len();
    let len = HEADER + payload.len();
    encode_ip(ip, Protocol::Udp, len, out)?;
    let field = u16::try_from(len).map_err(|_| EncodeError::Length(len))?;
    let at = out.len();
    out.extend_from_slice(&ports.source.to_be_bytes());
    out.extend_from_slice(&ports.destination.to_be_bytes());
    out.extend_from_slice(&field.to_be_bytes());
    out.extend_from_slice(&[0, 0]);
    let mut sum = ip.pseudo_header(Protocol::Udp, len);
    sum.add(&out[at..]);
    payload.sum_into(&mut sum);
    // Zero means that there is none (RFC 768).
    let checksum = match sum.finish() {
        0 => u16::MAX,
        other => other,
    };
    out[at + 6..at + 8].copy_from_slice(&checksum.to_be_bytes());
    let headers = out.len() - start;
    payload.append_to(out, most.saturating_sub(headers));
    out.truncate(start.saturating_add(most));
    Ok(u32::try_from(headers + payload.len()).expect("IP's length field holds it"))
}
