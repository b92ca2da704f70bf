//! Finishes modules with matrices: what naga's writer cannot say.
//!
//! * bf16: `f16` becomes `SPV_KHR_bfloat16`'s type. The generator only ever converts to it, stores it, and reads it as matrices,
//!   which is what that extension allows.
//! * Memory model: naga declares the Vulkan memory model, under which an access is seen by other invocations only if it is
//!   *non-private* and ordered by barriers that make available and visible. Every load and store of workgroup memory, and of
//!   buffers through which workgroups exchange values, gets that mark, every control barrier those semantics. `Coherent`, by which
//!   those buffers are known and which that model does not know, goes.
//!
//! Input and output: words of one module, instructions in the order of the specification's section 2.4. Source: SPIR-V 1.6
//! sections 2.18 and 3.25 to 3.27, SPV_KHR_cooperative_matrix, SPV_KHR_bfloat16.

use std::collections::{HashMap, HashSet};

/// Words before the first instruction.
const HEADER: usize = 5;
/// Word of the header that bounds the ids.
const BOUND: usize = 3;

mod op {
    pub(super) const EXTENSION: u32 = 10;
    pub(super) const CAPABILITY: u32 = 17;
    pub(super) const TYPE_FLOAT: u32 = 22;
    pub(super) const CONSTANT: u32 = 43;
    pub(super) const FUNCTION: u32 = 54;
    pub(super) const VARIABLE: u32 = 59;
    pub(super) const LOAD: u32 = 61;
    pub(super) const STORE: u32 = 62;
    pub(super) const ACCESS_CHAIN: u32 = 65;
    pub(super) const DECORATE: u32 = 71;
    pub(super) const CONTROL_BARRIER: u32 = 224;
    pub(super) const MATRIX_LOAD: u32 = 4457;
    pub(super) const MATRIX_STORE: u32 = 4458;
}

mod capability {
    pub(super) const FLOAT16: u32 = 9;
    pub(super) const STORAGE_16: u32 = 4433;
    pub(super) const UNIFORM_AND_STORAGE_16: u32 = 4434;
    pub(super) const BFLOAT16: u32 = 5116;
    pub(super) const BFLOAT16_MATRIX: u32 = 5118;
    pub(super) const DEVICE_SCOPE: u32 = 5346;
}

/// Storage class of workgroup memory.
const WORKGROUP: u32 = 4;
/// Memory operand: seen by others.
const NON_PRIVATE: u32 = 0x20;
/// Semantics: what was written is made available, what is read is made visible.
const AVAILABLE_VISIBLE: u32 = 0x6000;
/// Semantics: of workgroup memory, which naga's barriers of subgroups leave out.
const WORKGROUP_MEMORY: u32 = 0x100;
/// Encoding operand of a 16-bit float type: bf16.
const BFLOAT16_ENCODING: u32 = 0;
/// Decoration of buffers that the old memory model asks for.
const COHERENT: u32 = 23;

/// The finished module; `None` when the words are not a module as naga writes them.
pub(super) fn matrices(words: &[u32], is_bf16: bool) -> Option<Vec<u32>> {
    let module = Module::read(words)?;
    let mut out = Output { words: words.get(..HEADER)?.to_vec(), module: &module, semantics: HashMap::new() };
    out.capabilities(is_bf16);
    let mut in_functions = false;
    for instruction in &module.instructions {
        if instruction[0] & 0xffff == op::FUNCTION && !in_functions {
            in_functions = true;
            out.barrier_constants()?;
        }
        out.instruction(instruction, is_bf16)?;
    }
    Some(out.words)
}

/// What has to be known before instructions are written again.
struct Module<'a> {
    instructions: Vec<&'a [u32]>,
    /// Pointers into memory through which invocations exchange values.
    shared: HashSet<u32>,
    /// Values of 32-bit constants by id, with their type.
    constants: HashMap<u32, (u32, u32)>,
    /// Semantics ids of control barriers.
    barriers: Vec<u32>,
    bound: u32,
}

impl<'a> Module<'a> {
    fn read(words: &'a [u32]) -> Option<Self> {
        let mut instructions = Vec::new();
        let mut rest = words.get(HEADER..)?;
        while let Some(first) = rest.first() {
            let length = (first >> 16) as usize;
            if length == 0 || length > rest.len() {
                return None;
            }
            let (instruction, after) = rest.split_at(length);
            instructions.push(instruction);
            rest = after;
        }
        let mut module = Module {
            instructions,
            shared: HashSet::new(),
            constants: HashMap::new(),
            barriers: Vec::new(),
            bound: words[BOUND],
        };
        module.look()?;
        Some(module)
    }

    fn look(&mut self) -> Option<()> {
        let mut coherent = HashSet::new();
        for instruction in &self.instructions {
            let word = |i: usize| instruction.get(i).copied();
            match instruction[0] & 0xffff {
                op::DECORATE if word(2)? == COHERENT => {
                    coherent.insert(word(1)?);
                }
                op::CONSTANT if instruction.len() == 4 => {
                    self.constants.insert(word(2)?, (word(3)?, word(1)?));
                }
                op::VARIABLE if word(3)? == WORKGROUP || coherent.contains(&word(2)?) => {
                    self.shared.insert(word(2)?);
                }
                op::ACCESS_CHAIN if self.shared.contains(&word(3)?) => {
                    self.shared.insert(word(2)?);
                }
                op::CONTROL_BARRIER if !self.barriers.contains(&word(3)?) => self.barriers.push(word(3)?),
                _ => {}
            }
        }
        Some(())
    }
}

struct Output<'a> {
    words: Vec<u32>,
    module: &'a Module<'a>,
    /// New semantics of barriers by the old ones.
    semantics: HashMap<u32, u32>,
}

impl Output<'_> {
    fn put(&mut self, opcode: u32, operands: &[u32]) {
        self.words.push(((operands.len() as u32 + 1) << 16) | opcode);
        self.words.extend(operands);
    }

    fn capabilities(&mut self, is_bf16: bool) {
        self.put(op::CAPABILITY, &[capability::DEVICE_SCOPE]);
        if is_bf16 {
            self.put(op::CAPABILITY, &[capability::BFLOAT16]);
            self.put(op::CAPABILITY, &[capability::BFLOAT16_MATRIX]);
        }
    }

    /// Constants with the semantics that barriers lack; naga shares its constants with other uses.
    fn barrier_constants(&mut self) -> Option<()> {
        let mut bound = self.module.bound;
        for old in &self.module.barriers {
            let (value, ty) = self.module.constants.get(old)?;
            self.put(op::CONSTANT, &[*ty, bound, value | AVAILABLE_VISIBLE | WORKGROUP_MEMORY]);
            self.semantics.insert(*old, bound);
            bound += 1;
        }
        self.words[BOUND] = bound;
        Some(())
    }

    fn instruction(&mut self, instruction: &[u32], is_bf16: bool) -> Option<()> {
        let word = |i: usize| instruction.get(i).copied();
        let operands = instruction.get(1..)?;
        match instruction[0] & 0xffff {
            // No buffer holds half precision.
            op::CAPABILITY
                if [capability::STORAGE_16, capability::UNIFORM_AND_STORAGE_16].contains(&word(1)?) => {}
            op::CAPABILITY if is_bf16 && word(1)? == capability::FLOAT16 => {}
            op::EXTENSION => self.extension(instruction, is_bf16),
            op::TYPE_FLOAT if is_bf16 && word(2)? == 16 => {
                self.put(op::TYPE_FLOAT, &[word(1)?, 16, BFLOAT16_ENCODING]);
            }
            op::DECORATE if word(2)? == COHERENT => {}
            op::LOAD | op::MATRIX_LOAD if self.module.shared.contains(&word(3)?) => {
                self.put(instruction[0] & 0xffff, &[operands, &[NON_PRIVATE]].concat());
            }
            op::STORE | op::MATRIX_STORE if self.module.shared.contains(&word(1)?) => {
                self.put(instruction[0] & 0xffff, &[operands, &[NON_PRIVATE]].concat());
            }
            op::CONTROL_BARRIER => {
                let semantics = *self.semantics.get(&word(3)?)?;
                self.put(op::CONTROL_BARRIER, &[word(1)?, word(2)?, semantics]);
            }
            _ => self.words.extend(instruction),
        }
        Some(())
    }

    /// Extensions come after capabilities and before everything else: the further one goes in front of the first.
    fn extension(&mut self, instruction: &[u32], is_bf16: bool) {
        let text = string("SPV_KHR_bfloat16");
        let is_there = self.words.windows(text.len()).any(|words| words == text);
        if is_bf16 && !is_there {
            self.put(op::EXTENSION, &text);
        }
        let storage = string("SPV_KHR_16bit_storage");
        if instruction[1..] != storage {
            self.words.extend(instruction);
        }
    }
}

/// A literal string: UTF-8, little-endian, ended by zeros.
fn string(text: &str) -> Vec<u32> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(text.len() / 4 * 4 + 4, 0);
    bytes.chunks_exact(4).map(|word| word.iter().rev().fold(0, |sum, b| (sum << 8) | u32::from(*b))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kir::{Builder, Factors, MatrixBlock, Order, Type};
    use crate::{print, spirv};
    use griffinfly_ir::target::HalfFormat;

    fn module(format: HalfFormat) -> Vec<u32> {
        let b = Builder::new("product", [32, 1, 1]);
        let (x, y) = (b.read("x", Type::F32X4), b.read_write("y", Type::F32X4));
        let (half, full) = (b.shared_half("half", format, 64), b.shared("full", Type::F32X4, 64));
        let lane = b.local_index();
        half.store(lane, x.load(lane));
        b.barrier();
        let block = |array, order| MatrixBlock { array, index: b.constant(0_u32), stride: 4, order };
        let sum = b.matrix_sum("sum", Factors::Half(format));
        let left = b.left_matrix("a", block(half, Order::Rows));
        let right = b.right_matrix("b", block(half, Order::Columns));
        sum.add_product(left, right);
        sum.store(block(full, Order::Rows));
        b.subgroup_barrier();
        y.store(lane, full.load(lane));
        let text = print::wgsl(&b.finish().unwrap(), &print::PrintOptions::default());
        spirv::compile(&text, print::ENTRY).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    fn instructions(words: &[u32]) -> Vec<&[u32]> {
        Module::read(words).unwrap().instructions
    }

    #[test]
    fn bf16_is_a_type_of_its_own() {
        let words = module(HalfFormat::Bf16);
        let all = instructions(&words);
        let has = |want: &[u32]| all.iter().any(|i| i[0] & 0xffff == want[0] && i[1..].ends_with(&want[1..]));
        assert!(has(&[op::TYPE_FLOAT, 16, BFLOAT16_ENCODING]));
        assert!(
            has(&[op::CAPABILITY, capability::BFLOAT16_MATRIX])
                && !has(&[op::CAPABILITY, capability::FLOAT16])
        );
        let extensions: Vec<_> = all.iter().filter(|i| i[0] & 0xffff == op::EXTENSION).collect();
        assert!(extensions.iter().any(|i| i[1..] == string("SPV_KHR_bfloat16")));
        let half = module(HalfFormat::F16);
        assert!(instructions(&half).iter().any(|i| i[0] & 0xffff == op::TYPE_FLOAT && i[2..] == [16]));
    }

    #[test]
    fn shared_memory_is_marked_and_barriers_order_it() {
        for format in [HalfFormat::F16, HalfFormat::Bf16] {
            let words = module(format);
            let read = Module::read(&words).unwrap();
            let of = |opcode: u32| read.instructions.iter().filter(move |i| i[0] & 0xffff == opcode);
            let (loads, stores) = (of(op::MATRIX_LOAD), of(op::MATRIX_STORE));
            assert!(
                loads.clone().count() == 2 && loads.chain(stores).all(|i| i.last() == Some(&NON_PRIVATE))
            );
            for store in of(op::STORE) {
                assert_eq!(read.shared.contains(&store[1]), store.get(3) == Some(&NON_PRIVATE));
            }
            let barriers: Vec<_> = of(op::CONTROL_BARRIER).collect();
            let value = |barrier: &[u32], word: usize| read.constants[&barrier[word]].0;
            // Scopes of execution and memory, semantics: of a workgroup (2), then of a subgroup (3), both of workgroup memory.
            let found: Vec<[u32; 3]> =
                barriers.iter().map(|barrier| [1, 2, 3].map(|word| value(barrier, word))).collect();
            assert_eq!(found, [[2, 2, 0x6108], [3, 3, 0x6188]]);
            assert!(barriers.iter().all(|barrier| barrier[3] < words[BOUND]));
        }
    }

    #[test]
    fn words_that_are_no_module_are_refused() {
        let words = module(HalfFormat::Bf16);
        assert!(matrices(&words[..3], true).is_none());
        assert!(matrices(&words[..=HEADER], true).is_none());
        let mut zero = words.clone();
        zero[HEADER] = 0;
        assert!(matrices(&zero, true).is_none());
    }
}
