//! Rows of parameter tables.

/// How a parameter gets its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// By the rule of [`crate::fill`], in order of the elements.
    Natural,
    /// By the same rule in the order `[in, out]`: weights of matrix products, which lie as `[out, in]`.
    Product,
    /// One: weights of norms.
    Ones,
    /// Zero: biases of norms.
    Zeros,
}

/// One parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) fill: Fill,
}

/// A table in the making.
#[derive(Default)]
pub(super) struct Table(pub(super) Vec<Parameter>);

impl Table {
    pub(super) fn natural(&mut self, name: impl Into<String>, shape: &[usize]) {
        self.add(name.into(), shape, Fill::Natural);
    }

    /// `name.weight [outputs, inputs]` of a matrix product.
    pub(super) fn linear(&mut self, name: &str, outputs: usize, inputs: usize) {
        self.add(format!("{name}.weight"), &[outputs, inputs], Fill::Product);
    }

    /// The same with `name.bias [outputs]`.
    pub(super) fn linear_bias(&mut self, name: &str, outputs: usize, inputs: usize) {
        self.linear(name, outputs, inputs);
        self.natural(format!("{name}.bias"), &[outputs]);
    }

    /// `name.weight`, and `name.bias` where the norm has one.
    pub(super) fn norm(&mut self, name: &str, width: usize, bias: bool) {
        self.add(format!("{name}.weight"), &[width], Fill::Ones);
        if bias {
            self.add(format!("{name}.bias"), &[width], Fill::Zeros);
        }
    }

    fn add(&mut self, name: String, shape: &[usize], fill: Fill) {
        self.0.push(Parameter { name, shape: shape.to_vec(), fill });
    }
}
