"""Commands in the pages for users: programs have the options that these give them, and take the values."""
import functools
import re

import pytest

from conftest import BIN, ROOT, run_program

PAGES = ['README.md', *(f'docs/{name}.md' for name in ('faq', 'getting-started', 'models', 'ncnn', 'onnx', 'python', 'quantise', 'threads', 'vulkan'))]


@functools.lru_cache(None)
def options(program):
    """Each option of --help, and the values it has to be one of, if they are listed."""
    found = {}
    for names, values in re.findall(r'^ +(-[\w,-]+)(?: \w+:\{([^}]*)\})?', run_program(program, '--help').stdout, re.M):
        for name in names.split(','):
            found[name] = values.split(',') if values else None
    return found


def commands(page):
    text = (ROOT / page).read_text()
    blocks = re.findall(r'```\w*\n(.*?)```', text, re.S)
    spans = re.findall(r'`([^`\n]+)`', re.sub(r'```.*?```', '', text, flags=re.S))
    for line in spans + [line.split('#')[0] for block in blocks for line in block.replace('\\\n', ' ').splitlines()]:
        words = line.split()
        program = words[0].split('/')[-1] if words else ''
        if re.fullmatch(r'[a-z0-9]+', program) and (BIN / program).is_file():
            yield line, program, words[1:]


@pytest.mark.parametrize('page', PAGES)
def test_options_exist(page):
    for line, program, words in commands(page):
        for i, word in enumerate(words):
            if not word.startswith('--'):
                continue
            name, _, value = word.partition('=')
            assert name in options(program), f'{page}: {line}: {program} has no {name}'
            values = options(program)[name]
            if values and (value or i + 1 < len(words)):
                assert (value or words[i + 1]) in values, f'{page}: {line}: {name} takes {values}'


def test_pip_of_debian_12_knows_the_options():
    """Its version 23.0 has no -C for --config-settings."""
    for page in (*PAGES, 'scripts/test.sh'):
        assert '-C cmake.define' not in (ROOT / page).read_text(), page
