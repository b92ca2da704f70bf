"""Times and dumps the five workloads in PyTorch, from the files that `griffinfly-bench write` made.

    python3 run.py --files DIR --precision strict --modes eager,compile,graph --out strict.json --dump dumps
    python3 run.py --files DIR --precision f64 --samples 0 --out oracle.json --dump dumps     (the oracle of the gates)

Protocol: per cell at least 5 calls and 2 seconds of warm-up, then 30 calls; a sample is the wall time from just before the
launch to an idle device; inputs are resident and results stay on the device. `train` is forward, loss and the gradients of
all trainable parameters, without an optimizer. The result is the JSON that `griffinfly-bench compare` reads (see
`bench/src/record.rs`); dumps hold `output`, or `loss` and `grad.NAME`, as safetensors.
"""

import argparse
import contextlib
import gc
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

PHASES = ("inference", "latency", "train")
WARM_UP_CALLS, WARM_UP_SECONDS = 5, 2.0


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--files", required=True, type=Path, help="folder of WORKLOAD.SIZE.safetensors")
    p.add_argument("--workload", default="all", help="names with commas, or all")
    p.add_argument("--phase", default="all", help="inference, latency, train with commas, or all")
    p.add_argument("--size", default="full", choices=("full", "small"))
    p.add_argument("--precision", default="strict", choices=("strict", "fast", "f64"))
    p.add_argument("--modes", default="eager", help="eager, compile, graph with commas; graph replays what compile made")
    p.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    p.add_argument("--samples", default=30, type=int, help="timed calls per cell; 0 only computes")
    p.add_argument("--revision", help="revision of the repository; asked of git where it is not given")
    p.add_argument("--out", required=True, type=Path)
    p.add_argument("--dump", type=Path, help="folder for results as safetensors")
    p.add_argument("--dump-f32", action="store_true", help="round dumps to f32 (for the fixtures)")
    a = p.parse_args()
    a.workload, a.phase, a.modes = a.workload.split(","), a.phase.split(","), a.modes.split(",")
    if a.precision == "f64" and a.modes != ["eager"]:
        p.error("the f64 oracle runs in eager mode only")
    if a.device == "cpu" and "graph" in a.modes:
        p.error("graph replay needs cuda")
    return a


# Before torch is imported: a compilation cache of this run's own, and no override of the switches below.
ARGUMENTS = arguments()
CACHE = tempfile.TemporaryDirectory(prefix="griffinfly-inductor-")
os.environ["TORCHINDUCTOR_CACHE_DIR"] = CACHE.name
if ARGUMENTS.precision != "fast":
    os.environ["NVIDIA_TF32_OVERRIDE"] = "0"

import torch  # noqa: E402
from safetensors import safe_open  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

from models import WORKLOADS  # noqa: E402


def set_precision(precision):
    fast = precision == "fast"
    torch.set_float32_matmul_precision("high" if fast else "highest")
    torch.backends.cuda.matmul.allow_tf32 = fast
    torch.backends.cudnn.allow_tf32 = fast


class Workload:
    """A module with its weights, and the inputs of both shapes, as one file has them."""

    def __init__(self, path, device, dtype):
        with safe_open(path, "pt") as file:
            described = json.loads(file.metadata()["griffinfly.workload"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}
        self.name = described["workload"]
        self.module = WORKLOADS[self.name](described["config"])
        self.module.load_state_dict({k: v for k, v in tensors.items() if not k.startswith("input.")}, strict=True)
        self.module.to(device, dtype)
        move = lambda v: v.to(device, dtype) if v.is_floating_point() else v.to(device, torch.int64)
        take = lambda prefix: {k.removeprefix(prefix): move(v) for k, v in tensors.items() if k.startswith(prefix)}
        self.inputs = {"full": take("input.full."), "minimal": take("input.minimal.")}
        self.trainable = {k: p for k, p in self.module.named_parameters() if p.requires_grad}

    def call(self, phase, compiled):
        """The phase as a function of no arguments that returns its results by name, on the device."""
        wrap = (lambda f: torch.compile(f, dynamic=False, fullgraph=True)) if compiled else (lambda f: f)
        if phase == "train":
            inputs, parameters = self.inputs["full"], list(self.trainable.values())
            compute = wrap(lambda: self.module.loss(self.module(**inputs), **inputs))

            def train():
                loss = compute()
                gradients = torch.autograd.grad(loss, parameters)
                return {"loss": loss.detach(), **{f"grad.{k}": g for k, g in zip(self.trainable, gradients)}}

            return train
        inputs = self.inputs["full" if phase == "inference" else "minimal"]
        forward = wrap(lambda: self.module(**inputs))

        def infer():
            with torch.no_grad():
                return {"output": forward()}

        return infer


class Device:
    def __init__(self, kind):
        self.kind, self.cuda = torch.device(kind), kind == "cuda"

    def idle(self):
        if self.cuda:
            torch.cuda.synchronize()

    def describe(self):
        if not self.cuda:
            return {"backend": "cpu", "name": platform.processor() or platform.machine(), "driver": ""}
        runtime = f"CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}"
        return {"backend": "cuda", "name": torch.cuda.get_device_name(), "driver": smi("driver_version"), "runtime": runtime}

    def forget_peak(self):
        gc.collect()
        if self.cuda:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()

    def memory(self):
        if not self.cuda:
            return None
        free, total = torch.cuda.mem_get_info()
        return {
            "peak_allocated": torch.cuda.max_memory_allocated(),
            "peak_reserved": torch.cuda.max_memory_reserved(),
            "device_used": total - free,
        }

    def clocks(self):
        """Clocks, temperature and power as the driver says them now, or none."""
        said = smi("clocks.sm,clocks.mem,temperature.gpu,power.draw") if self.cuda else ""
        try:
            sm, memory, temperature, power = (float(x) for x in said.split(","))
        except ValueError:
            return None
        return {"sm_mhz": sm, "memory_mhz": memory, "temperature_c": temperature, "power_w": power}


def smi(query):
    command = ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits", "-i", "0"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def git_revision():
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return None


def capture(call):
    """The whole call as one replayed CUDA graph, checked against the call itself."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    expected = {k: v.clone() for k, v in call().items()}
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = call()

    def replay():
        graph.replay()
        return results

    for name, found in replay().items():
        # Both runs are f32 of one program, but reductions may be ordered otherwise.
        limit = 1e-6 + 1e-4 * expected[name].abs().max().item()
        error = (found - expected[name]).abs().max().item()
        if not error <= limit:
            raise RuntimeError(f"replay differs from the call: {name} by {error}, allowed {limit}")
    return replay


def timed(call, device, samples):
    """Wall time and, within it, time until the launch returned, of each sample in microseconds."""
    device.idle()
    start, calls = time.perf_counter(), 0
    while calls < WARM_UP_CALLS or time.perf_counter() - start < WARM_UP_SECONDS:
        call()
        device.idle()
        calls += 1
    walls, hosts = [], []
    for _ in range(samples):
        device.idle()
        before = time.perf_counter()
        results = call()
        launched = time.perf_counter()
        device.idle()
        after = time.perf_counter()
        del results
        walls.append((after - before) * 1e6)
        hosts.append((launched - before) * 1e6)
    return walls, hosts


def measure(workload, phase, mode, made, device):
    """One cell. `made` keeps the compiled calls of this workload, and what they cost, for the mode that replays them."""
    cell = {"workload": workload.name, "phase": phase, "mode": mode, "samples_us": [], "host_us": []}
    device.forget_peak()
    device.idle()
    start = time.perf_counter()
    spent = 0.0
    if mode == "graph":
        call, spent = made.get(phase) or (workload.call(phase, True), 0.0)
        call = capture(call)
    else:
        call = workload.call(phase, mode == "compile")
    results = call()
    device.idle()
    cell["preparation_s"] = spent + time.perf_counter() - start
    if mode == "compile":
        made[phase] = (call, cell["preparation_s"])
    if ARGUMENTS.samples > 0:
        cell["clocks_before"] = device.clocks()
        cell["samples_us"], cell["host_us"] = timed(call, device, ARGUMENTS.samples)
        cell["clocks_after"] = device.clocks()
        results = call()
        device.idle()
    cell["memory"] = device.memory()
    if "loss" in results:
        loss = results["loss"].item()
        cell["loss"] = loss if math.isfinite(loss) else None
    if ARGUMENTS.dump:
        ARGUMENTS.dump.mkdir(parents=True, exist_ok=True)
        path = ARGUMENTS.dump / f"pytorch.{ARGUMENTS.precision}.{mode}.{workload.name}.{ARGUMENTS.size}.{phase}.safetensors"
        keep = (lambda v: v.float()) if ARGUMENTS.dump_f32 else (lambda v: v)
        save_file({k: keep(v.detach()).cpu().contiguous() for k, v in results.items()}, path)
        cell["dump"] = os.path.relpath(path, ARGUMENTS.out.parent)
    return cell


def main():
    set_precision(ARGUMENTS.precision)
    device = Device(ARGUMENTS.device)
    names = list(WORKLOADS) if ARGUMENTS.workload == ["all"] else ARGUMENTS.workload
    phases = PHASES if ARGUMENTS.phase == ["all"] else ARGUMENTS.phase
    run = {
        "format": 1,
        "engine": "pytorch",
        "version": torch.__version__,
        "revision": ARGUMENTS.revision or git_revision(),
        "precision": ARGUMENTS.precision,
        "size": ARGUMENTS.size,
        "device": device.describe(),
        "host": f"{platform.system()}, Python {platform.python_version()}, {os.cpu_count()} CPUs",
        "cells": [],
    }
    dtype = torch.float64 if ARGUMENTS.precision == "f64" else torch.float32
    ARGUMENTS.out.parent.mkdir(parents=True, exist_ok=True)
    for name in names:
        path = ARGUMENTS.files / f"{name}.{ARGUMENTS.size}.safetensors"
        workload, made = Workload(path, device.kind, dtype), {}
        for mode in ARGUMENTS.modes:
            for phase in phases:
                try:
                    cell = measure(workload, phase, mode, made, device)
                except Exception as error:  # One failed cell must not cost the others; the record says why.
                    traceback.print_exc()
                    cell = {"workload": name, "phase": phase, "mode": mode, "error": f"{type(error).__name__}: {error}"}
                run["cells"].append(cell)
                samples = cell.get("samples_us")
                said = f"{statistics.median(samples) / 1e3:.3f} ms" if samples else cell.get("error", "not timed")
                print(f"{name} {mode} {phase}: {said}", file=sys.stderr)
                ARGUMENTS.out.write_text(json.dumps(run, indent=1))
        del workload, made
        torch.compiler.reset()
        device.forget_peak()


if __name__ == "__main__":
    main()
