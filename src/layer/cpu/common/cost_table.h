// Expected costs, by micro-architecture: cost_table.inc.
#ifndef QUOLL_LAYER_CPU_COST_TABLE_H
#define QUOLL_LAYER_CPU_COST_TABLE_H

#include "runtime/cpu_detect.h"

namespace quoll {

struct CostTable {
#define QUOLL_COST(name, golden_cove, what) double name;
#define QUOLL_COSTS(name, count, golden_cove, what) double name[count];
#include "layer/cpu/common/cost_table.inc"
#undef QUOLL_COST
#undef QUOLL_COSTS

    double split_step(int products) const {
        return products == 6 ? split6_step : products == 3 ? split3_step : split1_step;
    }
};

// The costs of that core, or the fallback for other cores.
const CostTable& cost_table(CpuCore core);
inline const CostTable& host_costs() { return cost_table(host_cpu_core()); }

}  // namespace quoll

#endif
