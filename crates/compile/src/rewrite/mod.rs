//! placeholder
use griffinfly_ir::graph::Graph;
/// x
#[must_use]
pub fn simplify(g: &Graph) -> Graph { g.rebuild(&mut |_, _, _| None) }
