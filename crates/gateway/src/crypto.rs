//! Handshake, session keys, replay windows, cookies and stamps.

mod aead;
mod cookie;
mod curve;
mod handshake;
mod random;
mod replay;
mod session;
mod stamp;

pub(crate) use cookie::mac;
pub use cookie::{Jar, MacKey, Meter, open_cookie, with_mac2};
pub use curve::{Identity, public_key};
pub use handshake::{Answer, Keys, Opened, Pending, SessionKeys, Unread, open};
pub use random::Entropy;
pub use replay::Window;
pub use session::{MESSAGE_LIMIT, Session};
pub use stamp::{StampKey, Stamps};
