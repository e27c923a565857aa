// The best tiles and divisions of products, by measuring.
#include "gpu/tuning.h"

#include <algorithm>

#include "layer/vulkan/compiled_region.h"
#include "layer/vulkan/conv_tiles.h"
#include "layer/vulkan/vulkan_backend.h"

namespace quoll {

namespace {

const int kRuns = 5;
const int kSplits[] = {1, 2, 3, 4, 6, 8, 12, 16};
// A form has to be this much faster than the expected one; otherwise noise would decide.
const double kGain = 0.97;

typedef TuningTable::Words Words32;

// Seconds of all dispatches of a key together, by form.
typedef std::map<Words32, std::map<Words32, double>> Times;

int add_times(const VulkanRegion& region, const Option& opt, Times* times) {
    std::vector<double> seconds;
    QUOLL_RETURN_IF_ERROR(region.time_dispatches(kRuns, opt, &seconds));
    const Program& program = region.program();
    Times sums;
    for (size_t i = 0; i < seconds.size(); i++) {
        if (program.dispatches[i].choice < 0) continue;
        const Choice& choice = program.choices[program.dispatches[i].choice];
        sums[choice.key][choice.form] += seconds[i];
    }
    for (const auto& key : sums) {
        for (const auto& form : key.second) {
            const auto made = (*times)[key.first].insert(form);
            made.first->second = std::min(made.first->second, form.second);
        }
    }
    return kOk;
}

bool is_known(const TuningTable& table, const Program& program) {
    Words32 form;
    for (const Choice& choice : program.choices)
        if (!table.find(choice.key, &form)) return false;
    return true;
}

}  // namespace

int VulkanBackend::tune(const Region& region, Option opt) const {
    opt.vulkan_slice_us = 0;
    const std::shared_ptr<VulkanRegion> expected = compile_once(region, opt);
    if (!expected) return kError;
    TuningTable& table = device_->tuning();
    if (is_known(table, expected->program())) return kOk;
    Times times;
    QUOLL_RETURN_IF_ERROR(add_times(*expected, opt, &times));
    for (const ConvTile& tile :
         conv_tiles(can_use_matrices(*device_, storage_, opt.use_cooperative_matrix))) {
        for (int splits : kSplits) {
            const ConvTiling tiling = {tile, splits};
            force_tiling(&tiling);
            const std::shared_ptr<VulkanRegion> made = compile_once(region, opt);
            force_tiling(nullptr);
            if (!made) return kError;
            QUOLL_RETURN_IF_ERROR(add_times(*made, opt, &times));
        }
    }
    for (const Choice& choice : expected->program().choices) {
        const auto& forms = times[choice.key];
        auto best = forms.find(choice.form);
        const double limit = best->second * kGain;
        for (auto form = forms.begin(); form != forms.end(); ++form)
            if (form->second < std::min(limit, best->second)) best = form;
        table.put(choice.key, best->first);
    }
    return kOk;
}

}  // namespace quoll
