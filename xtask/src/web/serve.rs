//! A server of static files for one's own machine: GET of the files of one folder, nothing else.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Component, Path, PathBuf};

use crate::report::{Failure, Outcome};

/// The longest request that is read.
const LONGEST: u64 = 16 << 10;

/// Serves until it is stopped.
pub(super) fn run(folder: &Path, port: u16) -> Result<Outcome, Failure> {
    let listener = TcpListener::bind(("127.0.0.1", port))
        .map_err(|error| format!("cannot listen on port {port}: {error}"))?;
    println!("http://localhost:{port}/ offers {}; Ctrl-C ends it", folder.display());
    for stream in listener.incoming().flatten() {
        let folder = folder.to_owned();
        std::thread::spawn(move || {
            // A visitor who goes away is no failure.
            let _ = answer(&stream, &folder);
        });
    }
    Ok(Outcome::Passed(String::new()))
}

fn answer(mut stream: &TcpStream, folder: &Path) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.take(LONGEST)).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let file = path(&request, folder).and_then(|path| Some((std::fs::read(&path).ok()?, kind(&path))));
    let (status, (body, kind)) = match file {
        Some(found) => ("200 OK", found),
        None => ("404 Not Found", (b"there is no such file".to_vec(), "text/plain")),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    stream.write_all(&body)
}

/// The file that a request asks for, if it lies in the folder.
fn path(request: &str, folder: &Path) -> Option<PathBuf> {
    let target = request.strip_prefix("GET /")?.split([' ', '?', '#']).next()?;
    let relative = Path::new(if target.is_empty() { "index.html" } else { target });
    let is_below = relative.components().all(|part| matches!(part, Component::Normal(_)));
    is_below.then(|| folder.join(relative))
}

fn kind(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript",
        Some("css") => "text/css",
        Some("wasm") => "application/wasm",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_folder_are_offered() {
        let asked = |request: &str| path(request, Path::new("site"));
        assert_eq!(asked("GET / HTTP/1.1"), Some("site/index.html".into()));
        assert_eq!(asked("GET /main.js?x=1 HTTP/1.1"), Some("site/main.js".into()));
        for refused in ["GET /../secret", "GET //etc/passwd", "POST /", "", "GET /a/../../b HTTP/1.1"] {
            assert_eq!(asked(refused), None, "{refused}");
        }
    }

    #[test]
    fn modules_have_the_types_that_browsers_demand() {
        assert_eq!(kind(Path::new("a.wasm")), "application/wasm");
        assert_eq!(kind(Path::new("a.js")), "text/javascript");
        assert_eq!(kind(Path::new("a")), "application/octet-stream");
    }
}
