//! Writing to standard output and error without ever panicking.

use std::error::Error;
use std::io::{self, Write};

/// Writes a text to standard output, with a newline at its end.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Writes a line of progress to standard error.
pub(crate) fn note(line: &str) {
    // There is nowhere left to report to.
    let _ = writeln!(io::stderr(), "{line}");
}

/// Writes an error and its causes to standard error.
pub(crate) fn complain(error: &dyn Error) {
    let mut text = format!("error: {error}\n");
    let mut cause = error.source();
    while let Some(source) = cause {
        let line = source.to_string();
        if !text.contains(&line) {
            text.push_str(&format!("  because: {line}\n"));
        }
        cause = source.source();
    }
    // There is nowhere left to report to.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Whether the reader of standard output went away.
pub(crate) fn is_closed(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}
