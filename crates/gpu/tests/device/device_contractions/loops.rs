//! Contractions by hand: products with every layout and epilogue, convolutions in all directions.

use griffinfly_ir::index::{Access, Bound, Domain, IndexExpr, Store};
use griffinfly_ir::loops::{Body, Contract, Loop, LoopKind, Term};
use griffinfly_ir::scalar::{BinaryFn, Scalar, ScalarNode, UnaryFn};
use griffinfly_ir::types::{DType, TensorType};

/// What happens to the sums.
#[derive(Clone, Copy)]
pub(super) enum Epilogue {
    /// Stored.
    Plain,
    /// `max(acc + bias[n], 0)`.
    BiasRelu,
    /// Two results: `acc + residual[m, n]`, and its square.
    Residual,
    /// Stored with rows and columns swapped.
    Transposed,
}

/// A matrix product.
pub(super) struct Product {
    pub(super) batch: Vec<usize>,
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) transposed: [bool; 2],
    /// Whether the left factor goes through `max(x, 0)`.
    pub(super) prologue: bool,
    pub(super) epilogue: Epilogue,
}

fn axis(a: usize) -> IndexExpr {
    IndexExpr::axis(a)
}

impl Product {
    pub(super) fn new(m: usize, n: usize, k: usize) -> Self {
        let (batch, transposed) = (Vec::new(), [false; 2]);
        Product { batch, m, n, k, transposed, prologue: false, epilogue: Epilogue::Plain }
    }

    pub(super) fn build(&self) -> Loop {
        let nb = self.batch.len();
        let shape = |dims: [usize; 2], swap: bool| {
            let dims = if swap { [dims[1], dims[0]] } else { dims };
            TensorType::f32([self.batch.as_slice(), &dims].concat())
        };
        // Loop axes are batch ++ row ++ product; a tensor is stored row-major in the order of its dimensions.
        let access = |product_first: bool| {
            let matrix = if product_first { [nb + 1, nb] } else { [nb, nb + 1] };
            Access::at((0..nb).chain(matrix).map(IndexExpr::axis).collect())
        };
        let a_type = shape([self.m, self.k], self.transposed[0]);
        let b_type = shape([self.k, self.n], self.transposed[1]);
        let mut a = Body::new();
        let mut x = a.load(0, &a_type, access(self.transposed[0]));
        if self.prologue {
            let zero = a.expr.f32(0.0);
            x = a.expr.binary(BinaryFn::Max, x, zero);
        }
        a.output(x);
        let b = Body::of_load(1, &b_type, access(!self.transposed[1]));
        let mut operands = vec![a_type, b_type];
        let (epilogue, stores, results) = self.epilogue(&mut operands);
        let (batch, m, n, k) = (self.batch.clone(), vec![self.m], vec![self.n], vec![self.k]);
        Loop {
            operands,
            results,
            kind: LoopKind::Contract(Contract { batch, m, n, k, a, b, more: vec![], epilogue, stores }),
        }
    }

    fn epilogue(&self, operands: &mut Vec<TensorType>) -> (Body, Vec<Store>, Vec<TensorType>) {
        let nb = self.batch.len();
        let out = TensorType::f32([self.batch.as_slice(), &[self.m, self.n]].concat());
        let mut body = Body::new();
        let acc = body.expr.carry(0, DType::F32);
        let identity = |result| Store::identity(result, nb + 2);
        match self.epilogue {
            Epilogue::Plain => {
                body.output(acc);
                (body, vec![identity(0)], vec![out])
            }
            Epilogue::BiasRelu => {
                operands.push(TensorType::f32([self.n]));
                let bias = body.load(2, &operands[2], Access::at(vec![axis(nb + 1)]));
                let (sum, zero) = (body.expr.add(acc, bias), body.expr.f32(0.0));
                let y = body.expr.binary(BinaryFn::Max, sum, zero);
                body.output(y);
                (body, vec![identity(0)], vec![out])
            }
            Epilogue::Residual => {
                operands.push(out.clone());
                let residual = body.load(2, &out, Access::identity(nb + 2));
                let sum = body.expr.add(acc, residual);
                let square = body.expr.mul(sum, sum);
                body.output(sum);
                body.output(square);
                (body, vec![identity(0), identity(1)], vec![out.clone(), out])
            }
            Epilogue::Transposed => {
                body.output(acc);
                let coords = (0..nb).chain([nb + 1, nb]).map(IndexExpr::axis).collect();
                let out = TensorType::f32([self.batch.as_slice(), &[self.n, self.m]].concat());
                (body, vec![Store { result: 0, coords }], vec![out])
            }
        }
    }
}

/// A term besides the product itself.
#[derive(Clone, Copy)]
pub(super) struct Further {
    /// Products; none: those of the term before, with its left factor.
    pub(super) k: Option<usize>,
    /// The sum it adds to.
    pub(super) sum: usize,
}

impl Product {
    /// The product with further terms; what is stored is `acc` or, of two sums, `acc * 0.5 + other`.
    pub(super) fn with_terms(&self, further: &[Further]) -> Loop {
        let mut l = self.build();
        let (batch, m, n) = (self.batch.clone(), self.m, self.n);
        let nb = batch.len();
        let LoopKind::Contract(c) = &mut l.kind else { return l };
        for term in further {
            let before = c.terms().last().map(|(k, a, ..)| (k.to_vec(), a.clone()));
            let (k, a) = match (term.k, before) {
                (Some(k), _) => {
                    l.operands.push(TensorType::f32([batch.as_slice(), &[m, k]].concat()));
                    let at = l.operands.len() - 1;
                    (vec![k], Body::of_load(at, &l.operands[at], Access::identity(nb + 2)))
                }
                (None, Some(before)) => before,
                (None, None) => continue,
            };
            l.operands.push(TensorType::f32([batch.as_slice(), &[n, k[0]]].concat()));
            let at = l.operands.len() - 1;
            let b = Body::of_load(at, &l.operands[at], Access::identity(nb + 2));
            c.more.push(Term { k, a, b, sum: term.sum });
        }
        if c.sums() == 2 {
            let mut body = Body::new();
            let (x, y) = (body.expr.carry(0, DType::F32), body.expr.carry(1, DType::F32));
            let half = body.expr.f32(0.5);
            let x = body.expr.mul(x, half);
            let sum = body.expr.add(x, y);
            body.output(sum);
            c.epilogue = body;
        }
        l
    }
}

/// A contraction of `x g` whose rows are scaled by `1 / sqrt(average of x^2 + 1e-3)`: x is the left factor of the first term and
/// of those that have the same one, g an operand over its products.
pub(super) fn with_row_scale(mut l: Loop) -> Loop {
    let (dims, at) = match &l.kind {
        LoopKind::Contract(c) => (c.k.clone(), [c.batch.len() + c.m.len(), c.sums()]),
        _ => return l,
    };
    let products = dims.iter().product::<usize>() as f32;
    let weights = TensorType::f32(dims.clone());
    l.operands.push(weights.clone());
    let operand = l.operands.len() - 1;
    let LoopKind::Contract(c) = &mut l.kind else { return l };
    let mut a = c.a.clone();
    let x = a.expr.outputs()[0];
    let access = Access::at((0..dims.len()).map(|i| axis(at[0] + i)).collect());
    let g = a.load(operand, &weights, access);
    let (element, square) = (a.expr.mul(x, g), a.expr.mul(x, x));
    a.expr.set_outputs(vec![element, square]);
    c.more.iter_mut().filter(|term| term.a == c.a).for_each(|term| term.a = a.clone());
    c.a = a;
    let mut epilogue = Body::new();
    let e = &mut epilogue.expr;
    let (sum, per, eps) = (e.carry(at[1], DType::F32), e.f32(1.0 / products), e.f32(1e-3));
    let average = e.mul(sum, per);
    let shifted = e.add(average, eps);
    let scale = e.unary(UnaryFn::Rsqrt, shifted);
    let outputs = epilogue.import(&c.epilogue, c.epilogue.expr.outputs(), &mut |body, node| match node {
        ScalarNode::Carry(k) => {
            let sum = body.expr.carry(*k as usize, DType::F32);
            Some(body.expr.mul(sum, scale))
        }
        _ => None,
    });
    epilogue.expr.set_outputs(outputs);
    c.epilogue = epilogue;
    l
}

/// A square two-dimensional convolution.
#[derive(Clone, Copy)]
pub(super) struct Conv {
    pub(super) batch: usize,
    /// In and out.
    pub(super) channels: [usize; 2],
    pub(super) size: [usize; 2],
    pub(super) filter: usize,
    pub(super) stride: usize,
    pub(super) pad: usize,
}

impl Conv {
    fn out(&self) -> [usize; 2] {
        self.size.map(|s| (s + 2 * self.pad - self.filter) / self.stride + 1)
    }

    fn types(&self) -> [TensorType; 3] {
        let ([c, o], [h, w], [p, q]) = (self.channels, self.size, self.out());
        let (n, f) = (self.batch, self.filter);
        [[n, c, h, w], [o, c, f, f], [n, o, p, q]].map(TensorType::f32)
    }

    /// Input row or column read by an output one and a filter one.
    fn input(&self, out: usize, filter: usize) -> IndexExpr {
        axis(out).times(self.stride as i64).plus(&axis(filter)).plus_constant(-(self.pad as i64))
    }

    /// The input image at output (p, q) and filter (r, s).
    fn image(&self, [n, c, p, q, r, s]: [usize; 6]) -> Access {
        let (y, x) = (self.input(p, r), self.input(q, s));
        let inside = |e: &IndexExpr, size: usize| Bound::new(e.clone(), 0, size as i64);
        let valid = vec![inside(&y, self.size[0]), inside(&x, self.size[1])];
        Access::at(vec![axis(n), axis(c), y, x]).when(valid, Scalar::f32(0.0))
    }

    fn contract(
        &self,
        groups: [Vec<usize>; 3],
        factors: [(TensorType, Access); 2],
        out: (TensorType, Vec<usize>),
    ) -> Loop {
        let [(ta, aa), (tb, ab)] = factors;
        let mut epilogue = Body::new();
        let acc = epilogue.expr.carry(0, DType::F32);
        epilogue.output(acc);
        let [m, n, k] = groups;
        let stores = vec![Store { result: 0, coords: out.1.into_iter().map(IndexExpr::axis).collect() }];
        let (a, b) = (Body::of_load(0, &ta, aa), Body::of_load(1, &tb, ab));
        let kind =
            LoopKind::Contract(Contract { batch: vec![], m, n, k, a, b, more: vec![], epilogue, stores });
        Loop { operands: vec![ta, tb], results: vec![out.0], kind }
    }

    /// `y[n,o,p,q] = sum over c,r,s of x[n,c,..] w[o,c,r,s]`.
    pub(super) fn forward(&self) -> Loop {
        let ([x, w, y], [c, o], [p, q], f) = (self.types(), self.channels, self.out(), self.filter);
        let a = (x, self.image([0, 3, 1, 2, 4, 5]));
        let b = (w, Access::identity(4));
        self.contract([vec![self.batch, p, q], vec![o], vec![c, f, f]], [a, b], (y, vec![0, 3, 1, 2]))
    }

    /// The same with channels innermost everywhere.
    pub(super) fn forward_channels_last(&self) -> Loop {
        let ([c, o], [h, w], [p, q], f) = (self.channels, self.size, self.out(), self.filter);
        let (x, y) = (TensorType::f32([self.batch, h, w, c]), TensorType::f32([self.batch, p, q, o]));
        let weights = TensorType::f32([o, f, f, c]);
        let mut image = self.image([0, 5, 1, 2, 3, 4]);
        image.coords.swap(1, 2);
        image.coords.swap(2, 3);
        let b = (weights, Access::identity(4));
        self.contract(
            [vec![self.batch, p, q], vec![o], vec![f, f, c]],
            [(x, image), b],
            (y, vec![0, 1, 2, 3]),
        )
    }

    /// `y[n,o,p,q] = sum over r,s,c of w[o,r,s,c] x[n,c,..]`: a tile of products has one tap.
    pub(super) fn forward_by_taps(&self) -> Loop {
        let ([x, _, y], [c, o], [p, q], f) = (self.types(), self.channels, self.out(), self.filter);
        let a = (TensorType::f32([o, f, f, c]), Access::identity(4));
        let b = (x, self.image([0, 5, 1, 2, 3, 4]));
        self.contract([vec![o], vec![self.batch, p, q], vec![f, f, c]], [a, b], (y, vec![1, 0, 2, 3]))
    }

    /// `dx[n,c,h,w] = sum over r,s,o of w[o,r,s,c] dy[n,o,h+pad-r,..]` without a stride.
    pub(super) fn input_gradient_by_taps(&self) -> Loop {
        let ([x, _, y], [c, o], [p, q], f) = (self.types(), self.channels, self.out(), self.filter);
        let a = (TensorType::f32([o, f, f, c]), Access::at([3, 1, 2, 0].map(IndexExpr::axis).to_vec()));
        let at = |position: usize, tap: usize| {
            axis(position).plus(&axis(tap).times(-1)).plus_constant(self.pad as i64)
        };
        let (row, column) = (at(1, 3), at(2, 4));
        let valid = vec![Bound::new(row.clone(), 0, p as i64), Bound::new(column.clone(), 0, q as i64)];
        let b = (y, Access::at(vec![axis(0), axis(5), row, column]).when(valid, Scalar::f32(0.0)));
        let n = vec![self.batch, self.size[0], self.size[1]];
        self.contract([vec![c], n, vec![f, f, o]], [a, b], (x, vec![1, 0, 2, 3]))
    }

    /// `dx[n,c,h,w] = sum over o,r,s of dy[n,o,(h+pad-r)/stride,..] w[o,c,r,s]`, where the division is exact.
    pub(super) fn input_gradient(&self) -> Loop {
        let ([x, w, y], [c, o], [p, q], f) = (self.types(), self.channels, self.out(), self.filter);
        let m = vec![self.batch, self.size[0], self.size[1]];
        let k = vec![o, f, f];
        let extents = [m.as_slice(), &k].concat();
        let (mut coords, mut valid) = (vec![axis(0), axis(3)], Vec::new());
        for (position, filter, size) in [(1, 4, p), (2, 5, q)] {
            let at = axis(position).plus(&axis(filter).times(-1)).plus_constant(self.pad as i64);
            let stride = self.stride as i64;
            if stride > 1 {
                valid.push(Bound::new(at.rem(stride, Domain::of(&extents)), 0, 1));
            }
            let at = at.div(stride, Domain::of(&extents));
            valid.push(Bound::new(at.clone(), 0, size as i64));
            coords.push(at);
        }
        let a = (y, Access::at(coords).when(valid, Scalar::f32(0.0)));
        let b = (w, Access::at([1, 0, 2, 3].map(IndexExpr::axis).to_vec()));
        self.contract([m, vec![c], k], [a, b], (x, vec![0, 3, 1, 2]))
    }

    /// `dw[o,c,r,s] = sum over n,p,q of dy[n,o,p,q] x[n,c,..]`.
    pub(super) fn weight_gradient(&self) -> Loop {
        let ([x, w, y], [c, o], [p, q], f) = (self.types(), self.channels, self.out(), self.filter);
        let a = (y, Access::at([1, 0, 2, 3].map(IndexExpr::axis).to_vec()));
        let b = (x, self.image([3, 0, 4, 5, 1, 2]));
        self.contract([vec![o], vec![c, f, f], vec![self.batch, p, q]], [a, b], (w, vec![0, 1, 2, 3]))
    }
}
