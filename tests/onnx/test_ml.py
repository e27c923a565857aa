"""Operators of ai.onnx.ml beside ONNX Runtime."""
import numpy as np
import pytest

onnx = pytest.importorskip('onnx')
ort = pytest.importorskip('onnxruntime')
from onnx import TensorProto, helper  # noqa: E402

from onnx_run import Failure, convert, run  # noqa: E402

ort.set_default_logger_severity(4)
ML = 'ai.onnx.ml'


def check(nodes, inputs, outputs, folder, ml=3, tolerance=1e-5):
    """outputs: element types by name."""
    kinds = {n: helper.np_dtype_to_tensor_dtype(a.dtype) for n, a in inputs.items()}
    graph = helper.make_graph(
        nodes, 'g', [helper.make_tensor_value_info(n, kinds[n], ['rows', *a.shape[1:]]) for n, a in inputs.items()],
        [helper.make_tensor_value_info(n, kind, None) for n, kind in outputs.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17), helper.make_opsetid(ML, ml)], ir_version=8)
    onnx.save(model, folder / 'm.onnx')
    session = ort.InferenceSession(str(folder / 'm.onnx'), providers=['CPUExecutionProvider'])
    net = convert(folder / 'm.onnx', folder)
    empty = {n: a[:0] for n, a in inputs.items()}
    for given in (inputs, {n: a[:1] for n, a in inputs.items()}, empty):
        have = run(net, given, list(outputs), folder)
        if given is empty:
            assert all(a.shape[0] == 0 for a in have.values())
            continue
        want = dict(zip(outputs, session.run(list(outputs), given)))
        for name in outputs:
            assert have[name].shape == want[name].shape and have[name].dtype == want[name].dtype, name
            np.testing.assert_allclose(have[name], want[name], tolerance, tolerance, err_msg=name)
    return net


def forest(rng, trees, depth, features, outputs, kind, mode='BRANCH_LEQ', positive=False, only=None):
    """Random trees as attributes; kind: 'target' or 'class'."""
    a = {f'nodes_{k}': [] for k in ('treeids', 'nodeids', 'featureids', 'modes', 'values', 'truenodeids', 'falsenodeids',
                                    'missing_value_tracks_true')}
    leaf = {f'{kind}_{k}': [] for k in ('treeids', 'nodeids', 'ids', 'weights')}
    for t in range(trees):
        count = [1]

        def grow(node, level):
            branch = level < depth and (level == 0 or rng.random() < .8)
            children = (count[0], count[0] + 1) if branch else (0, 0)
            count[0] += 2 * branch
            for key, v in (('treeids', t), ('nodeids', node), ('featureids', int(rng.integers(features)) if branch else 0),
                           ('modes', mode if branch else 'LEAF'), ('values', float(np.float32(rng.normal()))),
                           ('truenodeids', children[0]), ('falsenodeids', children[1]),
                           ('missing_value_tracks_true', int(rng.integers(2)) if branch else 0)):
                a['nodes_' + key].append(v)
            if branch:
                for child in children[::-1]:
                    grow(child, level + 1)
                return
            for k in ([only] if only is not None else range(outputs)):
                w = rng.normal()
                for key, v in (('treeids', t), ('nodeids', node), ('ids', k), ('weights', float(np.float32(abs(w) if positive else w)))):
                    leaf[f'{kind}_{key}'].append(v)
        grow(0, 0)
    return {**a, **leaf}


def rows(rng, features=6, count=70, missing=True):
    x = rng.normal(0, 1, (count, features)).astype(np.float32)
    if missing:
        x[rng.random(x.shape) < .1] = np.nan
    return x


@pytest.mark.parametrize('aggregate', ['SUM', 'AVERAGE', 'MIN', 'MAX'])
@pytest.mark.parametrize('outputs', [1, 3])
def test_tree_regressor(aggregate, outputs, tmp_path):
    rng = np.random.default_rng(1)
    node = helper.make_node('TreeEnsembleRegressor', ['x'], ['y'], domain=ML, n_targets=outputs, aggregate_function=aggregate,
                            base_values=[float(v) for v in range(1, outputs + 1)], **forest(rng, 9, 5, 6, outputs, 'target'))
    check([node], {'x': rows(rng)}, {'y': TensorProto.FLOAT}, tmp_path)


@pytest.mark.parametrize('mode', ['BRANCH_LT', 'BRANCH_GTE', 'BRANCH_GT', 'BRANCH_EQ', 'BRANCH_NEQ'])
def test_comparisons(mode, tmp_path):
    rng = np.random.default_rng(2)
    attributes = forest(rng, 5, 4, 6, 1, 'target', mode)
    attributes['nodes_values'] = [float(round(v)) for v in attributes['nodes_values']]
    x = rng.integers(-2, 3, (40, 6)).astype(np.float32)
    node = helper.make_node('TreeEnsembleRegressor', ['x'], ['y'], domain=ML, n_targets=1, **attributes)
    check([node], {'x': x}, {'y': TensorProto.FLOAT}, tmp_path)


@pytest.mark.parametrize('transform', ['NONE', 'SOFTMAX', 'LOGISTIC'])
@pytest.mark.parametrize('classes', [3, 5])
def test_tree_classifier(transform, classes, tmp_path):
    rng = np.random.default_rng(3)
    node = helper.make_node('TreeEnsembleClassifier', ['x'], ['label', 'y'], domain=ML, post_transform=transform,
                            classlabels_int64s=[10 * v + 7 for v in range(classes)], **forest(rng, 7, 4, 6, classes, 'class'))
    check([node], {'x': rows(rng)}, {'label': TensorProto.INT64, 'y': TensorProto.FLOAT}, tmp_path)


@pytest.mark.parametrize('transform', ['NONE', 'LOGISTIC'])
@pytest.mark.parametrize('positive', [False, True])
@pytest.mark.parametrize('base', [[], [.25]])
def test_tree_classifier_of_two(transform, positive, base, tmp_path):
    rng = np.random.default_rng(4)
    more = {'base_values': base} if base else {}
    node = helper.make_node('TreeEnsembleClassifier', ['x'], ['label', 'y'], domain=ML, post_transform=transform,
                            classlabels_int64s=[3, 8], **more,
                            **forest(rng, 1 if positive else 7, 4, 6, 2, 'class', positive=positive, only=0))
    check([node], {'x': rows(rng)}, {'label': TensorProto.INT64, 'y': TensorProto.FLOAT}, tmp_path)


@pytest.mark.parametrize('positive', [False, True])
def test_tree_classifier_of_which_the_second_has_scores(positive, tmp_path):
    rng = np.random.default_rng(12)
    node = helper.make_node('TreeEnsembleClassifier', ['x'], ['label', 'y'], domain=ML, classlabels_int64s=[3, 8],
                            **forest(rng, 3, 4, 6, 2, 'class', positive=positive, only=1))
    check([node], {'x': rows(rng)}, {'label': TensorProto.INT64, 'y': TensorProto.FLOAT}, tmp_path)


def test_newest_trees(tmp_path):
    rng = np.random.default_rng(5)
    tensor = lambda kind, values: helper.make_tensor('t', kind, [len(values)], values)
    # Two trees: 0 -> (1 -> leaves 0, 1), leaf 2; 2 -> leaf 3, leaf 0.
    node = helper.make_node(
        'TreeEnsemble', ['x'], ['y'], domain=ML, n_targets=2, aggregate_function=1, post_transform=0, tree_roots=[0, 2],
        nodes_featureids=[0, 2, 1], nodes_modes=tensor(TensorProto.UINT8, [0, 1, 3]), nodes_splits=tensor(TensorProto.FLOAT, [.1, -.2, .3]),
        nodes_truenodeids=[1, 0, 3], nodes_trueleafs=[0, 1, 1], nodes_falsenodeids=[2, 1, 0], nodes_falseleafs=[1, 1, 1],
        nodes_missing_value_tracks_true=[0, 1, 1], leaf_targetids=[0, 1, 1, 0], leaf_weights=tensor(TensorProto.FLOAT, [1., 2., 4., 8.]))
    check([node], {'x': rows(rng, 3)}, {'y': TensorProto.FLOAT}, tmp_path, ml=5)


@pytest.mark.parametrize('missing', [0, 1])
def test_sets_of_numbers(missing, tmp_path):
    tensor = lambda kind, values: helper.make_tensor('t', kind, [len(values)], values)
    # 0: x0 in {1, 5, 7} -> (1: x1 in {2} -> leaves 0, 1), (2: x0 <= 3 -> leaves 2, 3)
    node = helper.make_node(
        'TreeEnsemble', ['x'], ['y'], domain=ML, n_targets=1, aggregate_function=1, post_transform=0, tree_roots=[0],
        nodes_featureids=[0, 1, 0], nodes_modes=tensor(TensorProto.UINT8, [6, 6, 0]), nodes_splits=tensor(TensorProto.FLOAT, [0., 0., 3.]),
        membership_values=tensor(TensorProto.FLOAT, [1., 5., 7., np.nan, 2., np.nan]),
        nodes_truenodeids=[1, 0, 2], nodes_trueleafs=[0, 1, 1], nodes_falsenodeids=[2, 1, 3], nodes_falseleafs=[0, 1, 1],
        nodes_missing_value_tracks_true=[missing, missing, 0], leaf_targetids=[0, 0, 0, 0],
        leaf_weights=tensor(TensorProto.FLOAT, [10., 20., 30., 40.]))
    numbers = [0., 1., 2., 3., 5., 6., 7., np.nan]
    x = np.array([(a, b) for a in numbers for b in numbers], np.float32)
    path = tmp_path / 'm.onnx'
    graph = helper.make_graph([node], 'g', [helper.make_tensor_value_info('x', TensorProto.FLOAT, x.shape)],
                              [helper.make_tensor_value_info('y', TensorProto.FLOAT, [len(x), 1])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 18), helper.make_opsetid(ML, 5)], ir_version=10), path)
    belongs = lambda v, numbers: v in numbers or (np.isnan(v) and missing)
    want = [(10 if belongs(b, (2,)) else 20) if belongs(a, (1, 5, 7)) else 30 if a <= 3 else 40 for a, b in x]
    have = run(convert(path, tmp_path), {'x': x}, ['y'], tmp_path)['y']
    assert np.array_equal(have[:, 0], np.array(want, np.float32))


@pytest.mark.parametrize('transform', ['NONE', 'SOFTMAX', 'LOGISTIC'])
def test_linear(transform, tmp_path):
    rng = np.random.default_rng(6)
    w, b = rng.normal(0, 1, 18).tolist(), rng.normal(0, 1, 3).tolist()
    x = {'x': rows(rng, missing=False)}
    node = helper.make_node('LinearClassifier', ['x'], ['label', 'y'], domain=ML, coefficients=w, intercepts=b, post_transform=transform,
                            classlabels_ints=[4, 2, 9])
    check([node], x, {'label': TensorProto.INT64, 'y': TensorProto.FLOAT}, tmp_path, ml=1)
    node = helper.make_node('LinearRegressor', ['x'], ['y'], domain=ML, coefficients=w, intercepts=b, targets=3, post_transform=transform)
    check([node], x, {'y': TensorProto.FLOAT}, tmp_path, ml=1)


@pytest.mark.parametrize('kernel', ['LINEAR', 'RBF', 'POLY', 'SIGMOID'])
def test_support_vectors(kernel, tmp_path):
    rng = np.random.default_rng(7)
    node = helper.make_node('SVMRegressor', ['x'], ['y'], domain=ML, kernel_type=kernel, kernel_params=[.3, .5, 2.], n_supports=5,
                            support_vectors=rng.normal(0, 1, 30).tolist(), coefficients=rng.normal(0, 1, 5).tolist(), rho=[.7])
    check([node], {'x': rows(rng, missing=False)}, {'y': TensorProto.FLOAT}, tmp_path, ml=1, tolerance=1e-4)


@pytest.mark.parametrize('norm', ['MAX', 'L1', 'L2'])
def test_normalizer(norm, tmp_path):
    x = np.abs(rows(np.random.default_rng(8), missing=False))
    x[3] = 0
    check([helper.make_node('Normalizer', ['x'], ['y'], domain=ML, norm=norm)], {'x': x}, {'y': TensorProto.FLOAT}, tmp_path, ml=1)


def test_preparations(tmp_path):
    rng = np.random.default_rng(9)
    x = rows(rng)
    one = [float(v) for v in rng.normal(0, 1, 6)]
    check([helper.make_node('Imputer', ['x'], ['a'], domain=ML, imputed_value_floats=one, replaced_value_float=float('nan')),
           helper.make_node('Scaler', ['a'], ['b'], domain=ML, offset=one, scale=[abs(v) + .1 for v in one]),
           helper.make_node('Constant', [], ['at'], value_ints=[4, 0, 1]),
           helper.make_node('ArrayFeatureExtractor', ['b', 'at'], ['c'], domain=ML),
           helper.make_node('Binarizer', ['c'], ['y'], domain=ML, threshold=.1)],
          {'x': x}, {'b': TensorProto.FLOAT, 'c': TensorProto.FLOAT, 'y': TensorProto.FLOAT}, tmp_path, ml=1)


def test_codes(tmp_path):
    rng = np.random.default_rng(10)
    ids = rng.integers(0, 6, (30, 2))
    check([helper.make_node('LabelEncoder', ['x'], ['y'], domain=ML, keys_int64s=[1, 3, 5], values_floats=[.5, -1., 2.], default_float=9.),
           helper.make_node('LabelEncoder', ['x'], ['z'], domain=ML, keys_int64s=[0, 2, 5], values_int64s=[7, 8, 9], default_int64=-4),
           helper.make_node('OneHotEncoder', ['x'], ['h'], domain=ML, cats_int64s=[0, 2, 3, 4], zeros=1)],
          {'x': ids}, {'y': TensorProto.FLOAT, 'z': TensorProto.INT64, 'h': TensorProto.FLOAT}, tmp_path)


def test_code_of_nan(tmp_path):
    """ONNX Runtime finds it from this version on; all of ONNX's definitions compare bits."""
    check([helper.make_node('LabelEncoder', ['x'], ['y'], domain=ML, keys_floats=[2.5, float('nan'), 1.], values_int64s=[7, 8, 9]),
           helper.make_node('LabelEncoder', ['x'], ['z'], domain=ML, keys_floats=[float('nan')], values_floats=[.5], default_float=4.)],
          {'x': np.float32([[1, np.nan], [7, 2.5], [np.nan, np.inf]])}, {'y': TensorProto.INT64, 'z': TensorProto.FLOAT}, tmp_path, ml=4)


def test_damaged_trees_are_refused(tmp_path):
    rng = np.random.default_rng(11)
    good = forest(rng, 2, 3, 6, 1, 'target')
    at = good['nodes_modes'].index('BRANCH_LEQ')
    for key, value, message in (('nodes_truenodeids', 99, 'leads nowhere'), ('nodes_modes', 'BRANCH_MEMBER', 'nodes_modes'),
                                ('nodes_truenodeids', 0, 'no tree reaches'), ('target_ids', 4, 'output 4 of 1')):
        bad = {**good, key: list(good[key])}
        bad[key][at if key.startswith('nodes') else 0] = value
        node = helper.make_node('TreeEnsembleRegressor', ['x'], ['y'], domain=ML, n_targets=1, **bad)
        graph = helper.make_graph([node], 'g', [helper.make_tensor_value_info('x', TensorProto.FLOAT, [None, 6])],
                                  [helper.make_tensor_value_info('y', TensorProto.FLOAT, None)])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17), helper.make_opsetid(ML, 3)], ir_version=8)
        onnx.save(model, tmp_path / 'm.onnx')
        with pytest.raises(Failure, match=message):
            convert(tmp_path / 'm.onnx', tmp_path)


WORDS = np.array([['cat', 'dog'], ['', 'cat'], ['cow', 'dög']], object)
STRINGS = {
    'to whole numbers': ([('LabelEncoder', {'keys_strings': ['dog', 'cat', 'dög'], 'values_int64s': [3, 5, 7], 'default_int64': -9})],
                         TensorProto.INT64),
    'to floats': ([('LabelEncoder', {'keys_strings': ['dog', 'cat'], 'values_floats': [.5, 2.], 'default_float': 9.})],
                  TensorProto.FLOAT),
    'to strings': ([('LabelEncoder', {'keys_strings': ['dog', 'cat'], 'values_strings': ['cow', 'ox'], 'default_string': 'none'})],
                   TensorProto.STRING),
    'to odd strings': ([('LabelEncoder', {'keys_strings': ['dog', 'cat'], 'values_strings': ['a,"b"%2C\n\x7fc', ' '],
                                          'default_string': ','})], TensorProto.STRING),
    'and back': ([('LabelEncoder', {'keys_strings': ['dog', 'cat'], 'values_int64s': [1, 2]}),
                  ('LabelEncoder', {'keys_int64s': [2, 1, -1], 'values_strings': ['felis', 'canis', '?']})], TensorProto.STRING),
    'categories': ([('OneHotEncoder', {'cats_strings': ['dog', 'cow', 'cat']})], TensorProto.FLOAT),
    'mapped': ([('CategoryMapper', {'cats_strings': ['dog', 'cow'], 'cats_int64s': [4, 6], 'default_int64': 1})],
               TensorProto.INT64),
    'moved': ([('Transpose', {'perm': [1, 0]}), ('Flatten', {'axis': 0})], TensorProto.STRING),
}


@pytest.mark.parametrize('name', sorted(STRINGS))
def test_strings(name, tmp_path):
    """They are places in the table of the model's Input and Output layers, what is not in it is -1."""
    ops, kind = STRINGS[name]
    ml = ('LabelEncoder', 'OneHotEncoder', 'CategoryMapper')
    nodes = [helper.make_node(op, ['x' if i == 0 else f'v{i}'], ['y' if i + 1 == len(ops) else f'v{i + 1}'],
                              domain=ML if op in ml else '', **attributes) for i, (op, attributes) in enumerate(ops)]
    if name == 'moved':
        nodes = [helper.make_node('Constant', [], ['cat'], value_string=b'cat'),
                 helper.make_node('Constant', [], ['others'], value_strings=[b'ox', b'cow']),
                 helper.make_node('Equal', ['x', 'cat'], ['same']),
                 helper.make_node('Where', ['same', 'x', 'others'], ['chosen']), *nodes]
        nodes[4].input[0] = 'chosen'
    outputs = [helper.make_tensor_value_info('y', kind, None)]
    if name == 'moved':
        outputs += [helper.make_tensor_value_info('same', TensorProto.BOOL, None)]
    graph = helper.make_graph(nodes, 'g', [helper.make_tensor_value_info('x', TensorProto.STRING, ['rows', 2])], outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 21), helper.make_opsetid(ML, 2)], ir_version=10)
    onnx.save(model, tmp_path / 'm.onnx')
    session = ort.InferenceSession(str(tmp_path / 'm.onnx'), providers=['CPUExecutionProvider'])
    net = convert(tmp_path / 'm.onnx', tmp_path)
    names = [o.name for o in outputs]
    for x in (WORDS, WORDS[:1]):
        have = run(net, {'x': x}, names, tmp_path)
        for key, want in zip(names, session.run(names, {'x': x})):
            assert have[key].shape == want.shape, key
            np.testing.assert_array_equal(have[key], want, err_msg=key)


def test_two_inputs_of_strings(tmp_path):
    """What the model does not name has no number of its own."""
    inputs = [helper.make_tensor_value_info(n, TensorProto.STRING, [2]) for n in 'ab']
    graph = helper.make_graph([helper.make_node('Equal', ['a', 'b'], ['y'])], 'g', inputs,
                              [helper.make_tensor_value_info('y', TensorProto.BOOL, [2])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 19)], ir_version=9), tmp_path / 'm.onnx')
    with pytest.raises(Failure, match='strings of which none is constant'):
        convert(tmp_path / 'm.onnx', tmp_path)


GRAMS = {'ngram_counts': [0, 3], 'ngram_indexes': [6, 1, 0, 5, 3], 'max_skip_count': 2}
NUMBERS = [4, 2, 3, 2, 3, 4, 4]
VECTORS = {
    'one word': {'mode': 'TF', 'min_gram_length': 1, 'max_gram_length': 1, **GRAMS, 'max_skip_count': 0},
    'one and two': {'mode': 'TF', 'min_gram_length': 1, 'max_gram_length': 2, **GRAMS},
    'two with weights': {'mode': 'TFIDF', 'min_gram_length': 2, 'max_gram_length': 2, 'weights': [.5, 2., 3., 4., 5.], **GRAMS},
    'whether there': {'mode': 'IDF', 'min_gram_length': 1, 'max_gram_length': 2, 'weights': [.5, 2., 3., 4., 5.], **GRAMS},
    'whether there, without weights': {'mode': 'IDF', 'min_gram_length': 1, 'max_gram_length': 2, **GRAMS},
}


@pytest.mark.parametrize('kind', ['strings', 'int64', 'int32'])
@pytest.mark.parametrize('name', sorted(VECTORS))
def test_counts_of_n_grams(name, kind, tmp_path):
    x = np.random.default_rng(3).integers(1, 6, (5, 9))
    x[0, :4] = [2, 3, 2, 3]
    attributes = dict(VECTORS[name])
    if kind == 'strings':
        x = np.array([[f'w{v}' for v in row] for row in x], object)
        attributes['pool_strings'] = [f'w{v}' for v in NUMBERS]
    else:
        x = x.astype(kind)
        attributes['pool_int64s'] = NUMBERS
    element = TensorProto.STRING if kind == 'strings' else helper.np_dtype_to_tensor_dtype(x.dtype)
    for i, (shape, given) in enumerate({(5, 9): x, ('rows', 'words'): x[:2, :2], (9,): x[1]}.items()):
        graph = helper.make_graph([helper.make_node('TfIdfVectorizer', ['x'], ['y'], **attributes)], 'g',
                                  [helper.make_tensor_value_info('x', element, shape)],
                                  [helper.make_tensor_value_info('y', TensorProto.FLOAT, None)])
        path = tmp_path / f'm{i}.onnx'
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8), path)
        want = ort.InferenceSession(str(path), providers=['CPUExecutionProvider']).run(None, {'x': given})[0]
        have = run(convert(path, tmp_path), {'x': given}, ['y'], tmp_path)['y']
        assert have.shape == want.shape
        np.testing.assert_array_equal(have, want)


@pytest.mark.parametrize('op, attributes, message', [
    ('TfIdfVectorizer', {'pool_int64s': [1], 'ngram_counts': [0], 'ngram_indexes': [0]}, 'n-grams of numbers for an input of string'),
    ('TfIdfVectorizer', {'pool_strings': ['a', 'b'], 'ngram_counts': [0], 'ngram_indexes': [0]}, 'ngram_indexes: 1, none for n-gram 1'),
    ('TfIdfVectorizer', {'pool_strings': ['a', 'b'], 'ngram_counts': [0], 'ngram_indexes': [0, 0]}, 'stands for two n-grams'),
    ('TfIdfVectorizer', {'pool_strings': ['a'], 'ngram_counts': [0], 'ngram_indexes': [0], 'weights': [1., 2.]}, '2 weights for 1 n-grams'),
    ('TfIdfVectorizer', {'pool_strings': ['a', 'b'], 'ngram_counts': [3], 'ngram_indexes': [0, 1]}, 'at 3 to 2 of 2'),
    ('Cast', {'to': TensorProto.FLOAT}, 'known by its place in a table alone'),
    ('StringNormalizer', {}, 'known by their places in a table alone'),
    *[(op, {}, 'strings, known by their places') for op in ('Relu', 'Neg', 'Abs', 'Sign', 'ReduceMax', 'ReduceSum')],
])
def test_what_strings_cannot_be(op, attributes, message, tmp_path):
    if op == 'TfIdfVectorizer':
        attributes = {'mode': 'TF', 'min_gram_length': 1, 'max_gram_length': 1, 'max_skip_count': 0, **attributes}
    graph = helper.make_graph([helper.make_node(op, ['x'], ['y'], **attributes)], 'g',
                              [helper.make_tensor_value_info('x', TensorProto.STRING, [2])],
                              [helper.make_tensor_value_info('y', TensorProto.FLOAT, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8), tmp_path / 'm.onnx')
    with pytest.raises(Failure, match=message):
        convert(tmp_path / 'm.onnx', tmp_path)
