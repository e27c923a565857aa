"""What `cmake --install` puts down, used from outside: find_package, pkg-config, every header alone."""
import os
import re
import subprocess

import pytest

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


def test_programs_licence_and_examples(prefix, tmp_path):
    """Examples compile where they are put, with their own CMakeLists.txt, and run on models from elsewhere."""
    assert run(prefix / 'bin' / 'onnx2engine', '--version').startswith('quoll ')
    assert 'Redistribution' in (prefix / 'share/quoll/LICENSE').read_text()
    run('cmake', '-G', 'Ninja', '-S', prefix / 'share/quoll/examples', '-B', tmp_path, f'-DCMAKE_PREFIX_PATH={prefix}')
    run('cmake', '--build', tmp_path)
    run(tmp_path / 'custom_layer')
    done = subprocess.run([tmp_path / 'detector/detector', 'none.param', 'none.bin', 'none.jpg'], capture_output=True, text=True)
    assert done.returncode == 1 and 'none.param' in done.stderr


def test_faces_example(prefix, tmp_path, data):
    run('cmake', '-G', 'Ninja', '-S', prefix / 'share/quoll/examples', '-B', tmp_path, f'-DCMAKE_PREFIX_PATH={prefix}')
    run('cmake', '--build', tmp_path, '--target', 'detect_faces')
    model, photo = data / 'models/slim-320/slim_320', sorted((data / 'images').glob('*.jpg'))[0]
    out = run(tmp_path / 'detect_faces', f'{model}.param', f'{model}.bin', photo, tmp_path / 'faces.png')
    assert int(out.splitlines()[-1].split()[0]) > 0, out
    assert (tmp_path / 'faces.png').read_bytes().startswith(b'\x89PNG')
    done = subprocess.run([tmp_path / 'detect_faces', f'{model}.param', f'{model}.bin', 'none.jpg'], capture_output=True, text=True)
    assert done.returncode == 1 and 'none.jpg' in done.stderr


def test_detector_example(prefix, tmp_path, data):
    model = data / 'models/fastestdet/FastestDet'
    run('cmake', '-G', 'Ninja', '-S', prefix / 'share/quoll/examples/detector', '-B', tmp_path, f'-DCMAKE_PREFIX_PATH={prefix}')
    run('cmake', '--build', tmp_path)
    out = run(tmp_path / 'detector', f'{model}.param', f'{model}.bin', data / 'images/street.jpg', tmp_path / 'boxes.png')
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
    """A project of ncnn's user finds quoll by ncnn's name."""
    (tmp_path / 'CMakeLists.txt').write_text('cmake_minimum_required(VERSION 3.16)\nproject(app CXX)\nfind_package(ncnn REQUIRED)\n'
                                             'add_executable(app app.cpp)\ntarget_link_libraries(app ncnn)\n')
    (tmp_path / 'app.cpp').write_text('#include "net.h"\n#include <stdio.h>\nint main() {\n    ncnn::Mat m(3);\n    m.fill(2.f);\n'
                                      '    ncnn::Net net;\n    net.opt.use_sgemm_convolution = false;\n'
                                      '#if NCNN_VULKAN\n    if (sizeof(ncnn::VkCompute) + sizeof(ncnn::Pipeline) + sizeof(ncnn::VulkanDevice) == 0) return 1;\n#endif\n'
                                      '    printf("%g\\n", m[2]);\n}\n')
    run('cmake', '-G', 'Ninja', '-S', tmp_path, '-B', tmp_path / 'build', f'-DCMAKE_PREFIX_PATH={prefix}')
    run('cmake', '--build', tmp_path / 'build')
    assert run(tmp_path / 'build/app') == '2\n'
