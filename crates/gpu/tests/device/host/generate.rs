//! Random loops: odd sizes, views with divisions, remainders and guards, broadcasts, gathers, several outputs.

use griffinfly_ir::index::{Access, Bound, Domain, Dynamic, IndexExpr, Store};
use griffinfly_ir::loops::{Body, Loop};
use griffinfly_ir::scalar::{BinaryFn, Scalar, ScalarId, UnaryFn};
use griffinfly_ir::types::{DType, TensorType};

/// A small generator of numbers (xorshift).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % n
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Extents of up to `rank` axes, of at most `points` points, one of them sometimes long.
    pub(super) fn extents(&mut self, rank: usize, points: usize) -> Vec<usize> {
        let mut extents: Vec<usize> =
            (0..self.below(rank + 1)).map(|_| self.pick(&[1, 2, 3, 4, 5, 7, 8, 12, 17])).collect();
        while extents.iter().product::<usize>() > points {
            extents.pop();
        }
        let room = points / extents.iter().product::<usize>();
        if self.below(3) == 0 && !extents.is_empty() {
            let at = self.below(extents.len());
            extents[at] *= 1 + self.below(room);
            extents[at] = extents[at].saturating_sub(self.below(3)).max(1);
        }
        extents
    }

    /// Words of a tensor: small whole numbers (so that sums are exact in any order), or anything.
    pub(super) fn words(&mut self, ty: &TensorType, whole: bool) -> Vec<u32> {
        let mut word = || match ty.dtype {
            DType::F32 if whole => (self.below(7) as f32 - 3.0).to_bits(),
            DType::F32 if self.below(200) == 0 => f32::NAN.to_bits(),
            DType::F32 => (self.below(4001) as f32 / 1000.0 - 2.0).to_bits(),
            DType::Bool => self.below(3) as u32,
            DType::I32 | DType::U32 => (self.below(12) as i32 - 3) as u32,
        };
        (0..ty.elements()).map(|_| word()).collect()
    }
}

/// A loop under construction.
pub(super) struct Generator {
    pub(super) random: Random,
    pub(super) operands: Vec<TensorType>,
}

impl Generator {
    pub(super) fn new(seed: u64) -> Self {
        Generator { random: Random::new(seed), operands: Vec::new() }
    }

    pub(super) fn data(&mut self, whole: bool) -> Vec<Vec<u32>> {
        let types = self.operands.clone();
        types.iter().map(|ty| self.random.words(ty, whole)).collect()
    }

    /// A coordinate over the domain with the size of its dimension, and bounds it needs.
    fn coordinate(&mut self, axis: usize, extents: &[usize]) -> (IndexExpr, usize, Vec<Bound>) {
        let (x, e, d) = (IndexExpr::axis(axis), extents[axis], Domain::of(extents));
        let n = self.random.pick(&[2i64, 3, 4, 8]);
        match self.random.below(8) {
            0 => (x.times(2).plus_constant(1), (e - 1) * 2 + 2, vec![]),
            1 => (x.times(-1).plus_constant(e as i64 - 1), e, vec![]),
            2 => (x.div(n, d), (e - 1) / n as usize + 1, vec![]),
            3 => (x.rem(n, d), e.min(n as usize), vec![]),
            4 => {
                let shifted = x.plus_constant(-1);
                let size = e.saturating_sub(2).max(1);
                (shifted.clone(), size, vec![Bound::new(shifted, 0, size as i64)])
            }
            5 => {
                // The gradient of a strided window: (x + y - 1) / 2 where that is whole.
                let other = self.random.below(extents.len());
                let sum = x.plus(&IndexExpr::axis(other)).plus_constant(-1);
                let size = (e + extents[other]).div_ceil(2);
                let (half, odd) = (sum.div(2, d), sum.rem(2, d));
                if odd.as_constant().is_some() || half.as_constant().is_some() {
                    return (x, e, vec![]);
                }
                let bounds = vec![Bound::new(odd, 0, 1), Bound::new(half.clone(), 0, size as i64)];
                (half, size, bounds)
            }
            _ => (x, e, vec![]),
        }
    }

    /// A load of a new operand of this dtype.
    pub(super) fn load(&mut self, body: &mut Body, dtype: DType, extents: &[usize]) -> ScalarId {
        let mut axes: Vec<usize> = (0..extents.len()).collect();
        let plain = self.random.below(3) == 0;
        if !plain && axes.len() > 1 {
            let (a, b) = (self.random.below(axes.len()), self.random.below(axes.len()));
            axes.swap(a, b);
        }
        let (mut coords, mut dims, mut valid) = (Vec::new(), Vec::new(), Vec::new());
        for axis in axes {
            let (c, d, v) = match self.random.below(if plain { 1 } else { 6 }) {
                5 => (IndexExpr::constant(0), 1, vec![]),
                0 => (IndexExpr::axis(axis), extents[axis], vec![]),
                _ => self.coordinate(axis, extents),
            };
            coords.push(c);
            dims.push(d);
            valid.extend(v);
        }
        if !plain && valid.is_empty() && self.random.below(4) == 0 {
            // A reshape of the whole: flattened and cut again.
            let flat = IndexExpr::flatten(&coords, &dims);
            let n: usize = dims.iter().product();
            let cut = [2, 3, 4].into_iter().find(|c| n.is_multiple_of(*c) && n > *c).unwrap_or(1);
            dims = vec![n / cut, cut];
            coords = flat.unflatten(&dims, Domain { extents, bounds: &valid });
        }
        let mut access = Access::at(coords);
        if !valid.is_empty() {
            let one = if dtype == DType::F32 { 1.0f32.to_bits() } else { 1 };
            access = access.when(valid, Scalar::from_bits(dtype, self.random.pick(&[0, one])));
        }
        if !plain && dims.len() > 1 && !extents.is_empty() && self.random.below(5) == 0 {
            access.dynamic = Some(self.id(body, &dims, extents));
        }
        let ty = TensorType::new(dtype, dims);
        self.operands.push(ty.clone());
        body.load(self.operands.len() - 1, &ty, access)
    }

    /// A load of ids, some out of range.
    fn id(&mut self, body: &mut Body, dims: &[usize], extents: &[usize]) -> Dynamic {
        let axis = self.random.below(extents.len());
        let ty = TensorType::new(DType::I32, [extents[axis]]);
        self.operands.push(ty.clone());
        body.load(self.operands.len() - 1, &ty, Access::at(vec![IndexExpr::axis(axis)]));
        Dynamic { dimension: self.random.below(dims.len()), load: body.loads.len() - 1 }
    }

    /// Float arithmetic over loads (and over `extra` values); whole numbers stay whole where `whole`.
    pub(super) fn value(
        &mut self,
        body: &mut Body,
        extents: &[usize],
        whole: bool,
        extra: &[ScalarId],
    ) -> ScalarId {
        let mut values: Vec<ScalarId> = extra.to_vec();
        for _ in 0..1 + self.random.below(2) {
            let dtype = self.random.pick(&[DType::F32, DType::F32, DType::F32, DType::Bool, DType::I32]);
            let x = self.load(body, dtype, extents);
            values.push(body.expr.cast(DType::F32, x));
        }
        let loaded = values[values.len() - 1];
        for _ in 0..self.random.below(4) {
            let (a, b) = (self.random.pick(&values), self.random.pick(&values));
            let e = &mut body.expr;
            values.push(match self.random.below(9) {
                0 => e.binary(BinaryFn::Max, a, b),
                1 => e.binary(BinaryFn::Min, a, b),
                2 => e.binary(BinaryFn::Sub, a, b),
                3 => e.binary(BinaryFn::Mul, a, loaded),
                4 => e.unary(self.random.pick(&[UnaryFn::Neg, UnaryFn::Abs]), a),
                5 if !whole => e.unary(self.random.pick(&[UnaryFn::Tanh, UnaryFn::Sigmoid, UnaryFn::Sin]), a),
                6 => {
                    let zero = e.f32(0.0);
                    let c = e.binary(BinaryFn::Lt, zero, loaded);
                    e.select(c, a, b)
                }
                7 if !extents.is_empty() => self.position(body, extents, a),
                _ => e.add(a, b),
            });
        }
        values[values.len() - 1]
    }

    /// A value that depends on where the point is.
    fn position(&mut self, body: &mut Body, extents: &[usize], a: ScalarId) -> ScalarId {
        let axis = self.random.below(extents.len());
        let (x, d) = (IndexExpr::axis(axis), Domain::of(extents));
        let n = self.random.pick(&[2, 3]);
        let index = self.random.pick(&[0, 1]);
        let index = body.expr.index(if index == 0 { x.clone() } else { x.rem(n, d).plus_constant(-1) });
        let index = body.expr.cast(DType::F32, index);
        let inside = body.expr.within(vec![Bound::new(x, 1, extents[axis] as i64)]);
        body.expr.select(inside, index, a)
    }

    /// A store of the domain with its axes permuted, and the type of the result.
    pub(super) fn store(&mut self, result: usize, dtype: DType, extents: &[usize]) -> (Store, TensorType) {
        let mut axes: Vec<usize> = (0..extents.len()).collect();
        if axes.len() > 1 && self.random.below(2) == 0 {
            let (a, b) = (self.random.below(axes.len()), self.random.below(axes.len()));
            axes.swap(a, b);
        }
        let dims: Vec<usize> = axes.iter().map(|&a| extents[a]).collect();
        let coords = axes.into_iter().map(IndexExpr::axis).collect();
        (Store { result, coords }, TensorType::new(dtype, dims))
    }

    /// The finished loop.
    pub(super) fn finish(&self, results: Vec<TensorType>, kind: griffinfly_ir::loops::LoopKind) -> Loop {
        Loop { operands: self.operands.clone(), results, kind }
    }
}
