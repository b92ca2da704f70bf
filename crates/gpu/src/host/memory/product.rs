//! Matrix products over panels and arena memory: a checked door to the `gemm` crate.

use super::View;

/// Where the elements of a matrix lie.
#[derive(Clone, Copy)]
pub(in super::super) enum Elements<'a> {
    /// A packed panel.
    Panel(&'a [f32]),
    /// An operand in place.
    View(&'a View),
}

/// A strided matrix: element (i, j) is at `offset + i * row + j * column`.
#[derive(Clone, Copy)]
pub(in super::super) struct Matrix<'a> {
    /// The memory.
    pub(in super::super) elements: Elements<'a>,
    /// Where element (0, 0) is.
    pub(in super::super) offset: i64,
    /// Distance of rows.
    pub(in super::super) row: i64,
    /// Distance of columns.
    pub(in super::super) column: i64,
}

/// A strided matrix that is written.
pub(in super::super) enum Target<'a> {
    /// A panel, dense from its start with these strides.
    Panel(&'a mut [f32], [i64; 2]),
    /// A result in place: view, offset, strides.
    View(&'a View, i64, [i64; 2]),
}

/// Whether all of a `rows` x `columns` matrix is inside `len` elements.
fn inside(len: usize, offset: i64, strides: [i64; 2], extents: [usize; 2]) -> bool {
    let (mut lo, mut hi) = (offset, offset);
    for (s, e) in strides.into_iter().zip(extents) {
        let reach = s * (e as i64 - 1);
        lo += reach.min(0);
        hi += reach.max(0);
    }
    lo >= 0 && hi < len as i64
}

impl Matrix<'_> {
    fn pointer(&self, extents: [usize; 2]) -> Option<*const f32> {
        let (start, len) = match self.elements {
            Elements::Panel(p) => (p.as_ptr(), p.len()),
            Elements::View(v) => (v.pointer().cast_const().cast(), v.len),
        };
        // SAFETY: the offset is inside the memory.
        inside(len, self.offset, [self.row, self.column], extents)
            .then(|| unsafe { start.offset(self.offset as isize) })
    }
}

/// `target (+)= a * b^T` for `a` of m x k, `b` of n x k. Nothing happens when a matrix is not inside its memory.
pub(in super::super) fn multiply(
    target: Target<'_>,
    a: Matrix<'_>,
    b: Matrix<'_>,
    [m, n, k]: [usize; 3],
    accumulate: bool,
) {
    if m * n * k == 0 {
        return;
    }
    let (start, strides, fits) = match target {
        Target::Panel(p, s) => (p.as_mut_ptr(), s, inside(p.len(), 0, s, [m, n])),
        Target::View(v, at, s) => {
            let fits = inside(v.len, at, s, [m, n]);
            // SAFETY: used only when `fits`; `wrapping_offset` needs no bounds.
            (v.pointer().cast::<f32>().wrapping_offset(at as isize), s, fits)
        }
    };
    let (Some(lhs), Some(rhs), true) = (a.pointer([m, k]), b.pointer([n, k]), fits) else { return };
    // SAFETY: all three matrices are inside their memory for these extents and strides (checked above). The target is a
    // panel borrowed mutably or a result range that overlaps no operand, and its strides are distinct per element.
    unsafe {
        gemm_f32::gemm::f32::get_gemm_fn()(
            m,
            n,
            k,
            start,
            strides[1] as isize,
            strides[0] as isize,
            accumulate,
            lhs,
            a.column as isize,
            a.row as isize,
            rhs,
            b.row as isize,
            b.column as isize,
            1.0f32,
            1.0f32,
            false,
            false,
            false,
            gemm_common::Parallelism::None,
        );
    }
}
