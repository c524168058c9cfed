//! Attributes of netlink messages: writing and reading (netlink(7)).

/// Size of an attribute's header.
const HEADER: usize = 4;
/// Flag of an attribute that contains attributes.
const NESTED: u16 = 1 << 15;
/// Mask of an attribute's type.
const TYPE: u16 = 0x3fff;

/// Writes the attributes of a message.
#[derive(Debug, Default)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    /// Adds an attribute.
    pub fn put(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        let length = u16::try_from(HEADER + value.len()).unwrap_or(u16::MAX);
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }
    /// Adds a text that ends with a zero.
    pub fn put_text(&mut self, kind: u16, text: &str) -> &mut Self {
        let mut octets = text.as_bytes().to_vec();
        octets.push(0);
        self.put(kind, &octets)
    }
    /// Adds an attribute that contains attributes.
    pub fn put_nested(&mut self, kind: u16, write: impl FnOnce(&mut Self)) -> &mut Self {
        let mut inner = Self::default();
        write(&mut inner);
        self.put(kind | NESTED, &inner.0)
    }
}

/// The attributes in `octets`. A truncated attribute ends the list.
pub fn attributes(octets: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = octets;
    std::iter::from_fn(move || {
        let length = usize::from(number_u16(rest)?);
        let kind = number_u16(rest.get(2..)?)? & TYPE;
        let value = rest.get(HEADER..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The first attribute of a type.
pub fn find(octets: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(octets).find_map(|(found, value)| (found == kind).then_some(value))
}

/// The first attribute along a path of nested ones.
pub fn find_nested<'a>(octets: &'a [u8], path: &[u16]) -> Option<&'a [u8]> {
    path.iter()
        .try_fold(octets, |inside, kind| find(inside, *kind))
}

/// The first two octets.
pub fn number_u16(octets: &[u8]) -> Option<u16> {
    octets
        .first_chunk()
        .map(|octets| u16::from_ne_bytes(*octets))
}

/// The first four octets.
pub fn number_u32(octets: &[u8]) -> Option<u32> {
    octets
        .first_chunk()
        .map(|octets| u32::from_ne_bytes(*octets))
}

/// The first eight octets.
pub fn number_u64(octets: &[u8]) -> Option<u64> {
    octets
        .first_chunk()
        .map(|octets| u64::from_ne_bytes(*octets))
}

/// A text up to its first zero.
pub fn text(octets: &[u8]) -> String {
    let end = octets.iter().position(|octet| *octet == 0);
    String::from_utf8_lossy(&octets[..end.unwrap_or(octets.len())]).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Writer, attributes, find, find_nested, number_u32, text};

    #[test]
    fn nested_attributes_are_found() {
        let mut writer = Writer::default();
        writer.put_text(3, "bond0").put_nested(18, |inner| {
            inner.put_text(1, "bond").put_nested(2, |data| {
                data.put(1, &[4]).put(3, &100_u32.to_ne_bytes());
            });
        });
        let octets = writer.0;
        assert_eq!(octets.len() % 4, 0);
        assert_eq!(find(&octets, 3).map(text), Some("bond0".to_owned()));
        let interval = find_nested(&octets, &[18, 2, 3]).and_then(number_u32);
        assert_eq!(interval, Some(100));
        assert_eq!(find_nested(&octets, &[18, 2, 4]), None);
    }

    proptest! {
        #[test]
        fn any_octets_are_read_without_a_panic(octets in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(attributes(&octets).count() <= octets.len() / 4 + 1);
        }
    }
}
