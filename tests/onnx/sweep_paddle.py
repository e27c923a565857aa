"""Networks of PaddlePaddle with random weights, written by paddle2onnx, for sweep.py."""

import numpy as np
import paddle
from paddle import nn
import paddle.nn.functional as F


class One(nn.Layer):
    def __init__(self, function, *layers):
        super().__init__()
        self.function, self.parts = function, nn.LayerList(layers)

    def forward(self, x):
        return self.function(self.parts, x)


class Two(One):
    def forward(self, x, y):
        return self.function(self.parts, x, y)


def conv_bn(i, o, k=3, s=1, groups=1, act=None):
    parts = [nn.Conv2D(i, o, k, s, k // 2, groups=groups, bias_attr=False), nn.BatchNorm2D(o)]
    return nn.Sequential(*parts, *([act()] if act else []))


def resized(x, like):
    return F.interpolate(x, size=paddle.shape(like)[2:], mode='nearest')


class SE(nn.Layer):
    def __init__(self, c):
        super().__init__()
        self.pool, self.a, self.b = nn.AdaptiveAvgPool2D(1), nn.Conv2D(c, c // 4, 1), nn.Conv2D(c // 4, c, 1)

    def forward(self, x):
        return x * F.hardsigmoid(self.b(F.relu(self.a(self.pool(x)))), slope=0.2, offset=0.5)


class DBNet(nn.Layer):
    """PP-OCR's detector: backbone of inverted residuals, feature pyramid, head of transposed convolutions."""

    def __init__(self):
        super().__init__()
        self.stem = conv_bn(3, 8, 3, 2, act=nn.Hardswish)
        self.stages = nn.LayerList(
            [
                nn.Sequential(
                    conv_bn(8 << i, 16 << i, 1, act=nn.Hardswish), conv_bn(16 << i, 16 << i, 5, 2, 16 << i, nn.Hardswish), SE(16 << i)
                )
                for i in range(3)
            ]
        )
        self.ins = nn.LayerList([nn.Conv2D(16 << i, 16, 1, bias_attr=False) for i in range(3)])
        self.head = nn.Sequential(
            conv_bn(48, 16, act=nn.ReLU), nn.Conv2DTranspose(16, 16, 2, 2), nn.BatchNorm2D(16), nn.ReLU(), nn.Conv2DTranspose(16, 1, 2, 2)
        )

    def forward(self, x):
        x, found = self.stem(x), []
        for stage in self.stages:
            x = stage(x)
            found.append(x)
        a, b, c = [m(f) for m, f in zip(self.ins, found)]
        b = b + resized(c, b)
        a = a + resized(b, a)
        fuse = paddle.concat([resized(c, a), resized(b, a), a], 1)
        return F.sigmoid(self.head(fuse))


class SVTR(nn.Layer):
    """PP-OCR's recogniser: convolutions, attention over columns, CTC."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(conv_bn(3, 16, 3, 2, act=nn.GELU), conv_bn(16, 32, 3, 2, act=nn.GELU))
        self.norm, self.qkv, self.proj = nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(32, 32)
        self.lstm, self.out = nn.LSTM(32, 16, direction='bidirectional'), nn.Linear(32, 20)

    def forward(self, x):
        x = self.stem(x)
        x = F.avg_pool2d(x, [x.shape[2], 1]) if isinstance(x.shape[2], int) and x.shape[2] > 0 else x.mean(2, keepdim=True)
        x = x.squeeze(2).transpose([0, 2, 1])
        q, k, v = self.qkv(self.norm(x)).reshape([0, -1, 3, 4, 8]).transpose([2, 0, 3, 1, 4])
        a = F.softmax(q.matmul(k.transpose([0, 1, 3, 2])) * 8**-0.5, -1)
        x = x + self.proj(a.matmul(v).transpose([0, 2, 1, 3]).reshape([0, -1, 32]))
        return F.softmax(self.out(self.lstm(x)[0]), 2)


class PPYOLOE(nn.Layer):
    """Heads of PP-YOLOE: distributions of edges, anchors' points, boxes; with multiclass NMS outside."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(conv_bn(3, 16, 3, 2, act=nn.Swish), conv_bn(16, 32, 3, 2, act=nn.Swish))
        self.down = conv_bn(32, 32, 3, 2, act=nn.Swish)
        self.cls, self.reg = nn.Conv2D(32, 4, 3, padding=1), nn.Conv2D(32, 4 * 9, 3, padding=1)

    def forward(self, x):
        a = self.stem(x)
        b = self.down(a)
        scores, boxes = [], []
        for f, stride in ((a, 4), (b, 8)):
            n, _, h, w = f.shape
            f = f * F.sigmoid(F.adaptive_avg_pool2d(f, (1, 1)))
            scores.append(F.sigmoid(self.cls(f)).reshape([-1, 4, h * w]))
            d = F.softmax(self.reg(f).reshape([-1, 4, 9, h * w]).transpose([0, 2, 3, 1]), 1)
            d = (d * paddle.arange(9, dtype='float32').reshape([1, 9, 1, 1])).sum(1)
            yy, xx = paddle.meshgrid(paddle.arange(h, dtype='float32') + 0.5, paddle.arange(w, dtype='float32') + 0.5)
            p = paddle.stack([xx, yy], -1).reshape([-1, 2])
            boxes.append(paddle.concat([p - d[..., :2], p + d[..., 2:]], -1) * stride)
        return paddle.concat(boxes, 1), paddle.concat(scores, -1)


def f(*s):
    return np.random.default_rng(sum(s)).standard_normal(s).astype('float32')


def nets():
    """Name: (network, the shapes of its inputs, sets of inputs)."""
    img = [[f(2, 3, 64, 96)], [f(1, 3, 32, 64)]]
    return {
        'dbnet': (DBNet(), [[None, 3, None, None]], img),
        'svtr': (SVTR(), [[None, 3, 32, None]], [[f(2, 3, 32, 64)], [f(1, 3, 32, 96)]]),
        'ppyoloe': (PPYOLOE(), [[None, 3, 64, 96]], [[f(2, 3, 64, 96)], [f(1, 3, 64, 96)]]),
        'transformer': (
            nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, 0.0, normalize_before=True), 2),
            [[None, None, 32]],
            [[f(2, 7, 32)], [f(1, 12, 32)]],
        ),
        'mha_fixed': (nn.TransformerEncoderLayer(32, 4, 64, 0.0, activation='gelu'), [[1, 7, 32]], [[f(1, 7, 32)]]),
        'gru': (One(lambda p, x: p[0](x)[0], nn.GRU(16, 12, 2)), [[None, None, 16]], [[f(2, 7, 16)], [f(3, 4, 16)]]),
        'lstm': (One(lambda p, x: p[0](x), nn.LSTM(16, 12, 2, direction='bidirect')), [[None, None, 16]], [[f(2, 7, 16)], [f(3, 4, 16)]]),
        'groupnorm': (
            nn.Sequential(nn.GroupNorm(4, 16), nn.Silu(), nn.InstanceNorm2D(16)),
            [[None, 16, None, None]],
            [[f(2, 16, 8, 9)], [f(1, 16, 5, 6)]],
        ),
        'pools': (
            One(
                lambda p, x: (
                    F.max_pool2d(x, 3, 2, 1, ceil_mode=True),
                    F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, exclusive=False),
                    F.avg_pool2d(x, 2, 2, exclusive=True),
                    F.adaptive_max_pool2d(x, 1),
                )
            ),
            [[None, 4, None, None]],
            [[f(2, 4, 13, 10)], [f(1, 4, 8, 9)]],
        ),
        'adaptive': (
            One(lambda p, x: (F.adaptive_avg_pool2d(x, (3, 4)), F.adaptive_max_pool2d(x, (2, 5)))),
            [[None, 4, 12, 20]],
            [[f(2, 4, 12, 20)]],
        ),
        'interp': (
            One(
                lambda p, x: (
                    F.interpolate(x, size=[11, 17], mode='bilinear', align_corners=True),
                    F.interpolate(x, size=[9, 9], mode='bicubic'),
                    F.interpolate(x, size=[24, 40], mode='bilinear', align_mode=1),
                )
            ),
            [[None, 4, None, None]],
            [[f(2, 4, 12, 20)], [f(1, 4, 7, 9)]],
        ),
        'interp_like': (
            Two(lambda p, x, y: F.interpolate(x, size=paddle.shape(y)[2:], mode='bilinear')),
            [[None, 4, None, None]] * 2,
            [[f(2, 4, 6, 8), f(2, 4, 12, 20)], [f(1, 4, 7, 9), f(1, 4, 9, 5)]],
        ),
        'grid': (
            Two(lambda p, x, g: F.grid_sample(x, g, mode='bilinear', padding_mode='border', align_corners=True)),
            [[None, 4, None, None], [None, None, None, 2]],
            [[f(2, 4, 6, 8), f(2, 5, 7, 2)]],
        ),
        'index': (
            One(
                lambda p, x: (
                    x[:, 1:, ::2],
                    x[:, -1],
                    paddle.flip(x, [2]),
                    paddle.roll(x, 1, 2),
                    paddle.tile(x, [1, 2, 1]),
                    x.cumsum(1),
                    paddle.argsort(x, -1),
                    x.topk(3, -1)[0],
                    x.argmax(-1),
                    x.max(-1),
                )
            ),
            [[None, 5, 8]],
            [[f(2, 5, 8)], [f(3, 5, 8)]],
        ),
        'gather': (
            Two(
                lambda p, x, i: (
                    paddle.gather(x, i, axis=1),
                    paddle.index_select(x, i, axis=2),
                    paddle.gather_nd(x, i.unsqueeze(-1)),
                    paddle.take_along_axis(x, paddle.argsort(x, 1), 1),
                )
            ),
            [[4, 5, 8], [None]],
            [[f(4, 5, 8), np.array([0, 3, 1])]],
        ),
        'einsum': (
            Two(
                lambda p, x, y: (
                    paddle.einsum('bhqd,bhkd->bhqk', x, y),
                    paddle.matmul(x, y, transpose_y=True),
                    paddle.bmm(x[:, 0], y[:, 0].transpose([0, 2, 1])),
                )
            ),
            [[None, 3, 5, 8], [None, 3, 6, 8]],
            [[f(2, 3, 5, 8), f(2, 3, 6, 8)]],
        ),
        'embedding': (
            One(lambda p, i: p[1](p[0](i)), nn.Embedding(50, 16, padding_idx=0), nn.LayerNorm(16)),
            [[None, None]],
            [[np.arange(14).reshape(2, 7)], [np.arange(5).reshape(1, 5)]],
        ),
        'conv1d3d': (
            Two(
                lambda p, x, y: (p[0](x), p[1](y), p[2](x)),
                nn.Conv1D(4, 6, 3, padding=1),
                nn.Conv3D(2, 4, 3, padding='SAME'),
                nn.Conv1DTranspose(4, 6, 4, 2, 1),
            ),
            [[None, 4, None], [None, 2, 4, 5, 6]],
            [[f(2, 4, 9), f(2, 2, 4, 5, 6)]],
        ),
        'prelu': (
            nn.Sequential(
                nn.Conv2D(3, 8, 3, padding=1, padding_mode='reflect'), nn.PReLU(8), nn.Pad2D([1, 2, 3, 0], 'replicate'), nn.Dropout2D(0.3)
            ),
            [[None, 3, None, None]],
            img,
        ),
        'split': (
            One(
                lambda p, x: (
                    *paddle.split(x, [2, -1, 3], 1),
                    *paddle.chunk(x, 2, 2),
                    paddle.stack([x, x], 1),
                    paddle.expand(x[:, :1], [-1, 6, -1]),
                    *paddle.unbind(x[:, :2], 1),
                )
            ),
            [[None, 9, 8]],
            [[f(2, 9, 8)], [f(3, 9, 8)]],
        ),
        'while': (
            One(
                lambda p, x: paddle.static.nn.while_loop(
                    lambda i, y: i < 4, lambda i, y: [i + 1, y * 1.5 + 1], [paddle.zeros([1], 'int64'), x]
                )[1]
            ),
            [[None, 8]],
            [[f(2, 8)]],
        ),
        'cond': (
            One(lambda p, x: paddle.static.nn.cond(x.sum() > 0, lambda: x * 2, lambda: x - 1)),
            [[None, 8]],
            [[f(2, 8)], [-abs(f(3, 8))]],
        ),
        'roi': (
            Two(lambda p, x, b: paddle.vision.ops.roi_align(x, b, paddle.full([1], 3, 'int32'), 4)),
            [[1, 4, 16, 16], [3, 4]],
            [[f(1, 4, 16, 16), np.array([[0, 0, 8, 8], [1, 2, 12, 9], [3, 3, 15, 15]], 'float32')]],
        ),
        **{
            name: (getattr(paddle.vision.models, name)(**kw, num_classes=5), [[None, 3, 64, 64]], [[f(2, 3, 64, 64)]])
            for name, kw in (
                ('mobilenet_v3_small', {}),
                ('resnet18', {}),
                ('shufflenet_v2_x0_25', {}),
                ('squeezenet1_1', {}),
                ('mobilenet_v1', dict(scale=0.25)),
                ('densenet121', {}),
            )
        },
    }


def written(net, specs, sets):
    def make():
        paddle.seed(1)
        net.eval()
        for layer in net.sublayers():
            if isinstance(layer, nn.BatchNorm2D):
                layer._variance.set_value(layer._variance * 0 + 0.7)
                layer._mean.set_value(layer._mean + 0.1)
        inputs = [paddle.static.InputSpec(s, str(a.dtype), f'x{i}') for i, (s, a) in enumerate(zip(specs, sets[0]))]
        return lambda path: paddle.onnx.export(net, str(path)[:-5], input_spec=inputs, opset_version=17), sets

    return make


def models(Model):
    return {name: Model(written(*parts), exporters=('own',)) for name, parts in nets().items()}
