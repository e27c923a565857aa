"""--gpu of the programs: the answers of the CPU, on a Vulkan device; without one the tests are skipped."""
import json
import re

import pytest

from conftest import BIN, DATA, ROOT, last_line, run_program

DIGITS = ROOT / 'models' / 'digits'
NET = [DIGITS / 'digits.param', DIGITS / 'digits.bin']


@pytest.fixture(scope='module', autouse=True)
def device():
    if not (BIN / 'bench_gpu').exists() or run_program('bench_gpu', '--list').returncode:
        pytest.skip('no Vulkan device')


def test_classify():
    done = run_program('classify', *NET, DIGITS / 'sheet.png', '--grid', 32, '--labels', DIGITS / 'sheet_labels.txt', '--gpu', 0)
    assert done.returncode == 0 and '40 of 40 cells right' in done.stdout, done.stderr


def test_enginevalidate():
    done = run_program('enginevalidate', *NET, '--against', 'reference', '--gpu', 0)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not DATA, reason='QUOLL_DATA is not set')
def test_detect_faces():
    folder = DATA / 'models' / 'slim-320'
    photo = sorted((DATA / 'images').glob('*.jpg'))[0]
    param = next(folder.glob('*.param'))
    runs = [run_program('detect_faces', param, param.with_suffix('.bin'), photo, *options) for options in ((), ('--gpu', 0))]
    assert all(run.returncode == 0 for run in runs), runs[1].stderr
    # Scores in two digits less than are printed.
    assert len({re.sub(r'(\.\d\d)\d\d', r'\1', run.stdout) for run in runs}) == 1


@pytest.mark.parametrize('program, files', [('classify', [*NET, DIGITS / 'sheet.png']), ('enginerun', NET)])
def test_no_such_device(program, files):
    done = run_program(program, *files, '--gpu', 60)
    assert done.returncode != 0 and '--gpu 60: the last Vulkan device here is' in last_line(done.stderr)


def test_tuned_file(tmp_path):
    cache = tmp_path / 'cache'
    command = ['benchmark', 1, 1, 0, 0, 0, f'param={NET[0]}', f'bin={NET[1]}', '--tune-gpu', cache]
    first = run_program(*command)
    assert first.returncode == 0, first.stderr
    tuned = cache.read_bytes()
    assert tuned.startswith(b'quollpc2')
    again = run_program(*command)
    assert again.returncode == 0 and 'is not used' not in again.stderr
    # The number of tuned bytes, and the rows at the end: what was tuned is not timed again.
    rows = int.from_bytes(tuned[80:88], 'little')
    assert rows > 0 and cache.read_bytes()[-rows:] == tuned[-rows:]
    cache.write_bytes(tuned[:-1] + bytes([tuned[-1] ^ 1]))
    damaged = run_program(*command)
    assert damaged.returncode == 0 and f'{cache} is not used: it is damaged' in damaged.stderr
    assert cache.read_bytes().startswith(b'quollpc2')
    without = run_program('benchmark', 1, 1, f'param={NET[0]}', '--tune-gpu', cache)
    assert without.returncode == 2 and 'needs --gpu N' in without.stderr


# SPP has no form for devices: two regions with a layer of the CPU in between.
TWO_REGIONS = '''7767517
6 6
Input in 0 1 in 0=24 1=24 2=8
Convolution conv 1 1 in a 0=32 1=3 4=1 5=1 6=2304
ReLU relu 1 1 a b
SPP spp 1 1 b c 0=0 1=3
InnerProduct fc 1 1 c d 0=256 1=1 2=172032
Softmax prob 1 1 d out 0=0
'''


@pytest.fixture(scope='module')
def two_regions(tmp_path_factory):
    path = tmp_path_factory.mktemp('profile') / 'net.param'
    path.write_text(TWO_REGIONS)
    return path


def test_profile(two_regions, tmp_path):
    """Each layer where it runs, dispatch by dispatch on the device, with the copies in between."""
    report = tmp_path / 'r.json'
    done = run_program('benchmark', 3, 1, f'param={two_regions}', '--gpu', 0, '--report', '--json', report)
    assert done.returncode == 0, done.stderr
    profile = json.loads(report.read_text())['rows'][0]['profile']
    layers = profile['layers']
    assert [(layer['type'], layer['on']) for layer in layers] == [
        ('(upload)', 'between'), ('Convolution', 'vulkan'), ('(wait)', 'between'), ('(download)', 'between'), ('SPP', 'cpu'),
        ('(upload)', 'between'), ('InnerProduct', 'vulkan'), ('Softmax', 'vulkan'), ('(wait)', 'between'), ('(download)', 'between')]
    assert layers[1]['macs'] == 32 * 8 * 9 * 24 * 24
    assert all(len(layer['ms']) == len(profile['runs_ms']) == 3 for layer in layers)
    for layer in layers:
        dispatches = layer['dispatches']
        assert all(re.fullmatch(r'\d+x\d+x\d+', d['groups']) and d['shader'] and min(d['ms']) >= 0 for d in dispatches)
        if layer['on'] == 'vulkan':
            assert sum(d['ms'][0] for d in dispatches) == pytest.approx(layer['ms'][0])
            # The groups of fc make the softmax, too.
            assert (layer['ms'][0] > 0) == (layer['name'] != 'prob')
    for one, after in zip(layers, layers[1:]):
        assert one['start_ms'][0] + one['ms'][0] == pytest.approx(after['start_ms'][0])
    on_device = [sum(layer['ms'][i] for layer in layers if layer['on'] != 'cpu') for i in range(3)]
    assert all(part <= run for part, run in zip(on_device, profile['runs_ms']))
    assert '9. Dispatches by Run Order' in done.stdout
    assert [d['shader'] for layer in layers if layer['type'] == '(download)' for d in layer['dispatches']] == ['download']


def test_profile_files(two_regions, tmp_path):
    trace, page = tmp_path / 'p.json', tmp_path / 'p.html'
    done = run_program('benchmark', 2, 1, 0, 0, f'param={two_regions}', '--profile', trace)  # ncnn's arguments
    assert done.returncode == 0, done.stderr
    events = [event for event in json.loads(trace.read_text())['traceEvents'] if event['ph'] == 'X']
    assert {event['cat'] for event in events if event['tid'] == 2} == {'Convolution', 'InnerProduct', 'Softmax'}
    assert all(re.match(r'[\d.]+ ms, \d+x\d+x\d+ \w+$', text) for event in events for text in event['args']['dispatches'])
    assert run_program('benchmark', 2, 1, f'param={two_regions}', '--gpu', 0, '--profile', page).returncode == 0
    (shown,) = json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', page.read_text(), re.S)[1])
    assert {layer['on'] for layer in shown['profile']['layers']} == {'cpu', 'vulkan', 'between'}
