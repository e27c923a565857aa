// The bundled digit model over a thousand runs: memory does not grow, answers do not change, and
// several threads agree with one.
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "quoll/net.h"
#include "resident.h"

namespace {

using quoll::Mat;

class DigitsTest : public testing::Test {
protected:
    void SetUp() override {
        ASSERT_EQ(net_.load_param("models/digits/digits.param"), 0) << "run from the source tree";
        ASSERT_EQ(net_.load_model("models/digits/digits.bin"), 0);
        image_.create(8, 8, 1);
        for (int i = 0; i < 64; i++) image_[i] = (float)((i * 37) % 17) / 16.f;
    }

    int classify(Mat* prob, bool light = true, quoll::Allocator* allocator = nullptr) const {
        quoll::Extractor ex = net_.create_extractor();
        ex.set_light_mode(light);
        ex.set_num_threads(1);
        ex.set_blob_allocator(allocator);
        ex.set_workspace_allocator(allocator);
        const int status = ex.input("data", image_);
        return status ? status : ex.extract("prob", *prob);
    }

    quoll::Net net_;
    Mat image_;
};

TEST_F(DigitsTest, MemoryDoesNotGrow) {
    quoll::PoolAllocator pool;  // before the Mats that lie in it
    Mat first, prob;
    for (quoll::Allocator* allocator : {(quoll::Allocator*)nullptr, (quoll::Allocator*)&pool}) {
        for (bool light : {true, false}) {
            for (int i = 0; i < 50; i++) ASSERT_EQ(classify(&first, light, allocator), 0);
            const size_t before = resident_bytes();
            for (int i = 0; i < 1000; i++) {
                ASSERT_EQ(classify(&prob, light, allocator), 0);
                ASSERT_EQ(memcmp(prob.data, first.data, 10 * sizeof(float)), 0) << "run " << i;
            }
            // A leak of one blob a run would be a megabyte or more. AddressSanitizer keeps freed
            // blocks for a while.
#ifndef QUOLL_SANITIZED
            EXPECT_LE(resident_bytes(), before + (256 << 10));
#endif
        }
    }
}

TEST_F(DigitsTest, ThreadsAgree) {
    Mat expected;
    ASSERT_EQ(classify(&expected), 0);
    std::vector<std::thread> threads;
    std::vector<int> wrong(4, 0);
    for (int t = 0; t < 4; t++)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 100; i++) {
                Mat prob;
                const int status = classify(&prob);
                wrong[t] +=
                    status != 0 || memcmp(prob.data, expected.data, 10 * sizeof(float)) != 0;
            }
        });
    for (std::thread& t : threads) t.join();
    for (int count : wrong) EXPECT_EQ(count, 0);
}

}  // namespace
