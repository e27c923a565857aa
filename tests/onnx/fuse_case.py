"""Cases of patterns that the converter fuses: an exporter's nodes as text, what they become, and near misses."""
import dataclasses

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

from onnx_run import convert, run


@dataclasses.dataclass
class Case:
    """`text` is a graph as onnx.parser reads it. `weights` are arrays, or the shapes of
    arrays of random numbers. `makes` are the layer
    types that must appear, `gone` those that must not. Each of `misses` is a pair of texts: with the first replaced by
    the second the pattern is another function, and none of `makes` may appear. `inner`: a value within the pattern; if
    something else reads it, the pattern stays as it is."""
    text: str
    makes: list
    gone: list
    misses: list = dataclasses.field(default_factory=list)
    inner: str = ''
    weights: dict = dataclasses.field(default_factory=dict)
    opset: int = 17
    tolerance: float = 2e-5  # of the range of an output
    sizes: dict = dataclasses.field(default_factory=dict)


def build(case, text):
    rng = np.random.default_rng(len(text))
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : {case.opset}]> {text}')
    for name, shape in case.weights.items():
        random = isinstance(shape, tuple)
        values = rng.normal(0, 1, shape).astype(np.float32) if random else shape
        model.graph.initializer.append(numpy_helper.from_array(values, name))
    return model


def check(case, text, folder, inner=''):
    """Converts, compares with the reference evaluator, and returns the types of layers."""
    model = build(case, text)
    if inner:
        model.graph.output.append(helper.make_tensor_value_info(inner, onnx.TensorProto.FLOAT, None))
    rng = np.random.default_rng(5)
    inputs = {}
    for v in model.graph.input:
        sizes = [d.dim_value or case.sizes.get(d.dim_param, 3) for d in v.type.tensor_type.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(v.type.tensor_type.elem_type)
        inputs[v.name] = rng.normal(0, 2, sizes).astype(dtype)
    names = [v.name for v in model.graph.output]
    want = dict(zip(names, ReferenceEvaluator(model).run(names, inputs)))
    path = folder / 'm.onnx'
    onnx.save(model, path)
    net = convert(path, folder)
    have = run(net, inputs, names, folder)
    for name in names:
        assert have[name].shape == want[name].shape
        spread = max(float(np.ptp(want[name])), 1e-6)
        assert np.abs(have[name] - want[name]).max() <= case.tolerance * spread, name
    return [line.split()[0] for line in open(net[0]).read().splitlines()[2:]]


def check_fused(case, folder):
    layers = check(case, case.text, folder)
    for layer in case.makes:
        assert layer in layers, layers
    for layer in case.gone:
        assert layer not in layers, layers


def check_miss(case, miss, folder):
    before, after = miss
    assert before in case.text
    layers = check(case, case.text.replace(before, after), folder)
    assert not [layer for layer in case.makes if layer in layers], layers


def check_inner(case, folder):
    layers = check(case, case.text, folder, case.inner)
    assert not [layer for layer in case.makes if layer in layers], layers


def functions_for(cases):
    """The three test functions for a table of cases."""
    misses = [(name, i) for name, case in cases.items() for i in range(len(case.misses))]

    @pytest.mark.parametrize('name', cases)
    def test_fused(name, tmp_path):
        check_fused(cases[name], tmp_path)

    @pytest.mark.parametrize('name,index', misses)
    def test_near_miss(name, index, tmp_path):
        check_miss(cases[name], cases[name].misses[index], tmp_path)

    @pytest.mark.parametrize('name', [n for n, case in cases.items() if case.inner])
    def test_second_reader(name, tmp_path):
        check_inner(cases[name], tmp_path)

    return test_fused, test_near_miss, test_second_reader
