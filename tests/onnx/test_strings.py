"""Strings, which are places in a table, are moved and compared; what computes with them is refused."""
import re
import subprocess

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, defs, helper
from onnx.reference import ReferenceEvaluator

from onnx_run import BIN, Failure, convert, run, run_program

OPSETS = [helper.make_opsetid('', 21), helper.make_opsetid('ai.onnx.ml', 3), helper.make_opsetid('com.microsoft', 1)]
WORDS = np.array([['a', 'b', 'c'], ['d', 'a', '']], object)


def table():
    """Domain and name of each operator that is converted."""
    rows = re.findall(r'^\| ([\w.:]+) \|', run_program([BIN / 'onnx2engine', '--operators']), re.M)
    found = sorted({tuple(row.rpartition('::')[::2]) if '::' in row else ('', row) for row in rows} - {('', 'operator')})
    assert len(found) > 190
    return found


SCHEMAS = {(s.domain, s.name): s for s in sorted(defs.get_all_schemas_with_history(), key=lambda s: s.since_version)}


def may_be_strings(schema, place):
    """What ONNX itself says of an input; operators of others have none."""
    if not schema or not schema.inputs:
        return False
    i = schema.inputs[min(place, len(schema.inputs) - 1)]
    known = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}.get(i.type_str, [i.type_str])
    return any('string' in t for t in known)


def attributes_of(schema):
    """Something for each attribute that a node must have, and for those that say a type: strings."""
    made = {}
    for a in schema.attributes.values() if schema else []:
        kind = str(a.type).rpartition('.')[2]
        if a.name in ('dtype', 'output_datatype', 'output_dtype', 'to', 'stash_type', 'softmax_precision'):
            made[a.name] = TensorProto.STRING
        elif a.required and kind != 'GRAPH':
            made[a.name] = {'INT': 1, 'INTS': [1, 1], 'FLOAT': 1., 'FLOATS': [1.], 'STRING': 'ij->ji', 'STRINGS': ['a']}.get(kind, 1)
    return made


# Which of a node's inputs are strings; the others are floats.
PLACES = {'all': range(9), 'first': [0], 'second': [1], 'third': [2], 'fourth': [3], 'fifth': [4], 'none': []}


@pytest.mark.parametrize('shape', [(2,), (1, 2, 2, 2)], ids=str)
@pytest.mark.parametrize('places', sorted(PLACES))
def test_every_operator(places, shape, tmp_path):
    """One node of each: an error that tells of it, never a crash, and no answer where ONNX has none."""
    nodes, allowed = [], set()
    for domain, op in table():
        schema = SCHEMAS.get((domain, op))
        least = schema.min_input if schema else 3
        count = max(least, (max(PLACES[places], default=0) + 1) if len(PLACES[places]) < 9 else 3)
        if schema and count > max(schema.max_input, 1):
            continue
        at = [i for i in PLACES[places] if i < count]
        inputs = ['s' if i in at else 'x' for i in range(count)]
        name = f'<{domain}.{op}>'
        if not at or all(may_be_strings(schema, i) for i in at):
            allowed.add(name)
        nodes.append(helper.make_node(op, inputs, [name + 'y'], name, domain=domain, **attributes_of(schema)))
    assert len(nodes) > 25
    graph = helper.make_graph(nodes, 'g', [helper.make_tensor_value_info('s', TensorProto.STRING, shape),
                                           helper.make_tensor_value_info('x', TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info(n.output[0], TensorProto.FLOAT, None) for n in nodes])
    onnx.save(helper.make_model(graph, opset_imports=OPSETS, ir_version=10), tmp_path / 'm.onnx')
    done = subprocess.run([BIN / 'onnx2engine', tmp_path / 'm.onnx', tmp_path / 'm.param', tmp_path / 'm.bin'],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and 'exception' not in done.stderr, done.stderr[-500:]
    refused = set(re.findall(r'<\w*[\w.]*\.\w+>', done.stderr))
    assert {n.name for n in nodes} - allowed <= refused


def const(name, values, kind=None):
    values = np.asarray(values)
    kind = kind or (TensorProto.STRING if values.dtype.kind in 'OU' else helper.np_dtype_to_tensor_dtype(values.dtype))
    data = [v.encode() for v in values.ravel()] if kind == TensorProto.STRING else values
    return helper.make_tensor(name, kind, values.shape, data)


I = np.int64
MOVES = {
    'Identity': ([], {}), 'Concat': ([WORDS[:1]], {'axis': 0}), 'Gather': ([I([1, 0, 1])], {'axis': 1}),
    'GatherElements': ([I([[0, 1, 0]])], {}), 'GatherND': ([I([[1, 2], [0, 0]])], {}),
    'ScatterElements': ([I([[1, 0, 1]]), WORDS[1:]], {}), 'ScatterND': ([I([[1]]), WORDS[:1]], {}),
    'Compress': ([np.array([True, False, True])], {'axis': 1}), 'Reshape': ([I([3, -1])], {}), 'Flatten': ([], {'axis': 0}),
    'Squeeze': ([I([])], {}), 'Unsqueeze': ([I([1])], {}), 'Transpose': ([], {'perm': [1, 0]}), 'Shape': ([], {}), 'Size': ([], {}),
    'Expand': ([I([2, 2, 3])], {}), 'Slice': ([I([2]), I([0]), I([1]), I([-1])], {}), 'Split': ([I([1, 1])], {}), 'Tile': ([I([2, 1])], {}),
    'ReverseSequence': ([I([1, 2, 2])], {}), 'Cast': ([], {'to': TensorProto.STRING}), 'CastLike': ([WORDS[0]], {}),
    'Equal': ([WORDS[1]], {}),
}


@pytest.mark.parametrize('op', sorted(MOVES))
def test_moves(op, tmp_path):
    """As ONNX's own reference has it; each of the strings stands in the model."""
    extra, attributes = MOVES[op]
    if op == 'Squeeze':
        extra, attributes = [], {}
    constants = [const(f'c{i}', c) for i, c in enumerate(extra)]
    outputs = ['y', 'z'] if op == 'Split' else ['y']
    kind = TensorProto.BOOL if op == 'Equal' else TensorProto.INT64 if op in ('Shape', 'Size') else TensorProto.STRING
    nodes = [helper.make_node('Equal', ['x', 'all'], ['same']), helper.make_node('Where', ['same', 'x', 'all'], ['kept']),
             helper.make_node(op, ['kept', *[c.name for c in constants]], outputs, **attributes)]
    graph = helper.make_graph(nodes, 'g', [helper.make_tensor_value_info('x', TensorProto.STRING, [2, 3])],
                              [helper.make_tensor_value_info(o, kind, None) for o in outputs], [*constants, const('all', WORDS)])
    model = helper.make_model(graph, opset_imports=OPSETS[:1], ir_version=10)
    onnx.save(model, tmp_path / 'm.onnx')
    x = WORDS[::-1, ::-1].copy()
    try:
        want = ort.InferenceSession(str(tmp_path / 'm.onnx'), providers=['CPUExecutionProvider']).run(outputs, {'x': x})
    except Exception:  # it has no strings for some of these
        want = ReferenceEvaluator(model).run(outputs, {'x': x})
    have = run(convert(tmp_path / 'm.onnx', tmp_path), {'x': x}, outputs, tmp_path)
    for name, values in zip(outputs, want):
        assert have[name].shape == np.shape(values)
        np.testing.assert_array_equal(have[name], values)


def test_sums_of_scattered_strings(tmp_path):
    model = helper.make_graph([helper.make_node('ScatterElements', ['x', 'i', 'x'], ['y'], reduction='add')], 'g',
                              [helper.make_tensor_value_info('x', TensorProto.STRING, [1, 3])],
                              [helper.make_tensor_value_info('y', TensorProto.STRING, None)], [const('i', I([[0, 1, 0]]))])
    onnx.save(helper.make_model(model, opset_imports=OPSETS[:1], ir_version=10), tmp_path / 'm.onnx')
    with pytest.raises(Failure, match='input x is of strings, known by their places in a table alone'):
        convert(tmp_path / 'm.onnx', tmp_path)
