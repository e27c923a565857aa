"""PyTorch modules of export_suite.py: wrappers that give library models plain inputs and outputs, and small networks of kinds
that torchvision, timm and transformers lack."""
import math

import torch
from torch import nn
from torch.nn import functional as F


class Pick(nn.Module):
    """One output of a model that returns a dict."""

    def __init__(self, model, key):
        super().__init__()
        self.model, self.key = model, key

    def forward(self, x):
        return self.model(x)[self.key]


class Text(nn.Module):
    """The first output of a transformers model for its only input."""

    def __init__(self, model, field=None):
        super().__init__()
        self.model, self.field = model, field

    def forward(self, x):
        out = self.model(x, return_dict=True)
        return out[self.field] if self.field else out[0]


class CrossDecoder(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids, states):
        return self.model(input_ids=ids, encoder_hidden_states=states, use_cache=False)[0]


class Detector(nn.Module):
    """Backbone and heads of a torchvision detector, before boxes are decoded: what random weights would detect means nothing."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        features = self.model.backbone(x)
        features = list(features.values()) if isinstance(features, dict) else [features]
        if hasattr(self.model, 'rpn'):
            scores, deltas = self.model.rpn.head(features)
            return (*features, *scores, *deltas)
        out = self.model.head(features)
        return tuple(out.values())


class Flow(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, a, b):
        return self.model(a, b, num_flow_updates=4)[-1]


def conv(i, o, k=3, s=1, g=1, act=nn.ReLU, d=1):
    layers = [nn.Conv2d(i, o, k, s, d * (k // 2), d, g, bias=False), nn.BatchNorm2d(o)]
    return nn.Sequential(*layers, *([act()] if act else []))


class UNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        sizes = [width * 2**i for i in range(5)]
        self.down = nn.ModuleList(nn.Sequential(conv(i, o), conv(o, o)) for i, o in zip([3, *sizes], sizes))
        self.up = nn.ModuleList(nn.ConvTranspose2d(i, o, 2, 2) for i, o in zip(sizes[:0:-1], sizes[-2::-1]))
        self.merge = nn.ModuleList(nn.Sequential(conv(2 * o, o), conv(o, o)) for o in sizes[-2::-1])
        self.last = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        kept = []
        for i, stage in enumerate(self.down):
            x = stage(F.max_pool2d(x, 2) if i else x)
            kept.append(x)
        for up, merge, skip in zip(self.up, self.merge, kept[-2::-1]):
            x = merge(torch.cat([up(x), skip], 1))
        return self.last(x)


class Espcn(nn.Module):
    def __init__(self, scale=3):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 64, 5, padding=2), nn.Tanh(), nn.Conv2d(64, 32, 3, padding=1), nn.Tanh(),
                                  nn.Conv2d(32, scale * scale, 3, padding=1), nn.PixelShuffle(scale))

    def forward(self, x):
        return self.body(x)


class Dense5(nn.Module):
    def __init__(self, width, growth):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(width + i * growth, growth if i < 4 else width, 3, padding=1) for i in range(5))

    def forward(self, x):
        parts = [x]
        for i, layer in enumerate(self.convs):
            y = layer(torch.cat(parts, 1))
            parts.append(F.leaky_relu(y, 0.2) if i < 4 else y)
        return x + 0.2 * parts[-1]


class Rrdb(nn.Module):
    def __init__(self, width=32, growth=16, blocks=3):
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.body = nn.ModuleList(nn.Sequential(*[Dense5(width, growth) for _ in range(3)]) for _ in range(blocks))
        self.up = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(2))
        self.last = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x):
        x = y = self.first(x)
        for block in self.body:
            y = y + 0.2 * block(y)
        x = x + y
        for layer in self.up:
            x = F.leaky_relu(layer(F.interpolate(x, scale_factor=2.0, mode='nearest')), 0.2)
        return self.last(x)


class Crnn(nn.Module):
    """Text lines of 32 pixels' height: convolutions, then two bidirectional LSTMs over columns."""

    def __init__(self, classes=97, hidden=256):
        super().__init__()
        self.cnn = nn.Sequential(conv(1, 64), nn.MaxPool2d(2), conv(64, 128), nn.MaxPool2d(2), conv(128, 256), conv(256, 256),
                                 nn.MaxPool2d((2, 1)), conv(256, 512), nn.MaxPool2d((2, 1)), nn.Conv2d(512, 512, (2, 1)), nn.ReLU())
        self.rnn = nn.LSTM(512, hidden, 2, bidirectional=True)
        self.last = nn.Linear(2 * hidden, classes)

    def forward(self, x):
        x = self.cnn(x).squeeze(2).permute(2, 0, 1)
        return self.last(self.rnn(x)[0]).log_softmax(2)


class Recurrent(nn.Module):
    def __init__(self, kind, hidden, layers, inputs=None, bidirectional=False):
        super().__init__()
        self.kind, self.hidden, self.layers, self.both = kind, hidden, layers, bidirectional
        self.rnn = None
        size = inputs or {('LSTM', 256): 128}.get((kind, hidden), 80)
        self.rnn = getattr(nn, kind)(size, hidden, layers, batch_first=False, bidirectional=bidirectional)
        self.last = nn.Linear(hidden * (2 if bidirectional else 1), 40)

    def forward(self, x):
        return self.last(self.rnn(x.transpose(0, 1))[0])


class ConformerBlock(nn.Module):
    def __init__(self, width, heads, kernel=31):
        super().__init__()
        self.ff1, self.ff2 = (nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))
                              for _ in range(2))
        self.norm, self.heads = nn.LayerNorm(width), heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.conv_norm = nn.LayerNorm(width)
        self.point1, self.point2 = nn.Conv1d(width, 2 * width, 1), nn.Conv1d(width, width, 1)
        self.depth = nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width)
        self.bn, self.last = nn.BatchNorm1d(width), nn.LayerNorm(width)

    def forward(self, x):
        x = x + 0.5 * self.ff1(x)
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        scores = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(c // self.heads), -1)
        x = x + self.out((scores @ v).transpose(1, 2).reshape(b, t, c))
        y = F.glu(self.point1(self.conv_norm(x).transpose(1, 2)), 1)
        x = x + self.point2(F.silu(self.bn(self.depth(y)))).transpose(1, 2)
        return self.last(x + 0.5 * self.ff2(x))


class Conformer(nn.Module):
    def __init__(self, width=144, blocks=6):
        super().__init__()
        self.sub = nn.Sequential(nn.Conv2d(1, width, 3, 2), nn.ReLU(), nn.Conv2d(width, width, 3, 2), nn.ReLU())
        self.project = nn.Linear(width * 19, width)
        self.blocks = nn.ModuleList(ConformerBlock(width, 4) for _ in range(blocks))
        self.last = nn.Linear(width, 128)

    def forward(self, x):
        x = self.sub(x.unsqueeze(1))
        x = self.project(x.permute(0, 2, 1, 3).flatten(2))
        for block in self.blocks:
            x = block(x)
        return self.last(x)


class Tdnn(nn.Module):
    """An x-vector: dilated 1-d convolutions, mean and deviation over time."""

    def __init__(self):
        super().__init__()
        layers, i = [], 80
        for o, k, d in ((512, 5, 1), (512, 3, 2), (512, 3, 3), (512, 1, 1), (1500, 1, 1)):
            layers += [nn.Conv1d(i, o, k, dilation=d), nn.ReLU(), nn.BatchNorm1d(o)]
            i = o
        self.frames, self.last = nn.Sequential(*layers), nn.Linear(3000, 512)

    def forward(self, x):
        x = self.frames(x)
        mean = x.mean(2)
        return self.last(torch.cat([mean, ((x - mean.unsqueeze(2)) ** 2).mean(2).clamp(min=1e-6).sqrt()], 1))


class WaveNet(nn.Module):
    def __init__(self, width=64, layers=10):
        super().__init__()
        self.gates = nn.ModuleList(nn.Conv1d(width, 2 * width, 3, dilation=2**(i % 5), padding=2**(i % 5)) for i in range(layers))
        self.points = nn.ModuleList(nn.Conv1d(width, 2 * width, 1) for _ in range(layers))
        self.last = nn.Conv1d(width, 256, 1)

    def forward(self, x):
        total = 0
        for gate, point in zip(self.gates, self.points):
            a, b = gate(x).chunk(2, 1)
            r, s = point(torch.tanh(a) * torch.sigmoid(b)).chunk(2, 1)
            x, total = x + r, total + s
        return self.last(torch.relu(total))


class DsCnn(nn.Module):
    """Keyword spotting on 49 frames of 40 features."""

    def __init__(self, width=64):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(1, width, (10, 4), 2, (5, 1)), nn.BatchNorm2d(width), nn.ReLU())
        self.body = nn.Sequential(*[nn.Sequential(conv(width, width, 3, 1, width), conv(width, width, 1)) for _ in range(4)])
        self.last = nn.Linear(width, 12)

    def forward(self, x):
        return self.last(self.body(self.first(x)).mean((2, 3)))


def mlp(*sizes):
    return nn.Sequential(*[part for i, o in zip(sizes, sizes[1:]) for part in (nn.Linear(i, o), nn.ReLU())])


class Dlrm(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.bottom, self.tables = mlp(13, 512, 256, width), nn.Embedding(26 * 1000, width)
        self.top, self.last = mlp(width + 27 * 26 // 2, 512, 256), nn.Linear(256, 1)
        self.register_buffer('offsets', torch.arange(26) * 1000)
        self.register_buffer('pairs', torch.triu_indices(27, 27, 1)[0] * 27 + torch.triu_indices(27, 27, 1)[1])

    def forward(self, dense, ids):
        x = self.bottom(dense)
        rows = torch.cat([x.unsqueeze(1), self.tables(ids + self.offsets)], 1)
        products = (rows @ rows.transpose(1, 2)).flatten(1).index_select(1, self.pairs)
        return torch.sigmoid(self.last(self.top(torch.cat([x, products], 1))))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.last = mlp(256, 1024, 1024, 512), nn.Linear(512, 10)

    def forward(self, x):
        return self.last(self.body(x))


class DeformNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        from torchvision.ops import DeformConv2d

        self.first = nn.Sequential(conv(3, width, 3, 2), conv(width, width))
        self.offsets = nn.ModuleList(nn.Conv2d(width, 18, 3, padding=1) for _ in range(3))
        self.convs = nn.ModuleList(DeformConv2d(width, width, 3, padding=1) for _ in range(3))

    def forward(self, x):
        x = self.first(x)
        for offset, layer in zip(self.offsets, self.convs):
            x = torch.relu(layer(x, offset(x)))
        return x


class SpatialTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.locate = nn.Sequential(conv(3, 16, 5, 2), conv(16, 32, 3, 2), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 6))
        self.body = nn.Sequential(conv(3, 32), conv(32, 64, 3, 2), conv(64, 64))
        ys, xs = torch.meshgrid(torch.linspace(-1, 1, 128), torch.linspace(-1, 1, 128), indexing='ij')
        self.register_buffer('base', torch.stack([xs, ys, torch.ones_like(xs)], -1).view(1, -1, 3))

    def grid(self, theta, side):
        return (self.base @ theta.transpose(1, 2)).view(-1, side, side, 2)

    def forward(self, x):
        theta = self.locate(x).view(-1, 2, 3) * 0.1 + torch.eye(2, 3)
        x = F.grid_sample(x, self.grid(theta, 128), align_corners=False)
        y = self.body(x)
        return F.grid_sample(y, self.grid(theta, 128)[:, ::2, ::2], align_corners=False)


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = (3, 32, 64, 128, 256)
        self.down = nn.Sequential(*[conv(i, o, 4 - 1, 2, act=nn.ELU) for i, o in zip(sizes, sizes[1:])])
        self.up = nn.Sequential(*[nn.Sequential(nn.ConvTranspose2d(i, o, 4, 2, 1), nn.ELU()) for i, o in
                                  zip(sizes[::-1], sizes[-2::-1])])

    def forward(self, x):
        return torch.sigmoid(self.up(self.down(x)))


class Style(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        def block(i, o, k, s=1):
            return nn.Sequential(nn.ReflectionPad2d(k // 2), nn.Conv2d(i, o, k, s), nn.InstanceNorm2d(o, affine=True), nn.ReLU())
        self.first = nn.Sequential(block(3, width, 9), block(width, 2 * width, 3, 2), block(2 * width, 4 * width, 3, 2))
        self.body = nn.ModuleList(nn.Sequential(block(4 * width, 4 * width, 3), block(4 * width, 4 * width, 3)) for _ in range(3))
        self.up = nn.ModuleList([block(4 * width, 2 * width, 3), block(2 * width, width, 3)])
        self.last = nn.Sequential(nn.ReflectionPad2d(4), nn.Conv2d(width, 3, 9))

    def forward(self, x):
        x = self.first(x)
        for block in self.body:
            x = x + block(x)
        for block in self.up:
            x = block(F.interpolate(x, scale_factor=2.0, mode='nearest'))
        return self.last(x)


class C2f(nn.Module):
    def __init__(self, i, o, n=1):
        super().__init__()
        self.first, self.last = conv(i, o, 1, act=nn.SiLU), conv((2 + n) * o // 2, o, 1, act=nn.SiLU)
        self.parts = nn.ModuleList(nn.Sequential(conv(o // 2, o // 2, act=nn.SiLU), conv(o // 2, o // 2, act=nn.SiLU)) for _ in range(n))

    def forward(self, x):
        parts = list(self.first(x).chunk(2, 1))
        for part in self.parts:
            parts.append(parts[-1] + part(parts[-1]))
        return self.last(torch.cat(parts, 1))


class YoloLike(nn.Module):
    """Backbone, pyramid and anchor-free heads of the YOLOv8 kind; boxes from distributions, no suppression."""

    def __init__(self, w=16):
        super().__init__()
        sizes = (3, w, 2 * w, 4 * w, 8 * w, 16 * w)
        self.stages = nn.ModuleList(nn.Sequential(conv(i, o, 3, 2, act=nn.SiLU), C2f(o, o)) for i, o in zip(sizes, sizes[1:]))
        self.up1, self.up2 = C2f(24 * w, 8 * w), C2f(12 * w, 4 * w)
        self.heads = nn.ModuleList(nn.Sequential(conv(c, 64, act=nn.SiLU), nn.Conv2d(64, 64 + 80, 1)) for c in (4 * w, 8 * w, 16 * w))

    def forward(self, x):
        kept = []
        for stage in self.stages:
            x = stage(x)
            kept.append(x)
        p5 = kept[4]
        p4 = self.up1(torch.cat([F.interpolate(p5, scale_factor=2.0), kept[3]], 1))
        p3 = self.up2(torch.cat([F.interpolate(p4, scale_factor=2.0), kept[2]], 1))
        out = torch.cat([head(p).flatten(2) for head, p in zip(self.heads, (p3, p4, p5))], 2)
        box, score = out.split((64, 80), 1)
        weights = torch.arange(16, dtype=torch.float32)
        box = (box.view(1, 4, 16, -1).transpose(2, 3).softmax(-1) * weights).sum(-1)
        return box, score.sigmoid()


class WaveUNet(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = (1, 16, 32, 64, 128)
        self.down = nn.ModuleList(nn.Sequential(nn.Conv1d(i, o, 8, 4, 2), nn.ReLU(), nn.Conv1d(o, 2 * o, 1), nn.GLU(1))
                                  for i, o in zip(sizes, sizes[1:]))
        self.middle = nn.LSTM(128, 128, 1, bidirectional=True)
        self.join = nn.Linear(256, 128)
        self.up = nn.ModuleList(nn.Sequential(nn.Conv1d(i, 2 * i, 1), nn.GLU(1), nn.ConvTranspose1d(i, o, 8, 4, 2))
                                for i, o in zip(sizes[::-1], sizes[-2::-1]))

    def forward(self, x):
        kept = []
        for stage in self.down:
            x = stage(x)
            kept.append(x)
        x = self.join(self.middle(x.permute(2, 0, 1))[0]).permute(1, 2, 0)
        for stage, skip in zip(self.up, kept[::-1]):
            x = stage(x + skip)
        return x


class DecodeStep(nn.Module):
    """One token through layers of the LLaMA kind, with its keys and values behind those of the tokens before."""

    def __init__(self, width, heads, layers, vocabulary=4000):
        super().__init__()
        self.heads, self.size, hidden = heads, width // heads, width * 8 // 3
        self.embed, self.head = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary, bias=False)
        names = {'q': (width, width), 'k': (width, width), 'v': (width, width), 'o': (width, width), 'gate': (width, hidden),
                 'up': (width, hidden), 'down': (hidden, width)}
        self.layers = nn.ModuleList(nn.ModuleDict({name: nn.Linear(*sizes, bias=False) for name, sizes in names.items()})
                                    for _ in range(layers))
        self.scales = nn.ParameterList(torch.ones(width) for _ in range(2 * layers + 1))

    def inputs(self, past):
        shape = (len(self.layers), 1, self.heads, past, self.size)
        angles = torch.arange(self.size // 2) * 0.1
        return (torch.randint(0, 4000, (1, 1)), torch.randn(shape), torch.randn(shape), angles.cos(), angles.sin())

    @staticmethod
    def norm(x, scale):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * scale

    def rotate(self, x, cos, sin):
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    def forward(self, ids, keys, values, cos, sin):
        x = self.embed(ids)
        new_keys, new_values = [], []
        for i, layer in enumerate(self.layers):
            y = self.norm(x, self.scales[2 * i])
            q, k, v = (layer[name](y).view(1, 1, self.heads, self.size).transpose(1, 2) for name in 'qkv')
            k = torch.cat([keys[i], self.rotate(k, cos, sin)], 2)
            v = torch.cat([values[i], v], 2)
            q = self.rotate(q, cos, sin)
            scores = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(self.size), -1)
            x = x + layer['o']((scores @ v).transpose(1, 2).reshape(1, 1, -1))
            y = self.norm(x, self.scales[2 * i + 1])
            x = x + layer['down'](F.silu(layer['gate'](y)) * layer['up'](y))
            new_keys.append(k)
            new_values.append(v)
        return self.head(self.norm(x, self.scales[-1])), torch.stack(new_keys), torch.stack(new_values)
