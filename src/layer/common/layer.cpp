#include "quoll/layer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "layer/common/activation.h"
#include "layer/common/tensor.h"
#include "layer/common/traits.h"
#include "quoll/log.h"
#include "quoll/net.h"
#include "runtime/thread_pool.h"

namespace quoll {

Layer::Layer()
    :
#if QUOLL_VULKAN
      vkdev(0),
#endif
      one_blob_only(false),
      support_inplace(false),
      support_packing(false),
      support_batch(false),
      support_absent_inputs(false),
      support_fp16_storage(false),
      support_bf16_storage(false),
      support_vulkan(false),
      support_int8_storage(false),
      support_any_packing(false),
      support_vulkan_packing(false),
      support_vulkan_any_packing(false),
      support_tensor_storage(false),
      support_reserved_2(false),
      support_reserved_3(false),
      support_reserved_4(false),
      support_reserved_5(false),
      support_reserved_6(false),
      support_reserved_7(false),
      support_reserved_8(false),
      support_reserved_9(false),
      support_zero_size(false),
      featmask(0),
      userdata(0),
      typeindex(-1) {
}
Layer::~Layer() {}
LayerPlan::~LayerPlan() {}
const char* LayerPlan::algorithm() const { return ""; }

// Of net.h; here, where run-time type information is made for applications' classes.
LayerObserver::~LayerObserver() {}
void LayerObserver::planned(const Layer&, const LayerPlan*) {}
void LayerObserver::left_to_host(const Layer&) {}
void LayerObserver::runs_on(const Layer&, const char*) {}
void LayerObserver::laid_out(const Layer&, const StepLayout*) {}
void LayerObserver::unexpected(const Layer&, const char*) {}

int Layer::load_param(const ParamDict&) { return kOk; }
int Layer::load_model(const ModelBin&) { return kOk; }
int Layer::create_pipeline(const Option&) { return kOk; }
int Layer::destroy_pipeline(const Option&) { return kOk; }
void Layer::visit_params(ParamVisitor&) {}
void Layer::visit_weights(WeightVisitor&) {}
bool Layer::is_a(const void*) const { return false; }
unsigned Layer::traits() const { return 0; }
Activation Layer::as_activation() const { return Activation(); }
bool Layer::fusion_target(FusionTarget*) { return false; }
int64_t Layer::macs(const std::vector<Shape>&, const std::vector<Shape>&) const { return 0; }

int Layer::plan(const std::vector<Shape>&, const Option&,
                std::shared_ptr<const LayerPlan>* plan) const {
    plan->reset();
    return kOk;
}

int Layer::forward_planned(const LayerPlan&, std::vector<Mat>& bottoms, std::vector<Mat>& top_blobs,
                           bool inplace, const Option& opt) const {
    if (!inplace) return forward(bottoms, top_blobs, opt);
    top_blobs.swap(bottoms);
    return forward_inplace(top_blobs, opt);
}

void Layer::plan_layouts(const LayerPlan*, const std::vector<BlobLayout>& in, const Option&,
                         std::vector<BlobLayout>* out) const {
    for (BlobLayout& o : *out) {
        if (in.empty() || o.shape.dims == 0) continue;
        const Shape& from = in[0].shape;
        const bool same = from.dims == o.shape.dims && from.size(0) == o.shape.size(0);
        if (support_packing && same) o.elempack = in[0].elempack;
        if (has_trait(*this, kSharesMemory)) o.shares = 0;
    }
}

int Layer::infer_shapes(const std::vector<Shape>&, std::vector<Shape>& shapes) const {
    shapes.assign(tops.empty() ? 1 : tops.size(), Shape());
    return kOk;
}

int Layer::infer_empty_shapes(const std::vector<Shape>&, std::vector<Shape>&) const {
    return fail("an input has no values");
}

int infer_batch_shapes(const Layer& layer, std::vector<Shape> in, bool without_values,
                       std::vector<Shape>* out) {
    int batch = 1;
    for (const Shape& s : in)
        if (s.n != 1) batch = s.n;
    const bool by_item = batch != 1 && !layer.support_batch;
    for (Shape& s : in)
        if (by_item) s.n = 1;
    QUOLL_RETURN_IF_ERROR(without_values ? layer.infer_empty_shapes(in, *out)
                                         : layer.infer_shapes(in, *out));
    for (Shape& s : *out)
        if (by_item && s.dims) s.n = batch;
    return kOk;
}

int create_from_nothing(const Layer& layer, const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                        bool with_values, const Option& opt) {
    std::vector<Shape> in = shapes_of(bottoms), out;
    QUOLL_RETURN_IF_ERROR(layer.infer_empty_shapes(in, out));
    for (const Shape& shape : out)
        if (!with_values && (shape.dims == 0 || shape.total() != 0))
            return layer.fail("an input has no values");
    tops.resize(out.size());
    for (size_t i = 0; i < out.size(); i++)
        QUOLL_RETURN_IF_ERROR(create_tensor(out[i], &tops[i], opt));
    return kOk;
}

int Layer::forward_empty(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                         const Option& opt) const {
    return create_from_nothing(*this, bottom_blobs, top_blobs, false, opt);
}

static int clone_blob(const Layer* layer, const Mat& from, Mat* to, const Option& opt) {
    if (from.empty() && from.dims > 0) {  // an axis of size 0
        *to = from;
        return kOk;
    }
    if (from.empty()) {
        layer->fail("out of memory for a copy of an input");
        return kOutOfMemory;
    }
    to->create_like(from, opt.blob_allocator);
    if (to->empty()) {
        layer->fail("out of memory for a copy of an input");
        return kOutOfMemory;
    }
    const size_t bytes = (size_t)from.w * from.h * from.d * from.elemsize;
    const bool is_long = (double)bytes * from.c * from.n > 200000;
    parallel_for((int64_t)from.c * from.n, is_long ? opt.num_threads : 1, [&](int64_t i) {
        const size_t q = i % from.c, b = i / from.c;
        memcpy((char*)to->data + (b * to->nstep + q * to->cstep) * from.elemsize,
               (const char*)from.data + (b * from.nstep + q * from.cstep) * from.elemsize, bytes);
    });
    return kOk;
}

int Layer::forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                   const Option& opt) const {
    if (one_blob_only) {
        if (bottom_blobs.size() != 1) return fail("expected 1 input, got %zu", bottom_blobs.size());
        top_blobs.resize(1);
        return forward(bottom_blobs[0], top_blobs[0], opt);
    }
    if (!support_inplace) return fail("this layer has no forward function");
    top_blobs.resize(bottom_blobs.size());
    for (size_t i = 0; i < bottom_blobs.size(); i++)
        QUOLL_RETURN_IF_ERROR(clone_blob(this, bottom_blobs[i], &top_blobs[i], opt));
    return forward_inplace(top_blobs, opt);
}

int Layer::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    if (!one_blob_only) {
        std::vector<Mat> tops(1);
        tops[0] = top_blob;
        QUOLL_RETURN_IF_ERROR(forward(std::vector<Mat>(1, bottom_blob), tops, opt));
        top_blob = tops.empty() ? Mat() : tops[0];
        return tops.empty() ? fail("there is no output") : (int)kOk;
    }
    if (!support_inplace) return fail("this layer has no forward function for one blob");
    QUOLL_RETURN_IF_ERROR(clone_blob(this, bottom_blob, &top_blob, opt));
    return forward_inplace(top_blob, opt);
}

int Layer::forward_inplace(std::vector<Mat>& blobs, const Option& opt) const {
    if (one_blob_only && blobs.size() == 1) return forward_inplace(blobs[0], opt);
    return fail("this layer has no in-place forward function");
}

int Layer::forward_inplace(Mat&, const Option&) const {
    return fail("this layer has no in-place forward function for one blob");
}

int Layer::fail(const char* format, ...) const {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    QUOLL_LOGE("[%s %s] %s", type.c_str(), name.c_str(), text);
    return kError;
}

}  // namespace quoll
