//! A kernel whose results show whether a device's matrices of f32 are what the other kernels take them for.
//!
//! Input: for each of two subgroups, two matrices `A` and `B` of 8 rows and 8 columns. Output: for each, `A B^T + A^T B`, through all that
//! kernels for matrix units do: factors read by rows and by columns, sums of several products, sums stored. The numbers have twelve
//! significant bits, more than any rounded format keeps, and every sum of them is exact in f32: a device that rounds factors, that
//! mistakes rows for columns, or whose subgroups are not 32 wide, gives others.

use crate::KernelError;
use crate::kir::{Builder, Factors, Kernel, MatrixBlock, Order, SUBGROUP, Type};

/// Rows and columns, elements of a matrix, subgroups.
const SIZE: usize = Factors::F32.size() as usize;
const ELEMENTS: usize = SIZE * SIZE;
const SUBGROUPS: usize = 2;

/// A kernel of one workgroup that reads its first binding and writes its second.
#[derive(Clone, Debug)]
pub struct Probe {
    /// The kernel; it has no parameters.
    pub kernel: Kernel,
    /// What it reads.
    pub operand: Vec<f32>,
    /// What it writes.
    pub expected: Vec<f32>,
}

/// The probe of 8x8x8 products in f32 by 32 invocations in lockstep.
///
/// # Errors
/// None, unless the kernel is wrong.
pub fn f32_matrices() -> Result<Probe, KernelError> {
    let b = Builder::new("probe of matrices", [SUBGROUP * SUBGROUPS as u32, 1, 1]);
    let (x, y) = (b.read("x", Type::F32), b.read_write("y", Type::F32));
    let per_subgroup = (2 * ELEMENTS) as u32;
    let factors = b.shared("factors", Type::F32, per_subgroup * SUBGROUPS as u32);
    let sums = b.shared("sums", Type::F32, (ELEMENTS * SUBGROUPS) as u32);
    let (index, subgroup) = (b.local_index(), b.local_index() / SUBGROUP);
    let invocations = SUBGROUP * SUBGROUPS as u32;
    for first in (0..per_subgroup * SUBGROUPS as u32).step_by(invocations as usize) {
        factors.store(index + first, x.load(index + first));
    }
    b.barrier();
    let block = |array, index, order| MatrixBlock { array, index, stride: SIZE as u32, order };
    let sum = b.matrix_sum("sum", Factors::F32);
    for order in [Order::Rows, Order::Columns] {
        let other = if order == Order::Rows { Order::Columns } else { Order::Rows };
        let first = subgroup * per_subgroup;
        let left = b.left_matrix("a", block(factors, first, order));
        let right = b.right_matrix("b", block(factors, first + ELEMENTS as u32, other));
        sum.add_product(left, right);
    }
    sum.store(block(sums, subgroup * ELEMENTS as u32, Order::Rows));
    b.barrier();
    for first in (0..(ELEMENTS * SUBGROUPS) as u32).step_by(invocations as usize) {
        y.store(index + first, sums.load(index + first));
    }
    let operand: Vec<f32> = (0..2 * ELEMENTS * SUBGROUPS).map(number).collect();
    let expected = operand.chunks(2 * ELEMENTS).flat_map(|pair| products(pair.split_at(ELEMENTS))).collect();
    Ok(Probe { kernel: b.finish()?, operand, expected })
}

/// Odd numbers below 2^12 and numbers below 2^6, of either sign: the former on one side first, then on the other.
fn number(i: usize) -> f32 {
    let mixed = i * 2_654_435 % 65_521;
    let is_fine = (i / ELEMENTS).is_multiple_of(2) != (i >= 2 * ELEMENTS);
    let size = if is_fine { 2049 + mixed % 1023 * 2 } else { 1 + mixed % 63 };
    if mixed.is_multiple_of(3) { -(size as f32) } else { size as f32 }
}

/// `A B^T + A^T B`.
fn products((a, b): (&[f32], &[f32])) -> Vec<f32> {
    let at = |row: usize, column: usize| row * SIZE + column;
    let one = |i: usize| {
        let (row, column) = (i / SIZE, i % SIZE);
        (0..SIZE).map(|k| a[at(row, k)] * b[at(column, k)] + a[at(k, row)] * b[at(k, column)]).sum()
    };
    (0..ELEMENTS).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::KernelLimits;

    #[test]
    fn the_kernel_is_valid_and_small() {
        let probe = f32_matrices().unwrap();
        let least = KernelLimits {
            max_workgroup_bytes: 16 << 10,
            max_invocations: 256,
            max_workgroup_size: [256, 256, 64],
            max_bindings: 8,
            max_parameter_bytes: 0,
        };
        crate::verify::check(&probe.kernel, &least).unwrap();
        let text = crate::print::wgsl(&probe.kernel, &crate::print::PrintOptions::default());
        crate::spirv::compile(&text, crate::print::ENTRY).unwrap();
    }

    /// Sums are exact, and would be others if factors lost a bit.
    #[test]
    fn the_numbers_show_rounding() {
        let probe = f32_matrices().unwrap();
        let rounded = |x: &f32| f32::from_bits((x.to_bits() + 0x1000) & 0xffff_e000);
        let operand: Vec<f32> = probe.operand.iter().map(rounded).collect();
        let sums: Vec<f32> =
            operand.chunks(2 * ELEMENTS).flat_map(|pair| products(pair.split_at(ELEMENTS))).collect();
        let differ = sums.iter().zip(&probe.expected).filter(|(rounded, exact)| rounded != exact).count();
        assert!(differ > sums.len() * 9 / 10, "{differ} of {}", sums.len());
        let largest = probe.expected.iter().map(|x| x.abs()).fold(0.0, f32::max);
        assert!(largest < (1 << 24) as f32, "{largest}");
        let fine = probe.operand.iter().filter(|x| x.abs() >= 2048.0).count();
        assert_eq!(fine, probe.operand.len() / 2);
    }
}
