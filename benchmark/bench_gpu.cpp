// bench_gpu: a network on a Vulkan device, dispatch by dispatch.
//
//   bench_gpu [--fp16] [--bf16] [--int8] [--no-matrices] [--fp16-arithmetic] [--winograd N]
//             [--batch N] [--sweep] [--resident] [--runs N] [--list] [MODEL.param ...]
//
// For each model of random weights: milliseconds of whole runs on the device (upload and download
// included; minimum and median), the largest difference from the CPU's answer as a part of the
// range, then each dispatch: its microseconds by the device's timestamps (minimum), groups, shader,
// layer.
// --int8: convolutions and inner products round their inputs to int8, and have weights of int8.
// --resident also times runs whose input lies on the device and whose answers stay there.
// --sweep also times every tile and number of splits that convolutions, and products on matrix
// units, may have, and says what was best for each beside what the library chose.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/cli.h"
#include "forwarding_backend.h"
#include "graph/analysis.h"
#include "layer/control/input.h"
#include "layer/vulkan/compiled_region.h"
#include "layer/vulkan/conv_tiles.h"
#include "layer/vulkan/vulkan_backend.h"
#include "layer/vulkan/winograd_vulkan.h"
#include "quoll/command.h"
#include "quoll/gpu.h"
#include "quoll/net.h"
#include "random_weights.h"

using namespace quoll;

namespace {

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// Keeps what is compiled.
class KeepingBackend : public ForwardingBackend {
public:
    using ForwardingBackend::ForwardingBackend;
    std::shared_ptr<const CompiledRegion> compile(const Region& region,
                                                  const Option& opt) const override {
        regions.push_back(region);
        compiled.push_back(ForwardingBackend::compile(region, opt));
        return compiled.back();
    }
    mutable std::vector<Region> regions;
    mutable std::vector<std::shared_ptr<const CompiledRegion>> compiled;
};

struct Arguments {
    bool fp16 = false, bf16 = false, int8 = false, no_matrices = false, sweep = false;
    bool fp16_arithmetic = false, resident = false;
    int runs = 30, batch = 1, winograd = -1;
    std::vector<std::string> models;
};

// Of convolutions and products.
void set_options(const Arguments& a, Option* opt) {
    opt->use_fp16_storage = a.fp16;
    opt->use_bf16_storage = a.bf16;
    opt->use_cooperative_matrix = !a.no_matrices;
    opt->use_fp16_arithmetic = a.fp16_arithmetic;
}

Mat filled_input(const Shape& shape) {
    Mat m(shape);
    if (shape.dtype != DType::f32) {
        memset(m.data, 0x2c,
               (m.n > 1 ? m.nstep * m.n : m.cstep * m.c) * m.elemsize);  // 0.067 as f16
        return m;
    }
    for (int b = 0; b < m.n; b++)
        for (int q = 0; q < m.c; q++) {
            float* p = (float*)m.data + b * m.nstep + q * m.cstep;
            for (int i = 0; i < m.w * m.h * m.d; i++)
                p[i] = (float)((i * 37 + q * 11 + b * 7) % 101 - 50) * 0.02f;
        }
    return m;
}

// The lines of a .param; of the int8 form of its layers.
int read_param(const std::string& path, bool int8, std::string* text) {
    std::ifstream file(path);
    if (!file) {
        fprintf(stderr, "bench_gpu: %s: cannot be read\n", path.c_str());
        return kError;
    }
    std::string line;
    while (std::getline(file, line)) {
        const std::string type = line.substr(0, line.find(' '));
        const bool grouped = type == "ConvolutionDepthWise";
        if (int8 && (grouped || type == "Convolution" || type == "InnerProduct"))
            line += grouped ? " 8=1" : " 8=2";
        *text += line + "\n";
    }
    return kOk;
}

int input_shape(const std::string& path, Shape* shape) {
    Model model;
    BlobSizes sizes;
    QUOLL_RETURN_IF_ERROR(model.load_param(path.c_str()));
    QUOLL_RETURN_IF_ERROR(infer_blob_sizes(model, BlobSizes(), &sizes));
    for (const ModelLayer& layer : model.layers)
        if (layer.is<Input>() && sizes.count(layer.outputs[0])) {
            *shape = sizes[layer.outputs[0]];
            return kOk;
        }
    fprintf(stderr, "bench_gpu: %s does not tell the size of its input\n", path.c_str());
    return kError;
}

int load(Net* net, const std::string& path, bool int8) {
    std::string text;
    QUOLL_RETURN_IF_ERROR(read_param(path, int8, &text));
    Model model;
    const unsigned char* memory = (const unsigned char*)text.c_str();
    QUOLL_RETURN_IF_ERROR(model.load_param(DataReaderFromMemory(memory)));
    QUOLL_RETURN_IF_ERROR(net->load_param_mem(text.c_str()));
    return net->load_model(RandomWeights(model));
}

int run(const Net& net, const Mat& input, std::vector<Mat>* outs) {
    Extractor ex = net.create_extractor();
    QUOLL_RETURN_IF_ERROR(ex.input(net.input_indexes()[0], input));
    outs->clear();
    for (int blob : net.output_indexes()) {
        Mat out;
        QUOLL_RETURN_IF_ERROR(ex.extract(blob, out));
        outs->push_back(out);
    }
    return kOk;
}

// Seconds of each run whose input lies on the device and whose answers stay there, as those of
// frameworks that are timed on tensors of the device.
int time_resident(const std::string& path, const Arguments& a, const Mat& input,
                  std::vector<double>* seconds) {
    Net net;
    net.opt.use_vulkan_compute = true;
    set_options(a, &net.opt);
    QUOLL_RETURN_IF_ERROR(load(&net, path, a.int8));
    VkMat on_device;
    VkCompute upload(net.vulkan_device());
    QUOLL_RETURN_IF_ERROR(upload.record_upload(input, on_device, net.opt));
    QUOLL_RETURN_IF_ERROR(upload.submit_and_wait());
    for (int i = 0; i < 10 * a.runs; i++) {
        const double begin = now();
        VkCompute cmd(net.vulkan_device());
        Extractor ex = net.create_extractor();
        QUOLL_RETURN_IF_ERROR(ex.input(net.input_indexes()[0], on_device));
        std::vector<VkMat> outs(net.output_indexes().size());
        for (size_t k = 0; k < outs.size(); k++)
            QUOLL_RETURN_IF_ERROR(ex.extract(net.output_indexes()[k], outs[k], cmd));
        QUOLL_RETURN_IF_ERROR(cmd.submit_and_wait());
        seconds->push_back(now() - begin);
    }
    std::sort(seconds->begin(), seconds->end());
    return kOk;
}

// NaN if all expected values are equal, as for a softmax along an axis of 1, where any answer would
// look right.
double difference(const std::vector<Mat>& got, const std::vector<Mat>& want) {
    double range = 0, most = 0;
    float least = INFINITY, largest = -INFINITY;
    for (size_t k = 0; k < want.size(); k++)
        for (int j = 0; j < want[k].n * want[k].c; j++) {
            const int item = j / want[k].c, q = j % want[k].c;
            const float* a = (const float*)got[k].data + item * got[k].nstep + q * got[k].cstep;
            const float* b = (const float*)want[k].data + item * want[k].nstep + q * want[k].cstep;
            for (int i = 0; i < want[k].w * want[k].h * want[k].d; i++) {
                range = std::max(range, (double)fabsf(b[i]));
                least = std::min(least, b[i]), largest = std::max(largest, b[i]);
                most = std::max(most, (double)fabsf(a[i] - b[i]));
                if (!isfinite(a[i])) return INFINITY;
            }
        }
    if (!(least < largest)) return NAN;
    return most / range;
}

// The least time of each dispatch.
int profile(const VulkanRegion& region, const std::vector<Mat>& uploads, int runs,
            std::vector<double>* least) {
    least->clear();
    for (int i = 0; i < runs; i++) {
        RegionTimes times;
        std::vector<Mat> downloads;
        QUOLL_RETURN_IF_ERROR(region.run_timed(uploads, &downloads, Option(), &times));
        const std::vector<double>& seconds = times.dispatches;
        if (least->empty()) *least = seconds;
        for (size_t k = 0; k < seconds.size(); k++) (*least)[k] = std::min((*least)[k], seconds[k]);
    }
    return kOk;
}

std::vector<Mat> uploads_of(const Region& region) {
    std::vector<Mat> uploads;
    for (const RegionValue& value : region.values)
        if (value.is_uploaded()) uploads.push_back(filled_input(value.shape));
    return uploads;
}

bool is_convolution(const Dispatch& d) {
    return d.key.shader == Shader::conv_matrix || d.key.shader == Shader::conv_matrix_int8 ||
           d.key.shader == Shader::conv_tiled || d.key.shader == Shader::conv_tiled_half ||
           d.key.shader == Shader::conv_planar || d.key.shader == Shader::conv_tiled_planar ||
           d.key.shader == Shader::conv_tiled_planar_half;
}

bool is_product(const Dispatch& d) {
    return is_convolution(d) || d.key.shader == Shader::product_matrix ||
           d.key.shader == Shader::product || d.key.shader == Shader::product_half;
}

std::string step_name(const Region& region, int step) {
    if (step < 0) return "upload";
    return region.steps[step].layer->type + " " + region.steps[step].layer->name;
}

// Products by their step and columns, as other dispatches may come and go.
typedef std::pair<int, uint32_t> ProductKey;
typedef std::map<ProductKey, std::pair<double, std::string>> Best;

ProductKey key_of(const Dispatch& d) { return {d.step, d.push[is_convolution(d) ? 12 : 1]}; }

int sweep(const KeepingBackend& backend, size_t index, const Arguments& a, Best* best) {
    const Region& region = backend.regions[index];
    const bool matrix = a.fp16 && !a.no_matrices;
    const int runs = std::max(3, a.runs / 6);
    Option opt;
    set_options(a, &opt);
    const std::vector<Mat> uploads = uploads_of(region);
    for (const ConvTile& tile : conv_tiles(matrix)) {
        for (int splits : {1, 2, 3, 4, 6, 8, 12, 16}) {
            const ConvTiling tiling = {tile, splits};
            force_tiling(&tiling);
            const auto made = backend.vulkan().compile(region, opt);
            force_tiling(nullptr);
            if (!made) return kError;
            const VulkanRegion& vulkan = as_vulkan(*made);
            std::vector<double> least;
            QUOLL_RETURN_IF_ERROR(profile(vulkan, uploads, runs, &least));
            char text[64];
            snprintf(text, sizeof(text), "%dx%dx%d %d,%d,%d,%d / %d", tile.rows, tile.columns,
                     tile.depth, tile.m, tile.n, tile.k, tile.buffers, splits);
            for (size_t i = 0; i < least.size(); i++) {
                const Dispatch& d = vulkan.program().dispatches[i];
                if (!is_product(d)) continue;
                auto& entry = (*best)[key_of(d)];
                if (entry.second.empty() || least[i] < entry.first) entry = {least[i], text};
            }
        }
    }
    return kOk;
}

int report(const KeepingBackend& backend, const Arguments& a) {
    for (size_t r = 0; r < backend.regions.size(); r++) {
        const Region& region = backend.regions[r];
        const VulkanRegion& vulkan = as_vulkan(*backend.compiled[r]);
        std::vector<double> least;
        QUOLL_RETURN_IF_ERROR(profile(vulkan, uploads_of(region), a.runs, &least));
        Best best;
        if (a.sweep) QUOLL_RETURN_IF_ERROR(sweep(backend, r, a, &best));
        double sum = 0, sum_best = 0;
        std::map<std::string, std::pair<double, int>> by_shader;
        for (size_t i = 0; i < least.size(); i++) {
            const Dispatch& d = vulkan.program().dispatches[i];
            printf("  %6.2f us%s %4ux%ux%u %s, %s", least[i] * 1e6, d.barrier_before ? "|" : " ",
                   d.groups[0], d.groups[1], d.groups[2], shader_name(d.key.shader),
                   step_name(region, d.step).c_str());
            sum += least[i], sum_best += least[i];
            auto& shader = by_shader[shader_name(d.key.shader)];
            shader.first += least[i], shader.second++;
            if (is_product(d)) {
                const std::vector<uint32_t>& p = d.push;
                const bool conv = is_convolution(d);
                printf(" [%u x %u x %u / %u]", p[conv ? 9 : 0], p[conv ? 12 : 1],
                       conv ? p[13] * 4 : p[2], p.back());
                const auto found = best.find(key_of(d));
                if (found != best.end()) {
                    printf(" best %.2f %s", found->second.first * 1e6,
                           found->second.second.c_str());
                    sum_best += found->second.first - least[i];
                }
            }
            printf("\n");
        }
        printf("  sum %.1f us, with the best tiles %.1f\n", sum * 1e6, sum_best * 1e6);
        for (const auto& shader : by_shader)
            printf("    %8.1f us %3d %s\n", shader.second.first * 1e6, shader.second.second,
                   shader.first.c_str());
    }
    return kOk;
}

const char* precision_of(const Arguments& a) {
    if (a.fp16 && a.fp16_arithmetic) return a.no_matrices ? "fp16 tiles of halves" : "fp16, halves";
    if (a.fp16) return a.no_matrices ? "fp16 tiles" : "fp16";
    return a.bf16 ? "bf16" : "fp32";
}

int bench(const std::string& path, const Arguments& a) {
    Net cpu, gpu;
    set_options(a, &gpu.opt);
    const auto backend = std::make_shared<KeepingBackend>(gpu.opt);
    gpu.add_backend(backend);
    QUOLL_RETURN_IF_ERROR(load(&cpu, path, a.int8));
    QUOLL_RETURN_IF_ERROR(load(&gpu, path, a.int8));
    Shape shape;
    QUOLL_RETURN_IF_ERROR(input_shape(path, &shape));
    shape.n = a.batch;
    const Mat input = filled_input(shape);
    std::vector<Mat> want, got;
    QUOLL_RETURN_IF_ERROR(run(cpu, input, &want));
    double begin = now();
    QUOLL_RETURN_IF_ERROR(run(gpu, input, &got));
    const double first = now() - begin;
    const double differs = difference(got, want);
    std::vector<double> times;
    for (int i = 0; i < 10 * a.runs; i++) {
        begin = now();
        QUOLL_RETURN_IF_ERROR(run(gpu, input, &got));
        times.push_back(now() - begin);
    }
    std::sort(times.begin(), times.end());
    printf("%s%s %s: %.3f ms (median %.3f), first %.0f ms, differs by %.2g\n", path.c_str(),
           a.int8 ? " int8" : "", precision_of(a), times[0] * 1e3, times[times.size() / 2] * 1e3,
           first * 1e3, differs);
    if (a.resident) {
        std::vector<double> resident;
        QUOLL_RETURN_IF_ERROR(time_resident(path, a, input, &resident));
        printf("  without upload and download: %.3f ms (median %.3f)\n", resident[0] * 1e3,
               resident[resident.size() / 2] * 1e3);
    }
    return report(*backend, a);
}

}  // namespace

int main(int argc, char** argv) {
    Arguments a;
    CommandLine line("Times networks on a Vulkan device, dispatch by dispatch.", "bench_gpu");
    line.flag("--fp16", a.fp16, "blobs and weights as f16");
    line.flag("--bf16", a.bf16, "blobs of the host as bf16");
    line.flag("--int8", a.int8, "convolutions and inner products of int8");
    line.flag("--no-matrices", a.no_matrices, "no matrix units (use_cooperative_matrix)");
    line.flag("--fp16-arithmetic", a.fp16_arithmetic,
              "with --fp16 --no-matrices: half floats are multiplied as such");
    line.option("--winograd", a.winograd,
                "outputs of a tile of Winograd's algorithm along an axis, wherever it can be used: "
                "2 or 4; 0: it is not used; -1: as the library chooses");
    line.option("--batch", a.batch, "items of an input").between(1, 1024);
    line.flag("--sweep", a.sweep, "every tile of convolutions and products, too");
    line.flag("--resident", a.resident, "also runs between blobs that stay on the device");
    line.option("--runs", a.runs, "of a profile; ten times as many of the whole").between(1, 10000);
    bool list = false;
    line.flag("--list", list, "say which device it is, and end");
    line.option("MODELS", a.models, "MODEL.param, of random weights");
    int exit_code = 0;
    if (!line.parse(argc, argv, &exit_code)) return exit_code;
    if (a.models.empty() && !list) {
        fprintf(stderr, "bench_gpu: expected MODEL.param\n");
        return 2;
    }
    if (a.winograd < -1 || a.winograd > 4 || a.winograd % 2 == 1) {
        fprintf(stderr, "bench_gpu: --winograd %d: expected -1, 0, 2 or 4\n", a.winograd);
        return 2;
    }
    if (get_gpu_count() == 0) {
        fprintf(stderr, "bench_gpu: no Vulkan device\n");
        return 1;
    }
    const GpuInfo& info = get_gpu_info();
    printf("GPU %d: %s, %u processors, matrices: %s\n", get_default_gpu_index(), info.device_name(),
           info.processors(), info.support_cooperative_matrix() ? "yes" : "no");
    force_winograd(a.winograd);
    for (const std::string& model : a.models)
        if (bench(model, a) != kOk) return 1;
    return 0;
}
