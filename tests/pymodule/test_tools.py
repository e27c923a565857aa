"""The programs of the package, and models that they convert."""
import subprocess
import sys

import numpy as np
import pytest

import quoll

onnx = pytest.importorskip('onnx')


@pytest.fixture
def affine(tmp_path):
    """An ONNX model: y = relu(x * w) for x of (batch, 3, 4, 5), and i = x > 0 as int64."""
    from onnx import TensorProto, helper, numpy_helper
    w = np.random.default_rng(0).uniform(-1, 1, (3, 1, 1)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node('Mul', ['x', 'w'], ['p']), helper.make_node('Relu', ['p'], ['y']),
         helper.make_node('Greater', ['x', 'zero'], ['g']), helper.make_node('Cast', ['g'], ['i'], to=TensorProto.INT64)], 'g',
        [helper.make_tensor_value_info('x', TensorProto.FLOAT, ['n', 3, 4, 5])],
        [helper.make_tensor_value_info('y', TensorProto.FLOAT, ['n', 3, 4, 5]),
         helper.make_tensor_value_info('i', TensorProto.INT64, ['n', 3, 4, 5])],
        [numpy_helper.from_array(w, 'w'), numpy_helper.from_array(np.float32(0), 'zero')])
    path = tmp_path / 'affine.onnx'
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8), path)
    return path, w


@pytest.mark.parametrize('batch', [1, 3])
def test_onnx(affine, batch):
    path, w = affine
    x = np.random.default_rng(1).uniform(-1, 1, (batch, 3, 4, 5)).astype(np.float32)
    results = quoll.run(path, {'x': x})
    np.testing.assert_allclose(results['y'], np.maximum(x * w, 0), rtol=1e-6)
    np.testing.assert_array_equal(results['i'], x > 0)
    assert results['i'].dtype == np.int64
    with pytest.raises(quoll.Error, match='expected an array'):
        quoll.run(path, {'x': x[:, :2]})
    with pytest.raises(quoll.Error, match='axes'):
        quoll.run(path, {'x': x[0]})


def test_convert_writes_beside_the_file_and_says_what_stands_in_the_way(affine, tmp_path):
    param, weights = quoll.convert(affine[0])
    assert param == str(tmp_path / 'affine.param') and quoll.load(param, weights).input_names() == ['x']
    (tmp_path / 'bad.onnx').write_bytes(b'no model')
    with pytest.raises(quoll.Error, match='bad.onnx'):
        quoll.convert(tmp_path / 'bad.onnx')


def test_quantize(tmp_path):
    from conftest import ROOT
    digits = ROOT / 'models/digits'
    if 'enginequantize' not in quoll.tools():
        pytest.skip('built without enginequantize')
    rng = np.random.default_rng(0)
    np.save(tmp_path / 'data.npy', rng.uniform(0, 1, (64, 1, 8, 8)).astype(np.float32))
    out = tmp_path / 'int8.param', tmp_path / 'int8.bin'
    quoll.quantize(digits / 'digits.param', digits / 'digits.bin', *out, tmp_path / 'data.npy')
    items = rng.uniform(0, 1, (32, 1, 8, 8)).astype(np.float32)
    small, plain = quoll.load(*out).predict(items), quoll.load(digits / 'digits.param').predict(items)
    assert (small.argmax(1) == plain.argmax(1)).mean() > 0.8 and not np.array_equal(small, plain)
    with pytest.raises(quoll.Error, match='none.npy'):
        quoll.quantize(digits / 'digits.param', digits / 'digits.bin', *out, tmp_path / 'none.npy')


def test_command_line(affine):
    def run(*words):
        return subprocess.run([sys.executable, '-m', 'quoll', *map(str, words)], capture_output=True, text=True)

    done = run('onnx2engine', affine[0], affine[0].with_suffix('.param'), affine[0].with_suffix('.bin'))
    assert done.returncode == 0, done.stderr
    done = run('enginerun', affine[0].with_suffix('.param'), affine[0].with_suffix('.bin'), '--show-io')
    assert done.returncode == 0 and 'x' in done.stdout
    done = run('nonesuch')
    assert done.returncode == 2 and 'onnx2engine' in done.stderr
    assert run('--version').stdout.strip() == quoll.__version__


def test_readme_example(monkeypatch):
    """The Python block of README.md, as it stands."""
    import re
    from conftest import ROOT
    pytest.importorskip('PIL')
    block, = re.findall(r'```python\n(.*?)```', (ROOT / 'README.md').read_text(), re.S)
    monkeypatch.chdir(ROOT)
    names = {}
    exec(compile(block, 'README.md', 'exec'), names)
    assert names['scores'].argmax() == int((ROOT / 'models/digits/sheet_labels.txt').read_text().split()[0])


def getting_started(folder, monkeypatch, *replaced):
    """What the Python block of docs/getting-started.md leaves, run in a folder that has its files."""
    import re
    from conftest import ROOT
    block, = re.findall(r'```python\n(.*?)```', (ROOT / 'docs/getting-started.md').read_text(), re.S)
    for old, new in replaced:
        assert old in block
        block = block.replace(old, new)
    monkeypatch.chdir(folder)
    names = {}
    exec(compile(block, 'getting-started.md', 'exec'), names)
    assert quoll.imread(folder / 'boxes.png').shape == names['photo'].shape
    return sorted(int(names['kinds'][i]) for i in names['kept'])


def test_getting_started_page(tmp_path, monkeypatch):
    """As it stands: every digit of the page, and nothing else."""
    import shutil
    from conftest import ROOT
    pytest.importorskip('PIL')
    for path in (ROOT / 'models/digit_detector').iterdir():
        shutil.copy(path, tmp_path)
    kinds = getting_started(tmp_path, monkeypatch)
    assert kinds == list(map(int, (tmp_path / 'page_digits.txt').read_text().split()))


def test_getting_started_page_with_fastestdet(tmp_path, monkeypatch):
    import os
    import shutil
    pytest.importorskip('PIL')
    if not os.environ.get('QUOLL_DATA'):
        pytest.skip('QUOLL_DATA is not set')
    data = os.environ['QUOLL_DATA']
    for path in (f'{data}/models/fastestdet/FastestDet.param', f'{data}/models/fastestdet/FastestDet.bin', f'{data}/images/street.jpg'):
        shutil.copy(path, tmp_path)
    kinds = getting_started(tmp_path, monkeypatch, ('digit_detector.', 'FastestDet.'), ('page.png', 'street.jpg'))
    assert set(kinds) & {0, 2, 5, 7}  # people, cars, buses, trucks


def test_type_stubs():
    import ast
    import pathlib
    text = (pathlib.Path(quoll.__file__).parent / '_core.pyi').read_text()
    names = {node.name for node in ast.parse(text).body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    assert {'Mat', 'Net', 'Extractor', 'Option', 'resize_bilinear'} <= names
    assert '::' not in text, 'a type of C++ that is not bound'
    for kind in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)):
        methods = [node for node in kind.body if isinstance(node, ast.FunctionDef)]
        said = [part for method in methods for part in [method.returns, *(arg.annotation for arg in method.args.args)] if part]
        modules = {node.value.id for part in said for node in ast.walk(part) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)}
        assert not modules & {method.name for method in methods}, f'in {kind.name} the name is that of a method'
