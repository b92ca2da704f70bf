//! Tensors over the limits of a target are refused with the numbers, before anything is planned.

use griffinfly_compile::{CompileError, Options, compile};
use griffinfly_ir::graph::{Graph, Init};
use griffinfly_ir::target::Target;

#[test]
fn a_tensor_over_the_binding_range() {
    let target = Target::minimal_vulkan();
    let just = (target.chunk_bytes() / 4) as usize;
    let doubled = |n: usize| {
        let mut g = Graph::new();
        let x = g.input("x", [n]);
        let y = g.add(x, x);
        g.output("y", y);
        compile(&g, &target, &Options::default())
    };
    assert!(doubled(just).is_ok());
    let error = doubled(just + 1).unwrap_err();
    let CompileError::TensorTooLarge { bytes, limit, ref device, .. } = error else { panic!("{error}") };
    assert_eq!((bytes, limit, device), (4 * (just as u64 + 1), target.chunk_bytes(), &target.name));
    assert!(error.to_string().contains("134217732 bytes") && error.to_string().contains("134217728 bytes"));
}

#[test]
fn a_parameter_over_the_binding_range() {
    let target = Target::minimal_vulkan();
    let mut g = Graph::new();
    let w = g.parameter("w", [target.chunk_bytes() as usize / 4 + 1], Init::ZEROS);
    let y = g.sum(w, &[0]);
    g.output("y", y);
    let error = compile(&g, &target, &Options::default()).unwrap_err();
    let is_limit = matches!(error, CompileError::Parameter(_) | CompileError::TensorTooLarge { .. });
    assert!(is_limit, "{error}");
    assert!(error.to_string().contains('w') && error.to_string().contains("134217732"), "{error}");
}
