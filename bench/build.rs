//! Passes the compiler's version to the program: instruction counts are compared per compiler.

use std::{env, error::Error, process::Command};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC");
    let output = Command::new(env::var("RUSTC")?).arg("-vV").output()?;
    let text = String::from_utf8(output.stdout)?;
    let value = |key: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(key))
            .map_or("unknown", str::trim)
            .to_owned()
    };
    let (release, commit) = (value("release:"), value("commit-hash:"));
    let target = env::var("TARGET")?;
    // Distributions build the same release from the same commit, and may patch it.
    let commit = commit.get(..9).unwrap_or(&commit);
    println!("cargo::rustc-env=BENCH_COMPILER=rustc {release} ({commit}) {target}");
    Ok(())
}
