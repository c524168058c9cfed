//! Handshake, session keys, replay windows and cookies.

mod cookie;
mod handshake;
mod random;
mod replay;
mod session;

pub use cookie::{Jar, MacKey, Meter, open_cookie, with_mac2};
pub use handshake::{Answer, Keys, Pending, SessionKeys, public_key, respond};
pub use random::Entropy;
pub use replay::Window;
pub use session::{MESSAGE_LIMIT, Session};
