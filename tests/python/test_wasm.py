"""The WebAssembly build under node, against what other engines have answered."""
import json
import shutil
import subprocess

import numpy as np
import pytest

from conftest import ROOT
from engine import difference, run_engine
from graphs import BUNDLED, Graph, random_weights

MODULE = ROOT / 'build-wasm' / 'web' / 'quoll.mjs'
RUN = r'''
import { readFileSync, writeFileSync } from "node:fs";
const { module, param, bin, input, sizes, output } = JSON.parse(process.argv[2]);
const engine = await (await import(module)).quoll();
const net = engine.load({ param: readFileSync(param), bin: readFileSync(bin) });
const bytes = readFileSync(input);
net.input(net.inputs[0], { sizes, values: new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4) });
const result = net.run()[net.outputs[0]];
writeFileSync(output, new Uint8Array(result.values.buffer, result.values.byteOffset, result.values.byteLength));
console.log(JSON.stringify({ sizes: result.sizes, inputs: net.inputs, said: net.inputSizes, layers: net.times.length }));
try { net.input("nothing", { sizes: [1], values: [1] }); } catch (e) { console.error(e.message); }
net.free();
try { engine.load({ param: "7767517\n1 1\nNothing x 0 1 y\n" }); } catch (e) { console.error(e.message); }
'''


def run(model, x, folder):
    if not MODULE.is_file() or not shutil.which('node'):
        pytest.skip('no WebAssembly build (cmake --preset wasm), or no node')
    (folder / 'run.mjs').write_text(RUN)
    x.astype(np.float32).tofile(folder / 'in')
    files = {'module': str(MODULE), 'param': f'{model}.param', 'bin': f'{model}.bin', 'input': str(folder / 'in'), 'sizes': x.shape, 'output': str(folder / 'out')}
    done = subprocess.run(['node', folder / 'run.mjs', json.dumps(files)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    return np.fromfile(folder / 'out', np.float32).reshape(said['sizes']), said, done.stderr


def check_errors(stderr, name):
    assert f"there is no input 'nothing'; inputs: {name}" in stderr
    assert '[Nothing x] there is no layer of this type' in stderr


def test_digits(tmp_path):
    reference = np.load(ROOT / 'models' / 'digits' / 'digits_reference.npz')
    for i in range(3):
        got, said, errors = run(ROOT / 'models' / 'digits' / 'digits', reference['data'][i], tmp_path)
        assert said['said'] == {'data': [1, 8, 8]} and said['layers'] > 5
        np.testing.assert_allclose(got, reference['prob_onnxruntime'][i], rtol=1e-4, atol=1e-6)
        check_errors(errors, 'data')


def test_fastestdet(data, tmp_path):
    reference = np.load(data / 'models' / 'fastestdet' / 'FastestDet.npz')
    got, said, errors = run(data / 'models' / 'fastestdet' / 'FastestDet', reference['in:input.1'], tmp_path)
    want = reference['out:758']
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3 * np.abs(want).max())
    check_errors(errors, 'input.1')


@pytest.mark.parametrize('param', BUNDLED, ids=lambda p: p.stem)
def test_bundled_networks(param, tmp_path):
    """With random weights, beside enginerun."""
    if not MODULE.is_file() or not shutil.which('node'):
        pytest.skip('no WebAssembly build (cmake --preset wasm), or no node')
    binary, graph = random_weights(param, tmp_path), Graph(param)
    saved = tmp_path / param.name
    model = (saved if saved.exists() else shutil.copy(param, saved)).with_suffix('')
    (name, x), = graph.random_inputs().items()
    got, _, _ = run(model, x, tmp_path)
    first = graph.outputs[0]
    assert difference(got, run_engine(saved, binary, {name: x}, [first])[first]) < 1e-3
