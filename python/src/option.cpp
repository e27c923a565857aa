#include "option.h"

#include <nanobind/stl/shared_ptr.h>

#include "bindings.h"

namespace quoll_python {

namespace {

using quoll::Option;

struct Field {
    const char* name;
    bool Option::*value;
    const char* doc;
};
const Field kFlags[] = {
    {"lightmode", &Option::lightmode, "Intermediate blobs are released as soon as their last consumer has run."},
    {"use_fp16_storage", &Option::use_fp16_storage, "Blobs between layers are IEEE half floats; arithmetic stays fp32."},
    {"use_bf16_storage", &Option::use_bf16_storage, "Blobs between layers are bfloat16."},
    {"use_fp16_arithmetic", &Option::use_fp16_arithmetic, "Convolutions may compute in half floats where the processor (ARM) or the GPU does."},
    {"use_vulkan_compute", &Option::use_vulkan_compute, "What a GPU can run runs there, by Vulkan; set before load_model."},
    {"use_packing_layout", &Option::use_packing_layout, "Layers may use channel-blocked blobs (elempack > 1)."},
    {"use_winograd_convolution", &Option::use_winograd_convolution, "3x3 convolutions may use Winograd's algorithm."},
    {"use_graph_fusion", &Option::use_graph_fusion, "load_model folds layers into each other."},
    {"use_reference_layers", &Option::use_reference_layers, "The scalar reference of every operator: slow, for checking."},
    {"check_finite", &Option::check_finite, "The first layer that makes infinities or NaN of finite inputs ends the run."},
};
struct Number {
    const char* name;
    int Option::*value;
    int low, high;
    const char* doc;
};
const Number kNumbers[] = {
    {"num_threads", &Option::num_threads, 1, 1 << 20, "Threads that a layer may use, at least 1."},
    {"openmp_blocktime", &Option::openmp_blocktime, 0, 1 << 30, "Milliseconds that idle workers spin before they sleep."},
    {"use_fp32_split", &Option::use_fp32_split, 0, 6, "Products on tile units (AMX) that stand for one of fp32: 6, 3, 1 or 0 (none)."},
    {"flush_denormals", &Option::flush_denormals, 0, 3, "Denormals are zero while layers run: bit 0 as operands, bit 1 as results."},
};

}  // namespace

void bind_option(nb::module_& m) {
    nb::class_<PyOption> option(m, "Option", "How a Net runs. Set before loading.", nb::dynamic_attr());
    option.def(nb::init<>());
    for (const Field& f : kFlags)
        option.def_prop_rw(f.name, [value = f.value](const PyOption& o) { return o.values.*value; },
                           [value = f.value](PyOption& o, bool v) { o.values.*value = v; }, f.doc);
    for (const Number& f : kNumbers)
        option.def_prop_rw(f.name, [f](const PyOption& o) { return o.values.*f.value; },
                           [f](PyOption& o, int v) {
                               if (v < f.low || v > f.high)
                                   throw nb::value_error((std::string(f.name) + ": expected " + std::to_string(f.low) + " to " +
                                                          std::to_string(f.high) + ", got " + std::to_string(v))
                                                             .c_str());
                               o.values.*f.value = v;
                           },
                           f.doc);
    option.def_rw("blob_allocator", &PyOption::blob_allocator, nb::arg().none(), "Memory for blobs; None: the engine's own.")
        .def_rw("workspace_allocator", &PyOption::workspace_allocator, nb::arg().none(), "Memory for temporary buffers of layers.");
}

}  // namespace quoll_python
