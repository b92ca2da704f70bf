//! A step allocates nothing on the host, on whatever device the tests run on.
//!
//! Counted is the thread that submits and waits. A first step may allocate: lists grow to their size. The host device computes
//! in that thread, and its library of matrix products packs operands into memory of its own: there a graph without products
//! is counted.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use allocation_counter::measure;
use griffinfly::gpu::vulkan::{self, OpenOptions, Selector};
use griffinfly::{Device, Graph, GraphExt, InferenceGraph, Init, Input, Session, Weights, models};

fn device() -> Device {
    if std::env::var_os("GRIFFINFLY_TEST_DEVICE").is_none_or(|value| value != "vulkan") {
        return Device::host();
    }
    let options = OpenOptions { cache_dir: None, validation: false, ..OpenOptions::from_env() };
    Device::from_backend(vulkan::open_with(&Selector::Best, &options).unwrap())
}

/// `y = softmax(relu(x + b))` over images of four digits.
fn without_products() -> InferenceGraph {
    let mut g = Graph::new();
    let (x, b) = (g.input("image", [4, 64]), g.parameter("b", [64], Init::ONES));
    let sum = g.add(x, b);
    let positive = g.relu(sum);
    let y = g.softmax(positive, 1);
    g.inference([("y", y)]).unwrap()
}

/// A session that ran twice; on a Vulkan device that of the digits classifier.
fn session() -> Session {
    let device = device();
    let graph = match device.info().backend {
        "vulkan" => models::digits(4).inference().unwrap(),
        _ => without_products(),
    };
    let weights = Weights::init(&device, graph.graph(), 0).unwrap();
    let mut session = Session::with_weights(graph, &weights).unwrap();
    session.run(&[("image", Input::f32(&[0.5; 4 * 64]))]).unwrap();
    let step = session.submit_again().unwrap();
    session.wait(step).unwrap();
    session
}

#[test]
fn device_steps_allocate_nothing() {
    let mut session = session();
    let counted = measure(|| {
        for _ in 0..10 {
            let step = session.submit_again().unwrap();
            session.wait(step).unwrap();
        }
    });
    assert_eq!((counted.count_total, counted.bytes_total), (0, 0), "{counted:?}");
}

/// Otherwise the test above could not fail.
#[test]
fn device_outputs_are_counted() {
    let mut session = session();
    let counted = measure(|| drop(session.run(&[("image", Input::f32(&[0.5; 4 * 64]))]).unwrap()));
    assert!(counted.bytes_total >= 4 * 10 * 4, "the outputs at least: {counted:?}");
}
