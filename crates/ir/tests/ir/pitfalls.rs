//! Faults that released systems of this kind had, each as a test of the whole kind, and what operations promise where systems
//! differ. Files without a crate are beside this one; those of `suite` are in `griffinfly-gpu` and run on every device, those of
//! `main` in `griffinfly`.
//!
//! | fault | test |
//! |---|---|
//! | a loss or reduction ignores the gradient above it | `faults::losses_and_reductions_of_every_kind_honour_the_gradient_from_above` |
//! | a loss is one partial per row | [`a_scaled_loss_is_a_scalar_for_every_batch`] |
//! | the derivative of another formula | `faults::every_activation_has_the_derivative_of_its_own_formula`, [`gradients_belong_to_the_forward_pass`] |
//! | wide heads cut, mixed widths, causal rows cut | `suite::faults::device_attention_uses_every_head_dimension_beyond_sixty_four_and_every_row_beyond_sixteen` |
//! | weight gradients of norms: few rows, races, cost | `suite::faults::device_norm_weight_gradients_of_few_rows_and_many`, [`channel_norm_gradients_for_few_and_many_rows`], `faults::gradients_of_norms_cost_as_much_as_their_elements` |
//! | variance by cancellation | [`a_large_mean_does_not_swallow_the_variance`], `suite::semantics::device_variance_survives_a_large_mean` |
//! | convolution gradients off "same" padding, awkward widths | [`convolution_gradients_of_awkward_sizes`], `suite::faults::device_convolution_gradients_of_awkward_sizes` |
//! | partial tiles, short sums, batches, operands in each other's place | `suite::faults::device_products_of_batches_that_end_within_tiles` |
//! | overflow and underflow of half precision | `suite::faults::device_keeps_large_values_and_tiny_gradients` |
//! | gradients lost: splits, derived weights, second results | [`gradients_of_splits_join_again`], `faults::gradients_reach_parameters_behind_derived_weights`, `faults::gradients_enter_at_every_result_of_an_operation` |
//! | targets taken for a single 1 | `faults::soft_targets_need_not_sum_to_one` |
//! | outputs dropped or fused away | [`outputs_may_be_any_value`], `suite::faults::device_outputs_may_be_any_value` |
//! | bytes reused too early | `griffinfly-compile`, `memory::in_every_mode_every_dispatch_reads_what_was_written_for_it` |
//! | padding or old memory in norms, updates, checkpoints | `main::device::faults::memory_that_held_nan_changes_no_training_and_no_checkpoint`, `trainer::tests` of `griffinfly` |
//! | the host writes under steps in flight | `main::device::faults::weights_set_while_steps_are_in_flight_wait_for_them` |
//! | kernels kept under a name that says too little | `suite::faults::device_operations_that_differ_in_one_attribute_stay_apart` |
//! | what was prepared outlives the weights | `main::device::faults::what_was_prepared_from_weights_does_not_outlive_them` |
//! | checkpoints that lie, load in part or lack averages | `main::checkpoint`, `main::batch_norm::a_file_without_running_averages_is_refused` |
//! | ids out of range | [`ids_out_of_range_stay_in_bounds`], `main::inputs`, `main::device::ids` |
//! | more workgroups than a dimension has, sizes that fill no tile | `suite::sizes`, `families::rows::more_groups_than_one_dimension_has` |
//! | the reference is wrong | every operation has two witnesses (`suite`); `pytorch/test_models.py` of the bench |
//! | a transpose taken for a new name | `faults::transposes_of_four_axes_move_their_elements` |
//! | one rotation of positions for the other | `faults::the_two_rotations_differ_by_the_order_of_their_pairs` |
//! | repeated ids overwrite | [`repeated_ids_sum_their_gradients`], `suite::faults::device_sums_the_gradients_of_many_equal_ids` |
//!
//! | promise | test |
//! |---|---|
//! | ties go to the first | [`ties_are_not_shared`], `semantics::of_two_equal_operands_the_first_takes_the_gradient`, `semantics::max_pool_gradient_goes_to_the_first_of_equal_elements` and on the device |
//! | NaN, kinks, poles, powers of zero | `extremes`, `pointwise`, `suite::semantics::device_keeps_nan_kinks_and_poles` |
//! | masked rows are zeros | `extremes::a_fully_masked_row_gives_zeros_and_zero_gradients`, `suite::semantics::device_fully_masked_rows_give_zeros_and_zero_gradients` |
//! | logits of any size | `extremes`, `suite::semantics::device_losses_are_finite_for_large_logits_and_count_what_they_ignore` |
//! | a batch without targets has loss 0 and says so | `semantics::a_batch_without_targets_has_loss_zero_and_says_so`, `main::device::faults::a_batch_without_targets_trains_nothing_and_says_so` |
//! | integers wrap and divide downwards | `semantics::integer_arithmetic_wraps`, `pointwise::integers_divide_downwards`, `suite::semantics::device_integers_wrap_and_divide_downwards` |
//! | windows start inside, averages say what counts | `semantics::ceil_mode_never_starts_a_window_outside_the_padded_input`, `averages_say_whether_padding_counts` of the poolings |
//! | nothing is reduced over nothing; a clamp has its bounds in order | [`reductions_over_nothing_are_refused`], `pointwise::clamp_passes_nan_and_the_gradient_at_its_bounds` |
//! | all uses are summed, unused parameters get zeros and are named | `semantics::a_value_used_again_gets_the_sum_of_its_gradients`, `autodiff::an_unused_parameter_gets_exact_zeros_and_is_reported` |
//! | updates in place are not seen | `main::device::faults::updates_in_place_are_never_seen_by_other_readers` |

use crate::support::{
    assert_close, by_lowering, by_reference, check_gradients, feeds, gradients_of, weighted,
};
use griffinfly_ir::graph::{Graph, Value};
use griffinfly_ir::ops::{Interpolation, Window2d};

fn ramp(n: usize) -> Vec<f64> {
    (0..n).map(|i| f64::from(((i * 7919 % 101) as f32 - 50.0) / 40.0)).collect()
}

/// A loss kept as one partial per row breaks when it is scaled in the graph for batches above 1.
#[test]
fn a_scaled_loss_is_a_scalar_for_every_batch() {
    for batch in [1, 2, 5] {
        let mut g = Graph::new();
        let x = g.input("x", [batch, 3]);
        let ids = g.input_ids("ids", [batch]);
        let loss = g.cross_entropy(x, ids);
        assert_eq!(g.dims(loss), [0usize; 0]);
        let scaled = g.scale(loss, 8.0);
        let labels: Vec<f64> = (0..batch).map(|i| (i % 3) as f64).collect();
        let f = feeds(&g, &[("x", &ramp(batch * 3)), ("ids", &labels)]);
        check_gradients(&g, scaled, &["x"], &f, 15);
    }
}

/// Mean over all rows and positions, as for sequences.
#[test]
fn cross_entropy_averages_over_batch_and_positions() {
    let mut g = Graph::new();
    let x = g.input("x", [2, 3, 4]);
    let ids = g.input_ids("ids", [2, 3]);
    let loss = g.cross_entropy(x, ids);
    let f = feeds(&g, &[("x", &[0.0; 24]), ("ids", &[0.0, 1.0, 2.0, 3.0, 0.0, 1.0])]);
    assert_close(&crate::support::value(&g, &f, loss), &[4f64.ln()], 1e-12);
}

/// Weight gradients of norms were out of bounds for two or three rows.
#[test]
fn norm_gradients_for_few_and_many_rows() {
    for (rows, n) in [(1, 5), (2, 3), (3, 7), (17, 2)] {
        let mut g = Graph::new();
        let x = g.input("x", [rows, n]);
        let [gamma, beta] = ["gamma", "beta"].map(|name| g.input(name, [n]));
        let y = g.layer_norm(x, gamma, beta, 1e-3);
        let z = g.rms_norm(y, gamma, 1e-3);
        let loss = weighted(&mut g, z);
        let f = feeds(&g, &[("x", &ramp(rows * n)), ("gamma", &ramp(n)), ("beta", &[0.3; 7][..n])]);
        check_gradients(&g, loss, &["x", "gamma", "beta"], &f, 6);
    }
}

/// The same for norms over groups of channels and over the batch, in few rows and in many, where one had a race.
#[test]
fn channel_norm_gradients_for_few_and_many_rows() {
    for (dims, groups) in [([2, 2, 1], 2), ([1, 3, 2], 1), ([3, 4, 3], 2), ([17, 2, 1], 1), ([2, 6, 4], 6)] {
        let mut g = Graph::new();
        let x = g.input("x", dims);
        let [gamma, beta] = ["gamma", "beta"].map(|name| g.input(name, [dims[1]]));
        let y = g.group_norm(x, groups, [gamma, beta], 1e-2);
        let [z, mean, variance] = g.batch_norm(y, [gamma, beta], 1e-2);
        let loss = [z, mean, variance].map(|v| weighted(&mut g, v));
        let loss = loss.into_iter().reduce(|a, b| g.add(a, b)).expect("three");
        let n = dims[1];
        let f =
            feeds(&g, &[("x", &ramp(dims.iter().product())), ("gamma", &ramp(n)), ("beta", &[0.3; 6][..n])]);
        check_gradients(&g, loss, &["x", "gamma", "beta"], &f, 6);
    }
}

/// The gradient of maximum pooling was spread evenly, and the gradient of one form of GELU was that of another.
#[test]
fn gradients_belong_to_the_forward_pass() {
    let mut g = Graph::new();
    let x = g.input("x", [1, 1, 2, 4]);
    let y = g.max_pool2d(x, [2, 2], Window2d::strided(2));
    let z = g.global_max_pool2d(x);
    let all = g.concat(&[y, z], 3);
    let loss = crate::support::sum_all(&mut g, all);
    let values = [1.0, 5.0, 2.0, 2.0, 0.0, 3.0, 2.0, 1.0];
    let d = gradients_of(&g, loss, &["x"], &feeds(&g, &[("x", &values)]));
    assert_eq!(d[0], [0.0, 2.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    for gelu in [Graph::gelu, Graph::gelu_tanh] {
        let mut g = Graph::new();
        let x = g.input("x", [9]);
        let y = gelu(&mut g, x);
        let loss = weighted(&mut g, y);
        let points: Vec<f64> = (0..9).map(|i| f64::from(i) - 4.0).collect();
        check_gradients(&g, loss, &["x"], &feeds(&g, &[("x", &points)]), 9);
    }
}

/// Input gradients were right for "same" padding alone, division by reciprocals failed at widths like 41, depths that are
/// no multiple of 4 and batches whose rows do not fill a tile left elements out.
#[test]
fn convolution_gradients_of_awkward_sizes() {
    for (i, width) in [41, 47, 55].into_iter().enumerate() {
        for (stride, padding, channels) in [(1, 0, 3), (2, i, 5), (3, 2, 1)] {
            let mut g = Graph::new();
            let x = g.input("x", [3, channels, 2, width]);
            let w = g.input("w", [2, channels, 2, 3]);
            let window =
                Window2d { stride: [1, stride], padding: [[1, 0], [padding; 2]], ..Window2d::default() };
            let y = g.conv2d(x, w, window);
            let loss = weighted(&mut g, y);
            let f = feeds(&g, &[("x", &ramp(6 * channels * width)), ("w", &ramp(12 * channels))]);
            let d = griffinfly_ir::autodiff::gradients(&mut g, loss, &[x, w]).unwrap();
            for (name, v) in [("y", y), ("dx", d[0]), ("dw", d[1])] {
                g.output(name, v);
            }
            for (lowered, reference) in by_lowering(&g, &f).iter().zip(by_reference(&g, &f)) {
                assert_close(lowered, &reference, 1e-5);
            }
            // The sum of dx is that of the products of dy with all taps that see the input.
            let dx = &by_reference(&g, &f)[1];
            assert!(dx.iter().filter(|v| **v != 0.0).count() > dx.len() / 2, "{dx:?}");
        }
    }
}

/// Upsampling gradients that scatter add in any order, or lose the results at the edges.
#[test]
fn interpolation_passes_every_gradient_on() {
    for mode in [
        Interpolation::Nearest,
        Interpolation::Linear { align_corners: false },
        Interpolation::Linear { align_corners: true },
    ] {
        for (from, to) in [([2, 3], [4, 6]), ([5, 4], [3, 9]), ([1, 7], [6, 2])] {
            let mut g = Graph::new();
            let x = g.input("x", [1, 2, from[0], from[1]]);
            let y = g.resize2d(x, to, mode);
            let loss = crate::support::sum_all(&mut g, y);
            let f = feeds(&g, &[("x", &ramp(2 * from[0] * from[1]))]);
            let total: f64 = gradients_of(&g, loss, &["x"], &f)[0].iter().sum();
            assert!((total - (2 * to[0] * to[1]) as f64).abs() < 1e-9, "{mode:?} {from:?} {to:?}: {total}");
        }
    }
}

/// Variance as E[x^2] - E[x]^2 is 0 or negative for a row of 1e4 plus tiny differences.
#[test]
fn a_large_mean_does_not_swallow_the_variance() {
    let n = 64;
    let tiny: Vec<f64> = (0..n).map(|i| f64::from(1e4f32 + (i * 37 % n) as f32 / 256.0)).collect();
    let mut g = Graph::new();
    let x = g.input("x", [2, n]);
    let (gamma, beta) = (g.splat(1.0, [n]), g.splat(0.0, [n]));
    let y = g.layer_norm(x, gamma, beta, 1e-8);
    let constant = g.slice(x, 1, 0, Some(1));
    let constant = g.expand(constant, &[(1, n)]);
    let z = g.layer_norm(constant, gamma, beta, 1e-8);
    let image = g.split_axis(x, 1, &[4, 0]);
    let [gamma, beta] = [1.0, 0.0].map(|v| g.splat(v, [4]));
    let grouped = g.group_norm(image, 2, [gamma, beta], 1e-8);
    let [batched, mean, variance] = g.batch_norm(image, [gamma, beta], 1e-8);
    for (name, v) in [("y", y), ("z", z), ("g", grouped), ("b", batched), ("m", mean), ("v", variance)] {
        g.output(name, v);
    }
    let f = feeds(&g, &[("x", &[tiny.clone(), tiny].concat())]);
    let (exact, found) = (by_reference(&g, &f), by_lowering(&g, &f));
    for i in [0, 2, 3, 4] {
        assert_close(&found[i], &exact[i], 1e-4);
    }
    assert!(found[5].iter().zip(&exact[5]).all(|(f, e)| (f / e - 1.0).abs() < 1e-4), "{found:?}");
    let variance = found[0][..n].iter().map(|v| v * v).sum::<f64>() / n as f64;
    assert!((variance - 1.0).abs() < 1e-3, "{variance}");
    assert!(found[1].iter().all(|v| v.abs() < 1e-3), "{:?}", found[1]);
}

/// The gradient of a split (slices of one value) was zero in one system.
#[test]
fn gradients_of_splits_join_again() {
    let mut g = Graph::new();
    let x = g.input("x", [2, 6]);
    let parts = [(0, 2), (2, 3), (3, 6)].map(|(a, b)| g.slice(x, 1, a, Some(b)));
    let scaled: Vec<Value> = parts.iter().zip([2.0, 3.0, 5.0]).map(|(p, k)| g.scale(*p, k)).collect();
    let y = g.concat(&scaled, 1);
    let loss = crate::support::sum_all(&mut g, y);
    let d = gradients_of(&g, loss, &["x"], &feeds(&g, &[("x", &ramp(12))]));
    assert_eq!(d[0], [2.0, 2.0, 3.0, 5.0, 5.0, 5.0].repeat(2));
}

/// Embedding gradients that overwrite instead of add lose repeated ids.
#[test]
fn repeated_ids_sum_their_gradients() {
    let mut g = Graph::new();
    let table = g.input("table", [4, 2]);
    let ids = g.input_ids("ids", [2, 3]);
    let y = g.embedding(table, ids);
    let loss = crate::support::sum_all(&mut g, y);
    let d = griffinfly_ir::autodiff::gradients(&mut g, loss, &[table]).unwrap()[0];
    g.output("d", d);
    let f = feeds(&g, &[("table", &ramp(8)), ("ids", &[3.0, 1.0, 3.0, 3.0, 0.0, 1.0])]);
    let expected = [1.0, 1.0, 2.0, 2.0, 0.0, 0.0, 3.0, 3.0];
    assert_eq!(by_reference(&g, &f)[0], expected);
    assert_eq!(by_lowering(&g, &f)[0], expected);
}

/// Ids outside their range read inside the table, in references and lowerings alike.
#[test]
fn ids_out_of_range_stay_in_bounds() {
    let mut g = Graph::new();
    let table = g.input("table", [3, 2]);
    let ids = g.input_ids("ids", [4]);
    let y = g.embedding(table, ids);
    let loss = g.cross_entropy_rows(y, ids, None);
    let d = {
        let sum = weighted(&mut g, loss);
        griffinfly_ir::autodiff::gradients(&mut g, sum, &[table]).unwrap()[0]
    };
    for (name, v) in [("y", y), ("loss", loss), ("d", d)] {
        g.output(name, v);
    }
    let table: Vec<f64> = (0..6).map(f64::from).collect();
    let f = feeds(&g, &[("table", &table), ("ids", &[-7.0, 99.0, 1.0, f64::from(i32::MIN)])]);
    let (exact, found) = (by_reference(&g, &f), by_lowering(&g, &f));
    assert_eq!(exact[0], [0.0, 1.0, 4.0, 5.0, 2.0, 3.0, 0.0, 1.0]);
    for (e, f) in exact.iter().zip(&found) {
        assert_close(f, e, 1e-5);
    }
}

/// Ties go to the first winner, whole and alone; so does its gradient.
#[test]
fn ties_are_not_shared() {
    let mut g = Graph::new();
    let x = g.input("x", [2, 3]);
    let top = g.max(x, &[1]);
    let low = g.min(x, &[1]);
    let sum = g.add(top, low);
    let loss = crate::support::sum_all(&mut g, sum);
    let d = gradients_of(&g, loss, &["x"], &feeds(&g, &[("x", &[1.0, 1.0, 1.0, 0.0, 2.0, 2.0])]));
    assert_eq!(d[0], [2.0, 0.0, 0.0, 1.0, 1.0, 0.0]);
}

/// An output that is also an intermediate value, a leaf, or given twice under other names stays.
#[test]
fn outputs_may_be_any_value() {
    let mut g = Graph::new();
    let x = g.input("x", [2]);
    let y = g.relu(x);
    let z = g.neg(y);
    for (name, v) in [("z", z), ("y", y), ("x", x), ("again", y)] {
        g.output(name, v);
    }
    g.finish().unwrap();
    let found = by_lowering(&g, &feeds(&g, &[("x", &[-1.0, 2.0])]));
    assert_eq!(found, [vec![0.0, -2.0], vec![0.0, 2.0], vec![-1.0, 2.0], vec![0.0, 2.0]]);
}

/// Means and errors over nothing are refused when the graph is built, not divided by zero when it runs.
#[test]
fn reductions_over_nothing_are_refused() {
    let mut g = Graph::new();
    let x = g.input("x", [2, 3]);
    g.mean(x, &[]);
    g.max(x, &[2]);
    g.sum(x, &[0, 0]);
    g.input("empty", [2, 0]);
    assert_eq!(g.finish().unwrap_err().0.len(), 4);
}

/// Broadcasting inside a loss averages the wrong thing without a word.
#[test]
fn a_squared_error_of_other_shapes_is_refused() {
    let mut g = Graph::new();
    let (a, b) = (g.input("a", [4, 1]), g.input("b", [4]));
    g.mse(a, b);
    let e = g.finish().unwrap_err().0.remove(0);
    assert_eq!((e.op.as_str(), e.inputs.len()), ("mse", 2));
    assert!(e.reason.contains("f32[4,1]") && e.reason.contains("f32[4]"), "{e}");
}
