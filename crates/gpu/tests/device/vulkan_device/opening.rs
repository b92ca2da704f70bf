//! Adapters and selection.

use super::{enabled, options, with_device};
use crate::device_executing::adding;
use griffinfly_gpu::vulkan::{OpenOptions, Selector, enumerate, open, open_with};
use griffinfly_gpu::{Device, GpuError};
use griffinfly_ir::target::{Backend, TENSOR_ALIGNMENT};
use std::sync::Arc;

#[test]
fn lists_hardware_before_software() {
    if !enabled() {
        return;
    }
    let adapters = enumerate().unwrap();
    println!("{adapters:#?}");
    assert!(adapters.iter().any(|adapter| adapter.unusable.is_none()));
    assert!(adapters.is_sorted_by_key(|adapter| !adapter.kind.is_hardware()));
}

#[test]
fn selects_by_name_index_and_kind() {
    if !enabled() {
        return;
    }
    let adapters = enumerate().unwrap();
    let name = adapters[0].name.clone();
    let by_name = open(&Selector::NameContains(name.to_uppercase())).unwrap();
    assert_eq!(by_name.info().name, name);
    assert_eq!(open(&Selector::Index(0)).unwrap().info().name, name);
    let hardware = adapters.iter().any(|adapter| adapter.kind.is_hardware() && adapter.unusable.is_none());
    assert_eq!(open(&Selector::HardwareOnly).is_ok(), hardware);
    for missing in [Selector::Index(adapters.len()), Selector::NameContains("no such adapter".into())] {
        let error = open_with(&missing, &OpenOptions::default()).err().unwrap();
        assert!(matches!(&error, GpuError::NoDevice { reason, .. } if reason.contains(&name)), "{error}");
    }
}

#[test]
fn negotiates_a_target() {
    with_device(|device, _| {
        let target = device.target();
        println!("{target:#?}\n{:?}", device.info());
        assert_eq!(target.backend, Backend::Vulkan);
        assert_eq!(target.is_hardware, device.info().is_hardware_gpu);
        assert!(target.max_bindings >= 8 && target.max_binding_bytes >= 1 << 27);
        assert!(target.binding_alignment.is_power_of_two());
        assert!(u64::from(target.binding_alignment) <= TENSOR_ALIGNMENT);
        assert!(target.subgroup_size.is_power_of_two() && target.compute_units > 0);
    });
}

#[test]
fn the_same_adapter_gives_the_same_target() {
    if !enabled() {
        return;
    }
    let open = || open_with(&Selector::Best, &options()).unwrap();
    assert_eq!(open().target(), open().target());
}

#[test]
fn validation_is_on_when_asked_for() {
    let options = options();
    if !enabled() || !options.validation {
        return;
    }
    let device = open_with(&Selector::Best, &options).unwrap();
    let mut program = adding(device.target(), 4).program;
    // The kernel reads two words; nothing runs.
    program.kernels[0].parameter_words = 1;
    program.dispatches.clear();
    program.sections.clear();
    device.instantiate(Arc::new(program), &[]).unwrap();
    let messages = device.validation_messages();
    assert!(messages.iter().any(|message| message.contains("VUID")), "{messages:?}");
}
