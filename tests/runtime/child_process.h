// For tests of what a process reads once, at its start: they run in fresh copies of this program.
#ifndef QUOLL_TESTS_CHILD_PROCESS_H
#define QUOLL_TESTS_CHILD_PROCESS_H

#include <climits>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

// False under an emulator that the kernel does not start by itself.
inline bool can_run_itself() {
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
    if (length <= 0) return false;
    const std::string command = "'" + std::string(path, size_t(length)) + "' --gtest_list_tests";
    return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

// Makes EXPECT_EXIT of this test run in a fresh process, or skips the test.
#define QUOLL_NEEDS_FRESH_PROCESS()                                     \
    if (!can_run_itself()) GTEST_SKIP() << "cannot start this program"; \
    GTEST_FLAG_SET(death_test_style, "threadsafe")

#endif  // QUOLL_TESTS_CHILD_PROCESS_H
