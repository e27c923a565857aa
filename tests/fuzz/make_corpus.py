#!/usr/bin/env python3
"""Writes the seed corpora of the fuzzers from nets.inc: make_corpus.py [FOLDER] (default: corpus/ beside this script).

param: each net as text. param_bin: the same in binary form. model: the text, a NUL and a .bin of zeros, which is a
valid f32 weight of any length. layer_tests writes more seeds: see tests/layer/layer_test_nets.cpp.
Files found by fuzzing (crash-*, or any other name) are left alone.
"""
import pathlib
import re
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ARRAY_BASE, STRING_BASE, END = -23300, -23400, -233


def nets():
    text = subprocess.run(['g++', '-E', '-P', '-x', 'c++', str(HERE / 'nets.inc')], check=True, capture_output=True, text=True).stdout
    return eval('[' + text.replace('\n', ' ') + ']')  # adjacent string literals join in Python as they do in C++


def type_indexes():
    lines = (HERE.parents[1] / 'src/layer/layer_list.inc').read_text()
    return {m[2]: int(m[1]) for m in re.finditer(r'^QUOLL_LAYER(?:_FAST)?\((\d+), (\w+),', lines, re.M)}


def words_of(value):
    return struct.pack('<f', float(value)) if re.search(r'[.en]', value) else struct.pack('<i', int(value))


def params_to_binary(params):
    out = b''
    for param in params:
        key, value = param.split('=', 1)
        if value.startswith('"'):
            text = value.strip('"').encode()
            out += struct.pack('<ii', STRING_BASE - int(key), len(text)) + text + b'\0' * (-len(text) % 4)
        elif int(key) <= ARRAY_BASE:
            items = value.split(',')[1:]
            out += struct.pack('<ii', int(key), len(items)) + b''.join(map(words_of, items))
        else:
            out += struct.pack('<i', int(key)) + words_of(value)
    return out + struct.pack('<i', END)


def to_binary(text, indexes):
    lines = text.strip().split('\n')
    blobs = {}
    out = struct.pack('<3i', int(lines[0]), *map(int, lines[1].split()))
    for line in lines[2:]:
        kind, _, inputs, outputs, *rest = line.split()
        count = int(inputs) + int(outputs)
        ids = [blobs.setdefault(name, len(blobs)) for name in rest[:count]]
        out += struct.pack(f'<{3 + count}i', indexes[kind], int(inputs), int(outputs), *ids) + params_to_binary(rest[count:])
    return out


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / 'corpus'
    indexes = type_indexes()
    for i, text in enumerate(nets()):
        name = f'seed-{i:02d}'
        files = {'param': text.encode(), 'param_bin': to_binary(text, indexes), 'model': text.encode() + bytes(4097)}
        for kind, data in files.items():
            (folder / kind).mkdir(parents=True, exist_ok=True)
            (folder / kind / name).write_bytes(data)


if __name__ == '__main__':
    main()
