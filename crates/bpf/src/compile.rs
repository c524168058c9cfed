//! Compilation of a control's file with the system's compiler, in a temporary folder.
//!
//! [`child`] bounds the time, memory and output of the compiler. The folder's name identifies the
//! process that owns it ([`owner`]), so that a later command can remove it if that process was
//! killed.

mod child;
mod division;
mod owner;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anabranch_core::{interrupt::Interrupt, system};
use tempfile::TempDir;

use crate::{Error, Source, shipped};

/// The name of a control's file in the folder.
const FILE: &str = "control.bpf.c";
/// Its assembly for the local machine.
const ASSEMBLY: &str = "control.s";
/// Packages that contain the compilers.
const PACKAGES: &str = "(Debian's packages: build-essential, clang)";
/// Number of compiler errors that are shown.
const SHOWN: usize = 3;

/// A folder with a control's file and the headers it includes.
#[derive(Debug)]
pub(crate) struct Workshop<'a> {
    source: &'a Source,
    folder: TempDir,
    interrupt: Interrupt,
}

impl<'a> Workshop<'a> {
    pub(crate) fn new(source: &'a Source, interrupt: &Interrupt) -> Result<Self, Error> {
        let write = || -> io::Result<TempDir> {
            let folder = tempfile::Builder::new()
                .prefix(&format!("anabranch-{}-", owner::mark()))
                .tempdir()?;
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
            let why = system::words(&error);
            Error::System(format!("cannot write a folder to compile in: {why}"))
        })?;
        Ok(Self {
            source,
            folder,
            interrupt: interrupt.clone(),
        })
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    /// Runs `compiler` with the include folders, then `arguments`, in which `FILE` is the control.
    pub(crate) fn run(&self, compiler: &str, arguments: &[&str]) -> Result<(), Error> {
        let mut command = child::bounded(compiler);
        command.current_dir(self.folder.path());
        command.arg("-I").arg("include");
        if let Some(folder) = &self.source.folder {
            let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.clone());
            command.arg("-iquote").arg(folder);
        }
        let done = child::finish(command.args(arguments), None, &self.interrupt)
            .map_err(|error| missing(compiler, &error))?;
        let message = match done.end {
            child::End::Succeeded => return Ok(()),
            child::End::Failed if done.is_missing => {
                return Err(missing(compiler, &"it is not installed"));
            }
            child::End::Failed => self.shortened(&String::from_utf8_lossy(&done.errors)),
            child::End::OutOfTime => child::out_of_time(compiler),
            child::End::Interrupted => child::interrupted(compiler),
        };
        Err(Error::Compile {
            file: self.source.name.clone(),
            message,
        })
    }

    /// Defines divisions by zero in the assembly of the control.
    fn guard_divisions(&self) -> Result<(), Error> {
        let path = self.path(ASSEMBLY);
        let assembly = String::from_utf8_lossy(&read(&path)?).into_owned();
        fs::write(path, division::guarded(&assembly)).map_err(|error| {
            let why = system::words(&error);
            Error::System(format!("cannot write the compiled program: {why}"))
        })
    }

    /// Extracts the errors from the output of a compiler or linker, with the control's own file
    /// name.
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

/// Reads the output of a compiler.
fn read(file: &Path) -> Result<Vec<u8>, Error> {
    fs::read(file).map_err(|error| {
        let why = system::words(&error);
        Error::System(format!("cannot read the compiled program: {why}"))
    })
}

/// The error for a compiler that cannot be started.
fn missing(compiler: &str, reason: &dyn std::fmt::Display) -> Error {
    let reason = system::words(reason);
    Error::System(format!(
        "cannot run the compiler `{compiler}`: {reason}; install it {PACKAGES}"
    ))
}

/// The control's object file and the shared object built from it, for the local machine.
pub(crate) struct Native {
    pub object: Vec<u8>,
    pub shared: PathBuf,
    /// Contains the shared object.
    _folder: TempDir,
}

/// The preprocessed control, as [`native`] compiles it.
pub(crate) fn preprocessed(source: &Source, interrupt: &Interrupt) -> Result<Vec<u8>, Error> {
    let workshop = Workshop::new(source, interrupt)?;
    workshop.run(
        "cc",
        &["-std=gnu11", "-O2", "-E", "-P", FILE, "-o", "control.i"],
    )?;
    read(&workshop.path("control.i"))
}

pub(crate) fn native(source: &Source, interrupt: &Interrupt) -> Result<Native, Error> {
    let workshop = Workshop::new(source, interrupt)?;
    let mut compile = vec!["-std=gnu11", "-O2", "-fPIC", "-fno-common"];
    // A path to a division by zero is kept, as one to an instruction that may trap.
    compile.push("-fnon-call-exceptions");
    // Errors by default in newer compilers.
    compile.extend([
        "-Werror=implicit-function-declaration",
        "-Werror=incompatible-pointer-types",
        "-Wno-unknown-pragmas",
    ]);
    let with = |more: &[&'static str]| [compile.as_slice(), more].concat();
    workshop.run("cc", &with(&["-S", FILE, "-o", ASSEMBLY]))?;
    workshop.guard_divisions()?;
    workshop.run("cc", &["-c", ASSEMBLY, "-o", "control.o"])?;
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
    let object = read(&workshop.path("control.o"))?;
    Ok(Native {
        object,
        shared: workshop.path("control.so"),
        _folder: workshop.folder,
    })
}

/// Options of clang for the kernel.
const FOR_KERNEL: [&str; 6] = [
    "-target",
    "bpf",
    "-mcpu=v3",
    "-O2",
    "-g",
    "-Werror=implicit-function-declaration",
];

/// The object file for the kernel of a program that includes only our headers, which are inserted
/// in its text. No file is written, so that none can remain.
pub(crate) fn kernel_alone(
    name: &str,
    text: &str,
    interrupt: &Interrupt,
) -> Result<Vec<u8>, Error> {
    let mut whole = text.to_owned();
    for (path, header) in shipped::HEADERS {
        whole = whole.replace(&format!("#include <{path}>"), header);
    }
    let mut clang = child::bounded("clang");
    clang
        .args(FOR_KERNEL)
        .args(["-c", "-x", "c", "-", "-o", "-"]);
    let done = child::finish(&mut clang, Some(whole.into_bytes()), interrupt)
        .map_err(|error| missing("clang", &error))?;
    let message = match done.end {
        child::End::Succeeded => return Ok(done.output),
        child::End::Failed if done.is_missing => {
            return Err(missing("clang", &"it is not installed"));
        }
        child::End::OutOfTime => child::out_of_time("clang"),
        child::End::Interrupted => child::interrupted("clang"),
        child::End::Failed => {
            let said = String::from_utf8_lossy(&done.errors);
            let error = said.lines().find(|line| line.contains("error: "));
            error.unwrap_or(said.trim()).to_owned()
        }
    };
    Err(Error::Compile {
        file: name.to_owned(),
        message,
    })
}

/// The object file for the kernel.
pub(crate) fn kernel(source: &Source, interrupt: &Interrupt) -> Result<Vec<u8>, Error> {
    let workshop = Workshop::new(source, interrupt)?;
    workshop.run(
        "clang",
        &[&FOR_KERNEL[..], &["-c", FILE, "-o", "control.o"]].concat(),
    )?;
    read(&workshop.path("control.o"))
}
