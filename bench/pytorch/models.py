"""The five workloads in plain PyTorch: the reference that Griffinfly is compared with.

A module takes the configuration that the Rust side wrote into the workload's file, and its parameters have that file's
names, so `load_state_dict(strict=True)` is the check that both sides mean the same model. Module docstrings give the graph.
`forward` takes the inputs by name; `loss` takes its result and the same inputs.
"""

import torch
import torch.nn.functional as F
from torch import nn


class Space(nn.Module):
    """A name space for modules and parameters."""

    def __init__(self, **members):
        super().__init__()
        for name, member in members.items():
            setattr(self, name, member)


def linear(inputs, outputs, bias=False):
    return nn.Linear(inputs, outputs, bias=bias)


def attention(q, k, v, head_dim, causal=False, rotate=None):
    """softmax(q k^T / sqrt(head_dim)) v per head of [B, T, heads * head_dim]; consecutive query heads share a KV head."""
    heads = lambda x: x.unflatten(-1, (-1, head_dim)).transpose(1, 2)
    q, k, v = heads(q), heads(k), heads(v)
    if rotate is not None:
        q, k = rotate(q), rotate(k)
    group = q.shape[1] // k.shape[1]
    if group > 1:
        k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).flatten(2)


class RmsNorm(nn.Module):
    """x / sqrt(mean(x^2) + eps) * weight."""

    def __init__(self, width, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


class SwiGlu(nn.Module):
    """down(silu(gate(x)) * up(x))."""

    def __init__(self, width, hidden):
        super().__init__()
        self.gate_proj, self.up_proj = linear(width, hidden), linear(width, hidden)
        self.down_proj = linear(hidden, width)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class DecoderLayer(nn.Module):
    """x += o(attention(q(h), k(c), v(c))) with h = norm(x); x += mlp(norm(x)). c is h, or a context of its own width."""

    def __init__(self, c, context=None):
        super().__init__()
        width, head_dim = c["hidden"], c["head_dim"]
        source = width if context is None else context
        self.head_dim = head_dim
        self.input_layernorm = RmsNorm(width, c["eps"])
        self.self_attn = Space(
            q_proj=linear(width, c["heads"] * head_dim),
            k_proj=linear(source, c["kv_heads"] * head_dim),
            v_proj=linear(source, c["kv_heads"] * head_dim),
            o_proj=linear(c["heads"] * head_dim, width),
        )
        self.post_attention_layernorm = RmsNorm(width, c["eps"])
        self.mlp = SwiGlu(width, c["ffn"])

    def forward(self, x, context=None, rotate=None):
        a, h = self.self_attn, self.input_layernorm(x)
        source = h if context is None else context
        q, k, v = a.q_proj(h), a.k_proj(source), a.v_proj(source)
        x = x + a.o_proj(attention(q, k, v, self.head_dim, context is None, rotate))
        return x + self.mlp(self.post_attention_layernorm(x))


class SmolLm2(nn.Module):
    """Decoder-only language model with rotary positions and a tied head. ids [B, S] give logits [B, S, vocab]."""

    def __init__(self, c):
        super().__init__()
        self.model = Space(
            embed_tokens=nn.Embedding(c["vocab"], c["hidden"]),
            layers=nn.ModuleList(DecoderLayer(c) for _ in range(c["layers"])),
            norm=RmsNorm(c["hidden"], c["eps"]),
        )
        half = c["head_dim"] // 2
        frequency = c["rope_base"] ** (-torch.arange(half, dtype=torch.float64) / half)
        angle = torch.arange(c["sequence"], dtype=torch.float64)[:, None] * frequency
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)

    def rotate(self, x):
        """Pairs (d, d + half) turned by position * base^(-d / half)."""
        cos, sin = self.cos[: x.shape[2]], self.sin[: x.shape[2]]
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)

    def forward(self, ids, label=None):
        x = self.model.embed_tokens(ids)
        for layer in self.model.layers:
            x = layer(x, rotate=self.rotate)
        return F.linear(self.model.norm(x), self.model.embed_tokens.weight)

    def loss(self, output, label, ids=None):
        return F.cross_entropy(output.flatten(0, 1), label.flatten())


class SmolVla(nn.Module):
    """Action expert: even layers attend causally to themselves, odd ones to the VLM tokens. K and V of the even layers come
    from the normalised state. noisy [B, T, action], timestep [B, 1, 2 hidden], vlm [B, V, KV width] give [B, T, action]."""

    def __init__(self, c):
        super().__init__()
        width, context = c["hidden"], c["kv_heads"] * c["head_dim"]
        layers = nn.ModuleList(DecoderLayer(c, context if i % 2 else None) for i in range(c["layers"]))
        self.model = Space(
            action_in_proj=linear(c["action"], width, bias=True),
            action_time_mlp_in=linear(2 * width, width, bias=True),
            action_time_mlp_out=linear(width, width, bias=True),
            vlm_with_expert=Space(lm_expert=Space(layers=layers)),
            action_out_proj=linear(width, c["action"], bias=True),
        )

    def forward(self, noisy, timestep, vlm, target=None):
        m = self.model
        time = m.action_time_mlp_out(F.silu(m.action_time_mlp_in(timestep)))
        x = m.action_in_proj(noisy) + time
        for i, layer in enumerate(m.vlm_with_expert.lm_expert.layers):
            x = layer(x, vlm if i % 2 else None)
        return m.action_out_proj(x)

    def loss(self, output, target, **_):
        return F.mse_loss(output, target)


def conv(inputs, outputs, kernel, stride=1):
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)


class ResBlock(nn.Module):
    """conv2(silu(GN(conv1(silu(GN(x))) + time_proj(t)))) + (x, or res_conv(x))."""

    def __init__(self, c, inputs, outputs):
        super().__init__()
        self.norm1 = nn.GroupNorm(c["groups"], inputs)
        self.conv1 = conv(inputs, outputs, 3)
        self.time_proj = linear(c["time_width"], outputs, bias=True)
        self.norm2 = nn.GroupNorm(c["groups"], outputs)
        self.conv2 = conv(outputs, outputs, 3)
        self.res_conv = conv(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, time):
        h = self.conv1(F.silu(self.norm1(x))) + self.time_proj(time)[:, :, None, None]
        return self.conv2(F.silu(self.norm2(h))) + self.res_conv(x)


class SpatialTransformer(nn.Module):
    """Self-attention, cross-attention to the context and a feed-forward over the pixels of x, around which x is added."""

    def __init__(self, c, width):
        super().__init__()
        projections = lambda source: Space(
            q_proj=linear(width, width),
            k_proj=linear(source, width),
            v_proj=linear(source, width),
            out_proj=linear(width, width),
        )
        self.head_dim = c["head_dim"]
        self.norm = nn.GroupNorm(c["groups"], width)
        self.proj_in, self.proj_out = conv(width, width, 1), conv(width, width, 1)
        self.transformer = Space(
            norm1=nn.LayerNorm(width),
            self_attn=projections(width),
            norm2=nn.LayerNorm(width),
            cross_attn=projections(c["context_width"]),
            norm3=nn.LayerNorm(width),
            ff=Space(fc1=linear(width, 4 * width, bias=True), fc2=linear(4 * width, width, bias=True)),
        )

    def attend(self, a, h, source):
        return a.out_proj(attention(a.q_proj(h), a.k_proj(source), a.v_proj(source), self.head_dim))

    def forward(self, x, context):
        t = self.transformer
        h = self.proj_in(self.norm(x))
        tokens = h.flatten(2).transpose(1, 2)
        normed = t.norm1(tokens)
        tokens = tokens + self.attend(t.self_attn, normed, normed)
        tokens = tokens + self.attend(t.cross_attn, t.norm2(tokens), context)
        tokens = tokens + t.ff.fc2(F.gelu(t.ff.fc1(t.norm3(tokens)), approximate="tanh"))
        return x + self.proj_out(tokens.transpose(1, 2).unflatten(2, h.shape[2:]))


class UNet(nn.Module):
    """Three-level diffusion U-Net. latent [B, C, H, W], time [B, time_inputs], context [B, T, context_width] give [B, C, H, W]."""

    def __init__(self, c):
        super().__init__()
        w0, w1, w2 = c["base"], 2 * c["base"], 4 * c["base"]
        res = lambda i, o: ResBlock(c, i, o)
        st = lambda width: SpatialTransformer(c, width)
        self.time_mlp = Space(
            fc1=linear(c["time_inputs"], c["time_width"], bias=True),
            fc2=linear(c["time_width"], c["time_width"], bias=True),
        )
        self.conv_in = conv(c["channels"], w0, 3)
        self.encoder = nn.ModuleList([
            Space(resblock=res(w0, w0), downsample=conv(w0, w0, 3, 2)),
            Space(resblock=res(w0, w1), attn=st(w1), downsample=conv(w1, w1, 3, 2)),
            Space(resblock=res(w1, w2), attn=st(w2)),
        ])
        self.middle = Space(resblock=res(w2, w2), attn=st(w2))
        # By level: the order of use is 2, 1, 0.
        self.decoder = nn.ModuleList([
            Space(resblock=res(w1 + w0, w0)),
            Space(resblock=res(w2 + w1, w1), attn=st(w1)),
            Space(resblock=res(w2 + w2, w2), attn=st(w2)),
        ])
        self.conv_out = conv(w0, c["channels"], 3)
        self.conv_out.norm = nn.GroupNorm(c["groups"], w0)

    def forward(self, latent, time, context, target=None):
        t = self.time_mlp.fc2(F.silu(self.time_mlp.fc1(time)))
        block = lambda stage, x: stage.attn(stage.resblock(x, t), context)
        up = lambda x: F.interpolate(x, scale_factor=2, mode="nearest")
        e0, e1, e2 = self.encoder
        d0, d1, d2 = self.decoder
        skip0 = e0.resblock(self.conv_in(latent), t)
        skip1 = block(e1, e0.downsample(skip0))
        skip2 = block(e2, e1.downsample(skip1))
        x = block(self.middle, skip2)
        x = block(d2, torch.cat((x, skip2), 1))
        x = block(d1, torch.cat((up(x), skip1), 1))
        x = d0.resblock(torch.cat((up(x), skip0), 1), t)
        return self.conv_out(F.silu(self.conv_out.norm(x)))

    def loss(self, output, target, **_):
        return F.mse_loss(output, target)


class FusedBias(nn.Module):
    """What is left of a batch norm that was folded into its convolution: a bias per channel."""

    def __init__(self, width):
        super().__init__()
        self.fused_bias = nn.Parameter(torch.zeros(width))


def biased(convolution, norm, x):
    """Convolution and folded norm as one call."""
    return F.conv2d(x, convolution.weight, norm.fused_bias, convolution.stride, convolution.padding)


class Bottleneck(nn.Module):
    """1x1, 3x3 with the stride, 1x1, each with a bias and relu, around a shortcut; the last relu after the sum."""

    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1, self.bn1 = conv(inputs, width, 1), FusedBias(width)
        self.conv2, self.bn2 = conv(width, width, 3, stride), FusedBias(width)
        self.conv3, self.bn3 = conv(width, 4 * width, 1), FusedBias(4 * width)
        self.downsample = None
        if stride > 1 or inputs != 4 * width:
            self.downsample = nn.ModuleList([conv(inputs, 4 * width, 1, stride), FusedBias(4 * width)])

    def forward(self, x):
        h = F.relu(biased(self.conv1, self.bn1, x))
        h = F.relu(biased(self.conv2, self.bn2, h))
        shortcut = x if self.downsample is None else biased(*self.downsample, x)
        return F.relu(biased(self.conv3, self.bn3, h) + shortcut)


class ResNet(nn.Module):
    """ResNet v1.5 with bottlenecks and folded norms. image [B, 3, H, W] gives logits [B, classes]."""

    def __init__(self, c):
        super().__init__()
        base = c["width"]
        self.conv1, self.bn1 = conv(3, base, 7, 2), FusedBias(base)
        inputs = base
        for i, count in enumerate(c["blocks"]):
            width, blocks = base << i, []
            for b in range(count):
                blocks.append(Bottleneck(inputs, width, 2 if i > 0 and b == 0 else 1))
                inputs = 4 * width
            setattr(self, f"layer{i + 1}", nn.Sequential(*blocks))
        self.fc = linear(inputs, c["classes"], bias=True)

    def forward(self, image, label=None):
        x = F.max_pool2d(F.relu(biased(self.conv1, self.bn1, image)), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))

    def loss(self, output, label, **_):
        return F.cross_entropy(output, label)


class EncoderLayer(nn.Module):
    """x += out(attention(LN(x))); x += fc2(gelu(fc1(LN(x)))). Keys have no bias."""

    def __init__(self, c):
        super().__init__()
        width = c["width"]
        self.head_dim = width // c["heads"]
        self.self_attn_layer_norm = nn.LayerNorm(width)
        self.self_attn = Space(
            q_proj=linear(width, width, bias=True),
            k_proj=linear(width, width),
            v_proj=linear(width, width, bias=True),
            out_proj=linear(width, width, bias=True),
        )
        self.final_layer_norm = nn.LayerNorm(width)
        self.fc1, self.fc2 = linear(width, c["ffn"], bias=True), linear(c["ffn"], width, bias=True)

    def forward(self, x):
        a, h = self.self_attn, self.self_attn_layer_norm(x)
        x = x + a.out_proj(attention(a.q_proj(h), a.k_proj(h), a.v_proj(h), self.head_dim))
        return x + self.fc2(F.gelu(self.fc1(self.final_layer_norm(x))))


class Whisper(nn.Module):
    """Whisper's encoder, GELU in its exact form, positions frozen. mel [B, mels, frames] gives [B, frames / 2, width]."""

    def __init__(self, c):
        super().__init__()
        width = c["width"]
        positions = Space(weight=nn.Parameter(torch.zeros(c["frames"] // 2, width), requires_grad=False))
        encoder = Space(
            conv1=nn.Conv1d(c["mels"], width, 3, padding=1),
            conv2=nn.Conv1d(width, width, 3, stride=2, padding=1),
            embed_positions=positions,
            layers=nn.ModuleList(EncoderLayer(c) for _ in range(c["layers"])),
            layer_norm=nn.LayerNorm(width),
        )
        self.model = Space(encoder=encoder)

    def forward(self, mel):
        e = self.model.encoder
        x = F.gelu(e.conv2(F.gelu(e.conv1(mel))))
        x = x.transpose(1, 2) + e.embed_positions.weight
        for layer in e.layers:
            x = layer(x)
        return e.layer_norm(x)

    def loss(self, output, **_):
        return output.square().mean()


WORKLOADS = {
    "smollm2": SmolLm2,
    "smolvla": SmolVla,
    "unet": UNet,
    "resnet50": ResNet,
    "whisper": Whisper,
}
