"""Large tensors are read where they lie in the file, however protobuf's fields are put."""
import numpy as np
import pytest

onnx = pytest.importorskip('onnx')
ort = pytest.importorskip('onnxruntime')
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from onnx_run import Failure, convert, run  # noqa: E402

ROWS, COLUMNS = 70, 130  # no multiple of a block that is transposed
X = np.random.default_rng(0).normal(0, 1, (3, ROWS)).astype(np.float32)
W = np.random.default_rng(1).normal(0, .1, (ROWS, COLUMNS)).astype(np.float32)


def varint(value):
    bytes_ = b''
    while value > 127:
        bytes_ += bytes([value & 127 | 128])
        value >>= 7
    return bytes_ + bytes([value])


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def graph_bytes(with_weights=True):
    info = helper.make_tensor_value_info
    graph = helper.make_graph([helper.make_node('MatMul', ['x', 'w'], ['y'])], 'g',
                              [info('x', TensorProto.FLOAT, X.shape)], [info('y', TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(W, 'w')] if with_weights else [])
    return graph.SerializeToString()


def write(graph, path):
    model = onnx.ModelProto(ir_version=8, opset_import=[helper.make_opsetid('', 17)])
    path.write_bytes(model.SerializeToString() + graph)


def tensor(raw, before=b'', behind=b''):
    head = onnx.TensorProto(data_type=TensorProto.FLOAT, dims=W.shape, name='w').SerializeToString()
    return field(5, before + head + field(9, raw) + behind)


def constant(parts, before=b'', between=b''):
    """The bytes of a Constant node of W; parts: the fields `t` of its attribute."""
    attribute = onnx.AttributeProto(name='value', type=onnx.AttributeProto.TENSOR).SerializeToString()
    node = onnx.NodeProto(op_type='Constant', output=['w']).SerializeToString()
    return field(1, node + field(5, attribute + before + between.join(field(5, p) for p in parts)))


HEAD = onnx.TensorProto(data_type=TensorProto.FLOAT, dims=W.shape).SerializeToString()
DATA = field(9, W.tobytes())
LIST = onnx.AttributeProto(ints=range(3000)).SerializeToString()  # of a kind that the attribute's type does not name
SPLIT = {  # a message in parts is their union, and the last of a field counts
    'plain': field(7, graph_bytes()),
    'data before sizes': field(7, graph_bytes(False) + field(5, field(9, W.tobytes()) + onnx.TensorProto(
        data_type=TensorProto.FLOAT, dims=W.shape, name='w').SerializeToString())),
    'two graphs': field(7, graph_bytes(False)) + field(7, tensor(W.tobytes())),
    'data twice': field(7, graph_bytes(False) + tensor(bytes(W.nbytes), behind=field(9, W.tobytes()))),
    'constant': field(7, constant([HEAD + DATA]) + graph_bytes(False)),
    'constant in parts': field(7, constant([HEAD, DATA]) + graph_bytes(False)),
    'constant behind a list': field(7, constant([HEAD + DATA], before=LIST) + graph_bytes(False)),
    'constant around a list': field(7, constant([HEAD, DATA], between=LIST) + graph_bytes(False)),
    'constants in two graphs': field(7, constant([HEAD + DATA])) + field(7, graph_bytes(False)),
    'unknown fields': field(7, graph_bytes(False) + field(999, b'abc') + tensor(W.tobytes(), varint(998 << 3) + b'\5')),
}


@pytest.mark.parametrize('kind', SPLIT)
def test_fields_in_any_order(kind, tmp_path):
    write(SPLIT[kind], tmp_path / 'm.onnx')
    want = ort.InferenceSession(str(tmp_path / 'm.onnx'), providers=['CPUExecutionProvider']).run(None, {'x': X})[0]
    have = run(convert(tmp_path / 'm.onnx', tmp_path), {'x': X}, ['y'], tmp_path)['y']
    assert np.abs(have - want).max() <= 1e-5 * np.abs(want).max()


@pytest.mark.parametrize('levels', [1, 2, 5])
def test_tensors_of_subgraphs(levels, tmp_path):
    """Weights of branches, as initializers and as Constant nodes."""
    node, graph, info = helper.make_node, helper.make_graph, helper.make_tensor_value_info
    other = (W * np.linspace(.5, 2, COLUMNS)).astype(np.float32)
    yes = graph([node('MatMul', ['x', 'w'], ['a'])], 'yes', [], [info('a', TensorProto.FLOAT, None)],
                [numpy_helper.from_array(W, 'w')])
    no = graph([node('Constant', [], ['v'], value=numpy_helper.from_array(other)), node('MatMul', ['x', 'v'], ['b'])], 'no', [],
               [info('b', TensorProto.FLOAT, None)])
    for level in range(1, levels):
        name = f'y{level}'
        yes = graph([node('If', ['c'], [name], then_branch=yes, else_branch=no)], f'g{level}', [],
                    [info(name, TensorProto.FLOAT, None)])
    main = graph([node('If', ['c'], ['y'], then_branch=yes, else_branch=no)], 'g',
                 [info('x', TensorProto.FLOAT, X.shape), info('c', TensorProto.BOOL, [])], [info('y', TensorProto.FLOAT, None)])
    path = tmp_path / 'm.onnx'
    onnx.save(helper.make_model(main, opset_imports=[helper.make_opsetid('', 17)], ir_version=8), path)
    session = ort.InferenceSession(str(path), providers=['CPUExecutionProvider'])
    for net in (convert(path, tmp_path), [path]):
        for choice in (True, False):
            inputs = {'x': X, 'c': np.array(choice)}
            want = session.run(None, inputs)[0]
            assert np.abs(run(net, inputs, ['y'], tmp_path)['y'] - want).max() <= 1e-5 * np.abs(want).max()


def test_data_of_the_wrong_size(tmp_path):
    write(field(7, graph_bytes(False) + tensor(W.tobytes()[:-4])), tmp_path / 'm.onnx')
    with pytest.raises(Failure, match=f'tensor w: needs {W.nbytes} bytes, got {W.nbytes - 4}'):
        convert(tmp_path / 'm.onnx', tmp_path)

    write(field(7, constant([HEAD + field(9, W.tobytes()[:-4])]) + graph_bytes(False)), tmp_path / 'm.onnx')
    with pytest.raises(Failure, match=f'needs {W.nbytes} bytes, got {W.nbytes - 4}'):
        convert(tmp_path / 'm.onnx', tmp_path)


@pytest.mark.parametrize('cut', [3, 1000, W.nbytes])
def test_a_file_that_is_cut_short(cut, tmp_path):
    write(field(7, graph_bytes()), tmp_path / 'm.onnx')
    path = tmp_path / 'm.onnx'
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(Failure, match='no ONNX model, or one that is cut short'):
        convert(path, tmp_path)
