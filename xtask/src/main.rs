//! Repository tasks: `cargo xtask VERB`.
//!
//! Input: a verb and its flags. Output: what the stages print, a summary with the seconds of each, and an exit code: 0
//! when nothing failed, 1 when something did, 2 for a wrong command line. Standard library only.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool prints")]

mod apt;
mod cargo;
mod check;
mod cross;
mod drivers;
mod loc;
mod new_op;
mod report;
mod source;
mod test;
mod tidy;
mod web;
mod workspace;

use std::process::ExitCode;

use report::{Outcome, Report};

const USAGE: &str = "\
usage: cargo xtask VERB

  check                          format, clippy, tidy and docs, warnings denied
  test [--full] [--no-install]   set-up, check, all tests on host, device tests on each Vulkan driver and through WebGPU
                                 --full: every tiling at every size; --no-install: install and download nothing
  tidy                           the house rules that clippy does not know
  bless                          run the golden tests so that they rewrite their files
  loc                            library code per crate against the size budget
  new-op FAMILY NAME             begin an operation: writes its file, says where to register it
  cross [--no-install]           type-check libraries and commands for macOS, iOS, Android, Windows
  web [serve [PORT] | test]      build the page for browsers; offer it at localhost; visit it with Chromium
                                 --no-install, last: install nothing";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut report = Report::default();
    match words.as_slice() {
        ["check"] => check::run(&mut report),
        ["test", flags @ ..] => match test::Options::parse(flags) {
            Ok(options) => test::run(&mut report, options),
            Err(flag) => return usage(&format!("test does not know {flag}")),
        },
        ["tidy"] => report.stage("tidy", tidy::run),
        ["bless"] => report.stage("golden tests", || {
            cargo::test(&[&["--workspace", "--tests", "golden"]], &[("GRIFFINFLY_BLESS", "1")])
        }),
        ["loc"] => report.stage("size", loc::run),
        ["new-op", family, name] => report.stage("new operation", || {
            println!("{}", new_op::run(&workspace::root(), family, name)?);
            Ok(Outcome::Passed(format!("{family} {name}")))
        }),
        ["cross"] => cross::run(&mut report, true),
        ["cross", "--no-install"] => cross::run(&mut report, false),
        ["web", words @ ..] => {
            let (words, may_install) = match words {
                [words @ .., "--no-install"] => (words, false),
                words => (words, true),
            };
            match web::Verb::parse(words) {
                Ok(verb) => web::run(&mut report, verb, may_install),
                Err(problem) => return usage(&problem),
            }
        }
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        [] => return usage("a verb is missing"),
        [verb, ..] => return usage(&format!("cannot run {verb} like this")),
    }
    report.finish()
}

fn usage(problem: &str) -> ExitCode {
    eprintln!("xtask: {problem}\n\n{USAGE}");
    ExitCode::from(2)
}
