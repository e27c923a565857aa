"""Decoders of the structure that ONNX Runtime GenAI's model builder writes, small and with random weights, against ONNX Runtime:
a prompt, then steps with the caches that the run before gave, or with buffers."""
import numpy as np
import pytest

onnx = pytest.importorskip('onnx')
onnxruntime = pytest.importorskip('onnxruntime')
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from onnx_run import convert, run  # noqa: E402

WORDS, LONGEST = 50, 64


class Decoder:
    def __init__(self, width=64, heads=4, shared=2, layers=2, hidden=96, bits=4, block=32, zeros=False, separate=False, norms=False,
                 window=-1, softcap=0., sinks=False, long_rope=False, gelu=False):
        self.rng = np.random.default_rng(3)
        self.nodes, self.constants, self.made = [], [], 0
        self.bits, self.block, self.zeros = bits, block, zeros
        self.heads, self.shared, self.layers, self.size = heads, shared, layers, width // heads
        self.separate, self.norms, self.window, self.softcap, self.sinks = separate, norms, window, softcap, sinks
        x = self.add('Gather', [self.random(WORDS, width), 'input_ids'])
        self.lengths()
        self.positions(long_rope)
        own, kept = heads * self.size, shared * self.size
        skip = self.add('SimplifiedLayerNormalization', [x, self.gain(width)], epsilon=1e-5, axis=-1)
        for i in range(layers):
            mixed = self.product(self.attention(i, skip, width, own, kept), own, width)
            skip, x = self.skip_norm(x, mixed, width)
            y = self.mlp(skip, width, hidden, gelu)
            skip, x = self.skip_norm(x, y, width)
        logits = self.product(skip, width, WORDS)
        self.add('Identity', [logits], outputs=['logits'])
        self.finish()

    def constant(self, array):
        self.made += 1
        self.constants.append(numpy_helper.from_array(np.asarray(array), f'w{self.made}'))
        return f'w{self.made}'

    def random(self, *shape, scale=1.):
        return self.constant((scale * self.rng.standard_normal(shape)).astype(np.float32))

    def gain(self, size):
        return self.constant((1 + 0.1 * self.rng.standard_normal(size)).astype(np.float32))

    def add(self, op, inputs, outputs=None, count=1, **attributes):
        self.made += 1
        outputs = outputs or [f'v{self.made}_{i}' for i in range(count)]
        own = op in ('MatMulNBits', 'GroupQueryAttention', 'SkipSimplifiedLayerNormalization', 'QuickGelu')
        self.nodes.append(helper.make_node(op, inputs, outputs, f'n{self.made}', domain='com.microsoft' if own else '', **attributes))
        return outputs[0] if len(outputs) == 1 else outputs

    def lengths(self):
        one = self.constant(np.int64([1]))
        sums = self.add('ReduceSum', ['attention_mask', one], keepdims=0)
        self.seqlens = self.add('Cast', [self.add('Sub', [sums, one])], to=TensorProto.INT32)
        total = self.add('Gather', [self.add('Shape', ['attention_mask']), self.constant(np.int64(1))], axis=0)
        self.total = self.add('Cast', [total], to=TensorProto.INT32)

    def positions(self, long_rope):
        """LongRoPE (Phi-3): other angles for long prompts, chosen by an If whose branches have the tables."""
        angles = np.outer(np.arange(LONGEST), 0.5 ** np.arange(self.size // 2)).astype(np.float32)
        tables = [np.cos(angles), np.sin(angles)]
        if not long_rope:
            self.caches = [self.constant(t) for t in tables]
            return
        def branch(name, scale):
            made = [helper.make_node('Constant', [], [f'{name}{i}'], value=numpy_helper.from_array(f(angles * np.float32(scale))))
                    for i, f in enumerate((np.cos, np.sin))]
            return helper.make_graph(made, name, [], [helper.make_tensor_value_info(f'{name}{i}', 1, angles.shape) for i in range(2)])
        longer = self.add('Greater', [self.total, self.constant(np.int32(8))])
        self.caches = self.add('If', [longer], count=2, then_branch=branch('long', 0.5), else_branch=branch('short', 1.))

    def product(self, x, k, n):
        if not self.bits:
            return self.add('MatMul', [x, self.random(k, n, scale=k ** -0.5)])
        blocks = -(-k // self.block)
        packed = self.rng.integers(0, 256, (n, blocks, self.block * self.bits // 8)).astype(np.uint8)
        scales = (self.rng.uniform(0.5, 1, n * blocks) * k ** -0.5 / 2 ** (self.bits - 2)).astype(np.float32)
        inputs = [x, self.constant(packed), self.constant(scales)]
        if self.zeros:
            inputs.append(self.constant(self.rng.integers(0, 256, n * -(-blocks * self.bits // 8)).astype(np.uint8)))
        return self.add('MatMulNBits', inputs, K=k, N=n, bits=self.bits, block_size=self.block)

    def head_norm(self, x, width):
        flat = self.add('Reshape', [x, self.constant(np.int64([0, -1, self.size]))])
        normed = self.add('SimplifiedLayerNormalization', [flat, self.gain(self.size)], epsilon=1e-5, axis=-1)
        shape = self.add('Shape', [x])
        return self.add('Reshape', [normed, shape])

    def attention(self, i, x, width, own, kept):
        names = ['past', 'present']
        old, new = ([f'{n}.{i}.{what}' for what in ('key', 'value')] for n in names)
        if self.separate or self.norms:
            parts = [self.product(x, width, n) for n in (own, kept, kept)]
            if self.norms:
                parts[:2] = [self.head_norm(p, n) for p, n in zip(parts, (own, kept))]
        else:
            parts = [self.product(x, width, own + 2 * kept), '', '']
        inputs = [*parts, *old, self.seqlens, self.total, *self.caches]
        if self.sinks:
            inputs += ['', '', self.random(self.heads)]
        window = self.window if i % 2 else -1
        return self.add('GroupQueryAttention', inputs, [f'mixed{i}', *new], num_heads=self.heads, kv_num_heads=self.shared, do_rotary=1,
                        local_window_size=window, softcap=self.softcap, scale=self.size ** -0.5)[0]

    def skip_norm(self, x, y, width):
        self.made += 1
        normed, total = f'normed{self.made}', f'sum{self.made}'
        self.add('SkipSimplifiedLayerNormalization', [x, y, self.gain(width)], [normed, '', '', total], epsilon=1e-5)
        return normed, total

    def mlp(self, x, width, hidden, gelu):
        gate, up = self.product(x, width, hidden), self.product(x, width, hidden)
        if gelu:
            gate = self.add('QuickGelu', [gate], alpha=1.702)
        else:
            gate = self.add('Mul', [gate, self.add('Sigmoid', [gate])])
        return self.product(self.add('Mul', [gate, up]), hidden, width)

    def finish(self):
        value = helper.make_tensor_value_info
        caches = [f'{i}.{what}' for i in range(self.layers) for what in ('key', 'value')]
        self.old, self.new = [f'past.{c}' for c in caches], [f'present.{c}' for c in caches]
        inputs = [value('input_ids', TensorProto.INT64, ['batch', 'steps']), value('attention_mask', TensorProto.INT64, ['batch', 'total'])]
        inputs += [value(n, 1, ['batch', self.shared, 'past', self.size]) for n in self.old]
        outputs = [value('logits', 1, ['batch', 'steps', WORDS])] + [value(n, 1, ['batch', self.shared, 'total', self.size]) for n in self.new]
        graph = helper.make_graph(self.nodes, 'decoder', inputs, outputs, self.constants)
        self.model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 21), helper.make_opsetid('com.microsoft', 1)], ir_version=10)

    def check(self, folder, batch=1, buffer=None):
        """buffer: the length of caches that stay as long as they are; None: caches grow."""
        onnx.save(self.model, folder / 'm.onnx')
        shapes = [f'{n}=-1,{self.shared},{buffer},{self.size}' for n in self.old] if buffer else []
        net = convert(folder / 'm.onnx', folder, *(word for s in shapes for word in ('--shape', s)))
        session = onnxruntime.InferenceSession(self.model.SerializeToString(), providers=['CPUExecutionProvider'])
        caches = {n: np.zeros((batch, self.shared, buffer or 0, self.size), np.float32) for n in self.old}
        short, total = 2 * (batch > 1 and buffer is not None), 0  # the last item is padded on the right
        for steps in (5, 1, 1, 3, 1) if batch == 1 else (5, 1, 1):  # ONNX Runtime takes batches by one step
            padding, total = short if total == 0 else 0, total + steps
            mask = np.ones((batch, total), np.int64)
            mask[-1, 5 - short:5] = 0
            feeds = {'input_ids': self.rng.integers(0, WORDS, (batch, steps)), 'attention_mask': mask, **caches}
            names = ['logits', *self.new]
            have, wants = run(net, feeds, names, folder), session.run(names, feeds)
            for name, want in zip(names, wants):
                assert have[name].shape == want.shape, name
                used = [np.arange(steps) < steps - padding * (b == batch - 1) if name == 'logits' else np.arange(want.shape[2]) < mask[b].sum()
                        for b in range(batch)]
                for b, u in enumerate(used):
                    a, w = (x[b][u] if name == 'logits' else x[b][:, u] for x in (have[name], want))
                    assert np.abs(a - w).max() < 1e-4 * max(1, np.abs(w).max()), f'{name} of item {b} with {total} positions'
            caches = dict(zip(self.old, wants[1:]))


MODELS = {
    'llama': {}, 'mistral': {'window': 4}, 'phi3': {'long_rope': True}, 'qwen2': {'separate': True}, 'qwen3': {'norms': True},
    'gemma2': {'softcap': 20., 'window': 4, 'gelu': True, 'separate': True}, 'gpt_oss': {'sinks': True, 'window': 4},
    'zeros': {'zeros': True}, 'block_16': {'block': 16, 'zeros': True}, 'block_64': {'block': 64}, 'block_128': {'block': 128, 'width': 128, 'hidden': 256},
    'bits_8': {'bits': 8}, 'floats': {'bits': 0}}


@pytest.mark.parametrize('name', MODELS)
def test_decoder(name, tmp_path):
    Decoder(**MODELS[name]).check(tmp_path)


def test_decoder_of_a_batch(tmp_path):
    Decoder().check(tmp_path, 2)


@pytest.mark.parametrize('name', ['llama', 'phi3', 'qwen3', 'gemma2', 'gpt_oss'])
@pytest.mark.parametrize('batch', [1, 2])
def test_decoder_with_buffers(name, batch, tmp_path):
    Decoder(**MODELS[name]).check(tmp_path, batch, 16)
