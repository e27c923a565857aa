"""One conversion, many sizes: against ONNX Runtime, or else the reference evaluator of the onnx package. Needs
QUOLL_DATA (packed graphs)."""
import os

import numpy as np
import pytest

from onnx_run import convert, run
from test_zoo import load_graph, output_names, zoo  # noqa: F401 (a fixture)

pytestmark = pytest.mark.skipif(not os.environ.get('QUOLL_DATA'), reason='QUOLL_DATA is not set')
TOLERANCE = 1e-4  # of the range of an output

CASES = [('bert_tiny', [(1, 1), (1, 7), (1, 24), (1, 128)]),
         ('unet_tiny', [(1, 3, 32, 32), (1, 3, 64, 96), (1, 3, 96, 64), (1, 3, 128, 128), (1, 3, 160, 32), (1, 3, 48, 80)]),
         ('squeezenet1_1', [(1, 3, 224, 224), (2, 3, 224, 224), (5, 3, 224, 224)])]


def oracle(model):
    try:
        import onnxruntime
        session = onnxruntime.InferenceSession(str(model), providers=['CPUExecutionProvider'])
        names = [o.name for o in session.get_outputs()]
        return lambda feeds: dict(zip(names, session.run(None, feeds)))
    except ImportError:
        from onnx.reference import ReferenceEvaluator
        evaluator = ReferenceEvaluator(str(model))
        return lambda feeds: dict(zip(evaluator.output_names, evaluator.run(None, feeds)))


@pytest.mark.parametrize('name, shapes', CASES, ids=[c[0] for c in CASES])
def test_sizes(zoo, name, shapes, tmp_path):  # noqa: F811
    model, given, _ = load_graph(zoo, name, tmp_path)
    answer, net, rng = oracle(model), convert(model, tmp_path), np.random.default_rng(3)
    for shape in shapes:
        feeds = {}
        for key, like in given.items():
            values = rng.standard_normal(shape) if like.dtype.kind == 'f' else rng.integers(0, 2, shape)
            feeds[key] = values.astype(like.dtype)
        have = run(net, feeds, output_names(net), tmp_path)
        # The files say a batch of 1: their own engine runs item by item.
        items = [answer({k: v[i:i + 1] for k, v in feeds.items()}) for i in range(shape[0])]
        for key in items[0]:
            want = np.concatenate([item[key] for item in items])
            assert have[key].shape == want.shape, f'{shape}: {key}'
            spread = max(float(want.max() - want.min()), 1e-6)
            worst = float(np.abs(have[key].astype(np.float64) - want).max())
            assert worst <= TOLERANCE * spread, f'{shape}: {key} is off by {worst / spread:.2e} of the range'

