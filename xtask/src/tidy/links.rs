//! Relative links in Markdown lead to files that exist.

use std::path::Path;

use super::Finding;
use crate::source::Source;

pub(super) fn check(source: &Source, root: &Path) -> Vec<Finding> {
    if !source.path.ends_with(".md") {
        return Vec::new();
    }
    let file = root.join(&source.path);
    let directory = file.parent().unwrap_or(root);
    let broken = |(line, link): (usize, &str)| {
        let exists = directory.join(link).exists();
        (!exists).then(|| Finding::new(source, line, format!("the link {link} leads nowhere")))
    };
    relative_links(&source.text).into_iter().filter_map(broken).collect()
}

/// The targets of relative links outside of code blocks, without their fragments.
pub(super) fn relative_links(text: &str) -> Vec<(usize, &str)> {
    let mut links = Vec::new();
    let mut in_code = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for part in line.split("](").skip(1) {
            let target = part.split([')', ' ']).next().unwrap_or("");
            let path = target.split('#').next().unwrap_or("");
            if !path.is_empty() && !path.contains(':') {
                links.push((number + 1, path));
            }
        }
    }
    links
}
