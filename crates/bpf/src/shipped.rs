//! The shipped controls, and the headers that files are compiled against, as text in the program:
//! an installed program needs no checkout.

/// A shipped control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shipped {
    /// Name, which is that of the twin in the simulator.
    pub name: &'static str,
    /// Name in the kernel, at most 15 characters.
    pub kernel_name: &'static str,
    /// The C file.
    pub text: &'static str,
}

macro_rules! shipped {
    ($($name:literal as $kernel_name:literal,)*) => {
        /// All shipped controls.
        pub const ALL: &[Shipped] = &[$(Shipped {
            name: $name,
            kernel_name: $kernel_name,
            text: include_str!(concat!("../../../bpf/cc/", $name, ".bpf.c")),
        },)*];
    };
}

shipped! {
    "reno" as "ab_reno",
    "cubic-plus" as "ab_cubicplus",
    "westwood-plus" as "ab_westwood",
    "compound" as "ab_compound",
    "vegas" as "ab_vegas",
    "bic" as "ab_bic",
}

/// The shipped control of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Shipped> {
    ALL.iter().find(|shipped| shipped.name == name)
}

/// Names of all shipped controls, for a message.
pub(crate) fn names() -> String {
    let names: Vec<String> = ALL.iter().map(|one| format!("`{}`", one.name)).collect();
    names.join(", ")
}

macro_rules! headers {
    ($($file:literal,)*) => {
        &[$(($file, include_str!(concat!("../../../bpf/include/", $file))),)*]
    };
}

/// Headers that files are compiled against, by their include path, and the shim that is linked with
/// a native control.
pub(crate) const HEADERS: &[(&str, &str)] = headers! {
    "vmlinux.h",
    "bpf/bpf_helpers.h",
    "bpf/bpf_tracing.h",
    "tcp_cc.h",
    "shim.c",
};
