//! Divisions in the assembly of a native control, as eBPF defines them.
//!
//! RFC 9669 §4.1: "If BPF program execution would result in division by zero, the destination
//! register is instead set to zero." Modulo by zero leaves the destination unchanged, and the
//! quotient of the least number and −1 is the least number, with the remainder 0. The instructions
//! of x86-64 raise an exception instead, which would end the process. Those of ARM need no guard.
//!
//! Only instructions are defined. A compiler may replace `a / b == 0` by `a < b`; the kernel's does
//! so, too.

use std::fmt::Write as _;

/// Registers and suffix of a division's width.
struct Width {
    /// Of the mnemonic, as in `divl`.
    suffix: char,
    /// Dividend, then quotient.
    quotient: &'static str,
    /// Upper half of the dividend, then remainder.
    remainder: &'static str,
}

const WIDTHS: [Width; 4] = [
    width('b', "%al", "%ah"),
    width('w', "%ax", "%dx"),
    width('l', "%eax", "%edx"),
    width('q', "%rax", "%rdx"),
];

const fn width(suffix: char, quotient: &'static str, remainder: &'static str) -> Width {
    Width {
        suffix,
        quotient,
        remainder,
    }
}

/// `assembly` in AT&T syntax, with divisions by 0 and by −1 guarded on x86-64.
pub(super) fn guarded(assembly: &str) -> String {
    if !cfg!(target_arch = "x86_64") {
        return assembly.to_owned();
    }
    let mut text = String::with_capacity(assembly.len());
    for line in assembly.lines() {
        if let Some((width, divisor, signed)) = division(line) {
            guard(&mut text, line, width, divisor, signed);
        } else {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// Width and divisor of a division, and whether it is signed.
fn division(line: &str) -> Option<(&'static Width, &str, bool)> {
    let code = line.split('#').next()?.trim();
    let (mnemonic, divisor) = code.split_once(char::is_whitespace)?;
    let (signed, suffix) = match mnemonic.strip_prefix("idiv") {
        Some(suffix) => (true, suffix),
        None => (false, mnemonic.strip_prefix("div")?),
    };
    let mut suffix = suffix.chars();
    let (letter, None) = (suffix.next()?, suffix.next()) else {
        return None;
    };
    let width = WIDTHS.iter().find(|width| width.suffix == letter)?;
    Some((width, divisor.trim(), signed))
}

/// Writes the division `line` with its guard. The compiler expects no flags after a division, and
/// its divisor is in neither half of the dividend. The dividend is not wider than the quotient.
fn guard(text: &mut String, line: &str, width: &Width, divisor: &str, signed: bool) {
    let Width {
        suffix: s,
        quotient,
        remainder,
    } = width;
    let _ = write!(
        text,
        "\tcmp{s}\t$0, {divisor}\n\
         \tjne\t7701f\n\
         \tmov{s}\t{quotient}, {remainder}\n\
         \tmov{s}\t$0, {quotient}\n\
         \tjmp\t7703f\n\
         7701:\n"
    );
    if signed {
        let _ = write!(
            text,
            "\tcmp{s}\t$-1, {divisor}\n\
             \tjne\t7702f\n\
             \tneg{s}\t{quotient}\n\
             \tmov{s}\t$0, {remainder}\n\
             \tjmp\t7703f\n\
             7702:\n"
        );
    }
    let _ = write!(text, "{line}\n7703:\n");
}
