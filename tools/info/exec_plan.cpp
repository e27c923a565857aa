#include "info/exec_plan.h"

#include <algorithm>
#include <map>
#include <random>

#include "common/layer_fields.h"
#include "common/model_files.h"
#include "layer/common/registry.h"
#include "layer/control/input.h"
#include "layer/cpu/common/kernel_set.h"
#include "layer/cpu/gemm/sliced_plan.h"
#include "layer/cpu/gemm/split_gemm.h"
#include "layer/cpu/int8/int8_tiles.h"
#include "layer/nn/convolution.h"
#include "layer/nn/innerproduct.h"
#include "quoll/log.h"

namespace quoll {

namespace {

// Of all channels together, on one and two axes.
bool is_convolution(const Layer* layer) {
    const auto* conv = as<Convolution>(layer);
    return conv && conv->group == 1 && conv->axes < 3;
}

Mat random_mat(const Shape& shape) {
    Mat m(shape);
    std::mt19937 rng(1);
    std::uniform_real_distribution<float> next(-1.f, 1.f);
    for (int q = 0; q < m.c && !m.empty(); q++) {
        float* p = m.channel(q);
        for (size_t i = 0; i < (size_t)m.w * m.h * m.d; i++) p[i] = next(rng);
    }
    return m;
}

std::string layout_text(const Mat& m) {
    if (m.dims == 0) return "none";
    std::string text = dtype_name(m.dtype);
    if (m.elempack != 1) text += "x" + std::to_string(m.elempack);
    return text + " " + size_text(m.logical_shape());
}

// The outermost axis, which elempack divides.
int outermost(const Mat& m) {
    const Shape shape = m.logical_shape();
    return shape.dims ? shape.size(0) : 0;
}

// The algorithms that the plan of a run has chosen, by layer.
class Algorithms : public LayerObserver {
public:
    void planned(const Layer& layer, const LayerPlan* plan) override {
        if (plan) names_[&layer] = plan->algorithm();
    }
    void before(const Layer&) override {}
    void after(const Layer&, const std::vector<Mat>&) override {}
    // "" where there was no choice.
    std::string of(const Layer* layer) const {
        const auto found = names_.find(layer);
        return found == names_.end() ? "" : found->second;
    }

private:
    std::map<const Layer*, std::string> names_;
};

class Reporter {
public:
    Reporter(const Net& net, const std::vector<Mat>& blobs, const Algorithms& algorithms)
        : net_(net), blobs_(blobs), algorithms_(algorithms) {}

    LayerReport report(Layer* layer) const {
        LayerReport p;
        p.type = layer->type, p.name = layer->name;
        if (layer->bottoms.empty() && layer->tops.empty()) {
            p.backend = "folded";
            return p;
        }
        p.backend = "cpu";
        for (int blob : layer->bottoms) p.inputs.push_back(layout_text(blobs_[blob]));
        for (int blob : layer->tops) p.outputs.push_back(layout_text(blobs_[blob]));
        if (as<Input>(layer)) return p;
        choose_kernels(layer, &p);
        note_inputs(layer, &p);
        note_outputs(layer, &p);
        return p;
    }

private:
    void choose_kernels(Layer* layer, LayerReport* p) const {
        const char* family = layer_kernel_family(layer->type.c_str());
        const bool fast = family && !net_.opt.use_reference_layers;
        p->kernels = fast ? family : "reference";
        p->isa = fast ? isa_name(host_kernel_set().isa) : "scalar";
        if (!fast)
            p->notes.push_back(family ? "reference layers were asked for"
                                      : "the operator has no vector form");
        if (!fast) return;
        if (int_field(layer, "dynamic_weight") != 0) {
            p->kernels = "reference", p->isa = "scalar";
            p->notes.push_back("weights that are inputs run on the reference");
            return;
        }
        if (int_field(layer, "int8_scale_term") != 0) {
            choose_int8_kernels(layer, p);
            return;
        }
        const std::string algorithm = algorithms_.of(layer);
        if (algorithm.empty()) return;
        p->kernels += " " + algorithm;
        if (algorithm != "split" && algorithm != "sliced")
            p->notes.push_back(
                why_no_tiles(is_convolution(layer) ? sliced_kernels_for(net_.opt) : nullptr));
        const bool candidate =
            int_field(layer, "kernel_w") == 3 && int_field(layer, "stride_w") == 1 &&
            int_field(layer, "kernel_h") == 3 && int_field(layer, "stride_h") == 1;
        if (candidate && algorithm == "direct")
            p->notes.push_back(net_.opt.use_winograd_convolution
                                   ? "no Winograd: dilated, or direct is faster at this size"
                                   : "no Winograd: the option is off");
    }

    void choose_int8_kernels(Layer* layer, LayerReport* p) const {
        const bool planned = as<InnerProduct>(layer) || is_convolution(layer);
        const std::string name = planned ? algorithms_.of(layer) : host_kernel_set().int8->name;
        p->kernels += " int8 " + name;
        if (name.empty()) p->notes.push_back("the reference: a sum may not fit in 32 bits");
        if (!planned || name.empty() || name == "amx") return;
        p->notes.push_back(host_kernel_set().int8_units
                               ? "no tiles: vectors are expected to be faster at this size"
                               : "no tiles: the processor has none for int8");
    }

    // Of an f32 or bf16 layer that runs on vectors; sliced: the kernels of sliced_gemm.h that it
    // might have taken, or null.
    std::string why_no_tiles(const SlicedGemmKernels* sliced) const {
        const int products = net_.opt.use_bf16_storage ? 1 : net_.opt.use_fp32_split;
        if (products == 0) return "no tiles: the option is off";
        if (!sliced && !host_kernel_set().split(products))
            return "no tiles: the processor has none";
        return "no tiles: vectors are expected to be faster at this size";
    }

    void note_inputs(const Layer* layer, LayerReport* p) const {
        for (int blob : layer->bottoms) {
            const Mat& m = blobs_[blob];
            if (m.elempack != 1 && !layer->support_packing)
                p->notes.push_back("takes planar blobs only: unpacked before it");
            const bool narrow = (m.dtype == DType::f16 && !layer->support_fp16_storage) ||
                                (m.dtype == DType::bf16 && !layer->support_bf16_storage);
            if (narrow)
                p->notes.push_back(std::string("computes in f32: widened from ") +
                                   dtype_name(m.dtype) + " before it");
            if (m.n > 1 && !layer->support_batch)
                p->notes.push_back("takes one item of a batch at a time");
        }
    }

    void note_outputs(const Layer* layer, LayerReport* p) const {
        const int lanes = host_kernel_set().lanes;
        for (int blob : layer->tops) {
            const Mat& m = blobs_[blob];
            if (m.elempack >= lanes || lanes == 1 || m.dims == 0 || p->kernels == "reference")
                continue;
            const int axis = outermost(m);
            const std::string size = std::to_string(axis);
            if (!net_.opt.use_packing_layout)
                p->notes.push_back("planar: packing is off");
            else if (axis % lanes != 0)
                p->notes.push_back("elempack " + std::to_string(m.elempack) + ": " + size +
                                   " is no multiple of " + std::to_string(lanes));
            else if (!layer->support_packing)
                p->notes.push_back("planar: the operator has no packed form");
            else
                p->notes.push_back("elempack " + std::to_string(m.elempack) +
                                   " as its input, or by its own choice");
        }
    }

    const Net& net_;
    const std::vector<Mat>& blobs_;
    const Algorithms& algorithms_;
};

int give_inputs(const Net& net, const BlobSizes& sizes, Extractor* ex) {
    for (int blob : net.input_indexes()) {
        const std::string& name = net.blobs()[blob].name;
        const auto size = sizes.find(name);
        if (size == sizes.end() || size->second.dims == 0) {
            QUOLL_LOGE("the size of input '%s' is not known: give --size %s=C,H,W", name.c_str(),
                       name.c_str());
            return kError;
        }
        const Mat m = random_mat(size->second);
        if (m.empty()) return kOutOfMemory;
        QUOLL_RETURN_IF_ERROR(ex->input(blob, m));
    }
    return kOk;
}

}  // namespace

int make_exec_plan(const Model& model, const BlobSizes& sizes, const Option& opt, ExecPlan* plan) {
    Net net;
    net.opt = opt;
    net.opt.lightmode = false;
    QUOLL_RETURN_IF_ERROR(model.make_net(&net));
    Extractor ex = net.create_extractor();
    QUOLL_RETURN_IF_ERROR(give_inputs(net, sizes, &ex));
    Algorithms algorithms;
    ex.set_layer_observer(&algorithms);
    std::vector<Mat> blobs(net.blobs().size());
    for (size_t i = 0; i < blobs.size(); i++)
        if (net.blobs()[i].producer >= 0) QUOLL_RETURN_IF_ERROR(ex.extract((int)i, blobs[i], 1));
    const Reporter reporter(net, blobs, algorithms);
    for (Layer* layer : net.layers()) plan->push_back(reporter.report(layer));
    return kOk;
}

static std::string joined(const std::vector<std::string>& words, const char* between) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
    return text;
}

std::string exec_plan_table(const ExecPlan& plan) {
    std::string text;
    char line[256];
    snprintf(line, sizeof(line), "%-24s %-24s %-8s %-18s %-8s %s\n", "layer", "type", "target",
             "kernels", "isa", "inputs -> outputs; notes");
    text += line;
    for (const LayerReport& p : plan) {
        snprintf(line, sizeof(line), "%-24.80s %-24.40s %-8s %-18s %-8s ", p.name.c_str(),
                 p.type.c_str(), p.backend.c_str(), p.kernels.c_str(), p.isa.c_str());
        text += line;
        if (p.backend != "folded")
            text += joined(p.inputs, ", ") + " -> " + joined(p.outputs, ", ");
        if (!p.notes.empty()) text += "; " + joined(p.notes, "; ");
        text += "\n";
    }
    return text;
}

}  // namespace quoll
