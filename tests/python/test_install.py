"""What `cmake --install` puts down, used from outside: find_package, pkg-config, every header alone."""
import os
import re
import subprocess

import numpy as np
import pytest
from PIL import Image

from conftest import BIN, ROOT

BUILD = BIN.parent
CONSUMER = ROOT / 'tests' / 'install' / 'consumer'
HEADERS = sorted(p.name for p in (ROOT / 'include/quoll').glob('*.h')) + ['platform.h']
ANSWER = '321 654\n'


def run(*command, **more):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope='session')
def prefix(tmp_path_factory):
    folder = tmp_path_factory.mktemp('prefix')
    run('cmake', '--install', BUILD, '--prefix', folder)
    return folder


def library_folder(prefix):
    return next(prefix.glob('lib*/**/libquoll.a')).parent


def test_find_package(prefix, tmp_path):
    run('cmake', '-G', 'Ninja', '-S', CONSUMER, '-B', tmp_path, f'-DCMAKE_PREFIX_PATH={prefix}')
    run('cmake', '--build', tmp_path)
    assert run(tmp_path / 'consumer') == ANSWER
    assert run(tmp_path / 'consumer_shared') == ANSWER


def test_onnx_library(prefix, tmp_path):
    """A program outside the tree loads an ONNX model."""
    (tmp_path / 'CMakeLists.txt').write_text('cmake_minimum_required(VERSION 3.16)\nproject(app CXX)\nfind_package(quoll REQUIRED)\n'
                                             'add_executable(app app.cpp)\ntarget_link_libraries(app quoll::onnx)\n')
    (tmp_path / 'app.cpp').write_text('#include <quoll/net.h>\n#include <quoll/onnx.h>\n#include <stdio.h>\n'
                                      'int main(int, char** argv) {\n    quoll::Net net;\n'
                                      '    if (quoll::load_onnx(argv[1], quoll::OnnxOptions(), &net)) return 1;\n'
                                      '    quoll::Mat in(8, 8, 1), out;\n    in.fill(0.5f);\n    quoll::Extractor ex = net.create_extractor();\n'
                                      '    if (ex.input(net.input_indexes()[0], in) || ex.extract(net.output_indexes()[0], out)) return 1;\n'
                                      '    printf("%d\\n", (int)out.total());\n}\n')
    run('cmake', '-G', 'Ninja', '-S', tmp_path, '-B', tmp_path / 'build', f'-DCMAKE_PREFIX_PATH={prefix}')
    run('cmake', '--build', tmp_path / 'build')
    assert run(tmp_path / 'build/app', ROOT / 'models/digits/digits.onnx') == '10\n'
    done = subprocess.run([tmp_path / 'build/app', ROOT / 'models/digits/digits.param'], capture_output=True, text=True)
    assert done.returncode == 1 and 'digits.param' in done.stderr


@pytest.mark.parametrize('kind', ['shared', 'static'])
def test_pkg_config(prefix, tmp_path, kind):
    folder = library_folder(prefix)
    env = {**os.environ, 'PKG_CONFIG_PATH': str(folder / 'pkgconfig')}
    flags = run('pkg-config', '--cflags', '--libs', *(['--static'] if kind == 'static' else []), 'quoll', env=env).split()
    if kind == 'static':
        flags = [str(folder / 'libquoll.a') if flag == '-lquoll' else flag for flag in flags]
    run('c++', '-std=c++11', CONSUMER / 'consumer.cpp', '-o', tmp_path / 'consumer', *flags)
    assert run(tmp_path / 'consumer', env={**os.environ, 'LD_LIBRARY_PATH': str(folder)}) == ANSWER


@pytest.mark.parametrize('header', HEADERS)
def test_header_alone_as_cxx11(prefix, tmp_path, header):
    source = tmp_path / 'alone.cpp'
    source.write_text(f'#include <quoll/{header}>\n#include <quoll/{header}>\nint main() {{ return 0; }}\n')
    run('c++', '-std=c++11', '-Wall', '-Wextra', '-Wpedantic', '-Wshadow', '-Werror', '-fsyntax-only', '-I', prefix / 'include', source)


LAYER_OF_AN_APPLICATION = '''#include <quoll/datareader.h>
#include <quoll/layer.h>
#include <quoll/net.h>
#include <stdio.h>
class Mine : public quoll::Layer {
public:
    Mine() { one_blob_only = true; support_inplace = true; }
    int forward_inplace(quoll::Mat& blob, const quoll::Option&) const override { blob.fill(7.f); return 0; }
    using quoll::Layer::forward_inplace;
};
class Everything : public quoll::DataReader, public quoll::LayerObserver, public quoll::Allocator {
    size_t read(void*, size_t) const override { return 0; }
    void* fastMalloc(size_t size) override { return quoll::fast_malloc(size); }
    void fastFree(void* p) override { quoll::fast_free(p); }
    void before(const quoll::Layer&) override {}
    void after(const quoll::Layer&, const std::vector<quoll::Mat>&) override {}
};
quoll::Layer* make(void*) { return new Mine; }
int main() {
    quoll::Net net;
    Everything everything;
    net.register_custom_layer("Mine", make);
    if (net.load_param_mem("7767517\\n2 2\\nInput in 0 1 in 0=2\\nMine m 1 1 in out\\n")) return 1;
    quoll::Mat in(2), out;
    in.fill(1.f);
    quoll::Extractor ex = net.create_extractor();
    ex.set_blob_allocator(&everything);
    if (ex.input("in", in) || ex.extract("out", out)) return 1;
    printf("%g %g\\n", out[0], out[1]);
    return 0;
}
'''


@pytest.mark.parametrize('rtti', ['-frtti', '-fno-rtti'])
def test_the_library_has_no_rtti_and_applications_may(prefix, tmp_path, rtti):
    """What asks for types at run time is nowhere in it; type information is there for the classes that applications derive from."""
    library = library_folder(prefix) / 'libquoll.a'
    symbols = run('nm', '-C', library)
    assert '__dynamic_cast' not in symbols and '__cxa_bad_typeid' not in symbols
    told = set(re.findall(r'[VDdBbRr] typeinfo for quoll::([A-Za-z]+)', symbols))
    assert {'Allocator', 'DataReader', 'Layer', 'LayerObserver', 'Net'} <= told and not told & {'Convolution', 'ReLU', 'Executor'}, told
    (tmp_path / 'app.cpp').write_text(LAYER_OF_AN_APPLICATION)
    env = {**os.environ, 'PKG_CONFIG_PATH': str(library.parent / 'pkgconfig')}
    flags = run('pkg-config', '--cflags', '--libs', '--static', 'quoll', env=env).split()
    run('c++', '-std=c++11', rtti, tmp_path / 'app.cpp', '-o', tmp_path / 'app', *[str(library) if flag == '-lquoll' else flag for flag in flags])
    assert run(tmp_path / 'app') == '7 7\n'


def test_nothing_private_is_installed(prefix):
    files = {str(p.relative_to(prefix)) for p in prefix.rglob('*') if p.is_file() and 'include' in p.parts}
    assert files
    assert {f.split('/')[-1] for f in files if f.endswith('.h') and '/quoll/' in f and '/ncnn/' not in f} == set(HEADERS)


def test_programs_licence_and_examples(prefix, examples):
    """Examples compile where they are put, with their own CMakeLists.txt, and run on models from elsewhere."""
    assert run(prefix / 'bin' / 'onnx2engine', '--version').startswith('quoll ')
    assert 'Redistribution' in (prefix / 'share/quoll/LICENSE').read_text()
    assert (prefix / 'share/quoll/examples/python/read_text.py').is_file()
    run(examples / 'custom_layer')
    done = subprocess.run([examples / 'detector/detector', 'none.param', 'none.bin', 'none.jpg'], capture_output=True, text=True)
    assert done.returncode == 1 and 'none.param' in done.stderr


@pytest.fixture(scope='session')
def examples(prefix, tmp_path_factory):
    """Those that lie in one folder, built there."""
    folder = tmp_path_factory.mktemp('examples')
    run('cmake', '-G', 'Ninja', '-S', prefix / 'share/quoll/examples', '-B', folder, f'-DCMAKE_PREFIX_PATH={prefix}')
    run('cmake', '--build', folder)
    return folder


def test_classify_example(examples, tmp_path):
    model, names = ROOT / 'models/digits', tmp_path / 'names.txt'
    files = model / 'digits.param', model / 'digits.bin', model / 'sheet.png'
    labels = '--labels', model / 'sheet_labels.txt'
    out = run(examples / 'classify', *files, '--grid', 32, *labels, '--out', tmp_path / 'sheet.png')
    assert '40 of 40 cells right' in out and Image.open(tmp_path / 'sheet.png').size == (3 * 256, 3 * 160)
    names.write_text('zero\none\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n')
    out = run(examples / 'classify', *files, '--grid', 32, '--names', names).split()
    assert len(out) == 40 and set(out) <= set(names.read_text().split())
    # Scores of the whole sheet as one picture, by two orders of colours and two scales.
    plain = run(examples / 'classify', *files, '--top', 10).split()
    assert len(plain) == 20 and sum(map(float, plain[1::2])) == pytest.approx(1, abs=1e-3)
    assert run(examples / 'classify', *files, '--norm', '0.5', '--top', 10).split() != plain
    for wrong, code in ((('--grid', 500), 1), (('--mean', '1,2'), 1), (('--order', 'GBR'), 2), (('--names', 'none.txt'), 1),
                        (('--gpu', 60), 1), (('--out', tmp_path / 'none' / 'x.png'), 1), (('--out', '/dev/full'), 1), (('--size', 3), 2)):
        done = subprocess.run(list(map(str, [examples / 'classify', *files, *wrong])), capture_output=True, text=True)
        assert done.returncode == code and str('classify' if code == 2 else wrong[1]) in done.stderr, wrong


def colour_model(folder, rows):
    """A 1x1 convolution of the colours as torchvision normalises them: a row (red, green, blue, bias) for each output."""
    count = len(rows)
    (folder / 'm.param').write_text(f'7767517\n2 2\nInput in 0 1 in\nConvolution c 1 1 in out 0={count} 1=1 5=1 6={3 * count}\n')
    weights = np.array(rows, np.float32)
    np.concatenate([[0], weights[:, :3].ravel(), weights[:, 3]]).astype(np.float32).tofile(folder / 'm.bin')
    return folder / 'm.param', folder / 'm.bin'


def test_segment_example(examples, tmp_path):
    """A net for which a pixel belongs to its strongest colour, or to the background where that is weak."""
    model = colour_model(tmp_path, [(0, 0, 0, 1), (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0)])
    pixels = np.full((40, 60, 3), 20, np.uint8)
    pixels[:20, :30, 0] = pixels[:20, 30:, 1] = pixels[20:, :30, 2] = 250
    Image.fromarray(pixels).save(tmp_path / 'photo.png')
    out = run(examples / 'segment', *model, tmp_path / 'photo.png', tmp_path / 'out.png', '--size', '60x40')
    assert out.split('\n')[:4] == [f'class {k}: 25.0 %' for k in range(4)]
    colours = {1: (128, 0, 0), 2: (0, 128, 0), 3: (128, 128, 0)}  # Pascal VOC's palette
    got = np.array(Image.open(tmp_path / 'out.png'))
    for label, (y, x) in enumerate([(20, 30), (0, 0), (0, 30), (20, 0)]):
        part = pixels[y:y + 20, x:x + 30].astype(int)
        expected = part if label == 0 else (part + colours[label]) // 2
        assert (got[y:y + 20, x:x + 30] == expected).all(), label


def test_pose_example(examples, tmp_path):
    """A net whose heat maps are colours: each joint lies where its colour is strongest."""
    model = colour_model(tmp_path, [(k % 3 == 0, k % 3 == 1, k % 3 == 2, 0) for k in range(17)])
    pixels = np.zeros((64, 48, 3), np.uint8)
    spots = [(10, 20), (40, 7), (25, 50)]  # x, y
    for c, (x, y) in enumerate(spots):
        pixels[y, x, c] = 255
    Image.fromarray(pixels).save(tmp_path / 'photo.png')
    out = run(examples / 'pose', *model, tmp_path / 'photo.png', tmp_path / 'out.png', '--size', '48x64')
    rows = [line.split() for line in out.splitlines()]
    assert len(rows) == 17
    for k, row in enumerate(rows):
        x, y = map(float, row[3].split(','))
        assert abs(x - spots[k % 3][0] - .5) <= .3 and abs(y - spots[k % 3][1] - .5) <= .3, row
    assert Image.open(tmp_path / 'out.png').size == (48, 64)
    done = subprocess.run([examples / 'segment', *model, 'none.png', 'x.png'], capture_output=True, text=True)
    assert done.returncode == 1 and 'none.png' in done.stderr


def test_faces_example(examples, tmp_path, data):
    model, photo = data / 'models/slim-320/slim_320', sorted((data / 'images').glob('*.jpg'))[0]
    out = run(examples / 'detect_faces', f'{model}.param', f'{model}.bin', photo, tmp_path / 'faces.png')
    assert int(out.splitlines()[-1].split()[0]) > 0, out
    assert (tmp_path / 'faces.png').read_bytes().startswith(b'\x89PNG')
    done = subprocess.run([examples / 'detect_faces', f'{model}.param', f'{model}.bin', 'none.jpg'], capture_output=True, text=True)
    assert done.returncode == 1 and 'none.jpg' in done.stderr


@pytest.fixture(scope='session')
def detector(prefix, tmp_path_factory):
    folder = tmp_path_factory.mktemp('detector')
    run('cmake', '-G', 'Ninja', '-S', prefix / 'share/quoll/examples/detector', '-B', folder, f'-DCMAKE_PREFIX_PATH={prefix}')
    run('cmake', '--build', folder)
    return folder / 'detector'


def test_detector_example(prefix, detector, tmp_path):
    """The model that is installed with it finds every digit of its page, and nothing else."""
    model = prefix / 'share/quoll/models/digit_detector'
    out = run(detector, model / 'digit_detector.param', model / 'digit_detector.bin', model / 'page.png', tmp_path / 'boxes.png')
    assert sorted(line.split()[1] for line in out.splitlines()) == (ROOT / 'models/digit_detector/page_digits.txt').read_text().split()
    assert Image.open(tmp_path / 'boxes.png').size == Image.open(model / 'page.png').size
    means, none = tmp_path / 'means.param', tmp_path / 'none.bin'
    means.write_text('7767517\n2 2\nInput in 0 1 in\nPooling mean 1 1 in out 0=1 4=1\n')
    none.touch()
    done = subprocess.run([detector, means, none, model / 'page.png'], capture_output=True, text=True)
    assert done.returncode == 1 and 'means.param: the output is no grid' in done.stderr


def test_detector_example_with_fastestdet(detector, tmp_path, data):
    model = data / 'models/fastestdet/FastestDet'
    out = run(detector, f'{model}.param', f'{model}.bin', data / 'images/street.jpg', tmp_path / 'boxes.png')
    kinds = [int(line.split()[1]) for line in out.splitlines()]
    assert set(kinds) & {0, 2, 5, 7}, out  # people, cars, buses, trucks
    assert (tmp_path / 'boxes.png').read_bytes().startswith(b'\x89PNG')


NCNN_HEADERS = sorted(p.name for p in (ROOT / 'include/quoll/ncnn').glob('*.h'))


@pytest.mark.parametrize('header', NCNN_HEADERS)
def test_ncnn_header_alone_as_cxx11(prefix, tmp_path, header):
    source = tmp_path / 'alone.cpp'
    source.write_text(f'#include "{header}"\n#include "{header}"\nint main() {{ return 0; }}\n')
    run('c++', '-std=c++11', '-Wall', '-Wextra', '-Wpedantic', '-Wshadow', '-Werror', '-DUSE_NCNN_SIMPLEOCV', '-fsyntax-only',
        '-I', prefix / 'include/quoll/ncnn', '-I', prefix / 'include', source)


def test_find_package_ncnn(prefix, tmp_path):
    """A project of ncnn's user finds quoll by ncnn's name; its headers declare ncnn's classes themselves."""
    (tmp_path / 'CMakeLists.txt').write_text('cmake_minimum_required(VERSION 3.16)\nproject(app CXX)\nfind_package(ncnn REQUIRED)\n'
                                             'add_executable(app app.cpp)\ntarget_link_libraries(app ncnn)\n')
    (tmp_path / 'app.cpp').write_text('namespace ncnn { class Mat; }\nvoid fill(ncnn::Mat& m);\n#include "ncnn/net.h"\n#include "net.h"\n#include <stdio.h>\n'
                                      'void fill(ncnn::Mat& m) { m.fill(2.f); }\nint main() {\n    ncnn::Mat m(3);\n    fill(m);\n'
                                      '    ncnn::Net net;\n    net.opt.use_sgemm_convolution = false;\n'
                                      '#if NCNN_VULKAN\n    if (sizeof(ncnn::VkCompute) + sizeof(ncnn::Pipeline) + sizeof(ncnn::VulkanDevice) == 0) return 1;\n#endif\n'
                                      '    printf("%g\\n", m[2]);\n}\n')
    run('cmake', '-G', 'Ninja', '-S', tmp_path, '-B', tmp_path / 'build', f'-DCMAKE_PREFIX_PATH={prefix}')
    run('cmake', '--build', tmp_path / 'build')
    assert run(tmp_path / 'build/app') == '2\n'
