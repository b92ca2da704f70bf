//! Rewriting: a graph becomes an equal graph that is cheaper, or that says more about itself.
//!
//! Input: a verified graph whose shapes are bound ([`Graph::rebind`] comes before: some rules look at extents). Output: a
//! graph with the same named leaves, outputs and updates. Two stages:
//!
//! 1. [`recognise`], before differentiation: decomposed softmax, norms and activations become the composite operations,
//!    together with algebra that holds for gradients too. Leaves keep their identity, and a parameter that a gradient
//!    reaches is still reached.
//! 2. [`simplify`], after it: everything of stage 1 that is algebra, folding of constants and views, and what only holds once
//!    no more derivatives are taken. Shared subexpressions and dead code go with each round ([`Graph::rebuild`]).
//!
//! A [`Rule`] is a row of a table: name, formula, the stages it runs in, how exactly its two sides agree, a function that
//! tries it at one node, and an example in which it fires. The rule suite drives every row through the oracle. Rules are
//! applied greedily, operands before users, in rounds until none fires or [`ROUNDS`] have passed; every rule makes a node
//! cheaper or a constant, so the bound is a guard and not a tuning value.
//!
//! What is no rule: `0 x = 0` (wrong for infinities and NaN), `x + 0 = x` for +0 (turns -0 into +0), `exp log x`,
//! reassociation and distribution (other roundings).
//!
//! Equality saturation takes its place beside the greedy rounds: the same rows, tried on the classes of an e-graph instead
//! of on one graph, with an extractor that weighs traffic and levels. Nothing outside of this module will change for it.

/// A table of rules: `"name": "formula", when, exactness, function, example;`.
macro_rules! rules {
    ($($name:literal: $formula:literal, $when:ident, $exactness:ident, $apply:expr, $example:expr;)*) => {
        pub(in crate::rewrite) const RULES: &[$crate::rewrite::Rule] = &[$($crate::rewrite::Rule {
            name: $name,
            formula: $formula,
            when: $crate::rewrite::When::$when,
            exactness: $crate::rewrite::Exactness::$exactness,
            apply: $apply,
            example: $example,
        },)*];
    };
}

mod algebra;
mod folding;
mod pattern;
mod recognise;
mod views;

use griffinfly_ir::graph::{Graph, NodeId, Value};
use griffinfly_ir::ops::RuleView;
use griffinfly_ir::scalar::BinaryFn;
use std::collections::BTreeMap;
use std::fmt;

/// Most rounds of one stage.
pub const ROUNDS: usize = 16;

/// When a rule runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Stage 1 only.
    Before,
    /// Stage 2 only: its gradient differs, or it hides from a gradient that a parameter is used.
    After,
    /// Both stages.
    Always,
}

/// How exactly the two sides of a rule agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exactness {
    /// Bit for bit, signed zeros, infinities and NaN included (but not which NaN).
    Bits,
    /// As functions of real numbers; roundings differ, and the new side is defined wherever the old one is.
    Real,
}

/// A row of the table of rules.
pub struct Rule {
    /// Unique name.
    pub name: &'static str,
    /// What becomes what.
    pub formula: &'static str,
    /// The stages it runs in.
    pub when: When,
    /// How exactly both sides agree.
    pub exactness: Exactness,
    apply: fn(&mut Site<'_>) -> Option<Value>,
    example: fn(&mut Graph) -> Value,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.formula)
    }
}

/// Names of the rules that fired, in order, one entry per application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fired(pub Vec<&'static str>);

impl Fired {
    /// How often each rule fired.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        self.0.iter().for_each(|name| *counts.entry(*name).or_default() += 1);
        counts
    }
}

impl fmt::Display for Fired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.counts().iter().try_for_each(|(name, n)| writeln!(f, "{name} {n}"))
    }
}

/// A stage of rewriting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Before differentiation.
    Recognise,
    /// After differentiation.
    Simplify,
}

/// All rules, by theme.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    let recognition = [recognise::activation::RULES, recognise::softmax::RULES, recognise::normalise::RULES];
    recognition.into_iter().chain([algebra::RULES, views::RULES, folding::RULES]).flatten()
}

/// Stage 1, before differentiation.
#[must_use]
pub fn recognise(graph: &Graph) -> Graph {
    run(graph, Stage::Recognise).0
}

/// Stage 2, after differentiation.
#[must_use]
pub fn simplify(graph: &Graph) -> Graph {
    run(graph, Stage::Simplify).0
}

/// Runs a stage and says which rules fired.
#[must_use]
pub fn run(graph: &Graph, stage: Stage) -> (Graph, Fired) {
    let only = if stage == Stage::Recognise { When::Before } else { When::After };
    let active: Vec<&Rule> = rules().filter(|r| r.when == When::Always || r.when == only).collect();
    let mut fired = Fired::default();
    let mut current = round(graph, &active, &mut fired);
    for _ in 1..ROUNDS {
        let before = fired.0.len();
        let next = round(&current, &active, &mut fired);
        let settled = fired.0.len() == before && next.nodes().len() == current.nodes().len();
        current = next;
        if settled {
            return (current, fired);
        }
    }
    (current.rebuild(&mut |_, _, _| None), fired)
}

/// Tries the rules at every node, the first that fires wins.
fn round(graph: &Graph, rules: &[&Rule], fired: &mut Fired) -> Graph {
    graph.rebuild(&mut |g, id, inputs| {
        let mut site = Site { old: graph, id, inputs, g };
        rules.iter().find_map(|rule| {
            let value = site.attempt(rule)?;
            fired.0.push(rule.name);
            Some(vec![value])
        })
    })
}

impl Rule {
    /// A graph in which the rule fires; its output is `y`.
    #[must_use]
    pub fn example(&self) -> Graph {
        let mut g = Graph::new();
        let y = (self.example)(&mut g);
        g.output("y", y);
        g
    }

    /// Applies this rule alone at every node, once; gives how often it fired.
    #[must_use]
    pub fn apply(&self, graph: &Graph) -> (Graph, usize) {
        let mut fired = Fired::default();
        let out = round(graph, &[self], &mut fired);
        (out, fired.0.len())
    }
}

/// A node of the old graph about to be copied: a rule may give another value for its only result.
pub(crate) struct Site<'a> {
    old: &'a Graph,
    id: NodeId,
    /// The node's inputs in the new graph.
    inputs: &'a [Value],
    /// The new graph.
    g: &'a mut Graph,
}

impl<'a> Site<'a> {
    /// Tries a rule; only a value of the same type is accepted.
    fn attempt(&mut self, rule: &Rule) -> Option<Value> {
        let [ty] = self.old.node(self.id).types() else { return None };
        let value = (rule.apply)(self)?;
        (self.g.ty(value) == Some(ty)).then_some(value)
    }

    /// The node's operation.
    fn view(&self) -> RuleView<'a> {
        self.old.view(self.id)
    }

    /// Dimensions of the result.
    fn dims(&self) -> &'a [usize] {
        &self.old.node(self.id).types()[0].dims
    }

    /// The operands, if the node is this function of two operands.
    fn binary(&self, f: BinaryFn) -> Option<[Value; 2]> {
        match (self.view(), self.inputs) {
            (RuleView::Binary(own), [a, b]) if own == f => Some([*a, *b]),
            _ => None,
        }
    }

    /// The operands in both orders, if the node is this (commutative) function; none otherwise.
    fn commuted(&self, f: BinaryFn) -> Vec<[Value; 2]> {
        self.binary(f).map_or(Vec::new(), |[a, b]| vec![[a, b], [b, a]])
    }

    /// An operand repeated to the dimensions of the result, to which it broadcasts.
    fn fit(&mut self, v: Value) -> Option<Value> {
        let (from, to) = (self.g.dims(v).to_vec(), self.dims());
        let lead: Vec<usize> = (0..to.len().checked_sub(from.len())?).collect();
        let v = if lead.is_empty() { v } else { self.g.insert_axes(v, &lead) };
        let from = self.g.dims(v).to_vec();
        let spread: Vec<(usize, usize)> =
            (0..to.len()).filter(|&i| from[i] == 1 && to[i] != 1).map(|i| (i, to[i])).collect();
        Some(if spread.is_empty() { v } else { self.g.expand(v, &spread) })
    }
}
