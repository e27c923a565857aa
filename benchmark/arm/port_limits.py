#!/usr/bin/env python3
"""Cycles of the inner loops of the assembly kernels by llvm-mca, beside those of their multiply-adds alone.

    port_limits.py                      a table in Markdown, as in docs/speed-arm.md
    port_limits.py --cpu cortex-a76 'gemm_f32_5x16_neon'
    port_limits.py --sve --mca llvm-mca-16      kernels on SVE, on processors that have it

A loop is what lies between a backward branch of a function and its target, if it has multiply-adds; the limit is what the same
processor needs for those multiply-adds with nothing between them. llvm-mca knows no caches: loads come from the first level.
"""
import argparse
import pathlib
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CPUS = ('cortex-a53', 'cortex-a55', 'cortex-a57', 'cortex-a72', 'neoverse-n1', 'apple-a14')
KERNELS = ('gemm_f32_5x16_neon', 'gemm_f32_4x16_neon', 'gemm_f32_5x8_neon', 'gemm_f16_5x32_asimdhp', 'gemm_f16f32_6x16_asimdfhm',
           'gemm_f16f32_5x16_asimdfhm', 'gemm_bf16_8x8_bf16', 'gemm_planar_f32_8x12_neon', 'gemm_planar_f16_8x24_asimdhp',
           'dwconv_planes_f32_neon', 'gemm_s8_8x8_i8mm', 'gemm_s8_12x8_asimddp', 'gemm_s8_8x8_asimddp', 'gemm_s8_4x8_neon',
           'gemm_s16_8x8_neon', 'block_row_s4d3_1x8_asimddp', 'block_row_s8d3_1x8_asimddp', 'block_dot_s4_4x4_asimddp',
           'block_dot_s8_4x4_asimddp', 'block_bytes_s4_12x4_asimddp', 'block_bytes_s8_12x4_asimddp', 'block_bytes_s4_12x4_i8mm',
           'block_bytes_s8_12x4_i8mm', 'block_tile_f32s4_1x4_neon', 'block_tile_f32s4_4x4_neon', 'block_tile_f32s8_1x4_neon',
           'block_tile_f32s8_4x4_neon')
SVE_CPUS = ('neoverse-v1', 'a64fx')  # vectors of 256 and of 512 bits
SVE_KERNELS = ('gemm_f32_5x4v_sve', 'gemm_f16f16_5x4v_sve', 'gemm_planar_f16_8x3v_sve', 'gemm_s8_8x4v_svei8mm', 'gemm_s8_8x2v_sve')
MULTIPLY = re.compile(r'^(fmla|fmlal2?|bfmmla|sdot|udot|smmla|smull2?|smlal2?)\b')
ITERATIONS = 200


def instructions(kernel, compiler):
    """[(address, text)] of a kernel's function."""
    with tempfile.NamedTemporaryFile(suffix='.o') as object_file:
        subprocess.run([compiler, '-march=armv8.6-a+fp16fml+sve', '-I', ROOT / 'src', '-c', ROOT / f'src/layer/arm/{kernel}.S', '-o',
                        object_file.name], check=True)
        text = subprocess.run([compiler.replace('g++', 'objdump'), '-d', '--no-show-raw-insn', object_file.name],
                              check=True, capture_output=True, text=True).stdout
    found = re.findall(r'^\s*([0-9a-f]+):\s+(\S.*)$', text, re.M)
    return [(int(address, 16), re.sub(r'\s*(//|<).*', '', line).replace('\t', ' ')) for address, line in found]


def loops(code):
    """Innermost loops with multiply-adds."""
    found = []
    for i, (address, line) in enumerate(code):
        branch = re.match(r'(?:b\.\w+|cbn?z \w+,) ([0-9a-f]+)', line)
        target = int(branch.group(1), 16) if branch else address
        if target >= address:
            continue
        begin = next(j for j, (a, _) in enumerate(code) if a == target)
        branches = {line: re.match(r'(?:b\.\w+|b|cbn?z \w+,) ([0-9a-f]+)', line) for _, line in code[begin:i]}
        if any(found and int(found.group(1), 16) <= address for found in branches.values()):
            continue  # one around another
        body = [line for _, line in code[begin:i] if not branches[line]]  # without those that leave it
        if any(MULTIPLY.match(line) for line in body):
            found.append(body)
    return found


def cycles(lines, cpu, mca):
    """Of an iteration; None where the model of the processor lacks one of the instructions."""
    source = '\n'.join(lines) + '\n'
    features = ['-mattr=+fullfp16,+fp16fml,+dotprod,+i8mm,+bf16,+sve']
    out = subprocess.run([mca, '-mtriple=aarch64', f'-mcpu={cpu}', f'-iterations={ITERATIONS}', *features],
                         input=source, capture_output=True, text=True)
    if 'unsupported instruction' in out.stderr:
        return None
    out.check_returncode()
    out = out.stdout
    return int(re.search(r'Total Cycles:\s+(\d+)', out).group(1)) / ITERATIONS


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('kernels', nargs='*')
    parser.add_argument('--cpu')
    parser.add_argument('--sve', action='store_true', help='kernels on SVE')
    parser.add_argument('--mca', default='llvm-mca', help='16 is the first that knows neoverse-v1')
    parser.add_argument('--compiler', default='aarch64-linux-gnu-g++')
    args = parser.parse_args()
    cpus = args.cpu.split(',') if args.cpu else SVE_CPUS if args.sve else CPUS
    print('| kernel, loop | instructions | multiply-adds |' + ''.join(f' {cpu} |' for cpu in cpus))
    print('|---|---|---|' + '---|' * len(cpus))
    for kernel in args.kernels or (SVE_KERNELS if args.sve else KERNELS):
        for number, body in enumerate(loops(instructions(kernel, args.compiler))):
            products = [line for line in body if MULTIPLY.match(line)]
            cells = []
            for cpu in cpus:
                whole, limit = cycles(body, cpu, args.mca), cycles(products, cpu, args.mca)
                cells.append(f' {whole:.0f}/{limit:.0f} ({limit / whole:.0%}) |' if whole else ' |')
            print(f'| {kernel}, {number + 1} | {len(body) + 1} | {len(products)} |' + ''.join(cells))


if __name__ == '__main__':
    main()
