//! Compiled bodies: loads, arithmetic and stores of one loop body as straight-line code over registers.
//!
//! Input: a body with its extents, an order of its axes, and where its outputs go. Output: [`Code`], evaluated block by
//! block in `evaluate`. Invariants: operands of an instruction are computed before it; registers of constants are written
//! once per task (`Code::begin`) and never reused; other registers are reused after their last use.

use super::arithmetic::Operation;
use super::forms::{Form, Guard};
use super::space::normalise;
use super::table::Table;
use griffinfly_ir::index::{Bound, IndexExpr, Store};
use griffinfly_ir::loops::Body;
use griffinfly_ir::scalar::{ScalarId, ScalarNode};
use griffinfly_ir::types::{DType, TensorType, strides};

/// A body with everything its evaluation depends on.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    /// Loads and arithmetic.
    pub(super) body: &'a Body,
    /// Types of the operands as the body sees them.
    pub(super) operands: &'a [TensorType],
    /// Extents of the body's axes.
    pub(super) extents: &'a [usize],
    /// Where the outputs go; may be empty.
    pub(super) stores: &'a [Store],
    /// Types of the results.
    pub(super) results: &'a [TensorType],
}

/// A coordinate that comes from another load.
#[derive(Debug)]
pub(super) struct Id {
    /// Register of the id.
    pub(super) register: usize,
    /// Elements per unit of the coordinate.
    pub(super) stride: i64,
    /// Largest coordinate.
    pub(super) last: i32,
    /// Whether the id is the same all along a run.
    pub(super) uniform: bool,
}

/// A load.
#[derive(Debug)]
pub(super) struct LoadPlan {
    /// Which operand.
    pub(super) operand: usize,
    /// Which element (without the dynamic coordinate).
    pub(super) offset: Form,
    /// Where it happens.
    pub(super) guards: Vec<Guard>,
    /// Its value elsewhere.
    pub(super) fill: u32,
    /// A coordinate from data.
    pub(super) id: Option<Id>,
    /// Whether the words are truth values.
    pub(super) is_bool: bool,
    /// Whether offset and guards are affine along runs.
    pub(super) by_runs: bool,
    /// Precomputed offsets, where those are quicker.
    pub(super) table: Option<Table>,
}

/// What an instruction computes; numbers are registers.
#[derive(Debug)]
pub(super) enum Step {
    /// A load.
    Load(LoadPlan),
    /// A carried value.
    Carry(usize),
    /// An index value.
    Index(Form),
    /// Whether bounds hold.
    Within(Vec<Guard>),
    /// Arithmetic on registers.
    Compute(Operation, [usize; 3]),
}

/// An instruction.
#[derive(Debug)]
pub(super) struct Instruction {
    /// What it computes.
    pub(super) step: Step,
    /// Where the value goes.
    pub(super) target: usize,
}

/// A store of an output.
#[derive(Debug)]
pub(super) struct StorePlan {
    /// Register of the value.
    pub(super) register: usize,
    /// Which result.
    pub(super) result: usize,
    /// Which element.
    pub(super) offset: Form,
}

/// A compiled body.
#[derive(Debug)]
pub(super) struct Code {
    /// Extents of the axes it is evaluated over.
    pub(super) extents: Vec<usize>,
    /// Registers with fixed values.
    pub(super) constants: Vec<(usize, u32)>,
    /// Instructions in order.
    pub(super) steps: Vec<Instruction>,
    /// Register and dtype of each output.
    pub(super) outputs: Vec<(usize, DType)>,
    /// Stores.
    pub(super) stores: Vec<StorePlan>,
    /// First register not used.
    pub(super) end_register: usize,
    /// Whether anything is computed by runs.
    pub(super) needs_runs: bool,
}

impl Code {
    /// Compiles a body for evaluation with its axes in this order, with registers from `first_register`.
    ///
    /// # Errors
    /// Index values that do not fit in 32 bits, loads the body does not have.
    pub(super) fn new(source: &Source<'_>, order: &[usize], first_register: usize) -> Result<Code, String> {
        let mut exprs = expressions(source);
        let extents = normalise(source.extents, order, &mut exprs);
        let mut code = Code {
            extents: extents.clone(),
            constants: Vec::new(),
            steps: Vec::new(),
            outputs: Vec::new(),
            stores: Vec::new(),
            end_register: first_register,
            needs_runs: !source.stores.is_empty(),
        };
        let mut rewritten = exprs.into_iter();
        let mut next = || rewritten.next().ok_or_else(|| "an index expression is missing".to_owned());
        let loads = loads(source, &extents, &mut next)?;
        let mut build =
            Build { source, code: &mut code, loads, load_registers: Vec::new(), free: Vec::new() };
        build.run(&mut next)?;
        code.needs_runs |= code.steps.iter().any(|i| match &i.step {
            Step::Load(plan) => plan.table.is_none(),
            Step::Index(_) | Step::Within(_) => true,
            Step::Carry(_) | Step::Compute(..) => false,
        });
        for (i, s) in source.stores.iter().enumerate() {
            let offset = Form::new(&next()?, &extents)?;
            let (register, _) = *code.outputs.get(i).ok_or("a store without an output")?;
            code.stores.push(StorePlan { register, result: s.result, offset });
        }
        Ok(code)
    }
}

/// Loads that are needed: those the live arithmetic uses and those that give ids to needed loads.
fn live_loads(body: &Body) -> Vec<bool> {
    let mut live = vec![false; body.loads.len()];
    let nodes = body.expr.reachable(body.expr.outputs());
    for (node, _) in body.expr.nodes().iter().zip(nodes).filter(|(_, live)| *live) {
        if let ScalarNode::Load(k) = node
            && let Some(l) = live.get_mut(*k as usize)
        {
            *l = true;
        }
    }
    for k in (0..live.len()).rev().filter(|&k| body.loads[k].access.dynamic.is_some()) {
        if let (true, Some(d)) = (live[k], &body.loads[k].access.dynamic) {
            live[d.load] = true;
        }
    }
    live
}

/// Every index expression of a body in a fixed order: loads with their bounds, nodes, stores.
fn expressions(source: &Source<'_>) -> Vec<IndexExpr> {
    let body = source.body;
    let mut out = Vec::new();
    for (load, _) in body.loads.iter().zip(live_loads(body)).filter(|(_, live)| *live) {
        out.push(load.access.offset(&source.operands[load.operand].dims));
        out.extend(load.access.valid.iter().map(|b| b.expr.clone()));
    }
    let live = body.expr.reachable(body.expr.outputs());
    for (node, _) in body.expr.nodes().iter().zip(live).filter(|(_, live)| *live) {
        match node {
            ScalarNode::Index(e) => out.push(e.clone()),
            ScalarNode::Within(b) => out.extend(b.iter().map(|b| b.expr.clone())),
            _ => {}
        }
    }
    let offset = |s: &Store| IndexExpr::flatten(&s.coords, &source.results[s.result].dims);
    out.extend(source.stores.iter().map(offset));
    out
}

type Next<'a> = dyn FnMut() -> Result<IndexExpr, String> + 'a;

fn guards(bounds: &[Bound], extents: &[usize], next: &mut Next<'_>) -> Result<Vec<Guard>, String> {
    bounds.iter().map(|b| Guard::new(b, &next()?, extents)).collect()
}

/// Plans of the live loads; ids get their registers later.
fn loads(
    source: &Source<'_>,
    extents: &[usize],
    next: &mut Next<'_>,
) -> Result<Vec<Option<LoadPlan>>, String> {
    let mut plans: Vec<Option<LoadPlan>> = Vec::new();
    for (load, live) in source.body.loads.iter().zip(live_loads(source.body)) {
        if !live {
            plans.push(None);
            continue;
        }
        let ty = &source.operands[load.operand];
        let (expr, valid) = (next()?, &load.access.valid);
        let bounds = valid.iter().map(|_| next()).collect::<Result<Vec<_>, _>>()?;
        let guards = valid.iter().zip(&bounds).map(|(b, e)| Guard::new(b, e, extents));
        let guards = guards.collect::<Result<Vec<_>, _>>()?;
        let offset = Form::new(&expr, extents)?;
        let id = load.access.dynamic.as_ref().map(|d| Id {
            register: usize::MAX,
            stride: strides(&ty.dims)[d.dimension] as i64,
            last: ty.dims[d.dimension] as i32 - 1,
            uniform: plans[d.load].as_ref().is_some_and(LoadPlan::is_uniform),
        });
        let mut plan = LoadPlan {
            operand: load.operand,
            by_runs: offset.stride().is_some() && guards.iter().all(|g| g.stride().is_some()),
            offset,
            guards,
            fill: load.access.fill.bits(),
            id,
            is_bool: ty.dtype == DType::Bool,
            table: None,
        };
        plan.table = Table::new(&plan, &expr, &bounds, extents);
        plans.push(Some(plan));
    }
    Ok(plans)
}

impl LoadPlan {
    /// Whether the value is the same all along a run.
    fn is_uniform(&self) -> bool {
        self.offset.stride() == Some(0)
            && self.guards.iter().all(|g| g.stride() == Some(0))
            && self.id.as_ref().is_none_or(|i| i.uniform)
    }
}

struct Build<'a> {
    source: &'a Source<'a>,
    code: &'a mut Code,
    loads: Vec<Option<LoadPlan>>,
    load_registers: Vec<Option<usize>>,
    free: Vec<usize>,
}

impl Build<'_> {
    fn register(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.code.end_register += 1;
            self.code.end_register - 1
        })
    }

    /// Emits a load after the loads that give its ids. Its register stays taken: later loads may need it.
    fn load(&mut self, k: usize) -> Result<usize, String> {
        if let Some(r) = self.load_registers[k] {
            return Ok(r);
        }
        let mut plan = self.loads[k].take().ok_or_else(|| format!("load {k} is missing"))?;
        if let (Some(id), Some(d)) = (&mut plan.id, &self.source.body.loads[k].access.dynamic) {
            id.register = self.load(d.load)?;
        }
        let target = self.register();
        self.code.steps.push(Instruction { step: Step::Load(plan), target });
        self.load_registers[k] = Some(target);
        Ok(target)
    }

    fn run(&mut self, next: &mut Next<'_>) -> Result<(), String> {
        let expr = &self.source.body.expr;
        self.load_registers = vec![None; self.loads.len()];
        let live = expr.reachable(expr.outputs());
        let last = last_uses(self.source.body, &live);
        // Constants come first so that their registers are never shared.
        let mut registers = vec![usize::MAX; live.len()];
        for (i, node) in expr.nodes().iter().enumerate().filter(|(i, _)| live[*i]) {
            if let ScalarNode::Const(c) = node {
                registers[i] = self.register();
                self.code.constants.push((registers[i], c.bits()));
            }
        }
        for (i, node) in expr.nodes().iter().enumerate().filter(|(i, _)| live[*i]) {
            if matches!(node, ScalarNode::Const(_)) {
                continue;
            }
            if let ScalarNode::Load(k) = node {
                registers[i] = self.load(*k as usize)?;
                continue;
            }
            let step = self.step(node, &registers, next)?;
            for a in node.arguments() {
                let kept = matches!(expr.node(a), ScalarNode::Const(_) | ScalarNode::Load(_));
                let register = registers[a.index()];
                if last[a.index()] == i && !kept && !self.free.contains(&register) {
                    self.free.push(register);
                }
            }
            registers[i] = self.register();
            self.code.steps.push(Instruction { step, target: registers[i] });
        }
        let output = |o: &ScalarId| (registers[o.index()], expr.dtype(*o));
        self.code.outputs = expr.outputs().iter().map(output).collect();
        Ok(())
    }

    fn step(&self, node: &ScalarNode, registers: &[usize], next: &mut Next<'_>) -> Result<Step, String> {
        let expr = &self.source.body.expr;
        let at = |id: &ScalarId| registers[id.index()];
        Ok(match node {
            ScalarNode::Carry(k) => Step::Carry(*k as usize),
            ScalarNode::Index(_) => Step::Index(Form::new(&next()?, &self.code.extents)?),
            ScalarNode::Within(b) => Step::Within(guards(b, &self.code.extents, next)?),
            ScalarNode::Unary(f, x) => Step::Compute(Operation::Unary(*f, expr.dtype(*x)), [at(x); 3]),
            ScalarNode::Binary(f, a, b) => {
                Step::Compute(Operation::Binary(*f, expr.dtype(*a)), [at(a), at(b), at(b)])
            }
            ScalarNode::Select(c, a, b) => Step::Compute(Operation::Select, [at(c), at(a), at(b)]),
            ScalarNode::Cast(d, x) => Step::Compute(Operation::Cast(*d, expr.dtype(*x)), [at(x); 3]),
            ScalarNode::Const(_) | ScalarNode::Load(_) => return Err("not an instruction".into()),
        })
    }
}

/// The last node that uses each node; outputs are used for ever.
fn last_uses(body: &Body, live: &[bool]) -> Vec<usize> {
    let mut last = vec![0; live.len()];
    for (i, node) in body.expr.nodes().iter().enumerate().filter(|(i, _)| live[*i]) {
        for a in node.arguments() {
            last[a.index()] = i;
        }
    }
    for o in body.expr.outputs() {
        last[o.index()] = usize::MAX;
    }
    last
}
