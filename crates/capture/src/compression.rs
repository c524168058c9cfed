//! gzip and zstd, recognised by the first bytes of the file.

use std::{
    cell::Cell,
    io::{self, BufRead, BufReader, Read},
    rc::Rc,
};

use flate2::bufread::GzDecoder;
use ruzstd::decoding::{
    BlockDecodingStrategy, FrameDecoder,
    errors::{FrameDecoderError, ReadFrameHeaderError},
};

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
}

impl Compression {
    const GZIP: &[u8] = &[0x1f, 0x8b];
    const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

    pub(crate) fn of(head: &[u8]) -> Self {
        if head.starts_with(Self::GZIP) {
            Self::Gzip
        } else if head.starts_with(Self::ZSTD) {
            Self::Zstd
        } else {
            Self::None
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }
}

/// A file, decompressed as it is read.
pub(crate) struct Decompressed<'a> {
    pub(crate) compression: Compression,
    /// Compressed bytes read.
    pub(crate) compressed: Rc<Cell<u64>>,
    /// Bytes after the compressed data that are not part of it.
    pub(crate) trailing: Rc<Cell<u64>>,
    pub(crate) content: Box<dyn Read + 'a>,
}

/// Counts the bytes read.
struct Counted<R> {
    file: R,
    count: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(into)?;
        self.count.set(self.count.get() + read as u64);
        Ok(read)
    }
}

/// The content of `file`, decompressed as it is read.
pub(crate) fn decompressed<'a>(file: impl Read + 'a) -> io::Result<Decompressed<'a>> {
    let compressed = Rc::new(Cell::new(0));
    let counted = Counted {
        file,
        count: Rc::clone(&compressed),
    };
    let mut file = BufReader::with_capacity(1 << 16, counted);
    let compression = Compression::of(file.fill_buf()?);
    let trailing = Rc::new(Cell::new(0));
    let content: Box<dyn Read + 'a> = match compression {
        Compression::None => Box::new(file),
        Compression::Gzip => Box::new(Members {
            member: Some(Box::new(GzDecoder::new(Ahead::new(file)))),
            trailing: Rc::clone(&trailing),
        }),
        Compression::Zstd => Box::new(Frames::Between(file)),
    };
    Ok(Decompressed {
        compression,
        compressed,
        trailing,
        content,
    })
}

/// A file with a look-ahead of two bytes, independent of the end of its buffer.
struct Ahead<R> {
    held: [u8; 2],
    /// Number of bytes in `held`, and how many of them are consumed.
    looked: usize,
    consumed: usize,
    file: R,
}

impl<R: BufRead> Ahead<R> {
    fn new(file: R) -> Self {
        Self {
            held: [0; 2],
            looked: 0,
            consumed: 0,
            file,
        }
    }

    /// Returns the next two bytes without consuming them; fewer at the end.
    fn look(&mut self) -> io::Result<&[u8]> {
        self.held.copy_within(self.consumed..self.looked, 0);
        self.looked -= std::mem::take(&mut self.consumed);
        while self.looked < self.held.len() {
            let Some(octet) = self.file.fill_buf()?.first().copied() else {
                break;
            };
            self.held[self.looked] = octet;
            self.looked += 1;
            self.file.consume(1);
        }
        Ok(&self.held[..self.looked])
    }
}

impl<R: BufRead> Read for Ahead<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(into)?;
        self.consume(count);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Ahead<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.consumed < self.looked {
            return Ok(&self.held[self.consumed..self.looked]);
        }
        self.file.fill_buf()
    }
    fn consume(&mut self, count: usize) {
        if self.consumed < self.looked {
            self.consumed += count;
        } else {
            self.file.consume(count);
        }
    }
}

/// The members of a gzip file in order (RFC 1952 §2.2). Bytes after the last member that begin no
/// member are counted and ignored: tapes and block devices pad with zeros, and other data may have
/// been appended to the file.
struct Members<R: BufRead> {
    member: Option<Box<GzDecoder<Ahead<R>>>>,
    trailing: Rc<Cell<u64>>,
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let read = member.read(into)?;
            if read > 0 || into.is_empty() {
                return Ok(read);
            }
            let Some(member) = self.member.take() else {
                break;
            };
            let mut file = member.into_inner();
            if file.look()? == Compression::GZIP {
                self.member = Some(Box::new(GzDecoder::new(file)));
            } else {
                self.trailing.set(io::copy(&mut file, &mut io::sink())?);
            }
        }
        Ok(0)
    }
}

/// A zstd frame being decoded, and the rest of the file.
struct Within<R> {
    decoder: FrameDecoder,
    file: R,
}

impl<R: BufRead> Within<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.decoder.can_collect() < into.len() && !self.decoder.is_finished() {
            let missing = into.len() - self.decoder.can_collect();
            let decoded = self
                .decoder
                .decode_blocks(&mut self.file, BlockDecodingStrategy::UptoBytes(missing));
            if let Err(error) = decoded {
                // The decoder wraps the cause; at the end of the file the frame is truncated.
                return Err(if self.file.fill_buf()?.is_empty() {
                    io::ErrorKind::UnexpectedEof.into()
                } else {
                    damaged(error)
                });
            }
        }
        self.decoder.read(into)
    }
}

/// The frames of a zstd file in order (RFC 8878 §3.1).
enum Frames<R: BufRead> {
    Between(R),
    Within(Box<Within<R>>),
    /// After the last frame, or after an error.
    End,
}

impl<R: BufRead> Frames<R> {
    /// The next frame that has data; skippable frames are passed over.
    fn next(mut file: R) -> io::Result<Self> {
        loop {
            if file.fill_buf()?.is_empty() {
                return Ok(Self::End);
            }
            let mut decoder = FrameDecoder::new();
            match decoder.init(&mut file) {
                Ok(()) => return Ok(Self::Within(Box::new(Within { decoder, file }))),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let skipped = io::copy(&mut (&mut file).take(length.into()), &mut io::sink())?;
                    if skipped < u64::from(length) {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(_) if file.fill_buf()?.is_empty() => {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                Err(error) => return Err(damaged(error)),
            }
        }
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(self, Self::End) {
                Self::End => return Ok(0),
                Self::Between(file) => *self = Self::next(file)?,
                Self::Within(mut within) => match within.read(into)? {
                    0 if !into.is_empty() => *self = Self::Between(within.file),
                    read => {
                        *self = Self::Within(within);
                        return Ok(read);
                    }
                },
            }
        }
    }
}

fn damaged(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
