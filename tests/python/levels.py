"""Levels of QUOLL_CPU_MASK. As a program: those that lie below what this machine has, one per line."""
import os
import platform

# Each level, and the flag in /proc/cpuinfo that a machine must have to differ from the level before.
LEVELS = {
    'x86_64': [('scalar', None), ('sse4', 'sse4_2'), ('avx2', 'avx2'), ('avxvnni', 'avx_vnni'), ('avx512', 'avx512f'),
               ('avx512vnni', 'avx512_vnni'), ('avx512bf16', 'avx512_bf16'), ('avx512fp16', 'avx512_fp16'),
               ('amx', 'amx_int8')],
    'aarch64': [('scalar', None), ('neon', 'asimd'), ('asimdhp', 'asimdhp'), ('asimddp', 'asimddp'), ('i8mm', 'i8mm'),
                ('sve', 'sve'), ('sve2', 'sve2'), ('sme', 'sme')],
}


def host_levels():
    """The levels that differ on this machine, lowest first; QUOLL_LEVELS ("neon sve") where an emulator runs the programs."""
    if os.environ.get('QUOLL_LEVELS'):
        return os.environ['QUOLL_LEVELS'].split()
    flags = set()
    for line in open('/proc/cpuinfo'):
        if line.startswith(('flags', 'Features')):
            flags = set(line.split(':')[1].split())
            break
    return [level for level, flag in LEVELS.get(platform.machine(), [('scalar', None)]) if flag is None or flag in flags]


if __name__ == '__main__':
    print('\n'.join(host_levels()[:-1]))
