"""Floats of 8, 6 and 4 bits, integers of 4 and 2: as constants, inputs and outputs, cast, quantised, moved, in blocks. The
wanted answers are ml_dtypes' and the reference evaluator's."""
import numpy as np
import pytest

onnx = pytest.importorskip('onnx')
ml_dtypes = pytest.importorskip('ml_dtypes')
from onnx import TensorProto, helper, numpy_helper, parser  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

from onnx_run import Failure, convert, run  # noqa: E402

FLOATS = ['FLOAT8E4M3FN', 'FLOAT8E4M3FNUZ', 'FLOAT8E5M2', 'FLOAT8E5M2FNUZ', 'FLOAT4E2M1', 'FLOAT8E8M0', 'FLOAT6E2M3', 'FLOAT6E3M2']
INTS = ['INT4', 'UINT4', 'INT2', 'UINT2']


def number(name):
    return getattr(TensorProto, name)


def plain(array):
    """As programs give and take such arrays."""
    if array.dtype.isbuiltin == 1:
        return array
    return array.astype({'int': np.int8, 'uin': np.uint8}.get(array.dtype.name[:3], np.float32))


def build(nodes, inputs, outputs, weights=(), opset=25):
    """inputs and outputs: (name, element type, shape)."""
    graph = helper.make_graph(nodes, 'g', [helper.make_tensor_value_info(*i) for i in inputs],
                              [helper.make_tensor_value_info(*o) for o in outputs], list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', opset)], ir_version=12)


def answers(model, feeds, folder):
    onnx.save(model, folder / 'm.onnx')
    net = convert(folder / 'm.onnx', folder)
    return run(net, {n: plain(a) for n, a in feeds.items()}, [o.name for o in model.graph.output], folder)


def every_code(name):
    dtype = helper.tensor_dtype_to_np_dtype(number(name))
    bits = 6 if '6' in name else 2 if name.endswith('2') and 'INT' in name else 4 if '4' in name[-6:] and '8' not in name else 8
    return np.arange(2**bits, dtype=np.uint8).view(dtype) if 'INT' not in name else np.arange(
        -2**(bits - 1) if name[0] == 'I' else 0, 2**(bits - 1) if name[0] == 'I' else 2**bits).astype(dtype)


@pytest.mark.parametrize('raw', [True, False])
@pytest.mark.parametrize('name', FLOATS + INTS)
def test_constants(name, raw, tmp_path):
    """Every code, one of them twice, so that the last byte of packed types is not full. 2**-127 is flushed to 0."""
    values = every_code(name)[name == 'FLOAT8E8M0':]
    values = np.concatenate([values, values[-1:]])
    tensor = numpy_helper.from_array(values, 'w')
    if not raw:
        bits = {'FLOAT6E2M3': values, 'FLOAT6E3M2': values}.get(name)
        data = bits.view(np.uint8) if bits is not None else np.frombuffer(tensor.raw_data, np.uint8)
        tensor = TensorProto(name='w', data_type=number(name), dims=values.shape, int32_data=[int(v) for v in data])
    model = build([helper.make_node('Cast', ['w'], ['a'], to=TensorProto.FLOAT), helper.make_node('Add', ['a', 'x'], ['y']),
                   helper.make_node('Reshape', ['w', 's'], ['z'])],
                  [('x', TensorProto.FLOAT, [1])],
                  [('y', TensorProto.FLOAT, [values.size]), ('z', number(name), [1, values.size])],
                  [tensor, numpy_helper.from_array(np.array([1, -1]), 's')])
    got = answers(model, {'x': np.zeros(1, np.float32)}, tmp_path)
    np.testing.assert_array_equal(got['y'], values.astype(np.float32))
    np.testing.assert_array_equal(got['z'], plain(values)[None])


@pytest.mark.parametrize('constant', [True, False])
@pytest.mark.parametrize('saturate', [0, 1])
@pytest.mark.parametrize('name', FLOATS[:5] + FLOATS[6:])
def test_casts_to_floats(name, saturate, constant, tmp_path):
    rng = np.random.default_rng(number(name))
    x = (rng.normal(0, 1, (4, 50)) * 2.0**rng.integers(-12, 18, (4, 50))).astype(np.float32)
    x[0, :4] = [np.inf, -np.inf, -0.0, 448]
    dtype = helper.tensor_dtype_to_np_dtype(number(name))
    want = numpy_helper.saturate_cast(x, dtype) if saturate else x.astype(dtype)
    to = {'to': number(name), 'saturate': saturate}
    weights = [numpy_helper.from_array(x, 'w')] if constant else []
    model = build([helper.make_node('Cast', ['w' if constant else 'x'], ['y'], **to), helper.make_node('Neg', ['x'], ['z'])],
                  [('x', TensorProto.FLOAT, [4, 50])], [('y', number(name), [4, 50]), ('z', TensorProto.FLOAT, [4, 50])], weights)
    np.testing.assert_array_equal(answers(model, {'x': x}, tmp_path)['y'], want.astype(np.float32))


@pytest.mark.parametrize('mode', ['nearest', 'up', 'down'])
def test_casts_to_powers_of_two(mode, tmp_path):
    x = np.random.default_rng(3).uniform(0.01, 9, 40).astype(np.float32)
    model = build([helper.make_node('Cast', ['x'], ['y'], to=TensorProto.FLOAT8E8M0, round_mode=mode)],
                  [('x', TensorProto.FLOAT, [40])], [('y', TensorProto.FLOAT8E8M0, [40])])
    want = {'nearest': 2.0**np.floor(np.log2(x / 1.5) + 1), 'up': 2.0**np.ceil(np.log2(x)), 'down': 2.0**np.floor(np.log2(x))}
    np.testing.assert_array_equal(answers(model, {'x': x}, tmp_path)['y'], want[mode].astype(np.float32))


@pytest.mark.parametrize('source', [np.float32, np.int32, np.int8, np.uint8, np.int16])
@pytest.mark.parametrize('name', INTS + ['INT16', 'UINT16'])
def test_casts_to_integers_wrap(name, source, tmp_path):
    x = np.arange(-60, 60) if source != np.uint8 else np.arange(120)
    x = (x * (1 if np.dtype(source).itemsize == 1 else 700)).astype(source)
    if source == np.float32 and name.endswith('16'):
        pytest.skip('ONNX leaves open what floats beyond the range become')
    dtype = helper.tensor_dtype_to_np_dtype(number(name))
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(source))
    model = build([helper.make_node('Cast', ['x'], ['y'], to=number(name))], [('x', kind, [120])], [('y', number(name), [120])])
    np.testing.assert_array_equal(answers(model, {'x': x}, tmp_path)['y'], plain(x.astype(dtype)))


@pytest.mark.parametrize('name', FLOATS[:5] + INTS + ['UINT8', 'INT16'])
def test_what_moves_values(name, tmp_path):
    values = every_code(name) if name in FLOATS + INTS else np.arange(16).astype(helper.tensor_dtype_to_np_dtype(number(name)))
    x = np.resize(values, (4, 6))
    nodes = [helper.make_node('Transpose', ['x'], ['t'], perm=[1, 0]), helper.make_node('Concat', ['t', 't'], ['c'], axis=0),
             helper.make_node('Identity', ['c'], ['y'])]
    model = build(nodes, [('x', number(name), [4, 6])], [('y', number(name), [12, 4])])
    want = plain(np.concatenate([x.T, x.T]))
    np.testing.assert_array_equal(answers(model, {'x': x}, tmp_path)['y'], want)


def quantising(rng, name, block, constant):
    """A model that quantises to a type and back, by one axis or by blocks, and its inputs."""
    axis, shape = int(rng.integers(3)), [int(v) for v in rng.integers(3, 8, 3)]
    sizes = [shape[axis]] if not block else [-(-s // block) if a == axis else s for a, s in enumerate(shape)]
    scale = rng.uniform(0.1, 2, sizes).astype(np.float32)
    dtype = helper.tensor_dtype_to_np_dtype(number(name))
    zero = np.zeros(sizes, np.int8) if name in FLOATS else rng.integers(0, 2, sizes)
    tensors = {'scale': scale, 'zero': zero.astype(dtype)}
    attributes = {'axis': axis, 'block_size': block} if block else {'axis': axis}
    nodes = [helper.make_node('QuantizeLinear', ['x', 'scale', 'zero'], ['q'], **attributes),
             helper.make_node('DequantizeLinear', ['q', 'scale', 'zero'], ['y'], **attributes)]
    inputs = {'x': rng.normal(0, 4, shape).astype(np.float32)}
    if not constant:
        inputs.update(tensors)
    model = build(nodes, [(n, number(name) if n == 'zero' else TensorProto.FLOAT, a.shape) for n, a in inputs.items()],
                  [('q', number(name), shape), ('y', TensorProto.FLOAT, shape)],
                  [numpy_helper.from_array(a, n) for n, a in tensors.items()] if constant else [])
    return model, inputs


@pytest.mark.parametrize('constant', [True, False])
@pytest.mark.parametrize('block', [0, 2, 3])
@pytest.mark.parametrize('name', FLOATS[:5] + INTS + ['UINT8', 'INT8', 'UINT16'])
def test_quantising(name, block, constant, tmp_path):
    rng = np.random.default_rng([number(name), block, constant])
    model, inputs = quantising(rng, name, block, constant)
    want = ReferenceEvaluator(model).run(None, inputs)
    got = answers(model, inputs, tmp_path)
    np.testing.assert_array_equal(got['q'], plain(want[0]))
    np.testing.assert_allclose(got['y'], want[1], 1e-6, 1e-6)


def test_bfloat16_input_as_output(tmp_path):
    kind = TensorProto.BFLOAT16
    model = build([helper.make_node('Neg', ['x'], ['y'])], [('x', kind, [3])], [('x', kind, [3]), ('y', kind, [3])])
    x = np.float32([1, -2, 0.5])
    have = answers(model, {'x': x}, tmp_path)
    np.testing.assert_array_equal(have['x'], x)
    np.testing.assert_array_equal(have['y'], -x)


def test_bfloat16_output_of_what_is_fused(tmp_path):
    """The Cast lies between two Transposes that undo one another."""
    nodes = [helper.make_node('Transpose', ['x'], ['t'], perm=[1, 0]), helper.make_node('Cast', ['t'], ['c'], to=TensorProto.BFLOAT16),
             helper.make_node('Transpose', ['c'], ['y'], perm=[1, 0])]
    x = np.random.default_rng(7).normal(0, 2, (3, 4)).astype(np.float32)
    model = build(nodes, [('x', TensorProto.FLOAT, [3, 4])], [('y', TensorProto.BFLOAT16, [3, 4])])
    np.testing.assert_array_equal(answers(model, {'x': x}, tmp_path)['y'], x.astype(ml_dtypes.bfloat16).astype(np.float32))


BITS = [('FLOAT8E4M3FN', 'UINT8'), ('INT8', 'FLOAT8E5M2'), ('UINT4', 'FLOAT4E2M1'), ('INT2', 'UINT2'), ('FLOAT16', 'INT16'),
        ('UINT16', 'BFLOAT16'), ('FLOAT', 'UINT32'), ('BOOL', 'INT8')]


@pytest.mark.parametrize('source,target', BITS)
def test_bits_as_another_type(source, target, tmp_path):
    from_type, to_type = (helper.tensor_dtype_to_np_dtype(number(n)) for n in (source, target))
    rng = np.random.default_rng(5)
    codes = (every_code(source) if source in FLOATS + INTS else rng.integers(0, 2, 20) if source == 'BOOL' else
             rng.integers(0x3000, 0x6000, 20) if source == 'UINT16' else rng.uniform(0, 9, 20)).astype(from_type)
    model = build([helper.make_node('BitCast', ['x'], ['y'], to=number(target))], [('x', number(source), codes.shape)],
                  [('y', number(target), codes.shape)], opset=26)
    want = codes.view(to_type) if source not in INTS else (codes.astype(np.int8) & (3 if '2' in source else 15)).astype(np.uint8)
    want = want.view(to_type) if target == 'FLOAT4E2M1' else want.astype(to_type)
    np.testing.assert_array_equal(answers(model, {'x': codes}, tmp_path)['y'], plain(want))


@pytest.mark.parametrize('name,value', [('FLOAT8E4M3FN', 0.3), ('INT4', 8), ('UINT2', 4), ('FLOAT4E2M1', 7)])
def test_arrays_hold_values_of_the_type(name, value, tmp_path):
    model = build([helper.make_node('Cast', ['x'], ['y'], to=TensorProto.FLOAT)], [('x', number(name), [2])],
                  [('y', TensorProto.FLOAT, [2])])
    onnx.save(model, tmp_path / 'm.onnx')
    net = convert(tmp_path / 'm.onnx', tmp_path)
    x = np.array([1, value], np.float32 if name in FLOATS else np.int8 if name[0] == 'I' else np.uint8)
    with pytest.raises(Failure, match=f'element 1 is no value of {name.lower()}'):
        run(net, {'x': x}, ['y'], tmp_path)


@pytest.mark.parametrize('attributes,words', [({'to': TensorProto.INT64}, 'from int64 to int64'), ({'to': TensorProto.FLOAT}, 'to float32')])
def test_bits_that_are_not_held(attributes, words, tmp_path):
    model = build([helper.make_node('BitCast', ['x'], ['y'], name='bits', **attributes)], [('x', TensorProto.INT64, [2])],
                  [('y', attributes['to'], [2])], opset=26)
    onnx.save(model, tmp_path / 'm.onnx')
    with pytest.raises(Failure, match=f'bits .BitCast, opset 26.: .*{words}'):
        convert(tmp_path / 'm.onnx', tmp_path)


@pytest.mark.parametrize('name', ['FLOAT8E4M3FN', 'FLOAT8E5M2'])
@pytest.mark.parametrize('around', ['Swish', 'Transpose', 'Reshape'])
def test_rounding_within_what_is_fused(name, around, tmp_path):
    """The pair of casts is no Identity."""
    before, after = {'Swish': ('', 's = Sigmoid(r) y = Mul(x, s)'),
                     'Transpose': ('t = Transpose <perm = [2, 0, 1]> (x)', 'y = Transpose <perm = [1, 2, 0]> (r)'),
                     'Reshape': ('t = Reshape(x, a)', 'y = Reshape(r, b)')}[around]
    model = parser.parse_model(f'''<ir_version: 12, opset_import: ["" : 25]> g (float[2,3,4] x) => (float[2,3,4] y)
        <int64[2] a = {{6, 4}}, int64[3] b = {{2, 3, 4}}> {{
        {before} c = Cast <to = {number(name)}> ({'t' if before else 'x'}) r = Cast <to = 1> (c) {after} }}''')
    x = np.random.default_rng(6).normal(0, 2, (2, 3, 4)).astype(np.float32)
    rounded = x.astype(helper.tensor_dtype_to_np_dtype(number(name))).astype(np.float32)
    want = x / (1 + np.exp(-rounded)) if around == 'Swish' else rounded
    np.testing.assert_allclose(answers(model, {'x': x}, tmp_path)['y'], want, 1e-5, 1e-6)
