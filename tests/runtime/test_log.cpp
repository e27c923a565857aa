#include "quoll/log.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/syslog.h>  // its LOG_* macros must not clash with log.h

#include "child_process.h"

namespace {

using Lines = std::vector<std::pair<quoll::LogLevel, std::string>>;

void collect(quoll::LogLevel level, const char* message, void* user) {
    static_cast<Lines*>(user)->emplace_back(level, message);
}

class Log : public testing::Test {
protected:
    void SetUp() override {
        level_ = quoll::get_log_level();
        quoll::set_log_level(quoll::kLogWarn);
        quoll::set_log_sink(collect, &lines);
    }
    void TearDown() override {
        quoll::set_log_sink(nullptr, nullptr);
        quoll::set_log_level(level_);
    }
    Lines lines;

private:
    quoll::LogLevel level_;
};

void say_one_of_each() {
    QUOLL_LOGD("d %d", 1);
    QUOLL_LOGI("i %s", "two");
    QUOLL_LOGW("w %.1f", 3.0);
    QUOLL_LOGE("e");
}

TEST_F(Log, LevelIsAThreshold) {
    const char* const expected[] = {"d 1", "i two", "w 3.0", "e"};
    for (int level = quoll::kLogDebug; level <= quoll::kLogOff; level++) {
        lines.clear();
        quoll::set_log_level(quoll::LogLevel(level));
        EXPECT_EQ(quoll::get_log_level(), level);
        say_one_of_each();
        ASSERT_EQ(lines.size(), size_t(quoll::kLogOff - level));
        for (size_t i = 0; i < lines.size(); i++) {
            EXPECT_EQ(lines[i].first, level + int(i));
            EXPECT_EQ(lines[i].second, expected[size_t(level) + i]);
        }
    }
}

TEST_F(Log, LevelOutsideTheRangeIsClamped) {
    quoll::set_log_level(static_cast<quoll::LogLevel>(7));
    EXPECT_EQ(quoll::get_log_level(), quoll::kLogOff);
    EXPECT_STREQ(quoll::log_level_name(quoll::get_log_level()), "off");
    EXPECT_FALSE(quoll::log_enabled(quoll::kLogOff));
}

TEST_F(Log, ArgumentsOfASilentMessageAreNotEvaluated) {
    int evaluated = 0;
    quoll::set_log_level(quoll::kLogError);
    QUOLL_LOGW("%d", ++evaluated);
    EXPECT_EQ(evaluated, 0);
    QUOLL_LOGE("%d", ++evaluated);
    EXPECT_EQ(evaluated, 1);
}

// Lengths around the internal stack buffer (1024), long ones, and one past the limit of 1 MiB.
TEST_F(Log, MessagesOfAnyLength) {
    for (size_t n : {0, 1, 1022, 1023, 1024, 1025, 5000, 300000}) {
        lines.clear();
        std::string text;
        for (size_t i = 0; i < n; i++) text += char('a' + i % 26);
        QUOLL_LOGE("%s", text.c_str());
        ASSERT_EQ(lines.size(), 1u);
        EXPECT_EQ(lines[0].second, text);
    }
    lines.clear();
    QUOLL_LOGE("%s", std::string(3 << 20, 'x').c_str());
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].second, std::string((1 << 20) - 1, 'x'));
}

TEST_F(Log, ErrnoIsPreserved) {
    quoll::set_log_sink([](quoll::LogLevel, const char*, void*) { errno = EINVAL; }, nullptr);
    errno = ERANGE;
    QUOLL_LOGE("%s", std::string(5000, 'x').c_str());
    EXPECT_EQ(errno, ERANGE);
}

// Notes whether two calls overlap, and gives them time to.
struct Overlap {
    std::atomic<int> inside{0};
    bool seen = false;
    Lines lines;
};

void collect_and_watch(quoll::LogLevel level, const char* message, void* user) {
    Overlap* overlap = static_cast<Overlap*>(user);
    if (overlap->inside.fetch_add(1) != 0) overlap->seen = true;
    std::this_thread::yield();
    if (!overlap->seen) overlap->lines.emplace_back(level, message);
    overlap->inside.fetch_sub(1);
}

TEST_F(Log, ThreadsDoNotLoseOrMixMessages) {
    constexpr int kThreads = 4, kMessages = 500;
    Overlap overlap;
    quoll::set_log_sink(collect_and_watch, &overlap);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; t++)
        threads.emplace_back([t] {
            for (int i = 0; i < kMessages; i++) QUOLL_LOGE("thread %d message %d", t, i);
        });
    for (auto& thread : threads) thread.join();
    quoll::set_log_sink(nullptr, nullptr);
    ASSERT_FALSE(overlap.seen);
    ASSERT_EQ(overlap.lines.size(), size_t(kThreads * kMessages));
    int next[kThreads] = {};
    for (const auto& line : overlap.lines) {
        int t = -1, i = -1;
        ASSERT_EQ(std::sscanf(line.second.c_str(), "thread %d message %d", &t, &i), 2);
        ASSERT_TRUE(t >= 0 && t < kThreads);
        EXPECT_EQ(i, next[t]++);
    }
}

TEST_F(Log, ASinkMayLogAndReplaceItself) {
    auto sink = [](quoll::LogLevel, const char* message, void* user) {
        QUOLL_LOGE("nested %s", message);
        quoll::set_log_sink(collect, user);
    };
    quoll::set_log_sink(sink, &lines);
    testing::internal::CaptureStderr();
    QUOLL_LOGE("first");
    QUOLL_LOGE("second");
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "nested first\n");
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].second, "second");
}

TEST_F(Log, DefaultSinkWritesTheLineAloneToStderr) {
    quoll::set_log_sink(nullptr, nullptr);
    testing::internal::CaptureStderr();
    QUOLL_LOGE("[Convolution %s] weight_data: need %d values, got %d", "conv1", 1728, 1000);
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "[Convolution conv1] weight_data: need 1728 values, got 1000\n");
    EXPECT_TRUE(lines.empty());
}

TEST_F(Log, CompileTimeFloorRemovesMessages) {
#undef QUOLL_LOG_FLOOR
#define QUOLL_LOG_FLOOR 3
    quoll::set_log_level(quoll::kLogDebug);
    say_one_of_each();  // compiled under the default floor
    EXPECT_EQ(lines.size(), 4u);
    lines.clear();
    int evaluated = 0;
    QUOLL_LOGD("%d", ++evaluated);
    QUOLL_LOGW("%d", ++evaluated);
    EXPECT_EQ(evaluated, 0);
    QUOLL_LOGE("said");
    ASSERT_EQ(lines.size(), 1u);
#undef QUOLL_LOG_FLOOR
#define QUOLL_LOG_FLOOR 0
}

// The initial level is read once a process, so each case runs in a child made by a death test.
void exit_with_initial_level(const char* value) {
    if (value)
        setenv("QUOLL_LOG", value, 1);
    else
        unsetenv("QUOLL_LOG");
    std::exit(quoll::get_log_level());
}

TEST(LogEnvironment, InitialLevel) {
    QUOLL_NEEDS_FRESH_PROCESS();
    const std::pair<const char*, int> cases[] = {
        {nullptr, quoll::kLogWarn}, {"", quoll::kLogWarn},     {"debug", quoll::kLogDebug},
        {"INFO", quoll::kLogInfo},  {"warn", quoll::kLogWarn}, {"Error", quoll::kLogError},
        {"off", quoll::kLogOff},
    };
    for (const auto& c : cases)
        EXPECT_EXIT(exit_with_initial_level(c.first), testing::ExitedWithCode(c.second), "^$");
    for (const char* bad : {"loud", "debugger", "deb"})
        EXPECT_EXIT(exit_with_initial_level(bad), testing::ExitedWithCode(quoll::kLogWarn),
                    std::string("expected debug, info, warn, error or off, got '") + bad + "'");
}

}  // namespace
