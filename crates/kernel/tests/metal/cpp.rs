//! Texts in the Metal Shading Language as C++ that the stub library runs.
//!
//! Input: distinct kernels, each with its text. Output: an executable made by clang, and what it leaves of cases. Each text becomes
//! a namespace, as it is but for its arrays, which check their indices; a function beside it passes what the parameters of its
//! entry point ask for. Invariant: a parameter that is not known here ends the test; it is never passed as something else.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const FLAGS: [&str; 8] = [
    "-std=c++17",
    "-O0",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    "-fwrapv",
    "-Xclang",
    "-cl-single-precision-constant",
    "-Wno-unknown-attributes",
];

/// A kernel to compile.
#[derive(Clone)]
pub(super) struct Code {
    /// Shown in the errors of the compiler.
    pub(super) name: String,
    pub(super) text: String,
    /// Invocations of a threadgroup.
    pub(super) invocations: u64,
}

/// One dispatch: the number of its kernel, and what it is given.
pub(super) struct Dispatch {
    pub(super) kernel: usize,
    pub(super) groups: [u32; 3],
    pub(super) parameters: Vec<u32>,
    /// The buffer of each binding.
    pub(super) bindings: Vec<usize>,
}

/// Buffers with their contents, and dispatches in order.
pub(super) struct Job {
    pub(super) buffers: Vec<Vec<u32>>,
    pub(super) dispatches: Vec<Dispatch>,
}

/// What a job left: its buffers, and the fault that ended it with the number of its dispatch.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) buffers: Vec<Vec<u32>>,
    pub(super) fault: Option<(usize, String)>,
}

/// Why kernels cannot run here.
pub(super) fn missing() -> Option<String> {
    if !cfg!(target_os = "linux") {
        return Some("the stub's coroutines are those of Linux".into());
    }
    match Command::new("clang++").arg("--version").output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(format!("clang++: {}", output.status)),
        Err(error) => Some(format!("clang++: {error}")),
    }
}

/// Compiles the kernels and runs the jobs, in a folder of this name.
pub(super) fn run(name: &str, kernels: &[Code], jobs: &[Job]) -> Vec<Outcome> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let program = build(&folder, kernels);
    let (cases, results) = (folder.join("cases.bin"), folder.join("results.bin"));
    std::fs::write(&cases, bytes(jobs)).unwrap();
    let output = Command::new(program).args([&cases, &results]).output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}: {lines}", output.status);
    outcomes(jobs, &std::fs::read(&results).unwrap(), &lines)
}

fn build(folder: &Path, kernels: &[Code]) -> PathBuf {
    let stub = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/metal/stub");
    let units = std::thread::available_parallelism().map_or(2, usize::from).min(kernels.len());
    // The longest first, so that each unit has as much of every length.
    let mut order: Vec<usize> = (0..kernels.len()).collect();
    order.sort_by_key(|i| std::cmp::Reverse(kernels[*i].text.len()));
    let mut sources = vec![(stub.join("runner.cpp"), ["-Wall", "-Wextra", "-Werror"].as_slice())];
    let mut add = |name: String, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        sources.push((path, &["-w"]));
    };
    add("table.cpp".into(), table(kernels.len()));
    for unit in 0..units {
        let of_unit = order.iter().skip(unit).step_by(units);
        let texts: String = of_unit.map(|number| namespace(*number, &kernels[*number])).collect();
        add(format!("unit{unit}.cpp"), format!("#include <metal_stdlib>\n{texts}"));
    }
    let native: &[&str] = if cfg!(target_arch = "x86_64") { &["-march=native"] } else { &[] };
    let compile = |(source, warnings): &(PathBuf, &[&str])| {
        let object = folder.join(source.file_stem().unwrap()).with_extension("o");
        let mut clang = Command::new("clang++");
        clang.args(FLAGS).args(native).args(*warnings).arg("-I").arg(&stub);
        finish(clang.arg("-c").arg(source).arg("-o").arg(&object));
        object
    };
    let objects: Vec<PathBuf> = std::thread::scope(|scope| {
        let threads: Vec<_> = sources.iter().map(|source| scope.spawn(|| compile(source))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let program = folder.join("run");
    finish(Command::new("clang++").args(objects).arg("-o").arg(&program));
    program
}

fn finish(command: &mut Command) {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?}\n{}",
        errors.lines().take(40).collect::<Vec<_>>().join("\n")
    );
}

/// The kernels by number.
fn table(count: usize) -> String {
    let mut text = String::from("#include \"checked.h\"\n");
    for i in 0..count {
        let _ = writeln!(text, "namespace k{i} {{ extern stub::Kernel const entry; }}");
    }
    let entries: String = (0..count).map(|i| format!("&k{i}::entry, ")).collect();
    text + &format!("stub::Kernel const* const stub::kernels[] = {{{entries}}};\n")
}

/// A text in a namespace of its own, with the function that calls it. Lines count as they do in the text.
fn namespace(number: usize, code: &Code) -> String {
    let Code { name, text, invocations } = code;
    let (text, call) = (checked(text), call(text));
    format!(
        "namespace k{number} {{\n#line 1 \"{name}\"\n{text}\n#line 1 \"call of {name}\"\n{call}extern stub::Kernel const entry = {{{invocations}, SHARED, call}};\n}}\n"
    )
}

/// The text with arrays that check their indices.
fn checked(text: &str) -> String {
    let line = |line: &str| {
        let array = line.strip_suffix("];").and_then(|start| start.rsplit_once('['));
        let parts = array.map(|(start, length)| (start.split_whitespace().collect::<Vec<_>>(), length));
        match parts {
            Some((parts, "1")) if parts[0] == "typedef" => {
                format!("typedef stub::Runtime<{}> {};\n", parts[1], parts[2])
            }
            Some((parts, length)) if parts.len() == 2 && parts[1] == "inner" => {
                format!("    stub::Array<{}, {length}> inner;\n", parts[0])
            }
            _ => format!("{line}\n"),
        }
    };
    let checked: String = text.lines().map(line).collect();
    let unchecked = checked.lines().find(|line| line.ends_with("];") && !line.contains(" = "));
    assert_eq!(unchecked, None, "an array that is not checked");
    checked
}

/// The function that calls the entry point of a text, and the bytes of its threadgroup memory.
fn call(text: &str) -> String {
    let (_, rest) = text.split_once("kernel void main_(").expect("an entry point");
    let (list, body) = rest.split_once("\n) {").expect("a body");
    assert!(!body.contains("_buffer_sizes."), "sizes of buffers are not passed");
    let (mut lines, mut arguments, mut shared) = (String::new(), Vec::new(), String::from("0"));
    for (number, parameter) in list.split("\n, ").enumerate() {
        let (declared, attribute) = parameter.split_once(" [[").unwrap_or((parameter, ""));
        let words: Vec<&str> = declared.split_whitespace().collect();
        let ty = words[words.len().min(2) - 1].trim_end_matches('&');
        arguments.push(match (words[0], attribute.trim_end_matches(']')) {
            ("uint", "thread_index_in_threadgroup") => "at.index".into(),
            ("metal::uint3", "threadgroups_per_grid") => "at.groups".into(),
            ("metal::uint3", "threadgroup_position_in_grid") => "at.group".into(),
            ("constant", _) if ty == "_mslBufferSizes" => "SIZES".into(),
            ("constant", _) if ty == "Params" => "at.block<Params>()".into(),
            ("device", slot) => {
                let slot =
                    slot.strip_prefix("buffer(").map(|slot| slot.trim_end_matches(')')).expect("a slot");
                let _ = writeln!(lines, "    {ty} b{number} = at.array<{ty}>({slot});");
                format!("b{number}")
            }
            ("threadgroup", "") => {
                let argument = format!("at.memory<{ty}>({shared})");
                let _ = write!(shared, " + (sizeof({ty}) + 15) / 16 * 16");
                argument
            }
            _ => panic!("an unknown parameter: {parameter}"),
        });
    }
    let arguments = arguments.join(", ");
    format!(
        "static _mslBufferSizes const SIZES = {{}};\nstatic size_t const SHARED = {shared};\nstatic void call(stub::Invocation const& at) {{\n{lines}    main_({arguments});\n}}\n"
    )
}

/// The jobs as the runner reads them.
fn bytes(jobs: &[Job]) -> Vec<u8> {
    let mut words = vec![jobs.len() as u32];
    for job in jobs {
        words.push(job.buffers.len() as u32);
        for buffer in &job.buffers {
            words.push(buffer.len() as u32);
            words.extend(buffer);
        }
        words.push(job.dispatches.len() as u32);
        for dispatch in &job.dispatches {
            words.push(dispatch.kernel as u32);
            words.extend(dispatch.groups);
            words.push(dispatch.parameters.len() as u32);
            words.extend(&dispatch.parameters);
            words.push(dispatch.bindings.len() as u32);
            words.extend(dispatch.bindings.iter().map(|buffer| *buffer as u32));
        }
    }
    words.into_iter().flat_map(u32::to_ne_bytes).collect()
}

fn outcomes(jobs: &[Job], results: &[u8], lines: &str) -> Vec<Outcome> {
    let words = results.chunks_exact(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap()));
    let words: Vec<u32> = words.collect();
    let mut rest = words.as_slice();
    let mut take = |count: usize| {
        let (taken, others) = rest.split_at(count);
        rest = others;
        taken.to_vec()
    };
    let buffers = |job: &Job| job.buffers.iter().map(|buffer| take(buffer.len())).collect();
    let outcome = |buffers: Vec<Vec<u32>>| Outcome { buffers, fault: None };
    let mut all: Vec<Outcome> = jobs.iter().map(buffers).map(outcome).collect();
    assert!(rest.is_empty(), "{} words too many", rest.len());
    for line in lines.lines() {
        let parts: Vec<&str> = line.splitn(3, '\t').collect();
        let number = |at: usize| parts[at].parse::<usize>().unwrap();
        all[number(0)].fault = Some((number(1), parts[2].into()));
    }
    all
}
