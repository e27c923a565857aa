"""ncnn's benchmark graphs of language models, with made-up weights: they load, and steps with a cache give what one run gives."""
import os
import re

import ncnn
import numpy as np
import pytest

from conftest import DATA, last_line, run_program
from engine import difference, run_engine

FOLDER = DATA / 'models/ncnn-bench/llm' if DATA else None
GRAPHS = sorted(p.name[:-len('.ncnn.param')] for p in FOLDER.glob('*.param')) if DATA else ['QUOLL_DATA is not set']
DECODERS = [g for g in GRAPHS if not g.endswith('_proj_out')]
MOST_BYTES = 2e9  # of weights as float32
# Sums in another order pass through up to 28 layers.
LIMIT = 1e-3


def path_of(graph):
    return FOLDER / f'{graph}.ncnn.param'


def layers_of(path):
    return [line.split() for line in path.read_text().splitlines()[2:]]


def params_of(words):
    return dict(word.split('=') for word in words if re.match(r'-?\d+=', word))


def weight_counts(layers):
    """[(tagged, values)] in file order."""
    counts = []
    for words in layers:
        p = params_of(words)
        if words[0] == 'Gemm':
            counts.append((True, int(p['8']) * int(p['9'])))
            if p['10'] == '4':  # with a bias of N values
                counts.append((True, int(p['8'])))
        elif words[0] == 'RMSNorm':
            counts.append((False, int(p['0'])))
    return counts


def write_weights(path, layers):
    """Matrices as half floats, a random pattern repeated; the larger a matrix, the smaller its values."""
    rng = np.random.default_rng(1)
    pattern = rng.uniform(-1, 1, 1000003).astype(np.float32)
    with open(path, 'wb') as f:
        for tagged, count in weight_counts(layers):
            if not tagged:
                f.write(rng.uniform(0.5, 1, count).astype(np.float32).tobytes())
                continue
            f.write(b'\x47\x6b\x30\x01')
            piece = (pattern * count ** -0.25).astype(np.float16)
            for at in range(0, count, piece.size):
                f.write(piece[:count - at].tobytes())
            f.write(bytes(-2 * count % 4))


def outputs_of(words):
    return words[4 + int(words[2]):4 + int(words[2]) + int(words[3])]


def write_first_layers(path, layers, count):
    """A graph that ends behind the sum after the attention block `count`; its layers, and the name of that sum."""
    attention = [i for i, words in enumerate(layers) if words[0] == 'SDPA'][count - 1]
    end = next(i for i in range(attention, len(layers)) if layers[i][0] == 'Split')
    kept = layers[:end]
    blobs = sum(int(words[3]) for words in kept)
    path.write_text(f'7767517\n{len(kept)} {blobs}\n' + '\n'.join(' '.join(words) for words in kept) + '\n')
    return kept, layers[end][4]


def hidden_size(layers):
    return next(int(params_of(words)['9']) for words in layers if words[0] == 'Gemm')


def rope_size(layers):
    """Half of the values that RotaryEmbed turns in a row."""
    slices = [words[-2].split(',') for words in layers if words[0] == 'Slice']
    if slices:
        return int(slices[0][-1]) // 2
    return next(int(params_of(words)['0']) for words in layers if words[0] == 'Reshape') // 2


def inputs_of(layers, x, first):
    """in0: rows of embeddings, in1: mask, in2 and in3: cosines and sines, for the positions from `first` on."""
    rows, half = len(x), rope_size(layers)
    positions = np.arange(first, first + rows)
    angles = positions[:, None] * 10000.0 ** -(np.arange(half) / half)
    mask = np.where(np.arange(first + rows) <= positions[:, None], 0, -1e38)
    return {'in0': x, 'in1': mask.astype(np.float32), 'in2': np.cos(angles).astype(np.float32), 'in3': np.sin(angles).astype(np.float32)}


def embeddings(layers, rows):
    return np.random.default_rng(3).uniform(-1, 1, (rows, hidden_size(layers))).astype(np.float32)


def run_steps(model, layers, out, steps):
    """Rows of `out` for one run over all positions, and for `steps` of so many each; and the caches after both."""
    x = embeddings(layers, sum(steps))
    caches = [name for words in layers if words[0] == 'SDPA' for name in outputs_of(words)[1:]]
    whole = run_engine(*model, inputs_of(layers, x, 0), [out] + caches, '--threads', '2')
    rows, cache, at = [], {}, 0
    for step in steps:
        got = run_engine(*model, {**inputs_of(layers, x[at:at + step], at), **cache}, [out] + caches, '--threads', '2')
        rows.append(got.pop(out))
        cache, at = {name[len('out_'):]: value for name, value in got.items()}, at + step
    return whole.pop(out), np.concatenate(rows), whole, {f'out_{name}': value for name, value in cache.items()}


def run_ncnn(model, inputs, out):
    net = ncnn.Net()
    for name in ('use_fp16_storage', 'use_fp16_packed', 'use_fp16_arithmetic', 'use_bf16_storage'):
        setattr(net.opt, name, False)
    assert net.load_param(str(model[0])) == 0 and net.load_model(str(model[1])) == 0
    ex = net.create_extractor()
    for name, x in inputs.items():
        ex.input(name, ncnn.Mat(x).clone())
    status, blob = ex.extract(out)
    assert status == 0
    return np.array(blob)


def check_steps(whole, steps, whole_cache, cache):
    assert whole.shape == steps.shape and difference(steps, whole) <= LIMIT
    assert whole_cache and whole_cache.keys() == cache.keys()
    for name, value in whole_cache.items():
        assert difference(cache[name], value) <= LIMIT, name


@pytest.mark.parametrize('graph', GRAPHS + ['vision_transformer'])
def test_graph_is_known(data, graph, tmp_path):
    """Every layer and parameter; only the weights are missing."""
    path = path_of(graph) if graph in GRAPHS else data / 'models/ncnn-bench/vision_transformer.param'
    done = run_program('enginerun', path, tmp_path / 'none.bin', '--show-io')
    assert done.returncode == 1 and 'none.bin' in last_line(done.stderr), done.stderr
    assert 'no layer' not in done.stderr and 'not known' not in done.stderr, done.stderr


@pytest.mark.parametrize('graph', DECODERS)
def test_first_layers_step_by_step(data, graph, tmp_path):
    model = tmp_path / 'm.param', tmp_path / 'm.bin'
    layers, out = write_first_layers(model[0], layers_of(path_of(graph)), 2)
    write_weights(model[1], layers)
    whole, *others = run_steps(model, layers, out, (5, 1, 1))
    check_steps(whole, *others)
    assert difference(whole, run_ncnn(model, inputs_of(layers, embeddings(layers, 7), 0), out)) <= LIMIT


@pytest.mark.parametrize('graph', [g for g in GRAPHS if DATA and 4 * sum(n for _, n in weight_counts(layers_of(path_of(g)))) <= MOST_BYTES])
def test_whole_graph_runs(data, graph, tmp_path):
    if not os.environ.get('QUOLL_LLM'):
        pytest.skip('QUOLL_LLM is not set: needs up to 6 GB of memory and some minutes')
    layers, model = layers_of(path_of(graph)), (path_of(graph), tmp_path / 'm.bin')
    write_weights(model[1], layers)
    if graph in DECODERS:
        check_steps(*run_steps(model, layers, 'out0', (3, 1)))
    else:
        x = embeddings(layers, 2)
        both = run_engine(*model, {'in0': x}, ['out0'])['out0']
        assert both.shape == (2, int(params_of(layers[-1])['8']))
        assert difference(run_engine(*model, {'in0': x[1:]}, ['out0'])['out0'], both[1:]) <= LIMIT
