//! Requests and answers of HTTP/1.1. The parser is `httparse`; here are limits and fields.

use std::net::IpAddr;

use base64::{Engine, engine::general_purpose::STANDARD};

/// The most octets of a request's head.
const MOST: usize = 8192;
/// The most fields of a request's head.
const FIELDS: usize = 64;

/// A request to read something.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    /// The path, decoded.
    pub path: String,
    /// Keys and values of the query, decoded.
    pub query: Vec<(String, String)>,
    /// The password of Basic authorization, or the Bearer token.
    pub secret: Option<String>,
    /// Whether `Host` is a name of this machine's loopback interface.
    pub is_local: bool,
    /// Whether the content is to be left out.
    pub is_head: bool,
}

/// The result of parsing.
#[derive(Debug)]
pub enum Parsed {
    /// More octets must come.
    Part,
    Whole(Request),
    /// The answer to a request that is refused.
    Wrong(Answer),
}

/// Parses the head of a request.
pub fn parse(octets: &[u8]) -> Parsed {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut head = httparse::Request::new(&mut fields);
    match head.parse(octets) {
        Ok(httparse::Status::Complete(length)) if length <= MOST => {}
        Ok(httparse::Status::Partial) if octets.len() < MOST => return Parsed::Part,
        Ok(_) | Err(httparse::Error::TooManyHeaders) => {
            return Parsed::Wrong(Answer::text(431, "the request's head is too long\n"));
        }
        Err(_) => return Parsed::Wrong(Answer::text(400, "this is no HTTP/1.1 request\n")),
    }
    let is_head = match head.method {
        Some("GET") => false,
        Some("HEAD") => true,
        _ => return Parsed::Wrong(Answer::text(405, "expected GET or HEAD\n")),
    };
    let field = |name: &str| {
        let mut all = head.headers.iter();
        let found = all.find(|field| field.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(found.value).ok()
    };
    let target = head.path.unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((
            decoded(&key.replace('+', " "))?,
            decoded(&value.replace('+', " "))?,
        ))
    });
    let (Some(path), Some(query)) = (decoded(path), pairs.collect()) else {
        return Parsed::Wrong(Answer::text(
            400,
            "the target is not percent-encoded UTF-8\n",
        ));
    };
    Parsed::Whole(Request {
        path,
        query,
        secret: field("authorization").and_then(secret),
        is_local: field("host").is_some_and(is_local),
        is_head,
    })
}

/// Decodes percent-encoding (RFC 3986 §2.1).
fn decoded(text: &str) -> Option<String> {
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(octet) = rest.next() {
        octets.push(match octet {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            _ => octet,
        });
    }
    String::from_utf8(octets).ok()
}

/// The secret of an `Authorization` field (RFC 7617, RFC 6750).
fn secret(field: &str) -> Option<String> {
    let (scheme, value) = field.trim().split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(value.trim().to_owned());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let pair = String::from_utf8(STANDARD.decode(value.trim()).ok()?).ok()?;
    Some(pair.split_once(':')?.1.to_owned())
}

/// Whether a `Host` field names the loopback interface.
fn is_local(host: &str) -> bool {
    let host = host.trim();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|octet| octet.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    let address = bare.unwrap_or(name).parse::<IpAddr>();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    status: u16,
    kind: &'static str,
    more: &'static str,
    /// The number that scripts and styles of the page must have.
    nonce: Option<String>,
    content: String,
}

/// The place of the number in the page.
const NONCE: &str = "{nonce}";

impl Answer {
    /// A text for people.
    pub fn text(status: u16, text: &str) -> Self {
        Self {
            status,
            kind: "text/plain; charset=utf-8",
            more: "",
            nonce: None,
            content: text.to_owned(),
        }
    }

    /// A JSON document.
    pub fn json(status: u16, text: &str) -> Self {
        let kind = "application/json";
        Self {
            kind,
            ..Self::text(status, text)
        }
    }

    /// The page; nothing in it is executed without this random number.
    pub fn page(text: &str, random: [u8; 16]) -> Self {
        let nonce = STANDARD.encode(random);
        Self {
            kind: "text/html; charset=utf-8",
            nonce: Some(nonce.clone()),
            ..Self::text(200, &text.replace(NONCE, &nonce))
        }
    }

    /// Asks for the token.
    pub fn unauthorized() -> Self {
        let text = "expected the token as password of any user\n";
        Self {
            more: "WWW-Authenticate: Basic realm=\"anabranch-gateway\", charset=\"UTF-8\"\r\n",
            ..Self::text(401, text)
        }
    }

    /// The answer as octets, with the content unless it is left out.
    pub fn octets(&self, is_head: bool) -> Vec<u8> {
        let reason = match self.status {
            200 => "OK",
            400 => "Bad Request",
            401 => "Unauthorized",
            404 => "Not Found",
            405 => "Method Not Allowed",
            421 => "Misdirected Request",
            431 => "Request Header Fields Too Large",
            _ => "Service Unavailable",
        };
        let allow = if self.status == 405 {
            "Allow: GET, HEAD\r\n"
        } else {
            ""
        };
        // The page has its style and script inside and loads nothing from elsewhere.
        let own = self.nonce.as_ref().map(|nonce| format!("'nonce-{nonce}'"));
        let own = own.unwrap_or_else(|| "'none'".to_owned());
        let head = format!(
            "HTTP/1.1 {} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\
             Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
             Content-Security-Policy: default-src 'none'; script-src {own}; style-src {own}; \
             img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
             {allow}{}\r\n",
            self.status,
            self.kind,
            self.content.len(),
            self.more,
        );
        let content = if is_head { "" } else { &self.content };
        [head.as_bytes(), content.as_bytes()].concat()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Parsed, Request, is_local, parse};

    fn whole(text: &str) -> Request {
        match parse(text.as_bytes()) {
            Parsed::Whole(request) => request,
            other => panic!("{text:?}: {other:?}"),
        }
    }

    fn status(text: &str) -> u16 {
        match parse(text.as_bytes()) {
            Parsed::Wrong(answer) => answer.status,
            other => panic!("{text:?}: {other:?}"),
        }
    }

    #[test]
    fn paths_queries_and_secrets_are_read() {
        let request = whole(
            "GET /history?range=day&peer=a%20%22b%22+c HTTP/1.1\r\nHost: [::1]:9470\r\nAuthorization: Basic eDpzZWNyZXQ6Mg==\r\n\r\n",
        );
        assert_eq!(request.path, "/history");
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(
            request.query,
            [pair("range", "day"), pair("peer", "a \"b\" c")]
        );
        assert_eq!(request.secret.as_deref(), Some("secret:2"));
        assert!(request.is_local && !request.is_head);
        let request =
            whole("HEAD / HTTP/1.1\r\nauthorization: bearer abc\r\nhost: gw.example\r\n\r\n");
        assert_eq!(request.secret.as_deref(), Some("abc"));
        assert!(!request.is_local && request.is_head);
    }

    #[test]
    fn wrong_requests_have_answers() {
        let long = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(9000));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(65));
        let cases = [
            ("POST / HTTP/1.1\r\n\r\n", 405),
            ("\x16\x03\x01\x02", 400),
            ("GET /%zz HTTP/1.1\r\n\r\n", 400),
            ("GET /%ff HTTP/1.1\r\n\r\n", 400),
            (long.as_str(), 431),
            (many.as_str(), 431),
        ];
        for (text, expected) in cases {
            assert_eq!(status(text), expected, "{text:.40}");
        }
        assert!(matches!(parse(b"GET / HT"), Parsed::Part));
        let endless = "GET / HTTP/1.1\r\nx: ".to_owned() + &"y".repeat(9000);
        assert_eq!(status(&endless), 431);
    }

    #[test]
    fn only_names_of_the_loopback_interface_are_local() {
        for host in [
            "localhost",
            "LocalHost:80",
            "127.0.0.1:9470",
            "127.9.9.9",
            "[::1]:1",
            "[::1]",
        ] {
            assert!(is_local(host), "{host}");
        }
        for host in [
            "gw.example",
            "192.0.2.1:80",
            "localhost.example",
            "127.0.0.1.example",
            "",
        ] {
            assert!(!is_local(host), "{host}");
        }
    }

    proptest! {
        /// Requests of any octets, whole or cut, are read or refused.
        #[test]
        fn any_octets_have_a_result(octets: Vec<u8>, text in "(GET|HEAD|PUT) [^\r\n]{0,40} HTTP/1.[01]\r\n(Host|Authorization|x): (Basic )?[^\r\n]{0,40}\r\n\r\n") {
            let _ = parse(&octets);
            for cut in 0..text.len() {
                let _ = parse(&text.as_bytes()[..cut]);
            }
            let _ = parse(text.as_bytes());
        }
    }
}
