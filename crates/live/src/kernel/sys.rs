//! What the system is asked that no safe wrapper asks: devices and `TCP_INFO`. All unsafe code is here.

pub mod contain;
pub mod interface;
pub mod names;
pub mod packet;
pub mod path_mtu;
pub mod priority;
pub mod tcp_info;
