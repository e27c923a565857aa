#ifndef QUOLL_LAYER_MEMORYDATA_H
#define QUOLL_LAYER_MEMORYDATA_H

#include <mutex>

#include "layer/common/schema.h"

namespace quoll {

// A constant: the output is a weight, and there is no input. Without any size it has one value.
class MemoryData : public Operator<MemoryData> {
public:
    MemoryData();
    static void params(MemoryData& s, ParamVisitor& v);
    static void weights(MemoryData& s, WeightVisitor& v);
    static int shape(const MemoryData& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int load_model(const ModelBin& mb) override;
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
    void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in, const Option& opt,
                      std::vector<BlobLayout>* out) const override;

    // The output.
    const Mat& value() const { return type ? integers_ : data; }
    // The next three are in the header because the graph passes and the Extractor use them in
    // builds without this operator, too.

    // Makes it the constant of this value, planar, of n = 1.
    void set_value(const Mat& value) {
        const Shape s = value.logical_shape();
        w = s.w;
        h = s.dims >= 2 ? s.h : 0;
        d = s.dims == 4 ? s.d : 0;
        c = s.dims >= 3 ? s.c : 0;
        load_type = type = 0;
        data = value;
    }
    // Nothing reads it any more.
    void release() {
        data.release();
        integers_.release();
    }
    // Whether the blob is the value, or a part of it.
    bool holds(const Mat& blob) const {
        std::lock_guard<std::mutex> lock(mutex_);
        return lies_in(value(), blob) || lies_in(stored_, blob);
    }

    int w = 0, h = 0, d = 0, c = 0;
    // How the weight is stored: 0 tagged (f32, f16, ...), 1 as plain f32, 2 as plain bytes.
    int load_type = 1;
    // What the values are, as in CastTo: 0 what the weight is; 3 s32, 4 s8, 5 u8: the plain weight
    // holds 32-bit integers in place of floats, or, with load_type 2, bytes.
    int type = 0;
    Mat data;

private:
    static bool lies_in(const Mat& value, const Mat& blob) {
        const char *begin = (const char*)value.data, *at = (const char*)blob.data;
        return at >= begin && at < begin + value.total() * value.elemsize;
    }
    int stored_value(DType dtype, const Option& opt, Mat* value) const;

    Mat integers_;  // data as `type`, if that is not 0
    // An f32 value in the type that blobs are stored in, made when it is first asked for.
    mutable std::mutex mutex_;
    mutable Mat stored_;
};

}  // namespace quoll

#endif
