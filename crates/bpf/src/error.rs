//! Errors of a control, or of the machine that it is for.

/// Error of compiling or loading a control. The text after the first `"; "` of a message is help.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No control of that name is shipped.
    #[error(
        "no eBPF control `{name}` ships; there are {}",
        crate::shipped::names()
    )]
    Unknown {
        /// The requested name.
        name: String,
    },
    /// The file cannot be read.
    #[error("cannot read `{file}`: {reason}")]
    Unreadable {
        /// The file's name, as given.
        file: String,
        /// The system's reason.
        reason: String,
    },
    /// A compiler, or another part of the system, is missing or failed.
    #[error("{0}")]
    System(String),
    /// The compiler rejected the file.
    #[error("`{file}` does not compile: {message}")]
    Compile {
        /// The file's name.
        file: String,
        /// The relevant part of the compiler's messages.
        message: String,
    },
    /// The file compiles, but is not a control that can run here.
    #[error("`{file}` {what}")]
    Unfit {
        /// The file's name.
        file: String,
        /// Description of the error.
        what: String,
    },
    /// The kernel rejected the control.
    #[error("the kernel refuses `{file}`: {message}")]
    Refused {
        /// The file's name.
        file: String,
        /// The relevant part of the verifier's messages.
        message: String,
    },
}
