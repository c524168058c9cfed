//! `linux-6.12`: Linux 6.12, the kernel of Debian 13.

use anabranch_core::{
    registry::{Meta, Source},
    units::{Bytes, text::Limit},
};

use super::{Profile, linux_6_18::linux_6_18};
use crate::settings::{Receiver, Settings};

pub(super) fn linux_6_12() -> Profile {
    let later = linux_6_18();
    Profile {
        meta: Meta {
            name: "linux-6.12",
            title: "Linux 6.12",
            summary: "`linux-6.18` with the receive window of the kernels before 6.16.",
            sources: &[Source {
                id: "Linux 6.12",
                items: &["Documentation/networking/ip-sysctl.rst"],
            }],
        },
        aliases: &[],
        reasons: &[
            (
                "receive_window",
                "tcp_rmem: 6 MB, half of which is overhead; the window grows from 64 KiB",
            ),
            (
                "receiver",
                "measured in virtual time: 20 segments in a round trip after 10 let the window grow towards 168, where 6.18 stops at 119",
            ),
        ],
        settings: Settings {
            receiver: Receiver::Linux6_12,
            receive_window: Limit::Bytes(Bytes::new(3 << 20)),
            ..later.settings
        },
        ..later
    }
}
