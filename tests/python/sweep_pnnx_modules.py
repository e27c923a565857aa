"""Modules for sweep_pnnx.py: what pnnx writes for PyTorch's layers and functions. The first axis of the inputs is the batch."""
import torch
import torch.nn.functional as F
import torchvision
from torch import nn


class Call(nn.Module):
    """A function, with the modules that it calls."""

    def __init__(self, function, *parts):
        super().__init__()
        self.function, self.parts = function, nn.ModuleList(parts)

    def forward(self, *x):
        return self.function(*self.parts, *x)


def rand(*sizes):
    return torch.randn(*sizes)


def settle(module):
    """Running statistics and scales that are not 0 and 1."""
    for m in module.modules():
        if isinstance(m, nn.modules.batchnorm._BatchNorm) and m.running_mean is not None:
            m.running_mean.normal_(0, 0.1)
            m.running_var.uniform_(0.5, 1.5)
        if isinstance(m, (nn.modules.batchnorm._BatchNorm, nn.modules.instancenorm._InstanceNorm, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)):
            for p in m.parameters():
                p.uniform_(0.5, 1.5)
    return module


def convolutions():
    made = {}
    sizes = {1: (13,), 2: (9, 11), 3: (5, 6, 7)}
    for d in (1, 2, 3):
        conv, transposed = getattr(nn, f'Conv{d}d'), getattr(nn, f'ConvTranspose{d}d')
        forms = {'plain': (6, 8, 3), 'stride': (6, 8, 3, 2, 1), 'dilation': (6, 8, 3, 1, 2, 2), 'groups': (6, 9, 3, 1, 1, 1, 3), 'depthwise': (8, 8, 3, 1, 1, 1, 8),
                 'multiplier': (4, 8, 3, 1, 1, 1, 4), 'pointwise': (6, 8, 1), 'nobias': (6, 8, 2, 2, 0, 1, 1, False)}
        for name, form in forms.items():
            made[f'conv{d}d-{name}'] = conv(*form), [(1, form[0], *sizes[d])]
        made[f'conv{d}d-batch'] = conv(6, 8, 3, padding=1), [(3, 6, *sizes[d])]
        for mode in ('reflect', 'replicate', 'circular'):
            made[f'conv{d}d-{mode}'] = conv(6, 8, 3, padding=1, padding_mode=mode), [(1, 6, *sizes[d])]
        for pad in ('same', 'valid'):
            made[f'conv{d}d-{pad}'] = conv(6, 8, 4 if pad == 'same' else 3, padding=pad, dilation=2 if d < 3 else 1), [(1, 6, *sizes[d])]
        transposed_forms = {'plain': (6, 8, 3), 'stride': (6, 8, 3, 2, 1, 1), 'groups': (6, 9, 3, 2, 1, 0, 3), 'depthwise': (8, 8, 4, 2, 1, 0, 8),
                            'dilation': (6, 8, 3, 2, 2, 1, 1, True, 2), 'nobias': (6, 8, 2, 2, 0, 0, 1, False)}
        for name, form in transposed_forms.items():
            made[f'deconv{d}d-{name}'] = transposed(*form), [(1, form[0], *sizes[d])]
        made[f'lazy-weights{d}d'] = Call(lambda x, w, d=d: getattr(F, f'conv{d}d')(x, w, None, 2, 1)), [(1, 6, *sizes[d]), (8, 6, *[3] * d)]
        made[f'bn{d}d'] = getattr(nn, f'BatchNorm{d}d')(6), [(1, 6, *sizes[d])]
        made[f'conv-bn-relu{d}d'] = nn.Sequential(conv(6, 8, 3), getattr(nn, f'BatchNorm{d}d')(8), nn.ReLU()), [(1, 6, *sizes[d])]
        made[f'deconv-bn{d}d'] = nn.Sequential(transposed(6, 8, 3), getattr(nn, f'BatchNorm{d}d')(8), nn.LeakyReLU(0.2)), [(1, 6, *sizes[d])]
        made[f'instance{d}d'] = getattr(nn, f'InstanceNorm{d}d')(6, affine=True), [(1, 6, *sizes[d])]
        for pool in ('Max', 'Avg'):
            cls = getattr(nn, f'{pool}Pool{d}d')
            made[f'{pool.lower()}pool{d}d'] = cls(3, 2, 1), [(1, 6, *sizes[d])]
            made[f'{pool.lower()}pool{d}d-ceil'] = cls(2, 2, ceil_mode=True), [(1, 6, *sizes[d])]
            made[f'{pool.lower()}pool{d}d-ceil-pad'] = cls(3, 2, 1, ceil_mode=True), [(1, 6, *[n + 1 for n in sizes[d]])]
            made[f'{pool.lower()}adaptive{d}d'] = getattr(nn, f'Adaptive{pool}Pool{d}d')(tuple(range(2, 2 + d)) if d > 1 else 3), [(1, 6, *sizes[d])]
            made[f'{pool.lower()}adaptive{d}d-1'] = getattr(nn, f'Adaptive{pool}Pool{d}d')(1), [(1, 6, *sizes[d])]
        made[f'avgpool{d}d-exclude'] = getattr(nn, f'AvgPool{d}d')(3, 2, 1, count_include_pad=False, ceil_mode=True), [(1, 6, *sizes[d])]
        for mode, value in (('constant', 0.5), ('reflect', 0), ('replicate', 0), ('circular', 0)):
            made[f'pad{d}d-{mode}'] = Call(lambda x, m=mode, v=value, d=d: F.pad(x, (1, 2) * d, m, v) * 2), [(1, 6, *sizes[d])]
        made[f'crop{d}d'] = Call(lambda x, d=d: F.pad(x, (-1, -2) * d) * 2), [(1, 6, *sizes[d])]
        modes = {1: ['nearest', 'linear'], 2: ['nearest', 'bilinear', 'bicubic'], 3: ['nearest', 'trilinear']}[d]
        for mode in modes:
            for corners in (False, True) if mode != 'nearest' else (None,):
                made[f'interp{d}d-{mode}{corners}'] = (
                    Call(lambda x, m=mode, c=corners: F.interpolate(x, scale_factor=2, mode=m, align_corners=c) + 1), [(1, 6, *sizes[d])])
                made[f'interp{d}d-{mode}{corners}-size'] = (
                    Call(lambda x, m=mode, c=corners, d=d: F.interpolate(x, size=(7, 5, 9)[:d], mode=m, align_corners=c) + 1), [(1, 6, *sizes[d])])
    made['adaptive-none'] = nn.AdaptiveAvgPool2d((None, 3)), [(1, 6, 9, 11)]
    made['lppool'] = nn.LPPool2d(2, 3, 2), [(1, 6, 9, 11)]
    made['maxunpool'] = Call(lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)), [(1, 6, 8, 10)]
    made['antialias'] = Call(lambda x: F.interpolate(x, size=(5, 6), mode='bilinear', antialias=True)), [(1, 6, 9, 11)]
    made['upsample-odd'] = nn.Upsample(scale_factor=1.5, mode='bilinear'), [(1, 6, 9, 11)]
    made['upsample-axes'] = nn.Upsample(scale_factor=(3, 2)), [(1, 6, 9, 11)]
    made['resize-like'] = Call(lambda x, y: F.interpolate(x, size=y.shape[2:], mode='bilinear') * y), [(1, 6, 4, 5), (1, 6, 9, 11)]
    made['deform'] = Call(lambda a, b, x: b(x, a(x)), nn.Conv2d(6, 18, 3, padding=1), torchvision.ops.DeformConv2d(6, 8, 3, padding=1)), [(1, 6, 9, 11)]
    made['deform-mask'] = Call(lambda a, m, b, x: b(x, a(x), torch.sigmoid(m(x))), nn.Conv2d(6, 18, 3, padding=1), nn.Conv2d(6, 9, 3, padding=1),
                               torchvision.ops.DeformConv2d(6, 8, 3, padding=1)), [(1, 6, 9, 11)]
    made['weight-norm'] = nn.utils.weight_norm(nn.Conv1d(6, 8, 3)), [(1, 6, 13)]
    made['spectral-norm'] = nn.utils.spectral_norm(nn.Conv2d(6, 8, 3)), [(1, 6, 9, 11)]
    return made


def layers():
    made = {}
    for kind in ('ReLU', 'ReLU6', 'ELU', 'CELU', 'SELU', 'GELU', 'SiLU', 'Mish', 'Hardswish', 'Hardsigmoid', 'Softplus', 'Softsign', 'Softshrink', 'Hardshrink',
                 'Tanhshrink', 'LogSigmoid', 'Hardtanh', 'LeakyReLU', 'Sigmoid', 'Tanh', 'PReLU', 'RReLU'):
        for sizes in ((1, 7), (1, 4, 6), (1, 4, 5, 6), (1, 3, 4, 5, 6)):
            made[f'{kind.lower()}-{len(sizes)}'] = getattr(nn, kind)(), [sizes]
    made['prelu-channels'] = nn.PReLU(6), [(1, 6, 5, 4)]
    made['prelu-channels2'] = nn.PReLU(6), [(1, 6, 5)]
    made['threshold'] = nn.Threshold(0.1, 2.), [(1, 4, 6)]
    made['gelu-tanh'] = nn.GELU('tanh'), [(1, 4, 6)]
    made['elu-alpha'] = nn.ELU(0.3), [(1, 4, 6)]
    made['hardtanh-range'] = nn.Hardtanh(-0.5, 2), [(1, 4, 6)]
    for dim in (1, 2, -1):
        for kind in ('Softmax', 'LogSoftmax', 'Softmin', 'GLU'):
            for sizes in ((1, 4, 6), (1, 4, 6, 8), (1, 2, 4, 6, 8)):
                made[f'{kind.lower()}{dim}-{len(sizes)}'] = getattr(nn, kind)(dim=dim), [sizes]
    for kind in ('RNN', 'LSTM', 'GRU'):
        for layers in (1, 2):
            for both in (False, True):
                for bias in (True, False):
                    cell = getattr(nn, kind)(8, 12, layers, bidirectional=both, bias=bias, batch_first=True)
                    made[f'{kind.lower()}{layers}{"-bi" * both}{"" if bias else "-nobias"}'] = Call(lambda m, x: m(x)[0], cell), [(1, 5, 8)]
        cell = getattr(nn, kind)(8, 12, bidirectional=True)
        made[f'{kind.lower()}-seqfirst'] = Call(lambda m, x: m(x)[0], cell), [(5, 1, 8)]
        made[f'{kind.lower()}-last'] = Call(lambda m, x: m(x)[1], getattr(nn, kind)(8, 12, batch_first=True)), [(1, 5, 8)]
        made[f'{kind.lower()}-dynamic'] = Call(lambda m, x: m(x)[0], getattr(nn, kind)(8, 12, batch_first=True)), [(1, 5, 8)], [(1, 9, 8)]
        if kind == 'LSTM':
            made['lstm-states'] = Call(lambda m, x, h, c: m(x, (h, c)), nn.LSTM(8, 12, batch_first=True)), [(1, 5, 8), (1, 1, 12), (1, 1, 12)]
            made['lstm-states-bi'] = Call(lambda m, x, h, c: m(x, (h, c)), nn.LSTM(8, 12, bidirectional=True, batch_first=True)), [(1, 5, 8), (2, 1, 12), (2, 1, 12)]
            for both in (False, True):
                made[f'lstm-proj{"-bi" * both}'] = Call(lambda m, x: m(x)[0], nn.LSTM(8, 12, proj_size=5, bidirectional=both, batch_first=True)), [(1, 5, 8)]
        else:
            made[f'{kind.lower()}-states'] = Call(lambda m, x, h: m(x, h), getattr(nn, kind)(8, 12, batch_first=True)), [(1, 5, 8), (1, 1, 12)]
    made['rnn-relu'] = Call(lambda m, x: m(x)[0], nn.RNN(8, 12, nonlinearity='relu', batch_first=True)), [(1, 5, 8)]
    for bias in (True, False):
        made[f'mha-self{bias}'] = Call(lambda m, x: m(x, x, x)[0], nn.MultiheadAttention(16, 4, bias=bias, batch_first=True)), [(1, 5, 16)]
        made[f'mha-cross{bias}'] = Call(lambda m, x, y: m(x, y, y)[0], nn.MultiheadAttention(16, 4, bias=bias, batch_first=True)), [(1, 5, 16), (1, 7, 16)]
    made['mha-kdim'] = Call(lambda m, x, y, z: m(x, y, z)[0], nn.MultiheadAttention(16, 4, kdim=12, vdim=10, batch_first=True)), [(1, 5, 16), (1, 7, 12), (1, 7, 10)]
    made['mha-seqfirst'] = Call(lambda m, x: m(x, x, x)[0], nn.MultiheadAttention(16, 4)), [(5, 1, 16)]
    made['mha-mask'] = Call(lambda m, x, a: m(x, x, x, attn_mask=a, need_weights=False)[0], nn.MultiheadAttention(16, 4, batch_first=True)), [(1, 5, 16), (5, 5)]
    made['mha-weights'] = Call(lambda m, x: m(x, x, x, need_weights=True), nn.MultiheadAttention(16, 4, batch_first=True)), [(1, 5, 16)]
    made['mha-biaskv'] = Call(lambda m, x: m(x, x, x)[0], nn.MultiheadAttention(16, 4, add_bias_kv=True, add_zero_attn=True, batch_first=True)), [(1, 5, 16)]
    made['encoder'] = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), [(1, 5, 16)]
    made['encoder-prenorm'] = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, norm_first=True, activation='gelu'), [(1, 5, 16)]
    made['decoder'] = nn.TransformerDecoderLayer(16, 4, 32, batch_first=True), [(1, 5, 16), (1, 7, 16)]
    made['sdpa'] = Call(F.scaled_dot_product_attention), [(1, 3, 5, 8), (1, 3, 7, 8), (1, 3, 7, 8)]
    made['sdpa-mask'] = Call(F.scaled_dot_product_attention), [(1, 3, 5, 8), (1, 3, 7, 8), (1, 3, 7, 8), (1, 3, 5, 7)]
    made['sdpa-mask2'] = Call(F.scaled_dot_product_attention), [(1, 3, 5, 8), (1, 3, 7, 8), (1, 3, 7, 8), (5, 7)]
    made['sdpa-scale'] = Call(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=0.3)), [(1, 3, 5, 8), (1, 3, 7, 8), (1, 3, 7, 8)]
    made['sdpa-causal'] = Call(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)), [(1, 3, 5, 8), (1, 3, 5, 8), (1, 3, 5, 8)]
    made['sdpa-gqa'] = Call(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True)), [(1, 6, 5, 8), (1, 2, 7, 8), (1, 2, 7, 8)]
    made['sdpa-values'] = Call(F.scaled_dot_product_attention), [(1, 3, 5, 8), (1, 3, 7, 8), (1, 3, 7, 6)]
    made['embedding'] = nn.Embedding(20, 8), [('i', 20, 1, 5)]
    made['embedding-sum'] = Call(lambda a, b, x: a(x) + b(x), nn.Embedding(20, 8), nn.Embedding(20, 8)), [('i', 20, 1, 5)]
    made['embedding-bag'] = nn.EmbeddingBag(20, 8, mode='sum'), [('i', 20, 1, 5)]
    for name, norm, sizes in (('group', nn.GroupNorm(2, 8), (8, 5, 6)), ('group1', nn.GroupNorm(1, 8), (8, 5, 6)), ('group-1d', nn.GroupNorm(2, 8), (8, 5)),
                              ('group-flat', nn.GroupNorm(2, 8), (8,)), ('group-3d', nn.GroupNorm(2, 8), (8, 3, 4, 5)), ('layer', nn.LayerNorm(6), (5, 6)),
                              ('layer-map', nn.LayerNorm(6), (3, 5, 6)), ('layer-2', nn.LayerNorm([5, 6]), (3, 5, 6)), ('layer-all', nn.LayerNorm([3, 5, 6]), (3, 5, 6)),
                              ('layer-flat', nn.LayerNorm(6), (6,)), ('layer-plain', nn.LayerNorm(6, elementwise_affine=False), (5, 6)),
                              ('layer-all-plain', nn.LayerNorm([3, 5, 6], elementwise_affine=False), (3, 5, 6)), ('layer-5d', nn.LayerNorm(6), (2, 3, 5, 6)),
                              ('layer-2-2', nn.LayerNorm([5, 6]), (5, 6)), ('layer-nobias', nn.LayerNorm(6, bias=False), (5, 6)),
                              ('rms', nn.RMSNorm(6), (5, 6)), ('rms-2', nn.RMSNorm([5, 6]), (3, 5, 6)), ('rms-all', nn.RMSNorm([3, 5, 6]), (3, 5, 6)),
                              ('rms-plain', nn.RMSNorm(6, elementwise_affine=False), (5, 6)), ('lrn', nn.LocalResponseNorm(3, 1e-2), (8, 5, 6)),
                              ('instance-plain', nn.InstanceNorm2d(8), (8, 5, 6)), ('instance-stats', nn.InstanceNorm2d(8, track_running_stats=True), (8, 5, 6)),
                              ('bn-flat', nn.BatchNorm1d(8), (8,)), ('bn-noaffine', nn.BatchNorm2d(8, affine=False), (8, 5, 6))):
        made[f'norm-{name}'] = norm, [(1, *sizes)]
    for sizes in ((1, 6), (1, 5, 6), (1, 3, 5, 6), (1, 2, 3, 5, 6)):
        made[f'linear-{len(sizes)}'] = nn.Linear(6, 7), [sizes]
        made[f'linear-nobias-{len(sizes)}'] = nn.Linear(6, 7, bias=False), [sizes]
    made['linear-batch'] = nn.Linear(6, 7), [(3, 6)]
    made['linear-relu'] = nn.Sequential(nn.Linear(6, 7), nn.ReLU(), nn.Dropout(), nn.Linear(7, 3), nn.Softmax(-1)), [(1, 6)]
    made['bilinear'] = nn.Bilinear(5, 6, 7), [(1, 5), (1, 6)]
    for n in (2, 3):
        made[f'shuffle{n}'] = nn.PixelShuffle(n), [(1, 2 * n * n, 4, 5)]
        made[f'unshuffle{n}'] = nn.PixelUnshuffle(n), [(1, 2, 4 * n, 5 * n)]
    made['channel-shuffle'] = nn.ChannelShuffle(2), [(1, 8, 4, 5)]
    made['fold'] = nn.Fold((8, 6), 3, padding=1, stride=2), [(1, 27, 12)]
    made['fold-dilation'] = nn.Fold((8, 6), (3, 2), dilation=2), [(1, 12, 16)]
    made['unfold'] = nn.Unfold(3, padding=1, stride=2), [(1, 3, 8, 6)]
    made['unfold-dilation'] = nn.Unfold((3, 2), dilation=2), [(1, 3, 8, 6)]
    made['zero-pad'] = nn.ZeroPad2d((1, 2, 0, 3)), [(1, 3, 8, 6)]
    made['flatten'] = nn.Flatten(), [(1, 3, 8, 6)]
    made['unflatten'] = nn.Unflatten(1, (2, 3)), [(1, 6, 4)]
    made['cosine'] = nn.CosineSimilarity(dim=1), [(1, 6, 4), (1, 6, 4)]
    made['pairwise'] = nn.PairwiseDistance(), [(1, 6, 4), (1, 6, 4)]
    return made


def functions():
    v, m, t, q = (1, 7), (1, 4, 6), (1, 3, 4, 6), (1, 2, 3, 4, 6)
    made = {}
    unary = ('abs', 'acos', 'asin', 'atan', 'ceil', 'cos', 'exp', 'floor', 'log', 'log10', 'neg', 'reciprocal', 'round', 'rsqrt', 'sign', 'sin', 'sqrt', 'square',
             'tan', 'trunc', 'erf', 'cosh', 'sinh', 'acosh', 'asinh', 'atanh', 'log1p', 'expm1', 'log2', 'exp2', 'sigmoid', 'tanh', 'positive')
    for name in unary:
        made[f'u-{name}'] = (lambda x, f=getattr(torch, name), n=name: f(x.abs() * 0.3 + (1.1 if n == 'acosh' else 0.05) if n not in ('abs', 'sign', 'neg') else x)), t
    binary = ('add', 'sub', 'mul', 'div', 'maximum', 'minimum', 'atan2', 'fmod', 'remainder', 'floor_divide', 'logaddexp', 'pow')
    for name in binary:
        made[f'b-{name}'] = (lambda x, y, f=getattr(torch, name), n=name: f(x.abs() if n == 'pow' else x, y if n != 'floor_divide' else y.abs() + 0.5)), t, t
    for i, (a, b) in enumerate([((1, 3, 4, 6), (1, 3, 1, 1)), ((1, 3, 4, 6), (1, 1, 4, 6)), ((1, 3, 4, 6), (1, 1, 1, 6)), ((1, 3, 4, 6), (6,)), ((1, 3, 4, 6), (4, 6)),
                                ((1, 3, 4, 6), (3, 1, 1)), ((1, 3, 1, 6), (1, 1, 4, 1)), ((1, 4, 6), (1, 4, 1)), ((1, 4, 6), (1, 1, 6)), ((1, 4, 1), (1, 1, 6)), ((1, 4, 6), (6,)),
                                ((1, 2, 3, 4, 6), (1, 2, 1, 1, 1)), ((1, 2, 3, 4, 6), (6,)), ((1, 2, 3, 4, 6), (1, 1, 3, 1, 6)), ((1, 7), (1, 1)), ((1, 3, 4, 6), (1,)),
                                ((1, 3, 4, 6), (1, 4, 6)), ((1, 2, 3, 4, 6), (1, 3, 1, 6)), ((3, 4, 6), (3, 1, 6)), ((1, 3, 4, 6), (1, 3, 4, 1))]):
        made[f'cast{i}'] = (lambda x, y: x * y - x), a, b
        made[f'cast{i}-swap'] = (lambda x, y: y - x), a, b
    for i, (a, b) in enumerate([((4, 6), (6, 5)), ((1, 4, 6), (1, 6, 5)), ((1, 3, 4, 6), (1, 3, 6, 5)), ((1, 3, 4, 6), (6, 5)), ((1, 3, 4, 6), (1, 1, 6, 5)), ((1, 4, 6), (6,)),
                                ((6,), (1, 6, 5)), ((1, 2, 3, 4, 6), (1, 2, 3, 6, 5)), ((6,), (6,)), ((1, 4, 6), (1, 3, 6, 5)), ((1, 1, 3, 4, 6), (1, 2, 1, 6, 5)), ((2, 4, 6), (2, 6, 5))]):
        made[f'matmul{i}'] = (lambda x, y: torch.matmul(x, y)), a, b
    constant = torch.randn(6, 5)
    made['matmul-constant'] = (lambda x: x @ constant), t
    made['matmul-transposed'] = (lambda x, y: x @ y.transpose(-1, -2)), t, t
    made['bmm'] = (lambda x, y: torch.bmm(x, y)), (3, 4, 6), (3, 6, 5)
    made['addmm'] = (lambda x, a, b: torch.addmm(x, a, b, beta=0.5, alpha=2)), (4, 5), (4, 6), (6, 5)
    made['baddbmm'] = (lambda x, a, b: torch.baddbmm(x, a, b, beta=0.5, alpha=2)), (3, 4, 5), (3, 4, 6), (3, 6, 5)
    for equation, *sizes in (('bhid,bhjd->bhij', (1, 3, 4, 6), (1, 3, 5, 6)), ('bij,bjk->bik', (1, 4, 6), (1, 6, 5)), ('bchw,cd->bdhw', (1, 3, 4, 6), (3, 5)), ('ij,jk->ik', (4, 6), (6, 5)),
                            ('bij->bji', m), ('bij->bi', m), ('bij,bij->bi', m, m), ('nctkv,kvw->nctw', (1, 3, 4, 2, 5), (2, 5, 6)), ('bnij,bnjk,bnkl->bnil', (1, 2, 3, 4), (1, 2, 4, 5), (1, 2, 5, 6))):
        made[f'einsum-{equation}'] = (lambda *x, e=equation: torch.einsum(e, *x)), *sizes
    for name in ('sum', 'mean', 'amax', 'amin', 'prod', 'logsumexp', 'std', 'var'):
        for k, dims in enumerate([(1,), (2,), (-1,), (1, 2), (2, 3), (1, 3), (1, 2, 3)]):
            if name == 'prod' and len(dims) > 1:
                continue
            for keep in (False, True):
                made[f'r-{name}{k}{keep}'] = (lambda x, n=name, d=dims, k=keep: getattr(torch, n)(x, d[0] if n == 'prod' else d, keepdim=k) * 2), t
    for name in ('sum', 'mean', 'amax'):
        for k, dims in enumerate([(1,), (2,), (3,), (4,), (1, 2), (2, 4), (1, 3, 4), (2, 3, 4)]):
            for keep in (False, True):
                made[f'r4-{name}{k}{keep}'] = (lambda x, n=name, d=dims, k=keep: getattr(torch, n)(x, d, keepdim=k) * 2), q
        for k, dims in enumerate([(1,), (2,), (1, 2)]):
            for keep in (False, True):
                made[f'r2-{name}{k}{keep}'] = (lambda x, n=name, d=dims, k=keep: getattr(torch, n)(x, d, keepdim=k) * 2), m
    for p in (1, 2):
        for dim in (1, 2, 3):
            for keep in (False, True):
                made[f'norm{p}-{dim}{keep}'] = (lambda x, p=p, d=dim, k=keep: torch.norm(x, p=p, dim=d, keepdim=k)), t
            made[f'normalize{p}-{dim}'] = (lambda x, p=p, d=dim: F.normalize(x, p=p, dim=d)), t
    slices = {'step': lambda x: x[:, :, ::2], 'both': lambda x: x[:, 1:, 1:3, 2:-1], 'steps': lambda x: x[:, ::2, 1::2, ::3], 'select': lambda x: x[:, 1], 'select-last': lambda x: x[..., -1],
              'select-two': lambda x: x[:, 1, :, 2], 'none': lambda x: x[:, None, :, 1], 'range': lambda x: x[:, :, :-1], 'list': lambda x: x[:, [0, 2, 1]], 'list-last': lambda x: x[..., [0, 3, 3]],
              'narrow': lambda x: x.narrow(2, 1, 2), 'focus': lambda x: torch.cat([x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]], 1),
              'index_select': lambda x: torch.index_select(x, 2, torch.tensor([3, 0, 1])), 'index_select1': lambda x: torch.index_select(x, 1, torch.tensor([2, 0])),
              'chunk1': lambda x: x.chunk(3, 1), 'chunk2': lambda x: x.chunk(2, 2), 'chunk3': lambda x: x.chunk(4, 3), 'split': lambda x: x.split([1, 2], 1), 'split3': lambda x: x.split([1, 3, 2], 3),
              'split-each': lambda x: x.split(2, -1), 'unbind1': lambda x: x.unbind(1), 'unbind2': lambda x: x.unbind(2), 'unbind3': lambda x: x.unbind(3),
              'tensor_split': lambda x: torch.tensor_split(x, 2, 3), 'flip1': lambda x: x.flip(1), 'flip23': lambda x: x.flip([2, 3]), 'flip3': lambda x: x.flip(-1), 'flip123': lambda x: x.flip([1, 2, 3]),
              'roll': lambda x: torch.roll(x, (1, -2), (2, 3)), 'roll1': lambda x: torch.roll(x, 1, 1), 'repeat': lambda x: x.repeat(1, 2, 1, 3), 'repeat-more': lambda x: x.repeat(1, 2, 1, 1, 3),
              'expand': lambda x: x[:, :1].expand(-1, 5, -1, -1) * 2, 'expand-last': lambda x: x[..., :1].expand(1, 3, 4, 5) * 2, 'expand-new': lambda x: x[:, :, None].expand(-1, -1, 2, -1, -1) * 1.5,
              'tile': lambda x: torch.tile(x, (2, 1, 2)), 'repeat_interleave': lambda x: x.repeat_interleave(2, 2), 'cumsum1': lambda x: x.cumsum(1), 'cumsum2': lambda x: x.cumsum(2),
              'cumsum3': lambda x: x.cumsum(3), 'diag': lambda x: torch.diagonal(x[:, 0], dim1=1, dim2=2), 'tril': lambda x: torch.tril(x), 'softmax-where': lambda x: torch.where(x > 0, x, x * 0.1),
              'masked': lambda x: x.masked_fill(x > 0.5, -3.), 'clamp': lambda x: x.clamp(-0.5, 0.7), 'clamp-min': lambda x: x.clamp(min=0.1), 'clamp-max': lambda x: x.clamp(max=0.1),
              'pow-2': lambda x: x ** 2, 'pow-half': lambda x: x.abs() ** 0.5, 'pow-3': lambda x: x ** 3, 'rpow': lambda x: 2 ** x, 'rsub': lambda x: 1 - x, 'rdiv': lambda x: 1 / (x.abs() + 1),
              'quick-gelu': lambda x: x * torch.sigmoid(1.702 * x), 'expression': lambda x: (x + 1).abs().sqrt() * 3 - x / 2 + x.exp().clamp(max=4), 'swish': lambda x: x * torch.sigmoid(x),
              'hswish': lambda x: x * F.relu6(x + 3) / 6, 'mish': lambda x: x * torch.tanh(F.softplus(x)), 'gelu-erf': lambda x: x * 0.5 * (1 + torch.erf(x / 2 ** 0.5)),
              'gelu-tanh': lambda x: 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x ** 3))), 'squeeze': lambda x: x[:, :1].squeeze(1) * 2, 'unsqueeze1': lambda x: x.unsqueeze(1) * 2,
              'unsqueeze-last': lambda x: x.unsqueeze(-1) * 2, 'softmax-2': lambda x: x.softmax(2), 'argmax': lambda x: x.argmax(1), 'topk': lambda x: x.topk(2, -1)[0], 'max': lambda x: x.max(2)[0],
              'mean-all': lambda x: x.mean(), 'one-minus': lambda x: torch.ones_like(x) - x, 'zeros': lambda x: torch.cat([x, torch.zeros(1, 3, 4, 1)], 3), 'full': lambda x: torch.full_like(x, 2.5) * x,
              'arange': lambda x: x + torch.arange(6), 'constant-map': lambda x: x * torch.linspace(0, 1, 24).view(4, 6), 'constant-channel': lambda x: x - torch.tensor([.4, .5, .6]).view(1, 3, 1, 1),
              'mean-std': lambda x: (x - x.mean((2, 3), keepdim=True)) / (x.std((2, 3), keepdim=True) + 1e-3), 'channel-layernorm': lambda x: F.layer_norm(x.permute(0, 2, 3, 1), (3,)).permute(0, 3, 1, 2),
              'grn': lambda x: x / (torch.norm(x, p=2, dim=(2, 3), keepdim=True).mean(1, keepdim=True) + 1e-6) + x, 'l2-cosine': lambda x: F.normalize(x.flatten(1), dim=1),
              'slice-assign': lambda x: assign(x), 'complex': lambda x: torch.view_as_real(torch.fft.rfft(x)), 'gt': lambda x: (x > 0).float() * x, 'hypot': lambda x: torch.hypot(x, x + 1),
              'lerp': lambda x: torch.lerp(x, x * x, 0.3), 'addcmul': lambda x: torch.addcmul(x, x, x + 1, value=0.3), 'var-mean': lambda x: torch.var_mean(x, (2, 3))[0], 'sincos': lambda x: torch.cat([x.sin(), x.cos()], 1),
              'stack0': lambda x: torch.stack([x, x * 2], 1), 'stack2': lambda x: torch.stack([x, x * 2], 2), 'stack-last': lambda x: torch.stack([x, x * 2], -1), 'aminmax': lambda x: (x.amin(1), x.amax(2)),
              'frobenius': lambda x: torch.norm(x), 'bool-and': lambda x: ((x > 0) & (x < 1)).float(), 'logit': lambda x: torch.logit(torch.sigmoid(x), 1e-3), 'scalar-tensor': lambda x: x * torch.tensor(0.3) + torch.tensor([2.])}
    for name, f in slices.items():
        made[f's-{name}'] = f, t
    shapes = {'flatten': (lambda x: x.flatten(1), t), 'flatten2': (lambda x: x.flatten(2), t), 'tokens': (lambda x: x.flatten(2).transpose(1, 2), t), 'maps': (lambda x: x.transpose(1, 2).reshape(1, 6, 2, 2), m),
              'heads': (lambda x: x.view(1, 4, 2, 3).permute(0, 2, 1, 3), m), 'heads-back': (lambda x: x.permute(0, 2, 1, 3).reshape(1, 4, 18), t),
              'windows': (lambda x: x.view(1, 2, 2, 3, 2, 3).permute(0, 1, 3, 2, 4, 5).reshape(-1, 4, 3), (1, 4, 6, 3)), 'shuffle': (lambda x: x.view(1, 2, 4, 4, 6).transpose(1, 2).reshape(1, 8, 4, 6), (1, 8, 4, 6)),
              'squeeze': (lambda x: x.squeeze(), (1, 1, 5, 1)), 'squeeze2': (lambda x: x.squeeze(2).permute(0, 2, 1), (1, 5, 1, 6)), 'yolo': (lambda x: x.view(1, 3, 5, 4, 6).permute(0, 1, 3, 4, 2).sigmoid(), (1, 15, 4, 6)),
              'yolo-flat': (lambda x: x.permute(0, 2, 3, 1).reshape(1, -1, 5), (1, 15, 4, 6)), 'rank6': (lambda x: x.view(1, 2, 2, 2, 3, 2).permute(0, 1, 3, 2, 5, 4).reshape(1, 8, 6), (1, 4, 4, 3)),
              'unflatten': (lambda x: x.unflatten(-1, (2, 3)).mean(-1), t), 'batch-merge': (lambda x: x.reshape(3, 4, 6).transpose(1, 2), t), 'movedim': (lambda x: x.movedim(1, -1), t),
              'swapaxes': (lambda x: x.swapaxes(1, 3), t), 'contiguous': (lambda x: x.permute(0, 3, 1, 2).contiguous().view(1, 18, 4), t), 'dfl': (lambda x: (x.view(1, 4, 4, 6).transpose(2, 1).softmax(1) * torch.arange(4.).view(1, 4, 1, 1)).sum(1), (1, 16, 6)),
              'vec-view': (lambda x: x.view(1, 7, 1, 1) * 2, v), 'batch1': (lambda x: x.reshape(-1, 6), t)}
    for k, order in enumerate([(0, 1, 3, 2), (0, 2, 1, 3), (0, 2, 3, 1), (0, 3, 1, 2), (0, 3, 2, 1)]):
        shapes[f'permute{k}'] = (lambda x, o=order: x.permute(o), t)
    import itertools
    for order in itertools.permutations((1, 2, 3, 4)):
        shapes[f'permute4-{"".join(map(str, order))}'] = (lambda x, o=order: x.permute(0, *o), q)
    for name, (f, sizes) in shapes.items():
        made[f'v-{name}'] = f, sizes
    for k, sizes in enumerate((v, m, t, q)):
        for axis in range(1, len(sizes)):
            made[f'cat{k}-{axis}'] = (lambda x, y, a=axis: torch.cat([x, y * 2, x], a)), sizes, sizes
            made[f'softmax{k}-{axis}'] = (lambda x, a=axis: x.softmax(a)), sizes
            made[f'split{k}-{axis}'] = (lambda x, a=axis: x.split([1, x.shape[a] - 1], a)), sizes
            made[f'slice{k}-{axis}'] = (lambda x, a=axis: x.narrow(a, 1, x.shape[a] - 1) * 2), sizes
            made[f'select{k}-{axis}'] = (lambda x, a=axis: x.select(a, 1) * 2), sizes
            made[f'cumsum{k}-{axis}'] = (lambda x, a=axis: x.cumsum(a)), sizes
            made[f'flip{k}-{axis}'] = (lambda x, a=axis: x.flip(a)), sizes
            made[f'logsoftmax{k}-{axis}'] = (lambda x, a=axis: x.log_softmax(a)), sizes
            made[f'stack{k}-{axis}'] = (lambda x, y, a=axis: torch.stack([x, y], a)), sizes, sizes
            made[f'argmax{k}-{axis}'] = (lambda x, a=axis: x.argmax(a, keepdim=True)), sizes
    for mode in ('bilinear', 'nearest', 'bicubic'):
        for pad in ('zeros', 'border', 'reflection'):
            for corners in (False, True):
                made[f'grid-{mode}-{pad}{corners}'] = (lambda x, g, m=mode, p=pad, c=corners: F.grid_sample(x, g, m, p, c)), (1, 3, 8, 7), (1, 5, 6, 2)
    for mode in ('bilinear', 'nearest'):
        for pad in ('zeros', 'border', 'reflection'):
            made[f'grid3d-{mode}-{pad}'] = (lambda x, g, m=mode, p=pad: F.grid_sample(x, g, m, p, False)), (1, 3, 4, 8, 7), (1, 3, 5, 6, 3)
    made['grid-permuted'] = (lambda x, f: F.grid_sample(x, f.permute(0, 2, 3, 1).tanh(), align_corners=True)), (1, 3, 8, 7), (1, 2, 5, 6)
    made['warp'] = warp, (1, 3, 8, 7), (1, 2, 8, 7)
    made['affine-grid'] = (lambda t: F.affine_grid(t, [1, 3, 8, 7], align_corners=False)), (1, 2, 3)
    for k, options in enumerate([dict(n_fft=16), dict(n_fft=16, hop_length=4, center=False), dict(n_fft=16, win_length=12, hop_length=5, normalized=True), dict(n_fft=16, onesided=False), dict(n_fft=16, pad_mode='constant')]):
        window = torch.hann_window(options.get('win_length', 16))
        made[f'stft{k}'] = (lambda x, o=options, w=window: torch.view_as_real(torch.stft(x, window=w, return_complex=True, **o))), (1, 64)
        made[f'stft-power{k}'] = (lambda x, o=options, w=window: torch.stft(x, window=w, return_complex=True, **o).abs() ** 2), (1, 64)
        made[f'stft-abs{k}'] = (lambda x, o=options, w=window: torch.stft(x, window=w, return_complex=True, **o).abs()), (1, 64)
        if options.get('onesided', True) and options.get('center', True):
            o = {n: v for n, v in options.items() if n != 'pad_mode'}
            made[f'istft{k}'] = (lambda x, o=o, w=window: torch.istft(torch.view_as_complex(x), window=w, **o)), (1, 9, 13, 2)
    made['roi-align'] = (lambda x: torchvision.ops.roi_align(x, [torch.tensor([[1., 2., 9., 8.]])], 4, 0.5, 2)), (1, 3, 12, 14)
    return made


def dynamic():
    a, b = [(1, 3, 8, 12)], [(1, 3, 16, 20)]
    made = {
        'conv': (nn.Conv2d(3, 4, 3, 2, 1), a, b),
        'flatten': (Call(lambda x: x.flatten(2).transpose(1, 2)), a, b),
        'resize-like': (Call(lambda c, x: F.interpolate(c(x), size=x.shape[2:], mode='bilinear') + x, nn.Conv2d(3, 3, 3, 2, 1)), a, b),
        'resize-half': (Call(lambda x: F.interpolate(x, size=(x.shape[2] // 2, x.shape[3] // 2), mode='bilinear')), a, b),
        'heads': (Call(lambda x: x.view(1, x.shape[1], 2, 3).permute(0, 2, 1, 3)), [(1, 5, 6)], [(1, 9, 6)]),
        'attention': (Call(lambda x: attention(x)), [(1, 5, 18)], [(1, 9, 18)]),
        'half': (Call(lambda x: x[:, :, : x.shape[2] // 2] * 2), a, b),
        'halves': (Call(lambda x: x.chunk(2, 2)), a, b),
        'last': (Call(lambda x: x[:, -1]), [(1, 5, 6)], [(1, 9, 6)]),
        'mean': (Call(lambda x: x.mean((2, 3))), a, b),
        'adaptive': (nn.AdaptiveAvgPool2d(3), a, b),
        'focus': (Call(lambda x: torch.cat([x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]], 1)), a, b),
        'shuffle': (nn.PixelShuffle(2), [(1, 8, 3, 4)], [(1, 8, 5, 2)]),
        'channel-shuffle': (Call(lambda x: x.view(1, 2, 4, x.shape[2], x.shape[3]).transpose(1, 2).reshape(1, 8, x.shape[2], x.shape[3])), [(1, 8, 3, 4)], [(1, 8, 5, 2)]),
        'upsample': (nn.Upsample(scale_factor=2, mode='bilinear'), a, b),
        'pad': (Call(lambda x: F.pad(x, (0, 8 - x.shape[3] % 8, 0, 8 - x.shape[2] % 8))), a, [(1, 3, 13, 17)]),
        'roll': (Call(lambda x: torch.roll(x, (2, 1), (2, 3))), a, b),
        'lstm': (Call(lambda m, x: m(x.squeeze(2).permute(0, 2, 1))[0], nn.LSTM(3, 4, bidirectional=True, batch_first=True)), [(1, 3, 1, 12)], [(1, 3, 1, 20)]),
        'windows': (Call(lambda x: windows(x)), [(1, 8, 12, 3)], [(1, 4, 8, 3)]),
        'crop-to': (Call(lambda x, y: x[:, :, :y.shape[2], :y.shape[3]] + y), [(1, 3, 9, 13), (1, 3, 8, 12)], [(1, 3, 17, 20), (1, 3, 16, 19)]),
        'expand': (Call(lambda x: x.mean(2, keepdim=True).expand_as(x) * x), a, b),
        'positions': (Call(lambda p, x: x + p(torch.arange(x.shape[1])), nn.Embedding(20, 6)), [(1, 5, 6)], [(1, 9, 6)]),
        'embedding': (nn.Embedding(20, 6), [('i', 20, 1, 5)], [('i', 20, 1, 9)]),
        'transformer': (nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), [(1, 5, 16)], [(1, 9, 16)]),
        'conv1d': (nn.Sequential(nn.Conv1d(6, 8, 3, 2, 1), nn.GELU()), [(1, 6, 13)], [(1, 6, 20)]),
        'scale-by-size': (Call(lambda x: x * x.shape[2] / (x.shape[3] - 1)), a, b),
        'mean-std': (Call(lambda x: (x - x.mean((2, 3), keepdim=True)) / (x.std((2, 3), keepdim=True) + 1e-3)), a, b),
        'stack': (Call(lambda x: torch.stack([x, x + 1], 2).flatten(1, 2)), a, b),
        'yolo': (Call(lambda c, x: yolo(c(x)), nn.Conv2d(3, 18, 1)), a, b),
        'ceil-pool': (nn.MaxPool2d(3, 2, ceil_mode=True), a, [(1, 3, 13, 18)]),
    }
    return {f'dynamic-{name}': entry for name, entry in made.items()}


def yolo(x):
    n, c, h, w = x.shape
    return x.view(n, 3, 6, h, w).permute(0, 1, 3, 4, 2).reshape(n, -1, 6).sigmoid()


def windows(x):
    n, h, w, c = x.shape
    y = x.view(n, h // 4, 4, w // 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, c)
    y = y @ y.transpose(1, 2) @ y
    return y.view(n, h // 4, w // 4, 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(n, h, w, c)


def attention(x):
    n, t, c = x.shape
    q, k, v = x.reshape(n, t, 3, 2, 3).permute(2, 0, 3, 1, 4).unbind(0)
    return ((q @ k.transpose(-2, -1)).softmax(-1) @ v).transpose(1, 2).reshape(n, t, 6)


def assign(x):
    x = x.clone()
    x[:, 1:3, ::2] = 5
    return x


def warp(x, flow):
    n, c, h, w = x.shape
    y, z = torch.meshgrid(torch.linspace(-1, 1, h), torch.linspace(-1, 1, w), indexing='ij')
    grid = torch.stack([z, y], 0)[None]
    return F.grid_sample(x, (grid + torch.cat([flow[:, :1] / (w / 2), flow[:, 1:] / (h / 2)], 1)).permute(0, 2, 3, 1), align_corners=True)


def tensor(sizes):
    return torch.randint(0, sizes[1], sizes[2:]) if sizes[0] == 'i' else rand(*sizes)


def models():
    entries = {**convolutions(), **layers(), **dynamic()}
    entries.update({name: (Call(f), list(sizes)) for name, (f, *sizes) in functions().items()})
    return {name: lambda e=entry: (settle(e[0]), [[tensor(s) for s in sizes] for sizes in e[1:]]) for name, entry in entries.items()}
