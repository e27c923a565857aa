// Tests that break the rules which validation checks, or set limits that a device does not have.
#ifndef QUOLL_TESTS_RUNTIME_BEYOND_LIMITS_H
#define QUOLL_TESTS_RUNTIME_BEYOND_LIMITS_H

#include <stdlib.h>

#include <string>

#include <gtest/gtest.h>

namespace quoll {

// Whether validation runs, so that the calling test has to be skipped. scripts/test.sh finds tests
// to run without it by their names, which must have "beyond_limits".
inline bool forbidden_by_validation() {
    const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    EXPECT_NE(std::string::npos, name.find("beyond_limits")) << name;
    return getenv("QUOLL_EXPECT_VALIDATION") != nullptr;
}

}  // namespace quoll

#endif
