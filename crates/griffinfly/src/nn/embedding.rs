//! Lookup of rows by id.

use griffinfly_ir::graph::{Graph, Init, Value};

/// Rows of a table by id; weight `[count, width]`, normal with deviation 1 at first.
#[derive(Clone, Debug)]
pub struct Embedding {
    name: String,
    count: usize,
    width: usize,
}

impl Embedding {
    /// A table of `count` rows.
    #[must_use]
    pub fn new(name: impl Into<String>, count: usize, width: usize) -> Embedding {
        Embedding { name: name.into(), count, width }
    }

    /// Adds the layer: ids `[..]` give `[.., width]`. Ids that are an input are checked when they are set, ids computed by
    /// the model while a step runs.
    #[track_caller]
    pub fn apply(&self, g: &mut Graph, ids: Value) -> Value {
        g.layer(&self.name, |g| {
            let (name, init) = (format!("{}.weight", self.name), Init::Normal(1.0.into()));
            let weight = g.parameter(&name, [self.count, self.width], init);
            g.embedding(weight, ids)
        })
    }
}
