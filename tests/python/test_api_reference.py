"""The API reference (target `docs`): every public name is documented, and one that is not ends the build."""
import shutil
import subprocess

import pytest

from conftest import BIN

CONFIGURATION = BIN.parent / 'docs/Doxyfile'
pytestmark = pytest.mark.skipif(not shutil.which('doxygen') or not CONFIGURATION.exists(), reason='doxygen is not installed')


def reference(folder, *more):
    lines = [f'@INCLUDE = {CONFIGURATION}', f'OUTPUT_DIRECTORY = {folder}', *more]
    return subprocess.run(['doxygen', '-'], input='\n'.join(lines), capture_output=True, text=True)


def test_every_public_name_is_documented(tmp_path):
    done = reference(tmp_path)
    assert done.returncode == 0 and not done.stderr, done.stderr
    pages = {path.name: path.read_text() for path in (tmp_path / 'html').glob('*.html')}
    assert 'Sets all data, of whatever dtype' in pages['classquoll_1_1Mat.html']
    for name, page in (('Extractor', 'classquoll_1_1Extractor'), ('quoll_net_load_param', 'c__api_8h'), ('copy_make_border', 'namespacequoll'),
                       ('from_pixels_resize', 'classquoll_1_1Mat'), ('kOutOfMemory', 'namespacequoll'), ('use_reserved_11', 'classquoll_1_1Option')):
        assert name in pages[f'{page}.html'], name


def test_a_name_without_documentation_is_an_error(tmp_path):
    (tmp_path / 'quoll').mkdir()
    header = tmp_path / 'quoll/probe.h'
    header.write_text('// A header.\n\nnamespace quoll {\n\n// A class.\nclass Probe {\npublic:\n    int said();  // a number\n    int unsaid();\n};\n\n}\n')
    done = reference(tmp_path, f'INPUT += {header}')
    assert done.returncode != 0
    assert 'unsaid' in done.stderr and 'said()' not in done.stderr.replace('unsaid()', '')
