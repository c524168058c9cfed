//! gzip and zstd, told by the first bytes of the file.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
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

/// The content of `file`, decompressed as it is read.
pub(crate) fn decompressed<'a>(
    file: impl Read + 'a,
) -> io::Result<(Compression, Box<dyn Read + 'a>)> {
    let mut file = BufReader::with_capacity(1 << 16, file);
    let compression = Compression::of(file.fill_buf()?);
    let content: Box<dyn Read + 'a> = match compression {
        Compression::None => Box::new(file),
        Compression::Gzip => Box::new(MultiGzDecoder::new(file)),
        Compression::Zstd => Box::new(Frames::Between(file)),
    };
    Ok((compression, content))
}

/// A frame of zstd that is being decoded, and the file behind it.
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
                // The decoder wraps the reason; at the end of the file it is the end.
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

/// The frames of a zstd file, one after the other (RFC 8878 §3.1).
enum Frames<R: BufRead> {
    Between(R),
    Within(Box<Within<R>>),
    /// Behind the last frame, or behind an error.
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
