"""enginequantize, ncnn2table, ncnn2int8: answers against integer arithmetic in NumPy and against the ncnn wheel, accuracy on the
digits, what chooses the kinds of layers."""
import json
import os
import re

import numpy as np
import pytest

from conftest import last_line, run_program
from engine import run_engine
from quantizing import DIGITS, digits, digits_model, int8_product, one_layer, quantize, read_table, report_layers

pytestmark = pytest.mark.skipif('ENGINERUN_PREFIX' in os.environ, reason='the same on every machine')


def test_mixed_precision(digits, tmp_path):
    folder, images, labels = digits
    args = '--data', folder / 'x.npy', '--limit', 100, '--report', tmp_path / 'r'

    def frontier(*more):
        quantize(digits_model(), tmp_path / 'q', *args, *more)
        report = json.loads((tmp_path / 'r' / 'report.json').read_text())
        kinds = [layer['kind'] for layer in report['layers']]
        return report['frontier'], kinds

    points, kinds = frontier('--max-drop', '100%')
    assert [p['float_layers'] for p in points] == [0, 1, 2, 3, 4, 5, 7] and points[0]['chosen'] and kinds.count('float') == 0
    assert points[-1]['drop'] < 1e-6 and points[-1]['bytes'] > 3 * points[0]['bytes']
    limit = (points[0]['drop'] + points[-1]['drop']) / 4
    points, kinds = frontier('--max-drop', limit)
    chosen = [p for p in points if p['chosen']]
    # Inputs of 16 bits instead of float where these are good enough, depthwise layers with weights of 8 bits.
    assert len(chosen) == 1 and chosen[0]['drop'] <= limit and len(kinds) - kinds.count('affine') == chosen[0]['float_layers'] > 0
    assert {'float'} >= set(kinds) - {'affine'} if chosen[0]['kind'] == 'float' else {'a16w8', 'weights8'} >= set(kinds) - {'affine'}
    both = [p for p in points if p['float_layers'] == chosen[0]['float_layers']]
    assert [p['kind'] for p in both] == ['float', 'a16w8'] and both[1]['bytes'] < both[0]['bytes']
    assert all(p['drop'] > limit for p in points if p['float_layers'] < chosen[0]['float_layers'])
    points, kinds = frontier('--budget', 'size=30kB')
    chosen = [p for p in points if p['chosen']][0]
    assert chosen['bytes'] <= 30e3 and chosen['drop'] == min(p['drop'] for p in points if p['bytes'] <= 30e3)
    assert os.path.getsize(tmp_path / 'q.bin') <= 30e3
    done = quantize(digits_model(), tmp_path / 'q', *args, '--budget', 'size=1kB', code=1)
    assert 'no choice of layers' in last_line(done.stderr)
    with_none = [p['bytes'] for p in points if p['kind'] == 'float'][-1]
    assert last_line(done.stderr).endswith(f' ms and {with_none:.0f} bytes')


def test_answers_are_those_of_integers(tmp_path):
    rng = np.random.default_rng(8)
    weight, bias = rng.normal(size=(7, 33)).astype(np.float32), rng.normal(size=7).astype(np.float32)
    x = rng.normal(size=(50, 33)).astype(np.float32)
    np.save(tmp_path / 'x.npy', x)
    model = one_layer(tmp_path, weight, bias)
    out = tmp_path / 'q'
    quantize(model, out, '--data', tmp_path / 'x.npy', '--method', 'minmax', '--table', tmp_path / 't', '--no-bias-correction',
             '--holdout', 0)
    table = read_table(tmp_path / 't')
    np.testing.assert_allclose(table['fc_param_0'], 127 / np.abs(weight).max(1), rtol=1e-5)
    got = run_engine(f'{out}.param', f'{out}.bin', {'data': x[3]}, ['out'])['out']
    expected, _ = int8_product(x[3], weight, bias, table['fc'][0], table['fc_param_0'])
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)
    # Corrected biases: the mean of what is lost by rounding weights comes back.
    quantize(model, out, '--data', tmp_path / 'x.npy', '--method', 'minmax', '--holdout', 0)
    corrected = np.frombuffer((tmp_path / 'q.bin').read_bytes(), np.uint8)
    start = 4 + (weight.size + 3) // 4 * 4
    biases = corrected[start:start + 28].view(np.float32)
    w = int8_product(x[3], weight, bias, table['fc'][0], table['fc_param_0'])[1] / table['fc_param_0'][:, None]
    np.testing.assert_allclose(biases, bias + (weight - w) @ x.mean(0), rtol=1e-4, atol=1e-5)


def test_digits(digits, tmp_path):
    folder, images, labels = digits
    out = tmp_path / 'q'
    quantize(digits_model(), out, '--data', folder / 'x.npy', '--labels', folder / 'labels.txt', '--holdout', 0.5, '--report',
             tmp_path / 'report')
    report = json.loads((tmp_path / 'report' / 'report.json').read_text())
    assert report['accuracy']['held_out'] and report['accuracy']['samples'] == 180
    assert report['calibration']['samples'] == 180
    assert report['bytes']['after'] < 0.3 * report['bytes']['before']
    assert all(layer['kind'] == 'affine' for layer in report['layers']) and len(report['layers']) == 7
    # The report's word against our own count, over all images.
    before = run_engine(*digits_model(), {'data': images}, ['prob'], '--batch')['prob']
    after = run_engine(f'{out}.param', f'{out}.bin', {'data': images}, ['prob'], '--batch')['prob']
    assert (after.argmax(1) == labels).sum() >= (before.argmax(1) == labels).sum() - 1
    cosine = (before * after).sum(1) / np.linalg.norm(before, axis=1) / np.linalg.norm(after, axis=1)
    assert cosine.mean() > 0.999
    assert report['accuracy']['cosine'] == pytest.approx(cosine.mean(), abs=2e-4)


def test_best_looks_at_what_a_softmax_reads(digits, tmp_path):
    """Probabilities of few samples are sure whatever the rounding: by them the choice lost 6 dB on the samples behind."""
    _, images, _ = digits
    np.save(tmp_path / 'x.npy', images[:64])
    quantize(digits_model(), tmp_path / 'q', '--data', tmp_path / 'x.npy', '--kind', 'int8')
    rest = {'data': images[180:]}
    before = run_engine(*digits_model(), rest, ['prob'], '--batch')['prob']
    after = run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', rest, ['prob'], '--batch')['prob']
    assert 10 * np.log10((before ** 2).sum() / ((before - after) ** 2).sum()) > 42


def test_report_page(digits, tmp_path):
    """One file with all the data in it, that names nothing outside."""
    folder, _, _ = digits
    model = (DIGITS / 'digits.param').read_text().replace('pw2', 'pw</script>2')
    (tmp_path / 'm.param').write_text(model)
    quantize((tmp_path / 'm.param', DIGITS / 'digits.bin'), tmp_path / 'q', '--data', folder / 'x.npy', '--report', tmp_path / 'r')
    page = (tmp_path / 'r' / 'report.html').read_text()
    parts = re.findall(r'<script( id="data" type="application/json")?>(.*?)</script>', page, re.S)
    assert len(parts) == 2 and json.loads(parts[0][1]) == json.loads((tmp_path / 'r' / 'report.json').read_text())
    assert 'pw</script>2' in report_layers(tmp_path / 'r')
    assert set(re.findall(r'https?://[^"]+', page)) == {'http://www.w3.org/2000/svg'} and not re.search(r'\b(src|href)=', page)


def test_ncnn_agrees(digits, tmp_path):
    ncnn = pytest.importorskip('ncnn')
    folder, images, _ = digits
    out = tmp_path / 'q'
    quantize(digits_model(), out, '--data', folder / 'x.npy', '--kind', 'int8')
    ours = run_engine(f'{out}.param', f'{out}.bin', {'data': images[:20]}, ['prob'], '--batch')['prob']
    net = ncnn.Net()
    assert net.load_param(f'{out}.param') == 0 and net.load_model(f'{out}.bin') == 0
    for image, expected in zip(images, ours):
        ex = net.create_extractor()
        ex.input('data', ncnn.Mat(image))
        np.testing.assert_allclose(np.array(ex.extract('prob')[1]), expected, atol=0.02)
        del ex  # before the net


def test_table_and_back(digits, tmp_path):
    folder, images, _ = digits
    listed = tmp_path / 'list.txt'
    for i, image in enumerate(images[:40]):
        np.save(tmp_path / f'{i}.npy', image)
    listed.write_text('\n'.join(str(tmp_path / f'{i}.npy') for i in range(40)))
    done = run_program('ncnn2table', *digits_model(), listed, tmp_path / 'd.table', 'mean=[0]', 'norm=[1]', 'shape=[8,8,1]',
                       'pixel=GRAY', 'thread=2', 'method=kl', 'type=1')
    assert done.returncode == 0, done.stderr
    table = (tmp_path / 'd.table').read_text().splitlines()
    names = [line.split()[0] for line in table]
    layers = ['stem', 'dw1', 'pw1', 'res', 'dw2', 'pw2', 'fc']
    assert names == [f'{name}_param_0' for name in layers] + layers
    # A line that is commented out leaves its layer in float.
    (tmp_path / 'd.table').write_text('\n'.join('#' + line if line.startswith('res_param_0') else line for line in table))
    done = run_program('ncnn2int8', *digits_model(), tmp_path / 'q.param', tmp_path / 'q.bin', tmp_path / 'd.table')
    assert done.returncode == 0, done.stderr
    kinds = {line.split()[1]: ' 8=' in line for line in (tmp_path / 'q.param').read_text().splitlines()[2:]}
    assert [kinds[name] for name in layers] == [True, True, True, False, True, True, True]
    before = run_engine(*digits_model(), {'data': images}, ['prob'], '--batch')['prob']
    after = run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'data': images}, ['prob'], '--batch')['prob']
    assert (before.argmax(1) == after.argmax(1)).mean() > 0.98


def test_precedence(digits, tmp_path):
    folder, _, _ = digits
    (tmp_path / 'log').write_text('x Tensor range @@stem@@0,2.5\nx Tensor range @@stem@@0,3.5\n')
    quantize(digits_model(), tmp_path / 'q', '--data', folder / 'x.npy', '--range', 'data=0,0.5', '--range-log', tmp_path / 'log',
             '--kind', 'int8', '--layer', 'pw2=float', '--report', tmp_path / 'r')
    layers = report_layers(tmp_path / 'r')
    assert layers['stem']['origin'] == 'override' and layers['stem']['input_scale'] == 254
    assert layers['dw1']['origin'] == 'override' and layers['dw1']['input_scale'] == pytest.approx(127 / 3.5)
    assert layers['pw2']['kind'] == 'float'
    assert layers['res']['origin'] == 'measured'
    # Behind pooling the range is that of what is pooled.
    assert layers['res']['range_of'] == 'relu1'


OVERRIDES = {
    'o.json': """{"version": 1, "quantizer_targets": {
        "constant_weights": [{"target_name": "pw1", "bitwidth": 16}],
        "activations": [{"target_name": "data", "quantizer": {"type": "ConstantQuantizer", "settings": {"min_vals": 0, "max_vals": 2}}},
                        {"target_name": "stem", "bitwidth": 4, "quantizer": {"type": "AllValuesQuantizer"}},
                        {"target_name": "pool2", "bitwidth": 12}]}, "layers": {"dw2": "float"}}""",
    'o.yml': """
version: 1
quantizer_targets:
  constant_weights:
    - {target_name: pw1, bitwidth: 16}
  activations:
    - target_name: data
      quantizer: {type: ConstantQuantizer, settings: {min_vals: 0, max_vals: 2}}
    - {target_name: stem, bitwidth: 4, quantizer: {type: AllValuesQuantizer}}
    - {target_name: pool2, bitwidth: 12}
layers:
  dw2: float
"""}


@pytest.mark.parametrize('name', OVERRIDES)
def test_overrides(name, digits, tmp_path):
    folder, _, _ = digits
    (tmp_path / name).write_text(OVERRIDES[name])
    args = '--data', folder / 'x.npy', '--kind', 'int8', '--method', 'kl', '--report', tmp_path / 'r', '--no-equalize'
    quantize(digits_model(), tmp_path / 'q', *args, '--override', tmp_path / name, '--write-override', tmp_path / 'chosen.json')
    layers = report_layers(tmp_path / 'r')
    assert {n for n, layer in layers.items() if layer['kind'] == 'float'} == {'pw1', 'dw2'}
    assert layers['fc']['kind'] == 'a16w8' and layers['fc']['input_scale'] == pytest.approx(2047 / layers['fc']['high'])
    assert layers['stem']['input_scale'] == 63.5 and layers['stem']['origin'] == 'override'
    assert layers['dw1']['method'] == 'minmax' and layers['dw1']['high'] == pytest.approx(layers['dw1']['measured_high'])
    assert layers['res']['method'] == 'kl'
    # What was chosen gives the same model again, but for biases without any data.
    quantize(digits_model(), tmp_path / 'again', '--override', tmp_path / 'chosen.json', '--data', folder / 'x.npy', '--no-equalize')
    assert (tmp_path / 'again.bin').read_bytes() == (tmp_path / 'q.bin').read_bytes()
    quantize(digits_model(), tmp_path / 'alone', '--override', tmp_path / 'chosen.json')
    assert os.path.getsize(tmp_path / 'alone.bin') == os.path.getsize(tmp_path / 'q.bin')


def test_overrides_of_equalised_channels(digits, tmp_path):
    folder, _, _ = digits
    data = '--data', folder / 'x.npy'
    quantize(digits_model(), tmp_path / 'q', *data, '--method', 'mse', '--write-override', tmp_path / 'chosen.json')
    quantize(digits_model(), tmp_path / 'again', *data, '--method', 'mse', '--override', tmp_path / 'chosen.json')
    assert (tmp_path / 'again.bin').read_bytes() == (tmp_path / 'q.bin').read_bytes()
    done = quantize(digits_model(), tmp_path / 'alone', '--override', tmp_path / 'chosen.json', code=1)
    assert 'equalised' in last_line(done.stderr)
