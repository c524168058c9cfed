//! Cost of a run: processor time, elapsed time, memory.

use std::{fs, time::Instant};

use rustix::time::{ClockId, clock_gettime};

/// A stopwatch, started before a run and read after it.
pub struct Stopwatch {
    started: Instant,
    cpu_s: f64,
}

impl Stopwatch {
    pub fn start() -> Self {
        Self {
            started: Instant::now(),
            cpu_s: thread_cpu_s(),
        }
    }
    /// Elapsed seconds.
    pub fn wall_s(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
    /// Processor seconds of this thread.
    pub fn cpu_s(&self) -> f64 {
        thread_cpu_s() - self.cpu_s
    }
}

fn thread_cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Peak memory of this process, if the system reports it.
pub fn peak_rss_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
