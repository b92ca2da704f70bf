//! `griffinfly devices`: what this machine has.

use crate::{Failure, output};
use griffinfly::{Device, DeviceListing};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let listed = Device::list();
    if arguments.json {
        let text = serde_json::to_string(&serde_json::json!({ "devices": listed }))?;
        return Ok(output::print(&text)?);
    }
    let lines: Vec<String> = listed.iter().map(line).collect();
    Ok(output::print(&lines.join("\n"))?)
}

fn line(device: &DeviceListing) -> String {
    let mut line = format!("{:<7} {:<14} {} ({})", device.backend, device.kind, device.name, device.driver);
    if device.memory_bytes > 0 {
        let memory = device.memory_bytes as f64 / f64::from(1 << 30);
        line.push_str(&format!(", {memory:.1} GiB"));
    }
    if let Some(reason) = &device.unusable {
        line.push_str(&format!(" - unusable: {reason}"));
    }
    line
}
