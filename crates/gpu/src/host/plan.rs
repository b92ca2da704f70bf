//! Execution plans: one per dispatch, made when a program is instantiated.

use super::attention::AttentionPlan;
use super::contract::ContractPlan;
use super::evaluate::Need;
use super::map::MapPlan;
use super::memory::View;
use super::row::RowPlan;
use super::scatter::ScatterPlan;
use super::workers::Workers;
use griffinfly_ir::loops::{Loop, LoopKind};

/// A loop bound to memory, ready to run.
pub(super) enum Plan {
    /// Independent points.
    Map(MapPlan),
    /// Reductions along rows.
    Row(Box<RowPlan>),
    /// A contraction.
    Contract(Box<ContractPlan>),
    /// Rows summed by id.
    Scatter(Box<ScatterPlan>),
    /// Attention or a gradient of it.
    Attention(Box<AttentionPlan>),
}

impl Plan {
    /// Plans a verified loop; `views` are its operands, then its results.
    ///
    /// # Errors
    /// What does not compile, in words.
    pub(super) fn new(l: &Loop, views: &[View]) -> Result<Plan, String> {
        Ok(match &l.kind {
            LoopKind::Map(m) => Plan::Map(MapPlan::map(l, m, views)?),
            LoopKind::Update(u) => Plan::Map(MapPlan::update(l, u, views)?),
            LoopKind::Row(r) => Plan::Row(Box::new(RowPlan::new(l, r, views)?)),
            LoopKind::Contract(c) => Plan::Contract(Box::new(ContractPlan::new(l, c, views)?)),
            LoopKind::Scatter(s) => Plan::Scatter(Box::new(ScatterPlan::new(l, s, views)?)),
            LoopKind::Attention(a) => Plan::Attention(Box::new(AttentionPlan::new(l, a, views)?)),
        })
    }

    /// Scratch needed per thread.
    pub(super) fn need(&self) -> Need {
        match self {
            Plan::Map(p) => p.need(),
            Plan::Row(p) => p.need(),
            Plan::Contract(p) => p.need(),
            Plan::Scatter(p) => p.need(),
            Plan::Attention(p) => p.need(),
        }
    }

    /// Executes it.
    pub(super) fn run(&self, workers: &Workers) {
        match self {
            Plan::Map(p) => p.run(workers),
            Plan::Row(p) => p.run(workers),
            Plan::Contract(p) => p.run(workers),
            Plan::Scatter(p) => p.run(workers),
            Plan::Attention(p) => p.run(workers),
        }
    }
}
