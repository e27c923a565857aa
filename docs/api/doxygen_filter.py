#!/usr/bin/env python3
"""Doxygen's input filter: comments of the headers are documentation as they stand.

A comment above a declaration is that of all declarations up to the next comment, empty line or line of the preprocessor; one behind a
declaration on its line is that one's; the first is the file's. Files that end in .inc are put where they are included.
"""
import pathlib
import re
import sys

COMMENT = re.compile(r'^(\s*)//(?!/) ?(.*)$')
TRAILING = re.compile(r'^(\s*[^\s/].*?[;,{\w)])\s*//(?!/) ?(.*)$')
BLOCK = re.compile(r'^(\s*)/\*(?!\*) ?(.*)$')
INCLUDE = re.compile(r'^\s*#include "(quoll/\w+\.inc)"')


def with_includes(path):
    root = pathlib.Path(path).resolve().parents[1]
    for line in pathlib.Path(path).read_text(encoding='utf-8').splitlines():
        included = INCLUDE.match(line)
        yield from (root / included.group(1)).read_text(encoding='utf-8').splitlines() if included else [line]


def without_blocks(lines):
    """C's comments as C++'s."""
    inside, indent = False, ''
    for line in lines:
        begin = BLOCK.match(line)
        if not inside and not begin:
            yield re.sub(r'/\* ?(.*?) ?\*/$', r'// \1', line)
            continue
        if not inside:
            indent, line = begin.groups()
        inside = '*/' not in line
        yield f'{indent}// ' + re.sub(r'^\s*\* ?', '', line.replace('*/', '')).rstrip()


def escaped(text):
    """Without what Doxygen would take for commands, tags or links; examples, which are indented, are as they are."""
    return text if text.startswith('    ') else re.sub(r'([\\@<>#&%])', r'\\\1', text)


def one_name_each(lines):
    """`bool a, b;`, on however many lines, as a declaration each: Doxygen documents the first only."""
    begun = ''
    for line in lines:
        line = f'{begun} {line.strip()}' if begun else line
        begun = line if re.fullmatch(r'\s+\w+( \w+,)+', line) else ''
        names = re.fullmatch(r'(\s+\w+) (\w+(?:, \w+)+);(.*)', line)
        if names:
            yield from (f'{names[1]} {name};{names[3]}' for name in names[2].split(', '))
        elif not begun:
            yield line


class Filter:
    def __init__(self):
        self.comment, self.indent = [], ''
        self.in_comment = self.in_declaration = False
        self.is_first = True

    def documentation(self, indent):
        return [f'{indent}/// {escaped(text)}'.rstrip() for text in self.comment]

    def goes_on(self, code):
        if not code.endswith(','):
            return not code.endswith((';', '{', '}', ':'))
        # Arguments go on; an enumerator does not.
        return self.in_declaration or code.count('(') > code.count(')')

    def lines(self, line):
        comment = COMMENT.match(line)
        if comment:
            if not self.in_comment:
                self.comment, self.indent = [], comment.group(1)
            self.comment.append(comment.group(2))
            self.in_comment = True
            return ['']
        if self.in_comment and self.is_first:
            self.is_first, self.in_comment = False, False
            return ['/// \\file', *self.documentation(''), '', line]
        self.in_comment = False
        if line.startswith('#define') and self.comment and not line.endswith('_H'):
            return [*self.documentation(''), line]
        if not line.strip() or line.lstrip().startswith('#'):
            self.comment, self.in_declaration = [], False
            return [line]
        trailing = TRAILING.match(line)
        code = trailing.group(1) if trailing else line
        out = []
        if self.comment and not self.in_declaration and re.match(r'\s*', line).group(0) == self.indent and not code.strip().startswith('}'):
            out = self.documentation(self.indent)
        self.in_declaration = self.goes_on(code.rstrip())
        return [*out, f'{code}  ///< {escaped(trailing.group(2))}' if trailing else code]


def main(path):
    state = Filter()
    for line in one_name_each(without_blocks(with_includes(path))):
        print(*state.lines(line), sep='\n')


if __name__ == '__main__':
    main(sys.argv[1])
