//! What JavaScript sees: the tutor as a class, its results as plain objects, its failures as `Error`s.
//!
//! The name of an `Error` tells what to do: `DeviceLost` (open anew, load what was saved), `NoDevice` (open another), `Refused` (bad
//! input; everything is as it was), `Failed` (a device that refuses the program).

use crate::drawing::image_of;
use crate::tutor::{Loaded, STEPS, Tutor, TutorError};
use griffinfly::data::PIXELS;
use griffinfly::gpu::GpuError;
use griffinfly::{Device, Error};
use js_sys::{Float32Array, Object, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console, js_name = error)]
    fn console_error(text: &str);
}

/// A panic is a bug: the console tells where, and the page starts a new worker.
#[wasm_bindgen(start)]
pub(crate) fn start() {
    std::panic::set_hook(Box::new(|panic| console_error(&panic.to_string())));
}

/// The model in the tab.
#[wasm_bindgen]
pub struct Model(Tutor);

#[wasm_bindgen]
impl Model {
    /// Opens a device (`webgpu` or `host`) and makes an untrained model on it.
    ///
    /// # Errors
    /// `NoDevice`: no WebGPU, no adapter, one below the default limits.
    pub async fn open(backend: &str) -> Result<Model, JsValue> {
        let device = if backend == "host" { Ok(Device::host()) } else { Device::webgpu_async().await };
        let tutor = device.map_err(TutorError::from).and_then(|device| Tutor::new(&device));
        tutor.map(Model).map_err(thrown)
    }

    /// Backend, name and driver of the device, steps of the whole training.
    pub fn about(&self) -> Object {
        let info = self.0.device().info();
        object([
            ("backend", info.backend.into()),
            ("name", info.name.as_str().into()),
            ("driver", info.driver.as_str().into()),
            ("stepsInAll", number(STEPS)),
        ])
    }

    /// Steps made, examples of the visitor's, bytes of the device taken.
    pub fn state(&self) -> Object {
        object([
            ("steps", number(self.0.steps())),
            ("examples", number(self.0.examples().len() as u64)),
            ("memoryBytes", number(self.0.memory_bytes())),
        ])
    }

    /// So many steps of the training, at most to its end; their losses.
    ///
    /// # Errors
    /// `Refused`: the training is done. `DeviceLost`.
    pub async fn train(&mut self, steps: u32) -> Result<Float32Array, JsValue> {
        self.0.train(steps.into()).await.map(|losses| Float32Array::from(&losses[..])).map_err(thrown)
    }

    /// So many steps on the visitor's examples; their losses.
    ///
    /// # Errors
    /// `Refused`: there are none. `DeviceLost`.
    pub async fn practise(&mut self, steps: u32) -> Result<Float32Array, JsValue> {
        self.0.practise(steps.into()).await.map(|losses| Float32Array::from(&losses[..])).map_err(thrown)
    }

    /// The part of the test images that are classified correctly.
    ///
    /// # Errors
    /// `DeviceLost`.
    pub async fn accuracy(&mut self) -> Result<f32, JsValue> {
        self.0.accuracy().await.map_err(thrown)
    }

    /// The 8x8 pixels of a drawing, whose points have 0 (paper) to 1 (ink).
    ///
    /// # Errors
    /// `Refused`: nothing drawn, a dot, a field full of ink.
    pub fn image(ink: &[f32], width: usize, height: usize) -> Result<Float32Array, JsValue> {
        let image = image_of(ink, width, height).map_err(|error| refused(&error.to_string()))?;
        Ok(Float32Array::from(&image[..]))
    }

    /// What the model says to an image: ten probabilities, the digit, whether it looks like one.
    ///
    /// # Errors
    /// `Refused`: not 8x8 pixels. `DeviceLost`.
    pub async fn classify(&mut self, image: Vec<f32>) -> Result<Object, JsValue> {
        let answer = self.0.classify(&pixels(&image)?).await.map_err(thrown)?;
        Ok(object([
            ("probabilities", Float32Array::from(&answer.probabilities[..]).into()),
            ("digit", answer.digit.into()),
            ("isDigit", answer.is_digit.into()),
        ]))
    }

    /// Adds an example of the visitor's.
    ///
    /// # Errors
    /// `Refused`: not 8x8 pixels, no digit.
    #[wasm_bindgen(js_name = addExample)]
    pub fn add_example(&mut self, image: &[f32], digit: u8) -> Result<(), JsValue> {
        self.0.add_example(pixels(image)?, digit).map_err(thrown)
    }

    /// The training as a safetensors file.
    ///
    /// # Errors
    /// `DeviceLost`.
    pub async fn save(&mut self) -> Result<Uint8Array, JsValue> {
        self.0.save().await.map(|bytes| Uint8Array::from(&bytes[..])).map_err(thrown)
    }

    /// Goes on from a file: `training`, or `weights` alone.
    ///
    /// # Errors
    /// `Refused`: no safetensors file, one of another model, a damaged training. `DeviceLost`.
    pub fn load(&mut self, bytes: &[u8], name: &str) -> Result<String, JsValue> {
        let loaded = self.0.load(bytes, name).map_err(thrown)?;
        Ok(if loaded == Loaded::Training { "training" } else { "weights" }.into())
    }
}

fn pixels(image: &[f32]) -> Result<[f32; PIXELS], JsValue> {
    image.try_into().map_err(|_| refused(&format!("{} pixels are not the {PIXELS} of an image", image.len())))
}

/// Numbers of JavaScript are exact up to 2^53.
fn number(number: u64) -> JsValue {
    (number as f64).into()
}

fn object<const N: usize>(fields: [(&str, JsValue); N]) -> Object {
    let object = Object::new();
    for (name, value) in fields {
        // Setting a field of a new object does not fail.
        let _ = Reflect::set(&object, &name.into(), &value);
    }
    object
}

fn thrown(error: TutorError) -> JsValue {
    let name = match &error {
        _ if error.is_device_lost() => "DeviceLost",
        TutorError::Library(Error::Gpu(GpuError::NoDevice { .. })) => "NoDevice",
        TutorError::Library(Error::Gpu(_) | Error::Compile(_)) => "Failed",
        _ => "Refused",
    };
    named(name, &error.to_string())
}

fn refused(message: &str) -> JsValue {
    named("Refused", message)
}

fn named(name: &str, message: &str) -> JsValue {
    let error = js_sys::Error::new(message);
    error.set_name(name);
    error.into()
}
