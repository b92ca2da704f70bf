//! The page for browsers: built for WebAssembly, put together as a folder of files, served, and visited by a browser.
//!
//! Output of the build: `target/web/site`, which any server of static files can offer. The library's compiler is the repository's
//! where it has the standard library of browsers, else the one that Debian packages for them.

mod serve;
mod visit;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::report::{Failure, Outcome, Report};
use crate::{cross, workspace};

const TARGET: &str = "wasm32-unknown-unknown";
/// Most bytes that a visitor downloads, compressed as servers do.
const DOWNLOAD: usize = 3 << 20;

/// What to do with the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    /// Build it.
    Build,
    /// Build it and offer it on a port of this machine.
    Serve(u16),
    /// Build it and run the tests in a browser.
    Test,
}

impl Verb {
    /// Reads the words after `web`.
    pub(crate) fn parse(words: &[&str]) -> Result<Self, String> {
        match words {
            [] => Ok(Verb::Build),
            ["serve"] => Ok(Verb::Serve(8000)),
            ["serve", port] => port.parse().map(Verb::Serve).map_err(|_| format!("{port} is no port")),
            ["test"] => Ok(Verb::Test),
            other => Err(format!("web does not know {}", other.join(" "))),
        }
    }
}

/// Does it; `may_install` allows Debian's packages to be installed.
pub(crate) fn run(report: &mut Report, verb: Verb, may_install: bool) {
    let mut built = false;
    report
        .stage("set-up of the compiler for browsers", || toolchain(may_install).map(|(outcome, _)| outcome));
    report.stage("page", || {
        let outcome = build()?;
        built = matches!(outcome, Outcome::Passed(_));
        Ok(outcome)
    });
    match verb {
        Verb::Build => {}
        Verb::Serve(port) if built => report.stage("server", || serve::run(&site(), port)),
        Verb::Test if built => visit::run(report, may_install),
        Verb::Serve(_) | Verb::Test => {
            report.stage("page in a browser", || Ok(Outcome::NotRun("there is no page".into())));
        }
    }
}

/// The folder of the page.
fn site() -> PathBuf {
    output().join("site")
}

fn output() -> PathBuf {
    workspace::root().join("target/web")
}

/// Who compiles for browsers.
enum Toolchain {
    /// The repository's own.
    Rustup,
    /// Debian's compiler with a standard library from source; the linker comes from the repository's.
    Debian { linker: PathBuf },
}

fn toolchain(may_install: bool) -> Result<(Outcome, Option<Toolchain>), Failure> {
    let sysroot = cross::sysroot()?;
    if cross::has_library(&sysroot, TARGET) {
        return Ok((Outcome::Passed(String::new()), Some(Toolchain::Rustup)));
    }
    if !cross::has_source() && may_install {
        cross::set_up()?;
    }
    let missing = |what: &str| {
        let how = "rustup target add wasm32-unknown-unknown";
        Ok((Outcome::NotRun(format!("{what} is missing; get the whole with: {how}")), None))
    };
    match linker(&sysroot) {
        _ if !cross::has_source() => missing("the standard library of browsers"),
        None => missing("a linker"),
        Some(linker) => Ok((Outcome::Passed("Debian's compiler".into()), Some(Toolchain::Debian { linker }))),
    }
}

/// The linker that comes with a compiler.
fn linker(sysroot: &Path) -> Option<PathBuf> {
    let hosts = std::fs::read_dir(sysroot.join("lib/rustlib")).ok()?.flatten();
    hosts.map(|host| host.path().join("bin/rust-lld")).find(|path| path.is_file())
}

/// Compiles the library, binds it to JavaScript, and puts the page beside it.
fn build() -> Result<Outcome, Failure> {
    let (outcome, toolchain) = toolchain(false)?;
    let Some(toolchain) = toolchain else { return Ok(outcome) };
    let built = output().join("build");
    let mut command = match &toolchain {
        Toolchain::Rustup => Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())),
        Toolchain::Debian { linker } => {
            let [rustc, cargo, ..] = cross::FILES;
            let mut command = Command::new(cargo);
            command.env("RUSTC", rustc).env("RUSTC_BOOTSTRAP", "1");
            command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
            command
        }
    };
    command.args(["build", "-p", "griffinfly-web", "--lib", "--profile", "web", "--target", TARGET]);
    if matches!(toolchain, Toolchain::Debian { .. }) {
        command.arg("-Zbuild-std=std,panic_abort");
    }
    command.arg("--target-dir").arg(&built).current_dir(workspace::root()).env_remove("CARGO_TARGET_DIR");
    succeed(&mut command)?;
    let module = built.join(TARGET).join("web/griffinfly_web.wasm");
    let site = fresh(&site())?;
    let mut bindgen = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    bindgen.args(["run", "--quiet", "--manifest-path", "web/bindgen/Cargo.toml", "--target-dir"]);
    bindgen.arg(output().join("bindgen")).arg("--").args([&module, &site]);
    succeed(bindgen.current_dir(workspace::root()).env_remove("CARGO_TARGET_DIR"))?;
    for file in files(&workspace::root().join("web/page"))? {
        let to = site.join(file.file_name().unwrap_or_default());
        std::fs::copy(&file, &to)
            .map_err(|e| format!("cannot copy {} to {}: {e}", file.display(), to.display()))?;
    }
    let size = download(&site)?;
    if size > DOWNLOAD {
        return Err(format!("a visitor downloads {size} bytes, {DOWNLOAD} are allowed"));
    }
    Ok(Outcome::Passed(format!("{} in target/web/site", megabytes(size))))
}

/// An empty folder.
fn fresh(folder: &Path) -> Result<PathBuf, Failure> {
    let failed = |e: std::io::Error| format!("cannot make {}: {e}", folder.display());
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => std::fs::create_dir_all(folder).map_err(failed)?,
    }
    Ok(folder.to_owned())
}

/// The files of a folder.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |e: std::io::Error| format!("cannot read {}: {e}", folder.display());
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    entries.map(|entry| entry.map(|entry| entry.path()).map_err(failed)).collect()
}

/// Bytes of the page, each file compressed by gzip.
fn download(site: &Path) -> Result<usize, Failure> {
    let mut bytes = 0;
    for file in files(site)? {
        let output = Command::new("gzip").args(["-9", "-c"]).arg(&file).stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| format!("cannot start gzip: {error}"))?;
        if !output.status.success() {
            return Err(format!("gzip of {} ended with {}", file.display(), output.status));
        }
        bytes += output.stdout.len();
    }
    Ok(bytes)
}

fn megabytes(bytes: usize) -> String {
    format!("{:.2} MiB compressed", bytes as f64 / f64::from(1 << 20))
}

/// Runs a command to success.
fn succeed(command: &mut Command) -> Result<(), Failure> {
    println!("{command:?}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{:?} ended with {status}", command.get_program())),
        Err(error) => Err(format!("cannot start {:?}: {error}", command.get_program())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read() {
        assert_eq!(Verb::parse(&[]), Ok(Verb::Build));
        assert_eq!(Verb::parse(&["serve"]), Ok(Verb::Serve(8000)));
        assert_eq!(Verb::parse(&["serve", "81"]), Ok(Verb::Serve(81)));
        assert_eq!(Verb::parse(&["test"]), Ok(Verb::Test));
        assert!(Verb::parse(&["serve", "99999"]).unwrap_err().contains("99999"));
        assert!(Verb::parse(&["fly"]).unwrap_err().contains("fly"));
    }

    #[test]
    fn both_halves_of_the_bindings_have_one_version() {
        let read = |path: &str| std::fs::read_to_string(workspace::root().join(path)).unwrap();
        let version = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(&format!("{name} = ")));
            line.and_then(|line| line.split('"').nth(1)).map(str::to_owned)
        };
        let library = version(&read("web/Cargo.toml"), "wasm-bindgen");
        assert!(library.as_ref().is_some_and(|version| version.starts_with('=')), "{library:?}");
        assert_eq!(version(&read("web/bindgen/Cargo.toml"), "wasm-bindgen-cli-support"), library);
    }
}
