//! What NVIDIA's driver says about clocks and memory, asked through its command; nothing elsewhere.

use crate::record::Clocks;
use griffinfly::Device;
use std::process::Command;

/// The numbers of a query, where the device is a hardware GPU and the command is there.
fn query<const N: usize>(device: &Device, fields: &str) -> Option<[f64; N]> {
    if !device.info().is_hardware_gpu {
        return None;
    }
    let output = Command::new("nvidia-smi")
        .args([&format!("--query-gpu={fields}"), "--format=csv,noheader,nounits", "-i", "0"])
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let numbers: Vec<f64> = text.split(',').filter_map(|part| part.trim().parse().ok()).collect();
    numbers.try_into().ok()
}

/// Clocks, temperature and power now.
pub(crate) fn clocks(device: &Device) -> Option<Clocks> {
    let [sm_mhz, memory_mhz, temperature_c, power_w] =
        query(device, "clocks.sm,clocks.mem,temperature.gpu,power.draw")?;
    Some(Clocks { sm_mhz, memory_mhz, temperature_c, power_w })
}

/// Bytes in use on the device.
pub(crate) fn memory_used(device: &Device) -> Option<u64> {
    query(device, "memory.used").map(|[mebibytes]| (mebibytes * f64::from(1 << 20)) as u64)
}
