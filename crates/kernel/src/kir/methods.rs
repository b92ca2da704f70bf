//! Sugar on values: comparisons, conversions, lanes, scalar functions.

use super::expr::{BinaryOp, ExprId, ExprKind, Literal, UnaryOp};
use super::handle::Expr;
use super::operand::Operand;
use super::types::{Lanes, Scalar};
use crate::functions::Function;

macro_rules! binary_methods {
    ($($(#[$doc:meta])* $name:ident $op:ident;)*) => {
        impl<'b> Expr<'b> {$(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(self, right: impl Operand<'b>) -> Self {
                self.builder.binary(BinaryOp::$op, self, right)
            }
        )*}
    };
}

binary_methods! {
    /// Whether equal.
    equals Eq;
    /// Whether different.
    differs Ne;
    /// Whether less.
    lt Lt;
    /// Whether less or equal.
    le Le;
    /// Whether greater.
    gt Gt;
    /// Whether greater or equal.
    ge Ge;
    /// The driver's minimum; with NaN anything may come out.
    native_min Min;
    /// The driver's maximum; with NaN anything may come out.
    native_max Max;
}

macro_rules! unary_methods {
    ($($(#[$doc:meta])* $name:ident $op:ident;)*) => {
        impl Expr<'_> {$(
            $(#[$doc])*
            #[track_caller]
            #[must_use]
            pub fn $name(self) -> Self {
                self.builder.unary(UnaryOp::$op, self)
            }
        )*}
    };
}

unary_methods! {
    /// Magnitude.
    abs Abs;
    /// Towards minus infinity.
    floor Floor;
    /// Towards plus infinity.
    ceil Ceil;
    /// To nearest, ties to even.
    round Round;
    /// Towards zero.
    trunc Trunc;
    /// The driver's `2^x`: a few units in the last place, fewer digits far from 0. For values that are rounded further.
    native_exp2 Exp2;
}

macro_rules! function_methods {
    ($($(#[$doc:meta])* $name:ident $function:ident;)*) => {
        impl Expr<'_> {$(
            $(#[$doc])*
            #[track_caller]
            #[must_use]
            pub fn $name(self) -> Self {
                self.builder.call(Function::$function, &[self])
            }
        )*}
    };
}

function_methods! {
    /// `e^x` by [`Function::Exp`].
    exp Exp;
    /// `2^x` by [`Function::Exp2`].
    exp2 Exp2;
    /// Natural logarithm by [`Function::Log`].
    log Log;
    /// Sine by [`Function::Sin`].
    sin Sin;
    /// Cosine by [`Function::Cos`].
    cos Cos;
    /// Hyperbolic tangent by [`Function::Tanh`].
    tanh Tanh;
    /// Error function by [`Function::Erf`].
    erf Erf;
    /// Logistic function by [`Function::Sigmoid`].
    sigmoid Sigmoid;
    /// Square root by [`Function::Sqrt`].
    sqrt Sqrt;
    /// Reciprocal square root by [`Function::Rsqrt`].
    rsqrt Rsqrt;
}

impl<'b> Expr<'b> {
    /// Power by [`Function::Pow`].
    #[track_caller]
    pub fn pow(self, exponent: impl Operand<'b>) -> Self {
        let (base, exponent) = self.builder.pair(self, exponent);
        self.builder.call(Function::Pow, &[base, exponent])
    }

    /// Whether NaN, by an integer comparison (drivers fold `x != x`).
    #[track_caller]
    #[must_use]
    pub fn is_nan(self) -> Self {
        (self.bitcast(Scalar::U32) & 0x7fff_ffff_u32).gt(0x7f80_0000_u32)
    }

    /// Larger value; NaN if either is: `a > b || nan(a) ? a : b`.
    #[track_caller]
    pub fn max(self, right: impl Operand<'b>) -> Self {
        self.extremum(BinaryOp::Gt, BinaryOp::Max, right)
    }

    /// Smaller value; NaN if either is: `a < b || nan(a) ? a : b`.
    #[track_caller]
    pub fn min(self, right: impl Operand<'b>) -> Self {
        self.extremum(BinaryOp::Lt, BinaryOp::Min, right)
    }

    #[track_caller]
    fn extremum(self, order: BinaryOp, native: BinaryOp, right: impl Operand<'b>) -> Self {
        let b = self.builder;
        let (left, right) = b.pair(self, right);
        if left.ty.scalar != Scalar::F32 {
            return b.binary(native, left, right);
        }
        if left.is_constant() {
            // The test of the bits must see the operand that may be NaN: NVIDIA's compiler takes a bare `c < x ? c : x` for its
            // own minimum, which drops NaN. Equal operands are as above: the right one.
            let order = if order == BinaryOp::Gt { BinaryOp::Ge } else { BinaryOp::Le };
            return b.select(b.binary(order, right, left) | right.is_nan(), right, left);
        }
        b.select(b.binary(order, left, right) | left.is_nan(), left, right)
    }

    /// `self ? yes : no`.
    #[track_caller]
    pub fn select(self, yes: impl Operand<'b>, no: impl Operand<'b>) -> Self {
        self.builder.select(self, yes, no)
    }

    /// `self * factor + addend`, fused where the driver has it.
    #[track_caller]
    pub fn fma(self, factor: impl Operand<'b>, addend: impl Operand<'b>) -> Self {
        self.builder.fma(self, factor, addend)
    }

    /// The value converted to another kind; floats truncate, out of range saturates.
    #[track_caller]
    #[must_use]
    pub fn cast(self, scalar: Scalar) -> Self {
        match self.literal() {
            _ if scalar == self.ty.scalar => self,
            Some(Literal::U32(value)) if scalar == Scalar::F32 => {
                self.builder.literal(Literal::F32((value as f32).to_bits()))
            }
            _ => self.builder.node(ExprKind::Cast(self.id), self.ty.with_scalar(scalar)),
        }
    }

    /// The bits as another 32-bit kind.
    #[track_caller]
    #[must_use]
    pub fn bitcast(self, scalar: Scalar) -> Self {
        if scalar == self.ty.scalar {
            return self;
        }
        self.builder
            .check(scalar != Scalar::Bool && !self.ty.is_bool(), || "truth values have no bits".to_owned());
        self.builder.node(ExprKind::Bitcast(self.id), self.ty.with_scalar(scalar))
    }

    /// The scalar in every lane; a value that has that many lanes already stays.
    #[track_caller]
    #[must_use]
    pub fn splat(self, lanes: Lanes) -> Self {
        if self.ty.lanes == lanes {
            return self;
        }
        self.builder.check(self.ty.is_scalar(), || format!("{} spread over {lanes:?} lanes", self.ty));
        self.builder.node(ExprKind::Construct(vec![self.id]), self.ty.with_lanes(lanes))
    }

    /// One lane.
    #[track_caller]
    #[must_use]
    pub fn lane(self, lane: u8) -> Self {
        if self.ty.is_scalar() && lane == 0 {
            return self;
        }
        self.builder.check(u32::from(lane) < self.ty.lanes.count(), || format!("lane {lane} of {}", self.ty));
        let scalar = self.ty.with_lanes(Lanes::One);
        match self.constructed_from(lane) {
            Some(id) => Self { id, ty: scalar, ..self },
            None => self.builder.node(ExprKind::Component(self.id, lane), scalar),
        }
    }

    /// The lane of a quadruple with a number that only the kernel knows.
    #[track_caller]
    #[must_use]
    pub fn lane_at(self, number: Self) -> Self {
        self.builder.check(self.ty.lanes == Lanes::Four, || format!("a lane by number of {}", self.ty));
        let [low, high] = [0, 2].map(|j| (number % 2).equals(0_u32).select(self.lane(j), self.lane(j + 1)));
        number.lt(2_u32).select(low, high)
    }

    /// The scalar that went into a lane, when the value was constructed here.
    fn constructed_from(self, lane: u8) -> Option<ExprId> {
        match &self.builder.state.borrow().kernel.exprs.get(self.id.index())?.kind {
            ExprKind::Construct(list) if list.len() == 1 => list.first().copied(),
            ExprKind::Construct(list) => list.get(usize::from(lane)).copied(),
            _ => None,
        }
    }

    /// Two or four lanes in the given order.
    #[track_caller]
    #[must_use]
    pub fn swizzle(self, lanes: &[u8]) -> Self {
        let width = Lanes::from_count(lanes.len()).filter(|&width| width != Lanes::One);
        let fits = !self.ty.is_scalar() && lanes.iter().all(|&lane| u32::from(lane) < self.ty.lanes.count());
        self.builder.check(width.is_some() && fits, || format!("swizzle {lanes:?} of {}", self.ty));
        let ty = self.ty.with_lanes(width.unwrap_or(Lanes::Two));
        self.builder.node(ExprKind::Swizzle(self.id, lanes.to_vec()), ty)
    }

    /// Sum of the lanes, pairwise: `(x + y) + (z + w)`.
    #[track_caller]
    #[must_use]
    pub fn sum_lanes(self) -> Self {
        match self.ty.lanes {
            Lanes::One => self,
            Lanes::Two => self.lane(0) + self.lane(1),
            Lanes::Four => (self.lane(0) + self.lane(1)) + (self.lane(2) + self.lane(3)),
        }
    }
}
