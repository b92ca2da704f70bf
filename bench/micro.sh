#!/bin/sh
# Times single operations of the workloads in PyTorch and in our engine, one after the other on one machine. See README.md.
#   OUT       folder for the records (default target/bench)
#   BENCH     the griffinfly-bench binary (default target/release/griffinfly-bench)
#   PYTHON    a Python with torch 2.11 (default python3)
#   DEVICE    auto, vulkan, webgpu, host         TORCH   cuda or cpu
#   SHAPES    another file of shapes             SAMPLES submissions per operation
# Left in OUT: pytorch-micro.json, and micro.json for `report --micro`, with both sides' times.
set -eu
cd "$(dirname "$0")/.."
out=${OUT:-target/bench} bench=${BENCH:-target/release/griffinfly-bench} python=${PYTHON:-python3}
device=${DEVICE:-auto} torch=${TORCH:-cuda} shapes=${SHAPES:-bench/shapes.json} samples=${SAMPLES:-15}
revision=${REVISION:-$(git rev-parse HEAD 2>/dev/null || echo unknown)}
mkdir -p "$out"

"$python" bench/pytorch/micro.py --shapes "$shapes" --device "$torch" --samples "$samples" --revision "$revision" \
  --out "$out/pytorch-micro.json"
"$bench" micro --shapes "$shapes" --device "$device" --samples "$samples" --revision "$revision" \
  --reference "$out/pytorch-micro.json" --out "$out/micro.json"
