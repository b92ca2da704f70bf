//! The chart of ratios as SVG: one bar per cell and contract, grouped by workload, on a logarithmic axis around 1.
//!
//! Input: the platforms of a page. Output: text that is the same for the same records, or none where no cell has a ratio.
//! Colours follow the reader's preference for light or dark, on a background of the chart's own. Every bar has its number
//! beside it and in its `<title>`, and the description holds all of them: nothing depends on colour or sight.

use super::book::{CONTRACTS, Platform};
use crate::compare::Comparison;
use crate::compare::ratio::{all_cells, geometric_mean};
use crate::record::Phase;
use std::fmt::Write as _;

/// Sizes in units of the drawing: the page, the plot between its labels, space for numbers inside the plot, bars.
const WIDTH: f64 = 800.0;
const LEFT: f64 = 170.0;
const RIGHT: f64 = 780.0;
const NUMBER: f64 = 40.0;
const BAR: f64 = 11.0;
const GAP: f64 = 5.0;
/// Ticks are at least this far from each other.
const TICK: f64 = 36.0;

/// Where ticks may be, in each decade.
const STEPS: [f64; 6] = [1.0, 1.5, 2.0, 3.0, 5.0, 7.0];

const STYLE: &str = "\
.page{fill:#ffffff}.ink{fill:#1f2328}.soft{fill:#59636e}.grid{stroke:#d1d9e0}.one{stroke:#1f2328}
.strict{fill:#0969da}.fast{fill:#bc4c00}
@media (prefers-color-scheme:dark){
.page{fill:#0d1117}.ink{fill:#f0f6fc}.soft{fill:#9198a1}.grid{stroke:#3d444d}.one{stroke:#f0f6fc}
.strict{fill:#58a6ff}.fast{fill:#f0883e}
}";

/// A device with its comparisons, by the name of their contract.
type Panel<'a> = (String, Vec<(&'static str, Comparison<'a>)>);

/// The logarithmic axis.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// From one tick to another, around all ratios and 1.
    fn of(ratios: &[f64]) -> Axis {
        let low = ratios.iter().copied().fold(0.7, f64::min);
        let high = ratios.iter().copied().fold(1.5, f64::max);
        let ticks = candidates();
        let below = ticks.iter().copied().rfind(|t| *t <= low).unwrap_or(low);
        Axis { low: below, high: ticks.iter().copied().find(|t| *t >= high).unwrap_or(high) }
    }

    fn at(&self, ratio: f64) -> f64 {
        let part = (ratio / self.low).ln() / (self.high / self.low).ln();
        LEFT + NUMBER + part * (RIGHT - LEFT - 2.0 * NUMBER)
    }

    /// 1, and from there in both directions whatever is not too close to the tick before.
    fn ticks(&self) -> Vec<f64> {
        let inside: Vec<f64> =
            candidates().into_iter().filter(|t| (self.low..=self.high).contains(t)).collect();
        let mut ticks = vec![1.0];
        for tick in inside.iter().filter(|t| **t > 1.0).chain(inside.iter().rev().filter(|t| **t < 1.0)) {
            if ticks.iter().all(|other| (self.at(*other) - self.at(*tick)).abs() >= TICK) {
                ticks.push(*tick);
            }
        }
        ticks.sort_by(f64::total_cmp);
        ticks
    }
}

/// All ticks from a thousandth to thousands. Quotients, because products with a tenth are not what they are written as.
fn candidates() -> Vec<f64> {
    let below = [1e3, 1e2, 1e1].into_iter().flat_map(|decade| STEPS.map(|step| step / decade));
    below.chain([1.0, 1e1, 1e2, 1e3].into_iter().flat_map(|decade| STEPS.map(|step| step * decade))).collect()
}

/// Text being drawn from top to bottom.
struct Drawing {
    axis: Axis,
    y: f64,
    text: String,
    description: String,
}

/// The chart of all platforms.
pub(super) fn draw(platforms: &[Platform]) -> Option<String> {
    let panels: Vec<Panel<'_>> = platforms
        .iter()
        .map(|platform| {
            let series = CONTRACTS.iter().filter_map(|c| Some((c.text(), platform.comparison(*c)?)));
            (platform.text(), series.collect())
        })
        .collect();
    let ratios: Vec<f64> =
        panels.iter().flat_map(|(_, series)| series).flat_map(|s| s.1.ratios(None)).collect();
    if ratios.is_empty() {
        return None;
    }
    let axis = Axis::of(&ratios);
    let mut drawing = Drawing { axis, y: 52.0, text: String::new(), description: String::new() };
    drawing.legend(&panels);
    for panel in &panels {
        drawing.panel(panel);
    }
    Some(drawing.finish())
}

impl Drawing {
    fn line(&mut self, text: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{text}");
    }

    fn words(&mut self, (x, y): (f64, f64), attributes: &str, text: &str) {
        self.line(&format!("<text x=\"{x:.1}\" y=\"{y:.1}\" {attributes}>{}</text>", escaped(text)));
    }

    /// Which colour is which contract.
    fn legend(&mut self, panels: &[Panel<'_>]) {
        let has = |name: &str| panels.iter().flat_map(|(_, series)| series).any(|(n, _)| *n == name);
        let mut x = RIGHT - 130.0;
        for name in CONTRACTS.map(|c| c.text()).into_iter().filter(|name| has(name)) {
            self.line(&format!("<path class=\"{name}\" d=\"M{x:.1} 17h11v11h-11z\"/>"));
            self.words((x + 17.0, 27.0), "class=\"ink\"", name);
            x += 70.0;
        }
    }

    fn panel(&mut self, (device, series): &Panel<'_>) {
        self.words((20.0, self.y), "class=\"ink\" font-weight=\"600\"", device);
        self.y += 18.0;
        self.words((LEFT + NUMBER, self.y), "class=\"soft\"", "\u{2190} ours is faster");
        let end = (RIGHT - NUMBER, self.y);
        self.words(end, "class=\"soft\" text-anchor=\"end\"", "PyTorch is faster \u{2192}");
        self.y += 20.0;
        let height = self.rows() * self.row_height(series.len()) + 6.0 * GAP;
        for tick in self.axis.ticks() {
            let (x, class) = (self.axis.at(tick), if tick == 1.0 { "one" } else { "grid" });
            let (top, bottom) = (self.y + 6.0, self.y + 6.0 + height);
            self.words((x, self.y), "class=\"soft\" text-anchor=\"middle\"", &number(tick));
            self.line(&format!("<path class=\"{class}\" d=\"M{x:.1} {top:.1}V{bottom:.1}\"/>"));
        }
        self.y += 6.0 + GAP;
        for (workload, phase) in all_cells() {
            if phase == Phase::ALL[0] {
                let middle = self.y + self.row_height(series.len()) / 2.0 + 2.0;
                self.words((20.0, middle), "class=\"ink\" font-weight=\"600\"", workload.text());
            }
            let name = format!("{} {}", workload.text(), phase.text());
            self.label(phase.text(), series.len());
            for (contract, comparison) in series {
                match comparison.ratio(workload, phase) {
                    Ok(ratio) => self.bar(contract, &name, ratio),
                    Err(gap) => self.gap(contract, &name, gap.text()),
                }
            }
            self.y += if phase == Phase::ALL[2] { 2.0 * GAP } else { GAP };
        }
        self.label("geometric mean", series.len());
        for (contract, comparison) in series {
            if let Some(mean) = geometric_mean(&comparison.ratios(None)) {
                self.mean(contract, mean);
            } else {
                self.y += BAR;
            }
        }
        self.y += 45.0;
    }

    /// Lines of a panel: its cells and their mean.
    fn rows(&self) -> f64 {
        all_cells().count() as f64 + 1.0
    }

    fn row_height(&self, series: usize) -> f64 {
        series as f64 * BAR + GAP
    }

    /// A label of a line, left of the plot.
    fn label(&mut self, text: &str, series: usize) {
        let middle = self.y + series as f64 * BAR / 2.0 + 4.0;
        self.words((LEFT - 10.0, middle), "class=\"ink\" text-anchor=\"end\"", text);
    }

    fn bar(&mut self, contract: &str, name: &str, ratio: f64) {
        let (one, end, y) = (self.axis.at(1.0), self.axis.at(ratio), self.y);
        let (left, width) = (one.min(end), (one - end).abs().max(1.0));
        self.line(&format!(
            "<rect class=\"{contract}\" x=\"{left:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\">\
             <title>{name}, {contract}: {ratio:.2}</title></rect>",
            BAR - 1.0
        ));
        self.value(ratio, end);
        self.described(name, contract, &format!("{ratio:.2}"));
    }

    /// A number outside the end of a bar.
    fn value(&mut self, ratio: f64, end: f64) {
        let (x, anchor) = if ratio < 1.0 { (end - 5.0, " text-anchor=\"end\"") } else { (end + 5.0, "") };
        self.words(
            (x, self.y + 9.0),
            &format!("class=\"ink\" font-size=\"11\"{anchor}"),
            &format!("{ratio:.2}"),
        );
        self.y += BAR;
    }

    fn gap(&mut self, contract: &str, name: &str, reason: &str) {
        let place = (self.axis.at(1.0) + 6.0, self.y + 9.0);
        self.words(place, "class=\"soft\" font-size=\"11\" font-style=\"italic\"", reason);
        self.y += BAR;
        self.described(name, contract, reason);
    }

    /// A diamond.
    fn mean(&mut self, contract: &str, mean: f64) {
        let (x, y) = (self.axis.at(mean), self.y);
        self.line(&format!(
            "<path class=\"{contract}\" d=\"M{x:.1} {y:.1}l5.5 5.5l-5.5 5.5l-5.5 -5.5z\">\
             <title>geometric mean, {contract}: {mean:.2}</title></path>"
        ));
        self.value(mean, if mean < 1.0 { x - 5.0 } else { x + 5.0 });
        self.described("geometric mean", contract, &format!("{mean:.2}"));
    }

    fn described(&mut self, name: &str, contract: &str, what: &str) {
        let _ = write!(self.description, " {name}, {contract}: {what}.");
    }

    fn finish(self) -> String {
        let title = "Our time by that of the fastest valid PyTorch";
        let height = self.y - 25.0;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" \
             width=\"{WIDTH}\" height=\"{height:.0}\" \
             role=\"img\" aria-labelledby=\"title description\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n\
             <title id=\"title\">{title}</title>\n\
             <desc id=\"description\">Bars on a logarithmic axis around 1; below 1 ours is faster.{}</desc>\n\
             <style>\n{STYLE}\n</style>\n\
             <path class=\"page\" d=\"M0 0h{WIDTH}v{height:.0}h-{WIDTH}z\"/>\n\
             <text x=\"20\" y=\"28\" class=\"ink\" font-size=\"16\" font-weight=\"600\">{title}</text>\n{}</svg>\n",
            self.description, self.text
        )
    }
}

/// A tick without zeros that say nothing.
fn number(tick: f64) -> String {
    let text = format!("{tick:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
