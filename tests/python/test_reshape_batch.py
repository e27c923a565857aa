"""Reshape with batch axes against ncnn: two in a row, of which the second takes the batch that the first makes."""
import ncnn
import numpy as np
import pytest

from engine import EngineError, run_engine

CONFIGS = 50


def sizes_of(rng, total, count):
    sizes = []
    for _ in range(count - 1):
        sizes.append(int(rng.choice([k for k in range(1, total + 1) if total % k == 0])))
        total //= sizes[-1]
    return [int(n) for n in rng.permutation(sizes + [total])]


def params(rng, total, takes_batch):
    sizes = sizes_of(rng, total, int(rng.integers(1, 6)))
    text = '6="%s"' % ','.join(map(str, sizes))
    if rng.random() < 0.8:
        text += f' 13={rng.integers(-len(sizes), len(sizes))}'
    return text + (f' 12={rng.integers(-4, 4)}' if takes_batch else '')


def run_ncnn(param, x):
    """ncnn's answers for blobs b and c, None where it refuses; the items of a batch stacked."""
    net = ncnn.Net()
    net.opt.use_packing_layout = net.opt.use_fp16_storage = net.opt.use_fp16_packed = False
    net.opt.num_threads = 1
    if net.load_param(str(param)) != 0 or net.load_model(str(param.with_suffix('.bin'))) != 0:
        return [None, None]
    ex = net.create_extractor()
    ex.input('a', ncnn.Mat(x).clone())
    answers = []
    for name in 'bc':
        status, m = ex.extract(name)
        items = [np.array(m.batch(i)) for i in range(m.n)] if status == 0 else []
        answers.append(None if status else np.stack(items) if m.n > 1 else items[0])
    return answers


def test_reshape_with_batch_axes_agrees_with_ncnn(tmp_path):
    rng = np.random.default_rng(12)
    compared = 0
    param = tmp_path / 'm.param'
    param.with_suffix('.bin').write_bytes(b'')
    while compared < CONFIGS:
        x = np.arange(rng.choice([24, 36, 60]), dtype=np.float32)
        x = x.reshape(sizes_of(rng, x.size, int(rng.integers(1, 5))))
        text = f'Reshape one 1 1 a b {params(rng, x.size, False)}\nReshape two 1 1 b c {params(rng, x.size, True)}\n'
        param.write_text(f'7767517\n3 3\nInput a 0 1 a\n{text}')
        for name, want in zip('bc', run_ncnn(param, x)):
            try:
                got = run_engine(param, param.with_suffix('.bin'), {'a': x}, [name])[name]
            except EngineError:
                got = None
            assert (got is None) == (want is None), f'{text}{x.shape}: one refuses'
            if want is not None:
                np.testing.assert_array_equal(got, want, err_msg=f'{text}{x.shape}')
                compared += 1


@pytest.mark.parametrize('sizes, shape', [('0,-1', (3, 4)), ('4,0,0', (1, 3, 4))])
@pytest.mark.parametrize('items', [0, 1, 2])
def test_sizes_that_stay_of_a_batch_of_any_number(sizes, shape, items, tmp_path):
    """A 0 takes the input's own size, of an item: that there are no items does not make it one."""
    param = tmp_path / 'm.param'
    param.with_suffix('.bin').write_bytes(b'')
    param.write_text(f'7767517\n5 5\nInput a 0 1 a\nStridedSlice part 1 1 a p -23300=1,0 -23301=1,{items} -23302=1,0\n'
                     f'BatchAxis batch 1 1 p x\nReshape sizes 1 1 x y 6="{sizes}"\nShapeOf shape 1 1 y z 3=1\n')
    got = run_engine(param, param.with_suffix('.bin'), {'a': np.ones((3, 1, 3, 4), np.float32)}, ['z'])['z']
    assert tuple(got) == (items, *shape)
