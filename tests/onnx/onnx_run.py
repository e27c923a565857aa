"""Converts ONNX models with onnx2engine and runs them with enginerun."""
import os
import pathlib
import subprocess

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get('QUOLL_BIN', ROOT / 'build' / 'bin'))


class Failure(Exception):
    """A program ended with an error; the message is the last of what it said."""


def run_program(arguments, timeout=300):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, errors='replace',
                          timeout=timeout)
    if done.returncode:
        raise Failure(f'{pathlib.Path(arguments[0]).name}: exit code {done.returncode}: '
                      + done.stderr.strip()[-600:])
    return done.stdout


def convert(model, folder, *options):
    """Writes m.param and m.bin into `folder` and returns their paths."""
    param, weights = pathlib.Path(folder) / 'm.param', pathlib.Path(folder) / 'm.bin'
    run_program([BIN / 'onnx2engine', model, param, weights, *options])
    return param, weights


def run(net, inputs, outputs, folder, *options, program=(BIN / 'enginerun',)):
    """Outputs (names) as arrays, for inputs as a dict of arrays."""
    arguments = [*program, *net, *options]
    for i, (name, array) in enumerate(inputs.items()):
        path = pathlib.Path(folder) / f'in{i}.npy'
        np.save(path, np.asarray(array, order='C'))
        arguments += ['-i', f'{name}={path}']
    paths = {}
    for i, name in enumerate(outputs):
        paths[name] = pathlib.Path(folder) / f'out{i}.npy'
        arguments += ['-o', f'{name}={paths[name]}']
    run_program(arguments)
    return {name: np.load(path) for name, path in paths.items()}
