//! From the results of two engines to a verdict: which tensors agree, which do not, what is missing.

use crate::gate::{Difference, Limits, Paper, difference, numbers, total};
use crate::number;
use griffinfly::import::safetensors::{File, TensorView};
use serde::{Deserialize, Serialize};

/// What names of gradients in dumps start with.
const GRADIENT: &str = "grad.";

/// One tensor, compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Compared {
    pub(crate) name: String,
    pub(crate) difference: Difference,
    /// Error by the error that is allowed: up to 1 passes.
    #[serde(with = "number")]
    pub(crate) severity: f64,
    pub(crate) passes: bool,
}

/// One cell of results, compared with the oracle's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Verdict {
    /// Tensors that are missing, unexpected or of another shape or type.
    pub(crate) faults: Vec<String>,
    /// Output or loss.
    pub(crate) forward: Vec<Compared>,
    /// Gradients, worst first.
    pub(crate) backward: Vec<Compared>,
    /// The paper's gates, by what they look at.
    pub(crate) paper: Vec<(String, Paper)>,
}

impl Verdict {
    pub(crate) fn passes(&self) -> bool {
        self.faults.is_empty() && self.disagreements().next().is_none()
    }

    /// Tensors that do not pass, worst first.
    pub(crate) fn disagreements(&self) -> impl Iterator<Item = &Compared> {
        self.forward.iter().chain(&self.backward).filter(|c| !c.passes)
    }
}

/// Compares all tensors of a dump with those of the oracle.
pub(crate) fn judge(found: &File, oracle: &File, limits: Limits) -> Verdict {
    let (pairs, faults) = pairs(found, oracle);
    let differences: Vec<(&str, Difference)> =
        pairs.iter().filter_map(|(name, a, b)| Some((*name, difference(numbers(a)?, numbers(b)?)))).collect();
    let is_gradient = |name: &str| name.starts_with(GRADIENT);
    let norms = |f: fn(&Difference) -> f64| {
        total(differences.iter().filter(|(name, _)| is_gradient(name)).map(move |(_, d)| f(d)))
    };
    let whole = norms(|d| d.reference);
    let mut verdict = Verdict { faults, forward: Vec::new(), backward: Vec::new(), paper: Vec::new() };
    for (name, d) in &differences {
        let gradient = is_gradient(name);
        let limit = if gradient { limits.gradient } else { limits.output };
        let passes = if gradient { d.gradient_passes(limit, whole) } else { d.passes(limit) };
        let severity = match () {
            () if gradient && d.finite && d.is_negligible(whole) => {
                d.error / (crate::gate::NEGLIGIBLE * whole)
            }
            () => d.relative() / limit,
        };
        let side = if gradient { &mut verdict.backward } else { &mut verdict.forward };
        side.push(Compared { name: (*name).into(), difference: *d, severity, passes });
    }
    verdict.backward.sort_by(|a, b| b.severity.total_cmp(&a.severity));
    verdict.paper = paper(&pairs, &differences);
    verdict
}

type Pair<'a> = (&'a str, TensorView<'a>, TensorView<'a>);

/// Tensors that both have in the same shape, and everything else as faults.
fn pairs<'a>(found: &'a File, oracle: &'a File) -> (Vec<Pair<'a>>, Vec<String>) {
    let (mut pairs, mut faults) = (Vec::new(), Vec::new());
    for name in oracle.names() {
        let (Some(b), a) = (oracle.tensor(name), found.tensor(name)) else { continue };
        match a {
            None => faults.push(format!("'{name}' is missing")),
            Some(a) if a.shape != b.shape => {
                faults.push(format!("'{name}' is {:?}, the oracle's is {:?}", a.shape, b.shape));
            }
            Some(a) if numbers(&a).is_none() || numbers(&b).is_none() => {
                faults
                    .push(format!("'{name}' is {} and {}, which are no floats to compare", a.dtype, b.dtype));
            }
            Some(a) => pairs.push((name, a, b)),
        }
    }
    let extra = found.names().filter(|name| oracle.tensor(name).is_none());
    faults.extend(extra.map(|name| format!("'{name}' is not among the oracle's results")));
    if pairs.is_empty() {
        faults.push("nothing to compare".into());
    }
    (pairs, faults)
}

fn paper(pairs: &[Pair<'_>], differences: &[(&str, Difference)]) -> Vec<(String, Paper)> {
    let all = |view: &TensorView<'_>| numbers(view).map(Iterator::collect::<Vec<f64>>).unwrap_or_default();
    let mut gates = Vec::new();
    for (name, a, b) in pairs {
        match *name {
            "output" => gates.push(("output".into(), Paper::output(&all(a), &all(b)))),
            "loss" => {
                let first = |view| all(view).first().copied().unwrap_or(f64::NAN);
                gates.push(("loss".into(), Paper::loss(first(a), first(b))));
            }
            _ => {}
        }
    }
    let norms: Vec<(f64, f64)> = differences
        .iter()
        .filter(|(name, _)| name.starts_with(GRADIENT))
        .map(|(_, d)| (d.found, d.reference))
        .collect();
    if !norms.is_empty() {
        gates.push(("gradients".into(), Paper::gradients(&norms)));
    }
    gates
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Precision;
    use griffinfly::import::safetensors::{Dtype, TensorSource, parse, to_bytes};
    use std::collections::BTreeMap;

    fn dump(tensors: &[(&str, &[f32])]) -> File {
        let bytes: Vec<Vec<u8>> =
            tensors.iter().map(|(_, v)| v.iter().flat_map(|x| x.to_le_bytes()).collect()).collect();
        let shapes: Vec<[usize; 1]> = tensors.iter().map(|(_, v)| [v.len()]).collect();
        let sources: Vec<TensorSource<'_>> = (0..tensors.len())
            .map(|i| TensorSource {
                name: tensors[i].0,
                dtype: Dtype::F32,
                shape: &shapes[i],
                bytes: &bytes[i],
            })
            .collect();
        parse(to_bytes(&sources, &BTreeMap::new()).unwrap()).unwrap()
    }

    fn strict(found: &File, oracle: &File) -> Verdict {
        judge(found, oracle, Limits::of(Precision::Strict))
    }

    #[test]
    fn equal_results_pass() {
        let oracle = dump(&[("loss", &[2.0]), ("grad.a", &[1.0, 2.0]), ("grad.b", &[0.0])]);
        let verdict = strict(&oracle, &oracle);
        assert!(verdict.passes());
        assert_eq!((verdict.forward.len(), verdict.backward.len()), (1, 2));
        assert!(verdict.paper.iter().all(|(_, gate)| gate.passes()));
    }

    #[test]
    fn a_planted_error_in_a_gradient_is_found_and_named_first() {
        let oracle = dump(&[("loss", &[2.0]), ("grad.a", &[1.0, 2.0]), ("grad.b", &[0.3, 0.4])]);
        // Swapped elements: the norm is right, the tensor is not.
        let found = dump(&[("loss", &[2.0]), ("grad.a", &[1.0, 2.000_01]), ("grad.b", &[0.4, 0.3])]);
        let verdict = strict(&found, &oracle);
        assert!(!verdict.passes());
        let names: Vec<&str> = verdict.disagreements().map(|c| c.name.as_str()).collect();
        assert_eq!((names, verdict.backward[0].name.as_str()), (vec!["grad.b"], "grad.b"));
        assert!(verdict.forward[0].passes);
        assert!(verdict.paper.iter().all(|(_, gate)| gate.passes()), "norms cannot see it");
    }

    #[test]
    fn an_error_in_the_output_spares_the_gradients() {
        let oracle = dump(&[("output", &[1.0, 2.0]), ("grad.a", &[1.0])]);
        let verdict = strict(&dump(&[("output", &[1.0, 2.001]), ("grad.a", &[1.0])]), &oracle);
        assert!(!verdict.forward[0].passes && verdict.backward[0].passes && !verdict.passes());
    }

    #[test]
    fn a_small_gradient_counts_as_much_as_a_large_one() {
        let oracle = dump(&[("grad.large", &[1e3]), ("grad.small", &[1e-3])]);
        let verdict = strict(&dump(&[("grad.large", &[1e3]), ("grad.small", &[1.01e-3])]), &oracle);
        assert_eq!(verdict.disagreements().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["grad.small"]);
    }

    #[test]
    fn what_is_missing_or_misshapen_fails() {
        let oracle = dump(&[("grad.a", &[1.0, 2.0]), ("grad.b", &[1.0])]);
        let verdict = strict(&dump(&[("grad.a", &[1.0]), ("grad.c", &[1.0])]), &oracle);
        let all = verdict.faults.join("; ");
        for part in ["'grad.a' is [1], the oracle's is [2]", "'grad.b' is missing", "'grad.c' is not among"] {
            assert!(all.contains(part), "{all}");
        }
        assert!(all.contains("nothing to compare") && !verdict.passes());
    }

    #[test]
    fn nan_fails() {
        let oracle = dump(&[("output", &[1.0, 2.0])]);
        assert!(!strict(&dump(&[("output", &[1.0, f32::NAN])]), &oracle).passes());
        assert!(!strict(&oracle, &dump(&[("output", &[f32::NAN, 2.0])])).passes());
    }
}
