"""enginequantize: thresholds of each method against NumPy's."""
import json
import os

import numpy as np
import pytest

from quantizing import int8_product, one_layer, quantize, read_table

pytestmark = pytest.mark.skipif('ENGINERUN_PREFIX' in os.environ, reason='the same on every machine')
BINS = 4096


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
