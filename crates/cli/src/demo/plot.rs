//! The loss curve as text: bars of block characters on a logarithmic scale.

const WIDTH: usize = 64;
const HEIGHT: usize = 8;
/// A column filled by none to eight eighths.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The curve, one line per row, the largest value on top. Each column is the mean of its share of the values.
pub(super) fn curve(values: &[f32]) -> String {
    // `max` would take the floor for NaN, and show a broken training as a perfect one.
    let floor = |mean: f64| if mean.is_nan() { mean } else { mean.max(1e-9) };
    let columns: Vec<f64> = buckets(values).into_iter().map(|mean| floor(mean).log10()).collect();
    let finite = || columns.iter().copied().filter(|x| x.is_finite());
    let (low, high) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
    if low > high {
        return String::new();
    }
    let span = (high - low).max(1e-9);
    // The lowest column keeps one eighth, so that it can be seen.
    let level = |x: f64| 1 + ((x - low) / span * (8 * HEIGHT - 1) as f64).round() as usize;
    let mut out = String::new();
    for row in (0..HEIGHT).rev() {
        let label = match row {
            0 => format!("{:9.4} ", 10_f64.powf(low)),
            r if r == HEIGHT - 1 => format!("{:9.4} ", 10_f64.powf(high)),
            _ => " ".repeat(10),
        };
        let bars = columns.iter().map(|x| match x.is_finite() {
            true => EIGHTHS[level(*x).saturating_sub(8 * row).min(8)],
            false => '?',
        });
        out.push_str(&label);
        out.extend(bars);
        out.push('\n');
    }
    out
}

/// Means of equal shares of the values, at most as many as there are columns.
fn buckets(values: &[f32]) -> Vec<f64> {
    let count = values.len().min(WIDTH);
    let edge = |i: usize| i * values.len() / count;
    let mean = |part: &[f32]| part.iter().map(|x| f64::from(*x)).sum::<f64>() / part.len() as f64;
    (0..count).map(|i| mean(&values[edge(i)..edge(i + 1)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_falling_curve_falls() {
        let values: Vec<f32> = (0..200).map(|i| 10_f32.powf(-i as f32 / 100.0)).collect();
        let text = curve(&values);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), HEIGHT);
        assert!(lines[0].contains('█') && lines[0].ends_with(' '), "{text}");
        assert!(lines[HEIGHT - 1].ends_with('▁'), "{text}");
        assert!(lines.iter().all(|line| line.chars().count() == WIDTH + 10), "{text}");
    }

    #[test]
    fn odd_values_are_survived() {
        assert_eq!(curve(&[]), "");
        assert_eq!(curve(&[f32::NAN]), "");
        assert!(curve(&[1.0]).contains('▁'));
        assert!(curve(&[0.0, 1.0, f32::INFINITY]).contains('?'));
    }
}
