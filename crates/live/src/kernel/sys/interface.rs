//! Network interfaces: TUN devices (Linux `Documentation/networking/tuntap.rst`), and configuration
//! of interfaces (netdevice(7)).

use std::{
    fs::{File, OpenOptions},
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    os::fd::{AsFd, AsRawFd, OwnedFd},
};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use schemars::JsonSchema;
use serde::Serialize;

/// Ethtool commands (`linux/ethtool.h`): scatter-gather, and segmentation in software.
const ETHTOOL_SSG: u32 = 0x19;
const ETHTOOL_SGSO: u32 = 0x24;
/// Queries of the same file.
const ETHTOOL_GRXCSUM: u32 = 0x14;
const ETHTOOL_GTXCSUM: u32 = 0x16;
const ETHTOOL_GSG: u32 = 0x18;
const ETHTOOL_GTSO: u32 = 0x1e;
const ETHTOOL_GGSO: u32 = 0x23;
const ETHTOOL_GFLAGS: u32 = 0x25;
const ETHTOOL_GGRO: u32 = 0x2b;
/// `ETH_FLAG_LRO` in the answer to `ETHTOOL_GFLAGS`.
const FLAG_LRO: u32 = 1 << 15;

/// The type of an ioctl number, which differs between C libraries.
type Request = libc::Ioctl;

/// `struct in6_ifreq` (`linux/ipv6.h`).
#[repr(C)]
struct In6Ifreq {
    address: [u8; 16],
    prefix: u32,
    index: libc::c_int,
}

/// `struct ethtool_value` (`linux/ethtool.h`).
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// Offloads of an interface to its driver or hardware, by the names of ethtool(8). Null if the
/// interface does not report one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "LiveOffloads", extend("engine" = "live"))]
pub struct Offloads {
    /// Verification of received checksums.
    pub rx_checksum: Option<bool>,
    /// Computation of transmitted checksums.
    pub tx_checksum: Option<bool>,
    /// Packets in several fragments of memory.
    pub scatter_gather: Option<bool>,
    /// TCP segmentation by the interface.
    pub tso: Option<bool>,
    /// Segmentation by the kernel, before the driver.
    pub gso: Option<bool>,
    /// Merging of received segments by the kernel.
    pub gro: Option<bool>,
    /// Merging of received segments by the hardware.
    pub lro: Option<bool>,
}

/// Opens a TUN device of the calling thread's namespace: IP packets without a packet information
/// header. The device vanishes with the descriptor.
pub fn open_tun(name: &str) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/net/tun")?;
    let mut request = named(name);
    let flags = libc::IFF_TUN | libc::IFF_NO_PI;
    request.ifr_ifru.ifru_flags = libc::c_short::try_from(flags).expect("two flags of 16 bits");
    // SAFETY: TUNSETIFF reads and writes a `struct ifreq`, which `request` is.
    unsafe { ioctl(&file, libc::TUNSETIFF as Request, &mut request) }?;
    rustix::io::ioctl_fionbio(&file, true)?;
    Ok(file)
}

/// Identity of an interface, which may have several names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    pub index: i32,
    pub is_loopback: bool,
}

/// An interface of the calling thread's namespace, for configuration.
pub struct Interface {
    name: String,
    v4: OwnedFd,
}

impl Interface {
    pub fn new(name: &str) -> io::Result<Self> {
        Ok(Self {
            name: name.to_owned(),
            v4: control_socket(AddressFamily::INET)?,
        })
    }

    fn tell(&self, what: Request, set: impl FnOnce(&mut libc::ifreq)) -> io::Result<libc::ifreq> {
        let mut request = named(&self.name);
        set(&mut request);
        // SAFETY: the requests of this module read and write a `struct ifreq`.
        unsafe { ioctl(&self.v4, what, &mut request) }?;
        Ok(request)
    }

    /// Sets an IPv4 address and its prefix length.
    pub fn address_v4(&self, address: Ipv4Addr, prefix: u32) -> io::Result<()> {
        let mask = Ipv4Addr::from_bits(u32::MAX << (32 - prefix));
        for (what, value) in [(libc::SIOCSIFADDR, address), (libc::SIOCSIFNETMASK, mask)] {
            self.tell(what as Request, |request| {
                request.ifr_ifru.ifru_addr = socket_address(value);
            })?;
        }
        Ok(())
    }

    /// Adds an IPv6 address with its prefix length.
    pub fn address_v6(&self, address: Ipv6Addr, prefix: u32) -> io::Result<()> {
        let mut request = In6Ifreq {
            address: address.octets(),
            prefix,
            index: self.index()?,
        };
        let socket = control_socket(AddressFamily::INET6)?;
        // SAFETY: on a socket of this family the request reads a `struct in6_ifreq`.
        unsafe { ioctl(&socket, libc::SIOCSIFADDR as Request, &mut request) }
    }

    /// Sets the largest packet, in bytes.
    pub fn mtu(&self, bytes: i32) -> io::Result<()> {
        self.tell(libc::SIOCSIFMTU as Request, |request| {
            request.ifr_ifru.ifru_mtu = bytes;
        })
        .map(drop)
    }

    /// Sets the length of the device's queue. Uses rtnetlink(7), since root of a user namespace may
    /// not use the ioctl.
    pub fn queue_length(&self, packets: u32) -> io::Result<()> {
        const IFLA_TXQLEN: u16 = 13;
        self.set_link(IFLA_TXQLEN, packets)
    }

    /// Sets how many segments the kernel's TCP may pass down as one packet (TSO burst).
    pub fn merged_segments(&self, segments: u32) -> io::Result<()> {
        const IFLA_GSO_MAX_SEGS: u16 = 40;
        self.set_link(IFLA_GSO_MAX_SEGS, segments)
    }

    fn set_link(&self, attribute: u16, value: u32) -> io::Result<()> {
        const RTM_SETLINK: u16 = 19;
        const REQUEST_AND_ACK: u16 = 5;
        // `struct ifinfomsg`, and one attribute.
        let mut body = vec![0; 4];
        body.extend(self.index()?.to_ne_bytes());
        body.extend([0; 8]);
        body.extend(attribute_of(attribute, &value.to_ne_bytes()));
        ask(RTM_SETLINK, REQUEST_AND_ACK, &body)
    }

    /// The identity of the interface.
    pub fn identity(&self) -> io::Result<Identity> {
        Ok(Identity {
            index: self.index()?,
            is_loopback: i32::from(self.flags()?) & libc::IFF_LOOPBACK != 0,
        })
    }

    fn flags(&self) -> io::Result<libc::c_short> {
        let now = self.tell(libc::SIOCGIFFLAGS as Request, |_| {})?;
        // SAFETY: SIOCGIFFLAGS has just written this field of the union.
        Ok(unsafe { now.ifr_ifru.ifru_flags })
    }

    fn index(&self) -> io::Result<libc::c_int> {
        let found = self.tell(libc::SIOCGIFINDEX as Request, |_| {})?;
        // SAFETY: SIOCGIFINDEX has just written this field of the union.
        Ok(unsafe { found.ifr_ifru.ifru_ifindex })
    }

    /// Sets the congestion control of the route to the network of `address` (`linux/rtnetlink.h`,
    /// `RTAX_CC_ALGO`), and so of all connections over it. The kernel created this route with the
    /// address.
    pub fn route_control(&self, address: &[u8], prefix: u32, control: &str) -> io::Result<()> {
        const RTM_NEWROUTE: u16 = 24;
        /// Request, acknowledge, replace, create.
        const REPLACE: u16 = 0x505;
        let [destination, device, priority, preferred, metrics, algorithm] = [1, 4, 6, 7, 8, 16];
        let [main, by_kernel, of_link, global, unicast] = [254, 2, 253, 0, 1];
        let is_v6 = address.len() == 16;
        let family = if is_v6 { libc::AF_INET6 } else { libc::AF_INET };
        let family = u8::try_from(family).expect("a small number");
        let bits = u8::try_from(prefix).expect("128 at most");
        let scope = if is_v6 { global } else { of_link };
        // `struct rtmsg`, and attributes.
        let mut body = vec![family, bits, 0, 0, main, by_kernel, scope, unicast];
        body.extend([0; 4]);
        let mut network = address.to_vec();
        network[usize::from(bits / 8)..].fill(0);
        body.extend(attribute_of(destination, &network));
        body.extend(attribute_of(device, &self.index()?.to_ne_bytes()));
        if is_v6 {
            // The priority that the kernel gives to routes created with an address.
            body.extend(attribute_of(priority, &256_u32.to_ne_bytes()));
        } else {
            body.extend(attribute_of(preferred, address));
        }
        let name = attribute_of(algorithm, &[control.as_bytes(), &[0]].concat());
        body.extend(attribute_of(metrics, &name));
        ask(RTM_NEWROUTE, REPLACE, &body)
    }

    /// Adds an address, with a prefix of its full length.
    pub fn further_address(&self, address: IpAddr) -> io::Result<()> {
        const RTM_NEWADDR: u16 = 20;
        /// Request, acknowledge, create.
        const CREATE: u16 = 0x405;
        const IFA_F_NODAD: u8 = 2;
        let [of_device, local] = [1, 2];
        let (family, octets) = octets_of(address);
        let bits = u8::try_from(8 * octets.len()).expect("128 at most");
        // `struct ifaddrmsg`, and attributes.
        let mut body = vec![family, bits, if bits == 128 { IFA_F_NODAD } else { 0 }, 0];
        body.extend(self.index()?.to_ne_bytes());
        body.extend(attribute_of(local, &octets));
        body.extend(attribute_of(of_device, &octets));
        ask(RTM_NEWADDR, CREATE, &body)
    }

    /// Adds a route over the interface, to one address or to all, in table number `table` or in
    /// `main`. `source` is the preferred source address.
    pub fn route(&self, to: Option<IpAddr>, source: IpAddr, table: Option<u32>) -> io::Result<()> {
        const RTM_NEWROUTE: u16 = 24;
        /// Request, acknowledge, replace, create.
        const REPLACE: u16 = 0x505;
        const MAIN: u32 = 254;
        /// `RT_TABLE_COMPAT`: the table number is in the attribute.
        const ATTRIBUTE: u8 = 252;
        let [destination, device, preferred, table_number] = [1, 4, 7, 15];
        let [by_administrator, of_link, global, unicast] = [4, 253, 0, 1];
        let (family, source) = octets_of(source);
        let to = to.map(|to| octets_of(to).1);
        let bits = u8::try_from(8 * to.as_ref().map_or(0, Vec::len)).expect("128 at most");
        let scope = if source.len() == 16 { global } else { of_link };
        // `struct rtmsg`, and attributes.
        let mut body = vec![
            family,
            bits,
            0,
            0,
            ATTRIBUTE,
            by_administrator,
            scope,
            unicast,
        ];
        body.extend([0; 4]);
        if let Some(to) = to {
            body.extend(attribute_of(destination, &to));
        }
        body.extend(attribute_of(device, &self.index()?.to_ne_bytes()));
        body.extend(attribute_of(preferred, &source));
        body.extend(attribute_of(
            table_number,
            &table.unwrap_or(MAIN).to_ne_bytes(),
        ));
        ask(RTM_NEWROUTE, REPLACE, &body)
    }

    /// Disables segmentation offload and scatter-gather, so that packets have the size that a wire
    /// would carry.
    pub fn offloads_off(&self) -> io::Result<()> {
        for command in [ETHTOOL_SGSO, ETHTOOL_SSG] {
            let mut value = EthtoolValue { command, data: 0 };
            self.tell(libc::SIOCETHTOOL as Request, |request| {
                request.ifr_ifru.ifru_data = (&raw mut value).cast();
            })?;
        }
        Ok(())
    }

    /// Which offloads are on.
    pub fn offloads(&self) -> Offloads {
        let get = |command: u32| {
            let mut value = EthtoolValue { command, data: 0 };
            let answer = self.tell(libc::SIOCETHTOOL as Request, |request| {
                request.ifr_ifru.ifru_data = (&raw mut value).cast();
            });
            answer.is_ok().then_some(value.data)
        };
        let is_on = |command: u32| get(command).map(|data| data != 0);
        Offloads {
            rx_checksum: is_on(ETHTOOL_GRXCSUM),
            tx_checksum: is_on(ETHTOOL_GTXCSUM),
            scatter_gather: is_on(ETHTOOL_GSG),
            tso: is_on(ETHTOOL_GTSO),
            gso: is_on(ETHTOOL_GGSO),
            gro: is_on(ETHTOOL_GGRO),
            lro: get(ETHTOOL_GFLAGS).map(|flags| flags & FLAG_LRO != 0),
        }
    }

    pub fn up(&self) -> io::Result<()> {
        let flags = self.flags()?;
        let up = libc::c_short::try_from(libc::IFF_UP).expect("a flag of 16 bits");
        self.tell(libc::SIOCSIFFLAGS as Request, |request| {
            request.ifr_ifru.ifru_flags = flags | up;
        })
        .map(drop)
    }

    /// Takes the interface down.
    #[cfg(test)]
    pub fn down(&self) -> io::Result<()> {
        let flags = self.flags()?;
        let up = libc::c_short::try_from(libc::IFF_UP).expect("a flag of 16 bits");
        self.tell(libc::SIOCSIFFLAGS as Request, |request| {
            request.ifr_ifru.ifru_flags = flags & !up;
        })
        .map(drop)
    }
}

/// Packets that a routing rule matches.
#[derive(Debug)]
pub enum Selector {
    /// Packets with this source address.
    From(IpAddr),
    /// Packets to this address whose destination or source port lies in a range.
    PortThere([u16; 2], IpAddr),
    PortHere([u16; 2], IpAddr),
}

/// Adds a rule: table number `table` routes the matching packets (ip-rule(8), `linux/fib_rules.h`).
pub fn rule(is_v6: bool, priority: u32, table: u32, packets: &Selector) -> io::Result<()> {
    const RTM_NEWRULE: u16 = 32;
    /// Request, acknowledge, create.
    const CREATE: u16 = 0x405;
    const TO_TABLE: u8 = 1;
    let [destination, source, priority_number, table_number] = [1, 2, 6, 15];
    let [source_port, destination_port] = [23, 24];
    let family = if is_v6 { libc::AF_INET6 } else { libc::AF_INET };
    let family = u8::try_from(family).expect("a small number");
    let bits = if is_v6 { 128 } else { 32 };
    let ports = |range: &[u16; 2]| [range[0].to_ne_bytes(), range[1].to_ne_bytes()].concat();
    let (to_bits, from_bits, attributes) = match packets {
        Selector::From(address) => (0, bits, attribute_of(source, &octets_of(*address).1)),
        Selector::PortThere(range, to) | Selector::PortHere(range, to) => {
            let port = if matches!(packets, Selector::PortThere(..)) {
                destination_port
            } else {
                source_port
            };
            let both = [
                attribute_of(destination, &octets_of(*to).1),
                attribute_of(port, &ports(range)),
            ];
            (bits, 0, both.concat())
        }
    };
    // `struct fib_rule_hdr`, and attributes.
    let mut body = vec![family, to_bits, from_bits, 0, 0, 0, 0, TO_TABLE];
    body.extend([0; 4]);
    body.extend(attribute_of(priority_number, &priority.to_ne_bytes()));
    body.extend(attribute_of(table_number, &table.to_ne_bytes()));
    body.extend(attributes);
    ask(RTM_NEWRULE, CREATE, &body)
}

/// The family of an address, and its octets.
fn octets_of(address: IpAddr) -> (u8, Vec<u8>) {
    let (family, octets) = match address {
        IpAddr::V4(v4) => (libc::AF_INET, v4.octets().to_vec()),
        IpAddr::V6(v6) => (libc::AF_INET6, v6.octets().to_vec()),
    };
    (u8::try_from(family).expect("a small number"), octets)
}

/// An attribute of rtnetlink(7) with its padding.
fn attribute_of(kind: u16, value: &[u8]) -> Vec<u8> {
    let len = u16::try_from(4 + value.len()).expect("attributes here are short");
    let mut octets = [len.to_ne_bytes(), kind.to_ne_bytes()].concat();
    octets.extend(value);
    octets.resize(octets.len().next_multiple_of(4), 0);
    octets
}

/// Sends a request by rtnetlink(7), and waits for the answer.
fn ask(kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
    // `struct nlmsghdr`.
    let len = u32::try_from(16 + body.len()).expect("messages here are short");
    let mut message = len.to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None,
    )?;
    rustix::io::write(&socket, &message)?;
    let mut answer = [0; 256];
    rustix::io::read(&socket, &mut answer)?;
    // `struct nlmsgerr` follows the header: 0, or a negative error number.
    match i32::from_ne_bytes([answer[16], answer[17], answer[18], answer[19]]) {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(-error)),
    }
}

fn control_socket(family: AddressFamily) -> io::Result<OwnedFd> {
    Ok(socket_with(
        family,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

fn named(name: &str) -> libc::ifreq {
    // SAFETY: `ifreq` is plain data, for which zeros are a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    assert!(name.len() < request.ifr_name.len(), "names here are short");
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    request
}

fn socket_address(address: Ipv4Addr) -> libc::sockaddr {
    let mut data = [0; 14];
    // The port takes two octets.
    for (to, from) in data[2..6].iter_mut().zip(address.octets()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    libc::sockaddr {
        sa_family: libc::sa_family_t::try_from(libc::AF_INET).expect("a small number"),
        sa_data: data,
    }
}

/// # Safety
/// `argument` must have the type that `request` reads and writes.
unsafe fn ioctl<T>(fd: &impl AsFd, request: Request, argument: &mut T) -> io::Result<()> {
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: the descriptor is open, and the caller guarantees the type of the argument.
    let answer = unsafe { libc::ioctl(fd, request, std::ptr::from_mut(argument)) };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
