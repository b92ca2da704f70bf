//! Convolutions with dilation and groups against the same written with plain ones: a dilated kernel is a kernel with zeros
//! between its taps, groups are convolutions side by side. And transposed and one-dimensional forms.

use crate::convolution_grid::{Cell, grid};
use crate::support::{Feeds, assert_close, by_lowering, by_reference, feeds, weighted};
use griffinfly_ir::array::Array;
use griffinfly_ir::autodiff::gradients;
use griffinfly_ir::graph::{Graph, Value};
use griffinfly_ir::loops::Loop;
use griffinfly_ir::ops::{Lowering, Sample, SampleInput, Window2d, samples};

fn filled(g: &Graph) -> Feeds {
    let leaf = |(k, name): (usize, &str)| {
        let sample = SampleInput::f32(g.dims(g.leaf(name)?));
        Some((name.to_string(), Array { data: sample.values(k as u64 + 3), ty: sample.ty }))
    };
    ["x", "w", "c"].into_iter().enumerate().filter_map(leaf).collect()
}

/// Checks two graphs over x and w to have equal results and gradients, the first by lowering too.
fn same(mut first: Graph, mut second: Graph, [a, b]: [Value; 2], what: &str) {
    let mut found = Vec::new();
    for (g, y) in [(&mut first, a), (&mut second, b)] {
        g.finish().unwrap_or_else(|e| panic!("{what}: {e}"));
        let loss = weighted(g, y);
        let wanted = ["x", "w"].map(|n| g.leaf(n).unwrap());
        let d = gradients(g, loss, &wanted).unwrap();
        for (name, v) in [("y", y), ("dx", d[0]), ("dw", d[1])] {
            g.output(name, v);
        }
        let f = filled(g);
        found.push(by_reference(g, &f));
        found.push(by_lowering(g, &f));
    }
    for ((exact, lowered), expected) in found[0].iter().zip(&found[1]).zip(&found[2]) {
        assert_close(exact, expected, 1e-9);
        assert_close(lowered, expected, 2e-5);
    }
}

/// A grouped, dilated convolution out of plain ones.
fn composed(g: &mut Graph, [x, w]: [Value; 2], window: Window2d, groups: usize) -> Value {
    let [dh, dw] = window.dilation;
    let spread = g.pad_spread(w, 2, [0, 0, dh - 1], 0.0);
    let spread = g.pad_spread(spread, 3, [0, 0, dw - 1], 0.0);
    let plain = Window2d { dilation: [1, 1], ..window };
    let (c, o) = (g.dims(x)[1] / groups, g.dims(w)[0] / groups);
    let part = |g: &mut Graph, v: Value, axis, n: usize, i: usize| {
        g.slice(v, axis, (i * n) as isize, Some(((i + 1) * n) as isize))
    };
    let parts: Vec<Value> = (0..groups)
        .map(|i| {
            let (x, w) = (part(g, x, 1, c, i), part(g, spread, 0, o, i));
            g.conv2d(x, w, plain)
        })
        .collect();
    g.concat(&parts, 1)
}

#[test]
fn dilation_and_groups_equal_their_compositions() {
    let mut tried = 0;
    // A sampled grid: every 7th combination, so that each value of each attribute meets each value of the others.
    let choices = [2, 3, 3, 3, 2, 2, 4];
    for n in (0..choices.iter().product::<usize>()).step_by(7) {
        let mut rest = n;
        let pick = choices.map(|c| {
            let picked = rest % c;
            rest /= c;
            picked
        });
        let [kernel, stride, dilation, before, after, square, group] = pick;
        let (groups, c, o) = [(1, 3, 2), (2, 4, 6), (3, 3, 3), (4, 4, 8)][group];
        let other = if square == 1 { [stride + 1, dilation + 1, kernel + 2] } else { [1, 2, 1] };
        let window = Window2d {
            stride: [stride + 1, other[0]],
            padding: [[before, after], [after, before]],
            dilation: [dilation + 1, other[1]],
            ceil: false,
        };
        let size = [4 + n % 5, 5 + n % 3];
        let kernel = [kernel + 2, other[2]];
        let reach = [0, 1].map(|i| window.dilation[i] * (kernel[i] - 1) + 1);
        if (0..2).any(|i| reach[i] > size[i] + before + after) {
            continue;
        }
        let leaves = |g: &mut Graph| {
            [g.input("x", [2, c, size[0], size[1]]), g.input("w", [o, c / groups, kernel[0], kernel[1]])]
        };
        let (mut first, mut second) = (Graph::new(), Graph::new());
        let [x, w] = leaves(&mut first);
        let a = first.conv2d_grouped(x, w, window, groups);
        let v = leaves(&mut second);
        let b = composed(&mut second, v, window, groups);
        same(first, second, [a, b], &format!("{window:?} {groups} {size:?} {kernel:?}"));
        tried += 1;
    }
    assert!(tried > 80, "{tried}");
}

/// Results and both gradients, by the references and by the loops, over the grid.
#[test]
fn convolutions_equal_the_sums_of_their_products() {
    let cells = grid();
    for cell in &cells {
        let mut g = Graph::new();
        let [x, w, c] = [("x", 0), ("w", 1), ("c", 2)].map(|(n, i)| g.input(n, cell.dims()[i].clone()));
        let y = cell.build(&mut g, [x, w]);
        assert_eq!(g.dims(y), cell.dims()[2], "{cell:?}");
        let product = g.mul(c, y);
        let sum = crate::support::sum_all(&mut g, product);
        let loss = g.scale(sum, -2.5);
        let d = gradients(&mut g, loss, &[x, w]).unwrap_or_else(|e| panic!("{cell:?}: {e}"));
        [("y", y), ("dx", d[0]), ("dw", d[1])].into_iter().for_each(|(name, v)| g.output(name, v));
        let f = filled(&g);
        let dy: Vec<f64> = f["c"].data.iter().map(|x| -2.5 * x).collect();
        let expected = cell.by_hand(&f["x"].data, &f["w"].data, &dy);
        for ((exact, lowered), expected) in by_reference(&g, &f).iter().zip(by_lowering(&g, &f)).zip(expected)
        {
            assert_close(exact, &expected, 1e-10);
            assert_close(&lowered, &expected, 2e-5);
        }
    }
    let has = |what: fn(&Cell) -> bool| cells.iter().filter(|c| what(c)).count();
    for transposed in [false, true] {
        for line in [false, true] {
            assert!(cells.iter().filter(|c| (c.transposed, c.line) == (transposed, line)).count() > 5);
        }
    }
    assert!(has(|c| c.groups > 1) > 20 && has(|c| c.window.padding.iter().any(|p| p[0] != p[1])) > 20);
}

#[test]
fn transposed_convolution_scatters_its_kernel() {
    // Each element places its multiple of the kernel, at distances of the stride; padding cuts, output padding adds.
    let mut g = Graph::new();
    let (x, w) = (g.input("x", [1, 1, 3]), g.input("w", [1, 1, 2]));
    for (stride, padding, dilation, rest) in [(1, 0, 1, 0), (2, 0, 1, 1), (2, 1, 2, 0), (3, 0, 3, 2)] {
        let window = Window2d::strided(stride).padded(padding).dilated(dilation);
        let y = g.conv_transpose1d([x, w], window, rest, 1);
        g.output(&format!("{stride}{padding}{dilation}{rest}"), y);
    }
    let f = feeds(&g, &[("x", &[1.0, 2.0, 3.0]), ("w", &[10.0, 1.0])]);
    let expected = [
        vec![10., 21., 32., 3.],
        vec![10., 1., 20., 2., 30., 3., 0.],
        vec![0., 21., 0., 32., 0.],
        vec![10., 0., 0., 21., 0., 0., 32., 0., 0., 3., 0., 0.],
    ];
    assert_eq!(by_reference(&g, &f), expected);
    assert_eq!(by_lowering(&g, &f), expected);
}

#[test]
fn transposed_convolution_is_the_gradient_of_convolution() {
    for (groups, window, rest, size) in [
        (1, Window2d::strided(2).padded(1), [1, 0], [4, 3]),
        (2, Window2d::strided(3).dilated(2), [0, 2], [2, 3]),
        (4, Window2d { padding: [[1, 0], [2, 1]], ..Window2d::strided(2) }, [1, 1], [3, 5]),
    ] {
        let mut g = Graph::new();
        let (x, w) = (g.input("x", [2, 4, size[0], size[1]]), g.input("w", [4, 3, 3, 2]));
        let y = g.conv_transpose2d([x, w], window, rest, groups);
        let dims = g.dims(y).to_vec();
        assert_eq!(dims[..2], [2, 3 * groups]);
        let image = g.splat(0.5, dims);
        let back = g.conv2d_grouped(image, w, window, groups);
        assert_eq!(g.dims(back), g.dims(x));
        let product = g.mul(back, x);
        let loss = crate::support::sum_all(&mut g, product);
        let d = gradients(&mut g, loss, &[image]).unwrap()[0];
        g.output("y", y);
        g.output("d", d);
        let found = by_reference(&g, &filled(&g));
        assert_close(&found[0], &found[1], 1e-12);
    }
}

/// The loops of a graph that compute something.
fn loops(g: &Graph) -> Vec<Loop> {
    let lowered = |id| match g.lowering(id) {
        Lowering::Loop(l) if !l.bodies().iter().all(|(b, _)| b.is_move()) => Some(*l),
        _ => None,
    };
    g.ids().filter_map(lowered).collect()
}

#[test]
fn one_dimension_takes_the_loop_of_two_with_a_height_of_one() {
    let window = Window2d::strided(2).padded(1).dilated(2);
    let mut line = Graph::new();
    let (x, w) = (line.input("x", [2, 6, 9]), line.input("w", [4, 3, 3]));
    let a = line.conv1d(x, w, window, 2);
    let mut image = Graph::new();
    let (x, w) = (image.input("x", [2, 6, 1, 9]), image.input("w", [4, 3, 1, 3]));
    let flat = Window2d { stride: [1, 2], padding: [[0; 2], [1; 2]], dilation: [1, 2], ceil: false };
    let b = image.conv2d_grouped(x, w, flat, 2);
    assert_eq!(line.dims(a), [2, 4, 4]);
    assert_eq!(loops(&line), loops(&image));
    let c = line.max_pool1d(a, 3, Window2d::strided(1).padded(1));
    let d = line.avg_pool1d(a, 2, Window2d::strided(2), false);
    let t = line.conv_transpose1d([a, line.leaf("w").unwrap()], window, 1, 2);
    assert_eq!([c, d, t].map(|v| line.dims(v).to_vec()), [vec![2, 4, 4], vec![2, 4, 2], vec![2, 6, 10]]);
    line.finish().unwrap();
    assert_eq!(image.dims(b), [2, 4, 1, 4]);
}

#[test]
fn what_does_not_fit_is_refused_with_the_numbers() {
    let mut g = Graph::new();
    let (x, w) = (g.input("x", [2, 6, 8, 8]), g.input("w", [4, 3, 3, 3]));
    let (one, line) = (Window2d::strided(1), g.input("line", [2, 6, 8]));
    g.conv2d_grouped(x, w, one, 4);
    g.conv2d_grouped(x, w, one, 3);
    g.conv2d_grouped(x, w, one, 0);
    g.conv2d(x, w, one);
    g.conv2d_grouped(x, w, one.dilated(0), 2);
    g.conv2d_grouped(x, w, one.dilated(4), 2);
    g.conv2d_grouped(x, w, one.ceil(), 2);
    g.conv2d_grouped(x, w, Window2d { stride: [1 << 20, 1], dilation: [2, 1], ..one }, 2);
    g.conv_transpose2d([x, w], one, [0; 2], 1);
    g.conv1d(x, w, one, 1);
    g.conv1d(line, w, one, 1);
    let four = g.input("four", [1, 4, 8, 8]);
    g.conv_transpose2d([four, w], Window2d::strided(2), [0, 2], 1);
    g.conv_transpose2d([four, w], one.padded(6), [0; 2], 1);
    g.avg_pool2d(x, [2, 2], one.dilated(2), true);
    g.max_pool2d(x, [2, 2], one.padded(1).dilated(9));
    let all = g.finish().unwrap_err().0;
    let expected = [
        "6 input and 4 output channels do not split into 4 groups",
        "6 input and 4 output channels do not split into 3 groups",
        "into 0 groups",
        "the input has 6 channels, the weight takes 3",
        "dilation 0",
        "the kernel of 3 with dilation 4 is larger than the input of 8",
        "ceil mode",
        "is over",
        "6",
        "three dimensions",
        "three dimensions",
        "output padding 2 must be less than the stride of 2",
        "extent 0",
        "dilation is 2",
        "padding only",
    ];
    assert_eq!(all.len(), expected.len(), "{all:?}");
    for (e, expected) in all.iter().zip(expected) {
        assert!(e.reason.contains(expected), "{e} should say {expected}");
    }
}

/// Without dilation, groups and ceil mode nothing of them appears in the text form.
#[test]
fn attributes_that_are_not_used_are_not_written() {
    let plain = |s: &Sample| s.graph().to_string();
    let texts: Vec<String> = samples().iter().filter(|s| s.name().contains("2d")).map(plain).collect();
    let with = |word: &str| texts.iter().filter(|t| t.contains(word)).count();
    for word in ["\"dilation\"", "\"groups\"", "\"ceil\""] {
        assert!((1..texts.len() / 3).contains(&with(word)), "{word}: {} of {}", with(word), texts.len());
    }
    assert!(texts.iter().all(|t| !t.contains("\"groups\":1") && !t.contains("\"dilation\":[1,1]")));
}
