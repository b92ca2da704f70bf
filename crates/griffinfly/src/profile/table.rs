//! A profile as a table for people: dispatches of one instance together, those that take most time first.

use super::{Profile, ProfileRow};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Dispatches of one instance.
#[derive(Default)]
struct Group<'a> {
    rows: Vec<&'a ProfileRow>,
}

impl Group<'_> {
    fn nanoseconds(&self) -> f64 {
        self.rows.iter().map(|row| row.nanoseconds).sum()
    }
}

impl Profile {
    /// A line for each kind of dispatch: total time, share, number, time of one, operations and bytes per second, share of the
    /// roof, the most registers and spills, arithmetic, instance, and what the longest of them computes.
    #[must_use]
    pub fn table(&self) -> String {
        let mut groups: BTreeMap<&str, Group<'_>> = BTreeMap::new();
        for row in &self.rows {
            groups.entry(&row.dispatch.instance).or_default().rows.push(row);
        }
        let mut groups: Vec<(&str, Group<'_>)> = groups.into_iter().collect();
        groups.sort_by(|a, b| b.1.nanoseconds().total_cmp(&a.1.nanoseconds()));
        let all: f64 = groups.iter().map(|(_, group)| group.nanoseconds()).sum();
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = writeln!(out, "{} ({})", self.device, self.driver);
        let levels: std::collections::BTreeSet<_> =
            self.rows.iter().map(|row| (row.dispatch.section, row.dispatch.level)).collect();
        let _ = writeln!(
            out,
            "{} dispatches in {} levels, one after the other: {:.1} us; a step: {:.1} us",
            self.rows.len(),
            levels.len(),
            all / 1e3,
            self.step_ns / 1e3
        );
        if let Some(roof) = self.roof {
            let (operations, bytes) = (roof.operations_per_second / 1e9, roof.bytes_per_second / 1e9);
            let _ = writeln!(out, "roof: {operations:.1} GFLOP/s, {bytes:.1} GB/s");
        }
        let _ = writeln!(
            out,
            "{:>10} {:>6} {:>5} {:>9} {:>9} {:>9} {:>6} {:>5} {:>6}  class  instance: the longest of them",
            "us", "share", "times", "us each", "GFLOP/s", "GB/s", "roof", "regs", "spills"
        );
        for (instance, group) in groups {
            let _ = writeln!(out, "{}", line(instance, &group, all));
        }
        out
    }
}

fn line(instance: &str, group: &Group<'_>, all: f64) -> String {
    let (time, count) = (group.nanoseconds(), group.rows.len());
    let sum = |value: fn(&ProfileRow) -> u64| group.rows.iter().map(|row| value(row)).sum::<u64>() as f64;
    // Operations per nanosecond are thousands of millions per second.
    let per = |value: f64| if time > 0.0 { value / time } else { 0.0 };
    let least: Option<f64> =
        group.rows.iter().map(|row| row.of_roof.map(|share| share * row.nanoseconds)).sum();
    let roof = least.map_or("-".into(), |least| format!("{:.0}%", 100.0 * per(least)));
    let longest = group.rows.iter().max_by(|a, b| a.nanoseconds.total_cmp(&b.nanoseconds));
    let computes = longest.map_or(String::new(), |row| row.dispatch.computes.join(" "));
    let class = longest.map_or("", |row| row.dispatch.numeric.name());
    let share = if all > 0.0 { 100.0 * time / all } else { 0.0 };
    let most = |value: fn(&ProfileRow) -> Option<f64>| {
        let largest = group.rows.iter().filter_map(|row| value(row)).reduce(f64::max);
        largest.map_or("-".into(), |x| format!("{x:.0}"))
    };
    let (registers, spills) = (most(|row| row.registers), most(|row| row.spills));
    format!(
        "{:>10.1} {share:>5.1}% {count:>5} {:>9.2} {:>9.1} {:>9.1} {roof:>6} {registers:>5} {spills:>6}  {class:<5}  \
         {instance}: {computes}",
        time / 1e3,
        time / 1e3 / count as f64,
        per(sum(|row| row.operations)),
        per(sum(|row| row.bytes)),
    )
}
