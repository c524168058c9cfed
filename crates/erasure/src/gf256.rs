//! The field GF(2⁸) as erasure codes use it (RFC 8681 §3.7.1, RFC 5510 §8.1).
//!
//! Elements are octets. Addition is XOR; multiplication is that of polynomials over GF(2) modulo
//! x⁸ + x⁴ + x³ + x² + 1.

/// The polynomial without its highest term.
const POLYNOMIAL: u8 = 0x1d;

/// The products of a factor with each element.
#[cfg(not(target_arch = "wasm32"))]
#[inline]
fn row(factor: u8) -> &'static [u8; 256] {
    static PRODUCTS: [[u8; 256]; 256] = products();
    &PRODUCTS[usize::from(factor)]
}

/// The products of a factor with each element. A page makes the table at its first use: it has
/// 64 KiB, which no compression shortens.
#[cfg(target_arch = "wasm32")]
#[inline]
fn row(factor: u8) -> &'static [u8; 256] {
    static PRODUCTS: std::sync::LazyLock<Box<[[u8; 256]; 256]>> =
        std::sync::LazyLock::new(|| Box::new(products()));
    &PRODUCTS[usize::from(factor)]
}

#[expect(
    clippy::large_stack_arrays,
    reason = "it is made when the program is compiled, and once in a page"
)]
const fn products() -> [[u8; 256]; 256] {
    let mut table = [[0; 256]; 256];
    let mut a = 1;
    while a < 256 {
        // Each row is derived from that of half the factor: doubling is cheap.
        let mut b = 1;
        while b < 256 {
            let half = table[a >> 1][b];
            let doubled = (half << 1) ^ if half & 0x80 != 0 { POLYNOMIAL } else { 0 };
            #[expect(clippy::cast_possible_truncation, reason = "below 256")]
            let once = if a & 1 == 1 { b as u8 } else { 0 };
            table[a][b] = doubled ^ once;
            b += 1;
        }
        a += 1;
    }
    table
}

/// `a` times `b`.
#[must_use]
#[inline]
pub fn multiply(a: u8, b: u8) -> u8 {
    row(a)[usize::from(b)]
}

/// The multiplicative inverse of `a`; `None` for 0.
#[must_use]
pub fn inverse(a: u8) -> Option<u8> {
    let row = row(a);
    (0..=u8::MAX).find(|b| row[usize::from(*b)] == 1)
}

/// Adds `factor` times each octet of `from` to the octet at the same index of `to`. Missing octets
/// count as 0, and the length of `to` does not change.
#[inline]
pub fn multiply_add(to: &mut [u8], from: &[u8], factor: u8) {
    match factor {
        0 => {}
        1 => add(to, from),
        _ => {
            let row = row(factor);
            for (to, from) in to.iter_mut().zip(from) {
                *to ^= row[usize::from(*from)];
            }
        }
    }
}

/// Adds (XORs) each octet of `from` to the octet at the same index of `to`.
#[inline]
pub fn add(to: &mut [u8], from: &[u8]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to ^= from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Multiplication by its definition: a product of polynomials, then the remainder.
    fn by_definition(a: u8, b: u8) -> u8 {
        let mut product = 0_u16;
        for bit in 0..8 {
            if b >> bit & 1 == 1 {
                product ^= u16::from(a) << bit;
            }
        }
        for bit in (8..16).rev() {
            if product >> bit & 1 == 1 {
                product ^= (0x100 | u16::from(POLYNOMIAL)) << (bit - 8);
            }
        }
        u8::try_from(product).expect("the remainder has degree 7 at most")
    }

    #[test]
    fn products_match_polynomial_multiplication() {
        for a in 0..=u8::MAX {
            for b in 0..=u8::MAX {
                assert_eq!(multiply(a, b), by_definition(a, b), "{a} {b}");
            }
        }
    }

    #[test]
    fn all_but_zero_have_an_inverse() {
        assert_eq!(inverse(0), None);
        for a in 1..=u8::MAX {
            assert_eq!(inverse(a).map(|b| by_definition(a, b)), Some(1));
        }
    }

    #[test]
    fn whole_packets_are_multiplied_octet_by_octet() {
        let from: Vec<u8> = (0..=255).collect();
        for factor in [0, 1, 2, 0x1d, 255] {
            let mut to = vec![7; 256];
            multiply_add(&mut to, &from, factor);
            for (to, from) in to.iter().zip(&from) {
                assert_eq!(*to, 7 ^ by_definition(factor, *from));
            }
        }
    }
}
