"""Repeats two small trainings in PyTorch and writes their loss curves, which the tests of the library follow.

In the root of the repository, with a Python that has `torch` 2.11 (CPU), `numpy` and `safetensors`; about three minutes:

    GRIFFINFLY_STARTS=FOLDER cargo test --workspace --test main write_the_starts -- --ignored
    python3 bench/pytorch/curves.py --starts FOLDER --out crates/griffinfly/tests/fixtures

A start is a safetensors file of the Rust side: weights before the first step under their names, `batches.NAME` with all
batches in order, `held_out.NAME`, and as metadata the configuration, the optimizer, the factors of its learning rate and the
steps after which the held-out data is asked. The result, `curves.TASK.json`, has the losses and the held-out loss and accuracy of one run in f64
("exact") and of several in f32 ("rounded"), each with the samples of every batch in another order. The order changes no
sum but its rounding, so the distance of these runs from the exact one is what rounding alone makes of the training.
"""

import argparse
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors import safe_open
from torch import nn

from models import SmolLm2, conv, linear

ROUNDED_RUNS = 6


class Bottleneck(nn.Module):
    """relu(bn(1x1(relu(bn(3x3(relu(bn(1x1(x)))))))) + x), x projected where its channels or its size change."""

    def __init__(self, inputs, width, stride, project):
        super().__init__()
        outputs = 4 * width
        self.conv1, self.bn1 = conv(inputs, width, 1), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = conv(width, width, 3, stride), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = conv(width, outputs, 1), nn.BatchNorm2d(outputs)
        if project:
            self.downsample = nn.Sequential(conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x):
        h = F.relu(self.bn1(self.conv1(x)))
        h = F.relu(self.bn2(self.conv2(h)))
        shortcut = self.downsample(x) if hasattr(self, "downsample") else x
        return F.relu(self.bn3(self.conv3(h)) + shortcut)


class SmallResNet(nn.Module):
    """ResNet v1.5 with batch norms behind a 3x3 stem. image [B, C, H, W] gives logits [B, classes]."""

    def __init__(self, c):
        super().__init__()
        assert (c["stem"], c["norm"]) == ("small", "batch")
        inputs = c["width"]
        self.conv1, self.bn1 = conv(c["channels"], inputs, 3), nn.BatchNorm2d(inputs)
        self.stages = len(c["blocks"])
        for i, count in enumerate(c["blocks"]):
            width, blocks = c["width"] << i, []
            for b in range(count):
                blocks.append(Bottleneck(inputs, width, 2 if i > 0 and b == 0 else 1, b == 0))
                inputs = 4 * width
            setattr(self, f"layer{i + 1}", nn.Sequential(*blocks))
        self.fc = linear(inputs, c["classes"], bias=True)

    def forward(self, image, label=None):
        x = F.relu(self.bn1(self.conv1(image)))
        for i in range(self.stages):
            x = getattr(self, f"layer{i + 1}")(x)
        return self.fc(x.mean((2, 3)))

    def loss(self, output, label, **_):
        return F.cross_entropy(output, label)


MODELS = {"characters": SmolLm2, "digits": SmallResNet}


class Start:
    """A file of the Rust side."""

    def __init__(self, path):
        with safe_open(path, "pt") as file:
            self.described = json.loads(file.metadata()["griffinfly.curve"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}
        take = lambda prefix: {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
        self.batches, self.held_out = take("batches."), take("held_out.")
        self.weights = {k: v for k, v in tensors.items() if not k.startswith(("batches.", "held_out."))}

    def module(self, dtype):
        module = MODELS[self.described["task"]](self.described["config"])
        missing, unexpected = module.load_state_dict(self.weights, strict=False)
        state = ("running_mean", "running_var", "num_batches_tracked")
        assert not unexpected and all(name.endswith(state) for name in missing), (missing, unexpected)
        return module.to(dtype)

    def optimizer(self, module):
        o = self.described["optimizer"]
        kind = torch.optim.AdamW if o["decoupled"] else torch.optim.Adam
        betas = (o["beta1"], o["beta2"])
        return kind(module.parameters(), o["learning_rate"], betas, o["eps"], o["weight_decay"])


def cast(inputs, dtype):
    return {k: v.to(dtype) if v.is_floating_point() else v.to(torch.int64) for k, v in inputs.items()}


@torch.no_grad()
def ask(module, inputs):
    module.eval()
    output = module(**inputs)
    loss, right = module.loss(output, **inputs), (output.argmax(-1) == inputs["label"]).double().mean()
    module.train()
    return {"loss": loss.item(), "accuracy": right.item()}


def run(start, dtype, seed=None):
    """Losses of all steps, and the answers about the held-out data; with a seed the samples are in another order."""
    module, asked = start.module(dtype), start.described["asked"]
    optimizer, losses, answers = start.optimizer(module), [], {}
    order = None if seed is None else torch.Generator().manual_seed(seed)
    for step, factor in enumerate(start.described["schedule"]):
        for group in optimizer.param_groups:
            group["lr"] = factor * start.described["optimizer"]["learning_rate"]
        inputs = cast({k: v[step] for k, v in start.batches.items()}, dtype)
        if order is not None:
            places = torch.randperm(len(inputs["label"]), generator=order)
            inputs = {k: v[places] for k, v in inputs.items()}
        loss = module.loss(module(**inputs), **inputs)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step + 1 in asked:
            answers[step + 1] = ask(module, cast(start.held_out, dtype))
    return losses, answers


def curve(start):
    exact = run(start, torch.float64)
    rounded = [run(start, torch.float32, seed) for seed in range(ROUNDED_RUNS)]
    return {
        "torch": torch.__version__,
        "config": start.described["config"],
        "optimizer": start.described["optimizer"],
        "order_seeds": list(range(ROUNDED_RUNS)),
        "losses": {"exact": exact[0], "rounded": [losses for losses, _ in rounded]},
        "held_out": {
            steps: {"exact": exact[1][steps], "rounded": [answers[steps] for _, answers in rounded]}
            for steps in start.described["asked"]
        },
    }


def shortened(value):
    """The same with numbers of nine digits, which tell all f32 apart."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {k: shortened(v) for k, v in value.items()}
    return [shortened(v) for v in value] if isinstance(value, list) else value


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--starts", required=True, type=Path, help="folder that write_the_starts filled")
    p.add_argument("--out", required=True, type=Path, help="folder for curves.TASK.json")
    a = p.parse_args()
    # Models this small lose more time to threads that wait for each other than they gain.
    torch.set_num_threads(1)
    for task in MODELS:
        found = shortened(curve(Start(a.starts / f"{task}.safetensors")))
        a.out.mkdir(parents=True, exist_ok=True)
        lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items())
        (a.out / f"curves.{task}.json").write_text("{\n" + lines + "\n}\n")
        losses = found["losses"]
        far = lambda step: max(abs(r[step] / losses["exact"][step] - 1) for r in losses["rounded"])
        print(task, *(f"step {s}: {losses['exact'][s]:.5f} +- {far(s):.1e};" for s in (0, 19, 59, -1)))


if __name__ == "__main__":
    main()
