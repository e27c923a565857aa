// In place of the library's cpu_detect.cpp, whose function has the other name here.
#include <gtest/gtest.h>

#include "emulation.h"
#include "runtime/cpu_detect.h"

namespace quoll {

CpuFeatures detect_processor_features();

CpuFeatures detect_cpu_features() {
    return CpuFeatures(detect_processor_features().bits | (uint64_t)1 << (int)kEmulation);
}

namespace {

class Processor : public testing::Environment {
    void SetUp() override { use_processor(); }
};
const testing::Environment* const kProcessor = testing::AddGlobalTestEnvironment(new Processor);

}  // namespace
}  // namespace quoll
