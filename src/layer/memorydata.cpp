#include "memorydata.h"

namespace quoll {

MemoryData::MemoryData() {}

void MemoryData::params(MemoryData& s, ParamVisitor& v) {
    v(0, "w", s.w, 0, "width", at_least(0));
    v(1, "h", s.h, 0, "height, 0: 1 axis", at_least(0));
    v(11, "d", s.d, 0, "depth, 0: at most 3 axes", at_least(0));
    v(2, "c", s.c, 0, "channels, 0: at most 2 axes", at_least(0));
    v(21, "load_type", s.load_type, 1, "0: tagged weight, 1: plain f32", between(0, 1));
}

static Shape shape_of(const MemoryData& s) {
    return s.d   ? Shape(s.w, s.h, s.d, s.c)
           : s.c ? Shape(s.w, s.h, s.c)
           : s.h ? Shape(s.w, s.h)
                 : Shape(s.w ? s.w : 1);
}

void MemoryData::weights(MemoryData& s, WeightVisitor& v) {
    const Shape size = shape_of(s);
    v(true, "data", s.data, WeightSize(size.dims, size.w, size.h, size.d, size.c),
      s.load_type == 0 ? WeightKind::kTagged : WeightKind::kRaw, "[c, d, h, w]");
}

int MemoryData::shape(const MemoryData& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (!in.empty()) return s.fail("expected no input, got %zu", in.size());
    out.assign(1, shape_of(s));
    if (!s.data.empty()) out[0].dtype = s.data.dtype;
    return kOk;
}

int MemoryData::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                        const Option&) const {
    if (!bottoms.empty()) return fail("expected no input, got %zu", bottoms.size());
    if (data.empty()) return fail("the weights are not loaded");
    tops.assign(1, data);
    return kOk;
}

QUOLL_DEFINE_LAYER(MemoryData)

}  // namespace quoll
