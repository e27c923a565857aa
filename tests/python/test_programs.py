"""What holds for every program: --help and --version, exit codes, bad input, output that cannot be written, terminals."""
import json
import os
import pathlib
import pty
import re
import resource
import shutil
import subprocess

import numpy as np
import pytest

from caffe_net import CaffeNet
from conftest import BIN, ROOT, last_line, run_program

pytestmark = pytest.mark.skipif('ENGINERUN_PREFIX' in os.environ, reason='the same on every machine')

PROGRAMS = sorted(p.name for p in BIN.iterdir() if p.is_file() and os.access(p, os.X_OK)) if BIN.exists() else []
# Programs that work without arguments.
NO_ARGUMENTS = {'bench_conv', 'bench_kernel', 'bench_peak', 'benchmark', 'custom_layer', 'embedded'}
DIGITS = ROOT / 'models' / 'digits'

# 'in:' stands before files that are read, 'out:' before those that are written.
COMMANDS = {
    'benchmark': '1 1 param=in:m.param bin=in:m.bin --warmup 0 --json out:o.json',
    'caffe2engine': 'in:m.prototxt in:m.caffemodel out:o.param out:o.bin',
    'enginedeploy': 'in:quoll.yml out:o.tar.gz --no-benchmark --no-validate',
    'engineinfo': 'in:m.param in:m.bin --json out:o.json --svg out:o.svg --html out:o.html',
    'enginemerge': 'in:m.param in:m.bin in:d.param in:d.bin out:o.param out:o.bin',
    'engineoptimize': 'in:m.param in:m.bin out:o.param out:o.bin fp16',
    'enginequantize': 'in:m.param in:m.bin out:o.param out:o.bin --data in:x.npy --table out:o.table',
    'enginerun': 'in:m.param in:m.bin -i data=in:x.npy -o conv=out:conv.npy -o prob=out:prob.npy',
    'enginevalidate': 'in:m.param in:m.bin -i data=in:x.npy --against reference --layers --log out:o.csv',
    'ncnn2int8': 'in:m.param in:m.bin out:o.param out:o.bin in:m.table',
    'ncnn2table': 'in:m.param in:m.bin in:list.txt out:o.table',
    'ncnn2mem': 'in:m.param in:m.bin out:o.id.h out:o.mem.h --param-bin out:o.param.bin',
    'onnx2engine': 'in:d.onnx out:o.param out:o.bin --report out:o.txt',
    'operator_docs': str(ROOT / 'src/layer') + ' out:o.md',
}
CASES = [name for name in COMMANDS if name in PROGRAMS]


def files_of(name, kind):
    return re.findall(rf'{kind}:(\S+)', COMMANDS[name])


INPUTS = [(name, file) for name in CASES for file in files_of(name, 'in')]
OUTPUTS = [(name, file) for name in CASES for file in files_of(name, 'out')]


@pytest.fixture(scope='session')
def good(tmp_path_factory):
    folder = tmp_path_factory.mktemp('good')
    rng = np.random.default_rng(4)
    net = CaffeNet(rng, {'data': rng.uniform(-1, 1, (1, 3, 8, 8))})
    net.relu(net.conv('data', 'conv', 8, 3))
    net.fc('conv', 'fc', 40)
    net.add('Softmax', 'fc', 'prob')
    (folder / 'm.prototxt').write_text(net.prototxt())
    (folder / 'm.caffemodel').write_bytes(net.caffemodel())
    np.save(folder / 'x.npy', net.inputs['data'][0].astype(np.float32))
    (folder / 'm.param').write_text(
        '7767517\n4 4\nInput in 0 1 data 0=8 1=8 2=3\nConvolution conv 1 1 data conv 0=8 1=3 5=1 6=216\n'
        'InnerProduct fc 1 1 conv fc 0=40 1=1 2=11520\nSoftmax prob 1 1 fc prob\n')
    parts = [[0], rng.normal(size=216), rng.normal(size=8), [0], rng.normal(size=11520), rng.normal(size=40)]
    np.concatenate(parts).astype(np.float32).tofile(folder / 'm.bin')
    for source, name in ('digits.param', 'd.param'), ('digits.bin', 'd.bin'), ('digits.onnx', 'd.onnx'), \
            ('sheet.png', 'sheet.png'), ('sheet_labels.txt', 'labels.txt'):
        shutil.copy(DIGITS / source, folder / name)
    (folder / 'list.txt').write_text('x.npy\n')
    (folder / 'm.table').write_text('conv_param_0' + ' 30' * 8 + '\nfc_param_0' + ' 40' * 40 + '\nconv 100\nfc 20\n')
    (folder / 'quoll.yml').write_text('''library_name: kit
models:
  net:
    platform: ncnn
    model_file_path: m.param
    weight_file_path: m.bin
    subgraphs:
      - input_tensors: data
        input_shapes: 1,8,8,3
        output_tensors: prob
''')
    return folder


@pytest.fixture
def here(good, tmp_path):
    shutil.copytree(good, tmp_path, dirs_exist_ok=True)
    return tmp_path


def run(name, folder, changed={}, **more):
    """Runs the command; `changed` has other paths for files of it."""
    words = [re.sub(r'(in|out):(\S+)', lambda m: str(changed.get(m[2], folder / m[2])), word) for word in COMMANDS[name].split()]
    return subprocess.run([BIN / name, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120, cwd=folder,
                          **more)


def state(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob('*') if p.is_file()}


def check_refused(name, done, folder, before):
    assert done.returncode == 1, f'exit code {done.returncode}\n{done.stdout}{done.stderr}'
    assert last_line(done.stderr).startswith(f'{name}: '), done.stderr
    assert len(last_line(done.stderr)) > len(name) + 10
    assert 'terminate called' not in done.stderr and 'std::' not in done.stderr
    after = state(folder)
    assert after == before, f'changed or left: {sorted(set(after.items()) ^ set(before.items()), key=str)}'[:300]


# ---------------------------------------------------------------- command lines

@pytest.mark.parametrize('name', PROGRAMS)
def test_help_and_version(name):
    done = run_program(name, '--help')
    assert done.returncode == 0 and done.stderr == '' and name in done.stdout
    done = run_program(name, '--version')
    assert done.returncode == 0 and done.stderr == '' and re.fullmatch(r'quoll \d+\.\d+\.\d+\n', done.stdout)


@pytest.mark.parametrize('name', PROGRAMS)
def test_wrong_command_lines(name):
    done = run_program(name, '--no-such-option')
    assert done.returncode == 2 and done.stdout == '' and name in done.stderr
    if name not in NO_ARGUMENTS:
        done = run_program(name)
        assert done.returncode == 2 and done.stdout == '' and name in done.stderr


@pytest.mark.parametrize('name', PROGRAMS)
def test_stdout_that_is_full(name):
    if name in ('classify', 'custom_layer', 'detect_faces', 'detector', 'embedded', 'encrypted', 'pose', 'segment'):
        pytest.skip('written as an application would be')
    with open('/dev/full', 'w') as full:
        done = subprocess.run([BIN / name, '--help'], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and 'stdout cannot be written' in done.stderr


@pytest.mark.parametrize('name', sorted(set(COMMANDS) - {'operator_docs'}))
def test_every_tool_has_a_page(name):
    """With each option of --help, and the exit codes."""
    page = ROOT / 'docs/tools' / f'{name}.md'
    text = page.read_text()
    assert text.startswith(f'# {name}\n') and re.search('exit code', text, re.I)
    if name in PROGRAMS:
        shared = (ROOT / 'docs/tools/enginerun.md').read_text() if 'run options' in text else ''
        options = re.findall(r'^ +(?:-\w,)?(--[a-z][\w-]*)', run_program(name, '--help').stdout, re.M)
        assert options
        assert not [option for option in options if option not in text + shared and option not in ('--help', '--version')]


@pytest.mark.parametrize('name', sorted(set(COMMANDS) & set(PROGRAMS)))
def test_help_says_defaults(name):
    """Of each option that takes a number or one of some words."""
    text = re.sub(r'\n {20,}', ' ', run_program(name, '--help').stdout)
    options = [line for line in text.splitlines() if re.match(r' +(-\w,)?--', line)]
    silent = [line for line in options if re.search(r' (INT|UINT|FLOAT|TEXT:\{)', line) and '=' not in line and 'default' not in line
              and '--against' not in line]  # one of several, of which one must be given
    assert not silent


# ---------------------------------------------------------------- files

@pytest.mark.parametrize('name', CASES)
def test_good_files(name, here):
    before = state(here)
    done = run(name, here)
    assert done.returncode == 0, done.stdout + done.stderr
    after = state(here)
    assert set(after) - set(before) == set(files_of(name, 'out'))
    assert all(after[file] for file in files_of(name, 'out'))
    assert all(after[file] == before[file] for file in before)
    assert '\r' not in done.stderr and '\033' not in done.stdout + done.stderr


def damaged(path, how):
    """Spoils a file."""
    data = path.read_bytes()
    if how == 'missing':
        path.unlink()
    elif how == 'folder':
        path.unlink()
        path.mkdir()
    elif how == 'truncated':
        path.write_bytes(data[:len(data) // 2])
    elif how == 'empty':
        path.write_bytes(b'')
    elif how == 'another kind':
        path.write_bytes(bytes(np.random.default_rng(8).integers(0, 256, 300, dtype=np.uint8)))


@pytest.mark.parametrize('how', ['missing', 'folder', 'truncated', 'empty', 'another kind'])
@pytest.mark.parametrize('name, file', INPUTS)
def test_bad_input(name, file, how, here):
    if how == 'another kind' and file.endswith('.bin'):
        pytest.skip('weights are only numbers: any 300 bytes are too few')
    damaged(here / file, how)
    before = state(here)
    done = run(name, here)
    if name == 'benchmark' and done.returncode == 1:  # the report has the failure; it is whole
        assert 'error' in json.loads((here / 'o.json').read_text())['rows'][0]
        (here / 'o.json').unlink()
    check_refused(name, done, here, before)
    if how in ('missing', 'folder') and name != 'enginedeploy':
        assert file in done.stderr


@pytest.mark.parametrize('how', ['no folder', 'a folder', 'an input', 'full device', 'full disk'])
@pytest.mark.parametrize('name, file', OUTPUTS)
def test_bad_output(name, file, how, here):
    """Nothing is written, of the other outputs too; files that were there stay as they were."""
    for other in files_of(name, 'out'):
        (here / other).write_text('as it was')
    (here / 'folder').mkdir()
    limit = {}
    if how == 'an input' and (not files_of(name, 'in') or name == 'benchmark'):
        pytest.skip('reads no files of its own')
    if how == 'full disk':  # of 64 bytes: every output is larger
        path = here / file
        limit = {'preexec_fn': lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))}
    else:
        path = {'no folder': here / 'none' / file, 'a folder': here / 'folder', 'full device': pathlib.Path('/dev/full'),
                'an input': here / (files_of(name, 'in') or [''])[0]}[how]
    before = state(here)
    done = run(name, here, {file: path}, **limit)
    check_refused(name, done, here, before)


def least_pages(works, low, high):
    """The least address space in pages of 4 KB, to within 256 KB, in which works(pages)."""
    while high - low > 64:
        middle = (low + high) // 2
        low, high = (low, middle) if works(middle) else (middle, high)
    return high


@pytest.mark.parametrize('name', sorted(set(CASES) - {'enginedeploy'}))  # which runs others, that may not start
def test_memory_that_ends(name, here):
    """In any address space in which it starts, a program does its work, or says why not and leaves nothing."""
    before = state(here)

    def limit(pages):
        return {'preexec_fn': lambda: resource.setrlimit(resource.RLIMIT_AS, (pages << 12, pages << 12))}

    def starts(pages):
        return subprocess.run([BIN / name, '--version'], capture_output=True, **limit(pages)).returncode == 0

    def works(pages):
        done = run(name, here, **limit(pages))
        if done.returncode == 0:
            for file in files_of(name, 'out'):
                (here / file).unlink()
        else:
            (here / 'o.json').unlink(missing_ok=True)  # the report of benchmark, which has the failure
            check_refused(name, done, here, before)
        return done.returncode == 0

    least = least_pages(starts, 1 << 9, 1 << 21) + 64
    enough = least_pages(works, least, 1 << 21)
    for part in range(8):
        works(least + (enough - least) * part // 8)


# ---------------------------------------------------------------- terminals

def on_terminal(name, *args, stream, env=None):
    """What the program writes to stdout (1) or stderr (2), if that is a terminal."""
    main, side = pty.openpty()
    pipes = {'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE, 'stdout' if stream == 1 else 'stderr': side}
    process = subprocess.Popen([BIN / name, *map(str, args)], stdin=subprocess.DEVNULL,
                               env={**os.environ, 'TERM': 'xterm', 'NO_COLOR': '', **(env or {})}, **pipes)
    os.close(side)
    text = b''
    while True:
        try:
            part = os.read(main, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        text += part
    os.close(main)
    process.communicate()
    assert process.returncode == 0
    return text.decode()


def test_progress(good):
    np.save(good / 'digit.npy', np.zeros((1, 8, 8), np.float32))
    args = [good / 'd.param', good / 'd.bin', '--reference', '--threads', 1, '-i', f'data={good}/digit.npy',
            '-o', f'prob={good}/digit_prob.npy', '--repeat']
    # Long enough for a bar on any machine: as often as takes about a second.
    median = float(re.search(r'median ([\d.]+)', run_program('enginerun', *args, 20).stdout)[1])
    args.append(max(10, int(1000 / max(median, 1e-3))))
    text = on_terminal('enginerun', *args, stream=2)
    assert re.search(r'run \[#* *\] +\d+%', text) and text.endswith('\r\033[K')
    assert on_terminal('enginerun', *args, stream=2, env={'TERM': 'dumb'}) == ''
    assert run_program('enginerun', *args).stderr == ''


def test_colour(good):
    args = [good / 'm.param', good / 'm.bin', '--against', 'reference']
    assert '\033[32mPASS\033[0m' in on_terminal('enginevalidate', *args, stream=1)
    assert '\033' not in on_terminal('enginevalidate', *args, stream=1, env={'NO_COLOR': '1'})
    assert '\033' not in on_terminal('enginevalidate', *args, stream=1, env={'TERM': 'dumb'})
    assert '\033' not in run_program('enginevalidate', *args).stdout


@pytest.mark.skipif('classify' not in PROGRAMS, reason='built without the examples')
@pytest.mark.parametrize('drawn', [False, True])
def test_sheet_of_many_small_cells(drawn, tmp_path):
    """A small file of many pixels, each a cell: the canvas for labels is not a hundred times a hundred as large."""
    from PIL import Image
    Image.new('RGB', (4, 20000)).save(tmp_path / 'sheet.png')
    out = ['--out', tmp_path / 'o.png'] if drawn else []

    def limit():
        resource.setrlimit(resource.RLIMIT_DATA, (700 << 20, 700 << 20))
    done = subprocess.run([BIN / 'classify', f'{DIGITS}/digits.param', f'{DIGITS}/digits.bin', tmp_path / 'sheet.png', '--grid', '1',
                           *out], capture_output=True, text=True, preexec_fn=limit)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) == 80000 and (tmp_path / 'o.png').exists() == drawn
