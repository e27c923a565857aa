"""The C API's header: every function is documented, called by the test program and in the library; its ABI is the one that was stored.

A change that programs compiled before do not survive fails here. One that only adds: store the ABI anew with
`python tests/python/test_c_abi.py`, which needs abidw (Debian's abigail-tools).
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER = ROOT / 'include/quoll/c_api.h'
STORED = ROOT / 'tests/c_api/c_api.abi'
DECLARATION = re.compile(r'^((?:const )?\w[\w ]*\*? ?)\b(quoll_\w+)\(([^;{]*?)\);', re.M)


def declarations():
    text = re.sub(r'/\*.*?\*/', '', HEADER.read_text(), flags=re.S)
    text = re.sub(r'struct \w+ \{.*?\};', '', text, flags=re.S)
    return [(result.strip(), name, args) for result, name, args in DECLARATION.findall(text) if 'typedef' not in result]


def abi(folder):
    """The ABI of a library with a body for every declaration of the header; the real ones include it and so agree."""
    source, library, dump = folder / 'stub.c', folder / 'stub.so', folder / 'stub.abi'
    bodies = ''.join(f'{result} {name}({args}) {{ abort(); }}\n' for result, name, args in declarations())
    source.write_text(f'#include <stdlib.h>\n#include "quoll/c_api.h"\n{bodies}')
    subprocess.run(['cc', '-w', '-g', '-shared', '-fPIC', f'-I{ROOT / "include"}', str(source), '-o', str(library)], check=True)
    subprocess.run(['abidw', '--headers-dir', str(ROOT / 'include/quoll'), '--header-file', str(HEADER), '--no-show-locs', '--no-comp-dir-path',
                    '--no-corpus-path', '--out-file', str(dump), str(library)], check=True)
    return dump


def test_every_function_is_documented():
    """A comment stands above the group of declarations, which an empty line ends."""
    names = {name for _, name, _ in declarations()}
    undocumented = set()
    for group in HEADER.read_text().split('\n\n'):
        code = re.sub(r'/\*.*?\*/', '', group, flags=re.S)
        if not group.lstrip().startswith('/*'):
            undocumented |= {name for name in re.findall(r'\b(quoll_\w+)\(', code)} & names
    assert len(names) > 200 and not undocumented


def test_every_function_is_called_from_c():
    text = (ROOT / 'tests/c_api/test_c_api.c').read_text()
    for macro, pattern in (('CHECK_SWITCH', 'option'), ('CHECK_FLAG', 'layer')):
        for name in re.findall(rf'{macro}\((\w+)\);', text):
            text += f' quoll_{pattern}_get_{name}( quoll_{pattern}_set_{name}('
    for channels in re.findall(r'CHECK_DRAWING\((c\d),', text):
        text += ''.join(f' quoll_draw_{what}_{channels}(' for what in ('rectangle', 'text', 'circle', 'line'))
    assert {name for _, name, _ in declarations()} <= set(re.findall(r'\b(quoll_\w+)\(', text))


def test_every_function_is_in_the_library():
    library = ROOT / 'build/lib/libquoll.so'
    if not library.exists() or not shutil.which('nm'):
        pytest.skip('no library in build/lib, or no nm')
    symbols = subprocess.run(['nm', '-D', '--defined-only', str(library)], capture_output=True, text=True, check=True).stdout
    assert {name for _, name, _ in declarations()} <= set(re.findall(r' T (quoll_\w+)', symbols))


OLD_COMPILERS = [['cc', '-std=c89'], ['c++', '-x', 'c++', '-std=c++98']]
PEDANTIC = ['-pedantic', '-Wall', '-Wextra', '-Werror', '-fsyntax-only', f'-I{ROOT / "include"}']


@pytest.mark.parametrize('language', OLD_COMPILERS)
def test_old_compilers_take_it(tmp_path, language):
    source = tmp_path / 'include.c'
    source.write_text('#include <quoll/c_api.h>\nint main(void) { return quoll_version_number() < 0; }\n')
    subprocess.run([*language, *PEDANTIC, str(source)], check=True)


@pytest.mark.parametrize('language', OLD_COMPILERS)
def test_old_compilers_take_the_names_of_ncnn(tmp_path, language):
    generated = ROOT / 'build/generated/public'
    if not (generated / 'quoll/platform.h').exists():
        pytest.skip('no platform.h in build/generated/public')
    source = tmp_path / 'include.c'
    source.write_text('#include "c_api.h"\nint main(void) {\n    ncnn_net_t net = ncnn_net_create();\n    ncnn_net_destroy(net);\n'
                      '    return ncnn_version_number() < 20260000;\n}\n')
    subprocess.run([*language, *PEDANTIC, f'-I{generated}', f'-I{ROOT / "include/quoll/ncnn"}', str(source)], check=True)


def test_the_abi_is_the_stored_one(tmp_path):
    if not shutil.which('abidiff'):
        pytest.skip('abidiff is missing: scripts/install_deps.sh --tests installs abigail-tools')
    diff = subprocess.run(['abidiff', str(STORED), str(abi(tmp_path))], capture_output=True, text=True)
    assert diff.returncode == 0, diff.stdout + diff.stderr


if __name__ == '__main__':
    with tempfile.TemporaryDirectory() as temporary:
        shutil.copy(abi(pathlib.Path(temporary)), STORED)
    sys.exit(0)
