"""Nets: loading, running, errors, threads, layers in Python."""
import gc
import io
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import quoll

INPUT = 'Input data 0 1 data'


def test_run_and_predict(digits):
    net = quoll.load(*digits, num_threads=1)
    port = net.inputs[0]
    item = np.random.default_rng(0).uniform(0, 1, port.sizes).astype(np.float32)
    (name, result), = net.run({port.name: item}).items()
    assert name == net.output_names()[0] and abs(float(result.sum()) - 1) < 1e-5
    np.testing.assert_array_equal(net.run(item)[name], result)
    np.testing.assert_array_equal(net.run(item.astype(np.float64))[name], result)
    np.testing.assert_allclose(net.predict([item, item]), np.stack([result, result]))
    np.testing.assert_allclose(net.run(np.stack([item, item]))[name].reshape(2, -1), np.stack([result, result]).reshape(2, -1), atol=1e-6)
    assert quoll.run(digits, item).keys() == {name}


@pytest.mark.parametrize('value', [5, -5, 0, np.int64(3), np.array(7, np.uint8), 2.5, np.float32(-1)])
def test_a_number_is_a_blob_of_one_value(small, value):
    """Not a size."""
    net = quoll.load(small(INPUT, 'Noop n 1 1 data out'))
    result = net.run({'data': value})['out']
    assert result.shape == (1,) and result[0] == value
    assert net.run(value)['out'][0] == value


def test_all_ways_to_load(digits):
    param, weights = digits
    item = None
    results = []
    for load in (lambda net: (net.load_param(param), net.load_model(str(weights))),
                 lambda net: (net.load_param(io.BytesIO(param.read_bytes())), net.load_model(io.BytesIO(weights.read_bytes()))),
                 lambda net: (net.load_param_mem(param.read_text()), net.load_model_mem(weights.read_bytes()))):
        net = quoll.Net()
        load(net)
        item = np.full(net.inputs[0].sizes, 0.5, np.float32)
        gc.collect()
        results.append(net.run(item)[net.output_names()[0]])
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_a_blob_that_was_fused_away(digits):
    net = quoll.load(*digits)
    item = np.full(net.inputs[0].sizes, 0.5, np.float32)
    plain = quoll.load(*digits, use_graph_fusion=False)
    np.testing.assert_allclose(net.run(item, ['pw1'])['pw1'], plain.run(item, ['pw1'])['pw1'], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize('dtype', ['>f4', '>f8', '>f2', '>i4', '>i2', np.longdouble])
def test_arrays_of_other_types(small, dtype):
    net = quoll.load(small(INPUT, 'Noop n 1 1 data out'))
    np.testing.assert_array_equal(net.run({'data': np.array([1, -2, 3], dtype)})['out'], [1, -2, 3])


def test_errors_carry_the_reason(tmp_path, small):
    with pytest.raises(quoll.Error, match='cannot open .*none.param'):
        quoll.load(tmp_path / 'none.param')
    with pytest.raises(quoll.Error, match='Nonesuch'):
        quoll.load(small(INPUT, 'Nonesuch n 1 1 data out'))
    net = quoll.load(small(INPUT, 'ReLU relu 1 1 data out'))
    with pytest.raises(quoll.Error, match='inputs.*data.*outputs.*out'):
        net.create_extractor().input('image', np.zeros(3, np.float32))
    with pytest.raises(quoll.Error, match='data'):
        net.create_extractor().extract('out')
    with pytest.raises(TypeError, match='no .fast'):
        quoll.load(small(INPUT), fast=True)
    with pytest.raises(ValueError, match='num_threads'):
        net.opt.num_threads = 0


def test_extractor_keeps_its_net_and_refuses_another_model(small):
    net = quoll.load(small(INPUT, 'ReLU relu 1 1 data out'))
    extractor = net.create_extractor()
    extractor.input('data', np.array([-1, 2], np.float32))
    there = weakref.ref(net)
    del net
    gc.collect()
    assert there() is not None
    np.testing.assert_array_equal(extractor.extract('out').numpy(), [0, 2])
    there().clear()
    with pytest.raises(quoll.Error, match='loaded anew'):
        extractor.extract('out')


def test_a_reader_that_raises(digits):
    class Broken:
        def read(self, size):
            raise OSError('no such disk')

    net = quoll.Net()
    net.load_param(digits[0])
    with pytest.raises(quoll.Error) as caught:
        net.load_model(Broken())
    assert isinstance(caught.value.__cause__, OSError)


def test_layer_in_python(small):
    class Scale(quoll.Layer):
        def load_param(self, params):
            self.factor = params.get(0, 1.0)

        def forward(self, x, y):
            return self.factor * x + y, x - y

    net = quoll.Net()
    net.register_custom_layer('Scale', Scale)
    net.load_param(small('Input a 0 1 a', 'Input b 0 1 b', 'Scale s 2 2 a b sum difference 0=2.5'))
    net.load_model(quoll.DataReaderFromEmpty())
    a, b = np.random.default_rng(0).uniform(-1, 1, (2, 3, 4, 5)).astype(np.float32)
    results = net.run({'a': a, 'b': b})
    np.testing.assert_allclose(results['sum'], np.float32(2.5) * a + b, rtol=1e-6)
    np.testing.assert_array_equal(results['difference'], a - b)
    assert isinstance(net.layers()[2].object, Scale) and net.layers()[0].object is None


def test_layer_in_python_that_raises(small):
    class Broken(quoll.Layer):
        def forward(self, x):
            raise KeyError('lost')

    net = quoll.Net()
    net.register_custom_layer('Broken', Broken)
    net.load_param(small(INPUT, 'Broken b 1 1 data out'))
    net.load_model(quoll.DataReaderFromEmpty())
    with pytest.raises(quoll.Error, match=r'\[Broken b\].*lost') as caught:
        net.run(np.zeros(3, np.float32))
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(quoll.Error, match='outputs'):
        Broken.forward = lambda self, x: (x, x)
        net.run(np.zeros(3, np.float32))


def test_what_a_layer_keeps_stays_valid(small):
    class Keep(quoll.Layer):
        seen = []

        def forward(self, x):
            self.seen.append(x)
            return x

    net = quoll.Net()
    net.register_custom_layer('Keep', Keep)
    net.load_param(small(INPUT, 'ReLU r 1 1 data pos', 'Keep k 1 1 pos kept', 'Sigmoid s 1 1 kept out'))
    net.load_model(quoll.DataReaderFromEmpty())
    for value in range(1, 5):
        net.run(np.full((8, 16, 16), value, np.float32))
    net.clear()
    del net
    gc.collect()
    assert [float(x.min()) for x in Keep.seen] == [float(x.max()) for x in Keep.seen] == [1, 2, 3, 4]


def test_the_gil_is_released_while_a_net_runs(small):
    """Two layers wait for each other: without that it would never end."""
    both = threading.Barrier(2, timeout=60)

    class Meet(quoll.Layer):
        def forward(self, x):
            both.wait()
            return x

    net = quoll.Net()
    net.opt.num_threads = 1
    net.register_custom_layer('Meet', Meet)
    net.load_param(small(INPUT, 'Meet m 1 1 data out'))
    net.load_model(quoll.DataReaderFromEmpty())
    with quoll.Pool(net, 2) as pool:
        assert [float(r['out'][0]) for r in pool.map([np.full(1, v, np.float32) for v in range(4)])] == [0, 1, 2, 3]


def test_pool_of_threads(digits):
    net = quoll.load(*digits, num_threads=1)
    name = net.output_names()[0]
    items = np.random.default_rng(0).uniform(0, 1, (40, *net.inputs[0].sizes)).astype(np.float32)
    expected = net.predict(items)
    with quoll.Pool(net, 4) as pool:
        results = [result[name] for result in pool.map(items)]
    np.testing.assert_array_equal(np.stack(results), expected)


def test_an_extractor_is_for_one_thread_and_a_running_net_is_not_loaded(small):
    inside, go_on = threading.Event(), threading.Event()

    class Wait(quoll.Layer):
        def forward(self, x):
            inside.set()
            assert go_on.wait(60)
            return x

    net = quoll.Net()
    net.register_custom_layer('Wait', Wait)
    net.load_param(small(INPUT, 'Wait w 1 1 data out'))
    net.load_model(quoll.DataReaderFromEmpty())
    extractor = net.create_extractor()
    extractor.input('data', np.ones(2, np.float32))
    thread = threading.Thread(target=extractor.extract, args=('out',))
    thread.start()
    assert inside.wait(60)
    try:
        with pytest.raises(quoll.Error, match='another thread'):
            extractor.extract('out')
        with pytest.raises(quoll.Error, match='running'):
            net.clear()
    finally:
        go_on.set()
        thread.join()


def test_allocators(digits):
    net = quoll.Net()
    net.opt.blob_allocator = quoll.PoolAllocator()
    net.opt.workspace_allocator = quoll.UnlockedPoolAllocator()
    net.load_param(digits[0])
    net.load_model(digits[1])
    item = np.full(net.inputs[0].sizes, 0.5, np.float32)
    expected = quoll.load(*digits).run(item)
    extractor = net.create_extractor()
    extractor.input(net.input_names()[0], item)
    mat = extractor.extract(net.output_names()[0])
    net.opt.blob_allocator = net.opt.workspace_allocator = None
    del net, extractor
    gc.collect()
    np.testing.assert_array_equal(mat.numpy(), expected[next(iter(expected))])


def test_times(digits):
    net = quoll.load(*digits)
    times = quoll.benchmark(net, loops=3)
    assert len(times.runs_ms) == 3 and 0 < times.min_ms <= times.median_ms <= times.max_ms
    profile = quoll.profile(net, loops=3)
    assert {row.type for row in profile.rows} >= {'Convolution'} and abs(sum(row.percent for row in profile.rows) - 100) < 1e-6
    assert 'Convolution' in str(profile) and '<table>' in profile._repr_html_() and '<table>' in net._repr_html_()


def test_builtin_layer_by_itself():
    layer = quoll.create_layer('Softmax')
    layer.load_param(quoll.ParamDict())
    layer.create_pipeline()
    x = np.random.default_rng(0).uniform(-1, 1, 7).astype(np.float32)
    got = layer.forward([quoll.Mat(x, copy=True)])[0].numpy()
    np.testing.assert_allclose(got, np.exp(x) / np.exp(x).sum(), rtol=1e-5)
    with pytest.raises(quoll.Error, match='Nonesuch'):
        quoll.create_layer('Nonesuch')


def test_layers_that_nobody_prepared():
    """Programs call a Softmax right after load_param: the answer or an error, of whatever layer, and not the end of the process."""
    program = '''import numpy as np, quoll
for kind in quoll.layer_types():
    print(kind, flush=True)
    for count in (1, 2, 3):
        layer = quoll.create_layer(kind)
        try:
            layer.load_param(quoll.ParamDict())
            layer.forward([np.ones((4, 3, 5), np.float32)] * count)
        except quoll.Error:
            pass
print("all")'''
    done = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True, timeout=300)
    assert done.stdout.split()[-1] == 'all', done.stdout.split()[-1]


@pytest.mark.parametrize('kind', quoll.layer_types())
def test_builtin_layers_in_another_order(kind):
    """A layer that has not loaded, or could not, is an error to run, not a crash; forward prepares one that has."""
    x = np.ones((2, 3, 4), np.float32)
    for calls in ('p', 'f', 'm', 'd', 'lf', 'lmf', 'lp', 'lpp', 'lmpp', 'lmpdf', 'lpf', 'lplpf'):
        layer = quoll.create_layer(kind)
        run = {'l': lambda: layer.load_param(quoll.ParamDict()), 'm': lambda: layer.load_model([np.zeros(4, np.float32)] * 3),
               'p': layer.create_pipeline, 'd': layer.destroy_pipeline, 'f': lambda: layer.forward([x])}
        failed = False
        for call in calls:
            try:
                run[call]()
            except quoll.Error:
                failed = True
        assert failed or calls in ('lp', 'lpf', 'lplpf', 'lf', 'lmf'), calls
