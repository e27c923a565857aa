#include "plan/growth.h"

#include <algorithm>

namespace quoll {

namespace {

// For how many further lengths a region is compiled: kFirstRoom, and twice as many each time that
// the runs go on beyond it, since compiling a region takes as long as some ten runs need on the
// host. Blobs that grow get memory for as many more.
const int kFirstRoom = 32, kMostRoom = 256;

// The axis along which `now` is longer than `before`: by `by`, or by any amount if that is 0. -1:
// they differ in another way.
int grown_axis(const BlobLayout& before, const BlobLayout& now, int* by) {
    const Shape &a = before.shape, &b = now.shape;
    if (before.elempack != 1 || now.elempack != 1 || a.dims != b.dims) return -1;
    for (int axis = 0; axis < a.dims; axis++) {
        const int longer = b.size(axis) - a.size(axis);
        if (longer == 0) continue;
        Shape grown = a;
        grown.set_size(axis, b.size(axis));
        if (grown != b || a.total() == 0 || longer < 0 || (*by && longer != *by)) return -1;
        *by = longer;
        return axis;
    }
    return -1;
}

int axis_of(const std::vector<std::pair<int, int>>& grows, int blob) {
    for (const auto& one : grows)
        if (one.first == blob) return one.second;
    return -1;
}

// Steps without inputs, such as constants, do not depend on sizes.
bool is_one_region(const PlanSegment& segment, const NetGraph& graph,
                   const std::vector<int>& order) {
    if (segment.regions.size() != 1) return false;
    for (size_t i = segment.first; i < segment.end; i++)
        if (segment.region_of(i) < 0 && !graph.layers[order[i]]->bottoms.empty()) return false;
    return true;
}

}  // namespace

bool find_growth(const PlanSegment& segment, const std::vector<Mat>& blobs, Growth* growth) {
    if (!kFollowsGrowth) return false;
    growth->by = 0;
    growth->axes.clear();
    for (const auto& read : segment.reads) {
        const BlobLayout now = layout_of(blobs[read.first]);
        int axis = -1;
        if (!same_layout(now, read.second)) {
            axis = grown_axis(read.second, now, &growth->by);
            if (axis < 0) return false;
        }
        growth->axes.push_back(axis);
    }
    return true;
}

bool is_for(const PlanSegment& segment, const std::vector<Mat>& blobs) {
    const bool same = std::all_of(
        segment.reads.begin(), segment.reads.end(),
        [&](const std::pair<int, BlobLayout>& r) { return lies_as(blobs[r.first], r.second); });
    if (same || !kFollowsGrowth || segment.room == 0) return same;
    Growth growth;
    return find_growth(segment, blobs, &growth) && growth.by <= segment.room &&
           growth.axes == segment.grows;
}

void compile_with_room(const std::vector<std::pair<int, int>>& grows, const NetGraph& graph,
                       const std::vector<int>& order, const Option& opt, int room_before,
                       PlanSegment* segment) {
    for (PlannedRegion& planned : segment->regions) {
        Region& region = planned.region;
        if (kFollowsGrowth && !grows.empty() && is_one_region(*segment, graph, order)) {
            region.room = std::min(std::max(2 * room_before, kFirstRoom), kMostRoom);
            for (RegionValue& v : region.values)
                if (v.is_uploaded()) v.grows = axis_of(grows, v.blob);
        }
        planned.compiled = planned.backend->compile(region, opt);
        if (kFollowsGrowth && planned.compiled) segment->room = planned.compiled->room();
    }
    if (!kFollowsGrowth || segment->room == 0) return;
    for (const auto& read : segment->reads) segment->grows.push_back(axis_of(grows, read.first));
}

}  // namespace quoll
