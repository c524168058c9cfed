//! The token that clients of the page must give.

use std::{fs, io, os::unix::fs::PermissionsExt, path::Path};

use anabranch_core::system::words;
use anabranch_files::{Files, write_new};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

/// The least characters of a token: 96 bits in base64.
const LEAST: usize = 16;
/// The largest size of its file.
const MOST: u64 = 1024;

/// A token, which is never printed.
pub struct Token(String);

impl Token {
    /// The token in a file; a new one is written there if there is no file. Returns whether it is
    /// new.
    ///
    /// # Errors
    /// A message if the file can be read by others, or has no token.
    pub fn read_or_make(file: &Path) -> Result<(Self, bool), String> {
        let name = file.display();
        let about = match fs::metadata(file) {
            Ok(about) => about,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok((Self::make(file)?, true));
            }
            Err(error) => return Err(format!("{name}: {}", words(&error))),
        };
        let mode = about.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(format!(
                "{name} can be read by others (mode {mode:04o}); expected mode 0600: chmod 600 {name}"
            ));
        }
        let octets = Files::default().read(file, MOST);
        let octets = octets.map_err(|error| format!("{name}: {error}"))?;
        let token = String::from_utf8_lossy(&octets).trim().to_owned();
        let is_plain = token.bytes().all(|octet| octet.is_ascii_graphic());
        if token.len() < LEAST || !is_plain {
            return Err(format!(
                "{name} has no token; expected {LEAST} characters at least, without blanks, or a name of no file for a new one"
            ));
        }
        Ok((Self(token), false))
    }

    fn make(file: &Path) -> Result<Self, String> {
        let mut octets = [0; 18];
        getrandom::fill(&mut octets).map_err(|error| format!("no randomness: {error}"))?;
        let token = URL_SAFE_NO_PAD.encode(octets);
        write_new(file, format!("{token}\n").as_bytes(), 0o600)
            .map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(Self(token))
    }

    /// Whether a client's token is this one. The time does not depend on the place of a difference.
    pub fn is(&self, given: &str) -> bool {
        let pairs = self.0.bytes().zip(given.bytes());
        let different = pairs.fold(0, |different, (own, given)| different | (own ^ given));
        std::hint::black_box(different) == 0 && self.0.len() == given.len()
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::Token;

    #[test]
    fn a_token_is_made_once_and_compared_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("token");
        let (made, is_new) = Token::read_or_make(&file).expect("it is made");
        assert!(is_new);
        let permissions = fs::metadata(&file).expect("it exists").permissions();
        assert_eq!(permissions.mode() & 0o777, 0o600);
        let (read, is_new) = Token::read_or_make(&file).expect("it is read");
        assert!(!is_new && read.is(&made.0));
        for wrong in [
            "",
            &made.0[1..],
            &format!("{}x", made.0),
            &"x".repeat(made.0.len()),
        ] {
            assert!(!made.is(wrong));
        }
    }

    #[test]
    fn a_file_that_others_read_or_without_a_token_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("token");
        for (content, mode, said) in [
            (
                "0123456789abcdef\n",
                0o644,
                "can be read by others (mode 0644)",
            ),
            ("0123456789\n", 0o600, "has no token"),
            ("0123456789 abcdefgh\n", 0o600, "has no token"),
        ] {
            fs::write(&file, content).expect("written");
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("ours");
            let refused = Token::read_or_make(&file).err().expect("it is refused");
            assert!(refused.contains(said), "{refused}");
        }
    }
}
