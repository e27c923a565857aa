// Execution plans: answers do not depend on what ran before, nor on who runs beside.
#include <string.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "count_allocations.h"
#include "quoll/net.h"
#include "random_weights.h"

namespace quoll {
namespace {

// A bundled graph without the sizes of its input, so that those of a run decide.
std::string graph_without_sizes(const std::string& name) {
    std::ifstream file("benchmark/models/" + name + ".param");
    const std::string text((std::istreambuf_iterator<char>(file)),
                           std::istreambuf_iterator<char>());
    EXPECT_FALSE(text.empty()) << name << ": run from the source tree";
    return std::regex_replace(text, std::regex("( *0=[0-9]+ 1=[0-9]+ 2=[0-9]+)(?=\n)"), "",
                              std::regex_constants::format_first_only);
}

// 3x3 convolutions of channels for which Winograd's algorithm and the direct one are each best at
// some sizes, in groups too, a residual sum, and a product of rows.
const char kConvolutions[] =
    "7767517\n6 7\n"
    "Input in 0 1 in\n"
    "Convolution a 1 1 in a 0=32 1=3 4=1 5=1 6=864 9=1\n"
    "Split s 1 2 a a0 a1\n"
    "Convolution b 1 1 a0 b 0=32 1=3 4=1 5=1 6=9216\n"
    "BinaryOp sum 2 1 b a1 c 0=0\n"
    "ConvolutionDepthWise g 1 1 c out 0=32 1=3 4=1 5=1 6=2304 7=4\n";

struct Model {
    std::string text;
    Option opt;

    void load(Net* net) const {
        net->opt = opt;
        ASSERT_EQ(0, net->load_param_mem(text.c_str()));
        ASSERT_EQ(0, net->load_model(RandomWeights()));
    }
};

Mat image(int size) {
    Mat m(size, size, 3);
    for (int q = 0; q < m.c; q++)
        for (int i = 0; i < size * size; i++)
            m.channel(q)[i] = (float)((i * 37 + q * 11 + size) % 101) / 50.f - 1.f;
    return m;
}

// Empty after a failure.
Mat run(const Net& net, int size, int threads = 0) {
    Extractor ex = net.create_extractor();
    if (threads) ex.set_num_threads(threads);
    Mat out;
    EXPECT_EQ(0, ex.input(net.input_indexes()[0], image(size)));
    EXPECT_EQ(0, ex.extract(net.output_indexes()[0], out));
    return out;
}

// As a Net gives that has run nothing else.
Mat run_fresh(const Model& model, int size) {
    Net net;
    model.load(&net);
    return run(net, size);
}

void expect_same_bits(const Mat& a, const Mat& b, const std::string& what) {
    ASSERT_TRUE(!a.empty() && a.logical_shape() == b.logical_shape()) << what;
    for (int q = 0; q < a.c; q++)
        ASSERT_EQ(0, memcmp(a.channel(q).data, b.channel(q).data, (size_t)a.w * a.h * a.d * 4))
            << what << ", channel " << q;
}

std::vector<Model> models() {
    std::vector<Model> all;
    for (const bool bf16 : {false, true}) {
        Model model;
        model.opt.num_threads = 2;
        model.opt.use_bf16_storage = bf16;
        for (const std::string& text : {
                 std::string(kConvolutions),
                 graph_without_sizes("squeezenet"),
#ifndef QUOLL_EMULATED_CPU
                 graph_without_sizes("resnet18"),
#endif
             }) {
            model.text = text;
            all.push_back(model);
        }
    }
    return all;
}

TEST(Plan, answers_do_not_depend_on_the_sizes_that_ran_before) {
    for (const Model& model : models()) {
        std::vector<int> sizes = {32, 71, 112};
        std::vector<Mat> expected;
        for (int size : sizes) expected.push_back(run_fresh(model, size));
        // Each size before each other one, and again.
        for (const std::vector<int>& order : {std::vector<int>{0, 1, 2}, {2, 1, 0}}) {
            Net net;
            model.load(&net);
            for (int repeat = 0; repeat < 2; repeat++)
                for (int i : order)
                    expect_same_bits(run(net, sizes[i]), expected[i],
                                     "size " + std::to_string(sizes[i]));
        }
    }
}

TEST(Plan, first_runs_at_once_give_the_same_answers) {
    const std::vector<int> sizes = {32, 40, 71, 112};
    for (const Model& model : models()) {
        std::vector<Mat> expected;
        for (int size : sizes) expected.push_back(run_fresh(model, size));
        Net net;
        model.load(&net);
        std::vector<Mat> answers(8);
        std::vector<std::thread> threads;
        for (size_t i = 0; i < answers.size(); i++)
            threads.emplace_back(
                [&, i] { answers[i] = run(net, sizes[i % sizes.size()], 1 + (int)i / 4); });
        for (std::thread& thread : threads) thread.join();
        for (size_t i = 0; i < answers.size(); i++)
            expect_same_bits(answers[i], expected[i % sizes.size()], "thread " + std::to_string(i));
    }
}

// Sizes that alternate find what was planned for them.
TEST(Plan, alternating_sizes_plan_nothing_anew) {
    Model model;
    model.text = kConvolutions;
    model.opt.num_threads = 1;
    Net net;
    model.load(&net);
    Extractor ex = net.create_extractor();
    const Mat in[2] = {image(32), image(71)};
    Mat out[2];
    for (int i = 0; i < 12; i++) {
        const size_t blocks = block_allocations(), small = small_allocations();
        ex.clear();
        ASSERT_EQ(0, ex.input("in", in[i % 2]));
        ASSERT_EQ(0, ex.extract("out", out[i % 2]));
        if (i < 8) continue;
        EXPECT_EQ(blocks, block_allocations()) << "run " << i;
        EXPECT_EQ(small, small_allocations()) << "run " << i;
    }
}

// Layers after an input that keeps its size are not planned again when another input's changes.
TEST(Plan, steps_of_the_same_sizes_are_shared) {
    class Plans : public LayerObserver {
    public:
        void planned(const Layer& layer, const LayerPlan* plan) override { of[layer.name] = plan; }
        void before(const Layer&) override {}
        void after(const Layer&, const std::vector<Mat>&) override {}
        std::map<std::string, const LayerPlan*> of;
    };
    Model model;
    model.text =
        "7767517\n7 7\nInput a 0 1 a\nInput b 0 1 b\n"
        "Convolution ca 1 1 a ca 0=16 1=3 5=1 6=432\nConvolution cb 1 1 b cb 0=16 1=3 5=1 6=432\n"
        "Pooling pa 1 1 ca pa 0=1 4=1\nPooling pb 1 1 cb pb 0=1 4=1\n"
        "BinaryOp out 2 1 pa pb out 0=0\n";
    const auto run_both = [](const Net& net, int size, Plans* plans) {
        Extractor ex = net.create_extractor();
        ex.set_layer_observer(plans);
        Mat out;
        EXPECT_EQ(0, ex.input("a", image(32)));
        EXPECT_EQ(0, ex.input("b", image(size)));
        EXPECT_EQ(0, ex.extract("out", out));
        return out;
    };
    Net net, fresh;
    model.load(&net);
    model.load(&fresh);
    Plans first, second, alone;
    run_both(net, 32, &first);
    const Mat answer = run_both(net, 71, &second);
    ASSERT_TRUE(first.of["ca"] && first.of["cb"]);
    EXPECT_EQ(first.of["ca"], second.of["ca"]);
    EXPECT_NE(first.of["cb"], second.of["cb"]);
    expect_same_bits(answer, run_both(fresh, 71, &alone), "size 71");
}

// More sizes than plans are kept for.
TEST(Plan, many_sizes) {
    Model model;
    model.text = kConvolutions;
    Net net;
    model.load(&net);
    for (int repeat = 0; repeat < 2; repeat++)
        for (int size = 8; size < 32; size++)
            expect_same_bits(run(net, size), run_fresh(model, size), std::to_string(size));
}

// The number of rows is known only when they have been chosen: the product is planned then.
TEST(Plan, sizes_that_depend_on_values) {
    const char text[] =
        "7767517\n4 4\n"
        "Input in 0 1 in\n"
        "Input choice 0 1 choice\n"
        "Compress c 2 1 in choice rows 0=0\n"
        "InnerProduct p 1 1 rows out 0=2 1=0 2=6\n";
    const int32_t weights[] = {0, 0x3f800000, 0x40000000, 0x40400000, 0, 0, 0x3f800000};
    Net net;
    ASSERT_EQ(0, net.load_param_mem(text));
    ASSERT_EQ((int)sizeof(weights), net.load_model((const unsigned char*)weights, sizeof(weights)));
    Mat in(3, 5);
    for (int y = 0; y < 5; y++)
        for (int x = 0; x < 3; x++) in.row(y)[x] = (float)(10 * y + x);
    for (const std::vector<int>& chosen :
         std::vector<std::vector<int>>{{1, 3}, {0, 2, 4}, {1, 3}, {0, 1, 2, 3, 4}, {2}}) {
        Mat choice(Shape(5, DType::u8));
        for (int i = 0; i < 5; i++) ((unsigned char*)choice.data)[i] = 0;
        for (int i : chosen) ((unsigned char*)choice.data)[i] = 1;
        Extractor ex = net.create_extractor();
        ASSERT_EQ(0, ex.input("in", in));
        ASSERT_EQ(0, ex.input("choice", choice));
        Mat out;
        ASSERT_EQ(0, ex.extract("out", out));
        ASSERT_EQ((int)chosen.size(), out.h);
        for (size_t i = 0; i < chosen.size(); i++) {
            const float* row = in.row(chosen[i]);
            EXPECT_EQ(row[0] + 2 * row[1] + 3 * row[2], out.row((int)i)[0]);
            EXPECT_EQ(row[2], out.row((int)i)[1]);
        }
    }
}

// Products of blobs are planned once for their sizes, as those with weights are.
TEST(Plan, products_of_blobs) {
    class Algorithms : public LayerObserver {
    public:
        void planned(const Layer& layer, const LayerPlan* plan) override {
            if (!layer.bottoms.empty()) plans[layer.name].push_back(plan);
        }
        void before(const Layer&) override {}
        void after(const Layer&, const std::vector<Mat>&) override {}
        std::map<std::string, std::vector<const LayerPlan*>> plans;
    };
    Net net;
    net.opt.num_threads = 2;
    ASSERT_EQ(0, net.load_param_mem("7767517\n5 5\n"
                                    "Input q 0 1 q\nInput k 0 1 k\nInput v 0 1 v\n"
                                    "SDPA attend 3 1 q k v a\nMatMul product 2 1 a k out 0=1\n"));
    const unsigned char nothing[4] = {};
    net.load_model(nothing, 0);
    Algorithms algorithms;
    std::map<int, Mat> answers;
    for (int rows : {1, 40, 1, 70, 40}) {
        Mat q(8, rows, 4), k(8, 30, 4), v(8, 30, 4);
        for (Mat* m : {&q, &k, &v})
            for (size_t i = 0; i < m->total(); i++) (*m)[i] = (float)((int)i * 37 % 101) / 101.f;
        Extractor ex = net.create_extractor();
        ex.set_layer_observer(&algorithms);
        ASSERT_EQ(0, ex.input("q", q));
        ASSERT_EQ(0, ex.input("k", k));
        ASSERT_EQ(0, ex.input("v", v));
        Mat out;
        ASSERT_EQ(0, ex.extract("out", out));
        ASSERT_TRUE(out.w == 30 && out.h == rows && out.c == 4);
        if (answers.count(rows)) expect_same_bits(out, answers[rows], std::to_string(rows));
        answers[rows] = out;
    }
    for (const char* name : {"attend", "product"}) {
        const std::vector<const LayerPlan*>& plans = algorithms.plans[name];
        ASSERT_EQ(5u, plans.size()) << name;
        for (const LayerPlan* plan : plans) ASSERT_TRUE(plan) << name;
        EXPECT_TRUE(plans[0] == plans[2] && plans[1] == plans[4]) << name << " was planned anew";
        EXPECT_TRUE(plans[0] != plans[1] && plans[1] != plans[3]) << name;
        EXPECT_NE(std::string(), plans[1]->algorithm()) << name;
    }
}

}  // namespace
}  // namespace quoll
