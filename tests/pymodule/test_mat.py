"""Mats and arrays: values, shared memory, lifetimes."""
import gc
import sys

import numpy as np
import pytest

import quoll

SHAPES = [(5,), (3, 4), (2, 3, 4), (3, 5, 7), (2, 3, 4, 5)]


@pytest.mark.parametrize('shape', SHAPES)
@pytest.mark.parametrize('dtype', ['float32', 'float16', 'int32', 'int8', 'uint8'])
def test_values_go_there_and_back(shape, dtype):
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    for mat in (quoll.Mat(array), quoll.Mat(array, copy=True), quoll.Mat(np.asfortranarray(array)), quoll.Mat(array).clone()):
        assert mat.sizes == shape and mat.dtype == dtype
        assert mat.numpy().dtype == array.dtype
        np.testing.assert_array_equal(mat.numpy(), array)
        np.testing.assert_array_equal(np.from_dlpack(mat), array)
        np.testing.assert_array_equal(np.asarray(mat), array)


@pytest.mark.parametrize('shape, shares', [((6,), True), ((3, 5), True), ((2, 2, 8), True), ((2, 3, 3), False), ((3, 2, 2, 4), True)])
def test_memory_is_shared_where_channels_lie_on_16_bytes(shape, shares):
    array = np.zeros(shape, np.float32)
    mat = quoll.Mat(array)
    array.reshape(-1)[-1] = 7
    assert (mat.numpy().reshape(-1)[-1] == 7) == shares
    mat.numpy()[(0,) * len(shape)] = 3
    assert (array.reshape(-1)[0] == 3) == shares
    assert quoll.Mat(array, copy=True).numpy().ctypes.data != array.ctypes.data


def test_memory_lives_as_long_as_somebody_refers_to_it():
    array = np.arange(1024, dtype=np.float32).reshape(4, 256)
    before = sys.getrefcount(array)
    mat = quoll.Mat(array)
    assert sys.getrefcount(array) > before
    row = mat.row_range(1, 2)
    view = row.numpy()
    del mat, row
    gc.collect()
    assert sys.getrefcount(array) > before
    np.testing.assert_array_equal(view, array[1:3])
    del view
    gc.collect()
    assert sys.getrefcount(array) == before
    view = quoll.Mat(np.full((8, 8), 5, np.float32)).numpy()
    gc.collect()
    assert (view == 5).all()


def test_read_only_and_strided_arrays_are_copied():
    array = np.arange(24, dtype=np.float32).reshape(4, 6)
    frozen = array.copy()
    frozen.flags.writeable = False
    mat = quoll.Mat(frozen)
    mat.fill(0)
    assert frozen[3, 5] == 23
    np.testing.assert_array_equal(quoll.Mat(array[::-1, ::2]).numpy(), array[::-1, ::2])
    np.testing.assert_array_equal(quoll.Mat(array.T).numpy(), array.T)
    np.testing.assert_array_equal(quoll.Mat(np.broadcast_to(array[0], (3, 6))).numpy(), np.broadcast_to(array[0], (3, 6)))


@pytest.mark.parametrize('axis', [0, 1, 2, -1])
def test_batch(axis):
    array = np.arange(3 * 4 * 5, dtype=np.float32).reshape(3, 4, 5)
    mat = quoll.Mat(array, batch_index=axis)
    assert mat.dims == 2 and mat.n == array.shape[axis]
    np.testing.assert_array_equal(mat.numpy(batch_index=axis), array)
    np.testing.assert_array_equal(mat.batch(1).numpy(), array.take(1, axis))


def test_bfloat16():
    mat = quoll.cast_float32_to_bfloat16(np.array([1.5, -2.0], np.float32))
    assert mat.dtype == 'bfloat16' and mat.numpy().dtype == np.float32
    np.testing.assert_array_equal(mat.numpy(), [1.5, -2.0])


def test_format_reads_elements_as_another_type():
    assert quoll.Mat(np.array([1.0], np.float32)).numpy(format='i')[0] == 0x3F800000
    with pytest.raises(ValueError, match='format'):
        quoll.Mat(2, 2).numpy(format='d')


@pytest.mark.parametrize('bad, error, text', [
    (np.zeros(3), TypeError, 'float64'), (np.zeros(3, np.int64), TypeError, 'int64'), ('text', TypeError, 'expected a Mat or an array'),
    (np.zeros((1,) * 5, np.float32), ValueError, '1 to 4 axes')])
def test_what_is_no_mat(bad, error, text):
    with pytest.raises(error, match=text):
        quoll.Mat(bad)


def test_views_check_their_bounds():
    mat = quoll.Mat(4, 3, 2)
    for bad in (lambda: mat.channel(2), lambda: mat.row(3), lambda: mat.channel_range(1, 2), lambda: mat.batch(1), lambda: mat.row_range(-1, 1)):
        with pytest.raises(IndexError):
            bad()


def test_indexes_end_at_the_last_value():
    """They count values as they lie, as ncnn's do: gaps between channels are values, what lies behind the last one is none."""
    every_second = quoll.Mat(np.arange(48, dtype=np.float32).reshape(3, 2, 8)[::2])
    with_gaps = quoll.Mat(3, 3, 2)
    with_gaps.fill(1.0)
    packed = quoll.convert_packing(quoll.Mat(np.arange(16, dtype=np.float32).reshape(4, 4)), 4)
    for mat, end in (every_second, 48), (with_gaps, 12 + 9), (packed, 16), (quoll.Mat(np.ones((2, 3, 4), np.float32)).channel(1), 12), (quoll.Mat(np.ones(8, np.float32)).range(4, 4), 4):
        assert mat[end - 1] == mat[-1] and mat[0] == mat[-end]
        for bad in end, -end - 1:
            with pytest.raises(IndexError):
                mat[bad]
            with pytest.raises(IndexError):
                mat[bad] = 1
    assert every_second[-1] == 47 and with_gaps[-1] == 1
    with pytest.raises(IndexError):
        quoll.Mat()[0]


@pytest.mark.parametrize('sizes', [(2**40,), ('3',), ((2, 2**31),), (2.5,), ([None],)])
def test_what_is_no_size(sizes):
    with pytest.raises((TypeError, ValueError), match='expected|Mat'):
        quoll.Mat(*sizes)


def test_an_array_without_axes():
    assert quoll.Mat(np.array(2.5, np.float32))[0] == 2.5


def test_arrays_at_the_end_of_a_page(digits):
    """Kernels may read 64 bytes further than the values: there the module has to copy. mmap leaves nothing mapped behind."""
    import ctypes
    import mmap
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = libc.mprotect.restype = ctypes.c_void_p
    page = mmap.PAGESIZE
    block = mmap.mmap(-1, 2 * page)
    base = ctypes.addressof(ctypes.c_char.from_buffer(block))
    assert not libc.mprotect(ctypes.c_void_p(base + page), ctypes.c_size_t(page), 0)
    net = quoll.load(*digits)
    name, sizes = net.inputs[0].name, net.inputs[0].sizes
    count = int(np.prod(sizes))
    array = np.frombuffer(block, np.float32, count, page - 4 * count).reshape(sizes)
    array[:] = np.linspace(0, 1, count).reshape(sizes)
    expected = net.run({name: array.copy()})
    got = net.run({name: array})
    for key in expected:
        np.testing.assert_array_equal(got[key], expected[key])
    libc.mprotect(ctypes.c_void_p(base + page), ctypes.c_size_t(page), 3)


def test_pixels():
    rng = np.random.default_rng(1)
    image = rng.integers(0, 256, (6, 9, 3), np.uint8)
    mat = quoll.Mat.from_pixels(image, quoll.Mat.PixelType.PIXEL_RGB2BGR, 9, 6)
    np.testing.assert_array_equal(mat.numpy(), image.transpose(2, 0, 1)[::-1])
    np.testing.assert_array_equal(mat.to_pixels(quoll.Mat.PixelType.PIXEL_BGR2RGB), image)
    normal = quoll.image_input(image, mean=[1, 2, 3], norm=[0.5, 1, 2])
    expected = (image.transpose(2, 0, 1) - np.array([1, 2, 3]).reshape(3, 1, 1)) * np.array([0.5, 1, 2]).reshape(3, 1, 1)
    np.testing.assert_allclose(normal.numpy(), expected, rtol=1e-6)
    assert quoll.image_input(image, (4, 5), order='GRAY').sizes == (1, 5, 4)
    with pytest.raises(ValueError, match='162 bytes|324'):
        quoll.Mat.from_pixels(image, quoll.Mat.PixelType.PIXEL_RGB, 12, 9)


def test_pool_outlives_its_object():
    pool = quoll.PoolAllocator()
    mat = quoll.Mat(16, 16, allocator=pool)
    mat.fill(2)
    assert mat.allocator == pool and quoll.Mat(3).allocator is None
    del pool
    gc.collect()
    assert (mat.clone(mat.allocator).numpy() == 2).all()
