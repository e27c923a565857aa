"""ncnn2mem: the headers it writes are compiled as an application would, and run; nothing may differ from the files."""
import os
import re
import resource
import shutil
import struct
import subprocess

import numpy as np
import pytest

from conftest import BIN, ROOT, last_line, run_program
from engine import run_engine

BUILD = BIN.parent
DIGITS = ROOT / 'models' / 'digits'
GRAPHS = sorted(p.stem for p in (ROOT / 'benchmark' / 'models').glob('*.param'))
# Larger .bin files stay files: compiling them takes too long.
MOST_EMBEDDED_BYTES = 16 << 20

pytestmark = pytest.mark.skipif('ENGINERUN_PREFIX' in os.environ, reason='compiles for the machine that it runs on')


def compile_program(source, folder, *flags):
    (folder / 'main.cpp').write_text(source)
    done = subprocess.run(['c++', '-std=c++11', '-Wall', '-Wextra', '-Werror', *flags, '-I', ROOT / 'include',
                           '-I', BUILD / 'generated/public', folder / 'main.cpp', '-o', folder / 'main', BUILD / 'lib/libquoll.a',
                           '-pthread'], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / 'main'


def embed(param, folder, *args):
    stem = param.name[:-len('.param')]
    done = run_program('ncnn2mem', param, param.with_suffix('.bin'), folder / f'{stem}.id.h', folder / f'{stem}.mem.h',
                       '--param-bin', folder / f'{stem}.param.bin', *args)
    assert done.returncode == 0, done.stderr
    return done


class Graph:
    """Names of a text param: one list of layers, one of blobs in order of appearance."""

    def __init__(self, path):
        self.lines = [line.split() for line in path.read_text().splitlines()[2:]]
        self.layers = [words[1] for words in self.lines]
        self.inputs, self.blobs, read = {}, [], set()
        for words in self.lines:
            bottoms, tops = int(words[2]), int(words[3])
            names = words[4:4 + bottoms + tops]
            self.blobs += [name for name in dict.fromkeys(names) if name not in self.blobs]
            read.update(names[:bottoms])
            if words[0] == 'Input':
                sizes = dict(word.split('=') for word in words[4 + tops:])
                self.inputs[names[0]] = tuple(int(sizes[key]) for key in '210')
        self.outputs = [name for name in self.blobs if name not in read]


def rename(source, target):
    """A copy of a param whose names occur nowhere else."""
    graph = Graph(source)
    word = {name: f'zq{i:04d}blob' for i, name in enumerate(graph.blobs)}
    lines = source.read_text().splitlines()[:2]
    for i, words in enumerate(graph.lines):
        count = int(words[2]) + int(words[3])
        lines.append(' '.join([words[0], f'zq{i:04d}layer', *words[2:4], *(word[name] for name in words[4:4 + count]),
                               *words[4 + count:]]))
    target.write_text('\n'.join(lines) + '\n')
    return target


# argv: input.raw output.raw [weights]
PROGRAM = '''
#include <quoll/net.h>
#include <stdio.h>
#include "%(stem)s.id.h"
#include "%(stem)s.mem.h"
using namespace quoll;
int main(int argc, char** argv) {
    Net net;
    if (argc < 3 || net.load_param(%(stem)s_param_bin, sizeof(%(stem)s_param_bin)) != (int)sizeof(%(stem)s_param_bin)) return 1;
#if %(embedded)d
    if (net.load_model(%(stem)s_bin, sizeof(%(stem)s_bin)) != (int)sizeof(%(stem)s_bin)) return 2;
#else
    if (net.load_model(argv[3])) return 2;
#endif
    Mat in(%(w)d, %(h)d, %(c)d), out;
    FILE* fp = fopen(argv[1], "rb");
    for (int q = 0; q < in.c; q++)
        if (fread((float*)in.channel(q), 4, in.w * in.h, fp) != (size_t)in.w * in.h) return 3;
    fclose(fp);
    fp = fopen(argv[2], "wb");
    Extractor ex = net.create_extractor();
    if (ex.input(%(stem)s_param_id::BLOB_%(input)s, in)) return 4;
    const int outputs[] = {%(outputs)s};
    for (int blob : outputs) {
        if (ex.extract(blob, out)) return 5;
        for (int q = 0; q < out.c; q++)
            fwrite((const float*)out.channel(q), 4, (size_t)out.w * out.h * out.d, fp);
    }
    return fclose(fp) ? 6 : 0;
}
'''


def check_same(param, folder, external):
    """Compiles and runs the embedded model; its outputs must have the bits of the model loaded from files."""
    stem = param.stem
    embed(param, folder, *(['--external-weights'] if external else []))
    graph = Graph(param)
    (name, shape), = graph.inputs.items()
    source = PROGRAM % {'stem': stem, 'embedded': not external, 'w': shape[2], 'h': shape[1], 'c': shape[0], 'input': name,
                        'outputs': ', '.join(f'{stem}_param_id::BLOB_{out}' for out in graph.outputs)}
    program = compile_program(source, folder)
    x = np.random.default_rng(5).uniform(-1, 1, shape).astype(np.float32)
    x.tofile(folder / 'in.raw')
    done = subprocess.run([program, folder / 'in.raw', folder / 'out.raw'] + [param.with_suffix('.bin')] * external)
    assert done.returncode == 0
    expected = run_engine(param, param.with_suffix('.bin'), {name: x}, graph.outputs)
    np.testing.assert_array_equal(np.fromfile(folder / 'out.raw', np.uint32),
                                  np.concatenate([expected[out].view(np.uint32).ravel() for out in graph.outputs]))
    return program, graph


def check_no_names(graph, *files):
    for path in files:
        data = path.read_bytes()
        found = [name for name in graph.blobs + graph.layers if name.encode() in data]
        assert not found, (path, found)


@pytest.mark.parametrize('graph', ['digits'] + GRAPHS)
def test_bundled_models(graph, tmp_path):
    if graph == 'digits':
        source = DIGITS / 'digits.param'
        shutil.copy(DIGITS / 'digits.bin', tmp_path / 'net.bin')
    else:
        source = ROOT / 'benchmark' / 'models' / f'{graph}.param'
        done = run_program('benchmark', '1', '2', '0', '-1', '0', f'param={source}', '--warmup', '0', '--save-weights', tmp_path)
        assert done.returncode == 0, done.stderr
        (tmp_path / f'{graph}.bin').rename(tmp_path / 'net.bin')
    param = rename(source, tmp_path / 'net.param')
    external = (tmp_path / 'net.bin').stat().st_size > MOST_EMBEDDED_BYTES
    program, names = check_same(param, tmp_path, external)
    check_no_names(names, program, tmp_path / 'net.param.bin', tmp_path / 'net.mem.h')
    for path in tmp_path.iterdir():  # some are large
        path.unlink()


def test_digits_keep_their_names(tmp_path):
    """As most users will run it: the model's own names, weights inside and outside."""
    for external in False, True:
        folder = tmp_path / str(external)
        folder.mkdir()
        for kind in 'param', 'bin':
            shutil.copy(DIGITS / f'digits.{kind}', folder)
        check_same(folder / 'digits.param', folder, external)


@pytest.mark.parametrize('size', [0, 1, 3, 1 << 17, (1 << 17) + 1, 300001])
def test_arrays_have_the_files_bytes(tmp_path, size):
    """Small arrays are written as numbers, large ones as strings; both have the size and the bytes of the file."""
    (tmp_path / 'm.param').write_text('7767517\n2 2\nInput in 0 1 in\nOwnLayer own 1 1 in out\n')
    data = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    data[:min(size, 256)] = np.arange(min(size, 256))
    data.tofile(tmp_path / 'm.bin')
    done = embed(tmp_path / 'm.param', tmp_path)
    assert 'OwnLayer' in done.stderr  # the weights of custom layers are not known
    program = compile_program('#include <stdio.h>\n#include <stdint.h>\n#include "m.mem.h"\nint main() {\n'
                              'if ((uintptr_t)m_bin % 64 || (uintptr_t)m_param_bin % 64) return 1;\n'
                              'return fwrite(m_bin, 1, sizeof(m_bin), stdout) != sizeof(m_bin);\n}\n', tmp_path)
    done = subprocess.run([program], capture_output=True)
    assert done.returncode == 0
    assert done.stdout == (data.tobytes() or bytes(4))


@pytest.mark.parametrize('flags', [['-O2'], ['-std=c++20']])
def test_several_models_in_one_program(tmp_path, flags):
    """Two models of one file name, and a third; one of their headers is not used at all."""
    source = '#include <quoll/net.h>\n'
    for i, space in enumerate(['first', 'team::second', 'third']):
        folder = tmp_path / f'm{i}'
        folder.mkdir()
        (folder / 'net.param').write_text(f'7767517\n2 2\nInput in{i} 0 1 in{i}\nBias b{i} 1 1 in{i} out{i} 0=1\n')
        (folder / 'net.bin').write_bytes(struct.pack('<f', 10 * (i + 1)))
        embed(folder / 'net.param', folder, '--namespace', space)
        source += f'#include "m{i}/net.id.h"\n#include "m{i}/net.mem.h"\n'
    source += 'using namespace quoll;\nint main() {\n    float sum = 0;\n'
    for i, space in enumerate(['first', 'team::second']):
        source += f'''    {{
        namespace m = {space};
        Net net;
        if (!net.load_param(m::net_param_bin) || !net.load_model(m::net_bin)) return 1;
        Extractor ex = net.create_extractor();
        Mat in(1), out;
        in[0] = {i + 1}.f;
        if (ex.input(m::net_param_id::BLOB_in{i}, in) || ex.extract(m::net_param_id::BLOB_out{i}, out)) return 2;
        sum += out[0];
    }}
'''
    source += '    return sum == 33.f ? 0 : 3;\n}\n'
    assert subprocess.run([compile_program(source, tmp_path, *flags)]).returncode == 0


def test_large_array_that_is_not_used(tmp_path):
    (tmp_path / 'm.param').write_text('7767517\n2 2\nInput in 0 1 in\nOwnLayer own 1 1 in out\n')
    (tmp_path / 'm.bin').write_bytes(bytes(200000))
    embed(tmp_path / 'm.param', tmp_path)
    compile_program('#include "m.mem.h"\n#include "m.mem.h"\n#include "m.id.h"\n#include "m.id.h"\nint main() {}\n', tmp_path)
    if shutil.which('clang++'):
        subprocess.run(['clang++', '-std=c++11', '-Wall', '-Wextra', '-Wpedantic', '-Werror', '-c', 'main.cpp'], cwd=tmp_path,
                       check=True)


def test_identifiers(tmp_path):
    """Names that are no identifiers, or become the same one, and custom types: each gets a number of its own."""
    blobs = ['a/b', 'a_b', 'a-b', 'int', '3', 'conv1/3x3_s2', 'é', 'a_b_2', 'x:0']
    lines = [f'Input l 0 1 {blobs[0]}'] + [f'{t} l 1 1 {a} {b}' for t, a, b in
                                          zip(['ReLU', 'My::Op', 'Other', 'My::Op'] + ['ReLU'] * 9, blobs, blobs[1:])]
    param = tmp_path / '7-net.v1.param'
    param.write_text(f'7767517\n{len(lines)} {len(blobs)}\n' + '\n'.join(lines) + '\n')
    (tmp_path / '7-net.v1.bin').write_bytes(b'')
    embed(param, tmp_path)
    text = (tmp_path / '7-net.v1.id.h').read_text()
    ids = dict(re.findall(r'(BLOB_\w+) = (\d+),', text))
    assert sorted(map(int, ids.values())) == list(range(len(blobs)))
    assert (ids['BLOB_a_b'], ids['BLOB_int'], ids['BLOB_3'], ids['BLOB_conv1_3x3_s2']) == ('1', '3', '4', '5')
    layers = dict(re.findall(r'(LAYER_\w+) = (\d+),', text))
    assert sorted(map(int, layers.values())) == list(range(len(lines))) and layers['LAYER_l'] == '0'
    compile_program('#include <quoll/layer.h>\n#include <quoll/net.h>\n#include "7-net.v1.id.h"\n#include "7-net.v1.mem.h"\n'
                    'struct Same : quoll::Layer { Same() { one_blob_only = support_inplace = true; }\n'
                    'int forward_inplace(quoll::Mat&, const quoll::Option&) const override { return 0; } };\n'
                    'DEFINE_LAYER_CREATOR(Same)\nnamespace id = _7_net_v1_param_id;\nint main() {\n    quoll::Net net;\n'
                    '    net.register_custom_layer(id::TYPEINDEX_My__Op, Same_layer_creator);\n'
                    '    net.register_custom_layer(id::TYPEINDEX_Other, Same_layer_creator);\n'
                    '    if (!net.load_param(_7_net_v1_param_bin) || net.load_model(_7_net_v1_bin)) return 1;\n'
                    '    return net.layers()[id::LAYER_l]->tops[0] == id::BLOB_a_b ? 1 : 0;\n}\n', tmp_path)
    assert subprocess.run([tmp_path / 'main']).returncode == 0


@pytest.fixture
def net(tmp_path):
    (tmp_path / 'm.param').write_text('7767517\n2 2\nInput in 0 1 in\nBias b 1 1 in out 0=2\n')
    (tmp_path / 'm.bin').write_bytes(struct.pack('<2f', 1, 2))
    return tmp_path


def refused(folder, *args, code=1):
    before = {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}
    done = run_program('ncnn2mem', *args)
    assert done.returncode == code, done.stdout + done.stderr
    assert {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()} == before, 'files were left or changed'
    assert last_line(done.stderr).startswith('ncnn2mem: ')
    return last_line(done.stderr)


def test_what_is_refused(net):
    good = [net / 'm.param', net / 'm.bin', net / 'm.id.h', net / 'm.mem.h']
    (net / 'm.mem.h').write_text('what was there before')
    assert 'No such file' in refused(net, net / 'no.param', *good[1:])
    assert 'No such file' in refused(net, good[0], net / 'no.bin', *good[2:])
    assert 'No such file' in refused(net, *good[:3], net / 'no' / 'm.mem.h')
    assert 'folder' in refused(net, *good[:3], net)
    assert 'twice' in refused(net, *good[:2], net / 'm.h', net / 'm.h')
    assert 'is an input' in refused(net, *good[:3], net / 'm.bin')
    assert 'cannot be written' in refused(net, *good[:3], '/dev/full')
    assert 'cannot be written' in refused(net, *good, '--param-bin', '/dev/full')
    assert 'both be called' in refused(net, net / 'm.param', shutil.copy(net / 'm.bin', net / 'm.param_bin'), *good[2:])
    (net / 'm.bin').write_bytes(struct.pack('<f', 1))
    assert '[Bias b]' in refused(net, *good)
    (net / 'm.param').write_text('7767517\n2 2\nInput in 0 1 in\nBias b 1 1 in out 0=-2\n')
    assert '[Bias b]' in refused(net, *good)
    for space in '', '3d', 'a::', 'a:b', 'namespace', 'a b':
        assert 'no C++ namespace' in refused(net, *good, '--namespace', space, code=2)
    refused(net, *good[:3], code=2)


def test_where_files_go(net):
    """The binary param lies beside the text by default; files that are there keep their mode, links stay links."""
    (net / 'm.bin').write_bytes(struct.pack('<3f', 1, 2, 3))
    (net / 'real.h').write_text('old')
    (net / 'real.h').chmod(0o640)
    (net / 'm.mem.h').symlink_to('real.h')
    done = run_program('ncnn2mem', net / 'm.param', net / 'm.bin', net / 'm.id.h', net / 'm.mem.h')
    assert done.returncode == 0 and '4 bytes more' in done.stderr
    assert sorted(p.name for p in net.iterdir()) == ['m.bin', 'm.id.h', 'm.mem.h', 'm.param', 'm.param.bin', 'real.h']
    assert (net / 'm.mem.h').is_symlink() and (net / 'real.h').stat().st_mode & 0o777 == 0o640
    assert 'm_bin[12]' in (net / 'real.h').read_text()
    (net / 'm.bin').write_bytes(struct.pack('<2f', 1, 2))  # a file holds one model's weights alone
    binary = run_engine(net / 'm.param.bin', net / 'm.bin', {'0': np.zeros((2, 1, 1), np.float32)}, ['1'])['1']
    np.testing.assert_array_equal(binary.ravel(), [1, 2])


def test_version():
    done = run_program('ncnn2mem', '--version')
    assert done.returncode == 0 and re.fullmatch(r'quoll \d+\.\d+\.\d+\n', done.stdout)


# The stream cipher of the example, written a second time.
def chacha20(key, nonce, data):
    def rounds(s, a, b, c, d):
        for x, y, z, bits in (a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7):
            s[x] = s[x] + s[y] & 0xffffffff
            v = s[z] ^ s[x]
            s[z] = (v << bits | v >> 32 - bits) & 0xffffffff

    out = bytearray()
    for block in range((len(data) + 63) // 64):
        start = list(struct.unpack('<16I', b'expand 32-byte k' + key + struct.pack('<I', block) + nonce))
        s = list(start)
        for _ in range(10):
            for i in range(4):
                rounds(s, i, i + 4, i + 8, i + 12)
            for i in range(4):
                rounds(s, i, (i + 1) % 4 + 4, (i + 2) % 4 + 8, (i + 3) % 4 + 12)
        out += struct.pack('<16I', *((x + y) & 0xffffffff for x, y in zip(s, start)))
    return bytes(x ^ y for x, y in zip(data, out))


def test_encrypted_example(tmp_path):
    # RFC 8439, appendix A.1, test vector 1: the first key stream block of a zero key.
    assert chacha20(bytes(32), bytes(12), bytes(8)).hex() == '76b8e0ada0f13d90'
    key = bytes(range(32))
    for part in 'param', 'bin':
        plain = (DIGITS / f'digits.{part}').read_bytes()
        nonce = os.urandom(12)
        (tmp_path / part).write_bytes(nonce + chacha20(key, nonce, plain))
        done = run_program('encrypted', 'seal', key.hex(), DIGITS / f'digits.{part}', tmp_path / f'{part}.sealed')
        assert done.returncode == 0
        sealed = (tmp_path / f'{part}.sealed').read_bytes()
        assert chacha20(key, sealed[:12], sealed[12:]) == plain
        # In place, too.
        (tmp_path / 'own').write_bytes(plain)
        assert run_program('encrypted', 'seal', key.hex(), tmp_path / 'own', tmp_path / 'own').returncode == 0
        sealed = (tmp_path / 'own').read_bytes()
        assert chacha20(key, sealed[:12], sealed[12:]) == plain
    full = {'preexec_fn': lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)), 'restore_signals': False}
    done = subprocess.run([BIN / 'encrypted', 'seal', key.hex(), DIGITS / 'digits.bin', tmp_path / 'half'], capture_output=True, text=True, **full)
    assert done.returncode == 1 and 'cannot be written' in done.stderr and (tmp_path / 'half').stat().st_size == 0
    done = run_program('encrypted', 'run', key.hex(), tmp_path / 'param', tmp_path / 'bin')
    assert done.returncode == 0 and 'digit 2' in done.stdout
    done = run_program('encrypted', 'run', bytes(32).hex(), tmp_path / 'param', tmp_path / 'bin')
    assert done.returncode == 1 and 'another key' in done.stderr


def test_embedded_example_needs_no_files(tmp_path):
    shutil.copy(BIN / 'embedded', tmp_path)
    done = subprocess.run([tmp_path / 'embedded'], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and 'digit 2' in done.stdout
