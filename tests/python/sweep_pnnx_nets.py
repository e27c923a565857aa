"""Networks for sweep_pnnx.py, with random weights: torchvision's, and those of YOLO, Whisper, BERT, CRNN and super-resolution kinds."""
import torch
import torch.nn.functional as F
import torchvision
from torch import nn

from sweep_torchvision import SMALL, Values, calm


def rand(*sizes):
    return torch.randn(*sizes)


def conv(i, o, k=3, s=1, g=1, act=nn.SiLU):
    return nn.Sequential(nn.Conv2d(i, o, k, s, k // 2, groups=g, bias=False), nn.BatchNorm2d(o), act())


class Bottleneck(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a, self.b = conv(c, c), conv(c, c)

    def forward(self, x):
        return x + self.b(self.a(x))


class C2f(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.a, self.b, self.m = conv(i, o, 1), conv(o // 2 * 3, o, 1), Bottleneck(o // 2)

    def forward(self, x):
        y = list(self.a(x).chunk(2, 1))
        y.append(self.m(y[-1]))
        return self.b(torch.cat(y, 1))


class Sppf(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a, self.b, self.m = conv(c, c // 2, 1), conv(c * 2, c, 1), nn.MaxPool2d(5, 1, 2)

    def forward(self, x):
        x = self.a(x)
        y = self.m(x)
        z = self.m(y)
        return self.b(torch.cat([x, y, z, self.m(z)], 1))


class Area(nn.Module):
    """Attention of YOLO11 and later."""

    def __init__(self, c, heads=2):
        super().__init__()
        self.heads, self.key, self.head = heads, c // heads // 2, c // heads
        self.qkv, self.pe, self.proj = conv(c, c * 2, 1, act=nn.Identity), conv(c, c, 3, g=c, act=nn.Identity), conv(c, c, 1, act=nn.Identity)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.qkv(x).view(b, self.heads, self.key * 2 + self.head, h * w).split([self.key, self.key, self.head], dim=2)
        a = ((q.transpose(-2, -1) @ k) * self.key ** -0.5).softmax(-1)
        return x + self.proj((v @ a.transpose(-2, -1)).view(b, c, h, w) + self.pe(v.reshape(b, c, h, w)))


class Yolo(nn.Module):
    """raw: maps as ncnn's examples take them; else boxes and scores."""

    def __init__(self, raw, attention=False):
        super().__init__()
        self.stem, self.p3, self.p4 = conv(3, 16, 3, 2), nn.Sequential(conv(16, 32, 3, 2), C2f(32, 32)), nn.Sequential(conv(32, 64, 3, 2), C2f(64, 64), Sppf(64))
        self.area = Area(64) if attention else nn.Identity()
        self.up, self.neck = nn.Upsample(scale_factor=2), C2f(96, 32)
        self.heads = nn.ModuleList(nn.Conv2d(c, 64 + 5, 1) for c in (32, 64))
        self.raw = raw

    def forward(self, x):
        p3 = self.p3(self.stem(x))
        p4 = self.area(self.p4(p3))
        maps = [head(y) for head, y in zip(self.heads, (self.neck(torch.cat([self.up(p4), p3], 1)), p4))]
        if self.raw:
            return tuple(y.flatten(2).transpose(1, 2) for y in maps)
        boxes, scores = torch.cat([y.flatten(2) for y in maps], 2).split([64, 5], 1)
        boxes = boxes.view(1, 4, 16, -1).transpose(2, 1).softmax(1)
        boxes = (boxes * torch.arange(16.).view(1, 16, 1, 1)).sum(1)
        points, strides = zip(*[(torch.stack(torch.meshgrid(torch.arange(y.shape[3]) + 0.5, torch.arange(y.shape[2]) + 0.5, indexing='xy'), 0).flatten(1),
                                 torch.full((y.shape[2] * y.shape[3],), s)) for y, s in zip(maps, (4., 8.))])
        points, strides = torch.cat(points, 1), torch.cat(strides)
        low, high = boxes.chunk(2, 1)
        low, high = points - low, points + high
        return torch.cat([torch.cat([(low + high) / 2, high - low], 1) * strides, scores.sigmoid()], 1)


class YoloV5(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.head = nn.Sequential(conv(12, 16), conv(16, 32, 3, 2), C2f(32, 32)), nn.Conv2d(32, 3 * 9, 1)

    def forward(self, x):
        x = torch.cat([x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]], 1)
        x = self.head(self.net(x))
        n, c, h, w = x.shape
        return x.view(n, 3, 9, h * w).permute(0, 1, 3, 2).reshape(n, -1, 9).sigmoid()


class Crnn(nn.Module):
    def __init__(self, kind, attention=False):
        super().__init__()
        self.net = nn.Sequential(conv(3, 16, act=nn.ReLU), nn.MaxPool2d(2), conv(16, 32, act=nn.ReLU), nn.MaxPool2d((2, 1)), conv(32, 32, act=nn.Hardswish), nn.MaxPool2d((8, 1)))
        self.rnn = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True) if attention else getattr(nn, kind)(32, 16, 2, bidirectional=True, batch_first=True)
        self.head, self.attention = nn.Linear(32, 40), attention

    def forward(self, x):
        x = self.net(x).squeeze(2).permute(0, 2, 1)
        return self.head(self.rnn(x) if self.attention else self.rnn(x)[0]).softmax(2)


class Sr(nn.Module):
    """RRDB blocks, as Real-ESRGAN has them."""

    def __init__(self, shuffle):
        super().__init__()
        self.first, self.dense = nn.Conv2d(3, 16, 3, padding=1), nn.ModuleList(nn.Conv2d(16 + 8 * i, 8 if i < 4 else 16, 3, padding=1) for i in range(5))
        self.last = nn.Conv2d(16, 12 if shuffle else 3, 3, padding=1)
        self.shuffle = shuffle

    def forward(self, x):
        y = self.first(x)
        maps = [y]
        for i, layer in enumerate(self.dense):
            z = layer(torch.cat(maps, 1))
            maps.append(F.leaky_relu(z, 0.2) if i < 4 else z)
        y = maps[-1] * 0.2 + y
        if self.shuffle:
            return F.pixel_shuffle(self.last(y), 2) + F.interpolate(x, scale_factor=2, mode='nearest')
        return self.last(F.interpolate(y, scale_factor=2, mode='nearest')).clamp(0, 1)


class Unet(nn.Module):
    """Waifu2x's: valid convolutions, crops, squeeze and excite."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Sequential(nn.Conv2d(3, 16, 3), nn.LeakyReLU(0.1), nn.Conv2d(16, 16, 3), nn.LeakyReLU(0.1)), nn.Conv2d(16, 32, 2, 2)
        self.c, self.d = nn.Sequential(nn.Conv2d(32, 32, 3), nn.LeakyReLU(0.1)), nn.ConvTranspose2d(32, 16, 2, 2)
        self.se = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(32, 8, 1), nn.ReLU(), nn.Conv2d(8, 32, 1), nn.Sigmoid())
        self.e = nn.ConvTranspose2d(16, 3, 4, 2, 3)

    def forward(self, x):
        x = self.a(x)
        y = self.c(F.leaky_relu(self.b(x), 0.1))
        y = F.leaky_relu(self.d(y * self.se(y)), 0.1)
        return self.e(F.pad(x, (-2, -2, -2, -2)) + y)


class Flow(nn.Module):
    """RIFE's: warps by a flow that a net makes."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(6, 16, 3, 2, 1), nn.PReLU(16), nn.Conv2d(16, 16, 3, 1, 1), nn.PReLU(16), nn.ConvTranspose2d(16, 5, 4, 2, 1))

    def forward(self, a, b):
        y = self.net(torch.cat([a, b], 1))
        flow, mask = y[:, :4], y[:, 4:].sigmoid()
        return self.warp(a, flow[:, :2]) * mask + self.warp(b, flow[:, 2:4]) * (1 - mask)

    @staticmethod
    def warp(x, flow):
        h, w = x.shape[2:]
        y, z = torch.meshgrid(torch.linspace(-1, 1, h), torch.linspace(-1, 1, w), indexing='ij')
        grid = torch.stack([z, y])[None] + torch.cat([flow[:, :1] / ((w - 1) / 2), flow[:, 1:] / ((h - 1) / 2)], 1)
        return F.grid_sample(x, grid.permute(0, 2, 3, 1), padding_mode='border', align_corners=True)


class Nafnet(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.a, self.b, self.c = nn.LayerNorm(16), nn.Conv2d(16, 32, 1), nn.Conv2d(32, 32, 3, padding=1, groups=32), nn.Conv2d(16, 16, 1)
        self.s, self.first, self.last = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(16, 16, 1)), nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 3, 3, padding=1)
        self.beta = nn.Parameter(rand(1, 16, 1, 1))

    def forward(self, x):
        y = self.first(x)
        z = self.norm(y.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        p, q = self.b(self.a(z)).chunk(2, 1)
        z = p * q
        return x + self.last(y + self.c(z * self.s(z)) * self.beta)


class Whisper(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv1d(20, 32, 3, padding=1), nn.Conv1d(32, 32, 3, 2, 1)
        self.places = nn.Parameter(rand(15, 32))
        self.blocks = nn.ModuleList(Block(32, 4) for _ in range(2))
        self.norm = nn.LayerNorm(32)

    def forward(self, x):
        x = F.gelu(self.b(F.gelu(self.a(x)))).permute(0, 2, 1) + self.places
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


class Block(nn.Module):
    def __init__(self, c, heads, fused=False):
        super().__init__()
        self.heads, self.fused = heads, fused
        self.n1, self.n2, self.qkv, self.out = nn.LayerNorm(c), nn.LayerNorm(c), nn.Linear(c, 3 * c), nn.Linear(c, c)
        self.mlp = nn.Sequential(nn.Linear(c, 2 * c), nn.GELU(), nn.Linear(2 * c, c))

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = self.qkv(self.n1(x)).reshape(n, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v) if self.fused else ((q * (c // self.heads) ** -0.5) @ k.transpose(-2, -1)).softmax(-1) @ v
        x = x + self.out(y.transpose(1, 2).reshape(n, t, c))
        return x + self.mlp(self.n2(x))


class Vit(nn.Module):
    def __init__(self, fused):
        super().__init__()
        self.patch, self.cls, self.places = nn.Conv2d(3, 32, 8, 8), nn.Parameter(rand(1, 1, 32)), nn.Parameter(rand(1, 17, 32))
        self.blocks, self.head = nn.Sequential(Block(32, 4, fused), Block(32, 4, fused)), nn.Linear(32, 10)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.blocks(x)[:, 0])


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places, self.norm = nn.Embedding(50, 32), nn.Embedding(16, 32), nn.LayerNorm(32)
        self.blocks = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation='gelu'), 2, enable_nested_tensor=False)
        self.pool = nn.Linear(32, 32)

    def forward(self, ids):
        x = self.norm(self.words(ids) + self.places(torch.arange(ids.shape[1])))
        x = self.blocks(x)
        return x, torch.tanh(self.pool(x[:, 0]))


class Shuffle(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(conv(8, 8, 1, act=nn.ReLU), conv(8, 8, 3, g=8, act=nn.Identity), conv(8, 8, 1, act=nn.ReLU))

    def forward(self, x):
        p, q = x.chunk(2, 1)
        x = torch.cat([p, self.a(q)], 1)
        n, c, h, w = x.shape
        return x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)


class Tcn(nn.Module):
    """Conv-TasNet's, on a waveform."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Conv1d(1, 16, 8, 4, bias=False), nn.ConvTranspose1d(16, 1, 8, 4, bias=False)
        self.net = nn.Sequential(nn.GroupNorm(1, 16), nn.Conv1d(16, 24, 1), nn.PReLU(), nn.GroupNorm(1, 24), nn.Conv1d(24, 24, 3, padding=2, dilation=2, groups=24), nn.PReLU(), nn.Conv1d(24, 32, 1))

    def forward(self, x):
        y = F.relu(self.encoder(x.unsqueeze(1)))
        masks = self.net(y).sigmoid().view(1, 2, 16, -1)
        return self.decoder((y.unsqueeze(1) * masks).view(2, 16, -1)).view(1, 2, -1)


def own():
    image, wide = [(1, 3, 32, 48)], [(1, 3, 64, 32)]
    return {
        'yolov8-maps': (lambda: Yolo(True), image, wide), 'yolov8-boxes': (lambda: Yolo(False), image), 'yolo11-maps': (lambda: Yolo(True, True), image, wide),
        'yolo11-boxes': (lambda: Yolo(False, True), image), 'yolov5': (YoloV5, image, wide), 'crnn-lstm': (lambda: Crnn('LSTM'), [(1, 3, 32, 48)], [(1, 3, 32, 80)]),
        'crnn-gru': (lambda: Crnn('GRU'), [(1, 3, 32, 48)]), 'svtr': (lambda: Crnn('', True), [(1, 3, 32, 48)], [(1, 3, 32, 80)]), 'espcn': (lambda: Sr(True), image, wide),
        'esrgan': (lambda: Sr(False), image, wide), 'waifu2x': (Unet, [(1, 3, 36, 52)], [(1, 3, 44, 36)]), 'rife': (Flow, [(1, 3, 32, 48)] * 2), 'nafnet': (Nafnet, image, wide),
        'whisper': (Whisper, [(1, 20, 30)]), 'vit': (lambda: Vit(False), [(1, 3, 32, 32)]), 'vit-fused': (lambda: Vit(True), [(1, 3, 32, 32)]), 'bert': (Bert, ['ids']),
        'shuffle-block': (lambda: nn.Sequential(conv(3, 16, 3, 2), Shuffle(), Shuffle()), image, wide), 'tasnet': (Tcn, [(1, 64)], [(1, 96)]),
    }


def vision(name, size):
    options = {'init_weights': False} if name in ('googlenet', 'inception_v3') else {}
    return Values(torchvision.models.get_model(name, weights=None, **options)), [[rand(1, 3, size, size)]]


def models():
    found = {}
    for name, (make, *sets) in own().items():
        found[name] = lambda m=make, s=sets: (calm(m().eval()), [[torch.randint(0, 50, (1, 9)) if t == 'ids' else rand(*t) for t in tensors] for tensors in s])
    for name, size in SMALL.items():
        found[name] = lambda n=name, s=size: (lambda module, sets: (calm(module.eval()), sets))(*vision(n, s))
    for name in ('deeplabv3_mobilenet_v3_large', 'fcn_resnet50', 'lraspp_mobilenet_v3_large'):
        found[name] = lambda n=name: (calm(Values(torchvision.models.get_model(n, weights=None, weights_backbone=None)).eval()), [[rand(1, 3, 64, 96)]])
    return found
