// Exceptions of an application's layers go through to the application, and leave a Net that works.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "quoll/datareader.h"
#include "quoll/layer.h"
#include "quoll/log.h"
#include "quoll/net.h"

namespace {

using quoll::Mat;

// The application's exception: nothing of the library's or of the standard library's.
struct Thrown {
    std::string where;
};

const char* g_where = "";
void reach(const char* place) {
    if (std::string(g_where) == place) throw Thrown{place};
}

class Throwing : public quoll::Layer {
public:
    Throwing() {
        one_blob_only = true;
        support_inplace = true;
        reach("constructor");
    }
    int load_param(const quoll::ParamDict&) override { return reach("load_param"), 0; }
    int load_model(const quoll::ModelBin&) override { return reach("load_model"), 0; }
    int create_pipeline(const quoll::Option&) override { return reach("create_pipeline"), 0; }
    int plan(const std::vector<quoll::Shape>&, const quoll::Option&,
             std::shared_ptr<const quoll::LayerPlan>*) const override {
        return reach("plan"), 0;
    }
    using quoll::Layer::forward_inplace;
    int forward_inplace(Mat& blob, const quoll::Option&) const override {
        reach("forward");
        for (int q = 0; q < blob.c; q++)
            for (int i = 0; i < blob.w * blob.h; i++) blob.channel(q)[i] += 1.f;
        return 0;
    }
};
quoll::Layer* make_throwing(void*) { return new Throwing; }

const char* const kParam =
    "7767517\n5 6\n"
    "Input in 0 1 in 0=6 1=5 2=8\n"
    "Convolution c 1 1 in a 0=8 1=3 4=1 6=576\n"
    "Split s 1 2 a a0 a1\n"
    "Throwing t 1 1 a0 b\n"
    "BinaryOp sum 2 1 a1 b out 0=0\n";

class Weights : public quoll::DataReader {
public:
    size_t read(void* buf, size_t size) const override {
        std::fill((char*)buf, (char*)buf + size, (char)0);  // f32, all 0
        return size;
    }
};

class ApplicationExceptions : public testing::TestWithParam<const char*> {
protected:
    void TearDown() override { g_where = ""; }
    int load(quoll::Net* net) {
        net->opt.num_threads = 2;
        net->register_custom_layer("Throwing", make_throwing);
        if (int status = net->load_param_mem(kParam)) return status;
        return net->load_model(Weights());
    }
    int run(const quoll::Net& net) {
        Mat in(6, 5, 8), out;
        in.fill(0.5f);
        quoll::Extractor ex = net.create_extractor();
        if (int status = ex.input("in", in)) return status;
        if (int status = ex.extract("out", out)) return status;
        return out.channel(0)[0] == 1.f ? 0 : -1000;
    }
};

TEST_P(ApplicationExceptions, GoThroughToTheApplicationAndTheNetWorksBehind) {
    const std::string where = GetParam();
    quoll::Net net;
    if (where == "plan" || where == "forward") {
        ASSERT_EQ(load(&net), 0);
        const int times = where == "plan" ? 1 : 3;  // a plan that was made is kept
        for (int round = 0; round < times; round++) {
            g_where = GetParam();
            try {
                run(net);
                ADD_FAILURE() << "nothing was thrown";
            } catch (const Thrown& thrown) {
                EXPECT_EQ(thrown.where, where);
            }
            g_where = "";
            EXPECT_EQ(run(net), 0);
        }
        return;
    }
    g_where = GetParam();
    try {
        load(&net);
        ADD_FAILURE() << "nothing was thrown";
    } catch (const Thrown& thrown) {
        EXPECT_EQ(thrown.where, where);
    }
    g_where = "";
    const quoll::LogLevel level = quoll::get_log_level();
    quoll::set_log_level(quoll::kLogOff);
    run(net);  // an error or an answer: the Net was half loaded
    quoll::set_log_level(level);
    net.clear();
    ASSERT_EQ(load(&net), 0);
    EXPECT_EQ(run(net), 0);
}
INSTANTIATE_TEST_SUITE_P(From, ApplicationExceptions,
                         testing::Values("constructor", "load_param", "load_model",
                                         "create_pipeline", "plan", "forward"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
