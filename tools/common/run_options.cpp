#include "run_options.h"

#include <stdio.h>
#include <string.h>

#include "layer/common/schema.h"
#include "quoll/gpu.h"
#include "runtime/cpu_features.h"

namespace quoll {

void RunOptions::add_to(CommandLine* line) {
    line->option("--threads", threads, "threads that a layer may use; default: the physical cores")
        .between(1, kMostThreads);
    line->option("--precision", precision,
                 "storage of blobs: fp32, fp16, bf16; int8 for models with int8 layers")
        .one_of({"fp32", "fp16", "bf16", "int8"});
    line->option("--fp32-split", fp32_split,
                 "products on tile units (AMX) that stand for one of fp32, where the processor "
                 "has them: 6 (as good as fp32), 3, 1, or 0 for none")
        .one_of({0, 1, 3, 6});
    line->flag(
        "--fp16-arithmetic", fp16_arithmetic,
        "convolutions multiply and add half floats where the processor (ARM) or the GPU does");
    add_gpu_to(line);
    line->option("--isa", isa, "highest instruction set to use, as QUOLL_CPU_MASK");
    line->flag("--reference", reference, "scalar reference layers instead of the fast ones");
    line->flag("--no-packing", no_packing, "no channel-blocked blobs");
    line->flag("--no-fusion", no_fusion, "run the layers as the file has them");
    line->flag("--check-finite", check_finite,
               "stop at the first layer that makes infinite values or NaN of finite ones");
}

void RunOptions::add_gpu_to(CommandLine* line) {
    line->option("--gpu", gpu, "Vulkan device that runs the layers that it can; -1: the CPU alone")
        .between(-1, kMostGpus);
}

static int check_gpu(int gpu, std::string* why) {
    const int count = get_gpu_count();
    if (gpu < count) return 0;
    *why = "--gpu " + std::to_string(gpu) + ": ";
    *why += count ? "the last Vulkan device here is " + std::to_string(count - 1)
                  : std::string("no Vulkan device here");
    return -1;
}

int RunOptions::apply(Option* opt, std::string* why) const {
    if (set_cpu_mask(isa.c_str()) != 0) {
        *why = "--isa " + isa + ": not a level of this architecture";
        return -1;
    }
    if (gpu >= 0 && check_gpu(gpu, why) != 0) return -1;
    opt->use_vulkan_compute = gpu >= 0;
    if (threads) opt->num_threads = threads;
    opt->use_fp16_storage = precision == "fp16";
    opt->use_bf16_storage = precision == "bf16";
    opt->use_fp32_split = fp32_split;
    opt->use_fp16_arithmetic = fp16_arithmetic;
    opt->use_packing_layout = !no_packing;
    opt->use_reference_layers = reference;
    opt->use_graph_fusion = !no_fusion;
    opt->check_finite = check_finite;
    return 0;
}

int RunOptions::apply(Net* net, std::string* why) const {
    if (gpu >= 0) net->set_vulkan_device(gpu);
    return apply(&net->opt, why);
}

int RunOptions::apply_gpu(Net* net, std::string* why) const {
    if (gpu < 0) return 0;
    if (check_gpu(gpu, why) != 0) return -1;
    net->set_vulkan_device(gpu);
    net->opt.use_vulkan_compute = true;
    return 0;
}

namespace {

// Looks for the parameter that marks layers with int8 weights.
class Int8Finder : public ParamVisitor {
public:
    bool found = false;
    void operator()(int, const char* name, int& field, int, const char*, Range) override {
        found |= field != 0 && strcmp(name, "int8_scale_term") == 0;
    }
    void operator()(int, const char*, float&, float, const char*, Range) override {}
    void ints(int, const char*, Mat&, const char*, Range) override {}
    void floats(int, const char*, Mat&, const char*, Range) override {}
    void operator()(int, const char*, std::string&, const char*, const char*) override {}
};

}  // namespace

int RunOptions::check(const Net& net, std::string* why) const {
    if (precision != "int8") return 0;
    Int8Finder finder;
    for (Layer* layer : net.layers()) layer->visit_params(finder);
    if (finder.found) return 0;
    *why = "--precision int8: the model has no layer with int8 weights; quantize it first";
    return -1;
}

void RunOptions::warn(const FiniteCheck& watch) const {
    if (!watch.finding().empty())
        fprintf(stderr, "warning: --precision fp16: %s; fp32 and bf16 have the range\n",
                watch.finding().c_str());
}

std::string axes_text(const Shape& shape) {
    std::string text;
    if (shape.n != 1) text = "(" + std::to_string(shape.n);
    for (int i = 0; i < shape.dims; i++)
        text += (text.empty() ? "(" : ",") + std::to_string(shape.size(i));
    return text.empty() ? text : text + ")";
}

Shape input_shape(const Net& net, int blob) {
    const Blob& b = net.blobs()[blob];
    std::vector<Shape> tops;
    if (b.shape.dims != 0) return b.shape.logical_shape();
    if (net.layers()[b.producer]->infer_shapes({}, tops) != 0 || tops.empty()) return Shape();
    return tops[0];
}

}  // namespace quoll
