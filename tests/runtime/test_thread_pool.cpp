// Regions of tasks: each is done once, whatever the threads do meanwhile.
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "quoll/cpu.h"
#include "quoll/platform.h"
#include "runtime/thread_pool.h"

namespace {

using quoll::parallel_for;
using quoll::run_tasks;

// CPU time of this process in seconds.
double cpu_seconds() {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

TEST(ThreadPool, EveryTaskRunsOnce) {
    for (int threads : {1, 2, 3, 8, 2, 40, 1, 5}) {
        for (int tasks : {0, 1, 2, 3, 7, 64, 1000}) {
            std::vector<std::atomic<int>> seen((size_t)tasks);
            const int most = std::max(1, std::min(threads, tasks));
            run_tasks(tasks, threads, [&](int64_t i, int thread) {
                seen[(size_t)i]++;
                EXPECT_LT(thread, most);
            });
            for (const auto& count : seen) ASSERT_EQ(count, 1) << threads << " " << tasks;
            parallel_for(tasks, threads, [&](int64_t i) { seen[(size_t)i]++; });
            for (const auto& count : seen) ASSERT_EQ(count, 2) << threads << " " << tasks;
        }
    }
}

TEST(ThreadPool, ManyShortRegions) {
    std::vector<int> values(64, 0);
    for (int round = 1; round <= 20000; round++) {
        parallel_for(64, 4, [&](int64_t i) { values[(size_t)i]++; });
        if (round % 1000 == 0) {
            ASSERT_EQ(values, std::vector<int>(64, round));
        }
        if (round % 5000 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

TEST(ThreadPool, SeveralCallersAtATime) {
    std::vector<std::thread> callers;
    std::atomic<int> wrong(0);
    for (int t = 0; t < 4; t++)
        callers.emplace_back([&] {
            for (int round = 0; round < 500; round++) {
                std::atomic<int64_t> sum(0);
                run_tasks(32, 3, [&](int64_t i, int) { sum += i; });
                wrong += sum != 31 * 16;
            }
        });
    for (std::thread& t : callers) t.join();
    EXPECT_EQ(wrong, 0);
}

TEST(ThreadPool, RegionsWithinRegionsHaveOneThread) {
    std::atomic<int> done(0);
    run_tasks(4, 4, [&](int64_t, int) {
        const std::thread::id self = std::this_thread::get_id();
        run_tasks(8, 4, [&](int64_t, int thread) {
            EXPECT_EQ(thread, 0);
            EXPECT_EQ(std::this_thread::get_id(), self);
            done++;
        });
    });
    EXPECT_EQ(done, 32);
}

// Each task's regions have the threads of its team; every task and every part of it runs once,
// whatever the numbers of teams and threads before.
TEST(ThreadPool, TasksInTeams) {
    for (int round = 0; round < 20; round++)
        for (int teams : {1, 2, 3, 5})
            for (int each : {1, 2, 4})
                for (int tasks : {1, 2, 8}) {
                    std::vector<std::atomic<int>> seen((size_t)tasks * 16);
                    std::vector<std::atomic<int>> within((size_t)teams);
                    quoll::run_tasks_in_teams(tasks, teams, each, [&](int64_t i, int team) {
                        ASSERT_LT(team, std::min(teams, tasks));
                        EXPECT_EQ(within[(size_t)team]++, 0);  // one task of a team at a time
                        for (int part = 0; part < 2; part++)
                            run_tasks(8, 8, [&](int64_t k, int thread) {
                                seen[(size_t)(i * 16 + part * 8 + k)]++;
                                EXPECT_LT(thread, 8);
                            });
                        within[(size_t)team]--;
                    });
                    for (const auto& count : seen)
                        ASSERT_EQ(count, 1) << teams << " " << each << " " << tasks;
                }
    run_tasks(64, 4, [](int64_t, int) {});
    EXPECT_EQ(quoll::region_threads(), 0);
}

TEST(ThreadPool, WhatATeamsTaskThrowsReachesTheCaller) {
    for (int bad : {0, 5, -1}) {
        std::atomic<int> done(0);
        const auto region = [&] {
            quoll::run_tasks_in_teams(6, 2, 2, [&](int64_t i, int) {
                run_tasks(8, 2, [&](int64_t k, int) {
                    done++;
                    if (i == bad && k == 7) throw std::bad_alloc();
                });
            });
        };
        if (bad < 0) {
            region();
            EXPECT_EQ(done, 48);
        } else {
            EXPECT_THROW(region(), std::bad_alloc);
        }
    }
}

#if QUOLL_THREADS && !defined(QUOLL_OPENMP_TEAM)  // which gives a team one thread
TEST(ThreadPool, TheThreadsOfATeamShareItsRegions) {
    const bool dynamic = quoll::get_dynamic_threads();
    quoll::set_dynamic_threads(false);
    std::atomic<int> threads(0);
    quoll::run_tasks_in_teams(2, 2, 2, [&](int64_t, int) {
        run_tasks(2, 2, [&](int64_t, int) {  // all four threads have to come
            threads++;
            while (threads < 4) std::this_thread::yield();
        });
        // A region within a region of a team has one.
        run_tasks(2, 2, [&](int64_t, int outer) {
            const std::thread::id self = std::this_thread::get_id();
            quoll::run_tasks_in_teams(4, 2, 2, [&](int64_t, int) {
                EXPECT_EQ(std::this_thread::get_id(), self) << outer;
            });
        });
    });
    EXPECT_EQ(threads, 4);
    // Teams within a team.
    threads = 0;
    quoll::run_tasks_in_teams(2, 2, 4, [&](int64_t, int) {
        quoll::run_tasks_in_teams(2, 2, 2, [&](int64_t, int) {
            run_tasks(2, 2, [&](int64_t, int) {
                threads++;
                while (threads < 8) std::this_thread::yield();
            });
        });
    });
    EXPECT_EQ(threads, 8);
    quoll::set_dynamic_threads(dynamic);
}
#endif

TEST(ThreadPool, WhatATaskThrowsReachesTheCaller) {
    for (int at : {0, 31, 63}) {
        std::atomic<int> done(0);
        const auto region = [&](int64_t bad) {
            run_tasks(64, 4, [&, bad](int64_t i, int) {
                done++;
                if (i == bad) throw std::bad_alloc();
            });
        };
        EXPECT_THROW(region(at), std::bad_alloc);
        done = 0;
        region(-1);  // and nothing of it is left
        EXPECT_EQ(done, 64);
    }
}

TEST(ThreadPool, WorkersTakeOverTheModeForDenormals) {
    const int before = quoll::get_flush_denormals();
    for (int mode : {3, 0, 3}) {
        quoll::set_flush_denormals(mode);
        run_tasks(16, 2, [&](int64_t, int) { EXPECT_EQ(quoll::get_flush_denormals(), mode); });
    }
    quoll::set_flush_denormals(before);
}

#if QUOLL_THREADS && !defined(QUOLL_SANITIZED)
// The least of some attempts: a virtual machine counts time that others had its processors, and
// what an emulator translates, as the program's. A thread that spins does so each time.
double least_seconds(double enough, const std::function<double()>& attempt) {
    double least = attempt();
    for (int i = 0; i < 4 && least >= enough; i++) least = std::min(least, attempt());
    return least;
}

// Idle workers sleep: they would take a second of processor time each.
TEST(ThreadPool, IdleWorkersDoNotSpin) {
    const auto idle = [] {
        run_tasks(64, 4, [](int64_t, int) {});
        const double before = cpu_seconds();
        std::this_thread::sleep_for(std::chrono::seconds(1));
        return cpu_seconds() - before;
    };
    EXPECT_LT(least_seconds(0.05, idle), 0.05);
}

#ifndef QUOLL_OPENMP_TEAM  // OpenMP's regions wait for every thread; gcc's runtime does so for ever
                           // in a forked child
// Processor time of the calling thread in seconds.
double own_seconds() {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Both threads are in a region, the calling one with number 0: own() there, other() in the worker.
template <class Own, class Other>
void in_both(const Own& own, const Other& other) {
    std::atomic<int> within(0);
    run_tasks(2, 2, [&](int64_t, int thread) {
        within++;
        while (within < 2) std::this_thread::yield();
        thread == 0 ? own() : other();
    });
}

std::atomic<bool> g_held, g_let_go;
void hold_thread(int) {
    g_held = true;
    while (!g_let_go) std::this_thread::yield();
}

// First inferences and busy processors: what a worker that does not get a processor has not begun
// is done by the others, who do not wait for it.
TEST(ThreadPool, WorkersThatAreKeptFromAProcessorAreNotWaitedFor) {
    const bool dynamic = quoll::get_dynamic_threads();
    quoll::set_dynamic_threads(false);
    pthread_t worker = {};
    in_both([] {}, [&] { worker = pthread_self(); });
    struct sigaction hold = {}, before = {};
    hold.sa_handler = hold_thread;
    ASSERT_EQ(sigaction(SIGUSR1, &hold, &before), 0);
    g_held = g_let_go = false;
    ASSERT_EQ(pthread_kill(worker, SIGUSR1), 0);
    while (!g_held) std::this_thread::yield();
    for (int region = 0; region < 100; region++) {
        std::atomic<int> done(0);
        run_tasks(64, 2, [&](int64_t, int thread) {
            EXPECT_EQ(thread, 0);
            done++;
        });
        EXPECT_EQ(done, 64);
    }
    g_let_go = true;
    sigaction(SIGUSR1, &before, nullptr);
    in_both([] {}, [] {});  // it takes part again
    quoll::set_dynamic_threads(dynamic);
}

// Who waits for a worker in the middle of a task sleeps: that leaves the worker its processor.
TEST(ThreadPool, WaitingForAWorkerTakesNoProcessorTime) {
    const bool dynamic = quoll::get_dynamic_threads();
    quoll::set_dynamic_threads(false);
    const auto wait = [] {
        double before = 0;
        in_both([&] { before = own_seconds(); },
                [] { std::this_thread::sleep_for(std::chrono::milliseconds(300)); });
        return own_seconds() - before;
    };
    EXPECT_LT(least_seconds(0.03, wait), 0.03);
    quoll::set_dynamic_threads(dynamic);
}

// After a worker was late, regions do without it for some milliseconds. A process that gets no
// processor for longer than that does not see it, nor does a worker that begins late hold anybody
// up: one time in many is enough, and the caller's part is over once the worker has begun.
TEST(ThreadPool, LateWorkersRest) {
    ASSERT_TRUE(quoll::get_dynamic_threads());
    bool rested = false;
    for (int attempt = 0; attempt < 50 && !rested; attempt++) {
        std::atomic<bool> begun(false);
        run_tasks(2, 2, [&](int64_t, int) {
            if (quoll::region_thread() > 0) {
                begun = true;
                std::this_thread::sleep_for(std::chrono::milliseconds(20));
                return;
            }
            const auto latest = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
            while (!begun && std::chrono::steady_clock::now() < latest) std::this_thread::yield();
        });
        run_tasks(2, 2, [&](int64_t, int) {
            if (quoll::region_threads() == 0) rested = true;
        });
    }
    EXPECT_TRUE(rested);
}

// Not so in qemu's user mode, once the parent has had threads.
bool forked_processes_start_threads() {
    const pid_t child = fork();
    if (child == 0) {
        std::thread([] {}).join();
        _exit(0);
    }
    int status = 1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

// The child has no workers; it makes its own.
TEST(ThreadPool, GoesOnAfterAFork) {
    run_tasks(64, 3, [](int64_t, int) {});
    if (!forked_processes_start_threads()) GTEST_SKIP() << "forked processes start no threads here";
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        std::atomic<int> begun(0);
        alarm(20);
        quoll::set_dynamic_threads(false);
        run_tasks(2, 2, [&](int64_t, int) {  // both threads have to come
            begun++;
            while (begun < 2) std::this_thread::yield();
        });
        _exit(7);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
}
#endif
#endif

}  // namespace
