"""The models against published figures of other implementations: losses, output samples and gradient norms that a
benchmark of arXiv 2608.01563 recorded under its own weights ("sin-seed") and inputs.

    python3 -m unittest test_models        (in this folder; some seconds on a CPU)
"""

import unittest

import numpy as np
import torch

from models import WORKLOADS

FULL = {
    "smollm2": dict(vocab=49152, hidden=576, layers=30, heads=9, kv_heads=3, head_dim=64, ffn=1536, eps=1e-5,
                    rope_base=1e5, sequence=128),
    "smolvla": dict(action=32, hidden=720, layers=16, heads=15, kv_heads=5, head_dim=64, ffn=2048, eps=1e-5),
    "unet": dict(channels=4, base=64, groups=16, time_inputs=64, time_width=256, context_width=768, head_dim=32),
    "resnet50": dict(width=64, blocks=[3, 4, 6, 3], classes=1000),
    "whisper": dict(mels=80, frames=3000, width=384, heads=6, layers=4, ffn=1536),
}
PARAMETERS = {
    "smollm2": (134_515_008, 272),
    "smolvla": (99_848_592, 152),
    "unet": (10_928_768, 181),
    "resnet50": (25_530_472, 108),
    "whisper": (8_208_384, 67),
}


def seed(name):
    h = 0
    for c in name.encode():
        h = (31 * h + c) % 2**32
    return h % 10000


def sin_seed(name, count, scale):
    """sin(0.01 j + seed(name)) * scale in f32."""
    f = np.float32
    return np.sin(np.arange(count, dtype=f) * f(0.01) + f(seed(name))) * f(scale)


def fill(workload, module):
    """The published weights. Matrices of products are filled as [in, out]."""
    scale = 0.01 if workload == "resnet50" else 0.02
    with torch.no_grad():
        for name, p in module.named_parameters():
            seeded = name.removeprefix("model.encoder.") if workload == "whisper" else name
            if "fused_bias" in name:
                p.zero_()
            elif workload == "unet" and ".norm" in name:
                p.fill_(1.0 if name.endswith("weight") else 0.0)
            else:
                values = torch.from_numpy(sin_seed(seeded, p.numel(), scale))
                product = p.dim() == 2 and "embed" not in name
                p.copy_(values.view(p.shape[::-1]).T if product else values.view(p.shape))


def wave(f, step, shape, scale=1.0):
    i = np.arange(np.prod(shape), dtype=np.float64)
    return torch.from_numpy((scale * f((i * step).astype(np.float32))).astype(np.float32)).view(shape)


INPUTS = {
    "smolvla": lambda: dict(noisy=wave(np.sin, 0.01, (1, 50, 32)), timestep=wave(np.sin, 0.005, (1, 1, 1440)),
                            vlm=wave(np.cos, 0.01, (1, 16, 320)), target=torch.zeros(1, 50, 32)),
    "unet": lambda: dict(latent=wave(np.sin, 0.01, (1, 4, 32, 32)), time=wave(np.sin, 0.005, (1, 64)),
                         context=wave(np.cos, 0.003, (1, 77, 768), 0.1), target=wave(np.cos, 0.007, (1, 4, 32, 32))),
    "resnet50": lambda: dict(image=wave(np.sin, 0.001, (4, 3, 224, 224)), label=torch.arange(4)),
    "whisper": lambda: dict(mel=wave(np.sin, 0.001, (1, 80, 3000))),
}


class Published(unittest.TestCase):
    def run_published(self, workload, loss, total, samples, norms):
        module = WORKLOADS[workload](FULL[workload])
        fill(workload, module)
        # In f64, since the smallest of the published norms are f32 noise of their own size in the fourth digit.
        module.double()
        inputs = {k: v.double() if v.is_floating_point() else v for k, v in INPUTS[workload]().items()}
        output = module(**inputs)
        value = module.loss(output, **inputs)
        value.backward()
        flat = output.detach().flatten()
        picked = [flat[k * (len(flat) - 1) // 255].item() for k in range(len(samples))]
        np.testing.assert_allclose(picked, samples, atol=2e-6)
        self.assertAlmostEqual(value.item(), loss, delta=2e-6)
        found = {name: p.grad.norm().item() for name, p in module.named_parameters() if p.grad is not None}
        self.assertAlmostEqual(np.sqrt(sum(x * x for x in found.values())) / total, 1, delta=2e-4)
        for name, norm in norms.items():
            self.assertAlmostEqual(found[name] / norm, 1, delta=2e-4, msg=name)

    def test_smolvla(self):
        # The published reference of this workload is another graph; these norms are those of the correct one, from an
        # independent computation.
        layer = "model.vlm_with_expert.lm_expert.layers.{}.self_attn.o_proj.weight"
        self.run_published("smolvla", 0.0003173876, 0.027141, [-0.017911, -0.017895, -0.017816, -0.017671],
                           {layer.format(0): 2.2465e-5, layer.format(10): 3.0572e-5})

    def test_unet(self):
        self.run_published("unet", 0.564506, 60.210733, [0.015186, 0.012750, 0.020993, 0.058120, 0.016319, 0.166978],
                           {"conv_in.weight": 16.948865, "encoder.0.resblock.conv2.weight": 41.627630,
                            "time_mlp.fc1.weight": 4.4473e-5})

    def test_resnet50(self):
        self.run_published("resnet50", 6.917037, 0.922585, [-0.008092, -0.007366, -0.006410, -0.005291],
                           {"fc.weight": 0.492103, "fc.bias": 0.499018, "conv1.weight": 0.00147059})

    def test_whisper(self):
        e = "model.encoder."
        self.run_published("whisper", 0.000310, 0.004393, [0.013223, 0.031120, 0.026998, 0.018076],
                           {e + "conv1.weight": 0.00142387, e + "layer_norm.weight": 0.00172555,
                            e + "layers.0.fc1.bias": 0.00100549})


class Structure(unittest.TestCase):
    def test_parameter_counts(self):
        for workload, expected in PARAMETERS.items():
            with torch.device("meta"):
                module = WORKLOADS[workload](FULL[workload])
            found = list(module.parameters())
            self.assertEqual((sum(p.numel() for p in found), len(found)), expected, workload)

    def test_rotation_is_that_of_complex_numbers(self):
        model = WORKLOADS["smollm2"](dict(FULL["smollm2"], vocab=3, hidden=64, layers=1, heads=1, kv_heads=1, ffn=1, sequence=5))
        x = torch.randn(1, 1, 5, 64, dtype=torch.float64)
        turn = torch.exp(1j * torch.arange(5)[:, None] * 1e5 ** (-2 * torch.arange(32, dtype=torch.float64) / 64))
        y = torch.complex(x[..., :32], x[..., 32:]) * turn
        torch.testing.assert_close(model.rotate(x), torch.cat((y.real, y.imag), -1))


if __name__ == "__main__":
    unittest.main()
