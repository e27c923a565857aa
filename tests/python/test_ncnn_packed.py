"""Every operator against ncnn (the PyPI wheel) on inputs that an application hands over packed, by the C API of the shared library.

The nets are those of test_ncnn_layers.py; each input comes in the widest elempack of those below that divides its outermost axis.
"""
import ctypes
import os

import numpy as np
import pytest

from conftest import ROOT
from test_ncnn_layers import GENERATORS, compare_outputs, expect_none, taken_by_ncnn, write_nets

LIBRARY = ROOT / 'build/lib/libquoll.so'
PACKS = (16, 8, 4, 3, 2)
DTYPES = (np.float32, np.float16, np.uint16, np.int32, np.int8, np.uint8)  # as quoll_mat_get_dtype numbers them
pytestmark = pytest.mark.skipif(not LIBRARY.exists() or bool(os.environ.get('ENGINERUN_PREFIX')), reason='no library for this machine in build/lib')
POINTERS = ('net_create', 'net_get_option', 'extractor_create', 'mat_get_data', 'mat_get_channel_data', *(f'mat_create_{d}d' for d in (1, 2, 3, 4)))


class Engine:
    """The C functions by their names without `quoll_`: an object is a ctypes.c_void_p."""

    def __init__(self):
        self.library = ctypes.CDLL(str(LIBRARY))
        self.library.quoll_last_error.restype = ctypes.c_char_p
        for name in POINTERS:
            getattr(self.library, f'quoll_{name}').restype = ctypes.c_void_p

    def __getattr__(self, name):
        function = getattr(self.library, f'quoll_{name}')
        return (lambda *args: ctypes.c_void_p(function(*args))) if name in POINTERS else function

    def check(self, status):
        assert status == 0, self.last_error().decode()

    def parts(self, mat, dims):
        """Addresses of what lies without gaps: channels, or all of a Mat of fewer axes."""
        if dims < 3:
            return [self.mat_get_data(mat).value]
        return [self.mat_get_channel_data(mat, q).value for q in range(self.mat_get_c(mat))]

    def packed(self, x, opt):
        """A Mat of those values and whether it is packed."""
        x = np.ascontiguousarray(x)
        planar, made = getattr(self, f'mat_create_{x.ndim}d')(*x.shape[::-1], None), ctypes.c_void_p()
        for address, part in zip(self.parts(planar, x.ndim), x if x.ndim > 2 else [x]):
            ctypes.memmove(address, part.ctypes.data, part.nbytes)
        pack = next((p for p in PACKS if x.shape[0] % p == 0), 1)
        self.convert_packing(planar, ctypes.byref(made), pack, opt)
        self.mat_destroy(planar)
        assert self.mat_get_elempack(made) == pack
        return made, pack > 1

    def values(self, mat):
        dims, dtype = self.mat_get_dims(mat), np.dtype(DTYPES[self.mat_get_dtype(mat)])
        assert self.mat_get_elempack(mat) == 1
        shape = tuple(getattr(self, f'mat_get_{axis}')(mat) for axis in {1: 'w', 2: 'hw', 3: 'chw', 4: 'cdhw'}[dims])
        one = shape if dims < 3 else shape[1:]
        size = int(np.prod(one)) * dtype.itemsize
        parts = [np.frombuffer(ctypes.string_at(address, size), dtype).reshape(one) for address in self.parts(mat, dims)]
        return parts[0] if dims < 3 else np.stack(parts)

    def run(self, folder, config):
        """The answers, and how many inputs were packed."""
        net = self.net_create()
        try:
            opt = self.net_get_option(net)
            self.check(self.net_load_param(net, str(folder / 'm.param').encode()))
            self.check(self.net_load_model(net, str(folder / 'm.bin').encode()))
            ex, packed, answers = self.extractor_create(net), 0, []
            for i, x in enumerate(config.inputs):
                mat, is_packed = self.packed(x, opt)
                packed += is_packed
                self.check(self.extractor_input(ex, f'in{i}'.encode(), mat))
                self.mat_destroy(mat)
            for i in range(config.outputs):
                out = ctypes.c_void_p()
                self.check(self.extractor_extract(ex, f'out{i}'.encode(), ctypes.byref(out)))
                answers.append(self.values(out))
                self.mat_destroy(out)
            self.extractor_destroy(ex)
            return answers, packed
        finally:
            self.net_destroy(net)


@pytest.fixture(scope='module')
def engine():
    return Engine()


def can_be_packed(config):
    return all(x.dtype.itemsize == 4 and x.size for x in config.inputs)


@pytest.mark.parametrize('op, make', [g for g in GENERATORS if g.values[0] != 'MemoryData'])
def test_packed_inputs_agree_with_ncnn(op, make, engine, tmp_path):
    taken, found, packed = taken_by_ncnn(op, make, fits=can_be_packed), [], 0
    for config, theirs in taken:
        write_nets(tmp_path, op, config)
        try:
            answers, count = engine.run(tmp_path, config)
            packed += count
        except AssertionError as error:
            answers = str(error).splitlines()[0]
        found.append(compare_outputs(op, config, answers, theirs))
    expect_none(op, [config for config, _ in taken], found)
    assert packed > 0
