"""Installs the engines that compare.py measures against, from PyPI or from a folder of wheels."""
import csv
import io
import pathlib
import re
import subprocess
import sys
import zipfile

# Names of the packages; the engines' names are those of peer_worker.py.
PACKAGES = {'ncnn': 'ncnn', 'onnxruntime': 'onnxruntime', 'openvino': 'openvino', 'mnn': 'MNN'}
# Parts of OpenVINO's wheel that running ONNX models on a CPU never loads: half of its size.
OPENVINO_EXTRAS = re.compile(r'openvino/(libs/(libopenvino_(intel_[gn]pu|tensorflow|pytorch|paddle|gguf|jax)|cache\.json)'
                             r'|frontend/(pytorch|tensorflow|paddle|jax)/py_)')
PLATFORMS = ('manylinux_2_28_x86_64', 'manylinux_2_27_x86_64', 'manylinux_2_24_x86_64', 'manylinux_2_17_x86_64',
             'manylinux2014_x86_64')


def pip(*words):
    """Runs pip; returns the last line of its complaint, or ''."""
    done = subprocess.run([sys.executable, '-m', 'pip', '--disable-pip-version-check', *map(str, words)], capture_output=True,
                          text=True)
    lines = done.stderr.strip().splitlines() or ['it failed without a word']
    return lines[-1] if done.returncode else ''


def make_venv(folder):
    """A virtual environment that sees this Python's packages too, be it one itself; returns its python."""
    python = folder / 'bin' / 'python'
    if not python.exists():
        subprocess.run([sys.executable, '-m', 'venv', '--without-pip', str(folder)], check=True)
        site = subprocess.run([python, '-c', 'import site; print(site.getsitepackages()[0])'], capture_output=True, text=True,
                              check=True).stdout.strip()
        mine = [path for path in sys.path if path.endswith(('site-packages', 'dist-packages'))]
        (pathlib.Path(site) / 'parent.pth').write_text('\n'.join(mine) + '\n')
    return python


def importable(python, peer):
    code = f'import importlib.util as u, sys; sys.exit(u.find_spec({PACKAGES[peer]!r}) is None)'
    return subprocess.run([python, '-c', code]).returncode == 0


def install(folder, peers, wheels):
    """(python of the environment, {peer: why it is not to be had}); wheels: a folder, or None for PyPI."""
    python = make_venv(folder)
    missing = {}
    for peer in peers:
        if importable(python, peer):
            continue
        source = ['--no-index', '--no-deps', '--find-links', wheels] if wheels else []
        why = pip('--python', python, 'install', '-q', *source, PACKAGES[peer])
        if why or not importable(python, peer):
            missing[peer] = why or 'installed, but it cannot be imported'
    if not wheels and subprocess.run([python, '-c', 'import matplotlib'], stderr=subprocess.DEVNULL).returncode:
        pip('--python', python, 'install', '-q', 'matplotlib')  # without it there is no plot, which is said
    return str(python), missing


def slim_wheel(path, drop):
    """Rewrites a wheel without the files that `drop` matches."""
    smaller = path.with_suffix('.part')
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(smaller, 'w', zipfile.ZIP_DEFLATED, compresslevel=9) as new:
        for item in old.infolist():
            if drop.match(item.filename):
                continue
            data = old.read(item)
            if item.filename.endswith('.dist-info/RECORD'):
                rows = [row for row in csv.reader(io.StringIO(data.decode())) if row and not drop.match(row[0])]
                text = io.StringIO()
                csv.writer(text, lineterminator='\n').writerows(rows)
                data = text.getvalue()
            new.writestr(item, data)
    smaller.replace(path)


def fetch(folder, peers, python_version):
    """Downloads wheels of the peers for another Linux x86-64 machine; returns {peer: why not}."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = {}
    for peer in peers:
        platforms = [word for p in PLATFORMS for word in ('--platform', p)]
        why = pip('download', '-q', '--no-deps', '--only-binary=:all:', '--python-version', python_version, *platforms, '-d',
                  folder, PACKAGES[peer])
        if why:
            missing[peer] = why
    for wheel in folder.glob('openvino-*.whl'):
        slim_wheel(wheel, OPENVINO_EXTRAS)
    for wheel in sorted(folder.glob('*.whl')):
        print(f'{wheel.stat().st_size / 2**20:7.1f} MiB  {wheel.name}')
    return missing

