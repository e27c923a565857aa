#include "plan/region_plan.h"

#include <algorithm>
#include <unordered_map>

#include "layer/control/input.h"
#include "layer/control/memorydata.h"

namespace quoll {

void RegionPlanner::choose_backends() {
    backend_of_.assign(steps_.size(), -1);
    for (size_t i = 0; i < steps_.size(); i++) {
        const SizedStep& s = steps_[i];
        if (s.outputs.empty()) continue;
        for (size_t b = 0; b < graph_.backends.size() && backend_of_[i] < 0; b++)
            if (graph_.backends[b]->supports(*graph_.layers[s.layer], s.inputs, s.outputs))
                backend_of_[i] = (int)b;
    }
}

// The constant that the blob is; null if it is none, or one that the back end wants as an ordinary
// blob.
const Mat* RegionPlanner::constant_of(int blob, int backend) const {
    const int producer = graph_.blobs[blob].producer;
    const MemoryData* data = producer < 0 ? nullptr : as<MemoryData>(graph_.layers[producer]);
    return data && graph_.backends[backend]->keeps_constants() ? &data->value() : nullptr;
}

// A step joins the region that its back end is working on if all that it reads is made within the
// region, or before the region begins: it then runs earlier than its turn, which nothing in between
// depends on.
std::vector<RegionPlanner::Draft> RegionPlanner::draft_regions() const {
    struct Maker {
        int draft;     // -1: the host
        size_t ready;  // the step whose turn it is when the blob is made
    };
    std::unordered_map<int, Maker> made;
    std::vector<int> open(graph_.backends.size(), -1);
    std::vector<Draft> drafts;
    for (size_t i = 0; i < steps_.size(); i++) {
        const Layer& layer = *graph_.layers[steps_[i].layer];
        Maker maker = {-1, steps_[i].step};
        if (backend_of_[i] >= 0) {
            int& draft = open[backend_of_[i]];
            const auto joins = [&](int blob) {
                const auto known = made.find(blob);
                return known == made.end() || known->second.draft == draft ||
                       constant_of(blob, backend_of_[i]) ||
                       known->second.ready < steps_[drafts[draft].members[0]].step;
            };
            if (draft < 0 || !std::all_of(layer.bottoms.begin(), layer.bottoms.end(), joins)) {
                draft = (int)drafts.size();
                drafts.push_back({backend_of_[i], {}});
            }
            drafts[draft].members.push_back((int)i);
            maker = {draft, steps_[drafts[draft].members[0]].step};
        }
        for (int id : layer.tops) made[id] = maker;
    }
    return drafts;
}

PlannedRegion RegionPlanner::make_region(const Draft& draft, bool keeps_all) const {
    PlannedRegion planned;
    planned.backend = graph_.backends[draft.backend].get();
    Region& region = planned.region;
    std::unordered_map<int, int> value_of;
    const auto value = [&](int blob, const Shape& shape) {
        const auto added = value_of.emplace(blob, (int)region.values.size());
        if (added.second) {
            RegionValue v;
            v.blob = blob;
            v.shape = shape;
            v.constant = constant_of(blob, draft.backend);
            const int producer = graph_.blobs[blob].producer;
            v.stays = recorded_ && producer >= 0 && as<Input>(graph_.layers[producer]);
            region.values.push_back(v);
        }
        return added.first->second;
    };
    std::vector<int> members;
    for (int m : draft.members) members.push_back(steps_[m].layer);
    std::sort(members.begin(), members.end());
    const auto is_member = [&](int layer) {
        return std::binary_search(members.begin(), members.end(), layer);
    };
    for (int m : draft.members) {
        const SizedStep& s = steps_[m];
        const int at = (int)region.steps.size();
        RegionStep step;
        step.layer = graph_.layers[s.layer];
        for (size_t i = 0; i < s.inputs.size(); i++) {
            step.inputs.push_back(value(step.layer->bottoms[i], s.inputs[i]));
            region.values[step.inputs.back()].last_read = at;
        }
        for (size_t i = 0; i < s.outputs.size(); i++) {
            const int blob = step.layer->tops[i];
            step.outputs.push_back(value(blob, s.outputs[i]));
            RegionValue& v = region.values[step.outputs.back()];
            const std::vector<int>& readers = graph_.consumers[blob];
            v.made = v.last_read = at;
            const bool leaves = !std::all_of(readers.begin(), readers.end(), is_member);
            v.stays = recorded_ && !leaves;
            v.is_downloaded = std::count(wanted_.begin(), wanted_.end(), blob) || keeps_all ||
                              readers.empty() || leaves;
        }
        region.steps.push_back(std::move(step));
        planned.steps.push_back(s.step);
    }
    for (RegionValue& v : region.values)
        if (v.is_downloaded) v.last_read = (int)region.steps.size();
    return planned;
}

// Leaving a step to the host changes which steps can share a region, so the others are drafted
// again.
std::vector<PlannedRegion> RegionPlanner::plan() {
    choose_backends();
    for (;;) {
        std::vector<PlannedRegion> regions;
        const std::vector<Draft> drafts = draft_regions();
        bool again = false;
        for (const Draft& draft : drafts) {
            regions.push_back(make_region(draft, false));
            if (regions.back().backend->is_profitable(regions.back().region)) continue;
            for (int m : draft.members) {
                backend_of_[m] = -1;
                left_to_host_.push_back(steps_[m].step);
            }
            again = true;
        }
        if (!again) return joined_ ? std::move(regions) : single_steps(drafts);
    }
}

std::vector<PlannedRegion> RegionPlanner::single_steps(const std::vector<Draft>& drafts) const {
    std::vector<PlannedRegion> regions;
    for (const Draft& draft : drafts)
        for (int m : draft.members) regions.push_back(make_region({draft.backend, {m}}, true));
    return regions;
}

}  // namespace quoll
