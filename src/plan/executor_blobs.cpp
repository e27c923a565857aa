// What layers read and make, in the types that blobs are stored as.
#include <algorithm>

#include "layer/common/schema.h"
#include "layer/common/stored.h"
#include "plan/executor.h"

namespace quoll {

namespace {

int widen_all(std::vector<Mat>* blobs, const Option& opt) {
    for (Mat& m : *blobs) {
        if (!is_storage_type(m.dtype)) continue;
        if (m.empty()) {
            widen_empty(&m);
            continue;
        }
        Mat wide;
        widen_storage(m, &wide, opt);
        if (wide.empty()) return kOutOfMemory;
        m = wide;
    }
    return kOk;
}

}  // namespace

void widen_storage(const Mat& in, Mat* out, const Option& opt) {
    if (in.dtype == DType::f16)
        cast_float16_to_float32(in, *out, opt);
    else
        cast_bfloat16_to_float32(in, *out, opt);
}

void take_for_stored(Mat* m, const Option& opt) {
    if (m->untyped && m->dtype == DType::f16 && opt.use_bf16_storage && !opt.use_fp16_storage)
        m->dtype = DType::bf16;
}

void widen_empty(Mat* m) {
    if (is_storage_type(m->dtype)) m->dtype = DType::f32, m->elemsize = 4;
}

// A layer that has never run, in this plan or outside it, may still read the blob.
bool Executor::is_read_no_more(const Step& step, size_t input) const {
    const int id = graph_->layers[step.layer]->bottoms[input];
    const std::vector<int>& readers = graph_->consumers[id];
    return step.plan.is_last_read(step.at, input) && !step.plan.wants(id) && !is_input[id] &&
           std::all_of(readers.begin(), readers.end(), [&](int r) { return has_run[r]; });
}

int Executor::take_inputs(const Step& step, int* batch, bool* without_values) {
    const Layer& layer = *graph_->layers[step.layer];
    layer_inputs_.resize(layer.bottoms.size());
    *without_values = false;
    *batch = 1;
    const StepLayout& layout = step.sized.layout;
    const bool planned = layout.known && inputs_arrive(layer, layout);
    if (!planned)
        for (int id : layer.bottoms)
            *without_values |= lacks_values(layer, blobs[id].logical_shape());
    for (size_t i = 0; i < layer_inputs_.size(); i++) {
        Mat& blob = blobs[layer.bottoms[i]];
        if (opt.lightmode && is_read_no_more(step, i))
            layer_inputs_[i] = static_cast<Mat&&>(blob);
        else
            layer_inputs_[i] = blob;
        QUOLL_RETURN_IF_ERROR(planned ? convert_as_planned(layout.inputs[i], &layer_inputs_[i])
                                      : convert_input(layer, &layer_inputs_[i], *without_values));
        *batch = std::max(*batch, layer_inputs_[i].n);
    }
    return *without_values ? (int)kOk : narrow_inputs(layer);
}

// lacking: some input of the layer lacks values, so that forward_empty will run.
int Executor::convert_input(const Layer& layer, Mat* m, bool lacking) const {
    if (m->dims == 0 && layer.support_absent_inputs) return kOk;
    const bool widening = is_storage_type(m->dtype) && (lacking || !accepts_float(layer, m->dtype));
    if (m->empty() && m->dims > 0) {
        if (widening) widen_empty(m);
        return kOk;
    }
    if (m->empty()) return layer.fail("an input has no values");
    if (widening) {
        Mat wide;
        widen_storage(*m, &wide, opt);
        *m = wide;
    }
    if (m->elempack != 1 && (lacking || !layer.support_packing)) {
        Mat planar;
        convert_packing(*m, planar, 1, opt);
        *m = planar;
    }
    return m->empty() ? (int)kOutOfMemory : (int)kOk;
}

// An f32 blob beside 16-bit ones (the user gave it, or it holds more than f16 can) is narrowed too
// if the layer takes both and no value is lost; otherwise all are widened to f32.
int Executor::narrow_inputs(const Layer& layer) {
    DType stored = DType::f32;
    for (const Mat& m : layer_inputs_)
        if (is_storage_type(m.dtype)) stored = m.dtype;
    if (stored == DType::f32) return kOk;
    for (Mat& m : layer_inputs_) {
        if (m.dtype != DType::f32 || m.dims == 0) continue;
        if (m.empty()) {
            m.dtype = stored, m.elemsize = 2;
            continue;
        }
        Mat narrowed;
        narrow(m, stored, &narrowed, opt);
        if (narrowed.empty()) {
            layer.fail("out of memory for an input");
            return kOutOfMemory;
        }
        if (stored == DType::f16 && has_overflown(m, narrowed))
            return widen_all(&layer_inputs_, opt);
        m = narrowed;
    }
    return kOk;
}

int Executor::store_output(const Layer& layer, size_t i, Mat* m) {
    const int id = layer.tops[i];
    take_for_stored(m, opt);
    if (is_input[id]) return kOk;  // the user's, beside one that is wanted
    if (m->dims == 0)
        return layer.fail("output '%s' (%d) came out empty", graph_->blobs[id].name.c_str(), id);
    const bool narrows = m->dtype == DType::f32 && storage_type(opt) != DType::f32;
    if (narrows && !m->empty() && graph_->is_narrowed(id)) {
        Mat stored;
        Option with = opt;
        const bool placed =
            placing_ >= 0 && elided_.offer(placing_, layer_inputs_, blobs, &stored, &with);
        narrow(*m, storage_type(opt), &stored, with);
        if (placed) elided_.settle(placing_, &stored);
        if (stored.empty()) return kOutOfMemory;
        // What f16 cannot hold stays f32.
        if (!opt.use_fp16_storage || !has_overflown(*m, stored)) *m = stored;
    }
    // Observers and the check look at the outputs after the layer has run.
    if (observer || opt.check_finite)
        blobs[id] = *m;
    else
        blobs[id] = static_cast<Mat&&>(*m);
    return kOk;
}

}  // namespace quoll
