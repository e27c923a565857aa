"""Small modules for sweep.py: what exporters write for PyTorch's functions."""
import torch
import torch.nn.functional as F
import torchvision


class Call(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *x):
        return self.function(*x)


class First(torch.nn.Module):
    """A recurrent module: all its outputs."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        y, state = self.inner(x)
        return (y, *state) if isinstance(state, tuple) else (y, state)


class Packed(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x, lengths):
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        y, state = self.inner(packed)
        return torch.nn.utils.rnn.pad_packed_sequence(y, batch_first=True)[0]


@torch.jit.script
def power_loop(x, n: torch.Tensor):
    for i in range(int(n)):
        x = x * 0.5 + i
    return x


@torch.jit.script
def until_small(x):
    steps = 0
    while bool(x.abs().max() > 1.0):
        x = x * 0.5
        steps += 1
    return x, torch.tensor(steps)


@torch.jit.script
def choose(x):
    if bool(x.sum() > 0):
        y = x * 2
    else:
        y = x - 1
    return y


@torch.jit.script
def rows_loop(x):
    rows = []
    for i in range(x.shape[0]):
        rows.append(x[i].cumsum(0) * i)
    return torch.stack(rows)


@torch.jit.script
def decoder_loop(x, h, w):
    out = torch.zeros(0, h.shape[1])
    for i in range(x.shape[0]):
        h = torch.tanh(torch.matmul(h, w) + x[i])
        if bool(h.mean() > 0):
            h = h * 0.9
        out = torch.cat([out, h])
    return out, h


def rand(*s):
    return torch.randn(*s)


def recurrent():
    made = {}
    for kind in ('LSTM', 'GRU', 'RNN'):
        for layers in (1, 2):
            for both in (False, True):
                name = f'{kind.lower()}-{layers}{"-bi" if both else ""}'
                made[name] = lambda k=kind, l=layers, b=both: (First(getattr(torch.nn, k)(
                    8, 12, l, bidirectional=b, batch_first=True)), [[rand(2, 5, 8)]])
                made[name + '-dynamic'] = (made[name], lambda m=made[name]: [rand(1, 9, 8)], [{0: 'n', 1: 't'}])
    made['lstm-proj'] = lambda: (First(torch.nn.LSTM(8, 12, 1, proj_size=4)), [[rand(5, 2, 8)]])
    made['lstm-nobias'] = lambda: (First(torch.nn.LSTM(8, 12, 2, bias=False)), [[rand(5, 2, 8)]])
    made['rnn-relu'] = lambda: (First(torch.nn.RNN(8, 12, 2, nonlinearity='relu')), [[rand(5, 2, 8)]])
    made['lstm-packed'] = lambda: (Packed(torch.nn.LSTM(8, 12, 2, batch_first=True, bidirectional=True)),
                                   [[rand(3, 6, 8), torch.tensor([6, 4, 2])]])
    made['gru-packed'] = lambda: (Packed(torch.nn.GRU(8, 12, 1, batch_first=True)),
                                  [[rand(3, 6, 8), torch.tensor([6, 4, 2])]])
    made['lstm-packed-dynamic'] = (made['lstm-packed'], lambda: [rand(2, 9, 8), torch.tensor([9, 5])],
                                   [{0: 'n', 1: 't'}, {0: 'n'}])
    return made


def layers():
    nn = torch.nn
    made = {
        'convt1d': lambda: (nn.ConvTranspose1d(4, 6, 3, 2, 1, 1), [[rand(2, 4, 9)]]),
        'convt2d': lambda: (nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, groups=2, dilation=2), [[rand(2, 4, 9, 7)]]),
        'convt3d': lambda: (nn.ConvTranspose3d(4, 6, 3, 2, 1, 1), [[rand(2, 4, 5, 4, 6)]]),
        'conv1d': lambda: (nn.Conv1d(4, 6, 3, padding='same', dilation=2), [[rand(2, 4, 9)]]),
        'conv2d-reflect': lambda: (nn.Conv2d(4, 6, 3, padding=1, padding_mode='reflect'), [[rand(2, 4, 9, 8)]]),
        'conv2d-circular': lambda: (nn.Conv2d(4, 6, 3, padding=1, padding_mode='circular'), [[rand(2, 4, 9, 8)]]),
        'conv3d': lambda: (nn.Conv3d(4, 6, (1, 3, 3), 2, 1, groups=2), [[rand(2, 4, 5, 9, 8)]]),
        'group_norm': lambda: (nn.GroupNorm(2, 8), [[rand(2, 8, 5, 6)]]),
        'group_norm-3d': lambda: (nn.GroupNorm(2, 8), [[rand(2, 8, 5, 6, 3)]]),
        'instance_norm': lambda: (nn.InstanceNorm2d(8, affine=True), [[rand(2, 8, 5, 6)]]),
        'instance_norm-1d': lambda: (nn.InstanceNorm1d(8), [[rand(2, 8, 5)]]),
        'layer_norm-3': lambda: (nn.LayerNorm([8, 5, 6]), [[rand(2, 8, 5, 6)]]),
        'rms_norm': lambda: (nn.RMSNorm(6), [[rand(2, 8, 6)]]),
        'lrn': lambda: (nn.LocalResponseNorm(3), [[rand(2, 8, 5, 6)]]),
        'batch_norm1d': lambda: (nn.BatchNorm1d(8), [[rand(4, 8)]]),
        'batch_norm3d': lambda: (nn.BatchNorm3d(4), [[rand(2, 4, 3, 5, 6)]]),
        'mha': lambda: (Call(lambda x, m=nn.MultiheadAttention(16, 4, batch_first=True).eval(): m(x, x, x)),
                        [[rand(2, 5, 16)]]),
        'encoder': lambda: (nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), 2,
                                                  enable_nested_tensor=False), [[rand(2, 7, 16)]]),
        'encoder-seqfirst': lambda: (nn.TransformerEncoderLayer(16, 4, 32, norm_first=True, activation='gelu'),
                                     [[rand(7, 2, 16)]]),
        'transformer': lambda: (nn.Transformer(16, 4, 1, 1, 32, batch_first=True), [[rand(2, 7, 16), rand(2, 5, 16)]]),
        'embedding_bag': lambda: (nn.EmbeddingBag(20, 8, mode='mean'), [[torch.randint(0, 20, (3, 5))]]),
        'bilinear': lambda: (nn.Bilinear(5, 6, 7), [[rand(3, 5), rand(3, 6)]]),
        'prelu': lambda: (nn.PReLU(4), [[rand(2, 4, 5, 3)]]),
        'softmax2d': lambda: (nn.Softmax2d(), [[rand(2, 4, 5, 3)]]),
        'deform_conv': lambda: (torchvision.ops.DeformConv2d(4, 6, 3, padding=1),
                                [[rand(2, 4, 7, 8), rand(2, 18, 7, 8), torch.rand(2, 9, 7, 8)]], 19),
    }
    for name in ('ReLU6', 'ELU', 'CELU', 'SELU', 'GELU', 'SiLU', 'Mish', 'Hardswish', 'Hardsigmoid', 'Softplus',
                 'Softsign', 'Softshrink', 'Hardshrink', 'Tanhshrink', 'LogSigmoid', 'Hardtanh', 'LeakyReLU',
                 'Threshold', 'GLU'):
        options = {'Threshold': (0.1, 2.)}.get(name, ())
        made['act-' + name.lower()] = lambda n=name, o=options: (getattr(nn, n)(*o), [[2 * rand(2, 4, 6)]])
    return made


BOXES = torch.tensor([[1., 2., 9., 8.], [0., 0., 5., 5.], [1.5, 2.2, 9.1, 8.4], [3., 3., 12., 11.]])
FUNCTIONS = {
    'einsum-bhid': (lambda a, b: torch.einsum('bhid,bhjd->bhij', a, b), (2, 3, 4, 5), (2, 3, 6, 5)),
    'einsum-outer': (lambda a, b: torch.einsum('i,j->ij', a, b), (4,), (5,)),
    'einsum-trace': (lambda a: torch.einsum('bii->bi', a), (3, 4, 4)),
    'einsum-rank5': (lambda a, b: torch.einsum('bcihw,bcjhw->bijhw', a, b), (2, 3, 4, 5, 6), (2, 3, 4, 5, 6)),
    'einsum-three': (lambda a, b, c: torch.einsum('ij,jk,kl->il', a, b, c), (3, 4), (4, 5), (5, 6)),
    'einsum-ellipsis': (lambda a, b: torch.einsum('...ij,...jk->...ik', a, b), (2, 3, 4), (2, 4, 5)),
    'cumsum': (lambda x: x.cumsum(1), (2, 5, 4)),
    'cumprod': (lambda x: x.cumprod(1), (2, 5, 4)),
    'topk': (lambda x: x.topk(3, 1), (2, 7, 4)),
    'sort': (lambda x: x.sort(-1, descending=True), (2, 7)),
    'argsort': (lambda x: x.argsort(0), (7, 3)),
    'unfold': (lambda x: F.unfold(x, 3, padding=1, stride=2), (2, 3, 8, 7)),
    'fold': (lambda x: F.fold(x, (8, 6), 2, stride=2), (2, 12, 12)),
    'tensor-unfold': (lambda x: x.unfold(1, 4, 2), (2, 9, 3)),
    'pixel_shuffle': (lambda x: F.pixel_shuffle(x, 2), (2, 8, 3, 4)),
    'pixel_unshuffle': (lambda x: F.pixel_unshuffle(x, 2), (2, 2, 6, 4)),
    'channel_shuffle': (lambda x: F.channel_shuffle(x, 2), (2, 8, 3, 4)),
    'grid_sample': (lambda x, g: F.grid_sample(x, torch.tanh(g), align_corners=False), (2, 3, 8, 7), (2, 5, 6, 2)),
    'grid_sample-nearest': (lambda x, g: F.grid_sample(x, torch.tanh(g), mode='nearest', padding_mode='border'),
                            (2, 3, 8, 7), (2, 5, 6, 2)),
    'grid_sample-bicubic': (lambda x, g: F.grid_sample(x, torch.tanh(g), mode='bicubic', padding_mode='reflection',
                                                       align_corners=True), (2, 3, 8, 7), (2, 5, 6, 2)),
    'grid_sample-3d': (lambda x, g: F.grid_sample(x, torch.tanh(g)), (2, 3, 4, 5, 6), (2, 3, 4, 5, 3)),
    'affine_grid': (lambda t: F.affine_grid(t, [2, 3, 8, 7], align_corners=False), (2, 2, 3)),
    'scatter': (lambda x, y: x.scatter(1, torch.tensor([[0, 2, 1], [3, 0, 2]]), y), (2, 5), (2, 3)),
    'scatter_add': (lambda x, y: x.scatter_add(1, torch.tensor([[0, 2, 2], [3, 0, 3]]), y), (2, 5), (2, 3)),
    'scatter_reduce': (lambda x, y: x.scatter_reduce(1, torch.tensor([[0, 2, 2], [3, 0, 3]]), y, 'amax'), (2, 5), (2, 3)),
    'index_add': (lambda x, y: x.index_add(0, torch.tensor([0, 2, 0]), y), (4, 5), (3, 5)),
    'index_put': (lambda x, y: x.index_put((torch.tensor([0, 2]), torch.tensor([1, 3])), y), (4, 5), (2,)),
    'index-pairs': (lambda x: x[torch.tensor([0, 2]), torch.tensor([1, 3])], (4, 5, 3)),
    'index-middle': (lambda x: x[:, torch.tensor([0, 2, 1]), :, torch.tensor([1, 3, 0])], (2, 4, 5, 6)),
    'index-mask': (lambda x: x[x > 0], (4, 5)),
    'index-steps': (lambda x: x[:, 1:-1:2, ..., ::3], (2, 7, 5, 8)),
    'index-none': (lambda x: x[:, None, :, 0], (2, 7, 5)),
    'index-assign': (lambda x: assign(x), (2, 7, 5)),
    'mask-assign': (lambda x: mask_assign(x), (2, 7, 5)),
    'masked_fill': (lambda x: x.masked_fill(x > 0.5, -1e4).softmax(-1), (2, 7, 5)),
    'masked_scatter': (lambda x, y: x.masked_scatter(x > 0, y), (4, 5), (20,)),
    'where': (lambda x, y: torch.where(x > y, x, y * 2), (3, 1, 5), (4, 5)),
    'nonzero': (lambda x: torch.nonzero(x > 0), (3, 4, 5)),
    'nonzero-tuple': (lambda x: torch.where(x > 0), (3, 4)),
    'gather': (lambda x: torch.gather(x, 1, torch.tensor([[[0], [2]], [[1], [1]]]).expand(2, 2, 5)), (2, 4, 5)),
    'take_along': (lambda x: torch.take_along_dim(x, x.argsort(1), 1), (3, 5)),
    'tril': (lambda x: torch.tril(x) + torch.triu(x, 1), (2, 5, 5)),
    'flip': (lambda x: x.flip([1, 2]), (2, 3, 4)),
    'roll': (lambda x: torch.roll(x, (1, -2), (1, 2)), (2, 5, 6, 3)),
    'repeat': (lambda x: x.repeat(2, 1, 3), (2, 3, 4)),
    'repeat_interleave': (lambda x: x.repeat_interleave(3, 1), (2, 3, 4)),
    'meshgrid': (lambda a, b: torch.meshgrid(a, b, indexing='ij'), (4,), (5,)),
    'cdist': (lambda a, b: torch.cdist(a, b), (2, 4, 3), (2, 5, 3)),
    'norms': (lambda x: (x.norm(dim=1), x.norm(p=1, dim=-1), F.normalize(x, dim=1), x.norm()), (2, 4, 5)),
    'std': (lambda x: (x.std(1), x.var((1, 2), unbiased=False), torch.std_mean(x, -1)[1]), (2, 4, 5)),
    'logsumexp': (lambda x: x.logsumexp(1), (2, 4, 5)),
    'reduce-all': (lambda x: (x.sum(), x.mean((0, 2)), x.amax(1), x.argmin(), x.prod(2), x.max(1)), (2, 4, 5)),
    'any-all': (lambda x: ((x > 0).any(1), (x > -9).all(), (x > 0).sum(1)), (2, 4, 5)),
    'remainder': (lambda x, y: (torch.remainder(x, y), torch.fmod(x, y), torch.floor_divide(x, y)), (3, 5), (3, 5)),
    'atan2': (lambda x, y: torch.atan2(x, y), (3, 5), (3, 5)),
    'clamp': (lambda x, y: (x.clamp(min=0.2), x.clamp(max=y), x.clamp(-1, 1)), (3, 5), (3, 5)),
    'round': (lambda x: (x.round(), x.trunc(), x.frac(), x.sign(), x.floor().long(), x.ceil()), (3, 5)),
    'expm1': (lambda x: (x.expm1(), x.abs().log1p(), x.abs().log2(), x.exp2(), x.erf(), x.abs().rsqrt()), (3, 5)),
    'outer': (lambda x, y: (torch.outer(x, y), torch.dot(x, x), torch.mv(torch.outer(x, y), y)), (4,), (5,)),
    'baddbmm': (lambda c, a, b: torch.baddbmm(c, a, b, beta=0.5, alpha=2), (2, 3, 5), (2, 3, 4), (2, 4, 5)),
    'matmul-vec': (lambda a, b: (a @ b, b @ a.transpose(1, 2)), (2, 3, 4), (4,)),
    'matmul-rank5': (lambda a, b: a @ b, (2, 3, 4, 5, 6), (2, 3, 4, 6, 5)),
    'pad-modes': (lambda x: (F.pad(x, (1, 2, 2, 1)), F.pad(x, (1, 2, 2, 1), 'reflect'), F.pad(x, (1, 2), 'replicate'),
                             F.pad(x, (-1, 2, 0, -1))), (2, 3, 6, 7)),
    'circular-pad': (lambda x: F.pad(x, (1, 2, 2, 1), 'circular'), (2, 3, 6, 7)),
    'avg_pool': (lambda x: (F.avg_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False)),
                 (2, 3, 9, 8)),
    'max_pool-indices': (lambda x: F.max_pool2d(x, 2, return_indices=True), (2, 3, 8, 6)),
    'max_pool-ceil': (lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True), (2, 3, 8, 6)),
    'max_pool3d': (lambda x: F.max_pool3d(x, 2), (1, 3, 4, 8, 6)),
    'adaptive': (lambda x: (F.adaptive_avg_pool2d(x, (4, 2)), F.adaptive_max_pool2d(x, 1)), (2, 3, 8, 6)),
    'lp_pool': (lambda x: F.lp_pool2d(x, 2, 2), (2, 3, 8, 6)),
    'fft': (lambda x: torch.view_as_real(torch.fft.rfft(x)), (2, 16)),
    'stft': (lambda x: torch.stft(x, 16, 8, window=torch.hann_window(16), return_complex=False), (2, 64)),
    'split-uneven': (lambda x: x.split([1, 3, 2], 1), (2, 6, 3)),
    'chunk': (lambda x: x.chunk(3, -1), (2, 3, 7)),
    'unbind': (lambda x: x.unbind(1), (2, 3, 4)),
    'stack': (lambda x, y: torch.stack([x, y], 2), (2, 3, 4), (2, 3, 4)),
    'cat': (lambda x, y: torch.cat([x, y], -1), (2, 3, 4), (2, 3, 2)),
    'permute-6': (lambda x: x.reshape(2, 4, 2, 3, 2, 8).permute(0, 1, 3, 5, 2, 4).reshape(2, -1), (2, 8, 6, 8)),
    'view-7': (lambda x: x.view(2, 2, 2, 2, 2, 2, 3).permute(0, 3, 1, 5, 2, 4, 6) * 2, (4, 4, 4, 3)),
    'add-rank6': (lambda x, y: x[:, None, :, None, :, None] + y[None, :, None, :, None, :], (2, 3, 4), (2, 3, 4)),
    'softmax-rank5': (lambda x: x.softmax(2), (2, 3, 4, 5, 2)),
    'sdpa': (lambda q, k, v: F.scaled_dot_product_attention(q, k, v), (2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 8)),
    'sdpa-causal': (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), (2, 3, 5, 8), (2, 3, 5, 8),
                    (2, 3, 5, 8)),
    'bucketize': (lambda x: torch.bucketize(x, torch.tensor([-1., 0., 1.])), (3, 5)),
    'searchsorted': (lambda x: torch.searchsorted(torch.tensor([-1., 0., 1.]), x), (3, 5)),
    'one_hot': (lambda x: F.one_hot(x.argmax(-1), 5).float(), (3, 5)),
    'quickgelu': (lambda x: x * torch.sigmoid(1.702 * x), (3, 5)),
    'sinc': (lambda x: torch.sin(x) / x, (3, 5)),
    'unique': (lambda x: torch.unique((x * 2).round()), (3, 5)),
    'linspace': (lambda x: x + torch.linspace(0, 1, x.shape[-1]), (3, 5)),
    'arange-shape': (lambda x: x * torch.arange(x.shape[1])[None, :, None], (2, 5, 3)),
    'diag': (lambda x: (torch.diagonal(x, dim1=1, dim2=2), torch.diag_embed(x[:, 0])), (2, 4, 4)),
    'det': (lambda x: torch.linalg.det(x), (2, 3, 3)),
    'kron': (lambda x, y: torch.kron(x, y), (2, 3), (3, 2)),
    'tensordot': (lambda x, y: torch.tensordot(x, y, ([1, 2], [0, 1])), (2, 3, 4), (3, 4, 5)),
    'bitwise': (lambda x: ((x > 0) & (x < 1) | ~(x > 2), (x > 0) ^ (x > 1)), (3, 5)),
    'int-math': (lambda x: ((x * 10).long() // 3, (x * 10).int() % 4, (x * 10).long() << 1), (3, 5)),
    'lerp': (lambda x, y: torch.lerp(x, y, 0.3), (3, 5), (3, 5)),
    'addcmul': (lambda x, y: torch.addcmul(x, x, y, value=0.3) + torch.addcdiv(x, x, y.abs() + 1), (3, 5), (3, 5)),
    'median': (lambda x: torch.median(x, 1)[0], (3, 5)),
    'multi-head-rank6': (lambda x: torch.einsum('bhwnc,bhwmc->bhwnm', x, x).softmax(-1), (2, 3, 4, 5, 6)),
    'cross_entropy': (lambda x: F.cross_entropy(x, torch.tensor([1, 2, 0])), (3, 5)),
    'cosine': (lambda x, y: F.cosine_similarity(x, y, dim=1), (3, 5), (3, 5)),
    'double': (lambda x: (x.double() * 2).float() + x.half().float(), (3, 5)),
    'roi_align': (lambda x: torchvision.ops.roi_align(x, [BOXES], 4, 0.5, 2), (1, 3, 12, 14)),
    'roi_align-aligned': (lambda x: torchvision.ops.roi_align(x, [BOXES], (3, 5), 0.5, 2, aligned=True), (1, 3, 12, 14)),
    'roi_pool': (lambda x: torchvision.ops.roi_pool(x, [BOXES], 4, 0.5), (1, 3, 12, 14)),
    'nms': (lambda s: torchvision.ops.nms(BOXES, s, 0.5), (4,)),
    'batched_nms': (lambda s: torchvision.ops.batched_nms(BOXES, s, torch.tensor([0, 1, 0, 1]), 0.5), (4,)),
}


def assign(x):
    x = x.clone()
    x[:, 1:3, ::2] = 5
    x[0, 0] = x[1, 1]
    return x


def mask_assign(x):
    x = x.clone()
    x[x > 0] = -1
    return x


def resizes():
    made = {}
    for mode in ('nearest', 'nearest-exact', 'bilinear', 'bicubic', 'area'):
        for corners in ((None,) if mode in ('nearest', 'nearest-exact', 'area') else (False, True)):
            tail = '' if corners is None else '-corners' if corners else '-half'
            for how, options in (('size', {'size': (9, 14)}), ('scale', {'scale_factor': 2.}),
                                 ('odd', {'scale_factor': 1.5}), ('down', {'size': (3, 4)})):
                f = lambda x, m=mode, c=corners, o=options: F.interpolate(x, mode=m, align_corners=c, **o)
                made[f'resize-{mode}{tail}-{how}'] = (f, (2, 3, 6, 8))
    made['resize-antialias'] = (lambda x: F.interpolate(x, size=(4, 5), mode='bilinear', antialias=True), (2, 3, 9, 11))
    made['resize-linear'] = (lambda x: F.interpolate(x, size=11, mode='linear'), (2, 3, 6))
    made['resize-trilinear'] = (lambda x: F.interpolate(x, scale_factor=2., mode='trilinear'), (2, 3, 3, 4, 5))
    made['resize-nearest3d'] = (lambda x: F.interpolate(x, size=(4, 7, 9)), (2, 3, 3, 4, 5))
    return made


# Functions of which sizes are known only at run time: the inputs' sizes twice, and the axes that vary.
DYNAMIC = {
    'dyn-flatten': (lambda x: x.flatten(1), [(2, 3, 4, 5), (1, 3, 6, 2)], {0: 'n', 2: 'h', 3: 'w'}),
    'dyn-resize-like': (lambda x: F.interpolate(x[:, :1], size=x.shape[2:], mode='bilinear'),
                        [(2, 3, 4, 5), (1, 3, 6, 7)], {0: 'n', 2: 'h', 3: 'w'}),
    'dyn-window': (lambda x: window(x), [(2, 3, 8, 12), (1, 3, 4, 8)], {0: 'n', 2: 'h', 3: 'w'}),
    'dyn-heads': (lambda x: heads(x), [(2, 7, 12), (3, 5, 12)], {0: 'n', 1: 't'}),
    'dyn-causal': (lambda x: causal(x), [(2, 7, 7), (3, 5, 5)], {0: 'n', 1: 't', 2: 't'}),
    'dyn-arange': (lambda x: x + torch.arange(x.shape[1])[None, :, None], [(2, 7, 4), (3, 5, 4)], {0: 'n', 1: 't'}),
    'dyn-pad': (lambda x: F.pad(x, (0, (4 - x.shape[3] % 4) % 4, 0, (4 - x.shape[2] % 4) % 4)),
                [(2, 3, 5, 6), (1, 3, 8, 7)], {0: 'n', 2: 'h', 3: 'w'}),
    'dyn-half': (lambda x: x[:, : x.shape[1] // 2] + x[:, -(x.shape[1] // 2):], [(2, 8, 4), (3, 6, 4)], {0: 'n', 1: 't'}),
    'dyn-last': (lambda x: x[:, -1], [(2, 8, 4), (3, 6, 4)], {0: 'n', 1: 't'}),
    'dyn-topk': (lambda x: x.topk(3, 1), [(2, 8), (3, 6)], {0: 'n', 1: 't'}),
    'dyn-expand': (lambda x: x.mean(1, keepdim=True).expand(-1, x.shape[1], -1) + x, [(2, 8, 4), (3, 6, 4)],
                   {0: 'n', 1: 't'}),
    'dyn-zeros': (lambda x: torch.cat([torch.zeros(x.shape[0], 1, x.shape[2]), x], 1), [(2, 8, 4), (3, 6, 5)],
                  {0: 'n', 1: 't', 2: 'c'}),
    'dyn-grid': (lambda x: grid(x), [(2, 3, 8, 6), (1, 3, 4, 5)], {0: 'n', 2: 'h', 3: 'w'}),
    'dyn-adaptive1': (lambda x: F.adaptive_avg_pool2d(x, 1).flatten(1), [(2, 3, 8, 6), (1, 3, 4, 5)],
                      {0: 'n', 2: 'h', 3: 'w'}),
    'dyn-group_norm': (lambda x: F.group_norm(x, 2), [(2, 4, 8, 6), (1, 4, 4, 5)], {0: 'n', 2: 'h', 3: 'w'}),
    'dyn-pixel_shuffle': (lambda x: F.pixel_shuffle(x, 2), [(2, 8, 3, 4), (1, 8, 5, 2)], {0: 'n', 2: 'h', 3: 'w'}),
    'dyn-unfold': (lambda x: F.unfold(x, 3, padding=1), [(2, 3, 8, 6), (1, 3, 4, 5)], {0: 'n', 2: 'h', 3: 'w'}),
    'dyn-index': (lambda x: x[x[:, 0] > 0], [(6, 4), (9, 4)], {0: 'n'}),
    'dyn-scores': (lambda x: filter_boxes(x), [(40, 5), (25, 5)], {0: 'n'}),
    'dyn-roll': (lambda x: torch.roll(x, 2, 1), [(2, 8, 4), (3, 6, 4)], {0: 'n', 1: 't'}),
    'dyn-rank5': (lambda x: x.softmax(2) * 2, [(2, 3, 4, 5, 2), (1, 3, 2, 4, 3)], {0: 'n', 2: 'd', 3: 'h', 4: 'w'}),
    'dyn-cumsum': (lambda x: x.cumsum(1), [(2, 8, 4), (3, 6, 4)], {0: 'n', 1: 't'}),
    'dyn-nonzero': (lambda x: torch.nonzero(x > 0), [(2, 8, 4), (3, 6, 4)], {0: 'n', 1: 't'}),
    'dyn-flip': (lambda x: x.flip(1), [(2, 8, 4), (3, 6, 4)], {0: 'n', 1: 't'}),
    'dyn-repeat': (lambda x: x[:, :1].repeat(1, x.shape[1], 2), [(2, 8, 4), (3, 6, 4)], {0: 'n', 1: 't'}),
}


def window(x):
    n, c, h, w = x.shape
    x = x.view(n, c, h // 4, 4, w // 4, 4).permute(0, 2, 4, 3, 5, 1).reshape(-1, 16, c)
    x = (x @ x.transpose(1, 2)).softmax(-1) @ x
    return x.view(n, h // 4, w // 4, 4, 4, c).permute(0, 5, 1, 3, 2, 4).reshape(n, c, h, w)


def heads(x):
    n, t, c = x.shape
    q, k, v = x.view(n, t, 2, 6).transpose(1, 2).chunk(3, -1)
    return ((q @ k.transpose(-2, -1)).softmax(-1) @ v).transpose(1, 2).reshape(n, t, 4)


def causal(x):
    mask = torch.full((x.shape[1], x.shape[1]), float('-inf')).triu(1)
    return (x + mask).softmax(-1)


def grid(x):
    y, z = torch.meshgrid(torch.arange(x.shape[2]), torch.arange(x.shape[3]), indexing='ij')
    return F.grid_sample(x, torch.stack([z / x.shape[3], y / x.shape[2]], -1)[None].expand(x.shape[0], -1, -1, -1))


def filter_boxes(x):
    corners = torch.cat([x[:, :2], x[:, :2] + x[:, 2:4].abs() + 0.1], 1)
    keep = torch.where(x[:, 4] > -0.5)[0]
    corners, scores = corners[keep], x[keep, 4]
    keep = torchvision.ops.nms(corners, scores, 0.5)[:10]
    return corners[keep], scores[keep]


def models(Model):
    found = {}
    for name, entry in {**recurrent(), **layers()}.items():
        if isinstance(entry, tuple):
            def make(entry=entry):
                module, sets = entry[0]()
                return module, sets + [entry[1]()]
            found[name] = Model(make, entry[2])
        else:
            found[name] = Model(lambda e=entry: e()[:2], opset=19 if name == 'deform_conv' else 0)
    for name, (function, *sizes) in {**FUNCTIONS, **resizes()}.items():
        opset = 20 if name in ('grid_sample-3d', 'affine_grid') else 18 if 'antialias' in name else 0
        found[name] = Model(lambda f=function, s=sizes: (Call(f), [[rand(*t) for t in s]]), opset=opset)
    for name, (function, sizes, axes) in DYNAMIC.items():
        found[name] = Model(lambda f=function, s=sizes: (Call(f), [[rand(*t)] for t in s]), [axes])
    scripts = {
        'script-loop': (power_loop, [[rand(3, 4), torch.tensor(3)], [rand(3, 4), torch.tensor(6)]], None),
        'script-while': (until_small, [[rand(3, 4) * 9], [rand(3, 4) * 70]], None),
        'script-if': (choose, [[rand(3, 4) + 1], [rand(3, 4) - 1]], None),
        'script-rows': (rows_loop, [[rand(3, 4)], [rand(5, 4)]], [{0: 'n'}]),
        'script-decoder': (decoder_loop, [[rand(3, 2, 4), rand(2, 4), rand(4, 4)],
                                          [rand(6, 2, 4), rand(2, 4), rand(4, 4)]], [{0: 't'}, {}, {}]),
    }
    for name, (function, sets, axes) in scripts.items():
        class Script(torch.nn.Module):
            def __init__(self, f):
                super().__init__()
                self.f = f

            def forward(self, *x):
                return self.f(*x)
        found[name] = Model(lambda f=function, s=sets: (Script(f), s), axes, exporters=('ts',))
    return found
