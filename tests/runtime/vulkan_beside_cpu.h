// Nets of a Vulkan device and of the CPU beside each other, for tests.
#ifndef QUOLL_TESTS_RUNTIME_VULKAN_BESIDE_CPU_H
#define QUOLL_TESTS_RUNTIME_VULKAN_BESIDE_CPU_H

#include <math.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "forwarding_backend.h"
#include "layer/vulkan/compiled_region.h"
#include "quoll/gpu.h"
#include "quoll/net.h"
#include "random_weights.h"

namespace quoll {

// A bundled graph for inputs of any size, without the softmax at its end, which makes all answers
// alike.
inline std::string graph(const std::string& name) {
    std::ifstream file("benchmark/models/" + name + ".param");
    std::string magic, line, layers;
    int layer_count = 0, blob_count = 0;
    std::getline(file, magic);
    file >> layer_count >> blob_count;
    std::getline(file, line);
    while (std::getline(file, line)) {
        if (line.compare(0, 8, "Softmax ") == 0) {
            layer_count--, blob_count--;
            continue;
        }
        layers += line + "\n";
    }
    if (layer_count < 2) throw std::runtime_error(name + ".param: run from the source tree");
    layers = std::regex_replace(layers, std::regex("( *0=[0-9]+ 1=[0-9]+ 2=[0-9]+)(?=\n)"), "",
                                std::regex_constants::format_first_only);
    return magic + "\n" + std::to_string(layer_count) + " " + std::to_string(blob_count) + "\n" +
           layers;
}

// Of large values: with random weights answers depend little on small ones.
inline Mat image(int size, int seed) {
    Mat m(size, size, 3);
    for (int q = 0; q < m.c; q++)
        for (int i = 0; i < size * size; i++)
            m.channel(q)[i] = (float)((i * 37 + q * 11 * (seed + 1) + size) % 101 - 50) * 2.f;
    return m;
}

// Counts what it gives on to the device, and names the layers that it refuses.
class CountingBackend : public ForwardingBackend {
public:
    using ForwardingBackend::ForwardingBackend;
    bool supports(const Layer& layer, const std::vector<Shape>& in,
                  const std::vector<Shape>& out) const override {
        const bool yes = ForwardingBackend::supports(layer, in, out);
        if (!yes) refused += " " + layer.type + " " + layer.name;
        return yes;
    }
    std::shared_ptr<const CompiledRegion> compile(const Region& region,
                                                  const Option& opt) const override {
        regions++;
        const auto compiled = ForwardingBackend::compile(region, opt);
        for (const Dispatch& dispatch : as_vulkan(*compiled).program().dispatches)
            shaders += std::string(" ") + shader_name(dispatch.key.shader);
        return compiled;
    }
    // Dispatches of a shader.
    int count(const std::string& shader) const {
        int count = 0;
        std::istringstream words(shaders);
        for (std::string word; words >> word;) count += word == shader;
        return count;
    }
    mutable int regions = 0;
    mutable std::string refused, shaders;
};

class VulkanNet {
public:
    VulkanNet(const std::string& text, bool gpu, bool half = false, bool arithmetic = false) {
        net.opt.num_threads = 1;
        net.opt.use_fp16_storage = half;
        net.opt.use_fp16_arithmetic = arithmetic;
        net.opt.use_cooperative_matrix = !arithmetic;
        if (gpu) {
            backend = std::make_shared<CountingBackend>(net.opt);
            net.add_backend(backend);
        }
        EXPECT_EQ(0, net.load_param_mem(text.c_str()));
        EXPECT_EQ(0, net.load_model(RandomWeights()));
    }
    std::vector<Mat> run(int size, int seed = 0) const {
        Extractor ex = net.create_extractor();
        std::vector<Mat> outs;
        EXPECT_EQ(0, ex.input(net.input_indexes()[0], image(size, seed)));
        for (int blob : net.output_indexes()) {
            outs.emplace_back();
            EXPECT_EQ(0, ex.extract(blob, outs.back()));
        }
        return outs;
    }
    Net net;
    std::shared_ptr<CountingBackend> backend;
};

// The largest difference, of the largest value of `want`.
inline double difference(const std::vector<Mat>& got, const std::vector<Mat>& want) {
    double range = 0, most = 0;
    for (size_t k = 0; k < want.size(); k++) {
        if (got[k].logical_shape() != want[k].logical_shape()) return INFINITY;
        for (int q = 0; q < want[k].c; q++) {
            const float *a = got[k].channel(q), *b = want[k].channel(q);
            for (int i = 0; i < want[k].w * want[k].h * want[k].d; i++) {
                range = std::max(range, (double)fabsf(b[i]));
                most = std::max(most, (double)fabsf(a[i] - b[i]));
                if (!isfinite(a[i])) return INFINITY;
            }
        }
    }
    return range > 0 ? most / range : INFINITY;
}

class Vulkan : public testing::Test {
protected:
    void SetUp() override {
        if (get_gpu_count() == 0) GTEST_SKIP() << "no Vulkan device";
    }
};

}  // namespace quoll

#endif
