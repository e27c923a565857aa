"""Converts ONNX models with onnx2engine and runs them with enginerun."""
import os
import pathlib
import re
import subprocess
import sys
import urllib.parse

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get('QUOLL_BIN', ROOT / 'build' / 'bin'))

sys.path.insert(0, str(ROOT / 'tests'))
import device_server  # noqa: E402
from device_server import GPU  # noqa: E402

try:
    import exact_session  # noqa: E402, F401
except ImportError:  # without ONNX Runtime
    pass


class Failure(Exception):
    """A program ended with an error; the message is the last of what it said."""


# onnx2engine --check runs the first python3 on the path: this one, which has the packages.
WITH_PYTHON = dict(os.environ, PATH=os.path.dirname(sys.executable) + os.pathsep + os.environ['PATH'])


def run_program(arguments, timeout=300):
    if pathlib.Path(arguments[0]).name == device_server.PROGRAM:
        done = device_server.run(*arguments, timeout=timeout)
    else:
        done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, errors='replace',
                              timeout=timeout, env=WITH_PYTHON)
    if done.returncode:
        raise Failure(f'{pathlib.Path(arguments[0]).name}: exit code {done.returncode}: '
                      + done.stderr.strip()[-600:])
    return done.stdout


def has_gpu():
    """Is there a Vulkan device, and the programs built with it?"""
    try:
        run_program([BIN / 'bench_gpu', '--list'])
    except (Failure, FileNotFoundError):
        return False
    return True


def convert(model, folder, *options):
    """Writes m.param and m.bin into `folder` and returns their paths."""
    param, weights = pathlib.Path(folder) / 'm.param', pathlib.Path(folder) / 'm.bin'
    run_program([BIN / 'onnx2engine', model, param, weights, *options])
    return param, weights


def strings_of(net):
    """The table of strings that each Input and Output of strings has, by the name of its blob."""
    tables = {}
    if pathlib.Path(net[0]).suffix != '.param':
        return tables
    for line in pathlib.Path(net[0]).read_text().split('\n')[2:]:
        words = line.split()
        table = re.search(' 26="(.*?)"', line)
        if table and words[0] in ('Input', 'Output'):
            texts = [urllib.parse.unquote(text) for text in table[1].split(',')[:-1]]
            tables[words[4] if words[0] == 'Input' else words[5]] = texts
    return tables


def places(array, table):
    """Strings as the numbers that stand for them."""
    at = {text: i for i, text in enumerate(table)}
    return np.array([at.get(str(text), -1) for text in array.ravel()], np.int64).reshape(array.shape)


def run(net, inputs, outputs, folder, *options, program=None):
    """Outputs (names) as arrays, for inputs as a dict of arrays; strings are strings."""
    if program:
        arguments = [*program, *net, *options]
    elif GPU and '--gpu' not in options:
        arguments = [BIN / 'tests' / device_server.PROGRAM, *net, *options, '--gpu', GPU]
    else:
        arguments = [BIN / 'enginerun', *net, *options]
    tables = strings_of(net)
    for i, (name, array) in enumerate(inputs.items()):
        path = pathlib.Path(folder) / f'in{i}.npy'
        if np.asarray(array).dtype.kind in 'UO':
            array = places(np.asarray(array), tables.get(name, []))
        np.save(path, np.asarray(array, order='C'))
        arguments += ['-i', f'{name}={path}']
    paths = {}
    for i, name in enumerate(outputs):
        paths[name] = pathlib.Path(folder) / f'out{i}.npy'
        arguments += ['-o', f'{name}={paths[name]}']
    run_program(arguments)
    answers = {name: np.load(path) for name, path in paths.items()}
    for name, table in tables.items():
        if name in answers:
            answers[name] = np.array(table, object)[answers[name]]
    return answers
