#include "layer/control/memorydata.h"

#include "layer/common/stored.h"
#include "layer/common/tensor.h"
#include "layer/elementwise/tensorunary.h"

namespace quoll {

MemoryData::MemoryData() {}

void MemoryData::params(MemoryData& s, ParamVisitor& v) {
    v(0, "w", s.w, 0, "width", at_least(0));
    v(1, "h", s.h, 0, "height, 0: 1 axis", at_least(0));
    v(11, "d", s.d, 0, "depth, 0: at most 3 axes", at_least(0));
    v(2, "c", s.c, 0, "channels, 0: at most 2 axes", at_least(0));
    v(21, "load_type", s.load_type, 1, "0: tagged weight, 1: plain, 32 bits, 2: plain, 8 bits",
      between(0, 2));
    v(22, "type", s.type, 0, "0: f32 or what the weight's tag says; ints as 3 s32, 4 s8, 5 u8",
      between(0, CastTo::kU8));
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
      s.load_type == 0   ? WeightKind::kTagged
      : s.load_type == 1 ? WeightKind::kRaw
                         : WeightKind::kInt8,
      "[c, d, h, w]");
}

int MemoryData::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    const int first = load_type == 2 ? CastTo::kS8 : CastTo::kS32;
    if (type == 0 ? load_type != 2 : type >= first && load_type != 0) return kOk;
    return fail("type %d with load_type %d: expected 3, 4 or 5 with load_type 1, 4 or 5 with 2",
                type, load_type);
}

int MemoryData::load_model(const ModelBin& mb) {
    QUOLL_RETURN_IF_ERROR(load_weights_by_schema(*this, mb));
    if (type == 0) return kOk;
    integers_ = data;
    if (load_type == 2) {
        integers_.dtype = dtype_of_element(type);  // the same 8 bits
        return kOk;
    }
    integers_.dtype = DType::s32;  // the same 32 bits
    if (type == CastTo::kS32) return kOk;
    Shape shape = data.logical_shape();
    shape.dtype = dtype_of_element(type);
    integers_.create(shape);
    if (integers_.empty()) return kOutOfMemory;
    const Flat from(data), into(integers_);
    for (size_t i = 0; i < shape.total(); i++)
        ((uint8_t*)integers_.data)[into(i)] = (uint8_t)((const int32_t*)data.data)[from(i)];
    return kOk;
}

int MemoryData::shape(const MemoryData& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (!in.empty()) return s.fail("expected no input, got %zu", in.size());
    out.assign(1, shape_of(s));
    if (!s.data.empty()) out[0].dtype = s.data.dtype;
    if (s.type) out[0].dtype = dtype_of_element(s.type);
    return kOk;
}

int MemoryData::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                        const Option& opt) const {
    if (!bottoms.empty()) return fail("expected no input, got %zu", bottoms.size());
    if (data.empty()) return fail("the weights are not loaded");
    tops.assign(1, value());
    const DType dtype = storage_type(opt);
    return dtype != DType::f32 && value().dtype == DType::f32 ? stored_value(dtype, opt, &tops[0])
                                                              : (int)kOk;
}

void MemoryData::plan_layouts(const LayerPlan*, const std::vector<BlobLayout>&, const Option& opt,
                              std::vector<BlobLayout>* out) const {
    const bool floats = out->size() == 1 && out->front().shape.dtype == DType::f32;
    Mat stored = value();
    if (!floats || storage_type(opt) == DType::f32 || stored.dtype != DType::f32) return;
    if (stored_value(storage_type(opt), opt, &stored) == kOk) out->front().shape.dtype = stored.dtype;
}

int MemoryData::stored_value(DType dtype, const Option& opt, Mat* value) const {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stored_.dtype != dtype) {
        Option own = opt;
        own.blob_allocator = nullptr;  // it outlives the run
        Mat stored;
        narrow(data, dtype, &stored, own);
        if (stored.empty()) return kOutOfMemory;
        // Values that f16 cannot hold stay f32.
        if (dtype == DType::f16 && has_overflown(data, stored)) return kOk;
        stored_ = stored;
    }
    *value = stored_;
    return kOk;
}

QUOLL_DEFINE_LAYER(MemoryData)

}  // namespace quoll
