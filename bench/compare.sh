#!/bin/sh
# Writes the workloads, runs our engine and PyTorch on them and compares. See README.md.
#   OUT       folder for files, records and dumps (default target/bench)
#   BENCH     the griffinfly-bench binary (default target/release/griffinfly-bench)
#   PYTHON    a Python with torch 2.11, numpy and safetensors (default python3)
#   WORKLOAD  names with commas, or all          SIZE    full or small
#   DEVICE    auto, vulkan, webgpu, host         TORCH   cuda or cpu
#   MODES     eager,compile,graph                SAMPLES timed calls per cell
#   WEIGHTS   a SmolLM2-135M checkpoint instead of drawn weights
#   FAST      anything: fast programs and PyTorch with TF32 too
# Left in OUT: the records, strict.md, and results.json for `report`; with FAST also fast.md and fast.json, PyTorch with TF32
# beside our fast programs.
set -eu
cd "$(dirname "$0")/.."
out=${OUT:-target/bench} bench=${BENCH:-target/release/griffinfly-bench} python=${PYTHON:-python3}
workload=${WORKLOAD:-all} size=${SIZE:-full} device=${DEVICE:-auto} torch=${TORCH:-cuda} samples=${SAMPLES:-30}
modes=${MODES:-eager,compile,graph}
revision=${REVISION:-$(git rev-parse HEAD 2>/dev/null || echo unknown)}
mkdir -p "$out"

"$bench" write --workload "$workload" --size "$size" --out "$out/files"
if [ -n "${WEIGHTS:-}" ]; then
  "$bench" write --workload smollm2 --size "$size" --weights "$WEIGHTS" --out "$out/files"
fi
theirs() { # precision, modes, samples
  "$python" bench/pytorch/run.py --files "$out/files" --workload "$workload" --size "$size" --device "$torch" \
    --precision "$1" --modes "$2" --samples "$3" --revision "$revision" --out "$out/pytorch-$1.json" --dump "$out/dumps"
}
theirs f64 eager 0
ours() { # precision
  # The first preparation finds the driver's caches empty.
  __GL_SHADER_DISK_CACHE=0 MESA_SHADER_CACHE_DISABLE=true GRIFFINFLY_CACHE_DIR='' \
    "$bench" run --files "$out/files" --workload "$workload" --size "$size" --device "$device" --samples "$samples" \
    --precision "$1" --revision "$revision" --out "$out/griffinfly-$1.json" --dump "$out/dumps"
}
ours strict
theirs strict "$modes" "$samples"
"$bench" compare "$out/griffinfly-strict.json" "$out/pytorch-strict.json" --oracle "$out/pytorch-f64.json" \
  --out "$out/results.json" | tee "$out/strict.md"
if [ -n "${FAST:-}" ]; then
  ours fast
  theirs fast "$modes" "$samples"
  "$bench" compare "$out/griffinfly-fast.json" "$out/pytorch-fast.json" --oracle "$out/pytorch-f64.json" \
    --out "$out/fast.json" | tee "$out/fast.md"
fi
