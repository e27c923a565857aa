"""Random ONNX models: chains and joins of nodes with random attributes, at opsets 9 to 22, of fixed or open sizes.

Each node is run by ONNX Runtime as it is added, and left out when ONNX Runtime refuses it, so that models are valid, and the
sizes and types of all tensors known. families of nodes: random_model_<family>.py, each with a dict NODES of functions
f(m: RandomModel) -> bool, which add one and say whether ONNX Runtime took it.
"""
import importlib
import pathlib
import warnings

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

warnings.filterwarnings('ignore')
OPSETS = (9, 11, 12, 13, 14, 16, 17, 18, 19, 20, 21, 22)
IR = {9: 4, 11: 6, 12: 7, 13: 7, 14: 7, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10}


def session(model):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return ort.InferenceSession(model.SerializeToString(), options, providers=['CPUExecutionProvider'])


def run_ort(model, feed):
    """Arrays of the outputs, or None when ONNX Runtime refuses."""
    try:
        return session(model).run(None, feed)
    except Exception:  # its own classes, of no common base
        return None


def value_info(name, array, shape=None):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape if shape is None else shape)


class RandomModel:
    def __init__(self, seed, nodes=6, only=None):
        self.rng = np.random.default_rng(seed)
        self.opset = int(self.pick(*OPSETS))
        self.values, self.inputs, self.constants, self.nodes, self.made = {}, [], {}, [], []
        self.count = 0
        for _ in range(self.number(1, 2)):
            self.input(self.data(*self.random_shape()))
        table = {k: f for k, f in families().items() if only is None or k == only}
        names = sorted(table)
        for _ in range(nodes * 6):
            if len(self.nodes) >= nodes:
                break
            table[names[self.rng.integers(len(names))]](self)

    # ---- random choices
    def pick(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def number(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def chance(self, share=0.5):
        return self.rng.random() < share

    def real(self, low=-2.0, high=2.0):
        return float(np.float32(self.rng.uniform(low, high)))

    def data(self, *shape, low=-1.0, high=1.0):
        return self.rng.uniform(low, high, shape).astype(np.float32)

    def random_shape(self):
        ranks = self.pick(1, 2, 3, 3, 4, 4, 4, 5)
        shape = [self.number(1, 9) for _ in range(ranks)]
        if ranks > 1 and self.chance(0.4):
            shape[1] = self.pick(8, 16, 12, 4)
        if ranks > 1 and self.chance(0.7):
            shape[0] = 1
        return shape

    def axis(self, rank):
        """One of -rank to rank - 1."""
        return self.number(-rank, rank - 1)

    def some_axes(self, rank, least=1):
        axes = self.rng.permutation(rank)[:self.number(least, rank)]
        return [int(a) - (rank if self.chance(0.3) else 0) for a in axes]

    # ---- tensors
    def new_name(self, kind):
        self.count += 1
        return f'{kind}{self.count}'

    def input(self, array):
        name = self.new_name('in')
        self.values[name] = array
        self.inputs.append(name)
        return name

    def constant(self, array):
        name = self.new_name('c')
        self.values[name] = self.constants[name] = np.asarray(array)
        return name

    def ints(self, *values):
        return self.constant(np.asarray(values, np.int64))

    def tensor(self, ranks=None, types=(np.float32,), where=lambda x: True):
        """The name of a tensor that was made before, the newest most likely; None if there is none of the kind."""
        fits = [name for name, x in self.values.items()
                if name not in self.constants and x.dtype.type in types and (ranks is None or x.ndim in ranks)
                and 0 < x.size <= 20000 and where(x)]
        if not fits:
            return None
        return fits[-1] if self.chance(0.6) else fits[self.rng.integers(len(fits))]

    def shaped(self, *ranks, where=lambda x: True):
        """As tensor(); a new input if there is none."""
        name = self.tensor(ranks, where=where)
        if name is None and len(self.inputs) < 4:
            for _ in range(20):
                x = self.data(*[self.number(1, 8) for _ in range(self.pick(*ranks))])
                if where(x):
                    return self.input(x)
        return name

    def add(self, op, inputs, outputs=1, domain='', **attributes):
        """Whether ONNX Runtime takes the node and its results are worth going on with."""
        if any(i is None for i in inputs):
            return False
        attributes = {k: v for k, v in attributes.items() if v is not None}
        names = [self.new_name('t') for _ in range(outputs)]
        node = helper.make_node(op, inputs, names, name=self.new_name('n'), domain=domain, **attributes)
        used = [i for i in dict.fromkeys(inputs) if i]
        feed = {i: self.values[i] for i in used if i not in self.constants}
        weights = [numpy_helper.from_array(self.constants[i], i) for i in used if i in self.constants]
        graph = helper.make_graph([node], 'g', [value_info(i, x) for i, x in feed.items()],
                                  [helper.make_empty_tensor_value_info(n) for n in names], weights)
        results = run_ort(self.model_of(graph), feed)
        if results is None or any(not isinstance(r, np.ndarray) or r.dtype.kind not in 'fiub' or not 0 < r.size <= 20000 or r.ndim > 6
                                  for r in results):
            return False
        if any(r.dtype.kind == 'f' and (not np.isfinite(r).all() or np.abs(r).max(initial=0) > 1e4) for r in results):
            return False
        self.nodes.append(node)
        self.values.update(zip(names, results))
        self.made += names
        return True

    def model_of(self, graph):
        return helper.make_model(graph, opset_imports=[helper.make_opsetid('', self.opset)], ir_version=IR[self.opset])

    # ---- the model
    def outputs(self):
        read = {i for node in self.nodes for i in node.input}
        return [name for name in self.made if name not in read or self.values[name].size < 3]

    def model(self, open_sizes=False):
        """The whole; inputs with names for some of their sizes if asked."""
        read = {i for node in self.nodes for i in node.input}
        inputs = []
        for name in self.inputs:
            if name in read:
                shape = list(self.values[name].shape)
                if open_sizes:
                    shape = [f'{name}_{k}' if self.chance() else size for k, size in enumerate(shape)]
                inputs.append(value_info(name, self.values[name], shape))
        weights = [numpy_helper.from_array(x, name) for name, x in self.constants.items() if name in read]
        outputs = [value_info(name, self.values[name], [None] * self.values[name].ndim if open_sizes else None)
                   for name in self.outputs()]
        return self.model_of(helper.make_graph(self.nodes, 'g', inputs, outputs, weights))

    def feed(self):
        read = {i for node in self.nodes for i in node.input}
        return {name: self.values[name] for name in self.inputs if name in read}


def families():
    table = {}
    for path in sorted(pathlib.Path(__file__).parent.glob('random_model_*.py')):
        table.update(importlib.import_module(path.stem).NODES)
    return table
