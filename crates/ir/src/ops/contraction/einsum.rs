//! Sums of products in the notation of Einstein, over one or two operands.
//!
//! Lowered to sums of what only one operand has, permutations, and one batched matrix product: the subscripts both operands
//! and the result have are its batch, those both operands have alone its inner dimension.

use crate::graph::{Graph, Value};

/// A parsed equation: the subscripts of the operands and of the result.
struct Equation {
    operands: Vec<Vec<char>>,
    result: Vec<char>,
}

fn subscripts(text: &str) -> Result<Vec<char>, String> {
    let all: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
    if let Some(c) = all.iter().find(|c| !c.is_ascii_alphabetic()) {
        return Err(format!("'{c}' is no subscript: they are letters"));
    }
    match all.iter().enumerate().find(|(i, c)| all[..*i].contains(c)) {
        Some((_, c)) => Err(format!("subscript '{c}' is twice in '{text}': diagonals are not supported")),
        None => Ok(all),
    }
}

impl Equation {
    fn parse(text: &str, operands: usize) -> Result<Equation, String> {
        let (left, right) = text.split_once("->").ok_or_else(|| format!("'{text}' has no '->'"))?;
        let parts = left.split(',').map(subscripts).collect::<Result<Vec<_>, _>>()?;
        let equation = Equation { operands: parts, result: subscripts(right)? };
        if equation.operands.len() != operands || !(1..=2).contains(&operands) {
            let named = equation.operands.len();
            return Err(format!(
                "'{text}' names {named} operands, given {operands}; one or two are supported"
            ));
        }
        let missing = equation.result.iter().find(|c| !equation.operands.iter().any(|o| o.contains(c)));
        match missing {
            Some(c) => Err(format!("subscript '{c}' of the result is in no operand")),
            None => Ok(equation),
        }
    }

    /// Checks ranks and extents against the operands.
    fn check(&self, dims: &[Vec<usize>]) -> Result<(), String> {
        let mut known: Vec<(char, usize, usize)> = Vec::new();
        for (k, (labels, dims)) in self.operands.iter().zip(dims).enumerate() {
            if labels.len() != dims.len() {
                let text: String = labels.iter().collect();
                return Err(format!(
                    "operand {k} has {} dimensions, '{text}' has {}",
                    dims.len(),
                    labels.len()
                ));
            }
            for (&label, &extent) in labels.iter().zip(dims) {
                match known.iter().find(|(c, ..)| *c == label) {
                    Some((_, first, before)) if *before != extent => {
                        return Err(format!(
                            "subscript '{label}' is {before} in operand {first} and {extent} in operand {k}"
                        ));
                    }
                    Some(_) => {}
                    None => known.push((label, k, extent)),
                }
            }
        }
        Ok(())
    }
}

/// An operand on its way: a value with a subscript per axis.
struct Labelled {
    value: Value,
    labels: Vec<char>,
}

impl Labelled {
    /// Sums over the axes whose subscript is not kept.
    fn summed(self, g: &mut Graph, keep: impl Fn(char) -> bool) -> Labelled {
        let axes: Vec<isize> =
            self.labels.iter().enumerate().filter(|(_, c)| !keep(**c)).map(|(i, _)| i as isize).collect();
        if axes.is_empty() {
            return self;
        }
        let labels = self.labels.iter().copied().filter(|c| keep(*c)).collect();
        Labelled { value: g.sum(self.value, &axes), labels }
    }

    /// With the axes in this order.
    fn ordered(self, g: &mut Graph, labels: &[char]) -> Value {
        let order: Vec<usize> =
            labels.iter().filter_map(|c| self.labels.iter().position(|l| l == c)).collect();
        let there = order.iter().enumerate().all(|(i, o)| i == *o);
        if there { self.value } else { g.permute(self.value, &order) }
    }

    /// As a matrix with batch axes: `[batch.., rows, columns]`, each group of subscripts one axis.
    fn matrix(self, g: &mut Graph, [batch, rows, columns]: [&[char]; 3]) -> Value {
        let ordered = self.ordered(g, &[batch, rows, columns].concat());
        let ordered = one_axis(g, ordered, batch.len() + rows.len(), columns.len());
        one_axis(g, ordered, batch.len(), rows.len())
    }
}

/// `count` axes from `first` on as one; none as an axis of extent 1.
fn one_axis(g: &mut Graph, x: Value, first: usize, count: usize) -> Value {
    match count {
        0 => g.insert_axes(x, &[first]),
        1 => x,
        _ => g.merge_axes(x, first, count),
    }
}

/// One axis as axes of these extents again, or dropped if there are none.
fn many_axes(g: &mut Graph, x: Value, axis: usize, extents: &[usize]) -> Value {
    match extents {
        [] => g.drop_axes(x, &[axis]),
        [_] => x,
        // The first one is what remains, so that other input dimensions fit too.
        [_, rest @ ..] => g.split_axis(x, axis, &[&[0], rest].concat()),
    }
}

/// The product of two operands summed over what the result has not.
fn product(g: &mut Graph, [a, b]: [Labelled; 2], result: &[char]) -> Value {
    let shared: Vec<char> = a.labels.iter().copied().filter(|c| b.labels.contains(c)).collect();
    let (batch, inner): (Vec<char>, Vec<char>) = shared.iter().partition(|c| result.contains(c));
    let own =
        |o: &Labelled| -> Vec<char> { o.labels.iter().copied().filter(|c| !shared.contains(c)).collect() };
    let (rows, columns) = (own(&a), own(&b));
    let extents = |g: &Graph, o: &Labelled, labels: &[char]| -> Vec<usize> {
        let dims = g.dims(o.value);
        labels.iter().filter_map(|c| o.labels.iter().position(|l| l == c)).map(|i| dims[i]).collect()
    };
    let (row_extents, column_extents) = (extents(g, &a, &rows), extents(g, &b, &columns));
    let left = a.matrix(g, [&batch, &rows, &inner]);
    let right = b.matrix(g, [&batch, &columns, &inner]);
    let y = g.matmul_with(left, right, [false, true]);
    let y = many_axes(g, y, batch.len() + 1, &column_extents);
    let y = many_axes(g, y, batch.len(), &row_extents);
    Labelled { value: y, labels: [batch, rows, columns].concat() }.ordered(g, result)
}

impl Graph {
    /// The sum of products an equation such as `"bhqd,bhkd->bhqk"` describes, over one or two `f32` operands: every
    /// subscript names an axis, those that the result has not are summed over. Each operand has a subscript once.
    #[track_caller]
    pub fn einsum(&mut self, equation: &str, operands: &[Value]) -> Value {
        let known: Option<Vec<Vec<usize>>> =
            operands.iter().map(|v| self.ty(*v).map(|t| t.dims.clone())).collect();
        let Some(dims) = known else {
            return match operands.iter().find(|v| v.is_poison()) {
                Some(poison) => self.neg(*poison),
                None => self.fail("einsum", &[], "an operand is a value of another graph".into()),
            };
        };
        let parsed = Equation::parse(equation, operands.len()).and_then(|e| e.check(&dims).map(|()| e));
        let Equation { operands: labels, result } = match parsed {
            Ok(equation) => equation,
            Err(e) => return self.fail("einsum", operands, e),
        };
        let elsewhere = |c: char, k: usize| labels.iter().enumerate().any(|(i, o)| i != k && o.contains(&c));
        let mut reduced: Vec<Labelled> = Vec::new();
        for (k, (&value, own)) in operands.iter().zip(&labels).enumerate() {
            let operand = Labelled { value, labels: own.clone() };
            reduced.push(operand.summed(self, |c| result.contains(&c) || elsewhere(c, k)));
        }
        match <[Labelled; 2]>::try_from(reduced) {
            Ok(pair) => product(self, pair, &result),
            Err(mut one) => match one.pop() {
                Some(x) => x.ordered(self, &result),
                None => Value::POISON,
            },
        }
    }
}
