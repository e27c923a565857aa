"""Toolchain files, also those whose compiler is not here: what each sets, and the presets and packages that go with it."""
import json
import subprocess

import pytest

from conftest import ROOT

TOOLCHAINS = sorted(p for p in (ROOT / 'toolchains').glob('*.cmake') if p.name != 'linux-gnu.cmake')
PRESETS = {p['name']: p for p in json.loads((ROOT / 'CMakePresets.json').read_text())['configurePresets']}
CROSS = sorted(name for name, p in PRESETS.items() if 'toolchainFile' in p)


@pytest.mark.parametrize('path', [p for p in TOOLCHAINS if 'wasm' not in p.name], ids=lambda p: p.stem)
def test_sets_system_and_compiler(path, tmp_path):
    names = ['CMAKE_SYSTEM_NAME', 'CMAKE_SYSTEM_PROCESSOR', 'CMAKE_C_COMPILER', 'CMAKE_CXX_COMPILER', 'CMAKE_FIND_ROOT_PATH', 'CMAKE_CROSSCOMPILING_EMULATOR']
    script = tmp_path / 'show.cmake'
    script.write_text(f'include("{path}")\n' + ''.join(f'message("{name}=${{{name}}}")\n' for name in names))
    done = subprocess.run(['cmake', '-P', script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    values = dict(line.split('=', 1) for line in done.stderr.splitlines())
    assert all(values[name] for name in names), values
    assert values['CMAKE_SYSTEM_NAME'] in ('Linux', 'Windows')
    assert values['CMAKE_CXX_COMPILER'].split('-')[0] == values['CMAKE_C_COMPILER'].split('-')[0]


def test_emscripten_is_asked_for(tmp_path):
    script = tmp_path / 'show.cmake'
    script.write_text(f'set(QUOLL_EMSCRIPTEN QUOLL_EMSCRIPTEN-NOTFOUND)\nset(CMAKE_FIND_USE_CMAKE_PATH OFF)\ninclude("{ROOT}/toolchains/wasm32-emscripten.cmake")\n')
    done = subprocess.run(['cmake', '-P', script], capture_output=True, text=True, env={'PATH': '/usr/bin:/bin'})
    assert done.returncode == 0 or 'Emscripten is missing: install' in done.stderr, done.stderr


@pytest.mark.parametrize('preset', CROSS)
def test_preset_has_its_file_and_packages(preset):
    assert PRESETS[preset]['toolchainFile'].replace('${sourceDir}', str(ROOT)) in map(str, TOOLCHAINS)
    if preset != 'wasm':  # emscripten installs a thousand packages; the page names it
        text = (ROOT / 'scripts/install_deps.sh').read_text()
        assert any(preset in line.split(')')[0].replace('|', ' ').split() for line in text.splitlines() if ') packages+=' in line), preset


def test_each_file_has_a_preset():
    used = {PRESETS[p]['toolchainFile'].rsplit('/', 1)[1] for p in CROSS}
    assert used == {p.name for p in TOOLCHAINS}
