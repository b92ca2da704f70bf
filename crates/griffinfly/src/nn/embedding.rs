//! Lookup of rows by id.

use griffinfly_ir::graph::{Graph, Init, Value};

/// Rows of a table by id; weight `[count, width]`, normal at first, with deviation 1 unless it is told another.
#[derive(Clone, Debug)]
pub struct Embedding {
    name: String,
    count: usize,
    width: usize,
    deviation: f32,
}

impl Embedding {
    /// A table of `count` rows.
    #[must_use]
    pub fn new(name: impl Into<String>, count: usize, width: usize) -> Embedding {
        Embedding { name: name.into(), count, width, deviation: 1.0 }
    }

    /// Draws the table with this standard deviation.
    #[must_use]
    pub fn deviation(mut self, deviation: f32) -> Embedding {
        self.deviation = deviation;
        self
    }

    /// Draws a table that is the weight of an output head too so that logits have a deviation of about 1 at first.
    #[must_use]
    pub(crate) fn tied(self) -> Embedding {
        let width = self.width.max(1) as f32;
        self.deviation(1.0 / width.sqrt())
    }

    /// Adds the layer: ids `[..]` give `[.., width]`. Ids that are an input are checked when they are set, ids computed by
    /// the model while a step runs.
    #[track_caller]
    pub fn apply(&self, g: &mut Graph, ids: Value) -> Value {
        g.layer(&self.name, |g| {
            let (name, init) = (format!("{}.weight", self.name), Init::Normal(self.deviation.into()));
            let weight = g.parameter(&name, [self.count, self.width], init);
            g.embedding(weight, ids)
        })
    }
}
