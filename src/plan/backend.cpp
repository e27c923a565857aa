#include "quoll/backend.h"

#include "quoll/log.h"
#include "quoll/status.h"

namespace quoll {

Shape RegionValue::longer(int by) const {
    Shape longer = shape;
    if (grows >= 0) longer.set_size(grows, shape.size(grows) + by);
    return longer;
}

std::vector<Shape> Region::shapes(const std::vector<int>& of) const {
    std::vector<Shape> result;
    for (int value : of) result.push_back(values[value].shape);
    return result;
}

CompiledRegion::~CompiledRegion() {}

bool CompiledRegion::records() const { return false; }
int CompiledRegion::room() const { return 0; }

int CompiledRegion::record(const std::vector<VkMat>&, std::vector<VkMat>*, VkCompute&,
                           const Option&) const {
    QUOLL_LOGE("the back end does not record regions");
    return kError;
}

Backend::~Backend() {}

bool Backend::holds(const Layer&) const { return false; }
bool Backend::keeps_constants() const { return false; }

}  // namespace quoll
