#include "quoll/cpu.h"

#include <atomic>
#include <cfloat>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include "child_process.h"
#include "quoll/platform.h"
#include "quoll/log.h"
#include "runtime/thread_pool.h"

namespace {

// Catches the log.
class Cpu : public testing::Test {
protected:
    void SetUp() override {
        level_ = quoll::get_log_level();
        quoll::set_log_level(quoll::kLogWarn);
        quoll::set_log_sink(
            [](quoll::LogLevel, const char* message, void* user) {
                *static_cast<std::string*>(user) += std::string(message) + "\n";
            },
            &log);
    }
    void TearDown() override {
        quoll::set_log_sink(nullptr, nullptr);
        quoll::set_log_level(level_);
    }
    // Whether the log says `text`; clears it.
    testing::AssertionResult said(const std::string& text) {
        const std::string messages = std::move(log);
        log.clear();
        if (messages.find(text) != std::string::npos) return testing::AssertionSuccess();
        return testing::AssertionFailure() << "'" << text << "' is not in '" << messages << "'";
    }
    std::string log;

private:
    quoll::LogLevel level_;
};

// What the kernel says of the calling thread.
quoll::CpuSet kernel_affinity() {
    cpu_set_t mask;
    quoll::CpuSet set;
    if (sched_getaffinity(0, sizeof(mask), &mask) != 0) return set;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &mask)) set.enable(cpu);
    return set;
}

TEST_F(Cpu, SetsOfProcessors) {
    quoll::CpuSet set;
    EXPECT_EQ(set.num_enabled(), 0);
    const std::set<int> members = {0, 1, 63, 64, 500, quoll::kMaxCpus - 1};
    for (int cpu : members) EXPECT_EQ(set.enable(cpu), 0);
    EXPECT_EQ(set.enable(64), 0);  // twice is once
    EXPECT_EQ(set.num_enabled(), int(members.size()));
    for (int cpu = -2; cpu < quoll::kMaxCpus + 2; cpu++)
        EXPECT_EQ(set.is_enabled(cpu), members.count(cpu) != 0) << cpu;
    quoll::CpuSet copy = set;
    EXPECT_TRUE(copy == set);
    EXPECT_EQ(copy.disable(64), 0);
    EXPECT_FALSE(copy == set);
    EXPECT_FALSE(copy.is_enabled(64));
    EXPECT_TRUE(copy.is_enabled(63));
    EXPECT_TRUE(set.is_enabled(64));
    copy.disable_all();
    EXPECT_EQ(copy.num_enabled(), 0);
    EXPECT_EQ(log, "");
    for (int bad : {-1, int(quoll::kMaxCpus), INT_MIN, INT_MAX}) {
        EXPECT_LT(set.enable(bad), 0);
        EXPECT_TRUE(said("enable: expected a processor 0..1023, got " + std::to_string(bad)));
        EXPECT_LT(set.disable(bad), 0);
        EXPECT_TRUE(said("disable: expected a processor 0..1023, got " + std::to_string(bad)));
    }
    EXPECT_EQ(set.num_enabled(), int(members.size()));
}

TEST_F(Cpu, CountsAreConsistent) {
    const quoll::CpuSet& all = quoll::get_cpu_thread_affinity_mask(0);
    if (!std::getenv("OMP_PROC_BIND")) {  // binds this thread to one of its places
        EXPECT_TRUE(all == kernel_affinity());
    }
    EXPECT_GE(quoll::get_cpu_count(), 1);
    EXPECT_LE(quoll::get_cpu_count(), all.num_enabled());  // less under a quota
    EXPECT_GE(quoll::get_big_cpu_count(), 1);
    EXPECT_GE(quoll::get_little_cpu_count(), 0);
    EXPECT_LE(quoll::get_big_cpu_count(), quoll::get_cpu_count());
    EXPECT_GE(quoll::get_physical_cpu_count(), 1);
    EXPECT_LE(quoll::get_physical_cpu_count(), quoll::get_cpu_count());
    EXPECT_GE(quoll::get_physical_big_cpu_count(), 1);
    EXPECT_LE(quoll::get_physical_big_cpu_count(), quoll::get_big_cpu_count());
    EXPECT_LE(quoll::get_physical_little_cpu_count(), quoll::get_little_cpu_count());
    const quoll::CpuSet& big = quoll::get_cpu_thread_affinity_mask(2);
    EXPECT_GE(big.num_enabled(), quoll::get_big_cpu_count());
    if (quoll::get_little_cpu_count() == 0) {
        EXPECT_TRUE(big == all);
        EXPECT_TRUE(quoll::get_cpu_thread_affinity_mask(1) == all);
    }
    EXPECT_EQ(log, "");
    EXPECT_TRUE(quoll::get_cpu_thread_affinity_mask(3) == all);
    EXPECT_TRUE(said("expected 0, 1 or 2, got 3"));
}

TEST_F(Cpu, CacheSizesArePlausible) {
    EXPECT_GE(quoll::get_cpu_level1_cache_size(), 4 << 10);
    EXPECT_LE(quoll::get_cpu_level1_cache_size(), 1 << 20);
    EXPECT_GE(quoll::get_cpu_level2_cache_size(), 64 << 10);
    EXPECT_GE(quoll::get_cpu_level3_cache_size(), 0);
    const long l1 = sysconf(_SC_LEVEL1_DCACHE_SIZE), l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
    // The C library asks the processor itself on x86.
    if (l1 > 0) {
        EXPECT_EQ(quoll::get_cpu_level1_cache_size(), l1);
    }
    if (l2 > 0) {
        EXPECT_EQ(quoll::get_cpu_level2_cache_size(), l2);
    }
}

// Runs `body` in a thread of its own, whose affinity, workers and settings go with it.
template <typename Body>
void in_a_thread(Body body) {
    std::thread(body).join();
}

// A region in which each of `threads` threads takes part: a task ends when all have begun.
void all_together(int threads, const std::function<void(int thread)>& body) {
    std::atomic<int> begun(0);
    const bool dynamic = quoll::get_dynamic_threads();
    quoll::set_dynamic_threads(false);  // none is left out
    quoll::run_tasks(threads, threads, [&](int64_t, int thread) {
        body(thread);
        begun++;
        while (begun < threads) std::this_thread::yield();
    });
    quoll::set_dynamic_threads(dynamic);
}

// The affinity of each worker of the next region of as many threads as may be.
std::vector<quoll::CpuSet> worker_affinities() {
    const int threads = quoll::get_omp_num_threads();
    std::vector<quoll::CpuSet> sets((size_t)threads);
    all_together(threads, [&](int thread) { sets[(size_t)thread] = kernel_affinity(); });
    return sets;
}

TEST_F(Cpu, AffinityBindsTheThreadAndItsWorkers) {
    in_a_thread([] {
        const quoll::CpuSet all = quoll::get_cpu_thread_affinity_mask(0);
        for (int cpu = 0; cpu < quoll::kMaxCpus; cpu++) {
            if (!all.is_enabled(cpu)) continue;
            quoll::CpuSet one;
            one.enable(cpu);
            ASSERT_EQ(quoll::set_cpu_thread_affinity(one), 0);
            EXPECT_TRUE(kernel_affinity() == one);
            EXPECT_EQ(sched_getcpu(), cpu);
            EXPECT_EQ(quoll::get_omp_num_threads(), 1);
            ASSERT_EQ(quoll::set_cpu_thread_affinity(all), 0);
            EXPECT_TRUE(kernel_affinity() == all);
            const std::vector<quoll::CpuSet> workers = worker_affinities();
#if QUOLL_THREADS
            EXPECT_EQ(int(workers.size()), quoll::get_cpu_count());
#endif
            for (const quoll::CpuSet& worker : workers) EXPECT_TRUE(worker == all);
        }
    });
    EXPECT_EQ(log, "");
}

#if QUOLL_THREADS
// Workers that exist already are bound again, not only new ones.
TEST_F(Cpu, AffinityRebindsWorkers) {
    const quoll::CpuSet all = quoll::get_cpu_thread_affinity_mask(0);
    if (quoll::get_cpu_count() < 2) GTEST_SKIP() << "one processor";
    in_a_thread([&] {
        quoll::CpuSet two, one;
        for (int cpu = quoll::kMaxCpus - 1; cpu >= 0 && two.num_enabled() < 2; cpu--)
            if (all.is_enabled(cpu)) two.enable(cpu);
        for (int cpu = 0; cpu < quoll::kMaxCpus && one.num_enabled() < 1; cpu++)
            if (two.is_enabled(cpu)) one.enable(cpu);
        cpu_set_t mask;
        CPU_ZERO(&mask);
        for (int cpu = 0; cpu < quoll::kMaxCpus; cpu++)
            if (one.is_enabled(cpu)) CPU_SET(cpu, &mask);
        quoll::set_omp_num_threads(2);
        all_together(2, [&](int) { sched_setaffinity(0, sizeof(mask), &mask); });
        std::vector<quoll::CpuSet> workers = worker_affinities();
        ASSERT_EQ(workers.size(), 2u);
        for (const quoll::CpuSet& worker : workers) ASSERT_TRUE(worker == one);
        ASSERT_EQ(quoll::set_cpu_thread_affinity(two), 0);
        workers = worker_affinities();
        EXPECT_EQ(workers.size(), 2u);
        for (const quoll::CpuSet& worker : workers) EXPECT_TRUE(worker == two);
        // Workers that start later inherit the binding.
        quoll::set_omp_num_threads(4);
        for (const quoll::CpuSet& worker : worker_affinities()) EXPECT_TRUE(worker == two);
    });
}
#endif

TEST_F(Cpu, AffinityErrorsChangeNothing) {
    in_a_thread([this] {
        const quoll::CpuSet before = kernel_affinity();
        const int threads = quoll::get_omp_num_threads();
        quoll::CpuSet set;
        EXPECT_LT(quoll::set_cpu_thread_affinity(set), 0);
        EXPECT_TRUE(said("expected at least one processor, got none"));
        set.enable(quoll::kMaxCpus - 1);
        if (before.is_enabled(quoll::kMaxCpus - 1)) return;
        EXPECT_LT(quoll::set_cpu_thread_affinity(set), 0);
        EXPECT_TRUE(said("the system refuses a set of 1 processors"));
        EXPECT_TRUE(kernel_affinity() == before);
        EXPECT_EQ(quoll::get_omp_num_threads(), threads);
    });
}

TEST_F(Cpu, Powersave) {
    EXPECT_EQ(quoll::get_cpu_powersave(), 0);
    in_a_thread([this] {
        for (int mode : {2, 1, 0}) {
            EXPECT_EQ(quoll::set_cpu_powersave(mode), 0);
            EXPECT_EQ(quoll::get_cpu_powersave(), mode);
            EXPECT_TRUE(kernel_affinity() == quoll::get_cpu_thread_affinity_mask(mode));
        }
        EXPECT_EQ(log, "");
        for (int bad : {-1, 3}) {
            EXPECT_LT(quoll::set_cpu_powersave(bad), 0);
            EXPECT_TRUE(said("0 (all), 1 (little) or 2 (big), got " + std::to_string(bad)));
            EXPECT_EQ(quoll::get_cpu_powersave(), 0);
        }
    });
}

// Binds this process to its last processor before the library looks; exits with the count.
void exit_with_count_of_one_processor() {
    const quoll::CpuSet all = kernel_affinity();
    cpu_set_t mask;
    CPU_ZERO(&mask);
    for (int cpu = quoll::kMaxCpus - 1; cpu >= 0 && CPU_COUNT(&mask) == 0; cpu--)
        if (all.is_enabled(cpu)) CPU_SET(cpu, &mask);
    if (sched_setaffinity(0, sizeof(mask), &mask) != 0) std::exit(100);
    std::exit(quoll::get_cpu_count());
}

TEST(CpuProcess, CountsOnlyWhereItMayRun) {
    QUOLL_NEEDS_FRESH_PROCESS();
    EXPECT_EXIT(exit_with_count_of_one_processor(), testing::ExitedWithCode(1), "^$");
}

// Binds through the library before anything else; exits with 0 if it still knows all processors.
void exit_with_loss_by_binding() {
    const quoll::CpuSet all = kernel_affinity();
    quoll::CpuSet one;
    for (int cpu = 0; cpu < quoll::kMaxCpus && one.num_enabled() < 1; cpu++)
        if (all.is_enabled(cpu)) one.enable(cpu);
    if (quoll::set_cpu_thread_affinity(one) != 0) std::exit(100);
    std::exit(!(quoll::get_cpu_thread_affinity_mask(0) == all));
}

TEST(CpuProcess, BindingDoesNotLoseProcessors) {
    QUOLL_NEEDS_FRESH_PROCESS();
    EXPECT_EXIT(exit_with_loss_by_binding(), testing::ExitedWithCode(0), "^$");
}

TEST_F(Cpu, Threads) {
    in_a_thread([this] {
#if QUOLL_THREADS
        EXPECT_EQ(quoll::get_omp_num_threads(), quoll::get_cpu_count());
        for (int threads : {3, 1, 2}) {
            EXPECT_EQ(quoll::set_omp_num_threads(threads), 0);
            EXPECT_EQ(quoll::get_omp_num_threads(), threads);
            std::vector<int> seen(size_t(threads), 0), team(size_t(threads), 0);
            all_together(threads, [&](int thread) {
                EXPECT_EQ(quoll::get_omp_thread_num(), thread);
                seen[(size_t)thread]++;
                if (threads > 1) team[(size_t)thread] = quoll::get_omp_num_threads();
            });
            EXPECT_EQ(seen, std::vector<int>(size_t(threads), 1));
            EXPECT_EQ(team, std::vector<int>(size_t(threads), threads > 1 ? threads : 0));
            // No layer has more.
            quoll::run_tasks(100, 8, [&](int64_t, int thread) { EXPECT_LT(thread, threads); });
        }
        EXPECT_EQ(quoll::get_omp_dynamic(), 1);
        for (int dynamic : {0, 1}) {
            quoll::set_omp_dynamic(dynamic);
            EXPECT_EQ(quoll::get_omp_dynamic(), dynamic);
        }
#else
        EXPECT_EQ(quoll::set_omp_num_threads(3), 0);
        EXPECT_EQ(quoll::get_omp_num_threads(), 1);
#endif
        EXPECT_EQ(quoll::get_omp_thread_num(), 0);
        const int before = quoll::get_omp_num_threads();
        for (int bad : {0, -1}) {
            EXPECT_LT(quoll::set_omp_num_threads(bad), 0);
            EXPECT_TRUE(said("expected at least 1, got " + std::to_string(bad)));
        }
        EXPECT_EQ(quoll::get_omp_num_threads(), before);
    });
}

TEST_F(Cpu, Blocktime) {
    for (int time_ms : {20, 0, 35}) {
        EXPECT_EQ(quoll::set_kmp_blocktime(time_ms), 0);
        EXPECT_EQ(quoll::get_kmp_blocktime(), time_ms);
    }
    EXPECT_LT(quoll::set_kmp_blocktime(-1), 0);
    EXPECT_TRUE(said("0 or more, got -1"));
    EXPECT_EQ(quoll::get_kmp_blocktime(), 35);
}

// Seen by arithmetic, not only by reading the mode back.
bool denormal_operands_are_zero() {
    volatile float denormal = FLT_MIN / 4;
    volatile float large = 1e30f;
    return denormal * large == 0.f;
}
bool denormal_results_are_zero() {
    volatile float smallest = FLT_MIN;
    volatile float quarter = 0.25f;
    volatile float product = smallest * quarter;
    uint32_t bits;  // looked at as an integer: comparing would take it for an operand
    const float value = product;
    std::memcpy(&bits, &value, sizeof(bits));
    return bits == 0;
}

TEST_F(Cpu, FlushDenormals) {
    const int before = quoll::get_flush_denormals();
    for (int mode : {1, 2, 3, 0}) {
        ASSERT_EQ(quoll::set_flush_denormals(mode), 0);
        const bool operands = denormal_operands_are_zero(), results = denormal_results_are_zero();
        const int got = quoll::get_flush_denormals();
        quoll::set_flush_denormals(0);
#if defined(__aarch64__)
        const int expected = mode ? 3 : 0;
#else
        const int expected = mode;
#endif
        EXPECT_EQ(got, expected);
        EXPECT_EQ(operands, (expected & 1) != 0) << mode;
        EXPECT_EQ(results, (expected & 2) != 0) << mode;
    }
    for (int bad : {-1, 4}) {
        EXPECT_LT(quoll::set_flush_denormals(bad), 0);
        EXPECT_TRUE(said("expected 0..3, got " + std::to_string(bad)));
        EXPECT_EQ(quoll::get_flush_denormals(), 0);
    }
    quoll::set_flush_denormals(before);
}

}  // namespace
