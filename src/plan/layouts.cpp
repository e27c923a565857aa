// Conversion of blobs to the planned layouts, and of blobs that come in another one.
#include "layer/common/schema.h"
#include "plan/executor.h"

namespace quoll {

bool Executor::inputs_arrive(const Layer& layer, const StepLayout& planned) const {
    bool all = true;
    for (size_t i = 0; i < layer.bottoms.size(); i++) {
        const Mat& m = blobs[layer.bottoms[i]];
        if (lies_as(m, planned.arrives[i])) continue;
        all = false;
        if (observer) report(layer, "input", i, planned.arrives[i], m);
    }
    return all;
}

// Widens and unpacks. What is narrowed depends on its values: see narrow_inputs.
int Executor::convert_as_planned(const BlobLayout& to, Mat* m) const {
    if (m->dims == 0) return kOk;
    if (is_storage_type(m->dtype) && to.shape.dtype == DType::f32) {
        Mat wide;
        widen_storage(*m, &wide, opt);
        *m = wide;
    }
    if (m->elempack != to.elempack) {
        Mat packed;
        convert_packing(*m, packed, to.elempack, opt);
        *m = packed;
    }
    return m->empty() ? (int)kOutOfMemory : (int)kOk;
}

// Unpacks outputs of which all readers want planar blobs.
int Executor::unpack_outputs(const Layer& layer, const StepLayout& planned) {
    if (!planned.known) return kOk;
    for (size_t i = 0; i < layer.tops.size(); i++) {
        Mat& m = blobs[layer.tops[i]];
        if (planned.outputs[i].elempack == planned.makes[i].elempack || m.elempack == 1) continue;
        if (m.empty() || is_input[layer.tops[i]]) continue;
        Mat planar;
        convert_packing(m, planar, 1, opt);
        if (planar.empty()) return kOutOfMemory;
        m = planar;
    }
    return kOk;
}

void Executor::report_outputs(const Layer& layer, const StepLayout& planned) const {
    if (!planned.known) return;
    for (size_t i = 0; i < layer_outputs_.size(); i++) {
        BlobLayout made = planned.makes[i];
        if (planned.batch > 1) made.shape.n = planned.batch;
        const bool told = made.shape.dims != 0;  // else its size follows from values
        if (told && !lies_as(layer_outputs_[i], made))
            report(layer, "output", i, made, layer_outputs_[i]);
    }
}

void Executor::report(const Layer& layer, const char* what, size_t i, const BlobLayout& planned,
                      const Mat& m) const {
    const auto text = [](const BlobLayout& b) {
        return std::string(dtype_name(b.shape.dtype)) + "x" + std::to_string(b.elempack) + " " +
               shape_text(b.shape);
    };
    const std::string message = std::string(what) + " " + std::to_string(i) + ": expected " +
                                text(planned) + ", got " + text(layout_of(m));
    observer->unexpected(layer, message.c_str());
}

}  // namespace quoll
