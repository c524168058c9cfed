//! Confinement of the daemon after the set-up: it changes its user, and drops the capabilities,
//! files and system calls that it does not need.

use std::{
    collections::BTreeMap,
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use anabranch_core::system::words;
use landlock::{
    ABI, Access, AccessFs, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus,
    path_beneath_rules,
};
use nix::{
    libc,
    unistd::{Gid, Uid, User},
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set,
    set_capabilities, set_keep_capabilities, set_no_new_privs, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

/// Capabilities for interfaces, routes and marks, and for sockets bound to an interface.
pub const KEPT: CapabilitySet = CapabilitySet::NET_ADMIN.union(CapabilitySet::NET_RAW);
/// The user without rights of other programs, by its usual number.
const NOBODY: u32 = 65_534;
/// Files for the resolution of names, in addition to the configuration.
const SYSTEM_FILES: [&str; 6] = ["/etc", "/run", "/usr", "/lib", "/lib64", "/proc"];

/// A user to change to.
#[derive(Debug, Clone, Copy)]
pub struct Account {
    uid: Uid,
    gid: Gid,
}

impl Account {
    /// The user of this name.
    ///
    /// # Errors
    /// If there is no such user.
    pub fn of(name: &str) -> Result<Self, String> {
        match User::from_name(name) {
            Ok(Some(user)) => Ok(Self {
                uid: user.uid,
                gid: user.gid,
            }),
            Ok(None) => Err(format!("there is no user `{name}`")),
            Err(error) => Err(format!("user `{name}`: {error}")),
        }
    }
}

impl Account {
    /// An account without rights, if this process is root and may change to it. In a user namespace
    /// there may be no such user.
    pub fn nobody_if_root() -> Option<Self> {
        let nobody = Self {
            uid: Uid::from_raw(NOBODY),
            gid: Gid::from_raw(NOBODY),
        };
        let map = std::fs::read_to_string("/proc/self/uid_map").ok()?;
        let is_there = map.lines().any(|line| {
            let mut numbers = line.split_whitespace().map(str::parse::<u32>);
            let (Some(Ok(first)), _, Some(Ok(count))) =
                (numbers.next(), numbers.next(), numbers.next())
            else {
                return false;
            };
            (first..first.saturating_add(count)).contains(&NOBODY)
        });
        (Uid::effective().is_root() && is_there).then_some(nobody)
    }

    /// The same user in the group of a file, or of the folder in which the file will be.
    pub fn in_group_of(self, path: &Path) -> Self {
        let folder = path.parent().map(|folder| Path::new(".").join(folder));
        let mut places = std::iter::once(path.to_owned()).chain(folder);
        let about = places.find_map(|place| std::fs::metadata(place).ok());
        let gid = about.map_or(self.gid, |about| Gid::from_raw(about.gid()));
        Self { gid, ..self }
    }

    /// The number of its group.
    pub const fn group(self) -> u32 {
        self.gid.as_raw()
    }

    /// Makes the user the owner of a file.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn own(self, path: &Path) -> io::Result<()> {
        std::os::unix::fs::chown(path, Some(self.uid.as_raw()), Some(self.gid.as_raw()))
    }
}

/// Confines the calling thread, which keeps the capabilities `kept`. Files below `readable` stay
/// readable, and files in `writable` can be removed. Returns a remark about features that the
/// kernel does not support.
///
/// # Errors
/// A message if the system refuses.
pub fn confine(
    account: Option<&Account>,
    kept: CapabilitySet,
    readable: &[PathBuf],
    writable: Option<&Path>,
) -> Result<Option<String>, String> {
    let files = Files {
        system: &SYSTEM_FILES,
        readable,
        removable: writable,
        writable: None,
    };
    confine_to(account, kept, files, &[])
}

/// Confines the calling thread, which opens no file from now on.
///
/// # Errors
/// As [`confine`].
pub fn confine_page(account: Option<&Account>) -> Result<Option<String>, String> {
    let files = Files {
        system: &[],
        readable: &[],
        removable: None,
        writable: None,
    };
    confine_to(account, CapabilitySet::empty(), files, &[])
}

/// Confines the calling thread to the files of one folder, which it reads, writes and renames.
///
/// # Errors
/// As [`confine`].
pub fn confine_keeper(account: Option<&Account>, folder: Option<&Path>) -> Result<(), String> {
    let files = Files {
        system: &SYSTEM_FILES,
        readable: &[],
        removable: None,
        writable: folder,
    };
    confine_to(account, CapabilitySet::empty(), files, OF_FILES).map(|_| ())
}

/// Files that stay accessible.
#[derive(Clone, Copy)]
struct Files<'a> {
    /// Folders of the system to read.
    system: &'a [&'a str],
    /// Folders to read.
    readable: &'a [PathBuf],
    /// A folder to remove files from.
    removable: Option<&'a Path>,
    /// A folder to read, write, rename and remove files in.
    writable: Option<&'a Path>,
}

fn confine_to(
    account: Option<&Account>,
    kept: CapabilitySet,
    files: Files<'_>,
    calls: &[i64],
) -> Result<Option<String>, String> {
    let failed = |what: &str| {
        let what = what.to_owned();
        move |error: rustix::io::Errno| format!("{what}: {}", words(&io::Error::from(error)))
    };
    set_no_new_privs(true).map_err(failed("no_new_privs"))?;
    for capability in CapabilitySet::all().difference(kept) {
        // Fails without CAP_SETPCAP, and for capabilities that the kernel does not have; neither
        // matters.
        let _ = remove_capability_from_bounding_set(capability);
    }
    if let Some(account) = account {
        change_user(*account).map_err(failed("user"))?;
    }
    let had = capabilities(None).map_err(failed("capabilities"))?;
    let kept = had.permitted.intersection(kept);
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, sets).map_err(failed("capabilities"))?;
    let remark = restrict_files(files).map_err(|error| format!("Landlock: {error}"))?;
    let filter = filter(calls).map_err(|error| format!("seccomp: {error}"))?;
    apply_filter(&filter).map_err(|error| format!("seccomp: {error}"))?;
    Ok(remark)
}

/// Confines the calling thread to the resolution of names.
///
/// # Errors
/// As [`confine`].
pub fn confine_resolver(account: Option<&Account>) -> Result<(), String> {
    confine(account, CapabilitySet::empty(), &[], None).map(|_| ())
}

fn change_user(account: Account) -> rustix::io::Result<()> {
    let uid = rustix::process::Uid::from_raw(account.uid.as_raw());
    let gid = rustix::process::Gid::from_raw(account.gid.as_raw());
    set_keep_capabilities(true)?;
    set_thread_groups(&[])?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    set_keep_capabilities(false)
}

fn restrict_files(files: Files<'_>) -> Result<Option<String>, landlock::RulesetError> {
    let abi = ABI::V3;
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let write = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::MakeReg | AccessFs::RemoveFile;
    let system = files.system.iter().map(PathBuf::from);
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(abi))?
        .create()?
        .add_rules(path_beneath_rules(
            system.chain(files.readable.iter().cloned()),
            read,
        ))?
        .add_rules(path_beneath_rules(files.removable, AccessFs::RemoveFile))?
        .add_rules(path_beneath_rules(files.writable, read | write))?
        .restrict_self()?;
    Ok((status.ruleset == RulesetStatus::NotEnforced)
        .then(|| "the kernel has no Landlock: files are not restricted".to_owned()))
}

/// The seccomp filter: system calls that are not in the list fail with EPERM.
fn filter(more: &[i64]) -> Result<BpfProgram, seccompiler::BackendError> {
    let rules: BTreeMap<i64, Vec<_>> = ALLOWED
        .iter()
        .chain(OF_THIS_MACHINE)
        .chain(more)
        .map(|&call| (call, Vec::new()))
        .collect();
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    SeccompFilter::new(
        rules,
        refused,
        SeccompAction::Allow,
        std::env::consts::ARCH.try_into()?,
    )?
    .try_into()
}

/// System calls of the main loop, of a reload, of name resolution, and of the exit. None starts a
/// thread: the resolver's thread exists before.
const ALLOWED: &[i64] = &[
    libc::SYS_accept4,
    libc::SYS_bind,
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_close,
    libc::SYS_connect,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_faccessat,
    libc::SYS_fcntl,
    libc::SYS_fstat,
    libc::SYS_futex,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getpeername,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_gettid,
    libc::SYS_gettimeofday,
    libc::SYS_getuid,
    libc::SYS_ioctl,
    libc::SYS_lseek,
    libc::SYS_madvise,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_ppoll,
    libc::SYS_pread64,
    libc::SYS_read,
    libc::SYS_readlinkat,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmmsg,
    libc::SYS_recvmsg,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_yield,
    libc::SYS_sendmmsg,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_setsockopt,
    libc::SYS_shutdown,
    libc::SYS_sigaltstack,
    libc::SYS_socket,
    libc::SYS_statx,
    libc::SYS_sysinfo,
    libc::SYS_tgkill,
    libc::SYS_uname,
    libc::SYS_unlinkat,
    libc::SYS_write,
    libc::SYS_writev,
];

/// System calls that replace a file.
#[cfg(target_arch = "x86_64")]
const OF_FILES: &[i64] = &[
    libc::SYS_fsync,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_renameat2,
];
#[cfg(not(target_arch = "x86_64"))]
const OF_FILES: &[i64] = &[libc::SYS_fsync, libc::SYS_renameat, libc::SYS_renameat2];

/// Older system calls, which newer architectures do not have.
#[cfg(target_arch = "x86_64")]
const OF_THIS_MACHINE: &[i64] = &[
    libc::SYS_access,
    libc::SYS_lstat,
    libc::SYS_open,
    libc::SYS_poll,
    libc::SYS_readlink,
    libc::SYS_stat,
    libc::SYS_unlink,
];
#[cfg(not(target_arch = "x86_64"))]
const OF_THIS_MACHINE: &[i64] = &[];

#[cfg(test)]
mod tests {
    use super::confine_page;

    #[test]
    fn the_page_reads_no_file() {
        let thread = std::thread::spawn(|| {
            let remark = confine_page(None).expect("it is permitted");
            (remark, std::fs::read("/etc/passwd").is_err())
        });
        let (remark, is_refused) = thread.join().expect("no panic");
        assert_eq!(is_refused, remark.is_none(), "{remark:?}");
    }
}
