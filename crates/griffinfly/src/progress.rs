//! Progress of a training, on standard error and only where that is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar with the step, the loss and the time left. Draws nothing where standard error is no terminal.
#[derive(Debug)]
pub struct Progress(ProgressBar);

impl Progress {
    /// A bar over this many steps.
    #[must_use]
    pub fn new(steps: u64) -> Progress {
        // The bar hides itself where its target is no terminal.
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::stderr());
        let template = "{bar:40} {pos}/{len} steps, loss {msg}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Progress(bar)
    }

    /// Shows one more step.
    pub fn step(&self, loss: f32) {
        if !self.0.is_hidden() {
            self.0.set_message(format!("{loss:.4}"));
        }
        self.0.inc(1);
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}
