"""enginerun as a function."""
import pathlib
import tempfile

import numpy as np

from conftest import enginerun_of_device, last_line, run_program

class EngineError(Exception):
    pass


def run_engine(param, binary, inputs, outputs, *args, env=None):
    """Runs a model on {name: array} and returns {name: array} for the names in `outputs`; EngineError with the last line of
    stderr when enginerun fails."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        command = [param, binary]
        for i, (name, array) in enumerate(inputs.items()):
            np.save(folder / f'in{i}.npy', array)
            command += ['--input', f'{name}={folder}/in{i}.npy']
        for i, name in enumerate(outputs):
            command += ['--output', f'{name}={folder}/out{i}.npy']
        program, gpu = enginerun_of_device(args)
        done = run_program(program, *command, *args, *gpu, env=env)
        if done.returncode != 0:
            raise EngineError(f'exit {done.returncode}: {last_line(done.stderr)}')
        return {name: np.load(folder / f'out{i}.npy') for i, name in enumerate(outputs)}


def difference(got, expected):
    """Largest difference, in parts of the expected array's range."""
    assert got.shape == expected.shape, f'{got.shape}, expected {expected.shape}'
    assert np.isfinite(got).all()
    scale = max(float(expected.max()) - float(expected.min()), 1e-6)
    return float(np.abs(got.astype(np.float64) - expected.astype(np.float64)).max()) / scale

