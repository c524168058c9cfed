//! Reuse of buffers, so that a packet costs no allocation.

/// The largest number of stored buffers: 3 MB.
const BUFFERS: usize = 2_048;
/// Capacity of a new buffer: a packet of the largest path MTU.
const CAPACITY: usize = 1_536;

/// Empty buffers.
#[derive(Debug, Default)]
pub struct Pool {
    free: Vec<Vec<u8>>,
}

impl Pool {
    /// An empty buffer.
    #[must_use]
    pub fn take(&mut self) -> Vec<u8> {
        self.free
            .pop()
            .unwrap_or_else(|| Vec::with_capacity(CAPACITY))
    }

    /// A buffer with a copy of these octets.
    #[must_use]
    pub fn copy(&mut self, octets: &[u8]) -> Vec<u8> {
        let mut buffer = self.take();
        buffer.extend_from_slice(octets);
        buffer
    }

    /// Returns a buffer to the pool. Frees it if its capacity is too small, or so large that a full
    /// pool would be too large.
    pub fn put(&mut self, mut buffer: Vec<u8>) {
        let is_usual = (CAPACITY..=2 * CAPACITY).contains(&buffer.capacity());
        if is_usual && self.free.len() < BUFFERS {
            buffer.clear();
            self.free.push(buffer);
        }
    }

    /// The number of stored buffers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.free.len()
    }

    /// Whether no buffer is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.free.is_empty()
    }
}
