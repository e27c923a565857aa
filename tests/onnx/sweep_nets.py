"""Small networks of the kinds that people convert, for sweep.py: detection heads, recurrent and generative networks,
decoders with caches, signal processing; most of them at several sizes."""
import torch
import torch.nn.functional as F
import torchvision
from torch import nn


class Net(nn.Module):
    """`function(parts, *inputs)`, where parts are named modules."""

    def __init__(self, function, **parts):
        super().__init__()
        self.function, self.parts = function, nn.ModuleDict(parts)

    def forward(self, *x):
        return self.function(self.parts, *x)


def rand(*s):
    return torch.randn(*s)


class YoloHead(nn.Module):
    """Boxes by a distribution over distances (v8), decoded on a grid made from the sizes of the input."""

    def __init__(self, suppress):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.SiLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.SiLU())
        self.down = nn.Sequential(nn.Conv2d(16, 16, 3, 2, 1), nn.SiLU())
        self.heads = nn.ModuleList(nn.Conv2d(16, 4 * 8 + 5, 1) for _ in range(2))
        self.suppress = suppress

    def forward(self, x):
        levels = [self.stem(x)]
        levels.append(self.down(levels[0]))
        boxes, scores = [], []
        for stride, y, head in zip((4, 8), levels, self.heads):
            n, _, h, w = y.shape
            out = head(y).view(n, 37, -1)
            gy, gx = torch.meshgrid(torch.arange(h, dtype=x.dtype) + 0.5, torch.arange(w, dtype=x.dtype) + 0.5, indexing='ij')
            points = torch.stack([gx, gy]).view(1, 2, -1)
            sides = out[:, :32].view(n, 4, 8, -1).softmax(2)
            sides = (sides * torch.arange(8, dtype=x.dtype).view(1, 1, 8, 1)).sum(2)
            lo, hi = sides.chunk(2, 1)
            boxes.append(torch.cat([points - lo, points + hi], 1) * stride)
            scores.append(out[:, 32:].sigmoid())
        boxes, scores = torch.cat(boxes, 2).transpose(1, 2), torch.cat(scores, 2)
        if not self.suppress:
            return torch.cat([boxes, scores.transpose(1, 2)], 2)
        best, label = scores[0].max(0)
        keep = torchvision.ops.batched_nms(boxes[0], best, label, 0.5)[:20]
        return boxes[0][keep], best[keep], label[keep]


class YoloV5Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3 * 9, 3, 8, 1)
        self.register_buffer('anchors', torch.tensor([[10., 13], [16, 30], [33, 23]]).view(1, 3, 1, 1, 2))

    def forward(self, x):
        y = self.conv(x)
        n, _, h, w = y.shape
        y = y.view(n, 3, 9, h, w).permute(0, 1, 3, 4, 2).contiguous().sigmoid()
        gy, gx = torch.meshgrid(torch.arange(h), torch.arange(w), indexing='ij')
        grid = torch.stack((gx, gy), 2).expand(1, 3, h, w, 2) - 0.5
        y[..., 0:2] = (y[..., 0:2] * 2 + grid) * 8
        y[..., 2:4] = (y[..., 2:4] * 2) ** 2 * self.anchors
        return y.view(n, -1, 9)


class ConvLSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3 + 4, 16, 3, padding=1)

    def forward(self, x, h, c):
        steps = []
        for t in range(4):
            i, f, o, g = self.conv(torch.cat([x[:, t], h], 1)).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            steps.append(h)
        return torch.stack(steps, 1), h, c


class States(nn.Module):
    """A recurrent module with initial states."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x, *state):
        y, out = self.inner(x, state if len(state) > 1 else state[0])
        return (y, *out) if isinstance(out, tuple) else (y, out)


class CausalBlock(nn.Module):
    """A pre-norm decoder layer with a cache."""

    def __init__(self, dim=16, heads=4):
        super().__init__()
        self.heads, self.dim = heads, dim
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 32), nn.GELU(approximate='tanh'), nn.Linear(32, dim))

    def forward(self, x, past_k, past_v):
        n, t, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        k, v = torch.cat([past_k, k], 2), torch.cat([past_v, v], 2)
        total = k.shape[2]
        mask = torch.ones(total, total, dtype=torch.bool).tril()[total - t:]
        scores = (q @ k.transpose(-2, -1)) / (self.dim // self.heads) ** 0.5
        scores = scores.masked_fill(~mask, torch.finfo(x.dtype).min)
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, -1)
        x = x + self.out(y)
        return x + self.mlp(self.norm2(x)), k, v


class RelativeBias(nn.Module):
    """T5's attention: buckets of relative positions."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(16, 16, bias=False) for _ in range(3))
        self.bias = nn.Embedding(8, 4)

    def forward(self, x):
        n, t, _ = x.shape
        q, k, v = (m(x).view(n, t, 4, 4).transpose(1, 2) for m in (self.q, self.k, self.v))
        at = torch.arange(t)
        distance = at[None] - at[:, None]
        bucket = (distance > 0).long() * 4
        distance = distance.abs()
        far = 2 + (torch.log(distance.float() / 2) / torch.log(torch.tensor(8.)) * 2).long()
        bucket = bucket + torch.where(distance < 2, distance, torch.min(far, torch.full_like(far, 3)))
        bias = self.bias(bucket).permute(2, 0, 1)[None]
        return ((q @ k.transpose(2, 3) + bias).softmax(-1) @ v).transpose(1, 2).flatten(2)


class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = (nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU())
                                  for i, o in ((3, 8), (8, 16), (16, 8)))
        self.up = nn.ConvTranspose2d(16, 8, 2, 2)
        self.last = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        a = self.a(x)
        b = self.up(self.b(F.max_pool2d(a, 2)))
        dy, dx = a.shape[2] - b.shape[2], a.shape[3] - b.shape[3]
        b = F.pad(b, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return self.last(self.c(torch.cat([a, b], 1)))


class Detr(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 16, 8, 8), nn.ReLU())
        self.encoder = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
        self.decoder = nn.TransformerDecoderLayer(16, 4, 32, batch_first=True)
        self.query = nn.Parameter(rand(5, 16))
        self.rows, self.columns = nn.Parameter(rand(20, 8)), nn.Parameter(rand(20, 8))
        self.label, self.box = nn.Linear(16, 4), nn.Linear(16, 4)

    def forward(self, x):
        y = self.backbone(x)
        n, _, h, w = y.shape
        place = torch.cat([self.columns[:w][None].repeat(h, 1, 1), self.rows[:h][:, None].repeat(1, w, 1)], -1)
        memory = self.encoder(y.flatten(2).transpose(1, 2) + place.flatten(0, 1)[None])
        out = self.decoder(self.query[None].expand(n, -1, -1), memory)
        return self.label(out), self.box(out).sigmoid()


class Spectrum(nn.Module):
    """A log-mel front end."""

    def __init__(self):
        super().__init__()
        self.register_buffer('window', torch.hann_window(64))
        self.register_buffer('mel', torch.rand(33, 10))

    def forward(self, x):
        s = torch.stft(x, 64, 16, window=self.window, center=True, return_complex=True)
        power = torch.view_as_real(s).pow(2).sum(-1)
        return (power.transpose(1, 2) @ self.mel).clamp(min=1e-6).log()


class FourierMix(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(rand(8, 9, 5, 2))

    def forward(self, x):
        f = torch.fft.rfft2(x, norm='ortho')
        f = f * torch.view_as_complex(self.weight)
        return torch.fft.irfft2(f, s=x.shape[-2:], norm='ortho')


class Wavenet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(8, 16, 2, dilation=2 ** i) for i in range(4))
        self.mix = nn.ModuleList(nn.Conv1d(8, 8, 1) for _ in range(4))

    def forward(self, x):
        total = 0
        for i, (conv, mix) in enumerate(zip(self.layers, self.mix)):
            a, b = conv(F.pad(x, (2 ** i, 0))).chunk(2, 1)
            y = mix(a.tanh() * b.sigmoid())
            x, total = x + y, total + y
        return total


class Capsules(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(rand(1, 3, 12, 6, 4))

    def forward(self, x):
        u = (self.w @ x[:, None, :, :, None]).squeeze(-1)
        b = torch.zeros_like(u[..., :1])
        for _ in range(3):
            s = (b.softmax(1) * u).sum(2, keepdim=True)
            norm = s.norm(dim=-1, keepdim=True)
            v = norm / (1 + norm ** 2) * s
            b = b + (u * v).sum(-1, keepdim=True)
        return v.squeeze(2)


class GraphNet(nn.Module):
    """Message passing over edges, sums by scatter."""

    def __init__(self):
        super().__init__()
        self.message, self.update = nn.Linear(12, 8), nn.Linear(14, 6)

    def forward(self, x, edges):
        source, target = edges[0], edges[1]
        m = F.relu(self.message(torch.cat([x[source], x[target]], 1)))
        total = torch.zeros(x.shape[0], 8).index_add(0, target, m)
        count = torch.zeros(x.shape[0]).scatter_add(0, target, torch.ones_like(target, dtype=torch.float32))
        return self.update(torch.cat([x, total / count.clamp(min=1)[:, None]], 1))


class PointNet(nn.Module):
    """The nearest neighbours of points, and features gathered from them."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(6, 8, 1)

    def forward(self, x):
        inner = -2 * x.transpose(2, 1) @ x
        square = (x ** 2).sum(1, keepdim=True)
        index = (-square - inner - square.transpose(2, 1)).topk(4, -1)[1]
        n, c, p = x.shape
        flat = (index + torch.arange(n)[:, None, None] * p).view(-1)
        near = x.transpose(2, 1).reshape(n * p, c)[flat].view(n, p, 4, c)
        own = x.transpose(2, 1)[:, :, None].expand(-1, -1, 4, -1)
        return self.conv(torch.cat([near - own, own], 3).permute(0, 3, 1, 2)).max(-1)[0]


class MixtureOfExperts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 4)
        self.up, self.down = nn.Parameter(rand(4, 8, 16)), nn.Parameter(rand(4, 16, 8))

    def forward(self, x):
        value, index = self.gate(x).topk(2, -1)
        weight = torch.zeros(*x.shape[:-1], 4).scatter(-1, index, value.softmax(-1))
        y = F.silu(torch.einsum('...d,edf->...ef', x, self.up))
        return torch.einsum('...ef,efd,...e->...d', y, self.down, weight)


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Conv2d(1, 4, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 16, 8))
        self.decode = nn.Sequential(nn.Linear(4, 4 * 16), nn.Unflatten(1, (4, 4, 4)), nn.ConvTranspose2d(4, 1, 4, 2, 1),
                                    nn.Sigmoid())

    def forward(self, x, noise):
        mean, log = self.encode(x).chunk(2, 1)
        return self.decode(mean + noise * (0.5 * log).exp()), mean


class StyleBlock(nn.Module):
    """StyleGAN2's convolution: weights modulated by each item's style, as a convolution in groups of items."""

    def __init__(self):
        super().__init__()
        self.weight, self.style = nn.Parameter(rand(6, 4, 3, 3)), nn.Linear(5, 4)

    def forward(self, x, s):
        n, c, h, w = x.shape
        k = self.weight[None] * self.style(s)[:, None, :, None, None]
        k = k * (k.pow(2).sum([2, 3, 4], keepdim=True) + 1e-8).rsqrt()
        y = F.conv2d(x.reshape(1, n * c, h, w), k.view(-1, c, 3, 3), padding=1, groups=n)
        return F.leaky_relu(y.view(n, 6, h, w), 0.2) * 2 ** 0.5


class DynamicConv(nn.Module):
    """CondConv: the kernel is a mixture by attention."""

    def __init__(self):
        super().__init__()
        self.weight, self.route = nn.Parameter(rand(3, 6, 4, 3, 3)), nn.Linear(4, 3)

    def forward(self, x):
        a = self.route(x.mean((2, 3))).softmax(1)
        k = torch.einsum('nk,koihw->noihw', a, self.weight)
        return F.conv2d(x, k[0], padding=1)


class Correlation(nn.Module):
    """A cost volume over shifts, a warp by its flow."""

    def forward(self, a, b):
        p = F.pad(b, (2, 2, 2, 2))
        h, w = a.shape[2], a.shape[3]
        cost = torch.stack([(a * p[:, :, y:y + h, x:x + w]).mean(1) for y in range(5) for x in range(5)], 1)
        flow = torch.cat([cost[:, :12].sum(1, keepdim=True), cost[:, 12:].sum(1, keepdim=True)], 1)
        gy, gx = torch.meshgrid(torch.arange(h), torch.arange(w), indexing='ij')
        g = torch.stack([gx, gy])[None] + flow
        g = torch.stack([2 * g[:, 0] / max(w - 1, 1) - 1, 2 * g[:, 1] / max(h - 1, 1) - 1], -1)
        return cost, F.grid_sample(b, g, align_corners=True)


class Heatmap(nn.Module):
    """CenterNet's peaks: a maximum filter, the best of all, gathered offsets."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, 2, 1)

    def forward(self, x):
        y = self.conv(x)
        heat, offset = y[:, :4].sigmoid(), y[:, 4:]
        heat = heat * (F.max_pool2d(heat, 3, 1, 1) == heat).float()
        n, c, h, w = heat.shape
        score, index = heat.view(n, -1).topk(6)
        label, place = index // (h * w), index % (h * w)
        ys, xs = (place // w).float(), (place % w).float()
        moved = offset.view(n, 2, -1).transpose(1, 2).gather(1, place[..., None].expand(-1, -1, 2))
        return score, label, torch.stack([xs, ys], -1) + moved


class Crf(nn.Module):
    """Viterbi scores over known steps."""

    def __init__(self):
        super().__init__()
        self.step = nn.Parameter(rand(5, 5))

    def forward(self, x):
        score, back = x[:, 0], []
        for t in range(1, 6):
            s = score[:, :, None] + self.step + x[:, t, None]
            score, index = s.max(1)
            back.append(index)
        best = score.argmax(1)
        path = [best]
        for index in reversed(back):
            best = index.gather(1, best[:, None]).squeeze(1)
            path.append(best)
        return torch.stack(path[::-1], 1), score


class Linformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(12, 36)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        q, k, v = (t.unflatten(-1, (3, 4)).transpose(1, 2) for t in (q, k, v))
        q, k = F.elu(q) + 1, F.elu(k) + 1
        total = torch.einsum('bhnd,bhne->bhde', k, v)
        scale = 1 / (torch.einsum('bhnd,bhd->bhn', q, k.sum(2)) + 1e-6)
        return torch.einsum('bhnd,bhde,bhn->bhne', q, total, scale).transpose(1, 2).flatten(2)


class Windows(nn.Module):
    """Shifted windows with a mask and padding by the size of the input."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x):
        n, h, w, c = x.shape
        x = F.pad(x, (0, 0, 0, (4 - w % 4) % 4, 0, (4 - h % 4) % 4))
        hp, wp = x.shape[1], x.shape[2]
        x = torch.roll(x, (-2, -2), (1, 2))
        x = x.view(n, hp // 4, 4, wp // 4, 4, c).transpose(2, 3).reshape(-1, 16, c)
        q, k, v = self.qkv(x).reshape(-1, 16, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        x = (q @ k.transpose(2, 3) * 0.5).softmax(-1) @ v
        x = self.out(x.transpose(1, 2).reshape(-1, 16, c))
        x = x.view(n, hp // 4, wp // 4, 4, 4, c).transpose(2, 3).reshape(n, hp, wp, c)
        return torch.roll(x, (2, 2), (1, 2))[:, :h, :w]


class Beam(nn.Module):
    """One step of a beam search: scores of all, the best, and states gathered along."""

    def forward(self, logits, score, state):
        n, k, v = logits.shape
        total = (logits.log_softmax(-1) + score[..., None]).view(n, k * v)
        best, index = total.topk(k, -1)
        beam, token = torch.div(index, v, rounding_mode='floor'), index % v
        return best, token, state.gather(1, beam[..., None].expand(-1, -1, state.shape[2]))


class Ctc(nn.Module):
    """Greedy decoding: repeated symbols and blanks go."""

    def forward(self, x):
        best = x.argmax(-1)
        kept = torch.unique_consecutive(best)
        return kept[kept != 0]


def sort_boxes(parts, x):
    order = x[:, 4].argsort(descending=True)
    x = x[order]
    top = x[x[:, 4] > 0]
    return top[:, :4], F.pad(top[:, 4], (0, 10 - top.shape[0]))


def segments(parts, x, ids):
    total = torch.zeros(6, x.shape[1]).scatter_add(0, ids[:, None].expand(-1, x.shape[1]), x)
    most = torch.full((6, x.shape[1]), -1e9).scatter_reduce(0, ids[:, None].expand(-1, x.shape[1]), x, 'amax')
    return total, most


def soft_argmax(parts, x):
    n, c, h, w = x.shape
    p = x.view(n, c, -1).softmax(-1).view(n, c, h, w)
    ys = (p.sum(3) * torch.linspace(-1, 1, h)).sum(2)
    xs = (p.sum(2) * torch.linspace(-1, 1, w)).sum(2)
    return torch.stack([xs, ys], -1)


def preprocess(parts, x):
    x = x.permute(0, 3, 1, 2).float() / 255
    x = F.interpolate(x, size=(16, 24), mode='bilinear', antialias=False)
    return (x - torch.tensor([0.4, 0.5, 0.6]).view(1, 3, 1, 1)) / torch.tensor([0.2, 0.3, 0.2]).view(1, 3, 1, 1)


def srgan():
    return nn.Sequential(nn.Conv2d(3, 8, 9, padding=4), nn.PReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.PReLU(8),
                         nn.Conv2d(8, 32, 3, padding=1), nn.PixelShuffle(2), nn.PReLU(), nn.Conv2d(8, 3, 9, padding=4), nn.Tanh())


def weight_normed():
    return nn.Sequential(torch.nn.utils.parametrizations.weight_norm(nn.Conv1d(4, 8, 3, padding=1)), nn.GELU(),
                         torch.nn.utils.parametrizations.spectral_norm(nn.Conv1d(8, 4, 1)).eval())


def fused_bag(parts, ids, offsets):
    return parts['bag'](ids, offsets)


def networks():
    """name: (maker of a module, input sets, axes)"""
    images = [{0: 'n', 2: 'h', 3: 'w'}]
    steps = [{0: 'n', 1: 't'}]
    image_sets = [[rand(2, 3, 32, 48)], [rand(1, 3, 64, 32)]]
    text_sets = [[rand(2, 7, 16)], [rand(3, 12, 16)]]
    found = {
        'yolov8': (lambda: YoloHead(False), image_sets, images),
        'yolov8-nms': (lambda: YoloHead(True), [[rand(1, 3, 32, 48)], [rand(1, 3, 64, 32)]], [{2: 'h', 3: 'w'}]),
        'yolov5': (YoloV5Head, image_sets, images),
        'conv_lstm': (ConvLSTM, [[rand(2, 4, 3, 8, 9), rand(2, 4, 8, 9), rand(2, 4, 8, 9)]], None),
        'conv_lstm-dynamic': (ConvLSTM, [[rand(n, 4, 3, h, 9), rand(n, 4, h, 9), rand(n, 4, h, 9)] for n, h in ((2, 8), (1, 5))],
                              [{0: 'n', 3: 'h'}, {0: 'n', 2: 'h'}, {0: 'n', 2: 'h'}]),
        'causal-cache': (CausalBlock, [[rand(n, t, 16), rand(n, 4, p, 4), rand(n, 4, p, 4)]
                                       for n, t, p in ((2, 3, 5), (1, 4, 2), (3, 2, 9))],
                         [{0: 'n', 1: 't'}, {0: 'n', 2: 'p'}, {0: 'n', 2: 'p'}]),
        'causal-step': (CausalBlock, [[rand(n, 1, 16), rand(n, 4, p, 4), rand(n, 4, p, 4)] for n, p in ((2, 5), (2, 2))],
                        [None, {2: 'p'}, {2: 'p'}]),
        't5-bias': (RelativeBias, text_sets, steps),
        'unet-odd': (Unet, [[rand(2, 3, 17, 22)], [rand(1, 3, 32, 31)]], images),
        'unet-fixed': (Unet, [[rand(1, 3, 17, 23)]], None),
        'detr': (Detr, [[rand(2, 3, 32, 48)], [rand(1, 3, 64, 40)]], images),
        'detr-fixed': (Detr, [[rand(1, 3, 32, 48)]], None),
        'log-mel': (Spectrum, [[rand(2, 400)]], None),
        'log-mel-dynamic': (Spectrum, [[rand(2, 400)], [rand(1, 272)]], [{0: 'n', 1: 't'}]),
        'fourier-mix': (FourierMix, [[rand(2, 8, 9, 8)]], None),
        'fourier-mix-batch': (FourierMix, [[rand(2, 8, 9, 8)], [rand(3, 8, 9, 8)]], [{0: 'n'}]),
        'wavenet': (Wavenet, [[rand(2, 8, 30)], [rand(1, 8, 45)]], [{0: 'n', 2: 't'}]),
        'capsules': (Capsules, [[rand(2, 12, 4)], [rand(3, 12, 4)]], [{0: 'n'}]),
        'graph-net': (GraphNet, [[rand(5, 6), torch.randint(0, 5, (2, 9))], [rand(8, 6), torch.randint(0, 8, (2, 14))]],
                      [{0: 'n'}, {1: 'e'}]),
        'point-net': (PointNet, [[rand(2, 3, 12)], [rand(3, 3, 20)]], [{0: 'n', 2: 'p'}]),
        'experts': (MixtureOfExperts, [[rand(2, 5, 8)], [rand(3, 7, 8)]], steps),
        'vae': (Vae, [[rand(2, 1, 8, 8), rand(2, 4)], [rand(3, 1, 8, 8), rand(3, 4)]], [{0: 'n'}, {0: 'n'}]),
        'style-block': (StyleBlock, [[rand(2, 4, 7, 8), rand(2, 5)]], None),
        'style-block-batch': (StyleBlock, [[rand(n, 4, h, 8), rand(n, 5)] for n, h in ((2, 7), (3, 5))],
                              [{0: 'n', 2: 'h'}, {0: 'n'}]),
        'dynamic-conv': (DynamicConv, [[rand(1, 4, 7, 8)]], None),
        'correlation': (Correlation, [[rand(2, 4, 9, 8), rand(2, 4, 9, 8)], [rand(1, 4, 6, 11), rand(1, 4, 6, 11)]],
                        images * 2),
        'heatmap': (Heatmap, image_sets, images),
        'viterbi': (Crf, [[rand(2, 6, 5)], [rand(3, 6, 5)]], [{0: 'n'}]),
        'linear-attention': (Linformer, [[rand(2, 7, 12)], [rand(1, 5, 12)]], steps),
        'windows': (Windows, [[rand(2, 8, 8, 8)]], None),
        'windows-dynamic': (Windows, [[rand(2, 9, 14, 8)], [rand(1, 12, 7, 8)]], [{0: 'n', 1: 'h', 2: 'w'}]),
        'beam': (Beam, [[rand(2, 3, 9), rand(2, 3), rand(2, 3, 5)], [rand(4, 3, 9), rand(4, 3), rand(4, 3, 5)]],
                 [{0: 'n'}] * 3),
        'ctc': (Ctc, [[rand(12, 4)], [rand(20, 4)]], [{0: 't'}]),
        'sort-boxes': (lambda: Net(sort_boxes), [[rand(10, 5)]], None),
        'segments': (lambda: Net(segments), [[rand(n, 4), torch.randint(0, 6, (n,))] for n in (9, 14)],
                     [{0: 'n'}, {0: 'n'}]),
        'soft-argmax': (lambda: Net(soft_argmax), [[rand(2, 3, 7, 8)], [rand(1, 3, 9, 5)]], images),
        'preprocess': (lambda: Net(preprocess), [[torch.randint(0, 256, (n, h, 20, 3), dtype=torch.uint8)]
                                                 for n, h in ((1, 30), (2, 13))], [{0: 'n', 1: 'h'}]),
        'srgan': (srgan, [[rand(2, 3, 9, 12)], [rand(1, 3, 14, 8)]], images),
        'weight-norm': (weight_normed, [[rand(2, 4, 9)], [rand(1, 4, 13)]], [{0: 'n', 2: 't'}]),
        'embedding-bag': (lambda: Net(fused_bag, bag=nn.EmbeddingBag(20, 6, mode='sum')),
                          [[torch.randint(0, 20, (9,)), torch.tensor([0, 3, 5])]], None),
        'deform': (lambda: Net(lambda m, x: m['d'](x, m['o'](x)), o=nn.Conv2d(4, 18, 3, padding=1),
                               d=torchvision.ops.DeformConv2d(4, 6, 3, padding=1)), [[rand(2, 4, 9, 8)]], None),
        'gather-nd': (lambda: Net(lambda m, x, i: x[i[:, 0], i[:, 1]]),
                      [[rand(4, 5, 3), torch.randint(0, 4, (7, 2))], [rand(6, 5, 3), torch.randint(0, 4, (3, 2))]],
                      [{0: 'n'}, {0: 'k'}]),
        'unique': (lambda: Net(lambda m, x: torch.unique(x, return_inverse=True, return_counts=True)),
                   [[torch.randint(0, 5, (9,))], [torch.randint(0, 5, (4,))]], [{0: 'n'}]),
        'cumsum-index': (lambda: Net(lambda m, x: (x.cumsum(1) * x.long()).argmax(1)),
                         [[torch.randint(0, 2, (3, 9))], [torch.randint(0, 2, (2, 5))]], steps),
        'rank6': (lambda: Net(lambda m, a, b: (a[:, :, None, None] * b[:, None]).sum((-1, 3))),
                  [[rand(2, 3, 4, 5), rand(2, 6, 7, 4, 5)]], None),
        'rank7-dynamic': (lambda: Net(lambda m, x: x.reshape(x.shape[0], 2, 2, 2, 3, x.shape[2], 2).permute(0, 4, 1, 3, 5, 2, 6)
                                      .flatten(1, 3)), [[rand(2, 24, 5, 2)], [rand(3, 24, 4, 2)]], [{0: 'n', 2: 'h'}]),
    }
    for kind in ('LSTM', 'GRU'):
        for both in (False, True):
            d = 2 if both else 1

            def sets(kind=kind, d=d):
                return [[rand(n, t, 6)] + [rand(2 * d, n, 8) for _ in range(2 if kind == 'LSTM' else 1)]
                        for n, t in ((2, 5), (3, 9))]
            found[f'{kind.lower()}-states{"-bi" if both else ""}'] = (
                lambda k=kind, b=both: States(getattr(nn, k)(6, 8, 2, batch_first=True, bidirectional=b)), sets(),
                [{0: 'n', 1: 't'}] + [{1: 'n'}] * (2 if kind == 'LSTM' else 1))
    return found


def models(Model):
    opsets = {'deform': 19, 'fourier-mix': 18}
    return {name: Model(lambda m=make, s=sets: (m(), s), axes, opset=opsets.get(name, 0))
            for name, (make, sets, axes) in networks().items()}
