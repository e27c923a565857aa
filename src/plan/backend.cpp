#include "quoll/backend.h"

namespace quoll {

std::vector<Shape> Region::shapes(const std::vector<int>& of) const {
    std::vector<Shape> result;
    for (int value : of) result.push_back(values[value].shape);
    return result;
}

CompiledRegion::~CompiledRegion() {}

Backend::~Backend() {}

}  // namespace quoll
