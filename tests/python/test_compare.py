"""The comparison with other engines: export to ONNX, the double reference, the report, and a small run."""
import json
import subprocess
import sys

import numpy as np
import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / 'benchmark'))

import compare_onnx  # noqa: E402
import compare_report  # noqa: E402
import double_reference  # noqa: E402
import onnx_export  # noqa: E402
import peer_install  # noqa: E402


@pytest.mark.parametrize('name', ['squeezenet', 'shufflenet_v2', 'mobilenet_v3', 'efficientnet_b0', 'yolov4_tiny', 'googlenet'])
def test_export_agrees_with_the_double_reference(name, tmp_path):
    onnxruntime = pytest.importorskip('onnxruntime')
    graph = onnx_export.write_model(name, tmp_path)
    weights = onnx_export.read_weights(graph, tmp_path / f'{name}.bin')
    data = np.random.default_rng(5).standard_normal(graph.data.shape, dtype=np.float32)
    expected = double_reference.run_graph(graph, weights, data)[graph.output.name]
    (out,) = onnxruntime.InferenceSession(tmp_path / f'{name}.onnx').run(None, {'data': data[None]})
    assert out.shape == (1, *expected.shape) == (1, *graph.output.shape)
    assert np.abs(out[0] - expected).max() < 2e-5 * np.ptp(expected)


def result(times, tiles=None, errors=None):
    lanes = {lane: {'times_ms': values, 'error': (errors or {}).get(lane, 1e-6)} for lane, values in times.items()}
    count = len(next(iter(times.values())))
    peaks = [{'tdpbf16ps': tile} for tile in tiles] if tiles else [{}] * count
    return {'graph': 'net', 'threads': 1, 'macs': 1, 'lanes': lanes, 'peaks': peaks, 'absent': {}}


def test_ratios_are_taken_round_by_round():
    r = result({'quoll/fp32': [1, 2, 4], 'ncnn/fp32': [3, 4, 40], 'mnn/fp32': [2, 8, 8]})
    ours, rows, best = compare_report.compare(r, 'fp32', 8)
    assert ours == 2 and rows == {'ncnn': (4, 3), 'mnn': (8, 2)} and best == 'ncnn'


def test_rounds_of_slow_tiles_are_left_out_unless_all_are():
    times = {'quoll/fp32': [1, 9, 1], 'ncnn/fp32': [2, 9, 2]}
    assert compare_report.compare(result(times, [6.5, 14, 6.6]), 'fp32', 8)[1]['ncnn'] == (2, 2)
    assert compare_report.good_rounds(result(times, [14, 15, 16]), 8) == [0, 1, 2]


def test_wrong_answers_do_not_count():
    r = result({'quoll/fp32': [2], 'ncnn/fp32': [1], 'mnn/fp32': [4]}, errors={'ncnn/fp32': float('nan')})
    assert compare_report.compare(r, 'fp32', 8)[1] == {'mnn': (4, 2)}
    assert 'WRONG' in compare_report.one_result(r, 8)


def test_speed_ups_by_threads():
    one = result({'quoll/fp32': [4], 'ncnn/fp32': [8]})
    four = dict(result({'quoll/fp32': [2], 'ncnn/fp32': [8], 'mnn/fp32': [5]}), threads=4)
    report = {'results': [four, one], 'precisions': ['fp32'], 'tile_limit': 8}
    lines = compare_report.threads_tables([report])
    assert '| graph | engine | 1 threads | 4 threads |' in lines
    assert lines[-4:] == ['| net | quoll | 4.00 (1.0) 2.00 | 2.00 (2.0) 2.50 |', '| net | ncnn | 8.00 (1.0) | 8.00 (1.0) |',
                          '| net | mnn |  | 5.00 (1.0) |', '']
    assert compare_report.threads_tables([dict(report, results=[one])]) == []


def test_slim_wheel(tmp_path):
    import re
    import zipfile
    wheel = tmp_path / 'a-1-py3-none-any.whl'
    with zipfile.ZipFile(wheel, 'w') as file:
        file.writestr('a/big.so', 'x' * 1000)
        file.writestr('a/small.py', 'y')
        file.writestr('a-1.dist-info/RECORD', 'a/big.so,,\na/small.py,,\n')
    peer_install.slim_wheel(wheel, re.compile('a/big'))
    with zipfile.ZipFile(wheel) as file:
        assert file.namelist() == ['a/small.py', 'a-1.dist-info/RECORD']
        assert file.read('a-1.dist-info/RECORD') == b'a/small.py,,\n'


def test_a_run(tmp_path):
    pytest.importorskip('ncnn')
    command = [sys.executable, ROOT / 'benchmark/compare.py', '--peers', 'ncnn', '--filter', '^squeezenet$', '--precision', 'fp32,int8', '--rounds', '2', '--loops', '1',
               '--warmup', '1', '--load-rounds', '1', '--out', tmp_path, '--venv', tmp_path / 'venv', '--wheels', tmp_path]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads((tmp_path / 'compare.json').read_text())['results']
    assert set(found['lanes']) == {'quoll/fp32', 'ncnn/fp32', 'quoll/int8', 'ncnn/int8'} and found['absent'] == {}
    for lane, row in found['lanes'].items():
        assert len(row['times_ms']) == 2 and row['error'] < (1e-5 if 'fp32' in lane else 0.1) and row['load_ms'] > 0
    assert '| squeezenet |' in (tmp_path / 'compare.md').read_text()


def onnx_models(folder):
    """A product and a table look-up with an axis left open, each with an output that nobody else reads."""
    onnx = pytest.importorskip('onnx')
    from onnx import TensorProto, helper, numpy_helper
    table = numpy_helper.from_array(np.random.default_rng(1).standard_normal((7, 8), dtype=np.float32), 'table')
    nodes = {'product': (helper.make_node('Gemm', ['x', 'table'], ['y']), ('x', TensorProto.FLOAT, ['n', 7])),
             'lookup': (helper.make_node('Gather', ['table', 'ids'], ['y']), ('ids', TensorProto.INT64, [1, 'n']))}
    for name, (node, port) in nodes.items():
        graph = helper.make_graph([node], name, [helper.make_tensor_value_info(*port)],
                                  [helper.make_tensor_value_info('y', TensorProto.FLOAT, None)], [table])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)], ir_version=8), folder / f'{name}.onnx')


def test_onnx_models(tmp_path):
    pytest.importorskip('onnxruntime')
    onnx_models(tmp_path)
    command = [sys.executable, ROOT / 'benchmark/compare.py', '--onnx', tmp_path, '--shape', 'x=3,7', 'ids=1,5', '--cpu-time', '--peers', 'onnxruntime',
               '--rounds', '2', '--round-ms', '1', '--profile-below', '1e9', '--out', tmp_path / 'out', '--venv', tmp_path / 'venv', '--wheels', tmp_path]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((tmp_path / 'out/onnx.json').read_text())['results']
    assert {r['network'] for r in results} == {'product', 'lookup'}
    for r in results:
        assert r['absent'] == {} and r['errors']['quoll'] < 1e-6 and len(r['times_ms']['onnxruntime']) == 2
        assert r['profile']['theirs'] and any(layer['type'] for layer in r['profile']['ours'])
        assert compare_onnx.start_ratio(r) == r['start_ms']['onnxruntime'] / r['start_ms']['quoll'] > 0
    text = (tmp_path / 'out/onnx.md').read_text()
    assert '| product |' in text and '| start ms (ratio) |' in text and 'quoll, ms by type' in text


def test_answers_of_onnx_models_are_judged():
    want = [np.array([0.0, 4.0]), np.array([1, 2])]
    assert compare_onnx.error_of(want, [np.array([0.0, 3.0]), np.array([1, 2])]) == 0.25
    assert compare_onnx.error_of(want, [np.array([0.0, np.nan]), np.array([1, 2])]) == float('inf')
    assert compare_onnx.error_of(want, want[:1]) == compare_onnx.error_of(want, [want[0], np.zeros(3)]) == float('inf')


def test_the_suite_has_two_halves():
    import export_suite
    names = [f'net{i}' for i in range(200)]
    assert 60 < sum(export_suite.half_of(name) == 'tuning' for name in names) < 140
    assert export_suite.half_of('levit_128s') == export_suite.half_of('levit_128s_b8')
    assert export_suite.half_of('resnet50') == export_suite.half_of('resnet50_b8_qdq') == export_suite.half_of('resnet50_dynamic')


def test_packed_suite(tmp_path):
    onnx = pytest.importorskip('onnx')
    import pack_suite
    from onnx import TensorProto, helper, numpy_helper
    weights = (3 + np.random.default_rng(1).standard_normal((40, 50))).astype(np.float32)
    mask = np.where(np.eye(40) > 0, 0, -np.inf).astype(np.float32)
    graph = helper.make_graph([helper.make_node('MatMul', ['m', 'w'], ['y'])], 'g', [], [helper.make_tensor_value_info('y', TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(weights, 'w'), numpy_helper.from_array(mask, 'm')])
    (tmp_path / 'in').mkdir()
    onnx.save(helper.make_model(graph), tmp_path / 'in/net.onnx')
    pack_suite.pack(tmp_path / 'in', tmp_path / 'suite.tar.xz')
    pack_suite.unpack(tmp_path / 'suite.tar.xz', tmp_path / 'out')
    again = {t.name: numpy_helper.to_array(t) for t in onnx.load(tmp_path / 'out/net.onnx').graph.initializer}
    assert (again['m'] == mask).all() and again['w'].shape == weights.shape
    assert abs(again['w'].mean() - weights.mean()) < 0.1 and abs(again['w'].std() - weights.std()) < 0.1
    assert (tmp_path / 'suite.tar.xz').stat().st_size < weights.nbytes / 4


def float_convolution(path):
    """A convolution with bias as ONNX Runtime's tools take it."""
    onnx = pytest.importorskip('onnx')
    from onnx import TensorProto, helper, numpy_helper
    random = np.random.default_rng(1)
    weights, bias = random.standard_normal((64, 16, 3, 3)).astype(np.float32), random.standard_normal(64).astype(np.float32)
    graph = helper.make_graph([helper.make_node('Conv', ['x', 'w', 'b'], ['y'])], 'g',
                              [helper.make_tensor_value_info('x', TensorProto.FLOAT, [1, 16, 12, 12])],
                              [helper.make_tensor_value_info('y', TensorProto.FLOAT, [1, 64, 10, 10])],
                              [numpy_helper.from_array(weights, 'w'), numpy_helper.from_array(bias, 'b')])
    path.parent.mkdir()
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8), path)


def test_packed_suite_of_quantized_networks(tmp_path):
    onnx = pytest.importorskip('onnx')
    pytest.importorskip('onnxruntime.quantization')
    import pack_suite
    import quantize_suite
    from onnx import numpy_helper
    float_convolution(tmp_path / 'float/net.onnx')
    (tmp_path / 'in').mkdir()
    quantize_suite.quantize(tmp_path / 'float/net.onnx', tmp_path / 'in/net_qdq.onnx', 'qdq')
    pack_suite.pack(tmp_path / 'in', tmp_path / 'suite.tar.xz')
    pack_suite.unpack(tmp_path / 'suite.tar.xz', tmp_path / 'out')
    before, after = (onnx.load(tmp_path / folder / 'net_qdq.onnx') for folder in ('in', 'out'))
    old, new = ({t.name: numpy_helper.to_array(t) for t in model.graph.initializer} for model in (before, after))
    reads = {node.output[0]: node.input for node in after.graph.node if node.op_type == 'DequantizeLinear'}
    (convolution,) = (node for node in after.graph.node if node.op_type == 'Conv')
    image, weight, bias = (reads[name] for name in convolution.input)
    assert new[weight[0]].dtype == np.int8 and new[bias[0]].dtype == np.int32
    assert (new[weight[0]] != old[weight[0]]).mean() > 0.9 and abs(new[weight[0]].std() - old[weight[0]].std(dtype=float)) < 2
    assert new[bias[1]] == pytest.approx(new[image[1]] * new[weight[1]])
    assert new[weight[1]].min() > 0 and new[weight[1]].mean() == pytest.approx(old[weight[1]].mean(), rel=0.1)
    (run, feed) = compare_onnx.session(tmp_path / 'out/net_qdq.onnx'), {'x': np.ones((1, 16, 12, 12), np.float32)}
    assert np.isfinite(run.run(None, feed)[0]).all()
