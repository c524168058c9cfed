//! Sends frames over an interface (packet(7)).
//!
//! The only module with `unsafe`: no library in use constructs the address of an interface safely.
#![allow(
    unsafe_code,
    reason = "a link-layer address can only be made from its C structure"
)]

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
};

use nix::{
    libc,
    sys::socket::{
        AddressFamily, LinkAddr, MsgFlags, SockFlag, SockType, SockaddrLike, sendto, socket,
    },
};

/// A socket that sends and never receives.
pub struct Sender(OwnedFd);

impl Sender {
    /// Opens the socket.
    ///
    /// # Errors
    /// If the system refuses, for example without `CAP_NET_RAW`.
    pub fn open() -> io::Result<Self> {
        let kind = (SockType::Raw, SockFlag::SOCK_CLOEXEC);
        Ok(Self(socket(AddressFamily::Packet, kind.0, kind.1, None)?))
    }

    /// Sends an Ethernet frame, without the checksum.
    ///
    /// # Errors
    /// If the system refuses, for example because the interface is down.
    pub fn send(&self, interface: u32, frame: &[u8]) -> io::Result<()> {
        let to = address(interface, frame)?;
        sendto(self.0.as_raw_fd(), frame, &to, MsgFlags::MSG_DONTWAIT)?;
        Ok(())
    }
}

/// The address of a frame at an interface.
fn address(interface: u32, frame: &[u8]) -> io::Result<LinkAddr> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let Some(destination) = frame.first_chunk::<6>() else {
        return Err(invalid());
    };
    let mut sll_addr = [0; 8];
    sll_addr[..6].copy_from_slice(destination);
    let raw = libc::sockaddr_ll {
        sll_family: u16::try_from(libc::AF_PACKET).map_err(io::Error::other)?,
        sll_protocol: frame
            .get(12..14)
            .map_or(0, |kind| u16::from_ne_bytes([kind[0], kind[1]])),
        sll_ifindex: i32::try_from(interface).map_err(io::Error::other)?,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 6,
        sll_addr,
    };
    let length = libc::socklen_t::try_from(size_of::<libc::sockaddr_ll>());
    // SAFETY: the pointer is to a complete `sockaddr_ll` of this length, which outlives the call.
    let made = unsafe { LinkAddr::from_raw((&raw const raw).cast(), length.ok()) };
    made.ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn a_frame_goes_to_its_destination() {
        let mut frame = [0; 60];
        frame[..6].copy_from_slice(&[1, 0x80, 0xc2, 0, 0, 2]);
        let made = address(7, &frame).expect("the frame has an address");
        assert_eq!(made.ifindex(), 7);
        assert_eq!(made.addr(), Some([1, 0x80, 0xc2, 0, 0, 2]));
        assert!(address(7, &frame[..5]).is_err());
    }
}
