//! The privileges of this process, and advice on missing ones that fits its environment.

use std::{fs, sync::OnceLock};

/// Capabilities by name and number (`linux/capability.h`).
const CAPABILITIES: [(&str, u32); 5] = [
    ("CAP_NET_ADMIN", 12),
    ("CAP_NET_RAW", 13),
    ("CAP_SYS_ADMIN", 21),
    ("CAP_PERFMON", 38),
    ("CAP_BPF", 39),
];

/// The privileges of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Privileges {
    /// The user ID outside the process's user namespace.
    pub user: u32,
    /// The process is in a separate user namespace (user_namespaces(7)).
    pub is_in_user_namespace: bool,
    /// Effective capabilities, one bit each.
    pub capabilities: u64,
}

impl Privileges {
    /// The privileges of this process.
    #[must_use]
    pub fn own() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self::of(&read("/proc/self/status"), &read("/proc/self/uid_map"))
    }

    /// The privileges in `/proc/PID/status` and `/proc/PID/uid_map`.
    #[must_use]
    pub fn of(status: &str, uid_map: &str) -> Self {
        let field = |name: &str| {
            let mut lines = status.lines();
            lines.find_map(|line| line.strip_prefix(name)?.split_whitespace().nth(1))
        };
        // Real, effective, …; as seen in this namespace.
        let user = field("Uid:").and_then(|user| user.parse().ok());
        let user: u32 = user.unwrap_or(u32::MAX);
        let capabilities = status
            .lines()
            .find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok());
        let ranges: Vec<[u32; 3]> = uid_map
            .lines()
            .filter_map(|line| {
                let mut numbers = line.split_whitespace().map(|number| number.parse().ok());
                Some([numbers.next()??, numbers.next()??, numbers.next()??])
            })
            .collect();
        let is_whole = ranges
            .first()
            .is_none_or(|range| *range == [0, 0, u32::MAX]);
        let outside = ranges.iter().find_map(|[inner, outer, count]| {
            let at = user.checked_sub(*inner)?;
            (at < *count).then(|| outer.saturating_add(at))
        });
        Self {
            user: outside.unwrap_or(user),
            is_in_user_namespace: !is_whole,
            capabilities: capabilities.unwrap_or(0),
        }
    }

    /// Whether the process has a capability.
    #[must_use]
    pub fn has(&self, capability: &str) -> bool {
        let number = CAPABILITIES.iter().find(|(name, _)| *name == capability);
        number.is_some_and(|(_, number)| self.capabilities & (1 << number) != 0)
    }

    /// Advice for an operation that the kernel has denied and that needs these capabilities.
    /// `everywhere`: the capabilities of a user namespace are sufficient.
    #[must_use]
    pub fn advice(&self, needed: &[&str], everywhere: bool) -> String {
        if self.user != 0 {
            return "run as root".to_owned();
        }
        if self.is_in_user_namespace && !everywhere {
            return "run outside of a user namespace (a rootless container is one)".to_owned();
        }
        let missing: Vec<&str> = needed
            .iter()
            .copied()
            .filter(|one| !self.has(one))
            .collect();
        if missing.is_empty() {
            return "root may not do it here: a filter of system calls (seccomp) or a security module forbids it, as in a \
                    container; run outside of it, or with --privileged"
                .to_owned();
        }
        let options: Vec<String> = missing
            .iter()
            .map(|one| format!("--cap-add={}", one.trim_start_matches("CAP_")))
            .collect();
        format!(
            "this root lacks {}, as in a container: start it with {}",
            missing.join(" and "),
            options.join(" ")
        )
    }

    /// Advice for a process that has moved into a user namespace to create hosts: the operation
    /// requires that it does not move.
    fn advice_to_stay(&self, needed: &[&str]) -> String {
        let more = needed.iter().filter(|one| !HOSTS.contains(one));
        let all: Vec<&str> = HOSTS.iter().chain(more).copied().collect();
        self.advice(&all, false)
    }
}

/// The privileges of this process before it moved into a user namespace.
static OUTSIDE: OnceLock<Privileges> = OnceLock::new();

/// Capabilities required to create hosts without such a move.
const HOSTS: [&str; 2] = ["CAP_SYS_ADMIN", "CAP_NET_ADMIN"];

/// Records the privileges before this process moves into a user namespace, for [`advice`].
pub fn about_to_move() {
    OUTSIDE.get_or_init(Privileges::own);
}

/// Advice for this process, for an operation that needs these capabilities outside user namespaces.
#[must_use]
pub fn advice(needed: &[&str]) -> String {
    match OUTSIDE.get() {
        Some(outside) => outside.advice_to_stay(needed),
        None => Privileges::own().advice(needed, false),
    }
}

/// Advice for a build that cannot load BPF programs.
pub const BUILD: &str =
    "a checkout has it where clang, libelf-dev and zlib1g-dev (Debian's names) are installed";

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "         0          0 4294967295\n";

    fn status(user: u32, capabilities: &str) -> String {
        format!("Name:\tx\nUid:\t{user}\t{user}\t{user}\t{user}\nCapEff:\t{capabilities}\n")
    }

    #[test]
    fn advice_names_the_missing_privilege() {
        let needed = ["CAP_SYS_ADMIN", "CAP_NET_ADMIN"];
        let all = "000001ffffffffff";
        for (status, map, everywhere, expected) in [
            (
                status(1000, "0000000000000000"),
                WHOLE,
                false,
                "run as root",
            ),
            // Root in a separate namespace is another user outside.
            (status(0, all), "0 1000 1\n", false, "run as root"),
            (
                status(0, all),
                "0 0 1\n",
                false,
                "run outside of a user namespace",
            ),
            (
                status(0, all),
                "0 0 1\n",
                true,
                "root may not do it here: a filter",
            ),
            (
                status(0, all),
                WHOLE,
                false,
                "root may not do it here: a filter",
            ),
            (
                status(0, "00000000a80425fb"),
                WHOLE,
                false,
                "this root lacks CAP_SYS_ADMIN and CAP_NET_ADMIN, as in a container: start it with --cap-add=SYS_ADMIN --cap-add=NET_ADMIN",
            ),
            (
                status(0, "00000000a80435fb"),
                WHOLE,
                false,
                "this root lacks CAP_SYS_ADMIN, as in",
            ),
        ] {
            let advice = Privileges::of(&status, map).advice(&needed, everywhere);
            assert!(advice.starts_with(expected), "{status} {map}: {advice}");
        }
    }

    #[test]
    fn a_process_that_moved_into_a_namespace_lacks_capabilities() {
        let outside = Privileges::of(&status(0, "000001ffffdfefff"), WHOLE);
        assert!(!outside.has("CAP_SYS_ADMIN") && !outside.has("CAP_NET_ADMIN"));
        let advice = outside.advice_to_stay(&["CAP_BPF", "CAP_PERFMON", "CAP_NET_ADMIN"]);
        assert!(
            advice.starts_with("this root lacks CAP_SYS_ADMIN and CAP_NET_ADMIN, as in"),
            "{advice}"
        );
    }
}
