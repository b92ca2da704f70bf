//! Loops: the lowered form of a program, a few archetypes over scalar expressions and index maps.
//!
//! A [`Loop`] reads operands and writes results. Its kind fixes the iteration structure; what happens per element is a
//! [`Body`]: loads (operand + access) feeding a scalar expression. Prologues, epilogues and views are all bodies, so fusion
//! is substitution of one body into another and never a new kind of loop.
//!
//! Invariants (checked by [`Loop::verify`]): every access is proved in range, stores are bijections onto their results,
//! expressions are well typed, and each result is stored exactly once.

mod attention;
mod body;
mod cost;
mod interpret;
mod kinds;
mod verify;

pub use attention::{Attention, AttentionMask, AttentionShape, AttentionVariant, Saved};
pub use body::{Body, Load};
pub use interpret::interpret;
pub use kinds::{Archetype, Combine, Contract, Loop, LoopKind, Map, Phase, Row, Scatter, Term, Update};
