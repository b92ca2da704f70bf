//! A small interpreter of naga modules, for tests: it runs the text of our functions with IEEE f32 arithmetic.
//!
//! It knows pure expressions, calls, branches, switches and returns, which is all the texts may use; anything else
//! panics with its name.

use std::collections::HashMap;

use naga::{
    BinaryOperator, Block, Expression, Function, Handle, Literal, MathFunction, Module, ScalarKind,
    Statement, SwitchValue, UnaryOperator,
};

pub(super) struct Interpreter {
    module: Module,
    contract: bool,
}

/// A value: its lanes as bits; kinds come from the operations, as `f` (float), `i`, `u` and `b`.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    F(f32),
    I(i32),
    U(u32),
    B(bool),
    Vector(Vec<Value>),
}

struct Frame<'a> {
    interpreter: &'a Interpreter,
    function: &'a Function,
    arguments: Vec<Value>,
    known: HashMap<Handle<Expression>, Value>,
}

impl Interpreter {
    pub(super) fn new(wgsl: &str) -> Self {
        Self { module: naga::front::wgsl::parse_str(wgsl).unwrap(), contract: false }
    }

    /// An interpreter that evaluates `a * b + c` with one rounding, as drivers may.
    pub(super) fn contracting(wgsl: &str) -> Self {
        Self { contract: true, ..Self::new(wgsl) }
    }

    pub(super) fn call(&self, name: &str, arguments: &[f32]) -> f32 {
        let function = self.module.functions.iter().find(|(_, f)| f.name.as_deref() == Some(name)).unwrap().1;
        match self.run(function, arguments.iter().map(|x| Value::F(*x)).collect()) {
            Value::F(value) => value,
            other => panic!("{name} returned {other:?}"),
        }
    }

    fn run(&self, function: &Function, arguments: Vec<Value>) -> Value {
        let mut frame = Frame { interpreter: self, function, arguments, known: HashMap::new() };
        frame.block(&function.body).unwrap()
    }
}

impl Frame<'_> {
    fn block(&mut self, block: &Block) -> Option<Value> {
        block.iter().find_map(|statement| self.statement(statement))
    }

    fn statement(&mut self, statement: &Statement) -> Option<Value> {
        match statement {
            Statement::Emit(_) => None,
            Statement::Block(block) => self.block(block),
            Statement::Call { function, arguments, result } => {
                let arguments = arguments.iter().map(|a| self.value(*a)).collect();
                let interpreter = self.interpreter;
                let value = interpreter.run(&interpreter.module.functions[*function], arguments);
                self.known.insert(result.unwrap(), value);
                None
            }
            Statement::Switch { selector, cases } => {
                let selector = self.value(*selector);
                let hit = |value| match value {
                    SwitchValue::U32(value) => selector == Value::U(value),
                    SwitchValue::I32(value) => selector == Value::I(value),
                    SwitchValue::Default => true,
                };
                let case = cases.iter().find(|case| hit(case.value)).unwrap();
                self.block(&case.body)
            }
            Statement::Return { value } => Some(self.value(value.unwrap())),
            other => panic!("statement {other:?}"),
        }
    }

    fn value(&mut self, handle: Handle<Expression>) -> Value {
        if let Some(value) = self.known.get(&handle) {
            return value.clone();
        }
        let value = self.compute(&self.function.expressions[handle]);
        self.known.insert(handle, value.clone());
        value
    }

    fn compute(&mut self, expression: &Expression) -> Value {
        match *expression {
            Expression::Literal(literal) => match literal {
                Literal::F32(value) => Value::F(value),
                Literal::I32(value) => Value::I(value),
                Literal::U32(value) => Value::U(value),
                Literal::Bool(value) => Value::B(value),
                other => panic!("literal {other:?}"),
            },
            Expression::FunctionArgument(index) => self.arguments[index as usize].clone(),
            Expression::Compose { ref components, .. } => {
                Value::Vector(components.iter().map(|c| self.value(*c)).collect())
            }
            Expression::Splat { size, value } => Value::Vector(vec![self.value(value); size as usize]),
            Expression::AccessIndex { base, index } => match self.value(base) {
                Value::Vector(lanes) => lanes[index as usize].clone(),
                other => panic!("lane of {other:?}"),
            },
            Expression::Unary { op, expr } => unary(op, self.value(expr)),
            Expression::Binary { op, left, right } => self
                .contracted(op, left, right)
                .unwrap_or_else(|| binary(op, self.value(left), self.value(right))),
            Expression::Select { condition, accept, reject } => {
                select(self.value(condition), self.value(accept), self.value(reject))
            }
            Expression::As { expr, kind, convert } => convert_to(kind, convert.is_some(), &self.value(expr)),
            Expression::Math { fun, arg, arg1, .. } => {
                let second = arg1.map(|arg| self.value(arg));
                math(fun, self.value(arg), second)
            }
            ref other => panic!("expression {other:?}"),
        }
    }
}

impl Frame<'_> {
    /// A float sum with a product in it, rounded once, when asked for.
    fn contracted(
        &mut self,
        op: BinaryOperator,
        left: Handle<Expression>,
        right: Handle<Expression>,
    ) -> Option<Value> {
        let (negate, sum) = (op == BinaryOperator::Subtract, op == BinaryOperator::Add);
        if !self.interpreter.contract || !(negate || sum) {
            return None;
        }
        let mut factors = |handle| match self.function.expressions[handle] {
            Expression::Binary { op: BinaryOperator::Multiply, left, right } => {
                match (self.value(left), self.value(right)) {
                    (Value::F(a), Value::F(b)) => Some((a, b)),
                    _ => None,
                }
            }
            _ => None,
        };
        if let Some((a, b)) = factors(left) {
            let Value::F(c) = self.value(right) else { return None };
            return Some(Value::F(a.mul_add(b, if negate { -c } else { c })));
        }
        let (a, b) = factors(right)?;
        let Value::F(c) = self.value(left) else { return None };
        Some(Value::F((if negate { -a } else { a }).mul_add(b, c)))
    }
}

fn select(condition: Value, accept: Value, reject: Value) -> Value {
    match (condition, accept, reject) {
        (Value::B(truth), accept, reject) => {
            if truth {
                accept
            } else {
                reject
            }
        }
        (Value::Vector(c), Value::Vector(a), Value::Vector(r)) => {
            Value::Vector(c.into_iter().zip(a).zip(r).map(|((c, a), r)| select(c, a, r)).collect())
        }
        other => panic!("select {other:?}"),
    }
}

fn unary(op: UnaryOperator, value: Value) -> Value {
    match (op, value) {
        (UnaryOperator::Negate, Value::F(x)) => Value::F(-x),
        (UnaryOperator::LogicalNot, Value::B(x)) => Value::B(!x),
        (UnaryOperator::BitwiseNot, Value::U(x)) => Value::U(!x),
        other => panic!("unary {other:?}"),
    }
}

fn math(fun: MathFunction, first: Value, second: Option<Value>) -> Value {
    match (fun, first, second) {
        (MathFunction::Min, Value::F(a), Some(Value::F(b))) => Value::F(a.min(b)),
        (MathFunction::Max, Value::F(a), Some(Value::F(b))) => Value::F(a.max(b)),
        (MathFunction::Max, Value::U(a), Some(Value::U(b))) => Value::U(a.max(b)),
        (MathFunction::Abs, Value::F(a), None) => Value::F(a.abs()),
        (MathFunction::Floor, Value::F(a), None) => Value::F(a.floor()),
        (MathFunction::Sqrt, Value::F(a), None) => Value::F(a.sqrt()),
        (MathFunction::InverseSqrt, Value::F(a), None) => Value::F(1.0 / a.sqrt()),
        other => panic!("math {other:?}"),
    }
}

fn convert_to(kind: ScalarKind, convert: bool, value: &Value) -> Value {
    match (kind, convert, value) {
        (ScalarKind::Float, true, Value::I(x)) => Value::F(*x as f32),
        (ScalarKind::Float, true, Value::U(x)) => Value::F(*x as f32),
        (ScalarKind::Sint, true, Value::F(x)) => Value::I(*x as i32),
        (ScalarKind::Sint, true, Value::U(x)) => Value::I(x.cast_signed()),
        (ScalarKind::Uint, true, Value::F(x)) => Value::U(*x as u32),
        (ScalarKind::Float, false, Value::U(x)) => Value::F(f32::from_bits(*x)),
        (ScalarKind::Float, false, Value::I(x)) => Value::F(f32::from_bits(x.cast_unsigned())),
        (ScalarKind::Uint, false, Value::F(x)) => Value::U(x.to_bits()),
        other => panic!("conversion {other:?}"),
    }
}

fn binary(op: BinaryOperator, left: Value, right: Value) -> Value {
    match (left, right) {
        (Value::F(a), Value::F(b)) => floats(op, a, b),
        (Value::I(a), Value::I(b)) => match op {
            BinaryOperator::Add => Value::I(a.wrapping_add(b)),
            BinaryOperator::Subtract => Value::I(a.wrapping_sub(b)),
            BinaryOperator::And => Value::I(a & b),
            BinaryOperator::Equal => Value::B(a == b),
            _ => panic!("{op:?} of i32"),
        },
        (Value::I(a), Value::U(b)) => match op {
            BinaryOperator::ShiftLeft => Value::I(a << b),
            BinaryOperator::ShiftRight => Value::I(a >> b),
            _ => panic!("{op:?} of i32 and u32"),
        },
        (Value::U(a), Value::U(b)) => integers(op, a, b),
        (Value::B(a), Value::B(b)) => match op {
            BinaryOperator::And | BinaryOperator::LogicalAnd => Value::B(a & b),
            BinaryOperator::InclusiveOr | BinaryOperator::LogicalOr => Value::B(a | b),
            _ => panic!("{op:?} of bool"),
        },
        other => panic!("{op:?} of {other:?}"),
    }
}

fn floats(op: BinaryOperator, a: f32, b: f32) -> Value {
    match op {
        BinaryOperator::Add => Value::F(a + b),
        BinaryOperator::Subtract => Value::F(a - b),
        BinaryOperator::Multiply => Value::F(a * b),
        BinaryOperator::Divide => Value::F(a / b),
        BinaryOperator::Less => Value::B(a < b),
        BinaryOperator::Greater => Value::B(a > b),
        BinaryOperator::Equal => Value::B(a == b),
        _ => panic!("{op:?} of f32"),
    }
}

fn integers(op: BinaryOperator, a: u32, b: u32) -> Value {
    match op {
        BinaryOperator::Add => Value::U(a.wrapping_add(b)),
        BinaryOperator::Subtract => Value::U(a.wrapping_sub(b)),
        BinaryOperator::Multiply => Value::U(a.wrapping_mul(b)),
        BinaryOperator::And => Value::U(a & b),
        BinaryOperator::InclusiveOr => Value::U(a | b),
        BinaryOperator::ExclusiveOr => Value::U(a ^ b),
        BinaryOperator::ShiftLeft => Value::U(a << b),
        BinaryOperator::ShiftRight => Value::U(a >> b),
        BinaryOperator::Less => Value::B(a < b),
        BinaryOperator::Greater => Value::B(a > b),
        BinaryOperator::GreaterEqual => Value::B(a >= b),
        BinaryOperator::Equal => Value::B(a == b),
        _ => panic!("{op:?} of u32"),
    }
}
