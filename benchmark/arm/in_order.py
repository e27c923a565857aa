#!/usr/bin/env python3
"""Cycles of inner loops on Cortex-A53 and A55 by a model of published rules: what issues together, what waits for what.

    in_order.py                                 a table in Markdown, as in docs/speed-arm.md
    in_order.py gemm_f32_5x16_neon

No measurement, and no more than these rules, which are those of ncnn's page "arm a53 a55 dual issue" (https://github.com/Tencent/ncnn/wiki/arm-a53-a55-dual-issue).
Latencies are assumed, and the same for both cores:
- in order, two instructions per cycle, of which one multiplies vectors, one loads, one inserts, and at most one branches;
- a load of 128 bits takes two cycles, and nothing issues beside it; LD1 and LDP of several registers as many loads;
- A55: loads of 64 bits, inserts and scalar instructions issue beside a multiply-add;
- A53: scalar instructions and loads of general registers do; a load into a vector register and an insert do not, but these two go together; and
  no load into a vector register issues four cycles behind a multiply-add (so the page's "4th cycle" is read here: it asks for a load behind every third one).
Caches are not modelled: loads come from the first level.
"""
import argparse
import re

from port_limits import MULTIPLY, instructions, loops

KERNELS = ('gemm_f32_5x16_neon', 'gemm_f32_5x16_a55', 'gemm_f32_4x16_neon', 'gemm_f32_4x16_a55',
           'gemm_f16f16_5x32_asimdhp', 'gemm_f16f16_5x32_a55', 'gemm_f16f16_4x32_asimdhp', 'gemm_f16f16_4x32_a55',
           'gemm_s8_8x8_asimddp', 'gemm_s8_8x8_a55', 'gemm_s8_7x8_asimddp', 'gemm_s8_7x8_a55')
LATENCY = {'multiply': 4, 'vector load': 4, 'load': 3, 'insert': 2, 'scalar': 1}
VECTOR_REGISTER = re.compile(r'\b[vqdsh](\d+)\b')
ITERATIONS = 20


class Instruction:
    def __init__(self, line):
        name, _, operands = line.partition(' ')
        vectors = ['v' + n for n in VECTOR_REGISTER.findall(operands)]
        general = [r for r in re.findall(r'\b[xw](\d+)\b|\b(sp)\b', operands) for r in r if r]
        self.kind = 'scalar'
        self.loads = 0  # of 128 bits
        outputs, inputs = general[:1], general[1:]
        if MULTIPLY.match(line):
            self.kind = 'multiply'
            outputs, inputs = vectors[:1], vectors
        elif name in ('ldr', 'ldur', 'ldp', 'ld1', 'ld1r'):
            self.kind = 'vector load' if vectors else 'load'
            if re.search(r'\bq\d|\.\d+[sdhb]', operands):
                first, last = re.search(r'\{v(\d+)\.\w+-v(\d+)', operands).groups() if '-' in operands.split('}')[0] and '{' in operands else (0, 0)
                self.loads = int(last) - int(first) + 1 if '-' in operands.split('}')[0] and '{' in operands else max(1, len(vectors))
                vectors = [f'v{n}' for n in range(int(first), int(last) + 1)] if last else vectors
            outputs = vectors or general[:2 if name == 'ldp' else 1]
            address = operands[operands.index('['):]
            inputs = re.findall(r'\b[xw](\d+)\b', address)
            if not address.rstrip().endswith(']') or '!' in address:
                self.updated = inputs[0]
        elif name in ('ins', 'mov') and vectors:
            self.kind = 'insert'
            outputs, inputs = vectors[:1], vectors[:1] + general
        elif name in ('subs', 'cmp', 'ands'):
            outputs, inputs = general[:1] + ['flags'], general[1:] if name != 'cmp' else general
        elif name in ('csel', 'cset', 'cinc'):
            inputs = general[1:] + ['flags']
        elif name.startswith('b'):
            self.kind, outputs, inputs = 'branch', [], ['flags']
        elif name == 'prfm':
            self.kind, outputs, inputs = 'load', [], general
        self.outputs, self.inputs = outputs, inputs


def goes_beside(core, a, b):
    """Whether b issues in the cycle of a."""
    if a.loads or b.loads or a.kind == b.kind != 'scalar' or 'load' in a.kind and 'load' in b.kind:
        return False
    kinds = {a.kind, b.kind}
    if core == 'cortex-a53' and 'multiply' in kinds:
        return not kinds & {'vector load', 'insert'}
    return True


def cycles(lines, core):
    """Of an iteration."""
    body = [Instruction(line) for line in lines] + [Instruction('b.ne 0')]
    ready, multiplied = {}, set()
    now, issued, start = 0, [], 0
    for iteration in range(ITERATIONS):
        if iteration == ITERATIONS // 2:
            start = now
        for i in body:
            earliest = max([ready.get(r, 0) for r in i.inputs], default=0)
            if i.kind == 'multiply':
                earliest = max(earliest, ready.get(i.outputs[0], 0))
            beside = len(issued) == 1 and earliest <= now and goes_beside(core, issued[0], i)
            if not beside and issued:
                now, issued = now + max(1, 2 * issued[0].loads), []
            now = max(now, earliest)
            while core == 'cortex-a53' and i.kind == 'vector load' and now - 4 in multiplied:
                now, issued = now + 1, []
            issued.append(i)
            if i.kind == 'multiply':
                multiplied.add(now)
            latency = LATENCY.get(i.kind, 1) + max(0, 2 * i.loads - 1)
            for r in i.outputs:
                ready[r] = now + latency
            if hasattr(i, 'updated'):
                ready[i.updated] = now + 1
    return (now - start) / (ITERATIONS - ITERATIONS // 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('kernels', nargs='*', default=KERNELS)
    parser.add_argument('--compiler', default='aarch64-linux-gnu-g++')
    args = parser.parse_args()
    print('| kernel, loop | instructions | multiply-adds | cortex-a53 | cortex-a55 |\n|---|---|---|---|---|')
    for kernel in args.kernels:
        for number, body in enumerate(loops(instructions(kernel, args.compiler))):
            products = sum(bool(MULTIPLY.match(line)) for line in body)
            cells = [cycles(body, core) for core in ('cortex-a53', 'cortex-a55')]
            print(f'| {kernel}, {number + 1} | {len(body) + 1} | {products} |' + ''.join(f' {c:.0f} ({products / c:.0%}) |' for c in cells))


if __name__ == '__main__':
    main()
