//! Linear equations over GF(2⁸): determines the unknowns that they settle, as sums of right-hand
//! sides.

use crate::gf256;

/// An unknown that the equations settle: the sum of each equation's right-hand side times its
/// factor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// Its index.
    pub unknown: usize,
    /// A factor for each equation.
    pub factors: Vec<u8>,
}

/// Returns the unknowns that the equations settle, by Gauss-Jordan elimination. Each equation is a
/// row with one coefficient per unknown.
///
/// # Panics
/// If a row is shorter than there are unknowns.
#[must_use]
pub fn settle(mut rows: Vec<Vec<u8>>, unknowns: usize) -> Vec<Settled> {
    let n = rows.len();
    let mut factors: Vec<Vec<u8>> = (0..n)
        .map(|k| (0..n).map(|j| u8::from(j == k)).collect())
        .collect();
    let mut rank = 0;
    let mut pivots = Vec::new();
    for unknown in 0..unknowns {
        let Some(row) = (rank..n).find(|row| rows[*row][unknown] != 0) else {
            continue;
        };
        rows.swap(rank, row);
        factors.swap(rank, row);
        let inverse = gf256::inverse(rows[rank][unknown]).expect("a pivot is not 0");
        for part in [&mut rows[rank], &mut factors[rank]] {
            let mut scaled = vec![0; part.len()];
            gf256::multiply_add(&mut scaled, part, inverse);
            *part = scaled;
        }
        for other in 0..n {
            let factor = rows[other][unknown];
            if other != rank && factor != 0 {
                let pivot = rows[rank].clone();
                gf256::multiply_add(&mut rows[other], &pivot, factor);
                let pivot = factors[rank].clone();
                gf256::multiply_add(&mut factors[other], &pivot, factor);
            }
        }
        pivots.push((unknown, rank));
        rank += 1;
    }
    pivots
        .into_iter()
        .filter(|(_, row)| rows[*row].iter().filter(|c| **c != 0).count() == 1)
        .map(|(unknown, row)| Settled {
            unknown,
            factors: factors[row].clone(),
        })
        .collect()
}
