"""The tensor operators against closed forms in NumPy, and those against ONNX Runtime where it is installed.

QUOLL_ORACLE_CONFIGS random configurations an operator, all in one net; QUOLL_TEST_SEED makes others.
"""
import os
import zlib

import numpy as np
import pytest

import tensor_cases
import vision_cases
from engine import EngineError, run_engine

CONFIGS = int(os.environ.get('QUOLL_ORACLE_CONFIGS', '50'))
GENERATORS = {**tensor_cases.GENERATORS, **vision_cases.GENERATORS}


def seed_of(op):
    return zlib.crc32(op.encode()) + int(os.environ.get('QUOLL_TEST_SEED', '0'))


def cases_of(op):
    rng = np.random.default_rng(seed_of(op))
    return [GENERATORS[op](rng) for _ in range(CONFIGS)]


def run_layers(folder, layers, *args):
    """Runs [(type, params, inputs, output count)], each layer by itself in one net; the outputs of each."""
    lines, feeds, blobs = [], {}, 0
    for i, (kind, params, inputs, outputs) in enumerate(layers):
        names = [f'in{i}_{k}' for k in range(len(inputs))]
        tops = [f'out{i}_{k}' for k in range(outputs)]
        feeds.update(zip(names, inputs))
        lines += [f'Input {name} 0 1 {name}' for name in names]
        lines.append(f"{kind} layer{i} {len(names)} {len(tops)} {' '.join(names + tops)} {params}")
        blobs += len(names) + len(tops)
    (folder / 'm.param').write_text(f'7767517\n{len(lines)} {blobs}\n' + '\n'.join(lines) + '\n')
    tops = [[f'out{i}_{k}' for k in range(layer[3])] for i, layer in enumerate(layers)]
    got = run_engine(folder / 'm.param', folder / 'm.bin', feeds, sum(tops, []), *args)
    return [[got[name] for name in names] for names in tops]


def difference(got, want, tolerance):
    """What is wrong with `got`, or None."""
    if got.shape != want.shape:
        return f'shape {got.shape}, expected {want.shape}'
    if got.dtype != want.dtype:
        return f'type {got.dtype}, expected {want.dtype}'
    if not tolerance or want.size == 0:
        return None if np.array_equal(got, want, equal_nan=want.dtype == np.float32) else f'{got.ravel()[:8]}, expected {want.ravel()[:8]}'
    error = np.abs(got.astype(np.float64) - want).max() / max(1e-3, np.abs(want).max())
    return None if error <= tolerance else f'error {error:.1e} of the largest value'


def describe(op, case):
    return f'{op} {case.params} on {[f"{x.dtype}{x.shape}" for x in case.inputs]} (seed {seed_of(op)})'


@pytest.mark.parametrize('op', sorted(GENERATORS))
def test_operator_gives_the_closed_form(op, tmp_path):
    cases = cases_of(op)
    batch = ['--batch'] if op in vision_cases.GENERATORS else []
    got = run_layers(tmp_path, [(op, c.params, c.inputs, len(c.expected)) for c in cases], *batch)
    wrong = []
    for case, outputs in zip(cases, got):
        for i, want in enumerate(case.expected):
            if batch and want.shape[0] == 1 and want.shape[1:] == outputs[i].shape:
                want = want[0]  # a batch of one is not an axis of the answer
            what = difference(outputs[i], np.asarray(want), case.tolerance)
            if what:
                wrong.append(f'{describe(op, case)}: output {i}: {what}')
    assert not wrong, f'{len(wrong)} wrong of {len(cases)}:\n' + '\n'.join(wrong[:10])


# ONNX Runtime

def run_onnx(node, outputs, by_reference):
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper
    kind, inputs, attributes = node
    plain = {}
    for name, value in attributes.items():
        if isinstance(value, type):
            value = helper.np_dtype_to_tensor_dtype(np.dtype(value))
        plain[name] = numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
    names = ['' if x is None else f'in{i}' for i, x in enumerate(inputs)]
    domain = plain.pop('domain', '')
    made = helper.make_node(kind, names, [f'out{i}' for i in range(outputs)], domain=domain, **plain)
    graph = helper.make_graph(
        [made], 'g',
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in zip(names, inputs) if n],
        [onnx.ValueInfoProto(name=f'out{i}') for i in range(outputs)])
    opsets = [helper.make_opsetid('', 20)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    if by_reference:
        from onnx.reference import ReferenceEvaluator
        return ReferenceEvaluator(model).run(None, {n: x for n, x in zip(names, inputs) if n})
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=['CPUExecutionProvider'])
    return session.run(None, {n: x for n, x in zip(names, inputs) if n})


def onnx_difference(theirs, want, tolerance):
    """ONNX has scalars, 64-bit indexes, bools and a batch axis of 1 where we have other things."""
    theirs = np.asarray(theirs)
    if theirs.size == want.size:
        theirs = theirs.reshape(want.shape)
    if theirs.dtype != want.dtype and (theirs.dtype in (np.int64, bool) or want.dtype != np.int32):
        theirs = theirs.astype(want.dtype)
    return difference(theirs, want, max(tolerance, 1e-6) if want.dtype == np.float32 else tolerance)


@pytest.mark.parametrize('op', sorted(GENERATORS))
def test_closed_form_is_what_onnx_means(op):
    pytest.importorskip('onnx')
    onnxruntime = pytest.importorskip('onnxruntime')
    onnxruntime.set_default_logger_severity(4)
    wrong, refused, compared = [], [], 0
    for case in cases_of(op):
        if case.node is None:
            continue
        try:
            theirs = run_onnx(case.node, len(case.expected), case.by_reference)
        except Exception as error:  # of many types, all from the runtime
            refused.append(f'{describe(op, case)}: {str(error)[:300]}')
            continue
        compared += 1
        for i, want in enumerate(case.expected):
            what = onnx_difference(theirs[i], np.asarray(want), case.tolerance)
            if what:
                wrong.append(f'{describe(op, case)}: output {i}: {what}')
    assert not wrong, f'{len(wrong)} of {compared} differ:\n' + '\n'.join(wrong[:10])
    if not compared and not refused:
        pytest.skip('no ONNX operator of this kind')
    assert compared >= CONFIGS // 10, f'{len(refused)} refused:\n' + '\n'.join(refused[:5])


# Operators that move values take any type

@pytest.mark.parametrize('dtype', [np.int32, np.int8, np.uint8])
def test_shape_operators_take_integers(dtype, tmp_path):
    rng = np.random.default_rng(1)
    x = rng.integers(0 if dtype is np.uint8 else -100, 100, (16, 5, 3)).astype(dtype)
    y = x[:, :1] + dtype(1)
    layers = [('Permute', '0=4', [x], 1), ('Permute', '0=2', [x], 1), ('Reshape', '0=15 1=16', [x], 1), ('Flatten', '', [x], 1),
              ('ExpandDims', '-23303=1,0', [x], 1), ('Squeeze', '-23303=1,1', [y], 1), ('Concat', '0=1', [x, y], 1),
              ('Slice', '-23300=2,2,-233 1=-2', [x], 2), ('Tile', '-23302=3,2,1,2', [x], 1), ('Noop', '', [x], 1),
              ('Crop', '-23309=1,1 -23310=1,4 -23311=1,0', [x], 1)]
    want = [[x.transpose(2, 0, 1)], [x.transpose(1, 0, 2)], [x.reshape(16, 15)], [x.ravel()], [x[None]], [y[:, 0]],
            [np.concatenate([x, y], 1)], [x[:, :2], x[:, 2:]], [np.tile(x, (2, 1, 2))], [x], [x[1:4]]]
    for layer, answers, got in zip(layers, want, run_layers(tmp_path, layers)):
        for a, g in zip(answers, got):
            assert g.dtype == dtype and np.array_equal(g, a), f'{layer[:2]}: {difference(g, a, 0)}'


# Batches and empty tensors

def test_batch_axis(tmp_path):
    rng = np.random.default_rng(5)
    for shape in [(3, 4), (2, 3, 5), (4, 2, 3, 5), (1, 2, 3, 5), (3, 7, 3)]:
        x = rng.uniform(-1, 1, shape).astype(np.float32)
        forth, = run_layers(tmp_path, [('BatchAxis', '', [x], 1)])
        assert np.array_equal(forth[0].reshape(shape), x)
        text = f'7767517\n3 3\nInput x 0 1 x\nBatchAxis a 1 1 x b\nBatchAxis c 1 1 b y 0=1\n'
        (tmp_path / 'm.param').write_text(text)
        got = run_engine(tmp_path / 'm.param', tmp_path / 'm.bin', {'x': x}, ['b', 'y'])
        assert got['b'].shape == (shape if shape[0] > 1 else shape[1:])
        assert np.array_equal(got['y'], x)


def test_shape_with_batch(tmp_path):
    x = np.zeros((3, 4, 5), np.float32)
    got = run_layers(tmp_path, [('ShapeOf', '', [x], 1), ('ShapeOf', '3=1', [x], 1), ('ShapeOf', '2=1 3=1', [x], 1)], '--batch')
    assert [list(g[0]) for g in got] == [[4, 5], [3, 4, 5], [60]]


@pytest.mark.parametrize('seed', range(10))
def test_space_to_batch(seed, tmp_path):
    rng = np.random.default_rng(seed)
    n, c, h, w = (int(v) for v in rng.integers(1, 4, 4))
    bh, bw = (int(v) for v in rng.integers(1, 4, 2))
    top, left = (int(v) for v in rng.integers(0, 3, 2))
    bottom, right = -(h + top) % bh, -(w + left) % bw
    x = rng.uniform(-1, 1, (n, c, h, w)).astype(np.float32)
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    split = padded.reshape(n, c, padded.shape[2] // bh, bh, padded.shape[3] // bw, bw)
    want = split.transpose(3, 5, 0, 1, 2, 4).reshape(-1, c, padded.shape[2] // bh, padded.shape[3] // bw)
    params = f'0={bh} 1={bw} 2={top} 3={bottom} 4={left} 5={right}'
    there = run_layers(tmp_path, [('SpaceToBatch', params, [x], 1)], '--batch')[0][0]
    back = run_layers(tmp_path, [('SpaceToBatch', params + ' 6=1', [want], 1)], '--batch')[0][0]
    assert np.array_equal(there.reshape(want.shape), want) and np.array_equal(back.reshape(x.shape), x)


def test_batches_go_item_by_item(tmp_path):
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, (3, 4, 5)).astype(np.float32)
    index = rng.integers(0, 5, (3, 2)).astype(np.int32)
    got = run_layers(tmp_path, [('Gather', '0=1', [x, index], 1), ('CumSum', '0=0', [x], 1)], '--batch')
    assert np.array_equal(got[0][0], np.stack([np.take(a, i, 1) for a, i in zip(x, index)]))
    assert np.allclose(got[1][0], np.cumsum(x, 1), atol=1e-6)


EMPTY_CHAINS = {  # layers behind an s32 tensor `none` of shape (3, 0); what comes out
    'Gather': (['Gather g 2 1 none rows y 0=0'], np.zeros((2, 0), np.int32)),
    'GatherElements': (['GatherElements g 2 1 none none y 0=0'], np.zeros((3, 0), np.int32)),
    'ShapeOf': (['ShapeOf s 1 1 none y'], np.array([3, 0], np.int32)),
    'Expand': (['Expand e 1 1 none y -23300=3,2,3,0'], np.zeros((2, 3, 0), np.int32)),
    'ReshapeTo': (['ReshapeTo r 1 1 none y -23300=2,0,5 1=1'], np.zeros((0, 5), np.int32)),
    'TensorBinary': (['TensorBinary b 2 1 none one y 0=0'], np.zeros((3, 0), np.int32)),
    'TensorUnary': (['TensorUnary u 1 1 none y 0=1'], np.zeros((3, 0), np.int32)),
    'CastTo': (['CastTo c 1 1 none y 0=0'], np.zeros((3, 0), np.float32)),
    'NonZero': (['NonZero z 1 1 none y'], np.zeros((2, 0), np.int32)),
    'StridedSlice': (['StridedSlice s 1 1 none y -23300=1,0 -23301=1,2 -23302=1,0'], np.zeros((2, 0), np.int32)),
    'Unique': (['Unique u 1 1 none y'], np.zeros((0,), np.int32)),
    'CumSum': (['CumSum c 1 1 none y 0=1'], np.zeros((3, 0), np.int32)),
    'Trilu': (['Trilu t 1 1 none y'], np.zeros((3, 0), np.int32)),
    'Stack': (['Stack s 2 1 none none y 0=1'], np.zeros((3, 2, 0), np.int32)),
    'TopK': (['TopK k 1 2 none y i 0=2 1=0'], np.zeros((2, 0), np.int32)),
}


@pytest.mark.parametrize('name', sorted(EMPTY_CHAINS))
def test_empty_tensors_pass_through(name, tmp_path):
    layers, want = EMPTY_CHAINS[name]
    lines = ['Input x 0 1 x', 'Input rows 0 1 rows', 'Input one 0 1 one', 'NonZero first 1 1 x none', *layers]
    # As the loader does, a blob read twice gets a Split.
    if layers[0].count(' none') == 2:
        lines[4:] = ['Split two 1 2 none none_a none_b', layers[0].replace(' none none', ' none_a none_b')]
    blobs = 4 + len(layers[0].split()) - 3 + 2 if 'TopK' in layers[0] else 4 + 1 + (2 if len(lines) == 6 else 0)
    (tmp_path / 'm.param').write_text(f'7767517\n{len(lines)} {blobs}\n' + '\n'.join(lines) + '\n')
    inputs = {'x': np.zeros((2, 3, 4), np.int32), 'rows': np.array([0, 2], np.int32), 'one': np.array([1], np.int32)}
    got = run_engine(tmp_path / 'm.param', tmp_path / 'm.bin', inputs, ['y'])['y']
    assert got.shape == want.shape and got.dtype == want.dtype and np.array_equal(got, want)


REFUSALS = {
    'Gather': ('0=0', [np.zeros((3, 2), np.float32), np.array([3], np.int32)], 'index 3'),
    'GatherElements': ('0=0', [np.zeros(3, np.float32), np.array([-4], np.int32)], 'index -4'),
    'GatherND': ('', [np.zeros((3, 2), np.float32), np.array([[0, 2]], np.int32)], 'index 2'),
    'ScatterElements': ('', [np.zeros(3, np.int32), np.array([5], np.int32), np.array([5], np.int32)], 'index 5'),
    'ScatterND': ('', [np.zeros(3, np.int32), np.array([[5]], np.int32), np.array([5], np.int32)], 'index 5'),
    'Range': ('', [np.array([0], np.int32), np.array([9], np.int32), np.array([0], np.int32)], 'steps of 0'),
    'ConstantOfShape': ('', [np.array([70000, 70000], np.int32)], 'more than'),
    'ReshapeTo': ('', [np.zeros(6, np.float32), np.array([4, -1], np.int32)], 'do not fill'),
    'TensorBinary': ('', [np.zeros((2, 3), np.float32), np.zeros((2, 2), np.float32)], 'broadcast'),
    'Where': ('', [np.zeros(2, np.int32), np.zeros(2, np.float32), np.zeros(2, np.float32)], 'condition'),
    'OneHot': ('', [np.zeros(2, np.int32), np.zeros(2, np.float32), np.array([0], np.int32)], 'depth'),
    'TopK': ('', [np.zeros(2, np.float32), np.array([3], np.int32)], 'k is 3'),
    'StridedSlice': ('-23300=1,0 -23301=1,2 -23303=1,0', [np.zeros(3, np.float32)], 'step of 0'),
    'ReverseSequence': ('', [np.zeros((2, 1), np.float32), np.array([3], np.int32)], 'length 3'),
}


@pytest.mark.parametrize('op', sorted(REFUSALS))
def test_bad_values_are_refused_with_a_message(op, tmp_path):
    params, inputs, words = REFUSALS[op]
    with pytest.raises(EngineError) as error:
        run_layers(tmp_path, [(op, params, inputs, 2 if op == 'TopK' else 1)])
    assert words in str(error.value), str(error.value)
