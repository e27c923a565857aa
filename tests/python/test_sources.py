"""Operator facts stand with the operators (traits.h, the columns of the ONNX converter's table), not in lists of names; folders have an order."""
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAYERS = set(re.findall(r'^QUOLL_LAYER(?:_FAST)?\(\d+, (\w+),', (ROOT / 'src/layer/layer_list.inc').read_text(), re.M))
ONNX = {op for path in (ROOT / 'tools/onnx').glob('ops_*.cpp') for op in re.findall(r'\{(?:ms|"[\w.]*"), "(\w+)", \d+, \d+,', path.read_text())}
# Caffe's types are names of its own format.
SOURCES = [path for folder in ('include', 'src', 'tools', 'benchmark', 'examples') for path in sorted((ROOT / folder).rglob('*'))
           if path.suffix in ('.cpp', '.h', '.inc') and 'caffe' not in path.parts]
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def code_of(path):
    return re.sub(r'//[^\n]*', '', path.read_text())


def place(path, text, at):
    return f'{path.relative_to(ROOT)}:{text.count(chr(10), 0, at) + 1}'


def lists_of(names, text, least):
    """Where `least` string literals, all of them among `names`, stand with nothing but commas and blanks between."""
    run, end = [], None
    for found in STRING.finditer(text):
        follows = end is not None and text[end:found.start()].strip() == ','
        run = run + [found] if follows else [found]
        end = found.end()
        if not found[1] in names:
            run = []
        if len(run) == least:
            yield run[0].start()


def complaints(check):
    return [place(path, text, at) for path in SOURCES for text in [code_of(path)] for at in check(path, text)]


def test_the_checks_find_what_they_look_for():
    assert len(LAYERS) > 150 and len(ONNX) > 150 and len(SOURCES) > 500
    assert list(lists_of({'A', 'B'}, 'x = {"A", \n "B"};', 2)) == [5]
    assert not list(lists_of({'A', 'B'}, 'f("A"); g("B", "c", "A")', 2))


def test_no_lists_of_layer_types():
    def check(path, text):
        # A pattern names an operator of ONNX and the layer that it becomes; converters name what they emit.
        onnx = 'onnx' in path.parts
        return [] if onnx and path.name.startswith('ops_') else lists_of(LAYERS, text, 3 if onnx else 2)

    assert complaints(check) == []


def test_no_lists_of_onnx_operators():
    def check(path, text):
        return lists_of(ONNX, text, 3) if 'onnx' in path.parts else []

    assert complaints(check) == []


@pytest.mark.parametrize('question', [
    r'(?:\.|->)type\s*[=!]=\s*"',            # layer.type == "Input"
    r'"\s*[=!]=\s*\w+(?:\.|->)type\b',
    r'layer_to_index\(\s*"',                 # layer.typeindex == layer_to_index("Input")
    r'strcmp\((?:[^;]*(?:\.|->)type\b[^;]*"|[^;]*"[^;]*(?:\.|->)type\b)',
])
def test_types_are_asked_for_by_class(question):
    assert complaints(lambda path, text: (m.start() for m in re.finditer(question, text))) == []


def test_no_casts_to_operators():
    """as<T>() asks first. A class may cast itself (T) or to its base."""
    classes = set()
    for path in (ROOT / 'src/layer').rglob('*.h'):
        classes |= set(re.findall(r'^class (\w+)(?: final)? : public', path.read_text(), re.M))
    assert len(classes) > 150

    def check(path, text):
        for found in re.finditer(r'(?:static_cast|reinterpret_cast)<\s*(?:const )?(\w+)(?: const)?\s*[*&]\s*>', text):
            if found[1] in classes and not (path.parent.parent.name == 'layer' and f'class {found[1]} ' in text):
                yield found.start()

    assert complaints(check) == []


# ---------------------------------------------------------------- folders

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.M)


def includes_of(root):
    """(file, included path) for every #include "..." below root."""
    return [(path, name) for path in sorted(root.rglob('*')) if path.suffix in ('.cpp', '.h', '.inc', '.S')
            for name in INCLUDE.findall(path.read_text())]


def cycle_in(edges):
    """The nodes of a cycle of the graph, in order, or None. edges: node -> nodes."""
    done, path = set(), []

    def visit(node):
        if node in path:
            return path[path.index(node):] + [node]
        if node in done:
            return None
        path.append(node)
        found = next(filter(None, map(visit, sorted(edges.get(node, ())))), None)
        path.pop()
        done.add(node)
        return found

    return next(filter(None, map(visit, sorted(edges))), None)


def test_no_include_cycle_between_folders():
    assert cycle_in({'a': {'b'}, 'b': {'c'}, 'c': {'b'}}) == ['b', 'c', 'b'] and not cycle_in({'a': {'b', 'c'}, 'b': {'c'}})
    edges, why = {}, {}
    for path, name in includes_of(ROOT / 'src'):
        included = ROOT / 'src' / name
        if included.is_file() and included.parent != path.parent:
            here, there = (str(p.parent.relative_to(ROOT)) for p in (path, included))
            edges.setdefault(here, set()).add(there)
            why.setdefault((here, there), f'{path.relative_to(ROOT)} includes {name}')
    assert len(edges) > 20
    cycle = cycle_in(edges)
    assert not cycle, [why[pair] for pair in zip(cycle, cycle[1:])]
    # Passes and plans know back ends through quoll/backend.h and what layers answer.
    assert not [reason for (here, there), reason in why.items() if here in ('src/graph', 'src/plan')
                and re.match('src/(gpu|layer/(cpu|x86|arm|vulkan))', there)]


def test_includes_are_spelled_from_the_root():
    """Headers are named by their path from src or include; but for generated ones and the library that simd hides."""
    generated = {'enabled_layers.inc', 'isa_list.inc', 'built_families.inc', 'layer_families.inc', 'quoll/platform.h', 'quoll/ncnn/layer_type_enum.h', 'spirv/shaders.inc'}
    for path, name in includes_of(ROOT / 'src') + includes_of(ROOT / 'include'):
        if path.parent == ROOT / 'include/quoll/ncnn' and (path.parent / name).is_file():
            continue  # as programs for ncnn include them
        if path.parent == ROOT / 'src/simd' and name.startswith('hwy/'):
            continue
        root = 'include' if name.startswith('quoll/') else 'src'
        assert name in generated or (ROOT / root / name).is_file(), f'{path}: {name}'
        assert root == 'include' or 'include' not in path.parts, f'{path}: {name} is not public'


def test_rooms_hold_operators_or_what_they_share():
    listed = set(re.findall(r'^QUOLL_LAYER\w*\(\d+, \w+, (\w+/\w+)\)', (ROOT / 'src/layer/layer_list.inc').read_text(), re.M))
    rooms = {name.split('/')[0] for name in listed}
    assert len(listed) > 130 and not rooms & {'common', 'cpu', 'x86', 'arm', 'vulkan'}
    headers = {str(path.relative_to(ROOT / 'src/layer').with_suffix('')) for room in rooms for path in (ROOT / 'src/layer' / room).glob('*.h')}
    assert headers <= listed
    assert not [path for path in (ROOT / 'src').iterdir() if path.is_file() and path.name != 'CMakeLists.txt']
    assert {path.name for path in (ROOT / 'src/layer').iterdir() if path.is_file()} == {'layer_list.inc'}


def test_shaders_find_nan_by_its_bits():
    """is_nan() of math.glsl: a driver may take isnan() for false, since shaders ask for no SignedZeroInfNanPreserve."""
    shaders = [path for path in (ROOT / 'src/layer/vulkan/shader').rglob('*') if path.suffix in ('.comp', '.glsl')]
    assert len(shaders) > 50
    assert [path.name for path in shaders if re.search(r'\bis(nan|inf)\(', code_of(path))] == []
