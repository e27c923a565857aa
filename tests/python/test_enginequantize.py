"""enginequantize, ncnn2table, ncnn2int8: thresholds against NumPy's, answers against integer arithmetic in NumPy and against the
ncnn wheel, accuracy on the digits, bad input."""
import json
import os
import pathlib
import re

import numpy as np
import pytest

from conftest import ROOT, last_line, run_program
from engine import run_engine

DIGITS = ROOT / 'models' / 'digits'
pytestmark = pytest.mark.skipif('ENGINERUN_PREFIX' in os.environ, reason='the same on every machine')
BINS = 4096


@pytest.fixture(scope='module')
def digits(tmp_path_factory):
    folder = tmp_path_factory.mktemp('digits')
    held = np.load(DIGITS / 'heldout.npz')
    images = (held['images'].astype(np.float32) / 255)[:, None]
    np.save(folder / 'x.npy', images)
    (folder / 'labels.txt').write_text('\n'.join(str(v) for v in held['labels']))
    return folder, images, held['labels']


def quantize(model, out, *args, code=0):
    done = run_program('enginequantize', *model, f'{out}.param', f'{out}.bin', *args)
    assert done.returncode == code, done.stderr
    return done


def digits_model():
    return DIGITS / 'digits.param', DIGITS / 'digits.bin'


# ---- One layer, whose numbers are all known.

def one_layer(folder, weight, bias=None, name='m'):
    """An inner product of 1-D inputs of weight.shape[1] values."""
    n, k = weight.shape
    (folder / f'{name}.param').write_text(
        f'7767517\n2 2\nInput in 0 1 data 0={k}\nInnerProduct fc 1 1 data out 0={n} 1={int(bias is not None)} 2={n * k}\n')
    parts = [np.zeros(1, np.float32), weight.ravel()] + ([] if bias is None else [bias])
    np.concatenate(parts).astype(np.float32).tofile(folder / f'{name}.bin')
    return folder / f'{name}.param', folder / f'{name}.bin'


def read_table(path):
    rows = [line.split() for line in pathlib.Path(path).read_text().splitlines() if line and line[0] != '#']
    return {row[0]: np.array([float(v) for v in row[1:]]) for row in rows}


def input_threshold(folder, x, *args):
    """127 / the input's scale, for samples x [count][k]."""
    model = one_layer(folder, np.eye(4, x.shape[1], dtype=np.float32))
    np.save(folder / 'x.npy', x)
    quantize(model, folder / 'q', '--data', folder / 'x.npy', '--holdout', 0, '--table', folder / 't.table', *args)
    return 127 / read_table(folder / 't.table')['fc'][0]


def kl_reference(values, levels=128, bins=2048):
    """The threshold of least Kullback-Leibler divergence, as NVIDIA's slides and ncnn2table describe it, bin by bin."""
    limit = np.abs(values).max()
    values = np.abs(values[values != 0])
    fine = np.bincount(np.minimum((values * (BINS / limit)).astype(int), BINS - 1), minlength=BINS)
    hist = fine.reshape(bins, -1).sum(1).astype(np.float64)
    best, least = bins, np.inf
    for end in range(levels, bins + 1):
        p = hist[:end].copy()
        if p.sum() == 0:
            continue
        q = np.zeros(end)
        for level in range(levels):
            a, b = level * end // levels, (level + 1) * end // levels
            filled = p[a:b] > 0
            if filled.any():
                q[a:b][filled] = p[a:b].sum() / filled.sum()
        q /= q.sum()
        p[-1] += hist[end:].sum()
        p /= p.sum()
        q = np.where((q == 0) & (p > 0), 1e-4 / bins, q)
        there = p > 0
        divergence = (p[there] * np.log(p[there] / q[there])).sum()
        if divergence < least - 1e-12:
            best, least = end, divergence
    return min((best + 0.5) * limit / bins, limit)


def aciq_reference(values):
    values = np.abs(values[values != 0]).astype(np.float64)
    mean, deviation = values.mean(), np.sqrt((values ** 2).mean())
    gauss = mean / deviation > 0.5 * (np.sqrt(2 / np.pi) + np.sqrt(0.5))
    return min(3.92403714 * deviation if gauss else 9.89675982 * mean, values.max())


def mse_reference(values):
    limit = np.abs(values).max()
    candidates = limit * 0.99 ** np.arange(0, 400)
    errors = [((values - np.clip(np.rint(values * (127 / t)), -127, 127) * (t / 127)) ** 2).sum() for t in candidates]
    return candidates, np.array(errors)


SHAPES = {
    'gauss': lambda rng, n: rng.normal(size=n),
    'laplace': lambda rng, n: rng.laplace(size=n),
    'relu': lambda rng, n: np.maximum(rng.normal(size=n), 0),
    'outliers': lambda rng, n: np.where(rng.random(n) < 1e-3, 30, rng.normal(size=n)),
    'uniform': lambda rng, n: rng.uniform(-2, 2, n),
}


@pytest.fixture(params=SHAPES, scope='module')
def samples(request):
    rng = np.random.default_rng(len(request.param))
    return SHAPES[request.param](rng, 40 * 1000).reshape(40, 1000).astype(np.float32)


def test_kl_threshold(samples, tmp_path):
    got, expected = input_threshold(tmp_path, samples, '--method', 'kl'), kl_reference(samples.ravel())
    assert got == pytest.approx(expected, rel=2e-5)


def test_few_values_are_all_kept(tmp_path):
    """Grey levels: a single one of them would be its own distribution, without any divergence."""
    x = (np.random.default_rng(1).integers(0, 17, (40, 200)) / 16).astype(np.float32)
    assert input_threshold(tmp_path, x, '--method', 'kl') == pytest.approx(1, rel=1e-6)


def test_aciq_threshold(samples, tmp_path):
    # The histogram has the middles of 4096 bins.
    assert input_threshold(tmp_path, samples, '--method', 'aciq') == pytest.approx(aciq_reference(samples.ravel()), rel=2e-3)


def test_percentile_threshold(samples, tmp_path):
    step = float(np.abs(samples).max()) / BINS
    for percentile in 99, 99.9:
        got = input_threshold(tmp_path, samples, '--method', 'percentile', '--percentile', percentile)
        assert got == pytest.approx(np.quantile(np.abs(samples), percentile / 100), abs=1.5 * step)


def test_mse_threshold_costs_least(samples, tmp_path):
    got = input_threshold(tmp_path, samples, '--method', 'mse')
    candidates, errors = mse_reference(samples.ravel().astype(np.float64))
    own = errors[np.abs(candidates - got).argmin()]
    assert own <= errors.min() * 1.01


def test_eq_keeps_the_output_nearest(tmp_path):
    """A large value that the weights do not look at: what the output wants is far from what all values want."""
    rng = np.random.default_rng(6)
    weight = rng.normal(size=(5, 40)).astype(np.float32)
    weight[:, 0] = 0
    x = rng.normal(size=(30, 40)).astype(np.float32)
    x[:, 0] = 10 * np.abs(x[:, 1:]).max()
    np.save(tmp_path / 'x.npy', x)
    quantize(one_layer(tmp_path, weight), tmp_path / 'q', '--data', tmp_path / 'x.npy', '--method', 'eq', '--table', tmp_path / 't',
             '--holdout', 0)
    got = 127 / read_table(tmp_path / 't')['fc'][0]
    scales = 127 / np.abs(weight).max(1)

    def cost(t):
        return sum(((int8_product(v, weight, 0, 127 / t, scales)[0] - weight @ v) ** 2).sum() for v in x[:2])

    assert got < 0.31 * x.max()  # three tenths of the range is the least that is tried
    assert cost(got) <= min(cost(x.max() * tenth / 10) for tenth in range(3, 11)) * 1.001


def test_eq_searches_for_zero_points_too(tmp_path):
    """Values of one sign but for one input, which no weight looks at: its range has to go on both sides of 0 as the method says."""
    rng = np.random.default_rng(6)
    weight = rng.normal(size=(5, 40)).astype(np.float32)
    weight[:, 0] = 0
    x = np.abs(rng.normal(size=(30, 40))).astype(np.float32)
    x[:, 0] = 10 * x[:, 1:].max()
    np.save(tmp_path / 'x.npy', x)
    args = one_layer(tmp_path, weight), tmp_path / 'q', '--data', tmp_path / 'x.npy', '--kind', 'affine', '--holdout', 0
    ranges = {}
    for method in 'minmax', 'eq':
        quantize(*args, '--method', method, '--write-override', tmp_path / 'o.json')
        blob, = json.loads((tmp_path / 'o.json').read_text())['quantizer_targets']['activations']
        ranges[method] = [blob['quantizer']['settings'][end] for end in ('min_vals', 'max_vals')]
    assert ranges['minmax'] == pytest.approx([0, x.max()])
    assert ranges['eq'][0] == 0 and ranges['eq'][1] < 0.31 * x.max()  # three tenths is the least that is tried


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
    assert len(chosen) == 1 and chosen[0]['drop'] <= limit and kinds.count('float') == chosen[0]['float_layers'] > 0
    assert all(p['drop'] > limit for p in points if p['float_layers'] < chosen[0]['float_layers'])
    points, kinds = frontier('--budget', 'size=30kB')
    chosen = [p for p in points if p['chosen']][0]
    assert chosen['bytes'] <= 30e3 and chosen['drop'] == min(p['drop'] for p in points if p['bytes'] <= 30e3)
    assert os.path.getsize(tmp_path / 'q.bin') <= 30e3
    done = quantize(digits_model(), tmp_path / 'q', *args, '--budget', 'size=1kB', code=1)
    assert 'no choice of layers' in last_line(done.stderr)


def test_ranges_of_samples(tmp_path):
    rng = np.random.default_rng(3)
    x = (rng.normal(size=(30, 50)) * np.linspace(0.5, 2, 30)[:, None]).astype(np.float32)
    low, high = x.min(1).astype(np.float64), x.max(1).astype(np.float64)
    threshold = lambda *args: input_threshold(tmp_path, x, *args)
    assert threshold('--method', 'minmax') == pytest.approx(np.abs(x).max(), rel=1e-6)
    assert threshold('--method', 'last') == pytest.approx(np.abs(x[-1]).max(), rel=1e-6)
    weights = 0.9 ** np.arange(29, -1, -1)
    means = [(weights * v).sum() / weights.sum() for v in (low, high)]
    assert threshold('--method', 'ema', '--ema-decay', 0.9) == pytest.approx(np.abs(means).max(), rel=1e-5)
    assert threshold('--method', 'constant', '--constant', -3, 5) == pytest.approx(5, rel=1e-6)
    # One sample far beyond the others goes, when it takes off more than ten times its part.
    x[7] *= 40
    ordinary = np.delete(np.abs(x).max(1), 7).max()
    assert threshold('--method', 'enhanced', '--enhance-ratio', 10) == pytest.approx(ordinary, rel=1e-5)
    assert threshold('--method', 'enhanced', '--enhance-ratio', 1e6) == pytest.approx(np.abs(x).max(), rel=1e-6)


def test_threads_do_not_matter(samples, tmp_path):
    tables = []
    for threads in 1, 4:
        input_threshold(tmp_path, samples, '--method', 'kl', '--threads', threads)
        tables.append(((tmp_path / 't.table').read_text(), (tmp_path / 'q.bin').read_bytes()))
    assert tables[0] == tables[1]


def int8_product(x, weight, bias, input_scale, scales):
    q = np.clip(np.sign(x * input_scale) * np.floor(np.abs(x * input_scale) + 0.5), -127, 127)
    w = np.clip(np.sign(weight * scales[:, None]) * np.floor(np.abs(weight * scales[:, None]) + 0.5), -127, 127)
    return (w @ q) / (input_scale * scales) + bias, w


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


# ---- The digits.

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


def test_equalisation(tmp_path):
    """A depthwise convolution behind channels of very different size: as good as if they were alike, and the same in float."""
    rng = np.random.default_rng(11)
    c, k = 12, 9
    sizes = np.geomspace(0.01, 10, c).astype(np.float32)
    first, second = rng.normal(size=(c, 3)).astype(np.float32), rng.normal(size=(c, k)).astype(np.float32)
    bias = rng.normal(size=c).astype(np.float32) * sizes
    (tmp_path / 'm.param').write_text(
        f'7767517\n3 3\nInput in 0 1 data 0=16 1=16 2=3\nConvolution a 1 1 data a 0={c} 1=1 5=1 6={c * 3} 9=1\n'
        f'ConvolutionDepthWise b 1 1 a out 0={c} 1=3 4=1 6={c * k} 7={c}\n')
    np.concatenate([[0], (first * sizes[:, None]).ravel(), bias, [0], (second / sizes[:, None]).ravel()]).astype(np.float32).tofile(
        tmp_path / 'm.bin')
    x = rng.normal(size=(30, 3, 16, 16)).astype(np.float32)
    np.save(tmp_path / 'x.npy', x)
    model = tmp_path / 'm.param', tmp_path / 'm.bin'
    exact = run_engine(*model, {'data': x[0]}, ['out'])['out']
    sqnr = []
    for more in ['--no-equalize'], [], ['--layer', 'a=float', '--layer', 'b=float']:
        quantize(model, tmp_path / 'q', '--data', tmp_path / 'x.npy', '--method', 'minmax', *more)
        got = run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'data': x[0]}, ['out'])['out']
        noise = ((got - exact) ** 2).sum((1, 2))
        sqnr.append(10 * np.log10((exact ** 2).sum((1, 2)) / np.maximum(noise, 1e-20)))
    plain, equalised, in_float = sqnr
    assert plain.min() < 0 and equalised.min() > 25 and in_float.min() > 100


@pytest.mark.parametrize('norm', ['LayerNorm', 'RMSNorm'])
@pytest.mark.parametrize('kind', ['int8', 'dynamic'])
def test_smooth_norms(norm, kind, tmp_path):
    """A transformer's rows with a few values far beyond the others: weights take over what is hard about them."""
    rng = np.random.default_rng(15)
    k, n = 64, 32
    gamma, beta = rng.uniform(0.5, 1.5, k).astype(np.float32), rng.normal(size=k).astype(np.float32)
    gamma[[3, 40]] *= 60
    weights = [rng.normal(size=(n, k)).astype(np.float32) for _ in range(2)]
    (tmp_path / 'm.param').write_text(
        f'7767517\n5 6\nInput in 0 1 data 0={k} 1=10\n{norm} norm 1 1 data y 0={k} 1=1e-5\nSplit split 1 2 y y0 y1\n'
        f'InnerProduct a 1 1 y0 outa 0={n} 2={n * k}\nInnerProduct b 1 1 y1 outb 0={n} 2={n * k}\n')
    tag = np.zeros(1, np.float32)
    np.concatenate([gamma] + ([beta] if norm == 'LayerNorm' else []) + [tag, weights[0].ravel(), tag, weights[1].ravel()]).tofile(tmp_path / 'm.bin')
    x = rng.normal(size=(40, 10, k)).astype(np.float32)
    np.save(tmp_path / 'x.npy', x)
    model, noise = (tmp_path / 'm.param', tmp_path / 'm.bin'), {}
    exact = run_engine(*model, {'data': x[0]}, ['outa', 'outb'])
    for more in [], ['--no-equalize']:
        done = quantize(model, tmp_path / 'q', '--data', tmp_path / 'x.npy', '--holdout', 0, '--kind', kind, '--method', 'minmax', *more)
        assert ('equalised  1 blobs' in done.stdout) == (not more)
        got = run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'data': x[0]}, ['outa', 'outb'])
        noise[bool(more)] = sum(((got[o] - exact[o]) ** 2).sum() for o in exact)
    assert 0 < noise[False] < 0.3 * noise[True]


@pytest.mark.parametrize('text, word', [('fc 1 x\n', 'line 1'), ('', 'no scales'), ('fc\n', 'no scales behind'),
                                        ('fc_param_0 1 2\nfc 3\n', 'expected 10'), ('other_param_0 1\nother 1\n', 'no scales for any'),
                                        ('fc_param_0 ' + '1 ' * 10 + '\n', 'none of its input')])
def test_bad_tables(text, word, tmp_path):
    (tmp_path / 't').write_text(text)
    done = run_program('ncnn2int8', *digits_model(), tmp_path / 'q.param', tmp_path / 'q.bin', tmp_path / 't')
    assert done.returncode == 1 and word in last_line(done.stderr)
    assert not (tmp_path / 'q.param').exists()


@pytest.mark.parametrize('kind, least', [('weights8', 40), ('table8', 30), ('fp16', 60), ('bf16', 40), ('dynamic', 30)])
def test_kinds_without_data(kind, least, digits, tmp_path):
    _, images, _ = digits
    out = tmp_path / 'q'
    quantize(digits_model(), out, '--kind', kind)
    before = run_engine(*digits_model(), {'data': images}, ['fc'], '--batch')['fc']
    after = run_engine(f'{out}.param', f'{out}.bin', {'data': images}, ['fc'], '--batch')['fc']
    sqnr = 10 * np.log10((before ** 2).sum() / ((before - after.reshape(before.shape)) ** 2).sum())
    assert least < sqnr < 120
    assert os.path.getsize(f'{out}.bin') < os.path.getsize(DIGITS / 'digits.bin')


def product(folder, op, weight, bias):
    """Rows of weight.shape[1] values times weight, by InnerProduct with bias or by Gemm, whose B is [K][N] unless turned."""
    n, k = weight.shape
    line = {'InnerProduct': f'0={n} 1=1 2={n * k}', 'Gemm': f'5=1 8={n} 9={k}', 'GemmT': f'3=1 5=1 8={n} 9={k}'}[op]
    (folder / 'm.param').write_text(f'7767517\n2 2\nInput in 0 1 data 0={k} 1=5\n{op.rstrip("T")} fc 1 1 data out {line}\n')
    values = weight.T if op == 'Gemm' else weight
    parts = [[0], values.ravel()] + ([bias] if op == 'InnerProduct' else [])
    np.concatenate(parts).astype(np.float32).tofile(folder / 'm.bin')
    return folder / 'm.param', folder / 'm.bin'


@pytest.mark.parametrize('op', ['InnerProduct', 'Gemm', 'GemmT'])
@pytest.mark.parametrize('bits, block', [(8, 64), (6, 64), (4, 32), (4, 128), (4, 16)])
def test_blocks(bits, block, op, tmp_path):
    rng = np.random.default_rng(bits + block)
    n, k = 24, 200
    weight, bias = rng.normal(size=(n, k)).astype(np.float32), rng.normal(size=n).astype(np.float32)
    quantize(product(tmp_path, op, weight, bias), tmp_path / 'q', '--kind', f'block{bits}x{block}')
    x = rng.normal(size=(5, k)).astype(np.float32)
    got = run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'data': x}, ['out'])['out']
    # Rounding to nearest with the largest value of each block at the end of the range is what has to be beaten.
    rounded = weight.copy()
    for begin in range(0, k, block):
        part = rounded[:, begin:begin + block]
        step = np.abs(part).max(1, keepdims=True) / (2 ** (bits - 1) - 1)
        rounded[:, begin:begin + block] = np.rint(part / step) * step
    exact = x @ weight.T + (bias if op == 'InnerProduct' else 0)
    error, plain = ((got - exact) ** 2).sum(), ((x @ (rounded - weight).T) ** 2).sum()
    assert 0 < error < 1.1 * plain
    assert os.path.getsize(tmp_path / 'q.bin') < n * k * bits / 8 * 1.6 + 4 * n + 600


@pytest.mark.parametrize('op', ['InnerProduct', 'Gemm', 'GemmT'])
def test_dynamic_products(op, tmp_path):
    rng = np.random.default_rng(9)
    weight, bias = rng.normal(size=(24, 200)).astype(np.float32), rng.normal(size=24).astype(np.float32)
    quantize(product(tmp_path, op, weight, bias), tmp_path / 'q', '--kind', 'dynamic')
    for size in 1e-3, 1, 1e3:  # whatever the size of the input
        x = (size * rng.normal(size=(5, 200))).astype(np.float32)
        got = run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'data': x}, ['out'])['out']
        exact = x @ weight.T + (bias if op == 'InnerProduct' else 0)
        assert 0 < ((got - exact) ** 2).sum() < 1e-3 * ((x @ weight.T) ** 2).sum()


@pytest.mark.parametrize('direction', [0, 2])
@pytest.mark.parametrize('op, gates, biases', [('LSTM', 4, 4), ('GRU', 3, 4), ('RNN', 1, 1)])
def test_dynamic_recurrent(op, gates, biases, direction, tmp_path):
    """Near the float layer, a quarter of its size, and read by the ncnn wheel, whose int8 layers give the same."""
    rng = np.random.default_rng(gates + direction)
    size, hidden, directions = 48, 40, 1 + direction // 2
    (tmp_path / 'm.param').write_text(f'7767517\n2 2\nInput in 0 1 data 0={size} 1=12\n'
                                      f'{op} rec 1 1 data out 0={hidden} 1={directions * gates * hidden * size} 2={direction}\n')
    parts = [part for count in (gates * size, biases, gates * hidden)
             for part in ([0], 0.2 * rng.normal(size=directions * hidden * count))]
    np.concatenate(parts).astype(np.float32).tofile(tmp_path / 'm.bin')
    quantize((tmp_path / 'm.param', tmp_path / 'm.bin'), tmp_path / 'q', '--kind', 'dynamic')
    assert ' 8=2' in (tmp_path / 'q.param').read_text()
    assert os.path.getsize(tmp_path / 'q.bin') < 0.32 * os.path.getsize(tmp_path / 'm.bin')
    x = rng.normal(size=(12, size)).astype(np.float32)
    exact = run_engine(tmp_path / 'm.param', tmp_path / 'm.bin', {'data': x}, ['out'])['out']
    got = run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'data': x}, ['out'])['out']
    assert 0 < ((got - exact) ** 2).sum() < 1e-3 * (exact ** 2).sum()
    ncnn = pytest.importorskip('ncnn')
    net = ncnn.Net()
    assert net.load_param(str(tmp_path / 'q.param')) == 0 and net.load_model(str(tmp_path / 'q.bin')) == 0
    ex = net.create_extractor()
    ex.input('data', ncnn.Mat(x))
    np.testing.assert_allclose(np.array(ex.extract('out')[1]), got, atol=0.01)
    del ex  # before the net


# ---- Zero points.

def zero_point_product(x, weight, bias, low, high):
    """As affine8.h describes: 256 steps from low to high, 0 among them."""
    step = (high - low) / 255
    zero = np.clip(np.rint(-low / step - 128), -128, 127)
    q = np.clip(np.rint(x / step) + zero, -128, 127) - zero
    scales = 127 / np.abs(weight).max(1)
    w = np.clip(np.sign(weight) * np.floor(np.abs(weight * scales[:, None]) + 0.5), -127, 127)
    return (w @ q) * step / scales + bias


@pytest.mark.parametrize('low, high', [(0, 3), (-0.3, 2), (-4, 0), (-1, 1)])
def test_zero_points(low, high, tmp_path):
    rng = np.random.default_rng(12)
    weight, bias = rng.integers(-127, 128, (7, 33)).astype(np.float32), rng.normal(size=7).astype(np.float32)
    weight[:, 3] = 127  # weights are exact, all noise is the input's
    x = rng.uniform(low, high, (50, 33)).astype(np.float32)
    x[0, :2] = low, high
    np.save(tmp_path / 'x.npy', x)
    model, args = one_layer(tmp_path, weight, bias), ('--data', tmp_path / 'x.npy', '--method', 'minmax', '--no-bias-correction', '--holdout', 0)
    noise = {}
    for kind in 'int8', 'affine':
        out = tmp_path / kind
        quantize(model, out, *args, '--kind', kind)
        got = np.stack([run_engine(f'{out}.param', f'{out}.bin', {'data': v}, ['out'])['out'] for v in x[:8]])
        noise[kind] = ((got - (x[:8] @ weight.T + bias)) ** 2).sum()
    expected = np.stack([zero_point_product(v, weight, bias, low, high) for v in x[:8]])
    # One value of the input may lie between two steps and be rounded the other way.
    assert np.abs(got - expected).max() < 1.5 * (high - low) / 255 * np.abs(weight).max()
    assert np.mean(np.abs(got - expected) < 1e-3) > 0.8
    if low == 0:  # twice the steps: a quarter of the input's part of the noise
        assert noise['affine'] < 0.35 * noise['int8']


def test_zero_points_between_layers(digits, tmp_path):
    """Of a whole net: nearer than without them, int8 between layers, and the same answers by the scalar reference."""
    folder, images, _ = digits
    reports = {}
    for kind in 'int8', 'affine':
        out = tmp_path / kind
        quantize(digits_model(), out, '--data', folder / 'x.npy', '--holdout', 0.5, '--method', 'mse', '--kind', kind, '--report', tmp_path / kind)
        reports[kind] = json.loads((tmp_path / kind / 'report.json').read_text())
    assert reports['affine']['accuracy']['sqnr_db'] > reports['int8']['accuracy']['sqnr_db'] + 1
    assert {layer['kind'] for layer in reports['affine']['layers']} == {'affine'}
    files = tmp_path / 'affine.param', tmp_path / 'affine.bin'
    answers = [run_engine(*files, {'data': images[:40]}, ['prob'], '--batch', *args)['prob'] for args in ([], ['--reference', '--no-fusion'])]
    np.testing.assert_allclose(answers[0], answers[1], atol=0.02)


def convolutions_of_one_axis(folder):
    """16 channels of 50 places: a convolution, one for each channel, one of two places at a time; ReLU between."""
    rng = np.random.default_rng(5)
    (folder / 'm.param').write_text(
        '7767517\n4 4\nInput in 0 1 data 0=50 1=16\nConvolution1D a 1 1 data a 0=24 1=3 4=1 5=1 6=1152 9=1\n'
        'ConvolutionDepthWise1D b 1 1 a b 0=24 1=5 4=2 5=1 6=120 7=24 9=1\nConvolution1D c 1 1 b out 0=10 1=2 3=2 5=1 6=480\n')
    parts = []
    for count, outputs in (1152, 24), (120, 24), (480, 10):
        parts += [np.zeros(1), rng.normal(size=count) * (outputs / count) ** 0.5, rng.normal(size=outputs)]
    np.concatenate(parts).astype(np.float32).tofile(folder / 'm.bin')
    return (folder / 'm.param', folder / 'm.bin'), rng.normal(size=(40, 16, 50)).astype(np.float32)


def test_convolutions_of_one_axis(tmp_path):
    """int8 with zero points, as near as convolutions of two axes; int8 from one to the next; float where ncnn's format has no int8."""
    model, x = convolutions_of_one_axis(tmp_path)
    np.save(tmp_path / 'x.npy', x)
    out = tmp_path / 'q'
    quantize(model, out, '--data', tmp_path / 'x.npy', '--holdout', 0.5, '--report', tmp_path / 'report')
    report = json.loads((tmp_path / 'report' / 'report.json').read_text())
    assert [layer['kind'] for layer in report['layers']] == ['affine'] * 3
    files = f'{out}.param', f'{out}.bin'
    exact = np.stack([run_engine(*model, {'data': v}, ['out'])['out'] for v in x[:8]])
    got, plain = ([run_engine(*files, {'data': v}, ['out'], *args)['out'] for v in x[:8]] for args in ([], ['--reference', '--no-fusion']))
    assert 10 * np.log10((exact ** 2).sum() / ((exact - got) ** 2).sum()) > 35
    np.testing.assert_allclose(got, plain, atol=0.02 * np.abs(exact).max())
    assert np.mean(np.abs(np.array(got) - plain) < 1e-4) > 0.9  # few values lie between two steps
    done = quantize(model, out, '--data', tmp_path / 'x.npy', '--holdout', 0, '--kind', 'int8')
    assert done.stderr.count('ncnn has no int8 form of it') == 3


def conv_net(folder, text, *weights):
    """A param file's text and, for each layer with weights, its weights and bias."""
    (folder / 'm.param').write_text('7767517\n' + text)
    parts = [part.ravel() for weight, bias in weights for part in (np.zeros(1), weight, bias)]
    np.concatenate(parts).astype(np.float32).tofile(folder / 'm.bin')
    return folder / 'm.param', folder / 'm.bin'


def test_convolutions_of_three_axes(tmp_path):
    """As those of two axes; ncnn's format has no int8 of them."""
    rng = np.random.default_rng(6)
    first, second = rng.normal(size=(24, 6, 3, 3, 3)) / 13, rng.normal(size=(5, 24, 2, 2, 2)) / 14
    model = conv_net(tmp_path, '3 3\nInput in 0 1 data 0=9 1=8 11=7 2=6\nConvolution3D a 1 1 data a 0=24 1=3 4=1 5=1 6=3888 9=1\n'
                     'Convolution3D b 1 1 a out 0=5 1=2 3=2 5=1 6=960\n', (first, rng.normal(size=24)), (second, rng.normal(size=5)))
    x = rng.normal(size=(24, 6, 7, 8, 9)).astype(np.float32)
    np.save(tmp_path / 'x.npy', x)
    noise = {}
    for rounding in 'nearest', 'reconstruct':
        quantize(model, tmp_path / 'q', '--data', tmp_path / 'x.npy', '--rounding', rounding, '--no-bias-correction', '--report', tmp_path / 'report')
        report = json.loads((tmp_path / 'report' / 'report.json').read_text())
        assert [layer['kind'] for layer in report['layers']] == ['affine'] * 2
        exact = run_engine(*model, {'data': x[0]}, ['out'])['out']
        got, plain = (run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'data': x[0]}, ['out'], *args)['out']
                      for args in ([], ['--reference', '--no-fusion']))
        np.testing.assert_allclose(got, plain, atol=0.02 * np.abs(exact).max())
        noise[rounding] = ((exact - got) ** 2).sum() / (exact ** 2).sum()
    assert noise['nearest'] < 10 ** -3.5 and noise['reconstruct'] < 0.9 * noise['nearest']
    done = quantize(model, tmp_path / 'q', '--data', tmp_path / 'x.npy', '--kind', 'int8')
    assert done.stderr.count('ncnn has no int8 form of it') == 2


@pytest.mark.parametrize('window', ['1=2 3=2', '1=4 3=2 4=1', '1=3 3=2 4=1 18=1', '1=3 11=5 3=3 4=1 14=0 18=1 19=0', '1=3 3=1 4=1', '1=3 11=2 4=0 18=0 19=0',
                                    '1=4 3=4 4=1 15=0 14=2 16=1'])
def test_deconvolutions(window, tmp_path):
    """In int8 as convolutions whose outputs are put side by side, which ncnn reads."""
    rng = np.random.default_rng(len(window))
    p = dict(pair.split('=') for pair in window.split())
    taps = int(p['1']) * int(p.get('11', p['1']))
    weight = rng.normal(size=(6, 8, taps)) / (8 * taps) ** 0.5
    second = rng.normal(size=(3, 6, 9)) / 54 ** 0.5
    model = conv_net(tmp_path, f'3 3\nInput in 0 1 data 0=9 1=7 2=8\nDeconvolution a 1 1 data a 0=6 5=1 6={weight.size} 9=2 -23310=1,0.1 {window}\n'
                     f'Convolution b 1 1 a out 0=3 1=3 5=1 6={second.size}\n', (weight, rng.normal(size=6)), (second, rng.normal(size=3)))
    x = rng.normal(size=(30, 8, 7, 9)).astype(np.float32)
    np.save(tmp_path / 'x.npy', x)
    exact = run_engine(*model, {'data': x[0]}, ['out'])['out']
    for kind in 'affine', 'int8':
        done = quantize(model, tmp_path / 'q', '--data', tmp_path / 'x.npy', '--kind', kind)
        assert f'{kind:10} 2 layers' in done.stdout
        got = run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'data': x[0]}, ['out'])['out']
        assert got.shape == exact.shape and 30 < 10 * np.log10((exact ** 2).sum() / ((exact - got) ** 2).sum()) < 60
    ncnn = pytest.importorskip('ncnn')
    net = ncnn.Net()
    assert net.load_param(str(tmp_path / 'q.param')) == 0 and net.load_model(str(tmp_path / 'q.bin')) == 0
    ex = net.create_extractor()
    ex.input('data', ncnn.Mat(x[0]))
    np.testing.assert_allclose(np.array(ex.extract('out')[1]), got, atol=0.03 * np.abs(got).max())
    del ex  # before the net


@pytest.mark.parametrize('layer', ['Deconvolution a 1 1 data a 0=6 1=3 3=2 13=1 6=432', 'Deconvolution a 1 1 data a 0=6 1=3 2=2 3=2 6=432',
                                   'Deconvolution a 1 1 data a 0=6 1=3 3=2 20=17 21=13 4=-233 6=432', 'DeconvolutionDepthWise a 1 1 data a 0=8 1=3 3=2 7=8 6=72'])
def test_deconvolutions_that_stay(layer, tmp_path):
    """Those that no convolution is: the model runs as before."""
    rng = np.random.default_rng(3)
    count = int(re.search(' 6=([0-9]+)', layer)[1])
    (tmp_path / 'm.param').write_text(f'7767517\n2 2\nInput in 0 1 data 0=9 1=7 2=8\n{layer}\n')
    np.concatenate([np.zeros(1), rng.normal(size=count)]).astype(np.float32).tofile(tmp_path / 'm.bin')
    x = rng.normal(size=(4, 8, 7, 9)).astype(np.float32)
    np.save(tmp_path / 'x.npy', x)
    model = tmp_path / 'm.param', tmp_path / 'm.bin'
    quantize(model, tmp_path / 'q', '--data', tmp_path / 'x.npy')
    before, after = (run_engine(*files, {'data': x[0]}, ['a'])['a'] for files in (model, (tmp_path / 'q.param', tmp_path / 'q.bin')))
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize('border', ['', 'Padding pad 1 1 pooled padded 0=1 1=1 2=1 3=1\n'])
def test_zero_points_across_concatenations(border, tmp_path):
    """Rounded before a concatenation and a pooling of maxima: the same integers as behind them; a border of zeros is not that of zero points."""
    rng = np.random.default_rng(21)
    (tmp_path / 'm.param').write_text(
        f'7767517\n{8 + bool(border)} {9 + bool(border)}\nInput in 0 1 data 0=12 1=12 2=8\nSplit split 1 2 data d0 d1\n'
        'Convolution a 1 1 d0 a 0=8 1=1 6=64 9=2 -23310=1,0.1\nConvolution b 1 1 d1 b 0=8 1=3 4=1 6=576\nConcat cat 2 1 a b cat\n'
        f'Pooling pool 1 1 cat pooled 0=0 1=2 2=2\n{border}Convolution c 1 1 {"padded" if border else "pooled"} c 0=8 1=3 6=1152\n'
        'Convolution d 1 1 c out 0=4 1=1 6=32\n')
    tag = np.zeros(1, np.float32)
    np.concatenate([v for n in (64, 576, 1152, 32) for v in (tag, rng.normal(size=n))]).astype(np.float32).tofile(tmp_path / 'm.bin')
    x = rng.uniform(-1, 3, (30, 8, 12, 12)).astype(np.float32)
    np.save(tmp_path / 'x.npy', x)
    quantize((tmp_path / 'm.param', tmp_path / 'm.bin'), tmp_path / 'q', '--data', tmp_path / 'x.npy', '--kind', 'affine')
    files = tmp_path / 'q.param', tmp_path / 'q.bin'
    for sample in x[:5]:
        got, expected = (run_engine(*files, {'data': sample}, ['out'], '--precision', 'int8', *args)['out'] for args in ([], ['--no-fusion', '--reference']))
        # Steps of a value that lies between two, rounded the other way, and nothing else.
        assert np.mean(np.abs(got - expected) < 1e-4 * np.abs(expected).max()) > 0.8
        np.testing.assert_allclose(got, expected, atol=0.01 * np.abs(expected).max())


# ---- Gemm with constant weights.

def gemm_model(folder, turned, bias_type, weight, bias, width=None):
    """Rows of `width` (default: K) values times weight [N][K], plus bias [N] (type 4), one value (0) or nothing (-1)."""
    n, k = weight.shape
    (folder / 'm.param').write_text(f'7767517\n2 2\nInput in 0 1 data 0={width or k} 1=5\n'
                                    f'Gemm fc 1 1 data out 3={turned} 5=1 6=1 8={n} 9={k} 10={bias_type}\n')
    values = weight if turned else weight.T
    tag = np.zeros(1, np.float32)
    parts = [tag, values.ravel()] + {4: [tag, bias], 0: [tag, bias[:1]], -1: []}[bias_type]
    np.concatenate(parts).astype(np.float32).tofile(folder / 'm.bin')
    return folder / 'm.param', folder / 'm.bin'


@pytest.mark.parametrize('turned, bias_type', [(1, 4), (0, 4), (1, -1)])
@pytest.mark.parametrize('kind', ['affine', 'int8'])
def test_gemm(kind, turned, bias_type, tmp_path):
    """Against integer arithmetic in NumPy."""
    rng = np.random.default_rng(21)
    n, k = 24, 40
    weight, bias = rng.normal(size=(n, k)).astype(np.float32), rng.normal(size=n).astype(np.float32)
    model = gemm_model(tmp_path, turned, bias_type, weight, bias)
    np.save(tmp_path / 'x.npy', rng.uniform(-1, 3, (30, 5, k)).astype(np.float32))
    quantize(model, tmp_path / 'q', '--data', tmp_path / 'x.npy', '--kind', kind, '--range', 'data=-1,3', '--no-bias-correction')
    assert 'InnerProduct' in (tmp_path / 'q.param').read_text()
    x = rng.uniform(-1, 3, (5, k)).astype(np.float32)
    got = run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'data': x}, ['out'])['out']
    step = (4 / 255 if kind == 'affine' else 3 / 127) * np.ones((), np.float32)
    zero = round(1 / step) if kind == 'affine' else 0
    q = np.clip(np.rint(x / step), -zero if kind == 'affine' else -127, 255 - zero if kind == 'affine' else 127).astype(np.int64)
    rows = np.abs(weight).max(1) / 127
    expected = (q @ np.rint(weight / rows[:, None]).astype(np.int64).T) * (step * rows) + (bias if bias_type == 4 else 0)
    # Steps of values that lie between two, rounded the other way.
    assert np.mean(np.abs(got - expected) < 1e-4 * np.abs(expected).max()) > 0.8
    np.testing.assert_allclose(got, expected, atol=2 * step * np.abs(weight).max())
    noise = got - x @ weight.T - (bias if bias_type == 4 else 0)
    assert np.sqrt((noise ** 2).mean()) < 0.02 * np.abs(expected).mean()


def test_gemm_of_an_input_without_sizes(tmp_path):
    """The data say them."""
    weight = np.random.default_rng(23).normal(size=(24, 40)).astype(np.float32)
    param, binary = gemm_model(tmp_path, 1, -1, weight, np.zeros(24, np.float32))
    param.write_text(param.read_text().replace(' 0=40 1=5', ''))
    np.save(tmp_path / 'x.npy', np.ones((5, 40), np.float32))
    quantize((param, binary), tmp_path / 'q', '--data', tmp_path / 'x.npy')
    assert '\nInnerProduct' in (tmp_path / 'q.param').read_text()


@pytest.mark.parametrize('change', [{'bias_type': 0}, {'width': 20}, {'args': ['--layer', 'fc=block8']}])
def test_gemm_that_stays(change, tmp_path):
    """Another C, an input that is no matrix of K columns as far as is known, another kind."""
    rng = np.random.default_rng(22)
    weight, bias = rng.normal(size=(24, 40)).astype(np.float32), rng.normal(size=24).astype(np.float32)
    args = change.pop('args', [])
    model = gemm_model(tmp_path, 1, change.get('bias_type', -1), weight, bias, change.get('width'))
    np.save(tmp_path / 'x.npy', rng.normal(size=(30, 5, 40)).astype(np.float32))
    quantize(model, tmp_path / 'q', '--data', tmp_path / 'x.npy', *args)
    assert '\nGemm' in (tmp_path / 'q.param').read_text()


# ---- Rounding by what the outputs make of it.

@pytest.mark.parametrize('kind', ['block4', 'int8', 'affine'])
def test_reconstruction(kind, tmp_path):
    """Inputs that go together: errors of their weights may make up for each other."""
    rng = np.random.default_rng(13)
    n, k = 24, 128
    weight = rng.normal(size=(n, k)).astype(np.float32)
    mix = rng.normal(size=(12, k))
    draw = lambda count: (rng.normal(size=(count, 12)) @ mix + 0.1 * rng.normal(size=(count, k))).astype(np.float32)
    np.save(tmp_path / 'x.npy', draw(40 * 16).reshape(40, 16, k))
    model, noise = product(tmp_path, 'InnerProduct', weight, np.zeros(n, np.float32)), {}
    x = draw(200)
    for rounding in 'nearest', 'reconstruct':
        quantize(model, tmp_path / 'q', '--kind', kind, '--method', 'mse', '--rounding', rounding, '--data', tmp_path / 'x.npy', '--holdout', 0, '--no-bias-correction')
        got = run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'data': x}, ['out'])['out']
        noise[rounding] = ((got - x @ weight.T) ** 2).sum()
    assert noise['reconstruct'] < (0.3 if kind == 'block4' else 0.8) * noise['nearest']


@pytest.mark.parametrize('op', ['InnerProduct', 'Gemm'])
def test_factors_of_inputs(op, tmp_path):
    """Weights that meet the few large values of a row are rounded finer, by factors that ncnn's format has."""
    rng = np.random.default_rng(16)
    n, k = 32, 128
    weight, sizes = rng.normal(size=(n, k)).astype(np.float32), np.ones(k)
    sizes[rng.choice(k, 6, replace=False)] = 30
    draw = lambda count: (rng.normal(size=(count, k)) * sizes).astype(np.float32)
    np.save(tmp_path / 'x.npy', draw(40 * 5).reshape(40, 5, k))
    model, x, noise = product(tmp_path, op, weight, np.zeros(n, np.float32)), draw(5), {}
    for more in [], ['--no-equalize']:
        quantize(model, tmp_path / 'q', '--kind', 'block4', '--data', tmp_path / 'x.npy', '--holdout', 0, *more)
        got = run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'data': x}, ['out'])['out']
        plain = run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'data': x}, ['out'], '--reference')['out']
        np.testing.assert_allclose(got, plain, atol=1e-4 * np.abs(plain).max())
        noise[bool(more)] = ((got - x @ weight.T) ** 2).sum()
    assert noise[False] < 0.7 * noise[True]


@pytest.mark.parametrize('rounding', ['nearest', 'reconstruct'])
def test_blocks_with_zero_points(rounding, tmp_path):
    """Weights on one side of zero: all 16 integers are of use."""
    rng = np.random.default_rng(17)
    n, k = 24, 200
    weight = rng.uniform(0.2, 1, size=(n, k)).astype(np.float32)
    np.save(tmp_path / 'x.npy', rng.normal(size=(40, 5, k)).astype(np.float32))
    model, x, noise = product(tmp_path, 'InnerProduct', weight, np.zeros(n, np.float32)), rng.normal(size=(5, k)).astype(np.float32), {}
    for kind in 'block4x32', 'block4x32z':
        quantize(model, tmp_path / 'q', '--kind', kind, '--data', tmp_path / 'x.npy', '--holdout', 0, '--rounding', rounding)
        got = run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'data': x}, ['out'])['out']
        noise[kind] = ((got - x @ weight.T) ** 2).sum()
    assert noise['block4x32z'] < 0.4 * noise['block4x32']


def test_swish_stays_a_layer(tmp_path):
    """ncnn's convolutions have no such activation."""
    ncnn = pytest.importorskip('ncnn')
    rng = np.random.default_rng(14)
    weight = rng.normal(size=(4, 2, 3, 3)).astype(np.float32)
    (tmp_path / 'm.param').write_text('7767517\n5 6\nInput in 0 1 data 0=9 1=7 2=2\nConvolution conv 1 1 data c 0=4 1=3 4=1 6=72\n'
                                      'Split split 1 2 c c0 c1\nSigmoid gate 1 1 c0 g\nBinaryOp mul 2 1 c1 g out 0=2\n')
    np.concatenate([np.zeros(1, np.float32), weight.ravel()]).tofile(tmp_path / 'm.bin')
    x = rng.normal(size=(30, 2, 7, 9)).astype(np.float32)
    np.save(tmp_path / 'x.npy', x)
    quantize((tmp_path / 'm.param', tmp_path / 'm.bin'), tmp_path / 'q', '--data', tmp_path / 'x.npy', '--kind', 'int8')
    ours = run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'data': x[0]}, ['out'])['out']
    net = ncnn.Net()
    assert net.load_param(str(tmp_path / 'q.param')) == 0 and net.load_model(str(tmp_path / 'q.bin')) == 0
    ex = net.create_extractor()
    ex.input('data', ncnn.Mat(x[0]))
    np.testing.assert_allclose(np.array(ex.extract('out')[1]), ours, atol=0.02)
    del ex  # before the net


# ---- Precedence of ranges.

def report_layers(folder):
    return {layer['name']: layer for layer in json.loads((folder / 'report.json').read_text())['layers']}


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
    done = quantize(digits_model(), tmp_path / 'q', *args, '--override', tmp_path / name, '--write-override', tmp_path / 'chosen.json')
    layers = report_layers(tmp_path / 'r')
    assert {n for n, layer in layers.items() if layer['kind'] == 'float'} == {'pw1', 'dw2', 'fc'} and "'pool2'" in done.stderr
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


@pytest.mark.parametrize('text, word', [
    ('{', 'parse error'), ('[]', 'expected a mapping'), ('{"layer": {}}', "unknown key 'layer'"), ('{"version": 2}', 'version'),
    ('{"layers": {"fc": "int9"}}', "'int9'"), ('{"layers": {"nobody": "float"}}', "no layer 'nobody'"),
    ('{"quantizer_targets": {"activations": [{"bitwidth": 8}]}}', 'activations[0]: target_name'),
    ('{"quantizer_targets": {"activations": [{"target_name": "data", "bitwidth": 17}]}}', 'activations[0].bitwidth'),
    ('{"quantizer_targets": {"activations": [{"target_name": "data", "quantizer": {"type": "LogTholdQuantizer"}}]}}', 'LogThold'),
    ('{"quantizer_targets": {"activations": [{"target_name": "data", "quantizer": {"type": "ConstantQuantizer"}}]}}', 'min_vals')])
def test_bad_overrides(text, word, digits, tmp_path):
    (tmp_path / 'o.json').write_text(text)
    done = quantize(digits_model(), tmp_path / 'q', '--data', digits[0] / 'x.npy', '--override', tmp_path / 'o.json', code=1)
    assert word in last_line(done.stderr)


def test_known_ranges(tmp_path):
    (tmp_path / 'm.param').write_text('7767517\n3 3\nInput in 0 1 data 0=16\nSigmoid s 1 1 data s\n'
                                      'InnerProduct fc 1 1 s out 0=4 1=0 2=64\n')
    np.concatenate([[0], np.ones(64)]).astype(np.float32).tofile(tmp_path / 'm.bin')
    np.save(tmp_path / 'x.npy', np.random.default_rng(0).normal(size=(30, 16)).astype(np.float32))
    model = tmp_path / 'm.param', tmp_path / 'm.bin'
    scales = []
    for more in [], ['--hard-ranges']:
        quantize(model, tmp_path / 'q', '--data', tmp_path / 'x.npy', '--method', 'minmax', '--table', tmp_path / 't', *more)
        scales.append(read_table(tmp_path / 't')['fc'][0])
    assert scales[0] > 127 and scales[1] == 127


# ---- Bad input.

def test_unreadable_images(tmp_path):
    images = tmp_path / 'images'
    images.mkdir()
    for i in range(10):
        (images / f'{i}.png').write_bytes((DIGITS / 'images' / f'{i}.png').read_bytes())
    (images / 'broken.png').write_bytes(b'\x89PNG no')
    (images / 'empty.jpg').write_bytes(b'')
    args = '--data', images, '--norm', 1 / 255, '--holdout', 0
    done = quantize(digits_model(), tmp_path / 'q', *args)
    assert 'broken.png' in done.stderr and 'empty.jpg' in done.stderr and done.stderr.count('skipped') == 2
    assert '10 samples to calibrate with' in done.stderr
    (tmp_path / 'q.param').unlink()
    done = quantize(digits_model(), tmp_path / 'q', *args, '--strict', code=1)
    assert 'broken.png' in done.stderr or 'empty.jpg' in done.stderr
    assert not (tmp_path / 'q.param').exists()


def test_numbers_that_are_none(tmp_path):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(30, 6)).astype(np.float32)
    x[4, 2] = np.nan
    np.save(tmp_path / 'x.npy', x)
    model = one_layer(tmp_path, rng.normal(size=(3, 6)).astype(np.float32))
    done = quantize(model, tmp_path / 'q', '--data', tmp_path / 'x.npy', '--holdout', 0)
    assert "x.npy[4]: input 'data' has values that are NaN" in done.stderr and done.stderr.count('skipped') == 1
    weight = rng.normal(size=(3, 6)).astype(np.float32)
    weight[1, 1] = np.inf
    done = quantize(one_layer(tmp_path, weight), tmp_path / 'q', '--data', tmp_path / 'x.npy', '--holdout', 0)
    assert 'stays in float' in done.stderr and ' 8=' not in (tmp_path / 'q.param').read_text()


def test_no_sample_of_numbers(tmp_path):
    np.save(tmp_path / 'x.npy', np.full((30, 6), np.nan, np.float32))
    model = one_layer(tmp_path, np.ones((3, 6), np.float32))
    done = quantize(model, tmp_path / 'q', '--data', tmp_path / 'x.npy', '--holdout', 0, code=1)
    assert done.stderr.count('skipped: ') == 30 and 'none of the 30 samples' in last_line(done.stderr)
    assert not list(tmp_path.glob('q.*'))


def test_held_out_samples_that_are_no_numbers(tmp_path):
    """Half of them are held out: wherever the one is, it is named, and --strict stops at it."""
    rng = np.random.default_rng(5)
    model = one_layer(tmp_path, rng.normal(size=(3, 6)).astype(np.float32))
    for bad in range(6):
        x = rng.normal(size=(6, 6)).astype(np.float32)
        x[bad, 1] = np.inf
        np.save(tmp_path / 'x.npy', x)
        args = '--data', tmp_path / 'x.npy', '--holdout', 0.5
        done = quantize(model, tmp_path / 'q', *args)
        assert done.stderr.count(f'skipped: {tmp_path}/x.npy[{bad}]') == 1
        (tmp_path / 'q.param').unlink()
        done = quantize(model, tmp_path / 'q', *args, '--strict', code=1)
        assert f'x.npy[{bad}]' in last_line(done.stderr) and not (tmp_path / 'q.param').exists()


def test_only_held_out_samples_are_no_numbers(tmp_path):
    rng = np.random.default_rng(5)
    model, named = one_layer(tmp_path, rng.normal(size=(3, 6)).astype(np.float32)), 0
    for bad in range(3):
        x = rng.normal(size=(3, 6)).astype(np.float32)
        x[bad] = np.nan
        np.save(tmp_path / 'x.npy', x)
        done = quantize(model, tmp_path / 'q', '--data', tmp_path / 'x.npy', '--holdout', 0.34)
        named += 'on 2 samples, which were calibrated with too' in done.stdout
        assert f'x.npy[{bad}]' in done.stderr
    assert named == 1


def test_constant_activations(tmp_path):
    np.save(tmp_path / 'x.npy', np.zeros((30, 6), np.float32))
    model = one_layer(tmp_path, np.ones((3, 6), np.float32))
    done = quantize(model, tmp_path / 'q', '--data', tmp_path / 'x.npy')
    assert done.stderr.count("'data' was always 0") == 1
    np.save(tmp_path / 'x.npy', np.full((30, 6), 0.25, np.float32))
    for method in 'kl', 'aciq', 'mse', 'percentile', 'minmax':
        quantize(model, tmp_path / 'q', '--data', tmp_path / 'x.npy', '--method', method)
        got = run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'data': np.full(6, 0.25, np.float32)}, ['out'])['out']
        np.testing.assert_allclose(got, 1.5, rtol=0.02)


def test_layers_that_no_numbers_reach(tmp_path):
    """Logarithms of negative numbers inside the net."""
    weight = np.ones((3, 6), np.float32)
    (tmp_path / 'm.param').write_text('7767517\n4 4\nInput in 0 1 data 0=6\nInnerProduct first 1 1 data a 0=3 2=18\n'
                                      'UnaryOp log 1 1 a b 0=8\nInnerProduct second 1 1 b out 0=3 2=9\n')
    tag = np.zeros(1, np.float32)
    np.concatenate([tag, -weight.ravel(), tag, np.ones(9, np.float32)]).tofile(tmp_path / 'm.bin')
    np.save(tmp_path / 'x.npy', np.random.default_rng(1).uniform(1, 2, (30, 6)).astype(np.float32))
    done = quantize((tmp_path / 'm.param', tmp_path / 'm.bin'), tmp_path / 'q', '--data', tmp_path / 'x.npy')
    assert "[InnerProduct second] stays in float: all values of its input 'b' were NaN or infinite" in done.stderr
    kinds = {line.split()[1]: ' 8=' in line for line in (tmp_path / 'q.param').read_text().splitlines()[2:]}
    assert kinds['first'] and not kinds['second']


def test_ranges_of_a_layer_that_no_data_reach(digits, tmp_path):
    """A file of ranges that leaves one out, without data: that layer alone stays in float."""
    names = ['data', 'stem', 'dw1', 'pool1', 'dw2', 'pool2']
    (tmp_path / 'log').write_text('\n'.join(f'{name}@@0,3' for name in names))
    ranges = {'quantizer_targets': {'activations': [{'target_name': 'data', 'bitwidth': 8, 'quantizer': {
        'type': 'ConstantQuantizer', 'settings': {'min_vals': 0, 'max_vals': 1}}}]}}
    (tmp_path / 'o.json').write_text(json.dumps(ranges))
    done = quantize(digits_model(), tmp_path / 'q', '--override', tmp_path / 'o.json', '--range-log', tmp_path / 'log', '--no-fusion')
    assert "no data reached its input 'add'" in done.stderr and done.stderr.count('stays in float') >= 1


def test_too_few_samples_to_hold_out(digits, tmp_path):
    folder, images, _ = digits
    np.save(tmp_path / 'one.npy', images[0])
    done = quantize(digits_model(), tmp_path / 'q', '--data', tmp_path / 'one.npy')
    assert '1 sample to calibrate with; ranges want a hundred or more' in done.stderr
    assert 'which were calibrated with too' in done.stdout


def test_outputs_that_cannot_be_written(digits, tmp_path):
    """The second file's place is a folder: the first is not left behind."""
    folder, _, _ = digits
    (tmp_path / 'q.bin').mkdir()
    done = quantize(digits_model(), tmp_path / 'q', '--data', folder / 'x.npy', '--limit', 30, code=1)
    assert 'q.bin' in last_line(done.stderr) and not (tmp_path / 'q.param').exists()


@pytest.mark.parametrize('args', [[], ['--table', 'missing/t', '--kind', 'int8'], ['--write-override', 'missing/o'], ['--report', 'x.npy']])
def test_folders_that_cannot_be_written(args, digits, tmp_path):
    """Told before the data are looked at, which are no numbers here."""
    np.save(tmp_path / 'x.npy', np.full((30, 1, 8, 8), np.nan, np.float32))
    args = [tmp_path / word if '/' in word or '.' in word else word for word in args]
    out = tmp_path / 'q' if args else tmp_path / 'missing/q'
    done = quantize(digits_model(), out, '--data', tmp_path / 'x.npy', *args, code=1)
    assert 'cannot be created: N' in last_line(done.stderr) and 'skipped' not in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ['x.npy']


@pytest.mark.parametrize('args, word', [
    (['--method', 'median'], 'expected best|kl'), (['--kind', 'int5'], '--kind'), (['--layer', 'fc'], '--layer'),
    (['--layer', 'nobody=float'], "no layer 'nobody'"), (['--range', 'data=1'], '--range'), (['--range', 'nobody=0,1'], 'nobody'),
    (['--method', 'constant'], '--constant'), (['--labels', 'missing'], 'missing'), (['--data', 'missing'], 'missing'),
    (['--mean', '1,x'], '--mean'), (['--pixel', 'CMYK'], 'CMYK'), (['--resize', '3'], '--resize'), (['--max-drop', 'x'], '--max-drop'), (['--budget', 'cost=3'], '--budget'),
    (['--kind', 'affine', '--table', 't'], "scales of --kind int8, not of 'affine'")])
def test_bad_arguments(args, word, digits, tmp_path):
    folder, _, _ = digits
    data = [] if '--data' in args else ['--data', folder / 'x.npy']
    done = quantize(digits_model(), tmp_path / 'q', *data, *args, code=1)
    assert word in last_line(done.stderr)
    assert not list(tmp_path.glob('q.*'))


def test_no_data(tmp_path):
    assert 'affine needs samples' in last_line(quantize(digits_model(), tmp_path / 'q', code=1).stderr)
    assert 'int8 needs samples' in last_line(quantize(digits_model(), tmp_path / 'q', '--table', tmp_path / 't', code=1).stderr)
    (tmp_path / 'empty').mkdir()
    assert 'no images' in last_line(quantize(digits_model(), tmp_path / 'q', '--data', tmp_path / 'empty', code=1).stderr)
