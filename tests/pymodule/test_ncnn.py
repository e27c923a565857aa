"""quoll.ncnn beside the ncnn module: one program for both."""
import numpy as np
import pytest

import quoll.ncnn

peer = pytest.importorskip('ncnn')
BOTH = pytest.mark.parametrize('ncnn', [peer, quoll.ncnn], ids=['ncnn', 'quoll'])


def run_digits(ncnn, digits):
    with ncnn.Net() as net:
        net.opt.num_threads = 1
        net.opt.use_fp16_storage = net.opt.use_fp16_packed = net.opt.use_fp16_arithmetic = False
        net.opt.use_vulkan_compute = False
        assert net.load_param(str(digits[0])) == 0
        assert net.load_model(str(digits[1])) == 0
        pixels = np.random.default_rng(0).integers(0, 256, (40, 50), np.uint8)
        mat = ncnn.Mat.from_pixels_resize(pixels, ncnn.Mat.PixelType.PIXEL_GRAY, 50, 40, 8, 8)
        mat.substract_mean_normalize([0], [1 / 255])
        with net.create_extractor() as ex:
            assert ex.input(net.input_names()[0], mat) == 0
            ret, out = ex.extract(net.output_names()[0])
            assert ret == 0
            copy = ncnn.Mat()
            assert ex.extract(net.output_names()[0], copy) == 0
        assert np.array_equal(np.array(copy), np.array(out))
        return np.array(out)


def test_a_network_gives_the_same(digits):
    np.testing.assert_allclose(run_digits(quoll.ncnn, digits), run_digits(peer, digits), rtol=1e-3, atol=1e-5)


@BOTH
def test_layer_in_python(ncnn, tmp_path):
    class Plus(ncnn.Layer):
        def __init__(self):
            ncnn.Layer.__init__(self)
            self.one_blob_only = True

        def load_param(self, pd):
            self.term = pd.get(0, 1.0)
            return 0

        def forward(self, bottom, top, opt):
            top.clone_from(ncnn.Mat(np.array(bottom) + np.float32(self.term)), opt.blob_allocator)
            return -100 if top.empty() else 0

    made = []
    path = tmp_path / 'plus.param'
    path.write_text('7767517\n2 2\nInput data 0 1 data\nPlus plus 1 1 data out 0=2.5\n')
    net = ncnn.Net()
    net.register_custom_layer('Plus', lambda: made.append(Plus()) or made[-1], lambda layer: made.remove(layer))
    assert net.load_param(str(path)) == 0 and net.load_model(ncnn.DataReaderFromEmpty()) == 0
    ex = net.create_extractor()
    ex.input('data', ncnn.Mat(np.array([1, 2], np.float32)))
    ret, out = ex.extract('out')
    assert ret == 0 and np.array(out).tolist() == [3.5, 4.5]
    ex.clear()
    net.clear()
    assert made == []


@BOTH
def test_types_of_parameters(ncnn):
    params = ncnn.ParamDict()
    params.set(1, 1)
    params.set(2, 2.0)
    params.set(3, ncnn.Mat(np.array([3, 4], np.float32)))
    params.set(4, ncnn.Mat(np.array([5, 6], np.float32)))
    params.set(4, 7)
    assert [params.type(i) for i in range(5)] == [0, 2, 3, 4, 2]


@BOTH
def test_codes_for_what_fails(ncnn, tmp_path, capfd):
    net = ncnn.Net()
    assert net.load_param(str(tmp_path / 'none.param')) != 0
    with pytest.raises(TypeError, match='No constructor'):
        ncnn.Extractor()


@BOTH
def test_a_layer_by_itself_changes_a_mat(ncnn):
    softmax = ncnn.create_layer('Softmax')
    softmax.load_param(ncnn.ParamDict())
    mat = ncnn.Mat(np.log(np.array([1, 2, 5], np.float32)))
    view = np.array(mat, copy=False)
    assert softmax.forward_inplace(mat, ncnn.Option()) == 0
    np.testing.assert_allclose(np.array(mat), [1 / 8, 2 / 8, 5 / 8], rtol=1e-5)
    np.testing.assert_allclose(view, [1 / 8, 2 / 8, 5 / 8], rtol=1e-5)


@BOTH
def test_a_layer_in_place_on_a_packed_mat(ncnn):
    relu = ncnn.create_layer('ReLU')
    relu.load_param(ncnn.ParamDict())
    packed, flat = ncnn.Mat(), ncnn.Mat()
    ncnn.convert_packing(ncnn.Mat(np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 2, 2)), packed, 4)
    assert packed.elempack == 4 and relu.forward_inplace(packed, ncnn.Option()) == 0
    ncnn.convert_packing(packed, flat, 1)
    np.testing.assert_array_equal(np.array(flat), np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 2, 2).clip(0))


def test_layers_by_type_index():
    import quoll.ncnn as ncnn
    for kind in ('AbsVal', 'LSTM', 'ShapeOf'):
        assert ncnn.create_layer(ncnn.layer_to_index(kind)).type == kind
    for index in (-1, 199, 1 << 20):
        assert ncnn.create_layer(index) is None


@BOTH
def test_functions_on_mats(ncnn):
    array = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    results = []
    src = ncnn.Mat(array.copy())
    for function, args in ((ncnn.resize_bilinear, (10, 8)), (ncnn.copy_make_border, (1, 2, 3, 4, 0, 7.0)), (ncnn.copy_cut_border, (1, 1, 2, 1))):
        dst = ncnn.Mat()
        function(src, dst, *args, ncnn.Option())
        results.append(np.array(dst))
    assert [r.shape for r in results] == [(3, 8, 10), (3, 7, 12), (3, 2, 2)]
    np.testing.assert_array_equal(results[2], array[:, 1:3, 2:4])
    np.testing.assert_array_equal(results[1][:, 1:5, 3:8], array)


def test_names():
    """What the module has and quoll.ncnn lacks is Vulkan's."""
    missing = {name for name in dir(peer) if not name.startswith('_')} - set(dir(quoll.ncnn)) - {'ncnn', 'model_zoo', 'utils'}
    assert {name for name in missing if not name.startswith('Vk')} <= {'ModelBinFromDataReader'}, missing
    for kind in ('Mat', 'Net', 'Extractor', 'Option', 'Layer', 'ParamDict', 'Blob'):
        lacking = {name for name in dir(getattr(peer, kind)) if not name.startswith('_')} - set(dir(getattr(quoll.ncnn, kind))) - set(
            dir(getattr(quoll.ncnn, kind)() if kind == 'Layer' else None))
        assert {name for name in lacking if 'vk' not in name and 'kvcache' not in name and not name.startswith('PIXEL')} <= {
            'from_float16', 'support_any_packing', 'support_vulkan_any_packing', 'support_vulkan_packing'}, (kind, lacking)
