//! What can be wrong with a control, or with the machine it is for.

/// Why a control cannot be had. Text after the first `"; "` of a message is help.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No control of that name ships.
    #[error(
        "no eBPF control `{name}` ships; there are {}",
        crate::shipped::names()
    )]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The file cannot be read.
    #[error("cannot read `{file}`: {reason}")]
    Unreadable {
        /// As it was named.
        file: String,
        /// The system's reason.
        reason: String,
    },
    /// A compiler, or something else of the system's, is missing or failed.
    #[error("{0}")]
    System(String),
    /// The compiler refused the file.
    #[error("`{file}` does not compile: {message}")]
    Compile {
        /// The file's name.
        file: String,
        /// Of the compiler's words what matters.
        message: String,
    },
    /// It compiles, but is not a control that can run here.
    #[error("`{file}` {what}")]
    Unfit {
        /// The file's name.
        file: String,
        /// What is the matter.
        what: String,
    },
    /// The kernel refused it.
    #[error("the kernel refuses `{file}`: {message}")]
    Refused {
        /// The file's name.
        file: String,
        /// Of the verifier's words what matters.
        message: String,
    },
}
