//! Every operation that lowers to a loop, on its own samples.

use super::harness::{Case, run, with_device};
use griffinfly_compile::kernel::families::realise;
use griffinfly_ir::array::Array;
use griffinfly_ir::ops::{Lowering, samples};

#[test]
fn operations_equal_the_interpreter() {
    with_device(|device| {
        let mut cases = Vec::new();
        for sample in samples() {
            let Lowering::Loop(l) = sample.lowering() else { continue };
            let operands = sample.inputs.iter().enumerate().map(|(i, input)| {
                Array { ty: input.ty.clone(), data: input.values(i as u64 + 1) }.to_words()
            });
            let operands = operands.collect();
            cases.push(Case::new(sample.describe(), *l, operands, |l| realise(l, device.target())));
        }
        let kernels = cases.chunks(64).map(|cases| run(device, cases)).sum::<usize>();
        println!("{} samples, {kernels} kernels", cases.len());
    });
}
