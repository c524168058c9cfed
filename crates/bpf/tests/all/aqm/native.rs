//! `bpf/aqm/red.h`, compiled for this machine.

use std::{fs, process::Command};

use anabranch_bpf::aqm::DECISION;
use libloading::Library;

use super::arrivals::{Arrival, Verdict};

const TYPES: &str = "\
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32;
typedef unsigned long long u64; typedef signed long long s64;
";
const FUNCTIONS: &str = "
u64 state_size(void) { return sizeof(struct aqm_state); }
u64 config_size(void) { return sizeof(struct aqm_config); }
int decide(const struct aqm_config *c, struct aqm_state *s, struct aqm_counters *n, const struct aqm_arrival *a)
{ return aqm_decide(c, s, n, a); }
u64 times_power(const struct aqm_config *c, u64 p, s64 log) { return aqm_times_power(c, p, log); }
s64 logarithm(const struct aqm_config *c, u64 x) { return aqm_log(c, x); }
";

type Decide = unsafe extern "C" fn(*const u8, *mut u64, *mut u64, *const u64) -> i32;

/// The functions of the file.
pub struct Native {
    library: Library,
}

impl Native {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (source, shared) = (folder.path().join("red.c"), folder.path().join("red.so"));
        fs::write(&source, [TYPES, DECISION, FUNCTIONS].concat()).expect("a file");
        let compiled = Command::new("cc")
            .args(["-std=gnu11", "-O2", "-fPIC", "-shared", "-Wall", "-Werror"])
            .arg(&source)
            .arg("-o")
            .arg(&shared)
            .output()
            .expect("there is a compiler");
        assert!(
            compiled.status.success(),
            "{}",
            String::from_utf8_lossy(&compiled.stderr)
        );
        // SAFETY: a C file without initialisers.
        let library = unsafe { Library::new(&shared) }.expect("it is a library");
        Self { library }
    }

    fn size(&self, name: &[u8]) -> usize {
        // SAFETY: both functions have this type.
        let size: libloading::Symbol<'_, unsafe extern "C" fn() -> u64> =
            unsafe { self.library.get(name) }.expect("it is there");
        // SAFETY: as above.
        usize::try_from(unsafe { size() }).expect("it is in memory")
    }

    pub fn decide(&self, config: &[u8], sent: &[Arrival]) -> Vec<Verdict> {
        assert_eq!(
            config.len(),
            self.size(b"config_size\0"),
            "config.rs and red.h"
        );
        // SAFETY: the file declares it so.
        let decide: libloading::Symbol<'_, Decide> =
            unsafe { self.library.get(b"decide\0") }.expect("it is there");
        let mut state = vec![0_u64; self.size(b"state_size\0").div_ceil(8)];
        let mut counters = [0_u64; 32];
        sent.iter()
            .map(|one| {
                let slot = u64::from(one.flow) * 97;
                let arrival = [
                    one.time_ns,
                    slot,
                    u64::from(one.size),
                    1,
                    u64::from(one.ecn != 0),
                ];
                // SAFETY: all structures have the sizes that the file gives.
                let verdict = unsafe {
                    decide(
                        config.as_ptr(),
                        state.as_mut_ptr(),
                        counters.as_mut_ptr(),
                        arrival.as_ptr(),
                    )
                };
                [Verdict::Pass, Verdict::Mark, Verdict::Drop][verdict.cast_unsigned() as usize]
            })
            .collect()
    }

    pub fn times_power(&self, config: &[u8], p: u64, log: i64) -> u64 {
        type Function = unsafe extern "C" fn(*const u8, u64, i64) -> u64;
        // SAFETY: the file declares it so.
        let function: libloading::Symbol<'_, Function> =
            unsafe { self.library.get(b"times_power\0") }.expect("it is there");
        // SAFETY: the configuration is whole.
        unsafe { function(config.as_ptr(), p, log) }
    }

    pub fn log(&self, config: &[u8], x: u64) -> i64 {
        type Function = unsafe extern "C" fn(*const u8, u64) -> i64;
        // SAFETY: the file declares it so.
        let function: libloading::Symbol<'_, Function> =
            unsafe { self.library.get(b"logarithm\0") }.expect("it is there");
        // SAFETY: the configuration is whole.
        unsafe { function(config.as_ptr(), x) }
    }
}
