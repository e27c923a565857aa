"""--gpu of the programs: the answers of the CPU, on a Vulkan device; without one the tests are skipped."""
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
