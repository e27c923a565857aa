"""Attention as exporters write it."""
import numpy as np
import pytest

pytest.importorskip('onnx')
from fuse_case import Case, functions_for  # noqa: E402

HEADS = 'float[2,3,7,8] q, float[2,3,7,8] k, float[2,3,7,8] v'
ROWS = 'float[2,7,24] x'


def graph(body, constants='', inputs=HEADS, out='float[2,3,7,8]'):
    return f'g ({inputs}) => ({out} y) <{constants}> {{ {body} }}'


SCALED = 't = Transpose<perm = [0, 1, 3, 2]>(k) p = MatMul(q, t) c = Mul(p, r) a = Add(c, mask) s = Softmax<axis = -1>(a) y = MatMul(s, v)'
GONE = ['MatMul', 'Softmax', 'BinaryOp']
SPLIT = ('qr = MatMul(x, wq) q4 = Reshape(qr, split) q = Transpose<perm = [0, 2, 1, 3]>(q4)'
         ' kr = MatMul(x, wk) k4 = Reshape(kr, split) t = Transpose<perm = [0, 2, 3, 1]>(k4)'
         ' vr = MatMul(x, wv) v4 = Reshape(vr, split) v = Transpose<perm = [0, 2, 1, 3]>(v4)'
         ' p = MatMul(q, t) c = Div(p, r) s = Softmax<axis = -1>(c) o = MatMul(s, v)'
         ' u = Transpose<perm = [0, 2, 1, 3]>(o) y = Reshape(u, whole)')
SHAPES = 'int64[4] split = {0, 0, 3, 8}, int64[3] whole = {0, 0, 24}, float r = {2.8284271}'
MATRICES = ('k3 = Reshape(k, rows) t3 = Transpose<perm = [0, 2, 1]>(k3) t = Reshape(t3, heads) qs = Mul(q, r)'
            ' ts = Mul(t, r) p = MatMul(qs, ts) s = Softmax<axis = -1>(p) y = MatMul(s, v)')
WINDOWS = ('qs = Mul(q, r) t = Transpose<perm = [0, 1, 3, 2]>(k) p = MatMul(qs, t) b = Add(p, bias)'
           ' w = Reshape(b, wide) a = Add(w, mask) n = Reshape(a, heads) s = Softmax<axis = -1>(n) y = MatMul(s, v)')
NESTED = ('t = Transpose<perm = [0, 1, 2, 4, 3]>(k) p = MatMul(q, t) c = Mul(p, r) a = Add(c, mask)'
          ' s = Softmax<axis = -1>(a) y = MatMul(s, v)')
BY_EINSUM = ('p = Einsum<equation = "b g h i d, b g h j d -> b g h i j">(q, k) c = Mul(p, r) a = Add(c, mask)'
             ' s = Softmax<axis = -1>(a) y = Einsum<equation = "bghij,bghjd->bghid">(s, v)')
CAUSAL = np.where(np.tril(np.ones((7, 7))), 0, -np.inf).astype(np.float32)
# One query sees nothing.
ALL_BUT_ONE = np.where(np.arange(7)[:, None] == 2, -3.4028235e38, 0).astype(np.float32) * np.ones((1, 7), np.float32)
ROTARY = ('lo = Slice(x, n0, n4, last) hi = Slice(x, n4, end, last) n = Neg(hi) t = Concat<axis = -1>(n, lo)'
          ' a = Mul(x, c) b = Mul(t, s) y = Add(a, b)')
HALVES = ('lo, hi = Split<axis = -1>(x) n = Neg(hi) t = Concat<axis = 3>(n, lo) a = Mul(c, x) b = Mul(s, t)'
          ' y = Add(b, a)')
BOUNDS = 'int64[1] n0 = {0}, int64[1] n4 = {4}, int64[1] end = {9223372036854775807}, int64[1] last = {3}'
TURNED = 'float[2,3,7,8] x'
SHARED = ('k5 = Unsqueeze(k, two) ke = Expand(k5, wide) kr = Reshape(ke, heads) v5 = Unsqueeze(v, two)'
          ' ve = Expand(v5, wide) vr = Reshape(ve, heads) t = Transpose<perm = [0, 1, 3, 2]>(kr) p = MatMul(q, t)'
          ' s = Softmax<axis = -1>(p) y = MatMul(s, vr)')
GUARDED = ('t = Transpose<perm = [0, 1, 3, 2]>(k) p = MatMul(q, t) z = Greater(mask, zero) w = Where(z, zero, low)'
           ' a = Add(p, w) s = Softmax<axis = -1>(a) bad = IsNaN(s) g = Where(bad, zero, s) y = MatMul(g, v)')
GUARDED_GRAPH = graph(GUARDED, 'float zero = {0.0}, float one = {1.0}',
                      'float[B,3,L,8] q, float[B,3,L,8] k, float[B,3,L,8] v, float[B,1,L,M] mask', 'float[B,3,L,8]')
ATTEND = (' t = Transpose<perm = [0, 1, 3, 2]>(k) d = MatMul(q, t) c = Mul(d, f) s = Softmax<axis = -1>(c)'
          ' o = MatMul(s, v) u = Transpose<perm = [0, 2, 1, 3]>(o) h = Reshape(u, whole) y = MatMul(h, w2)')
UNBOUND = ('p = MatMul(x, w) l = Add(p, b) r = Reshape(l, parts) a = Transpose<perm = [2, 0, 3, 1, 4]>(r)'
           ' q1 = Slice(a, n0, n1, n0) q = Squeeze(q1, n0) k1 = Slice(a, n1, n2, n0) k = Squeeze(k1, n0)'
           ' v1 = Slice(a, n2, n3, n0) v = Squeeze(v1, n0)' + ATTEND)
PIECES = ('p = MatMul(x, w) l = Add(p, b) a, e, g = Split<axis = 2>(l)'
          ' qr = Reshape(a, heads) q = Transpose<perm = [0, 2, 1, 3]>(qr)'
          ' kr = Reshape(e, heads) k = Transpose<perm = [0, 2, 1, 3]>(kr)'
          ' vr = Reshape(g, heads) v = Transpose<perm = [0, 2, 1, 3]>(vr)' + ATTEND)
PACKED = ('xt = Transpose<perm = [1, 0, 2]>(x) p = MatMul(xt, w) l = Add(p, b) r = Reshape(l, parts) e = Unsqueeze(r, n0)'
          ' a = Transpose<perm = [3, 1, 2, 0, 4]>(e) z = Squeeze(a, n3) q1 = Gather<axis = 0>(z, i0)'
          ' k1 = Gather<axis = 0>(z, i1) v1 = Gather<axis = 0>(z, i2) q2 = Reshape(q1, rows) q3 = Transpose<perm = [1, 0, 2]>(q2)'
          ' k2 = Reshape(k1, rows) k3 = Transpose<perm = [1, 0, 2]>(k2) v2 = Reshape(v1, rows)'
          ' v3 = Transpose<perm = [1, 0, 2]>(v2) q = Reshape(q3, heads) v = Reshape(v3, heads)'
          ' t3 = Transpose<perm = [0, 2, 1]>(k3) t = Reshape(t3, turned) qs = Mul(q, f) ts = Mul(t, f) d = MatMul(qs, ts)'
          ' s = Softmax<axis = -1>(d) o = MatMul(s, v) u = Transpose<perm = [2, 0, 1, 3]>(o) h = Reshape(u, whole)'
          ' y = MatMul(h, w2)')
SCALED_FIRST = ('qr = MatMul(x, wq) qs = Mul(qr, r) q4 = Reshape(qs, heads) q = Transpose<perm = [0, 2, 1, 3]>(q4)'
                ' kr = MatMul(x, wk) k4 = Reshape(kr, heads) t = Transpose<perm = [0, 2, 3, 1]>(k4)'
                ' vr = MatMul(x, wv) v4 = Reshape(vr, heads) v = Transpose<perm = [0, 2, 1, 3]>(v4)'
                ' p = MatMul(q, t) s = Softmax<axis = -1>(p) o = MatMul(s, v) u = Transpose<perm = [0, 2, 1, 3]>(o)'
                ' h = Reshape(u, whole) y = MatMul(h, wo)')
# With batch_first, and what was there before added.
BACK = PACKED.replace(' y = MatMul(h, w2)', ' m = MatMul(h, w2) b3 = Reshape(m, back) z2 = Transpose<perm = [1, 0, 2]>(b3) y = Add(z2, x)')
MOVED = ['MatMul', 'Softmax', 'SDPA', 'StridedSlice', 'Permute', 'Reshape', 'BatchAxis']


def attend(p, q, k, v, made, mask='', at=17, to=17):
    """Attention of sequences, [length, items, 12], as torch.nn.MultiheadAttention computes it without batch_first."""
    split = ''.join(f' {p}{n}p = MatMul({x}, w{n}) {p}{n}b = Add({p}{n}p, bias) {p}{n}r = Reshape({p}{n}b, rows{length})'
                    f' {p}{n}t = Transpose<perm = [1, 0, 2]>({p}{n}r) {p}{n}h = Reshape({p}{n}t, heads{length})'
                    for n, x, length in (('q', q, at), ('k', k, to), ('v', v, to)))
    return (f'{split} {p}k = Transpose<perm = [0, 1, 3, 2]>({p}kh) {p}d = MatMul({p}qh, {p}k) {p}f = Mul({p}d, f)'
            + (f' {p}a = Add({p}f, {mask})' if mask else f' {p}a = Identity({p}f)')
            + f' {p}s = Softmax<axis = -1>({p}a) {p}o = MatMul({p}s, {p}vh) {p}u = Transpose<perm = [2, 0, 1, 3]>({p}o)'
            f' {p}j = Reshape({p}u, whole) {p}m = MatMul({p}j, wo) {made} = Reshape({p}m, back{at})')


def norm(x, made):
    return f' {made} = LayerNormalization<axis = -1>({x}, gamma, bias)'


def sequences(body, inputs, out, items=2, more=''):
    """A graph of such attention, 3 heads; items: how many, -1: any number."""
    sizes = ', '.join(f'int64[3] rows{n} = {{{n}, {max(items * 3, -1)}, 4}}, int64[4] heads{n} = {{{items}, 3, {n}, 4}}, '
                      f'int64[3] back{n} = {{{n}, {items}, 12}}' for n in (17, 19))
    return graph(body, f'{sizes}, int64[2] whole = {{-1, 12}}, float f = {{0.5}}{more}', inputs, out)


# Two layers of torch.nn.TransformerEncoder.
LAYERS = (attend('a', 'x', 'x', 'x', 'a1') + ' a2 = Add(x, a1)' + norm('a2', 'a3') + ' a4 = MatMul(a3, wide) a5 = Relu(a4)'
          ' a6 = MatMul(a5, narrow) a7 = Add(a3, a6)' + norm('a7', 'a8') + attend('b', 'a8', 'a8', 'a8', 'b1')
          + ' b2 = Add(a8, b1)' + norm('b2', 'z'))
# Places are added to queries and keys, as in DETR.
PLACED = ' qk = Add(x, place)' + attend('a', 'qk', 'qk', 'x', 'a1') + ' a2 = Add(x, a1)' + norm('a2', 'z')
CROSS = (attend('a', 'x', 'x', 'x', 'a1', 'mask') + ' a2 = Add(x, a1)' + norm('a2', 'a3')
         + attend('b', 'a3', 'm', 'm', 'b1', '', 17, 19) + ' b2 = Add(a3, b1)' + norm('b2', 'y'))
COUNTS = (('one item', '1', 1), ('two items', '2', 2), ('any number of items', 'B', -1))
TURN, BACK_AGAIN = 'x = Transpose<perm = [1, 0, 2]>(i)', ' y = Transpose<perm = [1, 0, 2]>(z)'
SEQUENCES = {**{f'w{n}': (12, 12) for n in 'qkvo'}, 'gamma': (12,), 'bias': (12,), 'wide': (12, 24), 'narrow': (24, 12),
             'place': (17, 1, 12)}
UPPER = np.where(np.tril(np.ones((17, 17))), 0, -np.inf).astype(np.float32)


def weights(*names, **more):
    return {**{name: SEQUENCES[name] for name in ('wq', 'wk', 'wv', 'wo', 'bias', *names)}, **more}


PLACES = 'int64[1] n0 = {0}, int64[1] n1 = {1}, int64[1] n2 = {2}, int64[1] n3 = {3}, float f = {0.3}'
INDICES = 'int64 i0 = {0}, int64 i1 = {1}, int64 i2 = {2}'
JOINED = {'w': (16, 36), 'b': (36,), 'w2': (12, 16)}
BY_HEADS = 't = Transpose<perm = [0, 1, 3, 2]>(k) p = MatMul(q, t) c = Mul(p, f) a = Add(c, mask) s = Softmax<axis = -1>(a) y = MatMul(s, v)'
BEFORE = 't = Transpose<perm = [0, 1, 3, 2]>(k) p = MatMul(q, t) d = Mul(p, r) {} s = Softmax<axis = -1>(a) y = MatMul(s, v)'
# Keys of 3 x 4 pixels: SAM's and ViTDet's forms.
ON_GRID = 'float[2,3,7,8] q, float[2,3,12,8] k, float[2,3,12,8] v, float[2,3,7,3,1] rows, float[2,3,7,1,4] columns'
GRID = 't = Transpose<perm = [0, 1, 3, 2]>(k) p = MatMul(q, t) c = Mul(p, r) {} s = Softmax<axis = -1>(a) y = MatMul(s, v)'
GRID_SIZES = 'float r = {0.3}, int64[4] flat = {2, 3, 7, 12}, int64[5] grid = {2, 3, 7, 3, 4}'
CASES = {
    'the sum of a mask of rows and one of columns': Case(
        graph(GRID.format('w = Add(rows, columns) m = Reshape(w, flat) a = Add(c, m)'), GRID_SIZES, ON_GRID), ['SDPA'], GONE,
        [('Softmax<axis = -1>', 'Softmax<axis = 2>')], 'c'),
    'masks of rows and of columns that are added to keys on a grid': Case(
        graph(GRID.format('g = Reshape(c, grid) w = Add(g, rows) z = Add(columns, w) a = Reshape(z, flat)'), GRID_SIZES, ON_GRID),
        ['SDPA'], GONE, [('Softmax<axis = -1>', 'Softmax<axis = 2>')], 'w'),
    'a mask of rows and one of columns and rows': Case(
        graph(GRID.format('w = Add(rows, columns) m = Reshape(w, flat) a = Add(c, m)'), GRID_SIZES, ON_GRID.replace('7,1,4', '7,3,4')),
        ['SDPA', 'BinaryOp'], ['MatMul', 'Softmax']),
    'a factor of each head': Case(
        graph(BY_HEADS, 'float[3,1,1] f = {2.0, 0.5, 3.0}'), ['SDPA'], ['MatMul', 'Softmax'],
        [('Softmax<axis = -1>', 'Softmax<axis = 2>'), ('Mul(p, f)', 'Mul(f, mask)')], 's', {'mask': CAUSAL}),
    'a factor of each head, an input': Case(
        graph(BY_HEADS, '', HEADS + ', float[2,3,1,1] f'), ['SDPA'], ['MatMul', 'Softmax'], [('2,3,1,1] f', '2,3,7,1] f')],
        'p', {'mask': CAUSAL}),
    'windows beside heads': Case(
        graph(NESTED, 'float r = {0.3}', HEADS.replace('2,3,7', '2,3,4,7'), 'float[2,3,4,7,8]'), ['SDPA'], ['MatMul', 'Softmax'],
        [('Softmax<axis = -1>', 'Softmax<axis = 3>')], 's', {'mask': CAUSAL}),
    'masks of heads for all windows': Case(
        graph(NESTED, 'float r = {0.3}', HEADS.replace('2,3,7', '2,3,4,7'), 'float[2,3,4,7,8]'), ['SDPA'], ['MatMul', 'Softmax'],
        [], 'p', {'mask': (1, 4, 7, 7)}),
    'masks of heads for all items': Case(
        graph(SCALED, 'float r = {0.3}'), ['SDPA'], GONE, [], 'p', {'mask': (1, 3, 7, 7)}),
    'products by Einsum': Case(
        graph(BY_EINSUM, 'float r = {0.3}', HEADS.replace('2,3,7', '1,3,4,7'), 'float[1,3,4,7,8]'), ['SDPA'],
        ['Einsum', 'MatMul', 'Softmax'],
        [('Softmax<axis = -1>', 'Softmax<axis = 3>'), ('bghij,bghjd', 'bghji,bghjd'), ('->bghid', '->bgihd')], 'p',
        {'mask': (1, 4, 7, 7)}),
    'windows beside heads of one item': Case(
        graph(NESTED, 'float r = {0.3}', HEADS.replace('2,3,7', '1,3,4,7'), 'float[1,3,4,7,8]'), ['SDPA'], ['MatMul', 'Softmax'],
        [], 'p', {'mask': CAUSAL}),
    'heads of keys that queries share': Case(
        graph(SHARED, 'int64[1] two = {2}, int64[5] wide = {2, 2, 3, 5, 8}, int64[4] heads = {2, 6, 5, 8}',
              'float[2,6,7,8] q, float[2,2,5,8] k, float[2,2,5,8] v', 'float[2,6,7,8]'), ['SDPA'], [*GONE, 'Expand']),
    'rows that see everything or nothing': Case(
        GUARDED_GRAPH, ['SDPA'], ['MatMul', 'Softmax'], [('Where(bad, zero, s)', 'Where(bad, one, s)')], 'g',
        {'low': np.float32(-np.inf)}, sizes={'B': 2, 'L': 5, 'M': 1}),
    'rows that may see nothing': Case(
        GUARDED_GRAPH, ['SDPA'], ['MatMul', 'Softmax'], [], '', {'low': np.float32(-np.inf)},
        sizes={'B': 2, 'L': 2, 'M': 2}),
    'one product for queries, keys and values': Case(
        graph(UNBOUND, f'{PLACES}, int64[5] parts = {{1, 7, 3, 3, 4}}, int64[3] whole = {{1, 7, 12}}',
              'float[1,7,16] x', 'float[1,7,16]'), ['MultiHeadAttention'],
        [*GONE, 'SDPA', 'StridedSlice', 'Permute', 'Reshape'], [('[2, 0, 3, 1, 4]', '[3, 0, 2, 1, 4]')], 'p', JOINED),
    'one product, any length': Case(
        graph(UNBOUND, f'{PLACES}, int64[5] parts = {{0, 0, 3, 3, 4}}, int64[3] whole = {{0, 0, 12}}',
              'float[B,L,16] x', 'float[B,L,16]'), ['MultiHeadAttention'], [*GONE, 'SDPA', 'StridedSlice'], [], 'u',
        JOINED, sizes={'B': 2, 'L': 5}),
    'one product in pieces': Case(
        graph(PIECES, 'float f = {0.3}, int64[4] heads = {1, 7, 3, 4}, int64[3] whole = {1, 7, 12}',
              'float[1,7,16] x', 'float[1,7,16]'), ['MultiHeadAttention'],
        [*GONE, 'SDPA', 'Slice', 'Permute', 'Reshape'], [], 'l', JOINED),
    'queries that are scaled before they are split': Case(
        graph(SCALED_FIRST, 'int64[4] heads = {0, 0, 3, 8}, int64[3] whole = {0, 0, 24}, float r = {0.3}', 'float[B,L,24] x',
              'float[B,L,24]'), ['MultiHeadAttention'], [*GONE, 'SDPA', 'Permute', 'Reshape'],
        [('Mul(qr, r)', 'Add(qr, r)')], 'o', {w: (24, 24) for w in ('wq', 'wk', 'wv', 'wo')}, sizes={'B': 2, 'L': 5}),
    'tokens of any number and length': Case(
        graph('x = Gather(table, tokens) ' + SCALED_FIRST,
              'int64[4] heads = {0, 0, 3, 8}, int64[3] whole = {0, 0, 24}, float r = {0.3}', 'int64[B,L] tokens',
              'float[B,L,24]'), ['MultiHeadAttention'], [*GONE, 'SDPA', 'Permute', 'Reshape', 'ReshapeTo', 'ShapeOf'], [], '',
        {'table': (8, 24), **{w: (24, 24) for w in ('wq', 'wk', 'wv', 'wo')}}, sizes={'B': 2, 'L': 5}),
    'one product of torch.nn.MultiheadAttention': Case(
        graph(PACKED, f'{PLACES}, {INDICES}, int64[4] parts = {{17, 2, 3, 12}}, int64[3] rows = {{17, 6, 4}}, '
              'int64[4] heads = {2, 3, 17, 4}, int64[4] turned = {2, 3, 4, 17}, int64[2] whole = {34, 12}',
              'float[2,17,16] x', 'float[34,16]'), ['MultiHeadAttention'], [*GONE, 'SDPA', 'StridedSlice'], [], 's', JOINED),
    'torch.nn.MultiheadAttention of one item': Case(
        graph(PACKED, f'{PLACES}, {INDICES}, int64[4] parts = {{5, 1, 3, 12}}, int64[3] rows = {{5, 3, 4}}, '
              'int64[4] heads = {1, 3, 5, 4}, int64[4] turned = {1, 3, 4, 5}, int64[2] whole = {5, 12}',
              'float[1,5,16] x', 'float[5,16]'), ['MultiHeadAttention'], [*GONE, 'SDPA', 'StridedSlice', 'Permute', 'Reshape'],
        [('int64[3] rows = {5, 3, 4}', 'int64[3] rows = {3, 5, 4}'), ('perm = [2, 0, 1, 3]', 'perm = [1, 0, 2, 3]')], 's', JOINED),
    'torch.nn.MultiheadAttention of several items': Case(
        graph(BACK, f'{PLACES}, {INDICES}, int64[4] parts = {{17, 2, 3, 12}}, int64[3] rows = {{17, 6, 4}}, '
              'int64[4] heads = {2, 3, 17, 4}, int64[4] turned = {2, 3, 4, 17}, int64[2] whole = {34, 12}, int64[3] back = {17, 2, 16}',
              'float[2,17,16] x', 'float[2,17,16]'), ['MultiHeadAttention'], MOVED,
        [('rows = {17, 6, 4}', 'rows = {6, 17, 4}'), ('perm = [2, 0, 1, 3]', 'perm = [0, 2, 1, 3]')], 's', JOINED),
    'torch.nn.MultiheadAttention of any number of items': Case(
        graph(BACK.replace('t3 = Transpose<perm = [0, 2, 1]>(k3) t = Reshape(t3, turned)',
                           't3 = Reshape(k3, heads) t = Transpose<perm = [0, 1, 3, 2]>(t3)'),
              f'{PLACES}, {INDICES}, int64[4] parts = {{17, -1, 3, 12}}, int64[3] rows = {{17, -1, 4}}, '
              'int64[4] heads = {-1, 3, 17, 4}, int64[2] whole = {-1, 12}, int64[3] back = {17, -1, 16}',
              'float[B,17,16] x', 'float[B,17,16]'), ['MultiHeadAttention'], MOVED,
        [], 'o', JOINED, sizes={'B': 3}),
    **{f'attention of sequences, {name}': Case(
        sequences(TURN + LAYERS + BACK_AGAIN, f'float[{count},17,12] i', f'float[{count},17,12]', items),
        ['MultiHeadAttention'], [*GONE[:2], 'SDPA', 'Permute'],
        [('perm = [2, 0, 1, 3]', 'perm = [0, 2, 1, 3]')] if items == 2 else [], '', weights('gamma', 'wide', 'narrow'),
        sizes={'B': 3}) for name, count, items in COUNTS},
    **{f'attention of sequences that are given, {name}': Case(
        sequences(LAYERS, f'float[17,{count},12] x', f'float[17,{count},12]', items).replace(' z =', ' y ='),
        ['MultiHeadAttention'], [*GONE[:2], 'SDPA'], [], '', weights('gamma', 'wide', 'narrow'), sizes={'B': 3})
       for name, count, items in COUNTS},
    'attention of sequences with places': Case(
        sequences(TURN + PLACED + BACK_AGAIN, 'float[B,17,12] i', 'float[B,17,12]', -1), ['MultiHeadAttention'], [*GONE[:2], 'SDPA', 'Permute', 'Reshape'],
        [('rows17 = {17, -1, 4}', 'rows17 = {-1, 17, 4}')], 'ao', weights('gamma', 'place'), sizes={'B': 3}),
    **{f'attention of pixels, {name}': Case(
        sequences('x = Transpose<perm = [2, 0, 1]>(i)' + PLACED + ' y = Transpose<perm = [1, 2, 0]>(z)',
                  f'float[{count},12,17] i', f'float[{count},12,17]', items), ['MultiHeadAttention'], [*GONE[:2], 'SDPA'], [], '',
        weights('gamma', 'place'), sizes={'B': 3}) for name, count, items in COUNTS},
    'attention of sequences, others read on the way': Case(
        sequences(TURN + LAYERS + BACK_AGAIN, 'float[2,17,12] i', 'float[2,17,12]').replace('float[2,17,12] y)', 'float[2,17,12] y, float[34,12] am, float[17,2,12] a3)'),
        ['MultiHeadAttention'], [*GONE[:2], 'SDPA'], [], '', weights('gamma', 'wide', 'narrow')),
    'attention of short sequences': Case(
        sequences(attend('a', 'x', 'x', 'x', 'y', '', 8, 8), 'float[8,2,12] x', 'float[8,2,12]', 2,
                  ', int64[3] rows8 = {8, 6, 4}, int64[4] heads8 = {2, 3, 8, 4}, int64[3] back8 = {8, 2, 12}'),
        ['SDPA'], ['Softmax', 'MultiHeadAttention'], [], '', weights()),
    'rows that are sequences of two lengths': Case(
        sequences(attend('a', 'x', 'x', 'x', 'a1') + ' c = Reshape(am, back34)' + attend('b', 'c', 'c', 'c', 'y', '', 34, 34),
                  'float[17,34,12] x', 'float[34,17,12]', 34,
                  ', int64[3] rows34 = {34, 51, 4}, int64[4] heads34 = {17, 3, 34, 4}, int64[3] back34 = {34, 17, 12}'),
        ['SDPA'], ['Softmax', 'MultiHeadAttention'], [], '', weights()),
    'decoder of sequences, a causal mask': Case(
        sequences(CROSS, 'float[17,2,12] x, float[19,2,12] m', 'float[17,2,12]'), ['MultiHeadAttention'], [*GONE[:2], 'SDPA'],
        [], '', weights('gamma', mask=UPPER)),
    'decoder of sequences, a mask that is given': Case(
        sequences(CROSS, 'float[17,B,12] x, float[19,B,12] m, float[17,17] mask', 'float[17,B,12]', -1), ['MultiHeadAttention'],
        [*GONE[:2], 'SDPA'], [], '', weights('gamma'), sizes={'B': 3}),
    **{f'decoder of sequences, a mask of {name}': Case(
        sequences(CROSS, f'float[17,B,12] x, float[19,B,12] m, float[B,{shape}] mask', 'float[17,B,12]', -1), ['MultiHeadAttention'],
        [*GONE[:2], 'SDPA'], [], '', weights('gamma'), sizes={'B': 3})
       for name, shape in (('keys', '1,1,17'), ('each item', '1,17,17'), ('each head', '3,17,17'))},
    'rotary embedding': Case(
        graph(ROTARY, BOUNDS, TURNED), ['RotaryEmbed'], ['Concat', 'BinaryOp', 'StridedSlice'],
        [('Concat<axis = -1>(n, lo)', 'Concat<axis = -1>(lo, n)'), ('Neg(hi)', 'Abs(hi)'),
         ('hi = Slice(x, n4, end, last)', 'hi = Slice(x, n0, n4, last)'), ('Mul(x, c)', 'Mul(t, c)')], 't',
        {'c': (1, 1, 7, 8), 's': (1, 1, 7, 8)}),
    'rotary embedding, split': Case(
        graph(HALVES, '', TURNED), ['RotaryEmbed'], ['Concat', 'BinaryOp'], [], 'n', {'c': (7, 8), 's': (7, 8)}, opset=12),
    'rotary embedding, angles of items': Case(
        graph(ROTARY, BOUNDS, TURNED + ', float[2,1,7,8] c, float[2,1,7,8] s'), ['RotaryEmbed'], ['Concat'], [], 'b'),
    'angles of heads': Case(graph(ROTARY, BOUNDS, TURNED), ['Concat'], ['RotaryEmbed'], [], '',
                            {'c': (3, 7, 8), 's': (3, 7, 8)}),
    'scaled scores': Case(
        graph(SCALED.replace(' a = Add(c, mask)', '').replace('>(a)', '>(c)'), 'float r = {0.3}'), ['SDPA'], GONE,
        [('Softmax<axis = -1>', 'Softmax<axis = 2>'), ('Mul(p, r)', 'Add(p, r)')], 'p'),
    'a causal mask': Case(graph(SCALED, 'float r = {0.3}'), ['SDPA'], GONE, [], 'c', {'mask': CAUSAL}),
    'a constant mask of scores of open sizes': Case(
        graph(SCALED, 'float r = {0.3}', 'float[B,3,L,8] q, float[B,3,L,8] k, float[B,3,L,8] v', 'float[B,3,L,8]'),
        ['MatMul'], ['SDPA'], [], '', {'mask': CAUSAL}, sizes={'B': 2, 'L': 7}),
    'a mask for each head': Case(graph(SCALED, 'float r = {0.3}'), ['SDPA'], GONE, [], 's', {'mask': (3, 7, 7)}),
    'a mask for each item and head': Case(graph(SCALED, 'float r = {0.3}'), ['SDPA'], GONE, [], '', {'mask': (2, 3, 7, 7)}),
    'a mask for each item': Case(graph(SCALED, 'float r = {0.3}'), ['SDPA'], GONE, [], '', {'mask': (2, 1, 7, 7)}),
    'a mask of columns': Case(graph(SCALED, 'float r = {0.3}'), ['SDPA'], GONE, [], '', {'mask': (2, 1, 1, 7)}),
    'an input as mask': Case(graph(SCALED, 'float r = {0.3}', HEADS + ', float[2,1,7,7] mask'), ['SDPA'], GONE, [], 'a'),
    # What is tried as scores and is none leaves nothing behind.
    **{f'a mask before the scores, {name}': Case(
        graph(BEFORE.format(made), 'float r = {0.3}, float low = {-3e38}, float one = {1.0}', HEADS + ', float[2,1,7,7] mask' + more), ['SDPA'],
        ['Softmax'], [], 'p')
       for name, made, more in (('multiplied', 'm = Mul(mask, r) a = Add(m, d)', ''), ('divided', 'm = Div(mask, r) a = Add(m, d)', ''),
                                ('of a sum', 'i = Sub(one, mask) m = Mul(i, r) a = Add(m, d)', ''),
                                ('a product', 'g = Mul(mask, r) w = MatMul(g, h) a = Add(w, d)', ', float[7,7] h'),
                                ('chosen', 'm = Mul(mask, r) e = Add(m, d) z = Less(mask, one) a = Where(z, e, low)', ''))},
    'a mask that is chosen': Case(
        graph('t = Transpose<perm = [0, 1, 3, 2]>(k) p = MatMul(q, t) z = Greater(mask, zero) a = Where(z, p, low)'
              ' s = Softmax<axis = -1>(a) y = MatMul(s, v)',
              'float zero = {0.0}, float low = {-3.4028235e38}', HEADS + ', float[7,7] mask'),
        ['SDPA'], ['MatMul', 'Softmax'], [('-3.4028235e38', '-3.0')], 'a'),
    'a choice behind a mask': Case(
        graph('t = Transpose<perm = [0, 1, 3, 2]>(k) p = MatMul(q, t) c = Add(p, mask) z = Greater(seen, zero) a = Where(z, c, low)'
              ' s = Softmax<axis = -1>(a) y = MatMul(s, v)', 'float zero = {0.0}, float low = {-3.4028235e38}'),
        ['SDPA'], ['MatMul', 'Softmax'], [], '', {'mask': ALL_BUT_ONE, 'seen': np.tril(np.ones((7, 7), np.float32))}),
    'projections with their transposes': Case(
        graph(SPLIT, SHAPES, ROWS, 'float[2,7,24]'), ['SDPA'], GONE,
        [], 'p', {w: (24, 24) for w in ('wq', 'wk', 'wv')}),
    'projections of any length': Case(
        graph(SPLIT, SHAPES, 'float[B,L,24] x', 'float[B,L,24]'), ['SDPA'], GONE, [], 't',
        {w: (24, 24) for w in ('wq', 'wk', 'wv')}, sizes={'B': 2, 'L': 5}),
    'keys transposed as matrices': Case(
        graph(MATRICES, 'int64[3] rows = {-1, 7, 8}, int64[4] heads = {2, 3, 8, 7}, float r = {0.5}'), ['SDPA'], GONE,
        [], 'ts'),
    'heads as items': Case(
        graph('t = Transpose<perm = [0, 2, 1]>(k) qs = Mul(q, r) p = MatMul(qs, t) s = Softmax<axis = -1>(p)'
              ' y = MatMul(s, v)', 'float r = {0.5}', 'float[6,7,8] q, float[6,5,8] k, float[6,5,9] v', 'float[6,7,9]'),
        ['SDPA'], GONE, [], 'qs'),
    'one head, a projection before and behind': Case(
        graph('q = MatMul(x, wq) k = MatMul(x, wk) v = MatMul(x, wv) t = Transpose<perm = [0, 2, 1]>(k) p = MatMul(q, t)'
              ' c = Mul(p, r) s = Softmax<axis = -1>(c) o = MatMul(s, v) h = MatMul(o, wo) y = Add(h, x)', 'float r = {0.1}',
              'float[B,L,24] x', 'float[B,L,24]'), ['SDPA'], GONE[:2], [], 's', {w: (24, 24) for w in ('wq', 'wk', 'wv', 'wo')},
        sizes={'B': 2, 'L': 5}),
    'shifted windows': Case(
        graph(WINDOWS, 'int64[5] wide = {2, 2, 3, 7, 7}, int64[4] heads = {-1, 3, 7, 7}, float r = {0.5}',
              HEADS.replace('[2,', '[4,'), 'float[4,3,7,8]'),
        ['SDPA'], GONE, [], 'w', {'bias': (1, 3, 7, 7), 'mask': (2, 1, 7, 7)}),
    'one head of keys': Case(
        graph('t = Transpose<perm = [0, 1, 3, 2]>(k) p = MatMul(q, t) s = Softmax<axis = -1>(p) y = MatMul(s, v)', '',
              'float[2,3,7,8] q, float[2,1,7,8] k, float[2,1,7,8] v'), ['SDPA'], GONE),
    'a softmax of other rows': Case(
        graph('p = MatMul(q, k) s = Softmax<axis = 1>(p) y = MatMul(s, v)', '',
              'float[2,3,7,8] q, float[2,3,8,7] k, float[2,3,7,8] v'), ['MatMul'], ['SDPA']),
}
test_fused, test_near_miss, test_second_reader = functions_for(CASES)
