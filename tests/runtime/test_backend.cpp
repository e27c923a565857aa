// Plans with steps on another back end: the same answers whole, mixed with the CPU layer by layer,
// and when the back end fails.
#include <math.h>
#include <string.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "quoll/log.h"
#include "runtime/log_mute.h"
#include "quoll/net.h"
#include "random_weights.h"
#include "recording_backend.h"

namespace quoll {
namespace {

const char* const kBundled[] = {"alexnet",      "efficientnet_b0", "googlenet",    "mobilenet_v1",
                                "mobilenet_v2", "mobilenet_v3",    "resnet18",     "resnet50",
                                "squeezenet",   "shufflenet_v2",   "yolov4_tiny"};

// A bundled graph for inputs of any size.
std::string graph(const std::string& name) {
    std::ifstream file("benchmark/models/" + name + ".param");
    std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    EXPECT_FALSE(text.empty()) << name << ": run from the source tree";
    return std::regex_replace(text, std::regex("( *0=[0-9]+ 1=[0-9]+ 2=[0-9]+)(?=\n)"), "",
                              std::regex_constants::format_first_only);
}

Mat image(int size) {
    Mat m(size, size, 3);
    for (int q = 0; q < m.c; q++)
        for (int i = 0; i < size * size; i++)
            m.channel(q)[i] = (float)((i * 37 + q * 11 + size) % 101) / 50.f - 1.f;
    return m;
}

void load(const std::string& text, Net* net) {
    net->opt.num_threads = 1;
    ASSERT_EQ(0, net->load_param_mem(text.c_str()));
    ASSERT_EQ(0, net->load_model(RandomWeights()));
}

std::vector<Mat> run(const Net& net, int size) {
    Extractor ex = net.create_extractor();
    std::vector<Mat> outs;
    EXPECT_EQ(0, ex.input(net.input_indexes()[0], image(size)));
    for (int blob : net.output_indexes()) {
        outs.emplace_back();
        EXPECT_EQ(0, ex.extract(blob, outs.back()));
    }
    return outs;
}

float largest(const Mat& m) {
    float most = 0;
    for (int q = 0; q < m.c; q++)
        for (int i = 0; i < m.w * m.h * m.d; i++)
            most = std::max(most, std::fabs(m.channel(q)[i]));
    return most;
}

// Layers on planar blobs may sum in another order than on packed ones.
void expect_near(const std::vector<Mat>& a, const std::vector<Mat>& b, float tolerance,
                 const std::string& what) {
    ASSERT_EQ(a.size(), b.size()) << what;
    for (size_t k = 0; k < a.size(); k++) {
        ASSERT_TRUE(!a[k].empty() && a[k].logical_shape() == b[k].logical_shape()) << what;
        const float range = largest(a[k]);
        ASSERT_GT(range, 0) << what;
        for (int q = 0; q < a[k].c; q++)
            for (int i = 0; i < a[k].w * a[k].h * a[k].d; i++)
                ASSERT_NEAR(a[k].channel(q)[i], b[k].channel(q)[i], tolerance * range)
                    << what << ", output " << k << ", channel " << q << ", " << i;
    }
}

TEST(Backend, every_bundled_graph_whole_and_mixed) {
    for (const std::string name : kBundled) {
        const int size = name == "alexnet" ? 227 : name == "googlenet" ? 224 : 96;
        const std::string text = graph(name);
        Net cpu;
        load(text, &cpu);
        const std::vector<Mat> expected = run(cpu, size);
        for (uint32_t seed = 0; seed < 3; seed++) {
            const double share = seed == 0 ? 1 : 0.3 * seed;
            const auto backend = std::make_shared<RecordingBackend>(share, seed);
            Net net;
            net.add_backend(backend);
            load(text, &net);
            for (int repeat = 0; repeat < 2; repeat++)
                expect_near(expected, run(net, size), 2e-6f,
                            name + " with seed " + std::to_string(seed));
            EXPECT_GT(backend->steps.load(), 0) << name;
            // The second run replays what the first has recorded.
            EXPECT_EQ(backend->replayed, 2 * backend->compiled) << name;
        }
    }
}

TEST(Backend, a_whole_chain_is_one_region) {
    const auto backend = std::make_shared<RecordingBackend>();
    Net net;
    net.add_backend(backend);
    load(graph("mobilenet_v1"), &net);
    run(net, 96);
    EXPECT_EQ(1, backend->compiled);
}

TEST(Backend, storage_types) {
    for (const bool bf16 : {false, true}) {
        std::vector<std::vector<Mat>> answers;
        for (const bool with : {false, true}) {
            Net net;
            net.opt.use_fp16_storage = !bf16;
            net.opt.use_bf16_storage = bf16;
            if (with) net.add_backend(std::make_shared<RecordingBackend>(0.7, 3));
            load(graph("squeezenet"), &net);
            answers.push_back(run(net, 96));
        }
        expect_near(answers[0], answers[1], bf16 ? 2e-2f : 2e-3f, bf16 ? "bf16" : "fp16");
    }
}

class Observer : public LayerObserver {
public:
    int before_calls = 0, after_calls = 0, elsewhere = 0;
    void runs_on(const Layer&, const char* backend) override {
        elsewhere += strcmp(backend, "recording") == 0;
    }
    void before(const Layer&) override { before_calls++; }
    void after(const Layer& layer, const std::vector<Mat>& outputs) override {
        after_calls++;
        EXPECT_EQ(layer.tops.size(), outputs.size());
    }
};

TEST(Backend, observers_see_every_layer_and_where_it_ran) {
    Net cpu, net;
    net.add_backend(std::make_shared<RecordingBackend>(0.5, 1));
    load(graph("squeezenet"), &cpu);
    load(graph("squeezenet"), &net);
    Observer seen[2];
    Mat out;
    const Net* nets[] = {&cpu, &net};
    for (int i = 0; i < 2; i++) {
        Extractor ex = nets[i]->create_extractor();
        ex.set_layer_observer(&seen[i]);
        ex.input(0, image(96));
        ASSERT_EQ(0, ex.extract(nets[i]->output_indexes()[0], out));
        EXPECT_EQ(seen[i].before_calls, seen[i].after_calls);
    }
    EXPECT_EQ(seen[0].before_calls, seen[1].before_calls);
    EXPECT_EQ(0, seen[0].elsewhere);
    EXPECT_GT(seen[1].elsewhere, 10);
    EXPECT_LT(seen[1].elsewhere, seen[1].before_calls);
}

TEST(Backend, blobs_inside_a_region_can_be_extracted_afterwards) {
    Net cpu, net;
    net.add_backend(std::make_shared<RecordingBackend>());
    load(graph("squeezenet"), &cpu);
    load(graph("squeezenet"), &net);
    Extractor a = cpu.create_extractor(), b = net.create_extractor();
    a.input(0, image(96));
    b.input(0, image(96));
    int inside = -1;
    for (const Layer* layer : net.layers())
        if (layer->type == "Concat" && inside < 0) inside = layer->tops[0];
    for (int blob : {net.output_indexes()[0], inside}) {
        Mat x, y;
        ASSERT_EQ(0, a.extract(blob, x)) << blob;
        ASSERT_EQ(0, b.extract(blob, y)) << blob;
        expect_near({x}, {y}, 2e-6f, "blob " + std::to_string(blob));
    }
}

TEST(Backend, what_is_not_worth_it_stays_on_the_host) {
    const auto backend = std::make_shared<RecordingBackend>(0.5, 2);
    backend->fewest_steps = 3;
    Net cpu, net;
    net.add_backend(backend);
    load(graph("googlenet"), &cpu);
    load(graph("googlenet"), &net);
    expect_near(run(cpu, 224), run(net, 224), 2e-6f, "googlenet");
    EXPECT_GT(backend->compiled, 0);
    EXPECT_GE(backend->steps, 3 * backend->compiled);
}

TEST(Backend, one_that_fails_is_an_error) {
    const auto backend = std::make_shared<RecordingBackend>();
    backend->fails = true;
    Net net;
    net.add_backend(backend);
    load(graph("squeezenet"), &net);
    Extractor ex = net.create_extractor();
    ASSERT_EQ(0, ex.input(0, image(96)));
    Mat out;
    LogMute quiet;
    EXPECT_NE(0, ex.extract(net.output_indexes()[0], out));
}

TEST(Backend, runs_in_many_threads_at_once) {
    Net net;
    net.add_backend(std::make_shared<RecordingBackend>(0.6, 5));
    load(graph("shufflenet_v2"), &net);
    const std::vector<Mat> expected[2] = {run(net, 96), run(net, 64)};
    std::vector<std::vector<Mat>> answers(8);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < answers.size(); i++)
        threads.emplace_back([&, i] { answers[i] = run(net, i % 2 ? 64 : 96); });
    for (std::thread& thread : threads) thread.join();
    for (size_t i = 0; i < answers.size(); i++)
        expect_near(expected[i % 2], answers[i], 2e-6f, "thread " + std::to_string(i));
}

TEST(Backend, a_net_that_is_loaded_anew_is_prepared_anew) {
    Net net;
    net.add_backend(std::make_shared<RecordingBackend>());
    load(graph("squeezenet"), &net);
    const std::vector<Mat> first = run(net, 96);
    load(graph("squeezenet"), &net);
    expect_near(first, run(net, 96), 0, "squeezenet");
}

}  // namespace
}  // namespace quoll
