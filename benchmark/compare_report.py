#!/usr/bin/env python3
"""Tables and a plot from the compare.json files that compare.py writes.

    compare_report.py FILE.json ... [--markdown FILE] [--plot FILE.png]

Several files (runs with other engines, say) go into one report; ratios are always taken inside a run. Without options the
Markdown goes to stdout.
"""
import argparse
import json
import pathlib
import statistics
import sys

OURS = 'quoll'
TITLES = {'fp32': 'fp32', 'fast': "fast fp32 (three bf16 products; others in fp32)", 'bf16': 'bf16', 'int8': 'int8'}
# Errors above these are wrong answers, which do not count.
WRONG = {'fp32': 1e-3, 'fast': 1e-2, 'bf16': 0.5, 'low': 0.5, 'int8': 0.5}
TILE, VECTORS = 'tdpbf16ps', ('vfmadd231ps zmm', 'vfmadd231ps ymm')


def peer_precision(precision):
    return 'fp32' if precision == 'fast' else precision


def lanes_to_run(precisions, peers):
    """'engine/precision' in the order of the runs."""
    lanes = [f'{OURS}/{p}' for p in precisions]
    lanes += [f'{peer}/{p}' for p in dict.fromkeys(map(peer_precision, precisions)) for peer in peers]
    if 'bf16' in precisions and 'ncnn' in peers and 'ncnn/fp32' not in lanes:
        lanes.append('ncnn/fp32')
    return lanes


def good_rounds(result, limit):
    """Indexes of the rounds that count: those whose tile units ran at full speed, or all if none did."""
    quick = [i for i, peak in enumerate(result['peaks']) if peak.get(TILE, 0) <= limit]
    return quick or list(range(len(result['peaks'])))


def time_ms(result, lane, limit):
    times = result['lanes'][lane]['times_ms']
    return statistics.median(times[i] for i in good_rounds(result, limit))


def ratio(result, lane, base, limit):
    """How many times faster `base` is than `lane`: the median over the rounds."""
    times, ours = result['lanes'][lane]['times_ms'], result['lanes'][base]['times_ms']
    return statistics.median(times[i] / ours[i] for i in good_rounds(result, limit))


def peers_of(result, precision):
    """Lanes of other engines that ran in this precision and answered right."""
    return [lane for lane in result['lanes'] if not lane.startswith(OURS) and lane.endswith('/' + peer_precision(precision))
            and not wrong(result, lane)]


def wrong(result, lane):
    return not result['lanes'][lane]['error'] <= WRONG[lane.split('/')[1]]


def engine(lane):
    return lane.split('/')[0]


def compare(result, precision, limit):
    """(our ms, {engine: (ms, ratio)}, the fastest of them or None) of one graph; None when ours did not run."""
    ours = f'{OURS}/{precision}'
    if ours not in result['lanes'] or wrong(result, ours):
        return None
    rows = {engine(lane): (time_ms(result, lane, limit), ratio(result, lane, ours, limit)) for lane in peers_of(result, precision)}
    return time_ms(result, ours, limit), rows, min(rows, key=lambda name: rows[name][0], default=None)


def peak_text(result):
    texts = []
    for name in (TILE, *VECTORS):
        values = [peak[name] for peak in result['peaks'] if name in peak]
        if values:
            texts.append(f'{name} {min(values):.3g} to {max(values):.3g} ns')
    return ', '.join(texts)


def one_result(result, limit):
    """Lines for the terminal."""
    held = len(result['peaks']) - len(good_rounds(result, limit))
    lines = [f"{result['graph']}, {result['threads']} threads; {peak_text(result)}" + (f'; {held} rounds left out' if held else '')]
    for lane, row in result['lanes'].items():
        more = ''
        if 'load_ms' in row:
            more = f"  load {row['load_ms']:8.1f}  first {row['first_ms']:8.1f}  memory {row['memory_mib']:7.1f} MiB"
        if row.get('blocks') is not None:
            more += f"  a run allocates {row['blocks']} blocks, {row['small']} small"
        if wrong(result, lane):
            more += '  WRONG ANSWER: does not count'
        lines.append(f"  {lane:18} {time_ms(result, lane, limit):9.2f} ms  error {row['error']:.1e}{more}")
    lines += [f'  {lane:18} {why}' for lane, why in result['absent'].items()]
    for precision in TITLES:
        found = compare(result, precision, limit)
        if found and found[2]:
            lines.append(f'  {precision}: {found[1][found[2]][1]:.2f} times as fast as {found[2]}')
    return '\n'.join(lines)


def groups(reports):
    """(precision, threads, [(report, result)]) of everything that was measured."""
    keys = dict.fromkeys((p, r['threads']) for report in reports for p in report['precisions'] for r in report['results'])
    for precision, threads in sorted(keys, key=lambda k: (list(TITLES).index(k[0]), k[1])):
        found = [(report, result) for report in reports for result in report['results']
                 if result['threads'] == threads and compare(result, precision, report['tile_limit'])]
        if found:
            yield precision, threads, found


def mean(ratios):
    return statistics.geometric_mean(ratios) if ratios else None


def speed_table(precision, threads, found):
    engines = list(dict.fromkeys(engine(lane) for _, result in found for lane in peers_of(result, precision)))
    lines = [f'## {TITLES[precision]}, {threads} thread' + 's' * (threads > 1), '',
             f"| graph | {OURS} ms | " + ' | '.join(f'{e} ms (ratio)' for e in engines) + ' | best peer | ratio to it | largest error |',
             '|---|---|' + '---|' * len(engines) + '---|---|---|']
    ratios, best_ratios = {e: [] for e in engines}, []
    for report, result in found:
        ours, rows, best = compare(result, precision, report['tile_limit'])
        cells = [f'{rows[e][0]:.2f} ({rows[e][1]:.2f})' if e in rows else '' for e in engines]
        for e in rows:
            ratios[e].append(rows[e][1])
        if best:
            best_ratios.append(rows[best][1])
        error = result['lanes'][f'{OURS}/{precision}']['error']
        worst = max((result['lanes'][lane]['error'] for lane in peers_of(result, precision)), default=0)
        lines.append(f"| {result['graph']} | {ours:.2f} | " + ' | '.join(cells) + f' | {best or ""} | '
                     + (f'{rows[best][1]:.2f}' if best else '') + f' | {error:.1e} (peers {worst:.1e}) |')
    means = [f'{mean(ratios[e]):.2f}' if ratios[e] else '' for e in engines]
    total = f'{mean(best_ratios):.2f}' if best_ratios else ''
    lines.append('| **geometric mean** | | ' + ' | '.join(means) + f' | | **{total}** | |')
    if precision == 'bf16':
        against = [ratio(result, 'ncnn/fp32', f'{OURS}/bf16', report['tile_limit']) for report, result in found
                   if 'ncnn/fp32' in result['lanes']]
        if against:
            lines += ['', f"ncnn's fp32 takes {mean(against):.2f} times as long (geometric mean)."]
    return lines + ['']


def threads_tables(reports):
    """For each precision a table of times and speed-ups by the number of threads, where several were measured."""
    found = {}  # precision -> graph -> threads -> (report, result)
    for precision, threads, pairs in groups(reports):
        for report, result in pairs:
            found.setdefault(precision, {}).setdefault(result['graph'], {})[threads] = report, result
    lines = []
    for precision, graphs in found.items():
        counts = sorted(set().union(*graphs.values()))
        if len(counts) < 2:
            continue
        lines += [f'## {TITLES[precision]} by threads', '', 'Milliseconds, in brackets how many times as fast as with the fewest threads; for '
                  f'{OURS} then the ratio to the best peer.', '',
                  '| graph | engine | ' + ' | '.join(f'{n} threads' for n in counts) + ' |', '|---|---|' + '---|' * len(counts)]
        for graph, by_threads in graphs.items():
            lines += [f'| {graph} | {name} | ' + ' | '.join(cells) + ' |' for name, cells in scaling(precision, counts, by_threads).items()]
        lines.append('')
    return lines


def scaling(precision, counts, by_threads):
    """{engine: cells for the numbers of threads} of one graph."""
    rows, first = {}, {}
    for i, n in enumerate(counts):
        if n not in by_threads:
            continue
        report, result = by_threads[n]
        ours, peers, best = compare(result, precision, report['tile_limit'])
        for name, ms in [(OURS, ours), *((peer, row[0]) for peer, row in peers.items())]:
            cell = f'{ms:.2f} ({first.setdefault(name, ms) / ms:.1f})'
            if name == OURS and best:
                cell += f' {peers[best][1]:.2f}'
            rows.setdefault(name, [''] * len(counts))[i] = cell
    return rows


def load_table(reports):
    rows = [(result, lane, row) for report in reports for result in report['results'] for lane, row in result['lanes'].items()
            if 'load_ms' in row]
    if not rows:
        return []
    lines = ['## Load time and memory', '', '| graph | threads | engine | load ms | first run ms | memory MiB | of ncnn fp32: load, memory '
             '| a run allocates: blocks, small |', '|---|---|---|---|---|---|---|---|']
    for result, lane, row in rows:
        other = result['lanes'].get('ncnn/fp32', {})
        share = f"{row['load_ms'] / other['load_ms']:.2f}, {row['memory_mib'] / other['memory_mib']:.2f}" if 'load_ms' in other else ''
        allocations = '' if row.get('blocks') is None else f"{row['blocks']}, {row['small']}"
        lines.append(f"| {result['graph']} | {result['threads']} | {lane} | {row['load_ms']:.1f} | {row['first_ms']:.1f} | "
                     f"{row['memory_mib']:.1f} | {share} | {allocations} |")
    return lines + ['']


def markdown(reports):
    lines = ['# quoll beside other engines', '']
    for report in reports:
        versions = {engine(lane): row.get('version') for result in report['results'] for lane, row in result['lanes'].items()}
        lines += [f"{report['cpu']}, cores {report['cores']}, {report['date']}, load {report['load']:.1f}; {report['rounds']} rounds of "
                  f"{report['loops']} runs; " + ', '.join(f'{e} {v}' for e, v in versions.items() if v)
                  + ''.join(f'; {k}={v}' for k, v in report['environment'].items()) + '.', '']
        lines += [f'Not to be had: {peer} ({why}).' for peer, why in report['missing'].items()]
    lines += ["Milliseconds, medians. A ratio is the peer's time over ours in the same round, the median over the rounds: above 1 we are "
              'faster. Errors are shares of the range of the answer in double arithmetic.', '']
    for precision, threads, found in groups(reports):
        lines += speed_table(precision, threads, found)
    lines += threads_tables(reports)
    lines += load_table(reports)
    reasons = dict.fromkeys(f'- {lane}: {why}' for report in reports for r in report['results'] for lane, why in r['absent'].items())
    reasons.update(dict.fromkeys(f"- {lane}: wrong answer for {r['graph']} (error {row['error']:.1e})" for report in reports
                                 for r in report['results'] for lane, row in r['lanes'].items() if wrong(r, lane)))
    if reasons:
        lines += ['Did not run, or do not count:', '', *reasons, '']
    lines += ['## Peaks beside the rounds', '']
    lines += [f"- {r['graph']}, {r['threads']} threads: {peak_text(r)}; {len(good_rounds(r, report['tile_limit']))} of {len(r['peaks'])} "
              'rounds counted' for report in reports for r in report['results']]
    return '\n'.join(lines) + '\n'


def summary(reports):
    """A line for each precision and number of threads."""
    lines = []
    for precision, threads, found in groups(reports):
        compared = [compare(result, precision, report['tile_limit']) for report, result in found]
        best = [rows[name][1] for _, rows, name in compared if name]
        if best:
            lines.append(f'{precision}, {threads} threads: {mean(best):.2f} times as fast as the best peer of each graph '
                         f'({min(best):.2f} to {max(best):.2f})')
    return '\n'.join(lines)


def plot(reports, path):
    """Bars: how many times faster than each engine, by graph; a panel for each precision and number of threads."""
    import matplotlib

    matplotlib.use('Agg')
    from matplotlib import pyplot

    panels = list(groups(reports))
    figure, axes = pyplot.subplots(len(panels), 1, figsize=(12, 3.2 * len(panels)), squeeze=False)
    for (precision, threads, found), ax in zip(panels, axes[:, 0]):
        engines = list(dict.fromkeys(engine(lane) for _, result in found for lane in peers_of(result, precision)))
        for i, name in enumerate(engines):
            points = [(x, compare(result, precision, report['tile_limit'])[1].get(name)) for x, (report, result) in enumerate(found)]
            points = [(x, row[1]) for x, row in points if row]
            width = 0.8 / len(engines)
            ax.bar([x - 0.4 + width * (i + 0.5) for x, _ in points], [y for _, y in points], width, label=name)
        ax.axhline(1, color='black', linewidth=0.8)
        ax.set_xticks(range(len(found)), [result['graph'] for _, result in found], rotation=20, ha='right', fontsize=8)
        ax.set_ylabel('times faster than')
        ax.set_title(f"{TITLES[precision]}, {threads} thread{'s' * (threads > 1)}; {reports[0]['cpu']}", fontsize=9)
        ax.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('files', nargs='+', type=pathlib.Path)
    parser.add_argument('--markdown', type=pathlib.Path)
    parser.add_argument('--plot', type=pathlib.Path)
    a = parser.parse_args()
    reports = [json.loads(file.read_text()) for file in a.files]
    if a.plot:
        plot(reports, a.plot)
    if a.markdown:
        a.markdown.write_text(markdown(reports))
    if not a.plot and not a.markdown:
        print(markdown(reports), end='')
    return 0


if __name__ == '__main__':
    sys.exit(main())
