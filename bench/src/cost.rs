//! Costs of a process: processor time and memory.

use std::fs;

use peak_alloc::PeakAlloc;
use rustix::time::{ClockId, clock_gettime};

/// Allocator that records current and peak allocation.
#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// Bytes on the heap now.
pub fn heap_bytes() -> u64 {
    HEAP.current_usage() as u64
}

/// The most bytes on the heap since [`forget_heap_peak`].
pub fn heap_peak_bytes() -> u64 {
    HEAP.peak_usage() as u64
}

/// Resets the peak.
pub fn forget_heap_peak() {
    HEAP.reset_peak_usage();
}

/// Processor seconds used by this thread.
pub fn thread_cpu_s() -> f64 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heap_is_counted() {
        forget_heap_peak();
        let before = heap_bytes();
        let block = std::hint::black_box(vec![1_u8; 10_000_000]);
        assert!(heap_bytes() >= before + 10_000_000 - 1_000_000);
        drop(block);
        assert!(heap_peak_bytes() >= 10_000_000);
    }
}
