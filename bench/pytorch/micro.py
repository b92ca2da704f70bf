"""Times single operations in PyTorch, at the shapes of `bench/shapes.json`, which `griffinfly-bench micro` times too.

    python3 micro.py --out pytorch.json                  (strict, then with TF32)
    python3 micro.py --device cpu --precision strict --samples 3 --shapes tiny.json --out pytorch.json

Per operation and pass: several calls in one CUDA graph, so that nothing of the host is timed; replays fill some milliseconds
and follow a warm-up of 0.1 s; the median of the replays counts, per call. Each result is compared with the same call in f64,
and a result beyond the gate of its precision ends the run. The record is that of `bench/src/micro/record.rs`.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

LIMITS = {"strict": 1e-4, "fast": 1e-2}
WARM_UP_SECONDS, REPLAY_SECONDS, MOST_CALLS = 0.1, 0.005, 500


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--shapes", type=Path, default=Path(__file__).parent.parent / "shapes.json")
    p.add_argument("--precision", default="strict,fast", help="strict, fast with commas")
    p.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    p.add_argument("--samples", default=15, type=int)
    p.add_argument("--revision", default="unknown", help="revision of the repository")
    p.add_argument("--out", required=True, type=Path)
    a = p.parse_args()
    a.precision = a.precision.split(",")
    if not set(a.precision) <= set(LIMITS):
        p.error("precisions are strict and fast")
    return a


ARGUMENTS = arguments()

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402


def set_precision(precision):
    fast = precision == "fast"
    torch.set_float32_matmul_precision("high" if fast else "highest")
    torch.backends.cuda.matmul.allow_tf32 = fast
    torch.backends.cudnn.allow_tf32 = fast


def drawn(*shape):
    return torch.rand(shape, device=ARGUMENTS.device, dtype=torch.float32) * 2 - 1


def gemm(case):
    """Each pass as a function of its operands, with those."""
    m, n, k = case["m"], case["n"], case["k"]
    x, w, dy = drawn(m, k), drawn(n, k), drawn(m, n)
    return {
        "forward": (lambda x, w: x @ w.T, (x, w)),
        "input gradient": (lambda dy, w: dy @ w, (dy, w)),
        "weight gradient": (lambda dy, x: dy.T @ x, (dy, x)),
    }


def conv(case):
    (top, bottom), (left, right) = case["padding"]
    if top != bottom or left != right:
        raise ValueError(f"{case['name']}: the padding differs before and after")
    stride, padding, groups = case["stride"], [top, left], case["groups"]
    call = lambda x, w: F.conv2d(x, w, stride=stride, padding=padding, groups=groups)
    x, w = drawn(*case["x"]), drawn(*case["w"])
    dy = drawn(*call(x, w).shape)

    def gradient(wanted):
        mask = [wanted == "input", wanted == "weight", False]

        def backward(x, w, dy):
            found = torch.ops.aten.convolution_backward(
                dy, x, w, None, stride, padding, [1, 1], False, [0, 0], groups, mask
            )
            return found[0 if wanted == "input" else 1]

        return backward

    return {
        "forward": (call, (x, w)),
        "input gradient": (gradient("input"), (x, w, dy)),
        "weight gradient": (gradient("weight"), (x, w, dy)),
    }


def attention(case):
    q, k, v, dy = drawn(*case["q"]), drawn(*case["k"]), drawn(*case["k"]), drawn(*case["q"])
    group, causal = case["q"][2] // case["k"][2], case["causal"]
    if causal and case["q"][1] != case["k"][1]:
        raise ValueError(f"{case['name']}: as many queries as keys are needed where it is causal")

    def call(q, k, v):
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        if group > 1:
            k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2)

    def both(q, k, v, dy):
        leaves = [t.detach().requires_grad_() for t in (q, k, v)]
        y = call(*leaves)
        return (*torch.autograd.grad(y, leaves, dy), y.detach())

    return {"forward": (call, (q, k, v)), "forward and backward": (both, (q, k, v, dy))}


KINDS = {"gemm": (gemm, "cuBLAS"), "conv": (conv, "cuDNN"), "attention": (attention, "PyTorch SDPA")}


def tuples(results):
    return results if isinstance(results, tuple) else (results,)


def error(found, expected):
    """The largest relative L2 error of a result."""
    return max(((f.double() - e).norm() / e.norm()).item() for f, e in zip(found, expected, strict=True))


def idle():
    if ARGUMENTS.device == "cuda":
        torch.cuda.synchronize()


def seconds(call):
    idle()
    start = time.perf_counter()
    call()
    idle()
    return time.perf_counter() - start


def captured(call, count):
    """So many calls as one replayed CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            call()
    return graph.replay


def measured(call):
    """Microseconds of a call: the median of the samples."""
    call()
    least = min(seconds(call) for _ in range(3))
    count = max(1, min(MOST_CALLS, int(REPLAY_SECONDS / least)))
    if ARGUMENTS.device == "cuda":
        # A single call includes its launch, so it is estimated once more from a graph.
        replay = captured(call, count)
        replay()
        least = seconds(replay) / count
        count = max(1, min(MOST_CALLS, int(REPLAY_SECONDS / least)))
        replay = captured(call, count)
    else:
        replay = lambda: [call() for _ in range(count)]
    start = time.perf_counter()
    while time.perf_counter() - start < WARM_UP_SECONDS:
        replay()
        idle()
    return statistics.median(elapsed(replay) for _ in range(ARGUMENTS.samples)) * 1e6 / count


def elapsed(replay):
    """Seconds on the device where it can tell."""
    if ARGUMENTS.device != "cuda":
        return seconds(replay)
    before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    before.record()
    replay()
    after.record()
    torch.cuda.synchronize()
    return before.elapsed_time(after) / 1e3


def rows(case):
    make, library = KINDS[case["kind"]]
    for passed, (function, operands) in make(case).items():
        set_precision("strict")
        expected = tuples(function(*(t.double() for t in operands)))
        for precision in ARGUMENTS.precision:
            set_precision(precision)
            call = lambda: function(*operands)
            found = error(tuples(call()), expected)
            name = f"{case['kind']} {case['name']} {passed} {precision}"
            if not found <= LIMITS[precision]:
                raise SystemExit(f"{name}: differs from f64 by {found:.1e}, allowed is {LIMITS[precision]}")
            time_us = measured(call)
            print(f"{name}: {time_us:.2f} us, error {found:.1e}", file=sys.stderr)
            yield {
                "kind": case["kind"],
                "shape": case["name"],
                "pass": passed,
                "contract": precision,
                "reference": library if ARGUMENTS.device == "cuda" else "PyTorch on the CPU",
                "reference_us": time_us,
                "reference_error": found,
            }


def main():
    torch.manual_seed(0)
    # The fastest of cuDNN's algorithms for the shape.
    torch.backends.cudnn.benchmark = True
    cuda = ARGUMENTS.device == "cuda"
    record = {
        "format": 1,
        "device": torch.cuda.get_device_name() if cuda else "CPU",
        "driver": f"CUDA {torch.version.cuda}, PyTorch {torch.__version__}",
        "revision": ARGUMENTS.revision,
        "rows": [],
    }
    ARGUMENTS.out.parent.mkdir(parents=True, exist_ok=True)
    for case in json.loads(ARGUMENTS.shapes.read_text()):
        record["rows"].extend(rows(case))
        ARGUMENTS.out.write_text(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
