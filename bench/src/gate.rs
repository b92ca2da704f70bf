//! When results count: full tensors against the oracle, element by element.
//!
//! Plain functions from numbers to verdicts. Forward (output, loss) and backward (gradients) are judged independently. The
//! paper's own gates, over 256 samples and norms, are computed beside ours and decide nothing.

use crate::number;
use crate::record::Precision;
use griffinfly::import::safetensors::{Dtype, TensorView};
use serde::{Deserialize, Serialize};

/// Largest relative L2 errors that pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limits {
    /// Of outputs and the loss.
    pub(crate) output: f64,
    /// Of every gradient.
    pub(crate) gradient: f64,
}

impl Limits {
    pub(crate) fn of(precision: Precision) -> Limits {
        match precision {
            Precision::Strict | Precision::F64 => Limits { output: 1e-4, gradient: 1e-4 },
            Precision::Fast => Limits { output: 1e-2, gradient: 5e-2 },
        }
    }
}

/// A gradient whose norm is below this part of the total norm must only be as negligible in the candidate: its error is
/// compared with this part of the total.
pub(crate) const NEGLIGIBLE: f64 = 1e-9;

/// Numbers of a tensor of floats, as `f64`; none where it holds no floats.
pub(crate) fn numbers<'a>(view: &TensorView<'a>) -> Option<Box<dyn Iterator<Item = f64> + 'a>> {
    let bytes = view.bytes;
    match view.dtype {
        Dtype::F32 => Some(Box::new(
            bytes.chunks_exact(4).map(|b| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]]))),
        )),
        Dtype::F64 => Some(Box::new(
            bytes
                .chunks_exact(8)
                .map(|b| f64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]])),
        )),
        _ => None,
    }
}

/// How one tensor differs from another one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Difference {
    /// Norm of the difference.
    #[serde(with = "number")]
    pub(crate) error: f64,
    /// Norm of the candidate.
    #[serde(with = "number")]
    pub(crate) found: f64,
    /// Norm of the reference.
    #[serde(with = "number")]
    pub(crate) reference: f64,
    /// Largest difference of an element.
    #[serde(with = "number")]
    pub(crate) max: f64,
    /// Cosine of the angle between them; 1 where both are zero.
    #[serde(with = "number")]
    pub(crate) cosine: f64,
    /// Whether all elements of both are finite.
    pub(crate) finite: bool,
}

/// Compares elements in order; both have equally many.
pub(crate) fn difference(
    found: impl Iterator<Item = f64>,
    reference: impl Iterator<Item = f64>,
) -> Difference {
    let (mut error, mut aa, mut bb, mut ab, mut max, mut finite) = (0.0, 0.0, 0.0, 0.0, 0.0_f64, true);
    for (a, b) in found.zip(reference) {
        let d: f64 = a - b;
        error += d * d;
        aa += a * a;
        bb += b * b;
        ab += a * b;
        max = max.max(d.abs());
        finite &= a.is_finite() && b.is_finite();
    }
    let cosine = if aa == 0.0 && bb == 0.0 { 1.0 } else { ab / (aa * bb).sqrt() };
    Difference { error: error.sqrt(), found: aa.sqrt(), reference: bb.sqrt(), max, cosine, finite }
}

impl Difference {
    /// Relative L2 error: infinite where only the reference is zero, or anything is not finite.
    pub(crate) fn relative(&self) -> f64 {
        match self {
            Difference { finite: false, .. } => f64::INFINITY,
            Difference { error: 0.0, .. } => 0.0,
            _ => self.error / self.reference,
        }
    }

    /// Whether an output or loss passes.
    pub(crate) fn passes(&self, limit: f64) -> bool {
        self.relative() <= limit
    }

    /// Whether a gradient passes, where all gradients of the reference together have the norm `total`.
    pub(crate) fn gradient_passes(&self, limit: f64, total: f64) -> bool {
        if self.is_negligible(total) {
            return self.finite && self.error <= NEGLIGIBLE * total;
        }
        self.passes(limit)
    }

    /// Whether the reference is so small a part of all gradients that it is not compared relatively.
    pub(crate) fn is_negligible(&self, total: f64) -> bool {
        self.reference < NEGLIGIBLE * total
    }
}

/// Norm of several tensors together, from their norms.
pub(crate) fn total(norms: impl Iterator<Item = f64>) -> f64 {
    norms.map(|x| x * x).sum::<f64>().sqrt()
}

/// The paper's gates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Paper {
    /// Relative error of what it looks at.
    #[serde(with = "number")]
    pub(crate) error: f64,
    /// Relative error of the second thing it looks at.
    #[serde(with = "number")]
    pub(crate) second: f64,
    /// Below this both must be.
    pub(crate) limit: f64,
}

impl Paper {
    /// Of 256 samples of the output.
    pub(crate) fn output(found: &[f64], reference: &[f64]) -> Paper {
        let sample = |values: &[f64]| -> Vec<f64> {
            let last = values.len().saturating_sub(1);
            (0..256).filter_map(|k| values.get(k * last / 255).copied()).collect()
        };
        let d = difference(sample(found).into_iter(), sample(reference).into_iter());
        Paper { error: d.relative(), second: 0.0, limit: 0.01 }
    }

    /// Of the loss.
    pub(crate) fn loss(found: f64, reference: f64) -> Paper {
        let scale = found.abs().max(reference.abs()).max(1e-12);
        Paper { error: (found - reference).abs() / scale, second: 0.0, limit: 0.01 }
    }

    /// Of the total gradient norm, and of the vector of the gradients' norms.
    pub(crate) fn gradients(pairs: &[(f64, f64)]) -> Paper {
        let [a, b] = [total(pairs.iter().map(|p| p.0)), total(pairs.iter().map(|p| p.1))];
        let vector = difference(pairs.iter().map(|p| p.0), pairs.iter().map(|p| p.1));
        Paper { error: (a - b).abs() / b.max(1e-12), second: vector.relative(), limit: 0.05 }
    }

    pub(crate) fn passes(&self) -> bool {
        self.error < self.limit && self.second < self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(a: &[f64], b: &[f64]) -> Difference {
        difference(a.iter().copied(), b.iter().copied())
    }

    #[test]
    fn errors_are_relative_to_the_reference() {
        let d = compare(&[3.0, 4.5], &[3.0, 4.0]);
        assert_eq!((d.error, d.reference, d.max, d.finite), (0.5, 5.0, 0.5, true));
        assert_eq!(d.relative(), 0.1);
        assert!(d.passes(0.1) && !d.passes(0.0999));
        assert_eq!(compare(&[0.0; 2], &[0.0; 2]).relative(), 0.0);
        assert_eq!(compare(&[0.0, 1.0], &[0.0; 2]).relative(), f64::INFINITY);
    }

    #[test]
    fn directions_count_not_only_norms() {
        let d = compare(&[4.0, 3.0], &[3.0, 4.0]);
        assert_eq!((d.found, d.reference), (5.0, 5.0));
        assert!((d.cosine - 0.96).abs() < 1e-12 && !d.passes(1e-2));
        assert_eq!(compare(&[-1.0], &[1.0]).cosine, -1.0);
    }

    #[test]
    fn what_is_not_finite_fails() {
        for (a, b) in [(f64::NAN, 1.0), (1.0, f64::NAN), (f64::INFINITY, f64::INFINITY)] {
            let d = compare(&[a], &[b]);
            assert!(!d.passes(1e9) && !d.gradient_passes(1e9, 1e12), "{a} {b}");
        }
    }

    #[test]
    fn negligible_gradients_are_compared_with_the_total() {
        let total = 1e3;
        let wrong_sign = compare(&[-1e-7], &[1e-7]);
        assert!(wrong_sign.is_negligible(total) && wrong_sign.gradient_passes(1e-4, total));
        let too_large = compare(&[2e-6], &[1e-7]);
        assert!(too_large.is_negligible(total) && !too_large.gradient_passes(1e-4, total));
        // Just above the bound the relative error counts.
        assert!(!compare(&[-1.1e-6], &[1.1e-6]).gradient_passes(1e-4, total));
    }

    #[test]
    fn contracts_have_their_limits() {
        assert_eq!(Limits::of(Precision::Strict), Limits { output: 1e-4, gradient: 1e-4 });
        assert_eq!(Limits::of(Precision::Fast), Limits { output: 1e-2, gradient: 5e-2 });
    }

    #[test]
    fn the_papers_gates_see_samples_and_norms_only() {
        let reference: Vec<f64> = (0..1000).map(|i| f64::from(i) + 1.0).collect();
        let mut found = reference.clone();
        found[1] = 1e9;
        assert!(Paper::output(&found, &reference).passes(), "element 1 is no sample");
        assert!(!compare(&found, &reference).passes(1e-2));
        found[999] *= 2.0;
        assert!(!Paper::output(&found, &reference).passes(), "the last element is one");
        assert!(Paper::loss(1.0, 1.0099).passes() && !Paper::loss(1.0, 1.02).passes());
        assert!(Paper::gradients(&[(1.0, 1.0), (2.0, 2.0)]).passes());
        let swapped = Paper::gradients(&[(1.0, 2.0), (2.0, 1.0)]);
        assert!(swapped.error < 1e-12 && !swapped.passes());
        assert!(!Paper::gradients(&[(1.1, 1.0)]).passes());
    }
}
