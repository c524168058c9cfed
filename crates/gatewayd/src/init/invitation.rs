//! The line from which the other end makes its files.
//!
//! It begins with `anabranch1:`; the rest is base64 (RFC 4648 §5) of the other end's private key,
//! the public key of the end that made the line, facts as lines of text, and four octets of a hash
//! that shows a line which was cut or mistyped.

use std::fmt::Write as _;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use blake2::{Blake2s256, Digest};
use ipnet::IpNet;
use qrcodegen::{QrCode, QrCodeEcc};

use crate::{config::Endpoint, key::Key};

const PREFIX: &str = "anabranch1:";
/// The most octets of a line.
pub const MOST: u64 = 4096;
const KEY: usize = 32;
const CHECK: usize = 4;

/// The facts that the other end needs.
#[derive(PartialEq, Eq)]
pub struct Invitation {
    /// The private key of the end that takes the line.
    pub private: Key,
    /// The public key of the end that made it.
    pub public: Key,
    /// The name of that end.
    pub name: String,
    /// Addresses of the end that takes the line.
    pub addresses: Vec<IpNet>,
    /// Networks reached through the end that made it.
    pub allowed: Vec<IpNet>,
    pub endpoints: Vec<Endpoint>,
}

impl Invitation {
    /// The line.
    pub fn line(&self) -> String {
        let mut text = format!("n {}\n", self.name);
        for address in &self.addresses {
            let _ = writeln!(text, "a {address}");
        }
        for network in &self.allowed {
            let _ = writeln!(text, "r {network}");
        }
        for endpoint in &self.endpoints {
            let _ = writeln!(text, "e {endpoint}");
        }
        let mut octets = [&self.private.0[..], &self.public.0, text.as_bytes()].concat();
        let check = check(&octets);
        octets.extend_from_slice(&check);
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(octets))
    }

    /// Reads a line.
    ///
    /// # Errors
    /// A message that does not quote the line, which has a private key.
    pub fn read(line: &str) -> Result<Self, String> {
        let expected =
            "expected the whole line that `anabranch-gateway init` printed at the other end";
        let line = line.trim();
        let Some(rest) = line.strip_prefix(PREFIX) else {
            let later = line
                .strip_prefix("anabranch")
                .and_then(|rest| rest.split_once(':'));
            return Err(match later {
                Some((version, _)) if version.bytes().all(|octet| octet.is_ascii_digit()) => {
                    "the line is from another version of anabranch-gateway; expected the same version at both ends".to_owned()
                }
                _ => format!("the line does not begin with `{PREFIX}`; {expected}"),
            });
        };
        // A terminal or a mail program may have broken the line.
        let rest: String = rest
            .chars()
            .filter(|letter| !letter.is_whitespace())
            .collect();
        let damaged = || format!("the line is cut or mistyped; {expected}");
        let octets = URL_SAFE_NO_PAD.decode(rest).map_err(|_| damaged())?;
        let end = octets.len().checked_sub(CHECK).ok_or_else(damaged)?;
        let (content, given) = octets.split_at(end);
        if given != check(content) {
            return Err(damaged());
        }
        let (private, rest) = content.split_first_chunk::<KEY>().ok_or_else(damaged)?;
        let (public, text) = rest.split_first_chunk::<KEY>().ok_or_else(damaged)?;
        let text = std::str::from_utf8(text).map_err(|_| damaged())?;
        let mut invitation = Self {
            private: Key(*private),
            public: Key(*public),
            name: String::new(),
            addresses: Vec::new(),
            allowed: Vec::new(),
            endpoints: Vec::new(),
        };
        for fact in text.lines() {
            let unknown = || {
                "the line has a fact that this version does not know; expected the same version at both ends".to_owned()
            };
            let (kind, value) = fact.split_once(' ').ok_or_else(unknown)?;
            match kind {
                "n" => value.clone_into(&mut invitation.name),
                "a" => invitation
                    .addresses
                    .push(value.parse().map_err(|_| unknown())?),
                "r" => invitation
                    .allowed
                    .push(value.parse().map_err(|_| unknown())?),
                "e" => invitation
                    .endpoints
                    .push(value.parse().map_err(|_| unknown())?),
                _ => return Err(unknown()),
            }
        }
        if invitation.name.is_empty()
            || invitation.addresses.is_empty()
            || invitation.endpoints.is_empty()
        {
            return Err(damaged());
        }
        Ok(invitation)
    }
}

fn check(octets: &[u8]) -> [u8; CHECK] {
    let hash = Blake2s256::digest(octets);
    std::array::from_fn(|n| hash[n])
}

/// The line as QR code of half blocks, dark on light; nothing if it is too long for one.
pub fn qr(line: &str) -> Option<String> {
    const BORDER: i32 = 2;
    let code = QrCode::encode_text(line, QrCodeEcc::Low).ok()?;
    let mut text = String::new();
    let all = -BORDER..code.size() + BORDER;
    for y in all.clone().step_by(2) {
        // Terminals are dark more often than light: light modules are drawn.
        for x in all.clone() {
            let is_light = |y| !code.get_module(x, y);
            text.push(match (is_light(y), is_light(y + 1)) {
                (true, true) => '█',
                (true, false) => '▀',
                (false, true) => '▄',
                (false, false) => ' ',
            });
        }
        text.push('\n');
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Invitation, qr};
    use crate::key::Key;

    fn invitation() -> Invitation {
        Invitation {
            private: Key([1; 32]),
            public: Key([2; 32]),
            name: "server".to_owned(),
            addresses: vec!["10.9.0.2/24".parse().expect("a prefix")],
            allowed: vec!["10.9.0.1/32".parse().expect("a prefix")],
            endpoints: vec!["gw.example.net:51900".parse().expect("an endpoint")],
        }
    }

    #[test]
    fn a_line_is_read_as_written_also_if_it_was_broken() {
        let line = invitation().line();
        let broken = format!("  {}\n {}\n", &line[..80], &line[80..]);
        for text in [line, broken] {
            assert!(Invitation::read(&text) == Ok(invitation()));
        }
    }

    #[test]
    fn wrong_lines_are_refused_without_their_content() {
        let line = invitation().line();
        let swapped = line.replacen("AQEB", "AQEC", 1);
        for (wrong, said) in [
            (&line[..line.len() - 1], "cut or mistyped"),
            (&line[1..], "does not begin with"),
            (swapped.as_str(), "cut or mistyped"),
            ("anabranch2:AAAA", "another version"),
            ("anabranch1:", "cut or mistyped"),
            ("", "does not begin with"),
        ] {
            let why = Invitation::read(wrong).err().expect("it is refused");
            assert!(why.contains(said), "{why}");
            assert!(!why.contains("AQEB"), "{why}");
        }
    }

    #[test]
    fn a_code_fits_a_terminal() {
        let code = qr(&invitation().line()).expect("it fits");
        let width = code.lines().map(|line| line.chars().count()).max();
        assert!(width <= Some(80), "{width:?}");
    }

    proptest! {
        #[test]
        fn any_text_has_a_result(text: String, cut in 0_usize..200, letter: char) {
            let _ = Invitation::read(&text);
            let _ = Invitation::read(&format!("anabranch1:{text}"));
            let line = invitation().line();
            let cut = cut.min(line.len());
            let changed = format!("{}{letter}{}", &line[..cut], &line[cut..]);
            if !letter.is_whitespace() || cut < 11 {
                prop_assert!(Invitation::read(&changed).is_err() || changed.trim() == line);
            }
        }
    }
}
