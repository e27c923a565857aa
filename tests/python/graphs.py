"""Param files without weights, and what is known of them without running them."""
import pathlib

import numpy as np

from conftest import DATA, ROOT, last_line, run_program

BUNDLED = sorted((ROOT / 'benchmark' / 'models').glob('*.param'))
SHARED = sorted((DATA / 'models/ncnn-bench').glob('*.param')) if DATA else []
# Inputs whose size the file does not say.
SIZES = {'FastestDet': (3, 352, 352), 'slim_320': (3, 240, 320), 'vision_transformer': (3, 384, 384)}


class Graph:
    """Lines, blobs in order of appearance, inputs with their shapes, and outputs of a text param."""

    def __init__(self, path):
        path = pathlib.Path(path)
        lines = [line.split() for line in path.read_text().splitlines()]
        self.lines = lines[2:2 + int(lines[1][0])]  # what follows is not part of the model
        self.blobs, self.inputs, read = {}, {}, set()
        for words in self.lines:
            bottoms, tops = int(words[2]), int(words[3])
            names = words[4:4 + bottoms + tops]
            self.blobs.update(dict.fromkeys(names))
            read.update(names[:bottoms])
            if words[0] == 'Input':
                sizes = dict(word.split('=') for word in words[4 + tops:])
                shape = tuple(int(sizes[key]) for key in ('2', '1', '0') if int(sizes.get(key, 0)) > 0)
                self.inputs[names[0]] = shape or SIZES.get(path.stem, ())
        self.outputs = [name for name in self.blobs if name not in read]
        self.types = [words[0] for words in self.lines]

    def random_inputs(self, seed=5):
        rng = np.random.default_rng(seed)
        return {name: rng.uniform(-1, 1, shape).astype(np.float32) for name, shape in self.inputs.items()}


def random_weights(param, folder):
    """A .bin for a graph: the benchmark program's weights."""
    shape = Graph(param).inputs
    args = [f'shape=[{",".join(map(str, size[::-1]))}]' for size in shape.values()] if param.stem in SIZES else []
    done = run_program('benchmark', '1', '2', '0', '-1', '0', f'param={param}', *args, '--warmup', '0', '--save-weights', folder)
    assert done.returncode == 0, last_line(done.stderr)
    return folder / f'{param.stem}.bin'
