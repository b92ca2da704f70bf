//! One program of each architecture on the device under test, against PyTorch.

use super::tested;
use crate::architectures;

/// The gradients of its three kinds of attention take software drivers a minute to compile, so they are left to `--full`.
#[test]
fn whisper_agrees_with_pytorch() {
    let tested = tested();
    if std::env::var_os("GRIFFINFLY_TEST_FULL").is_some_and(|value| value == "1") {
        architectures::whisper_agrees(&tested.device);
    } else {
        architectures::whisper_decodes(&tested.device);
    }
}

#[test]
fn dinov3_agrees_with_pytorch() {
    architectures::dinov3_agrees(&tested().device);
}

#[test]
fn reconstruction_agrees_with_pytorch() {
    architectures::reconstruction_agrees(&tested().device);
}
