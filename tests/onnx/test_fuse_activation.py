"""Activation functions as exporters write them."""
import numpy as np
import pytest

pytest.importorskip('onnx')
from fuse_case import Case, functions_for  # noqa: E402

SHAPE = 'float[2,3,4,5]'


def graph(body, constants='', shape=SHAPE):
    return f'g ({shape} x) => ({shape} y) <{constants}> {{ {body} }}'


ERF = 'float r = {1.4142135}, float one = {1.0}, float half = {0.5}'
TANH = 'float three = {3.0}, float c = {0.044715}, float k = {0.7978846}, float one = {1.0}, float half = {0.5}'
SIX = 'float three = {3.0}, float six = {6.0}, float zero = {0.0}'
CASES = {
    'gelu of torch': Case(
        graph('a = Div(x, r) b = Erf(a) c = Add(b, one) d = Mul(x, c) y = Mul(d, half)', ERF),
        ['GELU'], ['Erf', 'BinaryOp'], [('1.4142135', '1.4'), ('{1.0}', '{1.01}'), ('Mul(x, c)', 'Mul(a, c)')], 'b'),
    'gelu of keras': Case(
        graph('h = Mul(half, x) a = Mul(x, r) b = Erf(a) c = Add(one, b) y = Mul(h, c)',
              ERF.replace('1.4142135', '0.70710677')),
        ['GELU'], ['Erf', 'BinaryOp'], [('0.5', '0.6')], 'c'),
    'gelu with the half inside': Case(
        graph('a = Div(x, r) b = Erf(a) c = Add(b, one) d = Mul(c, half) y = Mul(x, d)', ERF),
        ['GELU'], ['Erf'], [('0.5', '0.25')], 'd'),
    'gelu of half floats': Case(
        graph('h = Cast<to = 10>(x) a = Div(h, r) b = Erf(a) c = Add(b, one) d = Mul(h, c) e = Mul(d, half)'
              ' y = Cast<to = 1>(e)'),
        ['GELU'], ['Erf'], [], '', {'r': np.float16(1.4140625), 'one': np.float16(1), 'half': np.float16(0.5)},
        tolerance=5e-3),
    'gelu by tanh': Case(
        graph('p = Pow(x, three) q = Mul(p, c) s = Add(x, q) u = Mul(s, k) t = Tanh(u) a = Add(t, one) b = Mul(x, half)'
              ' y = Mul(b, a)', TANH),
        ['GELU'], ['TanH', 'BinaryOp'], [('0.044715', '0.0447'), ('0.7978846', '0.8'), ('three = {3.0}', 'three = {2.0}'),
                                        ('Add(x, q)', 'Sub(x, q)')], 't'),
    'gelu by tanh with products': Case(
        graph('h = Mul(x, half) p = Mul(x, x) q = Mul(p, c) s = Add(one, q) v = Mul(x, k) u = Mul(v, s) t = Tanh(u)'
              ' a = Add(t, one) y = Mul(h, a)', TANH.replace('float three = {3.0}, ', '')),
        ['GELU'], ['TanH', 'BinaryOp'], [('0.044715', '0.05')], 'u'),
    'swish': Case(graph('s = Sigmoid(x) y = Mul(x, s)'), ['Swish'], ['Sigmoid', 'BinaryOp'],
                  [('Mul(x, s)', 'Mul(s, s)'), ('y = Mul(x, s)', 'y = Add(x, s)')], 's'),
    'gelu by sigmoid': Case(
        graph('a = Mul(x, k) s = Sigmoid(a) y = Mul(x, s)', 'float k = {1.702}'), ['Swish'], ['Sigmoid', 'BinaryOp'],
        [('Mul(x, s)', 'Mul(s, s)'), ('{1.702}', '{-1.702}')], 's'),
    'swish as a quotient': Case(
        graph('n = Neg(x) e = Exp(n) s = Add(e, one) y = Div(x, s)', 'float one = {1.0}'), ['Swish'], ['UnaryOp'],
        [('1.0', '2.0'), ('Exp(n)', 'Exp(x)')], 'e'),
    'hard swish, divided': Case(
        graph('a = Add(x, three) b = Clip(a, zero, six) c = Mul(x, b) y = Div(c, six)', SIX),
        ['HardSwish'], ['Clip', 'BinaryOp'], [('{3.0}', '{2.0}'), ('{6.0}', '{5.0}'), ('{0.0}', '{1.0}')], 'b'),
    'hard swish, multiplied': Case(
        graph('a = Add(x, three) r = Relu(a) b = Min(r, six) d = Mul(b, s) y = Mul(x, d)',
              SIX + ', float s = {0.16666667}'),
        ['HardSwish'], ['Clip', 'BinaryOp', 'ReLU'], [('0.16666667', '0.2')], 'd'),
    'hard swish of HardSigmoid': Case(
        graph('h = HardSigmoid<alpha: float = 0.16666667, beta: float = 0.5>(x) y = Mul(h, x)'),
        ['HardSwish'], ['HardSigmoid'], [('0.16666667', '0.2'), ('beta: float = 0.5', 'beta: float = 0.4')], 'h'),
    'hard sigmoid': Case(
        graph('a = Add(x, three) b = Clip(a, zero, six) y = Div(b, six)', SIX),
        ['HardSigmoid'], ['Clip'], [('Div(b, six)', 'Div(b, three)')], 'b'),
    'softplus': Case(graph('e = Exp(x) s = Add(e, one) y = Log(s)', 'float one = {1.0}'), ['Softplus'], ['UnaryOp'],
                     [('1.0', '1.5')], 's'),
    'mish': Case(graph('s = Softplus(x) t = Tanh(s) y = Mul(x, t)'), ['Mish'], ['Softplus', 'TanH'],
                 [('Mul(x, t)', 'Mul(s, t)'), ('Softplus(x)', 'Sigmoid(x)')], 't'),
    'mish of exp': Case(
        graph('e = Exp(x) a = Add(e, one) s = Log(a) t = Tanh(s) y = Mul(x, t)', 'float one = {1.0}'),
        ['Mish'], ['UnaryOp', 'TanH'], [('1.0', '2.0')], 't'),
    'clip of Max and Min': Case(
        graph('a = Max(x, lo) y = Min(a, hi)', 'float lo = {-1.0}, float hi = {1.0}'), ['Clip'], ['BinaryOp'],
        [('Max(x, lo)', 'Mul(x, lo)')], 'a'),
    'clip of Min and Max': Case(
        graph('a = Min(hi, x) y = Max(a, lo)', 'float lo = {-1.0}, float hi = {1.0}'), ['Clip'], ['BinaryOp'], [], 'a'),
    'prelu of two Relus': Case(
        graph('p = Relu(x) n = Neg(x) r = Relu(n) m = Mul(w, r) y = Sub(p, m)'), ['PReLU'], ['ReLU', 'BinaryOp'],
        [('Neg(x)', 'Abs(x)'), ('Sub(p, m)', 'Mul(p, m)')], 'r', {'w': (3, 1, 1)}),
    'prelu of keras': Case(
        graph('p = Relu(x) n = Neg(x) r = Relu(n) v = Neg(w) m = Mul(v, r) y = Add(p, m)'),
        ['PReLU'], ['ReLU', 'BinaryOp'], [], 'm', {'w': (3, 1, 1)}),
    'prelu of abs': Case(
        graph('p = Relu(x) a = Abs(x) d = Sub(x, a) m = Mul(d, w) h = Mul(m, half) y = Add(p, h)', 'float half = {0.5}'),
        ['PReLU'], ['ReLU', 'BinaryOp'], [('Sub(x, a)', 'Sub(a, x)')], 'd', {'w': (3, 1, 1)}),
    'leaky relu of Where': Case(
        graph('t = Greater(x, zero) m = Mul(x, s) y = Where(t, x, m)', 'float zero = {0.0}, float s = {0.1}'),
        ['ReLU'], ['Where', 'BinaryOp'], [('zero = {0.0}', 'zero = {0.5}'), ('Where(t, x, m)', 'Where(t, m, x)')], 'm'),
    'leaky relu of Max': Case(
        graph('m = Mul(x, s) y = Max(x, m)', 'float s = {0.2}'), ['ReLU'], ['BinaryOp'], [('0.2', '1.5')], 'm'),
    'relun1to1 of Relu and Clip': Case(
        graph('a = Relu(x) y = Clip(a, lo, hi)', 'float lo = {-1.0}, float hi = {1.0}'), ['Clip'], ['ReLU'], [], ''),
}
test_fused, test_near_miss, test_second_reader = functions_for(CASES)
