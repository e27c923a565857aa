#include "layer/cpu/common/packing.h"

#include <algorithm>

namespace quoll {

int threads_for(const Option& opt, double work) {
    const double kWorkOfThread = 6250, threads = work / kWorkOfThread;
    return threads < 2 ? 1 : (int)std::min<double>(threads, std::max(1, opt.num_threads));
}

Bands::Bands(int items, int rows, int threads) : items(items), per_item(1), rows(rows) {
    const int wanted = 8 * threads;
    if (items < 4 * threads && items % threads != 0)
        per_item = std::min(rows, (wanted + items - 1) / items);
}

}  // namespace quoll
