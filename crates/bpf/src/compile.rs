//! Compiling a control's file with a compiler of the system's, in a folder that goes away.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use crate::{Error, Source, shipped};

/// The name under which a control's file is compiled.
const FILE: &str = "control.bpf.c";
/// Where compilers come from.
const PACKAGES: &str = "(Debian's packages: build-essential, clang)";
/// So many of the compiler's errors are shown.
const SHOWN: usize = 3;

/// A folder with a control's file and the headers it includes.
#[derive(Debug)]
pub(crate) struct Workshop<'a> {
    source: &'a Source,
    folder: TempDir,
}

impl<'a> Workshop<'a> {
    pub(crate) fn new(source: &'a Source) -> Result<Self, Error> {
        let write = || -> io::Result<TempDir> {
            let folder = tempfile::Builder::new().prefix("anabranch-").tempdir()?;
            for (path, text) in shipped::HEADERS {
                let path = folder.path().join("include").join(path);
                if let Some(parent) = path.parent() {
                    fs::create_dir_all(parent)?;
                }
                fs::write(path, text)?;
            }
            fs::write(folder.path().join(FILE), &source.text)?;
            Ok(folder)
        };
        let folder = write().map_err(|error| {
            Error::System(format!("cannot write a folder to compile in: {error}"))
        })?;
        Ok(Self { source, folder })
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    /// Runs `compiler` with the folders to look for headers in, then `arguments`; what `file!` stands for
    /// is the control.
    pub(crate) fn run(&self, compiler: &str, arguments: &[&str]) -> Result<(), Error> {
        let mut command = Command::new(compiler);
        command.current_dir(self.folder.path()).env("LC_ALL", "C");
        command.arg("-I").arg("include");
        if let Some(folder) = &self.source.folder {
            let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.clone());
            command.arg("-iquote").arg(folder);
        }
        let output = command.args(arguments).output().map_err(|error| {
            Error::System(format!(
                "cannot run the compiler `{compiler}`: {error}; install it {PACKAGES}"
            ))
        })?;
        if output.status.success() {
            return Ok(());
        }
        Err(Error::Compile {
            file: self.source.name.clone(),
            message: self.shortened(&String::from_utf8_lossy(&output.stderr)),
        })
    }

    /// Of what a compiler or linker says the errors, with the control's own name.
    fn shortened(&self, said: &str) -> String {
        let own = Path::new(&self.source.name).file_name().map_or_else(
            || self.source.name.clone(),
            |name| name.to_string_lossy().into_owned(),
        );
        let mut told: Vec<String> = Vec::new();
        let mut more = 0;
        for line in said.lines() {
            let line = if let Some((_, symbol)) = line.split_once("undefined reference to ") {
                format!(
                    "it calls {}, which controls in the simulator cannot",
                    symbol.trim().replace('\'', "`")
                )
            } else if line.contains("error: ") && !line.contains("ld returned") {
                line.replace(FILE, &own)
            } else {
                continue;
            };
            if told.contains(&line) {
                continue;
            }
            if told.len() < SHOWN {
                told.push(line);
            } else {
                more += 1;
            }
        }
        if told.is_empty() {
            told.extend(said.lines().take(SHOWN).map(str::to_owned));
        }
        if more > 0 {
            told.push(format!("and {more} more"));
        }
        told.join(" | ")
    }
}

/// The control's own object file and the shared object made of it, for the machine we run on.
pub(crate) struct Native {
    pub object: Vec<u8>,
    pub shared: PathBuf,
    /// The shared object is in it.
    _folder: TempDir,
}

/// The control with what it includes, as [`native`] compiles it.
pub(crate) fn preprocessed(source: &Source) -> Result<Vec<u8>, Error> {
    let workshop = Workshop::new(source)?;
    workshop.run(
        "cc",
        &["-std=gnu11", "-O2", "-E", "-P", FILE, "-o", "control.i"],
    )?;
    fs::read(workshop.path("control.i"))
        .map_err(|error| Error::System(format!("cannot read what was compiled: {error}")))
}

pub(crate) fn native(source: &Source) -> Result<Native, Error> {
    let workshop = Workshop::new(source)?;
    let mut compile = vec!["-std=gnu11", "-O2", "-fPIC", "-fno-common"];
    // Newer compilers have these as errors anyway.
    compile.extend([
        "-Werror=implicit-function-declaration",
        "-Werror=incompatible-pointer-types",
        "-Wno-unknown-pragmas",
    ]);
    let with = |more: &[&'static str]| [compile.as_slice(), more].concat();
    workshop.run("cc", &with(&["-c", FILE, "-o", "control.o"]))?;
    workshop.run("cc", &with(&["-c", "include/shim.c", "-o", "shim.o"]))?;
    workshop.run(
        "cc",
        &[
            "-shared",
            "-Wl,-z,defs",
            "-Wl,-Bsymbolic",
            "control.o",
            "shim.o",
            "-o",
            "control.so",
        ],
    )?;
    let object = fs::read(workshop.path("control.o"))
        .map_err(|error| Error::System(format!("cannot read what was compiled: {error}")))?;
    Ok(Native {
        object,
        shared: workshop.path("control.so"),
        _folder: workshop.folder,
    })
}

/// What clang is told for the kernel.
#[cfg(feature = "kernel")]
const FOR_KERNEL: [&str; 6] = [
    "-target",
    "bpf",
    "-mcpu=v3",
    "-O2",
    "-g",
    "-Werror=implicit-function-declaration",
];

/// The object file for the kernel of a program that includes nothing but headers of ours, which are put where they are
/// included. No file is written, so that none can stay.
#[cfg(feature = "kernel")]
pub(crate) fn kernel_alone(name: &str, text: &str) -> Result<Vec<u8>, Error> {
    use std::{io::Write as _, process::Stdio};

    let mut whole = text.to_owned();
    for (path, header) in shipped::HEADERS {
        whole = whole.replace(&format!("#include <{path}>"), header);
    }
    let told = |error: io::Error| {
        Error::System(format!(
            "cannot run the compiler `clang`: {error}; install it {PACKAGES}"
        ))
    };
    let mut clang = Command::new("clang")
        .env("LC_ALL", "C")
        .args(FOR_KERNEL)
        .args(["-c", "-x", "c", "-", "-o", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(told)?;
    // It reads all before it writes anything; what it could not read it complains about itself.
    let _ = clang
        .stdin
        .take()
        .map(|mut stdin| stdin.write_all(whole.as_bytes()));
    let output = clang.wait_with_output().map_err(told)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let error = said.lines().find(|line| line.contains("error: "));
    Err(Error::Compile {
        file: name.to_owned(),
        message: error.unwrap_or(said.trim()).to_owned(),
    })
}

/// The object file for the kernel.
#[cfg(feature = "kernel")]
pub(crate) fn kernel(source: &Source) -> Result<Vec<u8>, Error> {
    let workshop = Workshop::new(source)?;
    workshop.run(
        "clang",
        &[&FOR_KERNEL[..], &["-c", FILE, "-o", "control.o"]].concat(),
    )?;
    fs::read(workshop.path("control.o"))
        .map_err(|error| Error::System(format!("cannot read what was compiled: {error}")))
}
