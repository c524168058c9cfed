//! One column: its values, and which of them are null.

use std::{
    collections::BTreeMap,
    ffi::{CStr, c_void},
};

/// The longest string that a view holds itself (Arrow columnar format, *variable-size binary view layout*).
const INLINE: usize = 12;

/// Octets of a buffer of long strings: an offset is a signed 32-bit number.
const LONGEST_BUFFER: usize = 1 << 30;

/// A column in Arrow's memory layout.
#[derive(Debug)]
pub struct Column {
    values: Values,
    length: usize,
    nulls: Nulls,
}

#[derive(Debug)]
enum Values {
    Floats(Vec<f64>),
    Counts(Vec<u64>),
    ShortCounts(Vec<u32>),
    Integers(Vec<i64>),
    Flags(Bits),
    Strings {
        views: Vec<u128>,
        /// Strings that no view holds.
        long: Vec<Vec<u8>>,
        /// The length of each buffer of `long`, which is the last buffer of the exported array.
        sizes: Vec<i64>,
    },
}

/// The values of a column for a reader without Arrow. The value of a null row has no meaning.
#[derive(Debug)]
pub enum Plain<'a> {
    /// 64-bit floats.
    Floats(&'a [f64]),
    /// Unsigned 64-bit integers.
    Counts(&'a [u64]),
    /// Unsigned 32-bit integers.
    ShortCounts(&'a [u32]),
    /// Signed 64-bit integers.
    Integers(&'a [i64]),
    /// Booleans.
    Flags(Vec<bool>),
    /// The distinct strings in the order of their first rows, and the index of each row's string.
    Strings {
        /// An index for each row.
        codes: Vec<u32>,
        /// The distinct strings.
        names: Vec<String>,
    },
}

/// A bitmap, the least significant bit first.
#[derive(Debug, Default)]
struct Bits {
    octets: Vec<u8>,
    length: usize,
}

impl Bits {
    fn push(&mut self, bit: bool) {
        if self.length.is_multiple_of(8) {
            self.octets.push(0);
        }
        if let Some(last) = self.octets.last_mut() {
            *last |= u8::from(bit) << (self.length % 8);
        }
        self.length += 1;
    }

    fn iter(&self) -> impl Iterator<Item = bool> {
        (0..self.length).map(|row| self.octets[row / 8] >> (row % 8) & 1 == 1)
    }
}

/// Validity of the values seen so far. Without a null it takes no memory.
#[derive(Debug, Default)]
struct Nulls {
    count: usize,
    valid: Bits,
}

impl Nulls {
    fn push(&mut self, row: usize, is_null: bool) {
        if is_null && self.count == 0 {
            for _ in 0..row {
                self.valid.push(true);
            }
        }
        self.count += usize::from(is_null);
        if self.count > 0 {
            self.valid.push(!is_null);
        }
    }
}

impl Column {
    /// 64-bit floats.
    pub fn floats(values: impl IntoIterator<Item = Option<f64>>) -> Self {
        let (values, nulls) = split(values);
        Self::new(values.len(), Values::Floats(values), nulls)
    }

    /// Unsigned 64-bit integers.
    pub fn counts(values: impl IntoIterator<Item = Option<u64>>) -> Self {
        let (values, nulls) = split(values);
        Self::new(values.len(), Values::Counts(values), nulls)
    }

    /// Unsigned 32-bit integers.
    pub fn short_counts(values: impl IntoIterator<Item = u32>) -> Self {
        let values: Vec<u32> = values.into_iter().collect();
        Self::new(values.len(), Values::ShortCounts(values), Nulls::default())
    }

    /// Signed 64-bit integers.
    pub fn integers(values: impl IntoIterator<Item = Option<i64>>) -> Self {
        let (values, nulls) = split(values);
        Self::new(values.len(), Values::Integers(values), nulls)
    }

    /// Booleans.
    pub fn flags(values: impl IntoIterator<Item = Option<bool>>) -> Self {
        let (mut bits, mut nulls) = (Bits::default(), Nulls::default());
        for (row, value) in values.into_iter().enumerate() {
            nulls.push(row, value.is_none());
            bits.push(value.unwrap_or_default());
        }
        Self::new(bits.length, Values::Flags(bits), nulls)
    }

    /// Strings as views: a short string takes no memory beside its view, and equal long ones are stored once.
    pub fn strings<'a>(values: impl IntoIterator<Item = Option<&'a str>>) -> Self {
        let mut places: BTreeMap<&'a str, u128> = BTreeMap::new();
        let (mut views, mut nulls) = (Vec::new(), Nulls::default());
        let mut long: Vec<Vec<u8>> = Vec::new();
        for (row, value) in values.into_iter().enumerate() {
            nulls.push(row, value.is_none());
            let text = value.unwrap_or_default();
            views.push(match text.len() {
                ..=INLINE => inline(text),
                _ => *places.entry(text).or_insert_with(|| store(&mut long, text)),
            });
        }
        let sizes = long.iter().map(|buffer| length_of(buffer.len())).collect();
        let length = views.len();
        Self::new(length, Values::Strings { views, long, sizes }, nulls)
    }

    const fn new(length: usize, values: Values, nulls: Nulls) -> Self {
        Self {
            values,
            length,
            nulls,
        }
    }

    /// The number of rows.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Whether the column has no rows.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The number of nulls.
    #[must_use]
    pub const fn nulls(&self) -> usize {
        self.nulls.count
    }

    /// Whether each row has a value; `None` if all have one.
    #[must_use]
    pub fn validity(&self) -> Option<Vec<bool>> {
        (self.nulls.count > 0).then(|| self.nulls.valid.iter().collect())
    }

    /// The values without Arrow's layout.
    #[must_use]
    pub fn plain(&self) -> Plain<'_> {
        match &self.values {
            Values::Floats(values) => Plain::Floats(values),
            Values::Counts(values) => Plain::Counts(values),
            Values::ShortCounts(values) => Plain::ShortCounts(values),
            Values::Integers(values) => Plain::Integers(values),
            Values::Flags(bits) => Plain::Flags(bits.iter().collect()),
            Values::Strings { views, long, .. } => coded(views, long),
        }
    }

    /// The format string of the type (Arrow C data interface, *data type description*).
    pub(crate) const fn format(&self) -> &'static CStr {
        match self.values {
            Values::Floats(_) => c"g",
            Values::Counts(_) => c"L",
            Values::ShortCounts(_) => c"I",
            Values::Integers(_) => c"l",
            Values::Flags(_) => c"b",
            Values::Strings { .. } => c"vu",
        }
    }

    /// The buffers of the type's layout, validity first. They live as long as the column.
    pub(crate) fn buffers(&self) -> Vec<*const c_void> {
        let validity = match self.nulls.count {
            0 => std::ptr::null(),
            _ => self.nulls.valid.octets.as_ptr().cast(),
        };
        let mut buffers = vec![validity];
        match &self.values {
            Values::Floats(values) => buffers.push(values.as_ptr().cast()),
            Values::Counts(values) => buffers.push(values.as_ptr().cast()),
            Values::ShortCounts(values) => buffers.push(values.as_ptr().cast()),
            Values::Integers(values) => buffers.push(values.as_ptr().cast()),
            Values::Flags(bits) => buffers.push(bits.octets.as_ptr().cast()),
            Values::Strings { views, long, sizes } => {
                buffers.push(views.as_ptr().cast());
                buffers.extend(long.iter().map(|buffer| buffer.as_ptr().cast()));
                buffers.push(sizes.as_ptr().cast());
            }
        }
        buffers
    }
}

/// Values with zero in place of nulls, and the nulls.
fn split<T: Default>(values: impl IntoIterator<Item = Option<T>>) -> (Vec<T>, Nulls) {
    let mut nulls = Nulls::default();
    let values = values
        .into_iter()
        .enumerate()
        .map(|(row, value)| {
            nulls.push(row, value.is_none());
            value.unwrap_or_default()
        })
        .collect();
    (values, nulls)
}

/// The view of a string that fits into it: its length, then its octets.
fn inline(text: &str) -> u128 {
    let mut view = [0; 16];
    view[..4].copy_from_slice(&short(text.len()).to_ne_bytes());
    view[4..4 + text.len()].copy_from_slice(text.as_bytes());
    u128::from_ne_bytes(view)
}

/// Strings as indices into the list of distinct strings. Equal strings have equal views: a long string is stored once.
fn coded(views: &[u128], long: &[Vec<u8>]) -> Plain<'static> {
    let mut known: BTreeMap<u128, u32> = BTreeMap::new();
    let mut names = Vec::new();
    // Rows of one flow follow one another.
    let mut last: Option<(u128, u32)> = None;
    let codes = views
        .iter()
        .map(|&view| match last {
            Some((same, code)) if same == view => code,
            _ => {
                let code = *known.entry(view).or_insert_with(|| {
                    names.push(text_of(view, long));
                    u32::try_from(names.len() - 1).expect("a table has fewer than 2^32 rows")
                });
                last = Some((view, code));
                code
            }
        })
        .collect();
    Plain::Strings { codes, names }
}

/// The string of a view.
fn text_of(view: u128, long: &[Vec<u8>]) -> String {
    let octets = view.to_ne_bytes();
    let field = |at: usize| {
        let number = i32::from_ne_bytes(octets[at..at + 4].try_into().expect("four octets"));
        usize::try_from(number).expect("a view has no negative numbers")
    };
    let length = field(0);
    let text = if length <= INLINE {
        &octets[4..4 + length]
    } else {
        &long[field(8)][field(12)..][..length]
    };
    String::from_utf8_lossy(text).into_owned()
}

/// Stores a long string. Returns its view: length, first four octets, buffer and offset.
fn store(long: &mut Vec<Vec<u8>>, text: &str) -> u128 {
    if long
        .last()
        .is_none_or(|buffer| buffer.len() + text.len() > LONGEST_BUFFER)
    {
        long.push(Vec::new());
    }
    let last = long.len() - 1;
    let offset = long[last].len();
    long[last].extend_from_slice(text.as_bytes());
    let mut view = [0; 16];
    view[..4].copy_from_slice(&short(text.len()).to_ne_bytes());
    view[4..8].copy_from_slice(&text.as_bytes()[..4]);
    view[8..12].copy_from_slice(&short(last).to_ne_bytes());
    view[12..].copy_from_slice(&short(offset).to_ne_bytes());
    u128::from_ne_bytes(view)
}

/// A length or offset of a view. A name or a label is far shorter than 2 GiB.
fn short(length: usize) -> i32 {
    i32::try_from(length).expect("strings of a table are shorter than 2 GiB")
}

pub(crate) fn length_of(length: usize) -> i64 {
    i64::try_from(length).expect("memory holds fewer than 2^63 octets")
}
