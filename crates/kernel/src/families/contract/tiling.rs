//! The closed table of tilings.
//!
//! A workgroup of a staged tiling computes `bm x bn` outputs from tiles of `bk` products held in workgroup memory; each
//! invocation holds `tm x tn` of them in registers. A direct tiling has no workgroup memory and no barrier: each
//! invocation reads its operands straight from the buffers. With lanes it does too, but `bk` invocations share the products of
//! a register tile and add up in workgroup memory. Of a tiling for matrix units, `tm x tn` is what an invocation finishes; a
//! subgroup holds `8 tm x 4 tn` outputs in matrices. In slices, several invocations hold the same register tile, each the sums
//! of its share of every tile of products; at the end they add up in workgroup memory and finish equal shares of the outputs.

use super::gemv::Exchange;
use crate::kir::{Factors, MATRIX, SUBGROUP};
use griffinfly_ir::target::{NumericClass, Target};
use std::fmt;

/// How operands reach the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Staging {
    /// Straight from the buffers.
    Direct,
    /// Straight from the buffers, the products of each register tile spread over `bk` invocations.
    Lanes,
    /// Through one tile per operand in workgroup memory: two barriers per tile of products.
    Single,
    /// Through two tiles per operand, the next one loaded during the arithmetic: one barrier per tile of products.
    Double,
    /// As `Double`, each tile of products shared by so many invocations per register tile: large register tiles, which read
    /// workgroup memory least, and yet many invocations where a workgroup has its compute unit for itself.
    Sliced(u32),
    /// Through tiles of rounded terms, multiplied by matrix units (or as they would be, where there are none).
    Matrix(NumericClass),
}

/// One tiling; only those of [`Tiling::all`] exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tiling {
    /// Rows per workgroup (per invocation when direct).
    pub bm: u32,
    /// Columns per workgroup (per invocation when direct).
    pub bn: u32,
    /// Products per tile (invocations per workgroup when direct; lanes of a register tile).
    pub bk: u32,
    /// Rows per invocation.
    pub tm: u32,
    /// Columns per invocation.
    pub tn: u32,
    /// How operands reach the registers.
    pub staging: Staging,
}

const fn staged(block: [u32; 3], thread: [u32; 2], staging: Staging) -> Tiling {
    Tiling { bm: block[0], bn: block[1], bk: block[2], tm: thread[0], tn: thread[1], staging }
}

/// A tiling for matrix units: block, outputs of a subgroup, numeric class.
const fn matrix(block: [u32; 3], subgroup: [u32; 2], class: NumericClass) -> Tiling {
    staged(block, [subgroup[0] / 8, subgroup[1] / 4], Staging::Matrix(class))
}

/// The tilings for matrix units of a class, small to large.
const fn matrices(class: NumericClass) -> [Tiling; 7] {
    [
        matrix([32, 32, 32], [16, 16], class),
        matrix([64, 32, 32], [32, 16], class),
        matrix([64, 64, 16], [32, 32], class),
        matrix([64, 64, 32], [32, 32], class),
        matrix([128, 64, 16], [64, 32], class),
        matrix([128, 128, 16], [64, 32], class),
        matrix([128, 128, 32], [64, 32], class),
    ]
}

/// Further ones for classes of one term, which leave room for more products.
const fn deep(class: NumericClass) -> [Tiling; 2] {
    [matrix([64, 64, 64], [32, 32], class), matrix([128, 64, 32], [64, 32], class)]
}

/// Those of classes of one term.
const DEEP: [[Tiling; 2]; 2] = [deep(NumericClass::F16), deep(NumericClass::Bf16)];

/// Those of f32: little is staged at once, since a quadruple takes twice the room.
const F32: [Tiling; 5] = {
    const CLASS: NumericClass = NumericClass::F32;
    [
        matrix([32, 32, 16], [16, 16], CLASS),
        matrix([64, 32, 16], [32, 16], CLASS),
        matrix([64, 64, 16], [32, 32], CLASS),
        matrix([64, 64, 32], [32, 32], CLASS),
        matrix([128, 64, 16], [64, 32], CLASS),
    ]
};

/// The tilings for matrix units of all classes that round.
const MATRICES: [[Tiling; 7]; 4] = [
    matrices(NumericClass::Bf16x3),
    matrices(NumericClass::Bf16x2),
    matrices(NumericClass::F16),
    matrices(NumericClass::Bf16),
];

const fn direct(tm: u32, tn: u32) -> Tiling {
    // Large tiles are for software drivers: few invocations per workgroup spread them over the CPUs.
    let invocations = if tm * tn > 16 { 16 } else { 64 };
    Tiling { bm: tm, bn: tn, bk: invocations, tm, tn, staging: Staging::Direct }
}

/// Register tiles of few rows or few columns whose products `lanes` invocations share.
const fn lanes([bm, bn]: [u32; 2], [tm, tn]: [u32; 2], lanes: u32) -> Tiling {
    Tiling { bm, bn, bk: lanes, tm, tn, staging: Staging::Lanes }
}

impl Tiling {
    /// One output per invocation: any shape, any target.
    pub const DIRECT: Self = direct(1, 1);
    /// A register tile without workgroup memory.
    pub const DIRECT_4X4: Self = direct(4, 4);
    /// Large register tiles without workgroup memory: for software drivers, where every load is dear.
    pub const DIRECT_8X8: Self = direct(8, 8);
    /// The largest of these: twice the code.
    pub const DIRECT_16X8: Self = direct(16, 8);
    /// Few rows.
    pub const FLAT: Self = staged([16, 64, 32], [4, 4], Staging::Single);
    /// Few columns.
    pub const TALL: Self = staged([64, 16, 32], [4, 4], Staging::Single);
    /// Small.
    pub const SMALL: Self = staged([32, 32, 16], [4, 4], Staging::Single);
    /// Middle, many invocations.
    pub const MIDDLE: Self = staged([64, 64, 16], [4, 4], Staging::Single);
    /// Middle, large register tiles.
    pub const MIDDLE_8X8: Self = staged([64, 64, 16], [8, 8], Staging::Single);
    /// Between small and middle.
    pub const LOW: Self = staged([64, 32, 16], [4, 4], Staging::Single);
    /// Middle, half the invocations.
    pub const MIDDLE_8X4: Self = staged([64, 64, 16], [8, 4], Staging::Single);
    /// Middle, double-buffered.
    pub const MIDDLE_DOUBLE: Self = staged([64, 64, 16], [4, 4], Staging::Double);
    /// Middle, large register tiles, double-buffered.
    pub const MIDDLE_8X8_DOUBLE: Self = staged([64, 64, 16], [8, 8], Staging::Double);
    /// Large, least workgroup memory.
    pub const LARGE: Self = staged([128, 128, 8], [8, 8], Staging::Single);
    /// Large, double-buffered within 32 KiB.
    pub const LARGE_SHALLOW_DOUBLE: Self = staged([128, 128, 8], [8, 8], Staging::Double);
    /// Large, fewer barriers.
    pub const LARGE_DEEP: Self = staged([128, 128, 16], [8, 8], Staging::Single);
    /// Large, double-buffered: above 32 KiB.
    pub const LARGE_DOUBLE: Self = staged([128, 128, 16], [8, 8], Staging::Double);

    /// Small, sixteen slices of large register tiles: above 32 KiB.
    pub const SMALL_SLICED: Self = staged([32, 32, 64], [8, 8], Staging::Sliced(16));
    /// Small, half the invocations.
    pub const SMALL_SLICED_8: Self = staged([32, 32, 32], [8, 8], Staging::Sliced(8));
    /// Between small and middle, in slices of register tiles that two sums fit in.
    pub const LOW_SLICED: Self = staged([64, 32, 32], [8, 4], Staging::Sliced(4));
    /// Middle, in slices of register tiles that two sums fit in.
    pub const MIDDLE_SLICED_8X4: Self = staged([64, 64, 16], [8, 4], Staging::Sliced(2));
    /// Middle, in slices: above 32 KiB.
    pub const MIDDLE_SLICED: Self = staged([64, 64, 32], [8, 8], Staging::Sliced(4));
    /// Between middle and large, in slices.
    pub const WIDE_SLICED: Self = staged([128, 64, 16], [8, 8], Staging::Sliced(2));

    /// All tilings for matrix units.
    pub fn matrices() -> impl Iterator<Item = &'static Self> {
        F32.iter().chain(MATRICES.iter().flatten()).chain(DEEP.iter().flatten())
    }

    /// All tilings for f32 products without matrix units, small to large.
    #[must_use]
    pub const fn all() -> &'static [Self] {
        const {
            &[
                Self::DIRECT,
                Self::DIRECT_4X4,
                Self::DIRECT_8X8,
                Self::DIRECT_16X8,
                // Few rows, then few columns. The deeper (the more lanes), the sooner a small problem is done; the wider, the more
                // of the large factor a workgroup reads side by side.
                lanes([1, 1], [1, 1], 128),
                lanes([1, 2], [1, 1], 64),
                lanes([1, 8], [1, 4], 128),
                lanes([1, 32], [1, 4], 32),
                lanes([2, 8], [2, 4], 128),
                lanes([2, 32], [2, 4], 32),
                lanes([4, 8], [4, 4], 128),
                lanes([4, 64], [4, 4], 16),
                lanes([8, 2], [8, 2], 128),
                lanes([8, 8], [8, 4], 64),
                lanes([8, 16], [8, 2], 16),
                lanes([2, 1], [1, 1], 64),
                lanes([8, 1], [4, 1], 128),
                lanes([32, 1], [4, 1], 32),
                lanes([8, 4], [4, 4], 128),
                lanes([64, 4], [4, 4], 16),
                Self::FLAT,
                Self::TALL,
                Self::SMALL,
                Self::LOW,
                Self::MIDDLE,
                Self::MIDDLE_8X4,
                Self::MIDDLE_8X8,
                Self::MIDDLE_DOUBLE,
                Self::MIDDLE_8X8_DOUBLE,
                Self::SMALL_SLICED_8,
                Self::SMALL_SLICED,
                Self::LOW_SLICED,
                Self::MIDDLE_SLICED_8X4,
                Self::MIDDLE_SLICED,
                Self::WIDE_SLICED,
                Self::LARGE,
                Self::LARGE_SHALLOW_DOUBLE,
                Self::LARGE_DEEP,
                Self::LARGE_DOUBLE,
            ]
        }
    }

    /// Whether operands are read straight from the buffers.
    #[must_use]
    pub const fn is_direct(&self) -> bool {
        matches!(self.staging, Staging::Direct)
    }

    /// Whether invocations of a group share products.
    #[must_use]
    pub const fn has_lanes(&self) -> bool {
        matches!(self.staging, Staging::Lanes)
    }

    /// Of tilings with lanes: whether they are for few rows, not for few columns.
    pub(super) const fn has_few_rows(&self) -> bool {
        self.bm == self.tm
    }

    /// Whether operands go through workgroup memory.
    #[must_use]
    pub const fn is_staged(&self) -> bool {
        !matches!(self.staging, Staging::Direct | Staging::Lanes)
    }

    /// Arithmetic of its products.
    #[must_use]
    pub const fn class(&self) -> NumericClass {
        match self.staging {
            Staging::Matrix(class) => class,
            Staging::Direct | Staging::Lanes | Staging::Single | Staging::Double | Staging::Sliced(_) => {
                NumericClass::F32
            }
        }
    }

    /// Invocations that share the products of a register tile.
    pub(super) const fn slices(&self) -> u32 {
        if let Staging::Sliced(slices) = self.staging { slices } else { 1 }
    }

    /// Products of a staged tile that an invocation multiplies.
    pub(super) const fn slice_products(&self) -> u32 {
        self.bk / self.slices()
    }

    /// Of staged tilings: rows and columns that an invocation finishes, in quadruples of columns if in slices.
    pub(super) const fn finished(&self) -> (u32, u32) {
        match self.staging {
            Staging::Sliced(slices) => (self.tm * self.tn / (4 * slices), 4),
            _ => (self.tm, self.tn),
        }
    }

    /// Of tilings for matrix units: rows and columns that a subgroup holds.
    pub(super) const fn subgroup(&self) -> [u32; 2] {
        [8 * self.tm, 4 * self.tn]
    }

    /// Matrices of sums of a subgroup; none without matrix units.
    pub(super) fn subgroup_matrices(&self) -> f64 {
        if matches!(self.staging, Staging::Matrix(_)) { f64::from(self.tm / 2 * (self.tn / 4)) } else { 0.0 }
    }

    /// What multiplies on a target.
    pub(super) fn units(&self, target: &Target) -> Units {
        match self.staging {
            Staging::Matrix(NumericClass::F32) if target.has_f32_matrices => Units::Matrix(Factors::F32),
            Staging::Matrix(class) => Units::of(target, class),
            _ => Units::Plain,
        }
    }

    /// Whether a target lacks the matrix units it is for, so that it only shows what they would do.
    pub(in crate::families) fn is_emulated(&self, target: &Target) -> bool {
        matches!(self.staging, Staging::Matrix(_)) && self.units(target) == Units::Plain
    }

    /// Invocations per workgroup.
    #[must_use]
    pub const fn invocations(&self) -> u32 {
        let tiles = (self.bm / self.tm) * (self.bn / self.tn);
        match self.staging {
            Staging::Direct => self.bk,
            Staging::Lanes => tiles * self.bk,
            Staging::Single | Staging::Double | Staging::Matrix(_) => tiles,
            Staging::Sliced(slices) => tiles * slices,
        }
    }

    /// Products between two starts of a part: whole tiles, and whole quadruples in any case.
    pub(super) const fn step(&self) -> u32 {
        if self.is_direct() { 4 } else { self.bk }
    }

    /// Tiles held at once per operand.
    pub(super) const fn buffers(&self) -> u32 {
        match self.staging {
            Staging::Direct | Staging::Lanes => 0,
            Staging::Single | Staging::Matrix(_) => 1,
            Staging::Double | Staging::Sliced(_) => 2,
        }
    }

    /// Quadruples from one product to the next in the staged tile of an operand with `rows` rows: one more than it has,
    /// so that invocations that store neighbouring products hit different banks.
    pub(super) const fn stride(rows: u32) -> u32 {
        rows / 4 + 1
    }

    /// Bytes of workgroup memory on a target.
    #[must_use]
    pub fn workgroup_bytes(&self, target: &Target) -> u32 {
        self.bytes_with(1, target)
    }

    /// Bytes of workgroup memory with so many right factors of one left one, or sums.
    pub(super) fn bytes_with(&self, rights: u32, target: &Target) -> u32 {
        match self.staging {
            Staging::Direct => 0,
            Staging::Lanes => 4 * rights * Exchange::of(self).words(),
            Staging::Single | Staging::Double | Staging::Sliced(_) => {
                16 * self.buffers() * self.bk * (Self::stride(self.bm) + rights * Self::stride(self.bn))
            }
            Staging::Matrix(class) => {
                // Row by row, which takes more than product by product.
                let quads = (self.bm + rights * self.bn) * matrix_stride(self.bk) * class.terms();
                let units = self.units(target);
                quads * units.quad_bytes() + units.exchange_quads(self) * 16
            }
        }
    }

    /// Further bytes where something is summed for every row besides: sums leave matrices of 16x16 through an array that will do.
    pub(super) fn row_sum_bytes(&self, target: &Target) -> u32 {
        match (self.staging, self.units(target)) {
            (Staging::Matrix(_), Units::Plain | Units::Matrix(Factors::F32)) => {
                16 * super::matrix_stage::row_sum_quads(self)
            }
            _ => 0,
        }
    }

    /// Whether a target can run it with one of these numeric classes.
    #[must_use]
    pub fn fits(&self, target: &Target, classes: &[NumericClass]) -> bool {
        self.workgroup_bytes(target) <= target.max_workgroup_bytes
            && self.invocations() <= target.max_invocations.min(target.max_workgroup_size[0])
            && classes.contains(&self.class())
            && target.numeric_classes.contains(&self.class())
    }
}

/// Quadruples from one line of `length` elements to the next in an array that matrices are read from: 16 bytes more than a line,
/// so that the lines of a matrix lie in different banks.
pub(in crate::families) const fn matrix_stride(length: u32) -> u32 {
    length / 4 + 2
}

/// What multiplies matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::families) enum Units {
    /// Matrix units, from arrays of half precision or of f32.
    Matrix(Factors),
    /// Ordinary arithmetic, from arrays of rounded f32.
    Plain,
}

impl Units {
    /// Those of a target for a class that rounds.
    pub(in crate::families) fn of(target: &Target, class: NumericClass) -> Self {
        class
            .format()
            .filter(|f| target.matrix_formats.contains(f))
            .map_or(Units::Plain, |f| Units::Matrix(Factors::Half(f)))
    }

    /// Bytes of a quadruple of terms.
    pub(in crate::families) const fn quad_bytes(self) -> u32 {
        match self {
            Units::Matrix(Factors::Half(_)) => 8,
            Units::Matrix(Factors::F32) | Units::Plain => 16,
        }
    }

    /// Quadruples of f32 through which sums leave their matrices, 16x16 of them per subgroup at a time.
    pub(super) const fn exchange_quads(self, tiling: &Tiling) -> u32 {
        match self {
            Units::Matrix(_) => tiling.invocations() / SUBGROUP * MATRIX * MATRIX / 4,
            Units::Plain => 0,
        }
    }
}

impl fmt::Display for Tiling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tiling { bm, bn, bk, tm, tn, staging } = self;
        match staging {
            Staging::Direct => write!(f, "direct/{tm}x{tn}"),
            Staging::Lanes => write!(f, "gemv {bm}x{bn}/{tm}x{tn}/{bk}"),
            Staging::Single => write!(f, "{bm}x{bn}x{bk}/{tm}x{tn}"),
            Staging::Double => write!(f, "{bm}x{bn}x{bk}/{tm}x{tn}/db"),
            Staging::Sliced(slices) => write!(f, "{bm}x{bn}x{bk}/{tm}x{tn}/s{slices}"),
            Staging::Matrix(class) => {
                let [rows, columns] = self.subgroup();
                write!(f, "{} {bm}x{bn}x{bk}/{rows}x{columns}", class.name())
            }
        }
    }
}
