#include "layer/cpu/common/cost_table.h"

namespace quoll {

#define QUOLL_LIST(...) __VA_ARGS__

static constexpr CostTable kGoldenCove = {
#define QUOLL_COST(name, golden_cove, what) golden_cove,
#define QUOLL_COSTS(name, count, golden_cove, what) {golden_cove},
#include "layer/cpu/common/cost_table.inc"
#undef QUOLL_COST
#undef QUOLL_COSTS
};

const CostTable& cost_table(CpuCore core) {
    switch (core) {
        case CpuCore::golden_cove:
        case CpuCore::zen:
        case CpuCore::cortex_a55:
        case CpuCore::any:
            return kGoldenCove;
    }
    return kGoldenCove;
}

}  // namespace quoll
