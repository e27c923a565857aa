#include "layer/cpu/gemm/gemm_run.h"

#include <algorithm>

#include "layer/cpu/common/few_kernels.h"
#include "layer/cpu/gemm/gemm_tiles.h"
#include "quoll/cpu.h"
#include "runtime/thread_pool.h"

namespace quoll {

GemmFetch fetch_part(const void* rows, size_t k, size_t row_bytes, size_t index, size_t tiles) {
    // With more and smaller parts, the last ones would come too late.
    const size_t parts = std::min<size_t>(kFetchTiles, tiles);
    if (tiles < 2 || index >= parts) return GemmFetch();
    const size_t step = (row_bytes + parts - 1) / parts;
    return {(const char*)rows + index * k * step, step};
}

void gemm_find_alike(GemmRows* rows, size_t count) {
    const auto alike = [](const GemmRows& x, const GemmRows& y) {
        return y.rows == x.rows && y.table == x.table && y.a_row == x.a_row && y.c_row == x.c_row;
    };
    for (size_t i = count; i-- > 0;) {
        rows[i].alike = 1;
        if (i + 1 == count || !alike(rows[i], rows[i + 1])) continue;
        const GemmRows *next = &rows[i + 1], *third = next + 1;
        const bool more = next->alike > 1 && next->a - rows[i].a == third->a - next->a &&
                          next->c - rows[i].c == third->c - next->c;
        rows[i].alike = more ? next->alike + 1 : 2;
    }
}

namespace {

// Weights that would fit in the second-level cache have been evicted by those of other layers when
// their turn comes again. Narrow vectors read a panel no faster than it comes from the next cache.
bool fetches_panels(const GemmKernels& kernels, size_t bytes_of_b) {
    return kernels.lanes > 4 ? bytes_of_b >= 128 * 1024 : is_fetched(bytes_of_b);
}

// What is read after all `tiles` have been multiplied by this panel's section: that of the next
// panel, or, back at panel0, the section after it.
PanelFetch next_fetch(const GemmProblem& g, const GemmPanel& panel, size_t section, size_t panel0,
                      size_t panel1, size_t tiles) {
    const GemmKernels& kernels = *g.kernels->gemm;
    if (!g.next_b && !fetches_panels(kernels, gemm_b_size(kernels, g.n * g.k) * sizeof(float)))
        return PanelFetch();
    PanelFetch fetch = {nullptr, g.k / g.num_sections, tiles};
    const size_t columns = panel_columns(kernels);
    const size_t row = section_row(g, section) * columns;
    if (g.next_b) {
        fetch.rows = g.next_b + gemm_b_size(kernels, panel.n0 * g.k + row);
    } else if (panel.n0 + columns < panel1 * columns) {
        fetch.rows = panel.b + gemm_b_size(kernels, columns * g.k + row);
    } else if (panel.direct && section + 1 < g.num_sections) {
        const size_t next = (panel0 * g.k + section_row(g, section + 1)) * columns;
        fetch.rows = g.b + gemm_b_size(kernels, next);
    }
    return fetch;
}

// Multiplies rows [row0, row1) by panels [panel0, panel1).
void run_chunk(const GemmProblem& g, size_t row0, size_t row1, size_t panel0, size_t panel1) {
    for (size_t s = 0; s < g.num_sections; s++) {
        for (size_t p = panel0; p < panel1; p++) {
            const GemmPanel panel = gemm_make_panel(g, p);
            if (!panel.direct && s > 0) continue;
            const PanelFetch fetch = next_fetch(g, panel, s, panel0, panel1, row1 - row0);
            for (size_t r = row0, count; r < row1; r += count) {
                count = 1;
                if (!panel.direct) {
                    gemm_run_buffered(g, g.rows[r], panel, fetch, r - row0);
                    continue;
                }
                // Tiles that prefetch are not in one call with tiles that do not.
                const size_t end = std::min(
                    row1, fetch.rows && r < row0 + kFetchTiles ? row0 + kFetchTiles : row1);
                count = gemm_direct_tiles(g, g.rows + r, end - r, panel, s);
                gemm_run_direct(g, g.rows + r, count, panel, s, fetch.part(g, r - row0));
            }
        }
    }
}

// Of A, and of C where that is read again: see gemm_chunk().
size_t chunk_bytes(size_t b_floats) {
    const size_t least = 384 * 1024, most = 1024 * 1024;
    if (kFewKernels || !is_fetched(b_floats * sizeof(float))) return least;
    return std::min(most, std::max(least, (size_t)get_cpu_level2_cache_size() / 2));
}

// How a product is divided into tasks, and whether the tasks of a chunk of rows, or those of a
// group of panels, are consecutive. A thread gets a run of tasks, so that it reads only a part of
// A, or of B, whichever is larger.
struct Division {
    size_t chunks, groups;
    bool rows_first;
    Division(const GemmProblem& g, size_t chunk, size_t panels, size_t threads) {
        const size_t wanted = threads * 4;  // tasks, to even out what threads lose to others
        chunks = (g.num_rows + chunk - 1) / chunk;
        const double chunks_of_a = g.chunk ? (double)g.num_rows / (double)g.chunk : 1;
        const double a = chunks_of_a * chunk_bytes(g.n * g.k),
                     b = (double)g.n * g.k * sizeof(float);
        rows_first = g.num_rows > 1 && a > b;
        if (rows_first) chunks = std::min(g.num_rows, round_up(chunks, threads));
        groups = (wanted + chunks - 1) / chunks;
        groups = std::min(panels, rows_first ? groups : round_up(groups, threads));
        // So few tasks that some threads would have more than others.
        if (groups * chunks < wanted && groups * chunks % threads != 0)
            chunks = std::max(chunks, std::min(g.num_rows, (wanted + groups - 1) / groups));
    }
    static size_t round_up(size_t x, size_t step) { return (x + step - 1) / step * step; }
};

}  // namespace

size_t gemm_chunk(const GemmKernels& kernels, size_t a_floats, size_t c_floats, size_t b_floats) {
    const size_t budget = chunk_bytes(b_floats) / sizeof(float);
    const size_t rows = budget / std::max<size_t>(1, a_floats + c_floats);
    return std::max<size_t>(4, rows / kernels.max_rows);
}

void gemm_run(const GemmProblem& g, int threads) {
    const size_t panels = panel_count(*g.kernels->gemm, g.n);
    if (panels == 0 || g.num_rows == 0) return;
    const size_t chunk = g.chunk ? std::min(g.chunk, g.num_rows) : g.num_rows;
    if (threads <= 1) {
        // Of equal size: a short last one would read all of B for a few rows.
        const size_t chunks = (g.num_rows + chunk - 1) / chunk;
        for (size_t c = 0; c < chunks; c++)
            run_chunk(g, g.num_rows * c / chunks, g.num_rows * (c + 1) / chunks, 0, panels);
        return;
    }
    const Division d(g, chunk, panels, threads);
    run_tasks((int64_t)(d.chunks * d.groups), threads, [&](int64_t t, int) {
        const size_t c = d.rows_first ? t / d.groups : t % d.chunks;
        const size_t p = d.rows_first ? t % d.groups : t / d.chunks;
        // Longer partitions are spread among shorter ones, so that runs of them are equally long.
        run_chunk(g, g.num_rows * c / d.chunks, g.num_rows * (c + 1) / d.chunks,
                  panels * p / d.groups, panels * (p + 1) / d.groups);
    });
}

}  // namespace quoll
