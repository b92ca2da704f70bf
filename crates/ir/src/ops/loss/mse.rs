//! Mean squared error, a composition.

use crate::graph::{Graph, Value};

impl Graph {
    /// `average((a - b)^2)` over all elements: a scalar. The shapes must be equal: broadcasting here hides mistakes.
    #[track_caller]
    pub fn mse(&mut self, a: Value, b: Value) -> Value {
        if let (Some(x), Some(y)) = (self.ty(a), self.ty(b))
            && x != y
        {
            let e = format!("{x} and {y} differ: a squared error needs equal types");
            return self.fail("mse", &[a, b], e);
        }
        let d = self.sub(a, b);
        let dd = self.mul(d, d);
        self.mean_all(dd)
    }
}
