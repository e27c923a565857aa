// Many threads with one Net, whose first runs race, inputs of several sizes, while other Nets are
// loaded and go. Every answer is compared. QUOLL_STRESS_SECONDS says how long, 3 at first.
#include <stdlib.h>
#include <string.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "quoll/net.h"
#include "random_weights.h"

namespace {

using quoll::Mat;

const int kThreads = 8;
const int kSizes[] = {32, 48, 64};
const char* const kGraphs[] = {"squeezenet", "mobilenet_v3", "shufflenet_v2"};

int load(const char* graph, int threads, quoll::Net* net) {
    net->opt.num_threads = threads;
    const std::string param = std::string("benchmark/models/") + graph + ".param";
    if (int status = net->load_param(param.c_str())) return status;
    return net->load_model(quoll::RandomWeights());
}

Mat image(int size) {
    Mat m(size, size, 3);
    for (int q = 0; q < 3; q++)
        for (int i = 0; i < size * size; i++)
            m.row<float>(0)[q * m.cstep + i] = (float)((i * 37 + q * 11) % 255) / 255.f;
    return m;
}

int run(const quoll::Net& net, int size, int threads, Mat* out) {
    quoll::Extractor ex = net.create_extractor();
    ex.set_num_threads(threads);
    if (int status = ex.input(net.input_names()[0], image(size))) return status;
    return ex.extract(net.output_names()[0], *out);
}

bool same(const Mat& a, const Mat& b) {
    return a.dims == 1 && b.dims == 1 && a.w == b.w && memcmp(a.data, b.data, (size_t)a.w * 4) == 0;
}

class Stress : public testing::Test {
protected:
    // The answers of a Net that did nothing else, with one thread.
    void SetUp() override {
        for (const char* graph : kGraphs) {
            expected_.emplace_back();
            for (int size : kSizes) {
                quoll::Net net;
                ASSERT_EQ(load(graph, 1, &net), 0) << "run from the source tree";
                expected_.back().emplace_back();
                ASSERT_EQ(run(net, size, 1, &expected_.back().back()), 0);
            }
        }
    }
    // Runs of one thread with its own order of sizes and numbers of threads.
    void use(const quoll::Net& net, int graph, int self, int runs) {
        for (int i = 0; i < runs; i++) {
            const int size = (self + i * (1 + self % 2)) % 3;
            Mat out;
            const int status = run(net, kSizes[size], 1 + (self + i) % 3, &out);
            failed_ += status != 0;
            wrong_ += status == 0 && !same(out, expected_[(size_t)graph][(size_t)size]);
            runs_++;
        }
    }
    void come_and_go(const std::atomic<bool>& over) {
        for (int i = 0; !over; i++) {
            const int graph = i % 3;
            quoll::Net net;
            if (load(kGraphs[graph], 1 + i % 2, &net) != 0)
                failed_++;
            else
                use(net, graph, i, 1);
        }
    }
    std::vector<std::vector<Mat>> expected_;
    std::atomic<int> failed_{0}, wrong_{0}, runs_{0};
};

TEST_F(Stress, OneNetInManyThreads) {
    const char* seconds = getenv("QUOLL_STRESS_SECONDS");
    const auto end = std::chrono::steady_clock::now() +
                     std::chrono::milliseconds(seconds ? (int)(1000 * atof(seconds)) : 3000);
    std::atomic<bool> over(false);
    std::thread others([&] { come_and_go(over); });
    for (int round = 0; round == 0 || std::chrono::steady_clock::now() < end; round++) {
        const int graph = round % 3;
        quoll::Net net;
        ASSERT_EQ(load(kGraphs[graph], 2, &net), 0);
        std::atomic<int> ready(0);
        std::vector<std::thread> threads;
        for (int t = 0; t < kThreads; t++)
            threads.emplace_back([&, t] {
                ready++;
                while (ready < kThreads) std::this_thread::yield();
                use(net, graph, t, 3);
            });
        for (std::thread& t : threads) t.join();
    }
    over = true;
    others.join();
    EXPECT_EQ(failed_, 0);
    EXPECT_EQ(wrong_, 0) << "of " << runs_;
    EXPECT_GE(runs_, kThreads * 3);
}

}  // namespace
