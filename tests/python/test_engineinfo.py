"""engineinfo: what it counts, checked by hand; its picture; differences of models."""
import json
import re
import struct
import subprocess
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from conftest import BIN, ROOT, last_line, run_program
from graphs import BUNDLED, SHARED, Graph

DIGITS = ROOT / 'models' / 'digits'
MOBILENET = ROOT / 'benchmark' / 'models' / 'mobilenet_v1.param'


def info(*args):
    done = run_program('engineinfo', *args)
    assert done.returncode == 0, done.stderr
    return done.stdout


def report(*args):
    return json.loads(info(*args, '--json', '-'))


def test_mobilenet_counts(tmp_path):
    """MACE's report counts 568,741,376 for the network with 1001 classes; with 1000 there are 1024 less."""
    text = MOBILENET.read_text()
    assert report(MOBILENET)['macs'] == 568741376 - 1024
    found = re.search(r'^InnerProduct .* 0=1000 .*$', text, re.M)
    line = found.group().replace('0=1000', '0=1001').replace('2=1024000', '2=1025024')
    (tmp_path / 'm.param').write_text(text.replace(found.group(), line))
    result = report(tmp_path / 'm.param')
    assert result['macs'] == 568741376 and result['macs_complete'] is True
    assert ' 568,741,376' in info(tmp_path / 'm.param', '--brief')


# A line of a net with input `in` of shape (c, h, w) or (h, w), its MACs by hand.
@pytest.mark.parametrize('shape, line, macs', [
    ((3, 8, 10), 'Convolution l 1 1 in out 0=16 1=3 4=1 6=432', 16 * 80 * 27),
    ((3, 8, 10), 'Convolution l 1 1 in out 0=16 1=3 3=2 6=432', 16 * 3 * 4 * 27),
    ((4, 8, 10), 'ConvolutionDepthWise l 1 1 in out 0=8 1=3 4=1 6=144 7=2', 8 * 80 * 9 * 2),
    ((4, 8, 10), 'Deconvolution l 1 1 in out 0=8 1=2 3=2 6=128', 80 * 4 * 8 * 4),
    ((4, 8, 10), 'DeconvolutionDepthWise l 1 1 in out 0=4 1=2 3=2 6=16 7=4', 80 * 4 * 4),
    ((5, 10), 'Convolution1D l 1 1 in out 0=6 1=3 6=90', 6 * 8 * 15),
    ((3, 8, 10), 'InnerProduct l 1 1 in out 0=7 2=1680', 240 * 7),
    ((5, 10), 'InnerProduct l 1 1 in out 0=7 2=70', 5 * 70),
    ((5, 10), 'Gemm l 1 1 in out 2=0 3=1 4=0 5=1 6=1 7=0 8=7 9=10 10=-1', 5 * 7 * 10),
    ((5, 10), 'LSTM l 1 1 in out 0=4 1=160 2=0', 5 * (4 * 4 * 10 + 4 * 4 * 4)),
    ((5, 10), 'GRU l 1 1 in out 0=4 1=240 2=2', 5 * 2 * (3 * 4 * 10 + 3 * 4 * 4)),
    ((5, 8), 'MultiHeadAttention l 1 1 in out 0=8 1=2 2=64', 4 * 5 * 64 + 2 * 5 * 5 * 8),
    ((3, 8, 10), 'Pooling l 1 1 in out 1=2 2=2', 0),
    ((3, 8, 10), 'Softmax l 1 1 in out', 0),
])
def test_macs_by_hand(tmp_path, shape, line, macs):
    (tmp_path / 'm.param').write_text(f'7767517\n2 2\nInput in 0 1 in\n{line}\n')
    size = ','.join(map(str, shape))
    assert report(tmp_path / 'm.param', '--size', f'in={size}')['macs'] == macs
    unknown = report(tmp_path / 'm.param')
    assert unknown['macs_complete'] is (macs == 0)


def test_items_and_integers(tmp_path):
    """A layer that runs item by item keeps the batch; an input of int64 is one of integers, and a plan can be made."""
    (tmp_path / 'm.param').write_text('''7767517
8 10
Input ids 0 1 ids 0=3 20=1 -23321=1,3 22=7
MemoryData table 0 1 table 0=4 1=5
Gather rows 2 1 table ids rows
Input q 0 1 q 0=4 1=3 2=6
BatchAxis items 1 1 q items
Split s 1 3 items a b c
SDPA attention 3 1 a b c heads
BatchAxis back 1 1 heads out 0=1
''')
    np.ones(20, np.float32).tofile(tmp_path / 'm.bin')
    result = report(tmp_path / 'm.param', tmp_path / 'm.bin', '--exec-plan')
    assert {o['name']: o['shape'] for o in result['outputs']} == {'rows': [3, 4], 'out': [6, 1, 3, 4]}


@pytest.mark.parametrize('param', BUNDLED + SHARED, ids=lambda p: f'{p.parent.name}-{p.stem}')
def test_graphs(param, tmp_path):
    graph = Graph(param)
    args = [arg for name, shape in graph.inputs.items() for arg in ('--size', f'{name}={",".join(map(str, shape))}')]
    result = report(param, *args)
    assert [blob['name'] for blob in result['inputs']] == list(graph.inputs)
    assert [blob['name'] for blob in result['outputs']] == graph.outputs
    assert [layer['type'] for layer in result['layers']] == graph.types and result['macs'] > 0
    assert 0 < result['memory']['peak_bytes'] <= result['memory']['sum_bytes']
    check_picture(param, len(graph.lines), tmp_path)


def check_picture(param, layers, folder):
    """The picture has a box a layer and no two overlap; edges go down."""
    info(param, '--svg', folder / 'g.svg', '--html', folder / 'g.html')
    svg = ET.parse(folder / 'g.svg').getroot()
    ns = '{http://www.w3.org/2000/svg}'
    boxes = [tuple(float(r.get(k)) for k in ('x', 'y', 'width', 'height')) for r in svg.iter(f'{ns}rect')]
    assert len(boxes) == layers
    rows = {}
    for x, y, w, h in boxes:
        assert 0 <= x and x + w <= float(svg.get('width')) and 0 <= y and y + h <= float(svg.get('height'))
        rows.setdefault(y, []).append((x, w))
    for row in rows.values():
        row.sort()
        assert all(a[0] + a[1] <= b[0] for a, b in zip(row, row[1:]))
    for path in svg.iter(f'{ns}path'):
        numbers = list(map(float, re.findall(r'[\d.]+', path.get('d'))))
        assert numbers[1] < numbers[-1]
    html = (folder / 'g.html').read_text()
    assert html.startswith('<!DOCTYPE html>') and '<svg' in html


def test_names_are_escaped(tmp_path):
    (tmp_path / 'm.param').write_text('7767517\n2 2\nInput <in>&" 0 1 <b>\nReLU r 1 1 <b> out\n')
    check_picture(tmp_path / 'm.param', 2, tmp_path)


@pytest.fixture
def net(tmp_path):
    (tmp_path / 'm.param').write_text('7767517\n4 4\nInput in 0 1 in 0=8 1=8 2=3\nConvolution c 1 1 in a 0=16 1=3 4=1 5=1 6=432\n'
                                      'Sigmoid s 1 1 a b\nInnerProduct f 1 1 b out 0=2 2=2048\n')
    weights = np.linspace(-1, 1, 432 + 16).astype(np.float32).tobytes()
    halves = np.linspace(-1, 1, 2048).astype(np.float16).tobytes()
    (tmp_path / 'm.bin').write_bytes(struct.pack('<I', 0) + weights + struct.pack('<I', 0x01306B47) + halves)
    return tmp_path


def test_weights_and_memory(net):
    result = report(net / 'm.param', net / 'm.bin')
    assert result['weight_bytes_by_type'] == {'f32': 4 + 448 * 4, 'f16': 4 + 4096}
    assert result['weight_bytes'] == (net / 'm.bin').stat().st_size
    assert result['layers'][3]['weights'] == [{'name': 'weight_data', 'count': 2048, 'dtype': 'f16', 'bytes': 4100}]
    assert result['layers'][1]['params'] == '0=16 1=3 4=1 5=1 6=432'
    # in 768, a 4096, b in place of a, out 8; at a time: in and a.
    assert result['memory'] == {'sum_bytes': 768 + 4096 + 4096 + 8, 'peak_bytes': 768 + 4096 + 8, 'complete': True,
                                'peak_layer': 'f'}


def test_show_io_and_sizes(net):
    assert info(net / 'm.param', '--show-io').splitlines() == ['input  in (3,8,8) f32 from Input in',
                                                              'output out (2) f32 from InnerProduct f']
    table = info(net / 'm.param', net / 'm.bin')
    assert re.search(r'^Convolution +c +27,648 +448 +in \(3,8,8\) -> a \(16,8,8\); weight_data 432 f32; bias_data 16 f32$', table, re.M)


def test_planned_memory(net):
    result = report(net / 'm.param', net / 'm.bin', '--memory')['planned_memory']
    # The image is the user's, the answer memory of its own: the convolution's output is all there is, 16 channels of 64 floats.
    assert result['segments'] == 1 and result['own_bytes'] == 64 + 8
    assert result['arena_bytes'] == result['most_alive_bytes'] == 64 + 4096 and result['all_blobs_bytes'] == 2 * 64 + 4096 + 8
    table = info(net / 'm.param', net / 'm.bin', '--memory')
    assert re.search(r'^planned arena, bytes +4,160$', table, re.M) and re.search(r'^sum of all blobs.* 4,232$', table, re.M)
    half = report(net / 'm.param', net / 'm.bin', '--memory', '--exec-plan', '--precision', 'bf16')
    # Where processors multiply no bf16, the answer is what was computed.
    answer = next(p['outputs'][0] for p in half['exec_plan'] if p['name'] == 'f')
    assert half['planned_memory']['all_blobs_bytes'] == 2 * 64 + 2048 + (4 if answer.startswith('bf16') else 8)
    assert 'needs MODEL.bin' in refused(net, net / 'm.param', '--memory')


def test_exec_plan_tells_conversions(net):
    (net / 'p.param').write_text('7767517\n4 4\nInput in 0 1 in 0=8 1=8 2=3\nConvolution c 1 1 in a 0=16 1=3 4=1 5=1 6=432\n'
                                 'MVN m 1 1 a b\nReLU r 1 1 b out\n')
    (net / 'p.bin').write_bytes((net / 'm.bin').read_bytes()[:4 + 4 * 448])
    plan = {p['name']: p for p in report(net / 'p.param', net / 'p.bin', '--exec-plan', '--precision', 'bf16')['exec_plan']}
    packed = plan['c']['outputs'][0] != 'bf16 (16,8,8)'  # on a processor with vectors
    assert ('takes planar blobs only: unpacked before it' in plan['m']['notes']) == packed
    assert 'computes in f32: widened from bf16 before it' in plan['m']['notes']
    assert 'makes f32: narrowed to bf16 behind it' in plan['m']['notes'] and plan['m']['outputs'] == ['bf16 (16,8,8)']


def test_exec_plan(net):
    plan = {p['name']: p for p in report(net / 'm.param', net / 'm.bin', '--exec-plan', '--isa', 'sse4')['exec_plan']}
    assert plan['s']['target'] == 'folded' and plan['c']['kernels'].startswith('conv ')
    assert plan['c']['isa'] in ('sse4', 'neon', 'scalar') and plan['c']['outputs'][0].endswith('(16,8,8)')
    reference = report(net / 'm.param', net / 'm.bin', '--exec-plan', '--reference', '--no-fusion')['exec_plan']
    assert {p['kernels'] for p in reference[1:]} == {'reference'}
    planar = report(net / 'm.param', net / 'm.bin', '--exec-plan', '--no-packing', '--isa', 'sse4')['exec_plan'][1]
    assert planar['isa'] == 'scalar' or 'planar: packing is off' in planar['notes']
    (net / 'n.param').write_text('7767517\n2 2\nInput in 0 1 in 0=8 1=8 2=3\nMVN c 1 1 in a\n')
    (net / 'n.bin').write_bytes(b'')
    assert 'the operator has no vector form' in info(net / 'n.param', net / 'n.bin', '--exec-plan')


def test_diff(net):
    text = (net / 'm.param').read_text()
    (net / 'o.param').write_text(text.replace('Sigmoid s 1 1 a b', 'TanH t 1 1 a b').replace('0=2 2=2048', '0=2 2=2048 9=1'))
    data = bytearray((net / 'm.bin').read_bytes())
    data[4:8] = struct.pack('<f', 5)
    (net / 'o.bin').write_bytes(data)
    done = run_program('engineinfo', net / 'm.param', net / 'm.bin', '--diff', net / 'o.param', net / 'o.bin')
    assert done.returncode == 3
    assert done.stdout.splitlines() == [
        '~ Convolution c: weight_data 1 of 432 values differ, by at most 6 (range 1.93)', '- Sigmoid s: a -> b ',
        '~ InnerProduct f: params 0=2 2=2048 -> 0=2 2=2048 9=1', '+ TanH t: a -> b ']
    same = run_program('engineinfo', net / 'm.param', net / 'm.bin', '--diff', net / 'm.param', net / 'm.bin')
    assert same.returncode == 0 and same.stdout == 'the models are the same\n'
    for bins in ([], [net / 'm.bin']):
        same = run_program('engineinfo', net / 'm.param', *bins, '--diff', net / 'm.param')
        assert same.returncode == 0 and same.stdout == 'the graphs are the same, weights were not compared\n'


def refused(folder, *args, code=1):
    before = sorted(p.name for p in folder.iterdir())
    done = run_program('engineinfo', *args)
    assert done.returncode == code, done.stdout + done.stderr
    assert sorted(p.name for p in folder.iterdir()) == before
    assert last_line(done.stderr).startswith('engineinfo: ')
    return last_line(done.stderr)


def test_an_input_array_is_not_overwritten(net):
    np.save(net / 'x.npy', np.ones((3, 8, 8), np.float32))
    assert 'is an input' in refused(net, net / 'm.param', '--input', f'in={net}/x.npy', '--json', net / 'x.npy')


def test_what_is_refused(net):
    model = net / 'm.param', net / 'm.bin'
    assert 'No such file' in refused(net, net / 'no.param')
    assert 'No such file' in refused(net, net / 'm.param', net / 'no.bin')
    assert 'written' in refused(net, *model, '--json', '/dev/full')
    assert 'No such file' in refused(net, *model, '--svg', net / 'no' / 'g.svg')
    assert 'is an input' in refused(net, *model, '--html', net / 'm.bin')
    assert "no blob 'q'" in refused(net, *model, '--size', 'q=1')
    assert '[InnerProduct f] expected 2048' not in refused(net, *model, '--size', 'in=3,8') # the convolution says it first
    assert '[InnerProduct f]' in refused(net, *model, '--size', 'in=3,9,9')
    assert 'needs MODEL.bin' in refused(net, net / 'm.param', '--exec-plan')
    (net / 'm.bin').write_bytes((net / 'm.bin').read_bytes()[:-4])
    assert '[InnerProduct f]' in refused(net, *model)
    refused(net, code=2)
    with open('/dev/full', 'w') as full:
        done = subprocess.run([BIN / 'engineinfo', net / 'm.param'], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and 'stdout cannot be written' in done.stderr
    (net / 'm.param').write_text('7767517\n3 3\nInput in 0 1 in\nBinaryOp b 2 1 in y x\nReLU r 1 1 x y\n')
    assert 'depend on its own output' in refused(net, net / 'm.param')
    (net / 'm.param').write_text('7767517\n1 1\nNoop n 1 1 x x\n')
    assert 'depend on its own output' in refused(net, net / 'm.param')


def test_version():
    assert re.fullmatch(r'quoll \d+\.\d+\.\d+\n', run_program('engineinfo', '--version').stdout)
