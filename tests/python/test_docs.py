"""The hand-written pages of docs/operators speak of layers that exist."""
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAYERS = set(re.findall(r'^QUOLL_LAYER(?:_FAST)?\(\d+, (\w+),', (ROOT / 'src/layer/layer_list.inc').read_text(), re.M))


def test_layers_of_the_mapping_tables_exist():
    rows = [line.split('|')[2:] for line in (ROOT / 'docs/operators/mace-neuropilot.md').read_text().splitlines()
            if line.startswith('| ') and not line.startswith('|---')]
    named = {name for cells in rows for name in re.findall(r'`([A-Z]\w*)`', ' '.join(cells))}
    assert len(named) > 40
    assert not named - LAYERS


PAGES = sorted(str(p.relative_to(ROOT)) for p in [*ROOT.glob('*.md'), *(ROOT / 'docs').rglob('*.md')])


def anchors(path):
    headings = re.findall(r'^#+ (.*)$', re.sub(r'```.*?```', '', path.read_text(), flags=re.S), re.M)
    return {re.sub(r'[^\w -]', '', heading.lower()).replace(' ', '-') for heading in headings}


@pytest.mark.parametrize('page', PAGES)
def test_links_between_pages(page):
    path = ROOT / page
    text = re.sub(r'```.*?```', '', path.read_text(), flags=re.S)
    for target, anchor in re.findall(r'\]\(([^)#:\s]*)#?([^):\s]*)\)', re.sub(r'`[^`\n]*`', '', text)):
        other = path.parent / target if target else path
        assert other.exists(), target
        assert not anchor or anchor in anchors(other), f'{target}#{anchor}'
