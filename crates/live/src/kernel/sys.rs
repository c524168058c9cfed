//! System calls without a safe wrapper: devices, `TCP_INFO` and others. All unsafe code is here.

pub mod contain;
pub mod interface;
pub mod message;
pub mod names;
pub mod packet;
pub mod path_mtu;
pub mod priority;
pub mod tcp_info;
