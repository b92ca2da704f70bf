//! Typed kernels: how a loop becomes words that a GPU driver accepts.
//!
//! ```text
//! family (Map, Row, Contract, ...)        decides tiling, index arithmetic, staging
//!    |  kir::Builder                      typed expressions and statements, folded and scoped
//!    v
//! kir::Kernel                             plain value: declarations, expression arena, blocks
//!    |  verify::check(limits)             sizes, bindings, barriers: all faults at once
//!    |  print::wgsl(options)              deterministic text, the form for people and golden files
//!    v
//! WGSL
//!    |  spirv::compile(text, entry)       naga: parse, validate (always), write without injected checks
//!    v
//! SPIR-V 1.3 words
//! ```
//!
//! Each arrow is a pure function with a typed error ([`KernelError`]); nothing here knows a device. What a target
//! allows comes in as plain data ([`verify::KernelLimits`], [`print::PrintOptions`]).
//!
//! **Why a typed IR and text.** Text templates with holes cannot be checked before a driver sees them, and every
//! variant multiplies them; an embedded language costs more code than it saves. The IR is a few enums: a generator is
//! ordinary Rust whose loops unroll the kernel's, and its mistakes are reported with the generator's file and line.
//! Going through text costs a parse and buys readable goldens and an independent validator.
//!
//! **Evaluation order.** An expression is an immutable value, evaluated where the generator built it. Reading memory
//! twice is two values; using a value twice computes it once. The printer may write a value inside its only user, when
//! nothing in between could change it.
//!
//! **Numbers.** Scalar functions are our own ([`functions`]), with a bound on their error and an exact twin for the
//! host; NaN tests are integer comparisons. Constants keep their bits, including NaN, infinities and -0.0.
//!
//! ```
//! use griffinfly_kernel::kir::{Builder, Type};
//! use griffinfly_kernel::{print, spirv};
//!
//! # fn main() -> Result<(), griffinfly_kernel::KernelError> {
//! let b = Builder::new("tanh", [64, 1, 1]);
//! let count = b.param("count");
//! let (x, y) = (b.read("x", Type::F32), b.read_write("y", Type::F32));
//! let i = b.flat_global_id().named("i");
//! b.if_(i.lt(count), || y.store(i, x.load(i).tanh()));
//!
//! let text = print::wgsl(&b.finish()?, &print::PrintOptions::default());
//! assert!(text.contains("let v1 = gf_tanh(v0);"));
//! let words = spirv::compile(&text, print::ENTRY)?;
//! assert_eq!(words[0], 0x0723_0203);
//! # Ok(())
//! # }
//! ```

mod error;
pub mod families;
pub mod functions;
pub mod kir;
pub mod print;
pub mod probe;
pub mod spirv;
pub mod verify;

pub use error::KernelError;
