//! Decimal numbers, read and written exactly.

use std::fmt;

/// `±mantissa × 10^exponent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decimal {
    negative: bool,
    mantissa: u128,
    exponent: i32,
}

/// The text does not begin with a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotANumber;

/// Longer texts are not quantities; the bound keeps exponents within `i32`.
const MAX_LENGTH: usize = 128;
/// More digits than a `u64` has, and few enough that the product with a unit (below 2^52) fits a
/// `u128`.
const MAX_DIGITS: u32 = 22;

impl Decimal {
    /// The number at the start of `text`, and the text after it, without leading blanks.
    pub(super) fn prefix(text: &str) -> Result<(Self, &str), NotANumber> {
        if text.len() > MAX_LENGTH {
            return Err(NotANumber);
        }
        let (negative, body) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let bytes = body.as_bytes();
        let mut number = Self {
            negative,
            mantissa: 0,
            exponent: 0,
        };
        let mut kept = 0;
        let mut at = 0;
        let mut fraction = false;
        let mut last_is_digit = false;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'0'..=b'9' => {
                    let significant = number.mantissa != 0 || byte != b'0';
                    if kept < MAX_DIGITS {
                        number.mantissa = number.mantissa * 10 + u128::from(byte - b'0');
                        number.exponent -= i32::from(fraction);
                        kept += u32::from(significant);
                    } else {
                        // Further digits only shift the preceding ones.
                        number.exponent += i32::from(!fraction);
                    }
                    last_is_digit = true;
                }
                b'.' if !fraction && last_is_digit => {
                    fraction = true;
                    last_is_digit = false;
                }
                _ => break,
            }
            at += 1;
        }
        if !last_is_digit {
            return Err(NotANumber);
        }
        if let Some((exponent, length)) = exponent(&body[at..]) {
            number.exponent += exponent;
            at += length;
        }
        Ok((number, body[at..].trim_start_matches(' ')))
    }

    pub(super) fn is_negative(self) -> bool {
        self.negative && self.mantissa != 0
    }

    pub(super) fn is_zero(self) -> bool {
        self.mantissa == 0
    }

    pub(super) fn is_whole(self) -> bool {
        self.exponent >= 0
            || 10_u128
                .checked_pow(self.exponent.unsigned_abs())
                .map_or(self.mantissa == 0, |power| {
                    self.mantissa.is_multiple_of(power)
                })
    }

    /// The magnitude of the number times `scale`, rounded to the nearest integer; `None` if it
    /// exceeds a `u64`.
    pub(super) fn times(self, scale: u64) -> Option<u64> {
        let product = self.mantissa * u128::from(scale);
        if product == 0 {
            return Some(0);
        }
        let power = 10_u128.checked_pow(self.exponent.unsigned_abs());
        let value = match (self.exponent >= 0, power) {
            (true, power) => product.checked_mul(power?)?,
            (false, Some(power)) => {
                let rest = product % power;
                product / power + u128::from(rest >= power - rest)
            }
            // More than 38 decimal places below a product of at most 39 digits.
            (false, None) => 0,
        };
        u64::try_from(value).ok()
    }
}

/// An exponent such as `e-3` at the start of `text`, and its length. Anything else is a unit.
fn exponent(text: &str) -> Option<(i32, usize)> {
    let rest = text.strip_prefix(['e', 'E'])?;
    let digits = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    // Nine digits fit an i32.
    if count == 0 || count > 8 {
        return None;
    }
    let signed = &rest[..rest.len() - digits.len() + count];
    Some((signed.parse().ok()?, 1 + signed.len()))
}

/// Writes `value ÷ scale` with all its digits, and the unit's name.
pub(super) fn write(value: u64, scale: u64, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (whole, mut rest) = (value / scale, value % scale);
    write!(f, "{whole}")?;
    if rest != 0 {
        f.write_str(".")?;
        // Scales of inexact quotients are powers of ten, so this terminates.
        let mut place = scale / 10;
        while rest != 0 {
            write!(f, "{}", rest / place)?;
            rest %= place;
            place /= 10;
        }
    }
    write!(f, " {name}")
}
