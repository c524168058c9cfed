//! Buffers that are used again, so that a packet costs no allocation.

/// Buffers that are kept at most: 3 MB.
const BUFFERS: usize = 2_048;
/// Octets that a new buffer has room for: a packet of the largest path MTU.
const CAPACITY: usize = 1_536;

/// Empty buffers.
#[derive(Debug)]
pub struct Pool {
    free: Vec<Vec<u8>>,
}

impl Default for Pool {
    fn default() -> Self {
        Self {
            free: Vec::with_capacity(BUFFERS),
        }
    }
}

impl Pool {
    /// An empty buffer.
    #[must_use]
    pub fn take(&mut self) -> Vec<u8> {
        self.free
            .pop()
            .unwrap_or_else(|| Vec::with_capacity(CAPACITY))
    }

    /// A buffer with these octets in it.
    #[must_use]
    pub fn copy(&mut self, octets: &[u8]) -> Vec<u8> {
        let mut buffer = self.take();
        buffer.extend_from_slice(octets);
        buffer
    }

    /// Gives a buffer back. One with too little room, or with so much that a full pool would be large, is freed.
    pub fn put(&mut self, mut buffer: Vec<u8>) {
        let is_usual = (CAPACITY..=2 * CAPACITY).contains(&buffer.capacity());
        if is_usual && self.free.len() < BUFFERS {
            buffer.clear();
            self.free.push(buffer);
        }
    }

    /// Buffers that it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.free.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.free.is_empty()
    }
}
