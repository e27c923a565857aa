"""ONNX Runtime as an oracle for products of bytes. On x86 without VNNI it adds two products of uint8 by int8 in 16 bits, which saturate."""
import functools

import numpy as np
import onnxruntime
from onnx import parser


class ExactSession(onnxruntime.InferenceSession):
    """A session that asks for exact sums. It has them where constant weights may become uint8, which takes ONNX Runtime's optimisations."""

    def __init__(self, model, sess_options=None, *arguments, **options):
        sess_options = sess_options or onnxruntime.SessionOptions()
        sess_options.add_session_config_entry('session.x64quantprecision', '1')
        super().__init__(model, sess_options, *arguments, **options)


@functools.cache
def sums_saturate():
    model = parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> g (uint8[1,2] a, int8[2,16] b) => (int32[1,16] y) { y = MatMulInteger(a, b) }')
    a, b = np.full((1, 2), 255, np.uint8), np.full((2, 16), 127, np.int8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=['CPUExecutionProvider'])
    return int(session.run(None, {'a': a, 'b': b})[0][0, 0]) != 2 * 255 * 127


def needs_exact_sums():
    """Skips a test whose reference, by nodes as they are, would be wrong on this processor."""
    if sums_saturate():
        import pytest
        pytest.skip('ONNX Runtime\'s sums of uint8 by int8 products saturate on this processor')


onnxruntime.InferenceSession = ExactSession  # of all tests
