"""docs/errors.md has every message of the library and every status, and none that is gone."""
import re

from conftest import ROOT

PAGE = (ROOT / 'docs/errors.md').read_text()
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
# printf's conversions, and the macros for those of fixed-size integers between two literals.
CONVERSION = re.compile(r'%[-+ 0#]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z|j|t)?[a-zA-Z]')


def first_argument(text, begin):
    """The C++ text of the first argument of a call whose arguments begin there."""
    depth, i = 0, begin
    while depth >= 0:
        if text[i] == '"':
            i = LITERAL.match(text, i).end()
            continue
        depth += {'(': 1, ')': -1}.get(text[i], 0)
        if text[i] == ',' and depth == 0:
            break
        i += 1
    return text[begin:i]


def normalised(message):
    return re.sub('…+', '…', CONVERSION.sub('…', message.replace(r'\"', '"')))


def messages():
    """{message: file} of all errors that src can say."""
    found = {}
    for path in sorted((ROOT / 'src').rglob('*')):
        if path.suffix not in ('.cpp', '.h', '.inc'):
            continue
        text = path.read_text()
        for call in re.finditer(r'QUOLL_LOGE\(', text):
            argument = first_argument(text, call.end())
            # cond ? "one" : "other" are two messages; literals side by side are one.
            for part in re.split(r'\?|(?<=") *\n? *:', argument):
                message = normalised(''.join(LITERAL.findall(part)))
                if LITERAL.search(part):
                    found.setdefault(message, str(path.relative_to(ROOT)))
    return found


def rows():
    tables = [line for line in PAGE.splitlines() if line.startswith('| `')]
    return {message for line in tables for message in re.findall(r'`([^`]+)`', line.split(' | ')[0])}


def test_every_message_has_a_row():
    said = messages()
    assert len(said) > 150
    # What opt.check_finite has found is one value, without words of its own here.
    missing = {message: path for message, path in said.items() if message not in rows() and message != '…'}
    assert not missing, missing


def test_no_row_is_of_a_message_that_is_gone():
    layers = PAGE[PAGE.index('## Layers'):PAGE.index('## Writing')]  # examples of what layers say
    codes = PAGE[:PAGE.index('## Files of models')]
    gone = {message for message in rows() - set(messages()) if f'`{message}`' not in layers + codes}
    assert not gone, gone


def test_every_status_has_a_row():
    names = re.findall(r'^\s+(k\w+) = -?\d+', (ROOT / 'include/quoll/status.h').read_text(), re.M)
    c_header = (ROOT / 'include/quoll/c_api.h').read_text()
    enum = c_header[c_header.index('enum quoll_status'):]
    names += re.findall(r'(QUOLL_\w+) = -?\d+', enum[:enum.index('}')])
    assert len(names) >= 9
    table = PAGE[PAGE.index('## Codes'):PAGE.index('## Programs')]
    assert not [name for name in names if f'`{name}`' not in table]
