"""enginerun as a function, and the instruction sets to run it with."""
import pathlib
import platform
import tempfile

import numpy as np

from conftest import last_line, run_program

# Levels of QUOLL_CPU_MASK and the flag in /proc/cpuinfo that a machine must have to run them.
LEVELS = {
    'x86_64': [('scalar', None), ('sse4', 'sse4_2'), ('avx2', 'avx2'), ('avxvnni', 'avx_vnni'), ('avx512', 'avx512f'),
               ('avx512vnni', 'avx512_vnni'), ('avx512bf16', 'avx512_bf16'), ('avx512fp16', 'avx512_fp16'),
               ('amx', 'amx_int8')],
    'aarch64': [('scalar', None), ('neon', 'asimd'), ('asimdhp', 'asimdhp'), ('asimddp', 'asimddp'), ('i8mm', 'i8mm'),
                ('sve', 'sve'), ('sve2', 'sve2')],
}


def host_levels():
    """The levels of QUOLL_CPU_MASK that differ on this machine, lowest first."""
    flags = set()
    for line in open('/proc/cpuinfo'):
        if line.startswith(('flags', 'Features')):
            flags = set(line.split(':')[1].split())
            break
    return [level for level, flag in LEVELS[platform.machine()] if flag is None or flag in flags]


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
        done = run_program('enginerun', *command, *args, env=env)
        if done.returncode != 0:
            raise EngineError(f'exit {done.returncode}: {last_line(done.stderr)}')
        return {name: np.load(folder / f'out{i}.npy') for i, name in enumerate(outputs)}


def difference(got, expected):
    """Largest difference in parts of the expected array's largest magnitude."""
    assert got.shape == expected.shape, f'{got.shape}, expected {expected.shape}'
    assert np.isfinite(got).all()
    scale = max(float(np.abs(expected).max()), 1e-6)
    return float(np.abs(got.astype(np.float64) - expected.astype(np.float64)).max()) / scale


if __name__ == '__main__':
    print('\n'.join(host_levels()))
