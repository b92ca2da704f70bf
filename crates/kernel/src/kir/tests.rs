//! Type rules, scopes, folding and uniformity of the builder.

use super::*;
use crate::KernelError;
use crate::functions::Function;
use griffinfly_ir::target::HalfFormat;

fn fault(b: Builder) -> String {
    match b.finish() {
        Err(KernelError::Build { message, location, .. }) => {
            assert!(location.contains("tests.rs"), "{location}");
            message
        }
        other => panic!("expected a build fault, got {other:?}"),
    }
}

fn ignore(_: Expr<'_>) {}

fn block<'b>(b: &'b Builder, array: Shared<'b>) -> MatrixBlock<'b> {
    MatrixBlock { array, index: b.constant(0_u32), stride: 8, order: Order::Rows }
}

#[test]
fn ill_typed_calls_are_reported_with_their_place() {
    type Case = (fn(&Builder), &'static str);
    let cases: [Case; 16] = [
        (|b| ignore(b.zero(Type::F32) + b.zero(Type::U32)), "Add(f32, u32)"),
        (|b| ignore(b.zero(Type::F32X2) + b.zero(Type::F32X4)), "Add(vec2<f32>, vec4<f32>)"),
        (|b| ignore(b.zero(Type::U32) + 1.5), "Add(u32, f32)"),
        (|b| ignore(-b.zero(Type::U32)), "Neg(u32)"),
        (|b| ignore(b.param("n") / 0), "Div by constant zero"),
        (|b| b.if_(b.zero(Type::F32), || {}), "condition of type f32"),
        (|b| b.read_write("y", Type::F32).store(0, b.zero(Type::U32)), "store of u32"),
        (|b| b.shared("s", Type::F32X4, 2).store_lane(0, 1, b.zero(Type::F32X4)), "to a lane of vec4<f32>"),
        (|b| b.shared("s", Type::F32, 2).store_lane(0, 0, 1.0_f32), "to a lane of f32"),
        (|b| b.shared_half("s", HalfFormat::F16, 2).store_lane(0, 0, 1.0_f32), "to a lane of vec4<f32>"),
        (
            |b| {
                b.left_matrix("a", block(b, b.shared("s", Type::F32X4, 64)));
            },
            "or of single f32",
        ),
        (
            |b| b.matrix_sum("s", Factors::F32).store(block(b, b.shared("y", Type::F32X4, 64))),
            "a sum of Some(F32) in an array of None vec4<f32>",
        ),
        (
            |b| {
                let left = b.left_matrix("a", block(b, b.shared("x", Type::F32, 64)));
                let right = b.right_matrix("b", block(b, b.shared("y", Type::F32, 64)));
                b.matrix_sum("s", Factors::Half(HalfFormat::F16)).add_product(left, right);
            },
            "product of Some(Left(F32)) and Some(Right(F32)) for a sum of Some(Half(F16))",
        ),
        (
            |b| {
                let other = b.matrix_sum("s", Factors::F32);
                b.matrix_sum("s", Factors::Half(HalfFormat::F16)).take(other);
            },
            "added to",
        ),
        (|b| b.var("v", 0.0).set(b.zero(Type::U32)), "u32 assigned to a variable of f32"),
        (|b| ignore(b.call(Function::Pow, &[b.zero(Type::F32)])), "gf_pow(f32)"),
    ];
    for (build, expected) in cases {
        let b = Builder::new("bad", [1, 1, 1]);
        build(&b);
        let message = fault(b);
        assert!(message.contains(expected), "{message} does not contain {expected}");
    }
}

#[test]
fn values_do_not_leave_their_block() {
    let b = Builder::new("leak", [1, 1, 1]);
    let x = b.read("x", Type::F32);
    let y = b.read_write("y", Type::F32);
    let mut leaked = None;
    b.if_(b.param("n").gt(0), || leaked = Some(x.load(0)));
    y.store(0, leaked.unwrap());
    assert!(fault(b).contains("outside its scope"));
}

#[test]
fn counters_and_variables_do_not_leave_their_block() {
    let b = Builder::new("leak", [1, 1, 1]);
    let mut leaked = None;
    b.for_("i", (0, 4), 1, |i| leaked = Some(i));
    let _ = leaked.unwrap() + 1;
    assert!(fault(b).contains("outside its scope"));

    let b = Builder::new("leak", [1, 1, 1]);
    let mut leaked = None;
    b.loop_(|| leaked = Some(b.var("v", 0.0)));
    leaked.unwrap().set(1.0);
    assert!(fault(b).contains("variable is used outside its scope"));
}

#[test]
fn index_arithmetic_folds() {
    let b = Builder::new("fold", [1, 1, 1]);
    let n = b.param("n");
    assert_eq!((n * 1 + 0).id(), n.id());
    assert_eq!((1 * n).id(), n.id());
    assert_eq!((n / 1 - 0).id(), n.id());
    assert_eq!((n * b.constant(0_u32)).literal(), Some(Literal::U32(0)));
    assert_eq!((n % b.constant(1_u32)).literal(), Some(Literal::U32(0)));
    assert_eq!((b.constant(7_u32) * 6).literal(), Some(Literal::U32(42)));
    assert_eq!(b.constant(7_u32).lt(6).literal(), Some(Literal::Bool(false)));
    let yes = b.constant(true);
    let condition = n.gt(3);
    assert_eq!((condition & yes).id(), condition.id());
    assert_eq!((condition | yes).literal(), Some(Literal::Bool(true)));
    let kernel = {
        let _ = n / 8;
        let _ = n % 8;
        b.finish().unwrap()
    };
    let last = &kernel.exprs[kernel.exprs.len() - 1].kind;
    assert!(matches!(last, ExprKind::Binary(BinaryOp::And, ..)), "{last:?}");
}

#[test]
fn constant_conditions_leave_no_branch() {
    let b = Builder::new("constant", [1, 1, 1]);
    let y = b.read_write("y", Type::F32);
    b.if_else(b.constant(true), || y.store(0, 1.0), || y.store(0, 2.0));
    b.if_(b.constant(false), || y.store(0, 3.0));
    let kernel = b.finish().unwrap();
    assert_eq!((kernel.blocks.len(), kernel.block(Kernel::BODY).statements.len()), (1, 1));
}

#[test]
fn uniformity_joins() {
    let b = Builder::new("uniform", [64, 1, 1]);
    let (x, y) = (b.read("x", Type::U32), b.read_write("y", Type::U32));
    let v = b.var("v", 0_u32);
    let values = [
        (b.param("n") + b.workgroup_id(Axis::X), Uniformity::Uniform),
        (x.load(3), Uniformity::Uniform),
        (x.load(b.local_index()), Uniformity::Varying),
        (y.load(3), Uniformity::Unknown),
        (v.get() + 1, Uniformity::Unknown),
        (b.global_id(Axis::Y) + v.get(), Uniformity::Varying),
    ];
    let ids: Vec<_> = values.iter().map(|(value, uniformity)| (value.id(), *uniformity)).collect();
    let kernel = b.finish().unwrap();
    for (id, uniformity) in ids {
        assert_eq!(kernel.expr(id).uniformity, uniformity);
    }
}

#[test]
fn lanes_of_constructed_vectors_are_their_parts() {
    let b = Builder::new("lanes", [1, 1, 1]);
    let (one, two) = (b.constant(1.0), b.constant(2.0));
    assert_eq!(b.vector(&[one, two]).lane(1).id(), two.id());
    assert_eq!(one.splat(Lanes::Four).lane(3).id(), one.id());
}

#[test]
fn the_size_accounting_counts_bytes() {
    let b = Builder::new("sizes", [8, 8, 2]);
    b.shared("a", Type::F32X4, 10);
    b.shared("b", Type::U32, 3);
    b.param("n");
    let kernel = b.finish().unwrap();
    assert_eq!((kernel.workgroup_bytes(), kernel.parameter_bytes(), kernel.invocations()), (172, 4, 128));
}

/// What a driver may take for its own minimum, which drops NaN.
#[test]
fn extrema_test_the_bits_of_the_operand_that_may_be_nan() {
    for lanes in [Type::F32, Type::F32X4] {
        let b = Builder::new("extrema", [1, 1, 1]);
        let (x, y) = (b.read("x", lanes), b.read_write("y", lanes));
        let constant = b.constant(6.0).splat(lanes.lanes);
        y.store(0, constant.min(x.load(0)));
        y.store(1, constant.max(x.load(1)));
        let kernel = b.finish().unwrap();
        let loaded = |id: &ExprId| matches!(kernel.exprs[id.index()].kind, ExprKind::LoadBinding(..));
        let tested = kernel.exprs.iter().filter(|e| matches!(&e.kind, ExprKind::Bitcast(of) if loaded(of)));
        assert_eq!(tested.count(), 2, "{kernel:?}");
    }
}
