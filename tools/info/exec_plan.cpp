#include "info/exec_plan.h"

#include <string.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "common/layer_fields.h"
#include "common/model_files.h"
#include "layer/common/registry.h"
#include "layer/control/input.h"
#include "layer/cpu/common/kernel_set.h"
#include "layer/cpu/gemm/sliced_plan.h"
#include "layer/cpu/gemm/split_gemm.h"
#include "layer/cpu/int8/int8_tiles.h"
#include "layer/cpu/winograd/winograd.h"
#include "layer/nn/convolution.h"
#include "layer/nn/innerproduct.h"
#include "plan/layout_plan.h"
#include "plan/segment_memory.h"
#include "quoll/log.h"

namespace quoll {

namespace {

// For all channels together, on one and two axes.
bool is_convolution(const Layer* layer) {
    const auto* conv = as<Convolution>(layer);
    return conv && conv->group == 1 && conv->axes < 3;
}

// Whether Winograd's algorithm is there for a window of this size and step.
bool has_winograd_window(Layer* layer) {
    const int stride = int_field(layer, "stride_w");
    const WinogradKernels* const kernels = host_kernel_set().winograd;
    return int_field(layer, "kernel_w") == 3 && int_field(layer, "kernel_h") == 3 &&
           int_field(layer, "stride_h") == stride &&
           (stride == 1 || (stride == 2 && kernels && kernels->strided_input));
}

// Integers are 1: an index that most tables have, a mask that shows all.
Mat random_mat(const Shape& shape) {
    Mat m(shape);
    if (dtype_size(shape.dtype) == 4 && shape.dtype != DType::f32) m.fill(1);
    if (dtype_size(shape.dtype) == 1) memset(m.data, 1, m.total() * m.elemsize);
    if (shape.dtype != DType::f32) return m;
    std::mt19937 rng(1);
    std::uniform_real_distribution<float> next(-1.f, 1.f);
    for (int q = 0; q < m.c && !m.empty(); q++) {
        float* p = m.channel(q);
        for (size_t i = 0; i < (size_t)m.w * m.h * m.d; i++) p[i] = next(rng);
    }
    return m;
}

std::string layout_text(const BlobLayout& b) {
    if (b.shape.dims == 0) return "none";
    std::string text = dtype_name(b.shape.dtype);
    if (b.elempack != 1) text += "x" + std::to_string(b.elempack);
    return text + " " + size_text(b.shape);
}

// The outermost axis, which elempack divides.
int outermost(const BlobLayout& b) { return b.shape.dims ? b.shape.size(0) : 0; }

// What the plans of a run say, by layer; sizes that depend on values are those of the run.
class PlanReader : public LayerObserver {
public:
    struct Step {
        std::string backend;    // "": the CPU
        std::string algorithm;  // "" where there was no choice
        StepLayout layout;
        std::vector<std::string> surprises;
        bool left_to_host = false;
    };
    void planned(const Layer& layer, const LayerPlan* plan) override {
        if (plan) steps_[&layer].algorithm = plan->algorithm();
    }
    void left_to_host(const Layer& layer) override { steps_[&layer].left_to_host = true; }
    void runs_on(const Layer& layer, const char* backend) override {
        steps_[&layer].backend = backend;
    }
    void laid_out(const Layer& layer, const StepLayout* layout) override {
        Step& step = steps_[&layer];
        if (layout) step.layout = *layout;
        if (layout && layout->memory && memories_.insert(layout->memory).second)
            add(*layout->memory);
    }
    void unexpected(const Layer& layer, const char* what) override {
        steps_[&layer].surprises.push_back(what);
    }
    void before(const Layer&) override {}
    void after(const Layer& layer, const std::vector<Mat>& made) override {
        StepLayout& layout = steps_[&layer].layout;
        layout.outputs.resize(made.size());
        for (size_t i = 0; i < made.size(); i++)
            if (layout.outputs[i].shape.dims == 0) layout.outputs[i] = layout_of(made[i]);
    }
    const Step* step(const Layer* layer) const {
        const auto found = steps_.find(layer);
        return found == steps_.end() ? nullptr : &found->second;
    }
    MemoryReport memory;

private:
    void add(const SegmentMemory& m) {
        memory.segments++;
        memory.arena = std::max(memory.arena, m.plan.bytes);
        memory.alive = std::max(memory.alive, m.plan.most_alive);
        memory.all += m.all_bytes, memory.own += m.own_bytes;
    }

    std::map<const Layer*, Step> steps_;
    std::set<const SegmentMemory*> memories_;
};

class Reporter {
public:
    Reporter(const Net& net, const PlanReader& plans) : net_(net), plans_(plans) {}

    LayerReport report(Layer* layer) const {
        LayerReport p;
        p.type = layer->type, p.name = layer->name;
        if (layer->bottoms.empty() && layer->tops.empty()) {
            p.backend = "folded";
            return p;
        }
        p.backend = "cpu";
        const PlanReader::Step* step = plans_.step(layer);
        if (!step) {
            if (!as<Input>(layer)) p.notes.push_back("did not run: its branch was not chosen");
            return p;
        }
        const StepLayout& layout = step->layout;
        for (const BlobLayout& b : layout.arrives) p.inputs.push_back(layout_text(b));
        for (const BlobLayout& b : layout.outputs) p.outputs.push_back(layout_text(b));
        if (!step->backend.empty()) {
            p.backend = step->backend;
            return p;
        }
        if (step->left_to_host)
            p.notes.push_back("not on the GPU: its copies would take longer than it gains");
        else if (net_.opt.use_vulkan_compute && !layer->bottoms.empty() && !layer->tops.empty())
            p.notes.push_back("not on the GPU: no form for it, or for these sizes and types");
        choose_kernels(layer, *step, &p);
        if (layout.known) note_conversions(layout, &p);
        note_outputs(layer, layout, &p);
        for (const std::string& what : step->surprises)
            p.notes.push_back("not as planned: " + what);
        return p;
    }

private:
    void choose_kernels(Layer* layer, const PlanReader::Step& step, LayerReport* p) const {
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
            choose_int8_kernels(layer, step.algorithm, p);
            return;
        }
        const std::string& algorithm = step.algorithm;
        if (algorithm.empty()) return;
        p->kernels += " " + algorithm;
        if (algorithm != "split" && algorithm != "sliced")
            p->notes.push_back(
                why_no_tiles(is_convolution(layer) ? sliced_kernels_for(net_.opt) : nullptr));
        if (has_winograd_window(layer) && algorithm == "direct")
            p->notes.push_back(net_.opt.use_winograd_convolution
                                   ? "no Winograd: dilated, or direct is faster at this size"
                                   : "no Winograd: the option is off");
    }

    void choose_int8_kernels(Layer* layer, const std::string& algorithm, LayerReport* p) const {
        const bool planned = as<InnerProduct>(layer) || is_convolution(layer);
        const std::string name = planned ? algorithm : host_kernel_set().int8->name;
        p->kernels += " int8 " + name;
        if (name.empty()) p->notes.push_back("the reference: a sum may not fit in 32 bits");
        const Int8UnitKernels* const units = host_kernel_set().int8_units;
        if (!planned || name.empty() || (units && name == units->name)) return;
        p->notes.push_back(units ? "no tiles: vectors are expected to be faster at this size"
                                 : "no tiles: the processor has none for int8");
    }

    // For an f32 or bf16 layer that runs on vectors; sliced: the kernels of sliced_gemm.h that it
    // might have used, or null.
    std::string why_no_tiles(const SlicedGemmKernels* sliced) const {
        const int products = net_.opt.use_bf16_storage ? 1 : net_.opt.use_fp32_split;
        if (products == 0) return "no tiles: the option is off";
        if (!sliced && !host_kernel_set().split(products))
            return "no tiles: the processor has none";
        return "no tiles: vectors are expected to be faster at this size";
    }

    // What the plan converts before and behind the layer.
    static void note_conversions(const StepLayout& layout, LayerReport* p) {
        for (size_t i = 0; i < layout.inputs.size(); i++) {
            const BlobLayout &from = layout.arrives[i], &to = layout.inputs[i];
            if (from.shape.dims == 0) continue;
            if (from.elempack != to.elempack)
                p->notes.push_back("takes planar blobs only: unpacked before it");
            const std::string name = dtype_name(from.shape.dtype);
            if (from.shape.dtype != to.shape.dtype)
                p->notes.push_back(to.shape.dtype == DType::f32
                                       ? "computes in f32: widened from " + name + " before it"
                                       : "narrowed to " + std::string(dtype_name(to.shape.dtype)) +
                                             " before it");
        }
        for (size_t i = 0; i < layout.makes.size(); i++)
            if (layout.makes[i].shape.dtype != layout.outputs[i].shape.dtype)
                p->notes.push_back(std::string("makes f32: narrowed to ") +
                                   dtype_name(layout.outputs[i].shape.dtype) + " behind it");
        for (size_t i = 0; i < layout.makes.size(); i++)
            if (layout.makes[i].elempack != layout.outputs[i].elempack)
                p->notes.push_back("all that read it take planar blobs: unpacked behind it");
        if (layout.batch > 1) p->notes.push_back("takes one item of a batch at a time");
    }

    void note_outputs(const Layer* layer, const StepLayout& layout, LayerReport* p) const {
        const int lanes = host_kernel_set().lanes;
        for (const BlobLayout& m : layout.outputs) {
            if (m.elempack >= lanes || lanes == 1 || m.shape.dims == 0 || p->kernels == "reference")
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
    const PlanReader& plans_;
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

int make_exec_plan(const Model& model, const BlobSizes& sizes, Net* loaded, ExecPlan* plan,
                   MemoryReport* memory) {
    QUOLL_RETURN_IF_ERROR(model.make_net(loaded));
    const Net& net = *loaded;
    Extractor ex = net.create_extractor();
    QUOLL_RETURN_IF_ERROR(give_inputs(net, sizes, &ex));
    PlanReader plans;
    ex.set_layer_observer(&plans);
    for (int blob : net.output_indexes()) {
        Mat out;
        QUOLL_RETURN_IF_ERROR(ex.extract(blob, out, 1));
    }
    const Reporter reporter(net, plans);
    for (Layer* layer : net.layers()) plan->push_back(reporter.report(layer));
    *memory = plans.memory;
    return kOk;
}

std::string memory_table(const MemoryReport& m) {
    std::string text;
    char line[160];
    const auto row = [&](const char* what, size_t bytes) {
        snprintf(line, sizeof(line), "%-46s %16s\n", what, grouped((int64_t)bytes).c_str());
        text += line;
    };
    row("planned arena, bytes", m.arena);
    row("most alive at a time", m.alive);
    row("sum of all blobs, each by itself", m.all);
    row("beside the arena: answers, blobs kept for later", m.own);
    row("segments of the plan", m.segments);
    return text;
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
