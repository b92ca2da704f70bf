"""Models that are no workloads of the benchmark, small, in plain PyTorch and f64: what their Rust builders are compared with.

    python3 models_extra.py ../../crates/griffinfly/tests/fixtures

(in this folder, with torch, numpy and safetensors) writes two files per model: NAME.weights.safetensors, a checkpoint with
the published names, and NAME.expected.safetensors with `input.*`, `output.*`, `loss` and `grad.*`. Weights and inputs are
f32 values, everything between is f64, results are rounded to f32 at the end. Nothing here calls a layer of PyTorch that the
formula could be written out for: attention, norms, rotations and losses are spelled out.
"""

import math
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import save_file


class Weights:
    """Parameters by name, made where a model first asks for them; all are differentiated but those that are frozen."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.stored, self.used, self.frozen = {}, {}, set()

    def normal(self, shape, deviation, mean=0.0):
        values = self.random.normal(mean, deviation, shape).astype(np.float32)
        return torch.from_numpy(values)

    def __call__(self, name, shape, deviation, mean=0.0, frozen=False):
        if name not in self.stored:
            self.stored[name] = self.normal(shape, deviation, mean)
            self.used[name] = self.stored[name].double().requires_grad_(not frozen)
            if frozen:
                self.frozen.add(name)
        return self.used[name]

    def matrix(self, name, *shape):
        """Large enough that the softmax of attention is far from constant."""
        return self(f"{name}.weight", shape, 1.5 / math.sqrt(math.prod(shape[1:])))

    def bias(self, name, width):
        return self(f"{name}.bias", (width,), 0.3)

    def affine(self, name, width):
        return self(f"{name}.weight", (width,), 0.3, mean=1.0), self.bias(name, width)


def linear(w, name, x, width, bias=True):
    y = x @ w.matrix(name, width, x.shape[-1]).T
    return y + w.bias(name, width) if bias else y


def layer_norm(w, name, x, eps=1e-5):
    weight, bias = w.affine(name, x.shape[-1])
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + eps).sqrt() * weight + bias


def group_norm(w, name, x, groups, eps=1e-5):
    weight, bias = w.affine(name, x.shape[1])
    y = x.unflatten(1, (groups, -1))
    centred = y - y.mean((2, 3, 4), keepdim=True)
    y = (centred / (centred.square().mean((2, 3, 4), keepdim=True) + eps).sqrt()).flatten(1, 2)
    return y * weight[:, None, None] + bias[:, None, None]


def gelu(x):
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


def silu(x):
    return x / (1 + torch.exp(-x))


def attention(w, name, x, seen, heads, out, causal=False, rotate=lambda x: x):
    """Projections q, k (without bias), v and `out`; softmax(q k^T / sqrt(d)) v per head."""
    width = x.shape[-1]
    split = lambda x: x.unflatten(-1, (heads, -1)).transpose(1, 2)
    q = rotate(split(linear(w, f"{name}.q_proj", x, width)))
    k = rotate(split(linear(w, f"{name}.k_proj", seen, width, bias=False)))
    v = split(linear(w, f"{name}.v_proj", seen, width))
    scores = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(width // heads)
    if causal:
        ahead = torch.arange(scores.shape[3]) > torch.arange(scores.shape[2])[:, None]
        scores = scores.masked_fill(ahead, -math.inf)
    weights = torch.exp(scores - scores.amax(-1, keepdim=True).detach())
    y = torch.einsum("bhij,bhjd->bihd", weights / weights.sum(-1, keepdim=True), v)
    return linear(w, f"{name}.{out}_proj", y.flatten(2), width)


def whisper_encoder(w, c, mel):
    x = mel
    for i, (inputs, stride) in enumerate([(c["mels"], 1), (c["width"], 2)]):
        name = f"model.encoder.conv{i + 1}"
        weight = w.matrix(name, c["width"], inputs, 3)
        x = gelu(F.conv1d(x, weight, w.bias(name, c["width"]), stride=stride, padding=1))
    x = x.transpose(1, 2)
    x = x + w("model.encoder.embed_positions.weight", tuple(x.shape[1:]), 0.5, frozen=True)
    for i in range(c["encoder_layers"]):
        name = f"model.encoder.layers.{i}"
        h = layer_norm(w, f"{name}.self_attn_layer_norm", x)
        x = x + attention(w, f"{name}.self_attn", h, h, c["heads"], "out")
        x = x + whisper_feed_forward(w, c, name, x)
    return layer_norm(w, "model.encoder.layer_norm", x)


def whisper_feed_forward(w, c, name, x):
    h = layer_norm(w, f"{name}.final_layer_norm", x)
    return linear(w, f"{name}.fc2", gelu(linear(w, f"{name}.fc1", h, c["ffn"])), c["width"])


def whisper_decoder(w, c, states, ids):
    table = w("model.decoder.embed_tokens.weight", (c["vocab"], c["width"]), 1.0)
    positions = w("model.decoder.embed_positions.weight", (c["positions"], c["width"]), 0.5)
    x = table[ids.long()] + positions[: ids.shape[1]]
    for i in range(c["decoder_layers"]):
        name = f"model.decoder.layers.{i}"
        h = layer_norm(w, f"{name}.self_attn_layer_norm", x)
        x = x + attention(w, f"{name}.self_attn", h, h, c["heads"], "out", causal=True)
        h = layer_norm(w, f"{name}.encoder_attn_layer_norm", x)
        x = x + attention(w, f"{name}.encoder_attn", h, states, c["heads"], "out")
        x = x + whisper_feed_forward(w, c, name, x)
    return layer_norm(w, "model.decoder.layer_norm", x) @ table.T


def whisper(w):
    """mel to states to logits; mean cross-entropy of the labels."""
    c = dict(mels=6, width=16, heads=2, ffn=24, encoder_layers=2, decoder_layers=2, vocab=29, positions=11)
    inputs = {
        "mel": w.normal((2, c["mels"], 18), 1.0),
        "ids": torch.from_numpy(w.random.integers(0, c["vocab"], (2, 7), dtype=np.int32)),
        "label": torch.from_numpy(w.random.integers(0, c["vocab"], (2, 7), dtype=np.int32)),
    }
    states = whisper_encoder(w, c, inputs["mel"].double())
    logits = whisper_decoder(w, c, states, inputs["ids"])
    log = logits - logits.logsumexp(-1, keepdim=True)
    loss = -log.gather(-1, inputs["label"].long()[..., None]).mean()
    return inputs, {"output": logits, "states": states}, loss


def axial_rotation(rows, columns, prefix, head_dim, base):
    """Element j and j + head_dim / 2 of a head are a complex number. For the first half of these the angle comes from the
    row of the patch, for the second half from its column. Tokens of the prefix keep theirs."""
    count = head_dim // 4
    frequency = 2 * math.pi * base ** -(torch.arange(count, dtype=torch.float64) / count)
    place = lambda n: (torch.arange(n, dtype=torch.float64) + 0.5) / n * 2 - 1
    y, x = torch.meshgrid(place(rows), place(columns), indexing="ij")
    angle = torch.cat([y.reshape(-1, 1) * frequency, x.reshape(-1, 1) * frequency], dim=1)
    turn = torch.polar(torch.ones_like(angle), angle)
    turn = torch.cat([torch.ones(prefix, 2 * count, dtype=turn.dtype), turn])

    def rotate(x):
        a, b = x.chunk(2, dim=-1)
        turned = torch.complex(a, b) * turn
        return torch.cat([turned.real, turned.imag], dim=-1)

    return rotate


def dinov3(w):
    """Image to tokens; mean squared error to a target (its own objective, the mean square after a norm, is almost flat)."""
    c = dict(patch=4, hidden=24, layers=2, heads=2, ffn=40, registers=4)
    batch, rows, columns = 2, 3, 5
    prefix, hidden = 1 + c["registers"], c["hidden"]
    inputs = {
        "image": w.normal((batch, 3, rows * c["patch"], columns * c["patch"]), 1.0),
        "target": w.normal((batch, prefix + rows * columns, hidden), 1.0),
    }
    token = lambda name, count: w(f"embeddings.{name}", (1, count, hidden), 1.0)
    first = torch.cat([token("cls_token", 1), token("register_tokens", c["registers"])], dim=1)
    token("mask_token", 1)
    name = "embeddings.patch_embeddings"
    kernel, bias = w.matrix(name, hidden, 3, c["patch"], c["patch"]), w.bias(name, hidden)
    patches = F.conv2d(inputs["image"].double(), kernel, bias, stride=c["patch"]).flatten(2).transpose(1, 2)
    x = torch.cat([first.expand(batch, -1, -1), patches], dim=1)
    rotate = axial_rotation(rows, columns, prefix, hidden // c["heads"], 100.0)
    states = []
    for i in range(c["layers"]):
        name = f"layer.{i}"
        h = layer_norm(w, f"{name}.norm1", x)
        h = attention(w, f"{name}.attention", h, h, c["heads"], "o", rotate=rotate)
        x = x + h * w(f"{name}.layer_scale1.lambda1", (hidden,), 0.3, mean=1.0)
        h = gelu(linear(w, f"{name}.mlp.up_proj", layer_norm(w, f"{name}.norm2", x), c["ffn"]))
        h = linear(w, f"{name}.mlp.down_proj", h, hidden)
        x = x + h * w(f"{name}.layer_scale2.lambda1", (hidden,), 0.3, mean=1.0)
        states.append(x)
    output = layer_norm(w, "norm", x)
    loss = (output - inputs["target"].double()).square().mean()
    return inputs, {"output": output, "features": states[0], "square": output.square().mean()}, loss


def reconstruction(w):
    """A grid of tokens to an image; mean squared error."""
    c = dict(rows=3, columns=5, prefix=2, features=12, stages=[[8, 8], [4]], groups=2)
    inputs = {
        "tokens": w.normal((2, c["prefix"] + c["rows"] * c["columns"], c["features"]), 1.0),
        "target": torch.from_numpy(w.random.random((2, 3, 4 * c["rows"], 4 * c["columns"]), dtype=np.float32)),
    }
    grid = inputs["tokens"].double()[:, c["prefix"] :].transpose(1, 2)
    x = grid.unflatten(2, (c["rows"], c["columns"]))
    for i, stage in enumerate(c["stages"]):
        for j, channels in enumerate(stage):
            name = f"decoder.stages.{i}.{j}"
            kernel = w.matrix(f"{name}.conv", channels, x.shape[1], 3, 3)
            x = F.conv2d(x, kernel, w.bias(f"{name}.conv", channels), padding=1)
            x = silu(group_norm(w, f"{name}.norm", x, c["groups"]))
        x = x.repeat_interleave(2, dim=2).repeat_interleave(2, dim=3)
    kernel = w.matrix("decoder.head", 3, x.shape[1], 3, 3)
    output = torch.sigmoid(F.conv2d(x, kernel, w.bias("decoder.head", 3), padding=1))
    return inputs, {"output": output}, (output - inputs["target"].double()).square().mean()


MODELS = {"whisper": whisper, "dinov3": dinov3, "reconstruction": reconstruction}


def write(name, folder):
    w = Weights(sum(name.encode()))
    inputs, outputs, loss = MODELS[name](w)
    loss.backward()
    expected = {f"input.{k}": x for k, x in inputs.items()}
    expected |= {f"output.{k}": x for k, x in outputs.items()} | {"loss": loss}
    expected |= {f"grad.{k}": x.grad for k, x in w.used.items() if x.grad is not None}
    rounded = {k: x.detach().to(torch.float32 if x.is_floating_point() else x.dtype) for k, x in expected.items()}
    save_file({k: x.contiguous() for k, x in w.stored.items()}, folder / f"{name}.weights.safetensors")
    save_file({k: x.contiguous() for k, x in rounded.items()}, folder / f"{name}.expected.safetensors")


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(exist_ok=True)
    for model in MODELS:
        write(model, target)
