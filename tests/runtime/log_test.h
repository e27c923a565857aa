// Tests that look at what the library says.
#ifndef QUOLL_TESTS_RUNTIME_LOG_TEST_H
#define QUOLL_TESTS_RUNTIME_LOG_TEST_H

#include <string>

#include <gtest/gtest.h>

#include "quoll/log.h"

namespace log_test {

inline std::string g_log;  // a line a message
inline void collect(quoll::LogLevel, const char* message, void*) {
    g_log += std::string(message) + "\n";
}

class LogTest : public testing::Test {
protected:
    void SetUp() override {
        g_log.clear();
        quoll::set_log_sink(collect, nullptr);
    }
    void TearDown() override { quoll::set_log_sink(nullptr, nullptr); }
    static bool logged(const std::string& text) { return g_log.find(text) != std::string::npos; }
};

}  // namespace log_test

#endif
