//! Map: independent points. Also pure movement (Move) and rows chosen by data (Gather).
//!
//! One invocation per element or per four ([`vector`]) in a loop that strides by the whole dispatch: neighbours touch
//! neighbouring addresses, and any element count runs with any number of workgroups within the limits. The count is a
//! parameter, and the code takes the point apart only as far as its addresses need: a map whose accesses are all in place
//! (or of scalars) has the same code for every shape.

mod vector;

use super::emit::{self, Bindings, Draft, element_type};
use super::{Instance, Realisation};
use crate::KernelError;
use crate::kir::{Axis, Builder, Expr, Type};
use griffinfly_ir::index::Store;
use griffinfly_ir::loops::{Archetype, Body, Loop, LoopKind, Map};
use griffinfly_ir::target::Target;
use griffinfly_ir::types::TensorType;

/// Invocations of a workgroup.
const WORKGROUP: u32 = 256;
/// Workgroups per compute unit beyond which invocations take several elements.
const WAVES: u64 = 32;

/// A map in the form in which it is emitted: elements are scalars, or vectors of four.
struct Plan {
    family: &'static str,
    lanes: u32,
    types: Vec<TensorType>,
    elements: Vec<Type>,
    results: Vec<TensorType>,
    domain: Vec<usize>,
    body: Body,
    stores: Vec<Store>,
}

/// Realises a map, a move or a gather.
///
/// # Errors
/// A loop of another kind, or one that needs more than the target allows (bindings above all).
pub fn realise_map(l: &Loop, target: &Target) -> Result<Realisation, KernelError> {
    let LoopKind::Map(map) = &l.kind else {
        return Err(emit::unsupported("map", "the loop is not a map"));
    };
    let plan = vector::plan(l, map).unwrap_or_else(|| scalar_plan(l, map));
    Ok(Realisation { dispatches: vec![instance(&plan, l, target)?], ..Realisation::default() })
}

fn scalar_plan(l: &Loop, map: &Map) -> Plan {
    Plan {
        family: family(l),
        lanes: 1,
        types: l.operands.clone(),
        elements: l.operands.iter().map(|ty| element_type(ty.dtype)).collect(),
        results: l.results.clone(),
        domain: map.domain.clone(),
        body: map.body.clone(),
        stores: map.stores.clone(),
    }
}

fn family(l: &Loop) -> &'static str {
    match l.archetype() {
        Archetype::Gather => "gather",
        Archetype::Move => "move",
        _ => "map",
    }
}

fn instance(plan: &Plan, l: &Loop, target: &Target) -> Result<Instance, KernelError> {
    let name = format!("{} x{}", plan.family, plan.lanes);
    let size = WORKGROUP.min(target.max_invocations).min(target.max_workgroup_size[0]);
    let count = plan.domain.iter().product::<usize>() as u32;
    let b = Builder::new(name.clone(), [size, 1, 1]);
    let bindings = emit_map(&b, plan, l, size)?;
    // Enough workgroups that no invocation takes more elements than it may count.
    let turns = u64::from(target.max_iterations.max(2) - 1) * u64::from(size);
    let wanted = (u64::from(target.compute_units) * WAVES).max(u64::from(count).div_ceil(turns));
    let groups =
        u64::from(count.div_ceil(size)).min(wanted.min(u64::from(target.max_groups[0])).max(1)) as u32;
    Draft { name, bindings, parameters: vec![count], groups: [groups, 1, 1] }.finish(b, target)
}

fn emit_map(b: &Builder, plan: &Plan, l: &Loop, size: u32) -> Result<Vec<super::Slot>, KernelError> {
    let mut bindings = Bindings::new(b, l);
    for operand in operands(&plan.body) {
        let element = plan.elements.get(operand).copied().unwrap_or(Type::F32);
        bindings.operand(operand, element);
    }
    for store in &plan.stores {
        let element = element_type(plan.results[store.result].dtype);
        let lanes = crate::kir::Lanes::from_count(plan.lanes as usize).unwrap_or(crate::kir::Lanes::One);
        bindings.result(store.result, element.with_lanes(lanes));
    }
    let count = b.param("count");
    let step = b.workgroup_count(Axis::X) * size;
    let start = b.workgroup_id(Axis::X) * size + b.local_index();
    let mut outcome = Ok(());
    b.for_("i", (start, count), step, |i| outcome = point(b, plan, &bindings, i));
    outcome.map(|()| bindings.slots())
}

fn point<'b>(b: &'b Builder, plan: &Plan, bindings: &Bindings<'b>, i: Expr<'b>) -> Result<(), KernelError> {
    let axes = emit::decompose(b, i, &plan.domain);
    let mut env = bindings.env(&plan.types, &plan.domain, &axes);
    env.linear = Some(i);
    let values = emit::body(b, &plan.body, &env)?;
    for (store, value) in plan.stores.iter().zip(values) {
        let buffer = bindings.target(store.result)?;
        emit::store(b, store, (buffer, &plan.results[store.result]), value, &env);
    }
    Ok(())
}

fn operands(body: &Body) -> Vec<usize> {
    let mut used: Vec<usize> = emit::needed(body).into_iter().map(|k| body.loads[k].operand).collect();
    used.sort_unstable();
    used.dedup();
    used
}
