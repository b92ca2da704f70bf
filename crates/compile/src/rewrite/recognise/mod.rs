//! Recognition: composites that a model or an importer wrote out in smaller operations.
//!
//! The composite has a better gradient (saved statistics, no detour through intermediates), a special kernel, and is defined
//! where the written-out form overflows. Each row matches one form modulo order of factors and terms. An intermediate that
//! something else uses too stays, beside the composite.

pub(super) mod activation;
pub(super) mod normalise;
mod polynomial;
pub(super) mod softmax;
