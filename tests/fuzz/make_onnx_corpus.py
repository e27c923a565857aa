#!/usr/bin/env python3
"""Writes the seed corpus of fuzz_onnx: make_onnx_corpus.py [FOLDER] (default: corpus/onnx beside this script). Needs the
onnx package. Files found by fuzzing are left alone."""
import pathlib
import sys

from onnx import parser

ACTIVATION = 'float[1,4,5,6] x) => (float[1,4,5,6] y'
MODELS = {
    'conv': '(float[N,3,8,8] x) => (float y) <float[2,3,3,3] w = {%s}> { a = Conv<pads = [1,1,1,1]>(x, w) b = Relu(a)'
            ' c = MaxPool<kernel_shape = [2,2], strides = [2,2]>(b) d = Flatten(c) y = Softmax<axis = 1>(d) }'
            % ','.join(['0.5'] * 54),
    'fused': f'({ACTIVATION}) <float r = {{1.4142135}}, float one = {{1.0}}, float half = {{0.5}}>'
             '{ a = Div(x, r) b = Erf(a) c = Add(b, one) d = Mul(x, c) e = Mul(d, half) s = Sigmoid(e) y = Mul(s, e) }',
    'norm': '(float[2,6,8] x) => (float[2,6,8] y) <float two = {2.0}, float eps = {0.00001}> {'
            ' m = ReduceMean<axes = [-1]>(x) d = Sub(x, m) p = Pow(d, two) v = ReduceMean<axes = [-1]>(p) a = Add(v, eps)'
            ' r = Sqrt(a) y = Div(d, r) }',
    'attention': '(float[2,3,7,8] q, float[2,3,7,8] k, float[2,3,7,8] v) => (float y) <float r = {0.5}> {'
                 ' t = Transpose<perm = [0,1,3,2]>(k) p = MatMul(q, t) c = Mul(p, r) s = Softmax<axis = -1>(c)'
                 ' y = MatMul(s, v) }',
    'shapes': '(float[N,4,M] x) => (float y) <int64[1] zero = {0}, int64[1] one = {1}, int64[1] rest = {-1}> {'
              ' s = Shape(x) n = Gather<axis = 0>(s, zero) t = Concat<axis = 0>(n, rest) a = Reshape(x, t)'
              ' b = Unsqueeze(a, one) c = Tile(b, s) y = ReduceSum<keepdims = 0>(b, one) }',
    'gather': '(float[5,6] x, int64[3] i) => (float y, float z) <int64[2] k = {2, 1}> { y = Gather<axis = 1>(x, i)'
              ' a, b = Split<axis = 1>(x) c = Slice(a, k, k) d, e = TopK(x, k) z = Expand(x, i) }',
    'integers': '(int64[4] x) => (int64 y) <int64 a = {3}> { b = Mul(x, a) c = Mod(b, a) d = Cast<to = 1>(c)'
                ' e = Cast<to = 7>(d) f = Equal(e, x) y = Where(f, x, e) }',
    'quantized': '(float[1,4] x) => (float y) <float s = {0.1}, uint8 z = {3}, int8[4,2] w = {1,2,3,4,5,6,7,8},'
                 ' int8 n = {0}> { q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z)'
                 ' e = DequantizeLinear(w, s, n) y = MatMul(d, e) }',
    'image': '(float[1,4,6,6] x) => (float y) <float[4] f = {1,1,2,2}, int64[8] p = {0,0,1,1,0,0,1,1}> { a = Pad(x, p)'
             ' e = Resize<mode = "linear">(a, , f) b = DepthToSpace<blocksize = 2>(e) y = Transpose<perm = [0,2,3,1]>(b) }',
    'recurrent': '(float[3,1,2] x) => (float y) <float[1,8,2] w = {%s}, float[1,8,2] r = {%s}> {'
                 ' y, h, c = LSTM<hidden_size = 2>(x, w, r) }' % (','.join(['0.1'] * 16), ','.join(['0.2'] * 16)),
    'branch': '(float[2,3] x) => (float y) <bool c = {1}> { y = If (c) <then_branch = t () => (float[2,3] a)'
              ' { a = Relu(x) }, else_branch = e () => (float[2,3] b) { b = Neg(x) }> }',
}


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / 'corpus' / 'onnx'
    folder.mkdir(parents=True, exist_ok=True)
    for name, graph in MODELS.items():
        model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {graph}')
        (folder / f'seed-{name}').write_bytes(model.SerializeToString())


if __name__ == '__main__':
    main()
