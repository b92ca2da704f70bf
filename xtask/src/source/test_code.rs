//! Which code is tests: by path, by `#[cfg(test)]` on an item, or by a module declared so in another file.

use super::Source;

const MARK: &str = "#[cfg(test)]";

/// Whether the path alone makes the file tests, examples or benchmarks.
pub(super) fn is_test_path(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "tests" | "tests.rs" | "examples" | "benches"))
}

/// The code without the items that are marked as tests; lines stay where they were.
pub(super) fn without_tests(code: &str) -> String {
    let mut rest = code;
    let mut kept = String::with_capacity(code.len());
    while let Some(start) = rest.find(MARK) {
        let (before, item) = rest.split_at(start);
        let (item, after) = item.split_at(item_end(item));
        kept.push_str(before);
        kept.extend(item.chars().filter(|&c| c == '\n'));
        rest = after;
    }
    kept + rest
}

/// Where the item ends: at a `;` outside of braces or at the brace that closes its body.
fn item_end(item: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in item.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth <= 1 => return at + 1,
            '}' => depth -= 1,
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    item.len()
}

/// Empties the library code of files whose module is declared as tests.
pub(super) fn mark_test_modules(sources: &mut [Source]) {
    let modules: Vec<String> = sources.iter().flat_map(test_modules).collect();
    for source in sources {
        let of = |module: &String| {
            let rest = source.path.strip_prefix(module.as_str());
            rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        };
        if modules.iter().any(of) {
            source.library_code.clear();
        }
    }
}

/// The paths, without `.rs`, of the modules that a file declares as tests.
fn test_modules(source: &Source) -> Vec<String> {
    let directory = module_directory(&source.path);
    let items = source.code.split(MARK).skip(1);
    let names = items.filter_map(|item| {
        let item = item[..item_end(item)].strip_suffix(';')?;
        let mut words = item.split_whitespace().rev();
        let name = words.next()?;
        (words.next() == Some("mod")).then_some(name)
    });
    names.map(|name| format!("{directory}/{name}")).collect()
}

/// Where the modules that a file declares lie.
fn module_directory(path: &str) -> &str {
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
    match name {
        "lib.rs" | "main.rs" | "mod.rs" => parent,
        _ => path.trim_end_matches(".rs"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_items_go_and_lines_stay() {
        let code = "fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() { {} }\n}\nfn c() {}\n#[cfg(test)]\nmod d;\nfn e() {}";
        assert_eq!(without_tests(code), "fn a() {}\n\n\n\n\nfn c() {}\n\n\nfn e() {}");
    }

    #[test]
    fn modules_declared_as_tests_are_tests() {
        let mut sources = [
            Source::new("crates/a/src/lib.rs", "#[cfg(test)]\nmod scratch;\nmod scratched;"),
            Source::new("crates/a/src/scratch.rs", "fn f() {}"),
            Source::new("crates/a/src/scratch/deep.rs", "fn f() {}"),
            Source::new("crates/a/src/scratched.rs", "fn f() {}"),
            Source::new("crates/a/src/tests.rs", "fn f() {}"),
        ];
        mark_test_modules(&mut sources);
        let library: Vec<_> = sources.iter().map(|source| !source.library_code.trim().is_empty()).collect();
        assert_eq!(library, [true, false, false, true, false]);
    }
}
