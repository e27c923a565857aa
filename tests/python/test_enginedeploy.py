"""enginedeploy: what it packs is built into programs that give the model's answers; what is wrong is said with its line."""
import hashlib
import json
import os
import subprocess
import tarfile

import numpy as np
import pytest

from caffe_net import CaffeNet
from conftest import BIN, ROOT, last_line, run_program
from engine import difference, run_engine

pytestmark = [
    pytest.mark.skipif(not (BIN / 'enginedeploy').exists(), reason='built without yaml-cpp: no enginedeploy'),
    pytest.mark.skipif('ENGINERUN_PREFIX' in os.environ, reason='compiles for the machine that it runs on')]

DIGITS = ROOT / 'models' / 'digits'
EXAMPLE = ROOT / 'examples' / 'deploy' / 'digits.yml'


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def deploy(yml, folder, *args, code=0):
    """The folder of the unpacked archive, or the last line of stderr when it fails."""
    archive = folder / 'out.tar.gz'
    done = run_program('enginedeploy', yml, archive, *args)
    assert done.returncode == code, done.stdout + done.stderr
    if code:
        assert not list(folder.glob('out.tar.gz*')), 'files were left'
        assert last_line(done.stderr).startswith('enginedeploy: ')
        return last_line(done.stderr)
    with tarfile.open(archive) as tar:
        tar.extractall(folder / 'unpacked')
    return next((folder / 'unpacked').iterdir())


def without_library(folder):
    """Options for tests of the rest: packing the library, which test_example does, takes seconds."""
    prefix = folder / 'no-library'
    for name in 'include/quoll/net.h', 'lib/libquoll.a':
        (prefix / name).parent.mkdir(parents=True)
        (prefix / name).write_text('nothing')
    return '--sdk', f'host={prefix}'


def build(package, source, folder, packed=True):
    """Against the library in the package, or that of the build."""
    (folder / 'main.cpp').write_text(source)
    sdk = package / 'sdk/host'
    lib = next(sdk.glob('lib*/**/libquoll.a')) if packed else BIN.parent / 'lib/libquoll.a'
    include = [sdk / 'include'] if packed else [ROOT / 'include', BIN.parent / 'generated/public']
    done = subprocess.run(['c++', '-std=c++11', '-Wall', '-Wextra', '-Werror', *(f'-I{path}' for path in [*include, package / 'model']),
                           folder / 'main.cpp', lib, '-o', folder / 'main', '-pthread'], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / 'main'


CODE_MAIN = '''
#include <stdio.h>
#include "digits.h"
int main() {
    quoll::Net onnx, ncnn;
    if (digits::load_digits_onnx(&onnx) || digits::load_digits_ncnn(&ncnn)) return 1;
    quoll::Mat in(8, 8, 1), out;
    if (fread((float*)in.data, 4, 64, stdin) != 64) return 2;
    quoll::Extractor a = onnx.create_extractor(), b = ncnn.create_extractor();
    if (a.input(digits::digits_onnx_param_id::BLOB_data, in) || a.extract(digits::digits_onnx_param_id::BLOB_prob, out)) return 3;
    fwrite(out.data, 4, 10, stdout);
    if (b.input(digits::digits_ncnn_param_id::BLOB_data, in) || b.extract(digits::digits_ncnn_param_id::BLOB_prob, out)) return 4;
    return fwrite(out.data, 4, 10, stdout) != 10;
}
'''


def test_example(tmp_path):
    """Both models of examples/deploy/digits.yml in one program, which needs no file."""
    package = deploy(EXAMPLE, tmp_path, '--round', 2)
    program = build(package, CODE_MAIN, tmp_path)
    x = np.random.default_rng(3).uniform(0, 1, (1, 8, 8)).astype(np.float32)
    done = subprocess.run([program], input=x.tobytes(), capture_output=True)
    assert done.returncode == 0
    onnx, ncnn = np.frombuffer(done.stdout, np.float32).reshape(2, 10)
    right = run_engine(DIGITS / 'digits.param', DIGITS / 'digits.bin', {'data': x}, ['prob'])['prob']
    assert difference(ncnn, right) < 1e-5
    assert difference(onnx, right) < 5e-3  # fp16
    report = json.loads((package / 'report.json').read_text())
    assert [m['name'] for m in report['models']] == ['digits_onnx', 'digits_ncnn']
    for model in report['models']:
        assert all(v['passed'] for v in model['validation']) and model['benchmark']['min_ms'] > 0
        for file in model['files']:
            assert file['sha256'] == sha256(package / 'model' / file['file'])
    assert report['models'][1]['sources'] == [{'file': f'digits.{e}', 'sha256': sha256(DIGITS / f'digits.{e}')}
                                              for e in ('param', 'bin')]
    assert {v['output'] for v in report['models'][1]['validation']} == {'prob', 'fc'}  # check_tensors
    # Names are neither in the program nor in what it was made of.
    for path in program, package / 'model/digits_ncnn.mem.h', package / 'model/digits_onnx.mem.h':
        assert b'pool1_split' not in path.read_bytes() and b'conv2d_4' not in path.read_bytes()


FILE_MAIN = '''
#include <stdio.h>
#include "face-kit.h"
int main(int, char** argv) {
    quoll::Net net;
    if (face_kit::load_small_net(&net, argv[1])) return 1;
    quoll::Mat in(6, 5, 3), out;
    for (int q = 0; q < 3; q++)
        if (fread((float*)in.channel(q), 4, 30, stdin) != 30) return 2;
    quoll::Extractor ex = net.create_extractor();
    if (ex.input("data", in) || ex.extract("prob", out)) return 3;
    return fwrite(out.data, 4, 4, stdout) != 4;
}
'''


@pytest.fixture
def caffe(tmp_path):
    """A net of Caffe, its files, an array in each order and the right answer."""
    rng = np.random.default_rng(7)
    net = CaffeNet(rng, {'data': rng.uniform(-1, 1, (1, 3, 5, 6))})
    net.relu(net.conv('data', 'conv', 8, 3))
    net.fc('conv', 'fc', 4)
    net.add('Softmax', 'fc', 'prob')
    (tmp_path / 'm.prototxt').write_text(net.prototxt())
    (tmp_path / 'm.caffemodel').write_bytes(net.caffemodel())
    x = net.inputs['data'].astype(np.float32)
    np.save(tmp_path / 'nchw.npy', x)
    np.save(tmp_path / 'nhwc.npy', np.ascontiguousarray(x.transpose(0, 2, 3, 1)))
    np.save(tmp_path / 'prob.npy', net.values['prob'].reshape(1, 4).astype(np.float32))
    np.save(tmp_path / 'wrong.npy', net.values['prob'].reshape(1, 4)[:, ::-1].astype(np.float32).copy())
    net.folder = tmp_path
    return net


CAFFE = '''library_name: face-kit
model_graph_format: file
model_data_format: file
models:
  small.net:
    platform: caffe
    model_file_path: m.prototxt
    weight_file_path: m.caffemodel
    subgraphs:
      - input_tensors: [data]
        input_shapes: ["1,5,6,3"]
        output_tensors: [prob]
        output_shapes: ["1,4"]
        validation_inputs_data: [nhwc.npy]
        validation_outputs_data: [prob.npy]
    data_type: fp32_fp32
'''


def write(folder, text):
    (folder / 'quoll.yml').write_text(text)
    return folder / 'quoll.yml'


def test_runtime(caffe):
    """What is packed asks for the device; where there is none, a message says that nothing was checked on one."""
    yml = write(caffe.folder, CAFFE + '    runtime: cpu+gpu\n')
    done = run_program('enginedeploy', yml, caffe.folder / 'out.tar.gz', '--round', 2, *without_library(caffe.folder))
    assert done.returncode == 0, done.stderr
    here = (BIN / 'bench_gpu').exists() and run_program('bench_gpu', '--list').returncode == 0
    assert here == ('no Vulkan device here' not in done.stderr)
    with tarfile.open(caffe.folder / 'out.tar.gz') as tar:
        name = next(n for n in tar.getnames() if n.endswith('model/face-kit.h'))
        assert b'opt.use_vulkan_compute = true' in tar.extractfile(name).read()


@pytest.mark.parametrize('runtime', ['cpu', 'gpu'])
def test_shared_device(caffe, runtime):
    """Slices and bounded submissions are the options of what runs on a device."""
    text = CAFFE + f'    runtime: {runtime}\n    limit_opencl_kernel_time: 1\n    opencl_queue_window_size: 3\n'
    done = run_program('enginedeploy', write(caffe.folder, text), caffe.folder / 'out.tar.gz', '--no-benchmark', '--no-validate',
                       *without_library(caffe.folder))
    assert done.returncode == 0, done.stderr
    with tarfile.open(caffe.folder / 'out.tar.gz') as tar:
        header = tar.extractfile(next(n for n in tar.getnames() if n.endswith('model/face-kit.h'))).read()
    on_device = runtime == 'gpu'
    for option, key in ((b'vulkan_slice_us = 1000;', 'limit_opencl_kernel_time'), (b'vulkan_max_in_flight = 3;', 'opencl_queue_window_size')):
        assert (option in header) == on_device
        assert (f'{key}: has no effect' in done.stderr) != on_device


@pytest.mark.parametrize('order', ['NHWC', 'NCHW'])
@pytest.mark.parametrize('names', ['', '    obfuscate: 1\n    winograd: 0\n'])
def test_caffe_as_files(caffe, order, names):
    text = CAFFE
    if order == 'NCHW':
        text = text.replace('1,5,6,3', '1,3,5,6').replace('nhwc.npy]', 'nchw.npy]\n        input_data_formats: NCHW')
    package = deploy(write(caffe.folder, text + names), caffe.folder, '--no-benchmark', *without_library(caffe.folder))
    program = build(package, FILE_MAIN, caffe.folder, packed=False)
    x = caffe.inputs['data'][0].astype(np.float32)
    done = subprocess.run([program, package / 'model'], input=x.tobytes(), capture_output=True)
    assert done.returncode == 0
    assert difference(np.frombuffer(done.stdout, np.float32), caffe.values['prob'].ravel()) < 1e-5
    assert ('conv' in (package / 'model/small.net.param').read_text().replace('Convolution', '')) == (not names)
    assert ('use_winograd_convolution = false' in (package / 'model/face-kit.h').read_text()) == bool(names)


@pytest.mark.parametrize('precision, bits', [('fp16_fp32', 2), ('bf16_fp32', 2), ('fp32_fp32', 4)])
def test_storage_of_weights(caffe, precision, bits):
    package = deploy(write(caffe.folder, CAFFE.replace('fp32_fp32', precision)), caffe.folder, '--no-benchmark',
                     *without_library(caffe.folder))
    weights = 8 * 3 * 9 + 4 * 8 * caffe.values['conv'].shape[2] * caffe.values['conv'].shape[3]
    assert (package / 'model/small.net.bin').stat().st_size == 2 * 4 + bits * weights + 4 * (8 + 4)
    header = (package / 'model/face-kit.h').read_text()
    assert ('use_fp16_storage = true' in header, 'use_bf16_storage = true' in header) == (
        precision[:4] == 'fp16', precision[:4] == 'bf16')


def test_part_of_a_model(caffe):
    """input_tensors and output_tensors may be any: what lies between them is packed."""
    text = CAFFE.replace('[data]', '[conv]').replace('[prob]', '[fc]')
    text = text.replace('1,5,6,3', '1,{},{},8'.format(*caffe.values['conv'].shape[2:]))
    text = '\n'.join(line for line in text.splitlines() if 'validation' not in line)
    package = deploy(write(caffe.folder, text), caffe.folder, '--no-benchmark', *without_library(caffe.folder))
    x = caffe.values['conv'][0].astype(np.float32)
    got = run_engine(package / 'model/small.net.param', package / 'model/small.net.bin', {'conv': x}, ['fc'])['fc']
    assert difference(got.ravel(), caffe.values['fc'].ravel()) < 1e-5


def test_inputs_of_integers(tmp_path):
    (tmp_path / 'm.param').write_text('7767517\n2 2\nInput in 0 1 in\nEmbed e 1 1 in out 0=3 1=10 3=30\n')
    np.concatenate([[0], np.arange(30)]).astype(np.float32).tofile(tmp_path / 'm.bin')
    np.save(tmp_path / 'in.npy', np.array([3, 9, 0, 5]))
    np.save(tmp_path / 'out.npy', np.arange(30, dtype=np.float32).reshape(10, 3)[[3, 9, 0, 5]])
    text = '''library_name: words
models:
  embed:
    platform: ncnn
    model_file_path: m.param
    weight_file_path: m.bin
    data_type: fp32_fp32
    subgraphs:
      - input_tensors: in
        input_shapes: 4
        input_data_formats: NONE
        input_data_types: int32
        output_tensors: out
        output_shapes: 4,3
        output_data_formats: NONE
'''
    arrays = '        validation_inputs_data: in.npy\n        validation_outputs_data: out.npy\n'
    options = '--no-benchmark', *without_library(tmp_path)
    deploy(write(tmp_path, text + arrays), tmp_path, *options)
    done = run_program('enginedeploy', write(tmp_path, text + '        input_ranges: "0,9"\n'), tmp_path / 'b.tar.gz', *options)
    assert done.returncode == 0, done.stderr


def test_wrong_answers(caffe):
    assert 'FAIL prob' in deploy(write(caffe.folder, CAFFE.replace('prob.npy', 'wrong.npy')), caffe.folder, code=3)
    # Strictly above: a threshold of 1 is never reached.
    assert 'FAIL prob' in deploy(write(caffe.folder, CAFFE + '    validation_threshold: {CPU: 1}\n'), caffe.folder, code=3)
    deploy(write(caffe.folder, CAFFE.replace('prob.npy', 'wrong.npy')), caffe.folder, '--no-validate', '--no-benchmark',
           *without_library(caffe.folder))


def test_other_abis(caffe, tmp_path):
    prefix = tmp_path / 'arm'
    (prefix / 'include/quoll').mkdir(parents=True)
    (prefix / 'include/quoll/net.h').write_text('// arm\n')
    (prefix / 'lib/cmake/quoll').mkdir(parents=True)
    (prefix / 'lib/cmake/quoll/quoll-config.cmake').write_text('# arm\n')
    (prefix / 'lib/cmake/other').mkdir()
    (prefix / 'lib/libother.a').write_text('not ours')
    yml = write(caffe.folder, 'target_abis: [host, arm64-v8a]\n' + CAFFE)
    options = ['--no-benchmark', '--no-validate', *without_library(caffe.folder)]
    assert 'arm64-v8a=PREFIX' in deploy(yml, caffe.folder, *options, code=1)
    assert 'no libquoll' in deploy(yml, caffe.folder, *options, '--sdk', f'arm64-v8a={prefix}', code=1)
    assert 'include/quoll/net.h' in deploy(yml, caffe.folder, *options, '--sdk', f'arm64-v8a={tmp_path}/none', code=1)
    (prefix / 'lib/libquoll.a').write_text('arm')
    package = deploy(yml, caffe.folder, *options, '--sdk', f'arm64-v8a={prefix}')
    arm = package / 'sdk/arm64-v8a'
    assert sorted(str(p.relative_to(arm)) for p in arm.rglob('*') if p.is_file()) == [
        'include/quoll/net.h', 'lib/cmake/quoll/quoll-config.cmake', 'lib/libquoll.a']
    assert (package / 'sdk/host/include/quoll/net.h').read_text() == 'nothing'


@pytest.mark.parametrize('old, new, message', [
    ('library_name: face-kit', 'library_name: [1, 2]', '1:1: library_name: expected the name of the library, got a list'),
    ('library_name: face-kit', 'library_name: ../x', '1:1: library_name: expected letters'),
    ('library_name: face-kit\n', '', '1:1: library_name: is missing'),
    ('model_graph_format: file', 'model_graph_format: proto', "2:1: model_graph_format: expected file or code, got 'proto'"),
    ('model_data_format: file', 'model_data_format: code', '3:1: model_data_format: expected file'),
    ('model_data_format: file', 'model_data_formt: file', '3:1: model_data_formt: is no key of this place'),
    ('model_graph_format: file', 'model_graph_format: code', "5:3: models.small.net: is no C++ identifier"),
    ('models:', 'model:', 'models: is missing'),
    ('  small.net:\n', '  small.net: 3\n  other:\n', '5:14: models.small.net: expected a mapping, got a value'),
    ('  small.net:\n', '  small.net: {}\n  small.net:\n', '6:3: models.small.net: given twice'),
    ('platform: caffe', 'platform: keras', "6:5: models.small.net.platform: expected onnx, caffe or ncnn, got 'keras'"),
    ('platform: caffe', 'platform: onnx', 'weight_file_path: is not supported'),
    ('    weight_file_path: m.caffemodel\n', '', 'weight_file_path: is missing, expected the path of a .caffemodel'),
    ('m.prototxt', 'http://host/m.prototxt', '7:5: models.small.net.model_file_path: expected the path of a file here'),
    ('model_file_path: m.prototxt', 'model_file_path: no.prototxt', 'No such file'),
    ('model_file_path: m.prototxt', 'model_file_path: .', 'directory'),
    ('model_file_path: m.prototxt', 'model_file_path: m.caffemodel', 'm.caffemodel:'),
    ('    subgraphs:', '    model_sha256_checksum: abc\n    subgraphs:', '9:5: models.small.net.model_sha256_checksum: expected 64 hex'),
    ('    subgraphs:', f'    weight_sha256_checksum: {"0" * 64}\n    subgraphs:', 'weight_sha256_checksum: expected 000'),
    ('[data]', '[nothing]', "no tensor 'nothing' is in the model; inputs: data; outputs: prob"),
    ('[data]', '[fc]', "input_shapes: 'fc' is 1,5,6,3 NHWC here, expected (4)"),
    ('[prob]', '[conv, fc]', '13:9: models.small.net.subgraphs.output_shapes: expected 2, one for each tensor, got 1'),
    ('[prob]', '', '12:9: models.small.net.subgraphs.output_tensors: expected names of tensors, got nothing'),
    ('1,5,6,3', '1,3,5,6', "11:24: input_shapes: 'data' is 1,3,5,6 NHWC here, expected (3,5,6)"),
    ('1,5,6,3', '2,5,6,3', 'a batch of 1'),
    ('1,5,6,3', '1,5,0,3', "11:24: models.small.net.subgraphs.input_shapes: expected sizes as 1,224,224,3, got '1,5,0,3'"),
    ('1,5,6,3', '1,1,1,5,6,3', 'at most 5 axes'),
    ('["1,4"]', '["1,5"]', "13:25: output_shapes: 'prob' is 1,5 NHWC here, the model gives (4)"),
    ('      - input_tensors', '      - {}\n      - input_tensors', 'subgraphs: expected a list of one mapping'),
    ('    data_type: fp32_fp32', '    data_type: fp16_fp16', 'data_type: expected fp16_fp32, bf16_fp32 or fp32_fp32'),
    ('    data_type: fp32_fp32', '    winograd: 6', 'winograd: expected 0, 2 or 4'),
    ('    data_type: fp32_fp32', '    runtime: hta', 'runtime: expected cpu, gpu, cpu+gpu or cpu_gpu'),
    ('    data_type: fp32_fp32', '    quantize: 1', 'quantize: expected 0'),
    ('    data_type: fp32_fp32', '    backend: onnxruntime', 'backend: expected quoll'),
    ('    data_type: fp32_fp32', '    validation_threshold: {CPU: 1.5}', 'validation_threshold.CPU: expected a number from 0 to 1'),
    ('    data_type: fp32_fp32', '    validation_threshold: 0.9', 'validation_threshold: expected a mapping, got a value'),
    ('[nhwc.npy]', '[nchw.npy]', 'sizes 1,3,5,6, expected 1,5,6,3'),
    ('[nhwc.npy]', '[none.npy]', 'none.npy'),
    ('[nhwc.npy]', '[nhwc.npy, nhwc.npy]', 'validation_inputs_data: expected 1, one for each tensor, got 2'),
    ('        validation_inputs_data: [nhwc.npy]\n', '', 'validation_outputs_data: needs validation_inputs_data'),
    ('models:', 'models: [', 'no YAML'),
    ('models:', '---\nmodels:', 'expected one document, got several'),
    (CAFFE, '', 'expected one document, got none'), (CAFFE, '3', '1:1: expected a mapping, got a value'),
    (CAFFE, '\x00\x01\xff' * 30, ''), (CAFFE, '[' * 50000, 'no YAML'),
], ids=lambda v: v[:30].strip() if isinstance(v, str) else None)
def test_what_is_wrong(caffe, old, new, message):
    assert old in CAFFE
    yml = write(caffe.folder, CAFFE.replace(old, new, 1))
    done = run_program('enginedeploy', yml, caffe.folder / 'out.tar.gz')
    assert done.returncode == 1, done.stdout + done.stderr
    assert last_line(done.stderr).startswith('enginedeploy: ') and message in done.stderr
    assert not list(caffe.folder.glob('out.tar.gz*'))


def test_all_problems_are_listed(caffe):
    text = CAFFE.replace('face-kit', '+').replace('caffe\n', 'cafe\n').replace('[prob]', '').replace('fp32_', 'fp8_')
    done = run_program('enginedeploy', '--check', write(caffe.folder, text))
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 4
    assert all(f'quoll.yml:{line}:' in done.stderr for line in (1, 6, 12, 16))
    done = run_program('enginedeploy', '--check', write(caffe.folder, CAFFE + '    limit_opencl_kernel_time: 1\n'))
    assert done.returncode == 0 and 'quoll.yml:17:5: models.small.net.limit_opencl_kernel_time: has no effect' in done.stderr


def test_an_archive_that_cannot_be_written(caffe):
    options = ['--no-benchmark', '--no-validate']
    yml = write(caffe.folder, CAFFE)
    for archive, message in (caffe.folder, 'folder'), (caffe.folder / 'no/a.tar.gz', 'No such file'), ('/dev/full', 'written'):
        done = run_program('enginedeploy', yml, archive, *options)
        assert done.returncode == 1 and message in last_line(done.stderr), done.stderr
    assert not list(caffe.folder.glob('*.part*'))


def test_no_onnx_runtime(tmp_path):
    """Without it an ONNX model is compared with itself, and that is said; unless it was asked for."""
    text = EXAMPLE.read_text().replace('../../models', str(ROOT / 'models'))
    text = text[:text.index('  digits_ncnn:')]
    python = tmp_path / 'python'
    python.write_text('#!/bin/sh\necho nothing here >&2\nexit 1\n')
    python.chmod(0o755)
    done = run_program('enginedeploy', write(tmp_path, text), tmp_path / 'a.tar.gz', '--no-benchmark', '--python', python,
                       *without_library(tmp_path))
    assert done.returncode == 0 and 'nothing here' in done.stderr and 'before optimisation' in done.stdout
    yml = write(tmp_path, text + '    backend: onnxruntime\n')
    assert 'nothing here' in deploy(yml, tmp_path, '--no-benchmark', '--python', python, code=1)
