#!/usr/bin/env python3
"""Runs the official ONNX test cases through onnx2engine and enginerun.

Usage: run_node_tests.py [--generated] [--one-each] [--jobs N] [--filter TEXT] [--list-failures] [FOLDER...]

FOLDER holds cases as Debian's libonnx-testdata has them (default: node, simple, pytorch-operator and
pytorch-converted of that package). --generated: the cases that the onnx Python package makes, besides. --one-each: one case for each set of operators.
QUOLL_TEST_GPU=N: on a Vulkan device (onnx_run.py).
A case passes when every output has the declared type, shape and values at the case's tolerance (rtol 1e-3, atol
1e-7 where it says none). expected_failures.txt lists those that are known not to, with the reason; a case that is
listed and passes is an error, too, so that the list stays true; debian:NAME and generated:NAME are of one origin.
The last line is the share of inference operators on numeric tensors that pass: all cases but those listed as outside.
Exit code 0: all others pass.
"""
import argparse
import concurrent.futures
import fnmatch
import pathlib
import sys
import tempfile
import warnings

import numpy as np
import onnx
from onnx import numpy_helper

from onnx_run import Failure, convert, run

DEBIAN = pathlib.Path('/usr/lib/python3/dist-packages/onnx/backend/test/data')
GROUPS = ['node', 'simple', 'pytorch-operator', 'pytorch-converted']
OUTSIDE = 'outside: '
LIST = pathlib.Path(__file__).with_name('expected_failures.txt')


class Case:
    def __init__(self, name, load, rtol=1e-3, atol=1e-7):
        self.name, self.load, self.rtol, self.atol = name, load, rtol, atol
        self.frozen, self.origin = False, 'debian'


def read_value(path, info):
    """The array of a .pb file, None when it is no tensor."""
    if not info.type.HasField('tensor_type'):
        return None
    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return numpy_helper.to_array(tensor)


def folder_case(folder):
    def load():
        path = folder / 'model.onnx'
        model = onnx.load(path)
        sets = []
        for data in sorted(folder.glob('test_data_set_*')):
            given = [read_value(data / f'input_{i}.pb', v) for i, v in enumerate(model.graph.input)
                     if (data / f'input_{i}.pb').exists()]
            wanted = [read_value(data / f'output_{i}.pb', v) for i, v in enumerate(model.graph.output)]
            sets.append((given, wanted))
        return model, sets
    return Case(folder.name, load)


def generated_cases():
    from onnx.backend.test.case.node import collect_testcases

    def arrays(case):
        return case.model, [[[numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v for v in values]
                             for values in data] for data in case.data_sets]
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # the package's own data overflows on purpose
        cases = collect_testcases(None)
    for case in cases:
        made = Case(case.name, lambda case=case: arrays(case), case.rtol, case.atol)
        made.origin = 'generated'
        yield made


def compare(name, have, want, case):
    want = np.asarray(want)
    if have.dtype != want.dtype or have.shape != want.shape:
        raise Failure(f'{name}: got {have.dtype}{list(have.shape)}, expected {want.dtype}{list(want.shape)}')
    if want.dtype == np.float64:  # computed in float32: what is beyond it is infinite, or 0
        with np.errstate(over='ignore', under='ignore'):
            want = want.astype(np.float32)
    np.testing.assert_allclose(have.astype(np.float64), want.astype(np.float64), case.rtol, case.atol)


def plain_array(array, info):
    """Types that NumPy lacks as programs are given them: the values as float32, or as integers of a byte."""
    kind = info.type.tensor_type.elem_type
    if not isinstance(array, np.ndarray) or array.dtype.isbuiltin == 1 and kind != onnx.TensorProto.BFLOAT16:
        return array
    if kind == onnx.TensorProto.BFLOAT16 and array.dtype == np.uint16:  # its bits
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype({'int': np.int8, 'uin': np.uint8}.get(array.dtype.name[:3], np.float32))


def used_inputs(net):
    """Inputs that some layer reads: of the others only sizes and types mattered."""
    layers = [line.split() for line in open(net[0]).read().splitlines()[2:]]
    return {blob for words in layers for blob in words[4:4 + int(words[2])]}


def convert_case(case, path, inputs, folder):
    """The net, and the names of inputs that were made constants: parameters such as axes and pads, which the converter
    has to know, are inputs of the official cases."""
    try:
        return convert(path, folder), []
    except Failure as e:
        if not any(words in str(e) for words in ('not constant', 'no constant', 'unknown size', 'not known',
                                            'known only at run time')):
            raise
    graph = onnx.load(path).graph
    every = all(a.size == 1 for a in inputs.values())  # sizes and numbers alone, as of MelWeightMatrix
    first = '' if every or any(node.op_type == 'Loop' for node in graph.node) else graph.input[0].name
    frozen = [n for n, a in inputs.items() if n != first and (a.size <= 16 or a.dtype.kind != 'f') and a.size > 0]
    options = []
    for n in frozen:
        file = pathlib.Path(folder) / f'constant_{len(options)}.npy'
        np.save(file, inputs[n])
        options += ['--constant', f'{n}={file}']
    net = convert(path, folder, *options)
    case.frozen = True
    return net, frozen


def run_case(case):
    """'' when the case passes, else what went wrong."""
    try:
        model, sets = case.load()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'model.onnx'
            onnx.save(model, path)
            initialized = {t.name for t in model.graph.initializer}
            names = [v.name for v in model.graph.input if v.name not in initialized]
            for given, wanted in sets:
                inputs = {v.name: plain_array(a, v) for v, a in zip(model.graph.input, given) if v.name in names}
                net, frozen = convert_case(case, path, inputs, folder)
                inputs = {n: a for n, a in inputs.items() if n not in frozen and n in used_inputs(net)}
                have = run(net, inputs, [v.name for v in model.graph.output], folder)
                for value, want in zip(model.graph.output, wanted):
                    compare(value.name, have[value.name], plain_array(want, value), case)
    except Failure as e:
        return str(e)
    except AssertionError as e:
        return ' '.join(str(e).split())[:300]
    except Exception as e:  # a case that cannot be read is one that fails
        return f'{type(e).__name__}: {e}'[:300]
    return ''


def operators(case):
    try:
        return frozenset(node.op_type for node in case.load()[0].graph.node)
    except Exception:  # run_case() says why
        return case.name


def expected_failures():
    """Patterns of names, with the reason; one that begins with OUTSIDE means no inference operator on numeric tensors."""
    expected = {}
    for line in LIST.read_text().splitlines():
        if line.strip() and not line.startswith('#'):
            pattern, _, reason = line.partition(' ')
            expected[pattern] = reason.strip()
    return expected


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('folders', nargs='*', type=pathlib.Path)
    parser.add_argument('--generated', action='store_true')
    parser.add_argument('--one-each', action='store_true')
    parser.add_argument('--jobs', type=int, default=2)
    parser.add_argument('--filter', default='')
    parser.add_argument('--list-failures', action='store_true', help='every case that fails, expected or not')
    arguments = parser.parse_args()
    folders = arguments.folders or [DEBIAN / group for group in GROUPS]
    missing = [str(root) for root in folders if not root.is_dir()]
    if missing:
        parser.error(f"{', '.join(missing)}: no such folder (Debian's package libonnx-testdata has the official cases)")
    cases = {case.name: case for root in folders for case in map(folder_case, sorted(root.iterdir()))}
    if arguments.generated:
        cases.update({case.name: case for case in generated_cases()})
    chosen = [case for name, case in sorted(cases.items()) if arguments.filter in name]
    if arguments.one_each:
        chosen = list({operators(case): case for case in chosen}.values())
    expected = expected_failures()
    passed, known, outside, wrong = 0, 0, 0, []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for case, why in zip(chosen, pool.map(run_case, chosen)):
            names = case.name, f'{case.origin}:{case.name}'
            pattern = next((p for p in expected if any(fnmatch.fnmatch(n, p) for n in names)), None)
            if why and arguments.list_failures:
                print(case.name, '|', why)
            passed += not why
            if why and pattern is not None:
                known += 1
                outside += expected[pattern].startswith(OUTSIDE)
            elif why:
                wrong.append(f'{case.name}: {why}')
            elif pattern is not None:
                wrong.append(f'{case.name}: passes, but is listed in {LIST.name}')
    print(f'{len(chosen)} cases: {passed} pass, {known} fail as expected, {len(wrong)} wrong; '
          f'{sum(case.frozen for case in chosen)} with parameters made constant')
    if not arguments.list_failures and wrong:
        print('\n'.join(wrong))
    inside = len(chosen) - outside
    print(f'inference operators on numeric tensors: {passed} of {inside} pass ({100 * passed / max(inside, 1):.1f} %)')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
