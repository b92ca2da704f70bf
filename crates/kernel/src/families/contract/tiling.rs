//! The closed table of tilings.
//!
//! A workgroup of a staged tiling computes `bm x bn` outputs from tiles of `bk` products held in workgroup memory; each
//! invocation holds `tm x tn` of them in registers. A direct tiling has no workgroup memory and no barrier: each
//! invocation reads its operands straight from the buffers. With lanes it does too, but `bk` invocations share the products of
//! a register tile and add up in workgroup memory.

use super::gemv::Exchange;
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

    /// All tilings, small to large.
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
        matches!(self.staging, Staging::Single | Staging::Double)
    }

    /// Invocations per workgroup.
    #[must_use]
    pub const fn invocations(&self) -> u32 {
        let tiles = (self.bm / self.tm) * (self.bn / self.tn);
        match self.staging {
            Staging::Direct => self.bk,
            Staging::Lanes => tiles * self.bk,
            Staging::Single | Staging::Double => tiles,
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
            Staging::Single => 1,
            Staging::Double => 2,
        }
    }

    /// Quadruples from one product to the next in the staged tile of an operand with `rows` rows: one more than it has,
    /// so that invocations that store neighbouring products hit different banks.
    pub(super) const fn stride(rows: u32) -> u32 {
        rows / 4 + 1
    }

    /// Bytes of workgroup memory.
    #[must_use]
    pub const fn workgroup_bytes(&self) -> u32 {
        self.bytes_with(1)
    }

    /// Bytes of workgroup memory with so many right factors of one left one, or sums.
    pub(super) const fn bytes_with(&self, rights: u32) -> u32 {
        if self.has_lanes() {
            return 4 * rights * Exchange::of(self).words();
        }
        16 * self.buffers() * self.bk * (Self::stride(self.bm) + rights * Self::stride(self.bn))
    }

    /// Whether a target can run it with one of these numeric classes.
    #[must_use]
    pub fn fits(&self, target: &Target, classes: &[NumericClass]) -> bool {
        self.workgroup_bytes() <= target.max_workgroup_bytes
            && self.invocations() <= target.max_invocations.min(target.max_workgroup_size[0])
            && classes.contains(&NumericClass::F32)
            && target.numeric_classes.contains(&NumericClass::F32)
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
        }
    }
}
