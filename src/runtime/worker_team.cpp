// Workers of the library's own.
#include "runtime/worker_team.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <exception>
#include <memory>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "quoll/cpu.h"
#include "runtime/exceptions.h"

#if defined(__linux__)
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#else
#include <condition_variable>
#include <mutex>
#endif

namespace quoll {
namespace {

typedef std::chrono::steady_clock Clock;

// Longer than the gaps between most layers, and shorter than the time that a sleeping thread takes
// to wake up.
constexpr auto kSpin = std::chrono::microseconds(100);
// A thread that keeps the others waiting for this long, and for longer than they had worked, was
// not running; unless the system says that it was, and not for many times as long: then its
// processor is slow. (Tile units are throttled on some cores to a third of their speed.)
constexpr auto kLate = std::chrono::microseconds(300);
constexpr int kSlowest = 4;
constexpr auto kFirstRest = std::chrono::milliseconds(5),
               kLongestRest = std::chrono::milliseconds(160);

std::atomic<int> g_spin_limit{20};
std::atomic<unsigned> g_forks{0};

void pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

// Polls done() for up to `limit`.
template <class Done>
bool spin_until(const Done& done, Clock::duration limit) {
    for (int i = 0; i < 64; i++, pause())
        if (done()) return true;
    for (const Clock::time_point end = Clock::now() + limit; Clock::now() < end;)
        for (int i = 0; i < 16; i++, pause())
            if (done()) return true;
    return done();
}

// Sleeps while word is value; may return earlier.
#if defined(__linux__)
void sleep_while(std::atomic<uint32_t>& word, uint32_t value) {
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}
void wake(std::atomic<uint32_t>& word) {
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}
#else
std::mutex g_mutex;
std::condition_variable g_changed;
void sleep_while(std::atomic<uint32_t>& word, uint32_t value) {
    std::unique_lock<std::mutex> lock(g_mutex);
    if (word == value) g_changed.wait(lock);
}
void wake(std::atomic<uint32_t>&) {
    std::lock_guard<std::mutex> lock(g_mutex);
    g_changed.notify_all();
}
#endif

// Stores, and is seen to have done so before what this thread loads next. By what the language says
// a store does as well. qemu lets such loads of ARM code overtake it on x86 hosts: two threads then
// missed each other, and slept for ever.
template <class T>
void announce(std::atomic<T>& word, T value) {
    word.exchange(value);
}

class Team;
// The team in which the calling thread begins regions, instead of one of its own.
thread_local Team* own_part = nullptr;

// The workers of a thread, and the region that they work on.
class Team {
public:
    ~Team();
    void run(int64_t tasks, int threads, int64_t grain, RegionBody body, const void* context);
    // Runs tasks with `teams` teams of `each` threads of this team.
    void run_teams(int64_t tasks, int teams, int each, RegionBody body, const void* context);
    int bind(const CpuSet& set);

private:
    // A cache line that only its worker writes, so that workers can come and go without taking
    // lines from each other.
    struct alignas(64) Worker {
        std::thread thread;
        std::atomic<uint32_t> asleep{0};
        std::atomic<bool> within{false};  // the region, or about to see that it is closed
        Clock::duration worked{};         // of its processor, when the first thread began to wait
    };
    // The gate, which only the first thread writes: bits 12 and up number the regions; those from 2
    // on are how many threads may enter, if the region is open, and the lower ones say whether it
    // is, and whether its first thread sleeps until the last worker has left.
    enum : uint32_t { kNext = 1 << 12, kThread = 4, kMostThreads = 1023, kOpen = 2, kWaited = 1 };
    static bool admits(uint32_t gate, int thread) {
        return (gate & kOpen) && (uint32_t)thread < gate % kNext / kThread;
    }

    // Tasks of which teams take theirs.
    struct TeamTasks {
        Team* self;
        int teams;
        RegionBody body;
        const void* context;
        Claims::Share* shares;
        std::atomic<bool>* none_left;
        bool dynamic;  // RegionState's, of who begins the region
        void join() const;
        void lead(Team* team, int index) const;
    };

    int grow(int threads);
    void abandon();
    [[gnu::cold]] bool make_teams(int teams, int each);
    void dismiss();
    static void join_team(const void* tasks, Claims&);
    int in_time(int threads);
    void open(int64_t tasks, int threads, int64_t grain, RegionBody body, const void* context);
    void close(Clock::time_point begun, bool even);
    int note_absent();
    Clock::duration longest_worked() const;
    void late(int others, Clock::time_point now);
    void work(Worker* self, int thread);
    int within() const;
    void take_part(int thread);
    void leave(Worker* self);

    alignas(64) std::atomic<uint32_t> gate_{0};
    std::atomic<bool> stop_{false};
    std::atomic<uint32_t> departures_{0};  // that somebody slept for
    // The region's data; written while the gate is closed and nobody is inside.
    alignas(64) RegionBody body_ = nullptr;
    const void* context_ = nullptr;
    int64_t grain_ = 1;
    int threads_ = 0, denormals_ = 0;
    std::atomic<bool> none_left_{false};  // of the tasks
    std::unique_ptr<Claims::Share[]> shares_;
    int room_ = 0;
    // Whether a worker has thrown, and what.
    std::atomic<bool> thrown_{false};
    std::exception_ptr exception_;

    std::vector<std::unique_ptr<Worker>> workers_;
    bool refused_ = false;  // by the system: no more threads
    unsigned forks_ = 0;
    // The teams that this team's threads form if tasks have several threads each: the first thread
    // to come begins its team's regions, those after it are its workers.
    std::unique_ptr<Team[]> teams_;
    std::unique_ptr<Claims::Share[]> team_shares_;
    int team_room_ = 0;
    std::atomic<int> seats_{0};  // of such a team, that are taken
    // While some threads rest: how many do not.
    int awake_ = 0;
    Clock::time_point rest_until_{}, forget_{};
    Clock::duration rest_{};
};

Team::~Team() {
    if (forks_ != g_forks) abandon();
    dismiss();
    for (auto& worker : workers_)
        if (worker->thread.joinable()) worker->thread.join();
}

// Its workers leave.
void Team::dismiss() {
    stop_ = true;
    gate_ += kNext;
    for (auto& worker : workers_)
        if (worker->asleep.exchange(0)) wake(worker->asleep);
}

// After a fork the child has none of the threads.
void Team::abandon() {
    for (auto& worker : workers_) {
        if (worker->thread.joinable()) worker->thread.detach();
        worker.release();
    }
    workers_.clear();
    teams_.reset();
    team_room_ = 0;
    gate_ = 0;
    forks_ = g_forks;
}

void count_forks() {
#if defined(__linux__)
    static const int once = pthread_atfork(nullptr, nullptr, [] { g_forks++; });
    (void)once;
#endif
}

// Starts workers for a region of `threads`; returns how many it can have.
int Team::grow(int threads) {
    if (forks_ != g_forks) abandon();
    QUOLL_TRY {
        if (room_ < threads) {
            shares_.reset();
            room_ = 0;
            shares_.reset(new Claims::Share[(size_t)threads]);
            room_ = threads;
        }
        if (!refused_) workers_.reserve((size_t)threads - 1);
        while ((int)workers_.size() + 1 < threads && !refused_) {
            count_forks();
            std::unique_ptr<Worker> worker(new Worker);
            Worker* const self = worker.get();
            const int number = (int)workers_.size() + 1;
            worker->thread = std::thread([this, self, number] { work(self, number); });
            workers_.push_back(std::move(worker));
        }
    }
    QUOLL_CATCH(const std::system_error&) { refused_ = true; }
    QUOLL_CATCH(const std::bad_alloc&) {  // fewer this time
    }
    return std::min({threads, (int)workers_.size() + 1, std::max(1, room_)});
}

// The number of threads without those that rest.
int Team::in_time(int threads) {
    if (awake_ == 0 || !region_state.dynamic) return threads;
    if (Clock::now() < rest_until_) return std::min(threads, awake_);
    awake_ = 0;
    return threads;
}

// `others` threads were late: as many rest, for longer each time that this happens again.
void Team::late(int others, Clock::time_point now) {
    rest_ = now > forget_ ? Clock::duration(kFirstRest)
                          : std::min<Clock::duration>(rest_ * 2, kLongestRest);
    awake_ = std::max(1, threads_ - others);
    rest_until_ = now + rest_;
    forget_ = rest_until_ + rest_;
}

void share(Claims::Share* shares, int64_t tasks, int threads) {
    for (int i = 0; i < threads; i++) {
        shares[i].next.store(tasks * i / threads, std::memory_order_relaxed);
        shares[i].end = tasks * (i + 1) / threads;
    }
}

void Team::open(int64_t tasks, int threads, int64_t grain, RegionBody body, const void* context) {
    body_ = body, context_ = context, grain_ = grain, threads_ = threads;
    denormals_ = get_flush_denormals();
    none_left_.store(false, std::memory_order_relaxed);
    share(shares_.get(), tasks, threads);
    const uint32_t region = gate_.load(std::memory_order_relaxed) / kNext + 1;
    announce(gate_, region * kNext + (uint32_t)threads * kThread + kOpen);
    for (int i = 0; i + 1 < threads; i++) {
        std::atomic<uint32_t>& asleep = workers_[i]->asleep;
        if (asleep.load() && asleep.exchange(0)) wake(asleep);
    }
}

// A worker announces that it is inside before it looks whether the gate is open, and the first
// thread closes the gate before it looks who is inside: one of the two sees the other.
int Team::within() const {
    int count = 0;
    for (int i = 0; i + 1 < threads_; i++) count += workers_[i]->within.load();
    return count;
}

// The time that a processor has worked for a thread; 0 where the system does not say, and for those
// of another team.
Clock::duration time_of(std::thread& thread) {
#if defined(__linux__) && !defined(__ANDROID__)
    clockid_t clock;
    timespec t = {};
    if (thread.joinable() && pthread_getcpuclockid(thread.native_handle(), &clock) == 0)
        clock_gettime(clock, &t);
    return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
#else
    (void)thread;
    return Clock::duration();
#endif
}

// How many workers are inside; notes for which of them processors have worked how long.
int Team::note_absent() {
    int count = 0;
    for (int i = 0; i + 1 < threads_; i++) {
        Worker& worker = *workers_[i];
        const bool inside = worker.within;
        worker.worked = inside ? time_of(worker.thread) : Clock::duration::max();
        count += inside;
    }
    return count;
}

// Since then, of the worker that has run for longest.
Clock::duration Team::longest_worked() const {
    Clock::duration longest{};
    for (int i = 0; i + 1 < threads_; i++) {
        Worker& worker = *workers_[i];
        if (worker.worked != Clock::duration::max())
            longest = std::max(longest, time_of(worker.thread) - worker.worked);
    }
    return longest;
}

// Closes the gate and waits for those inside. even: the threads' parts of the work have the same
// size.
void Team::close(Clock::time_point begun, bool even) {
    const uint32_t closed = gate_.load(std::memory_order_relaxed) & ~(uint32_t)kOpen;
    announce(gate_, closed);
    const auto empty = [this] { return within() == 0; };
    if (empty()) return;
    const Clock::time_point now = Clock::now();
    if (spin_until(empty, kSpin)) return;
    // Asleep, this thread leaves its processor to one that may be waiting for it.
    const int others = even ? note_absent() : 0;
    announce(gate_, closed | kWaited);
    for (uint32_t seen; seen = departures_, !empty();) sleep_while(departures_, seen);
    gate_ = closed;
    const Clock::time_point end = Clock::now();
    const Clock::duration wait = end - now, work = now - begun;
    if (!even || wait < kLate || wait < work) return;
    if (wait > kSlowest * work || longest_worked() < wait / 2) late(others, end);
}

void Team::run(int64_t tasks, int threads, int64_t grain, RegionBody body, const void* context) {
    // A team without some of its threads takes longer. That does not make the others late, and the
    // team is better off with a thread that comes late.
    const bool even = body != join_team;
    threads = (int)std::min<int64_t>({threads, tasks, kMostThreads});
    threads = grow(even ? in_time(threads) : threads);
    if (threads <= 1) return run_alone(tasks, body, context);
    open(tasks, threads, grain, body, context);
    const Clock::time_point begun = Clock::now();
    std::exception_ptr own;
    region_state.threads = threads;
    QUOLL_TRY {
        Claims claims(shares_.get(), threads, 0, grain, &none_left_);
        body(context, claims);
    }
    QUOLL_CATCH(...) { own = std::current_exception(); }
    region_state.threads = 0;
    close(begun, even);
    if (thrown_) {
        if (!own) own = exception_;
        exception_ = nullptr;
        thrown_ = false;
    }
    if (own) std::rethrow_exception(own);
}

// False when memory runs out.
bool Team::make_teams(int teams, int each) {
    if (forks_ != g_forks) abandon();
    QUOLL_TRY {
        if (team_room_ < teams) {
            team_room_ = 0;
            team_shares_.reset(new Claims::Share[(size_t)teams]);
            teams_.reset(new Team[(size_t)teams]);
            team_room_ = teams;
        }
        for (int i = 0; i < teams; i++) {
            Team& team = teams_[(size_t)i];
            team.refused_ = true;  // it starts no threads
            team.forks_ = forks_;
            team.stop_ = false;
            team.seats_ = 0;
            while ((int)team.workers_.size() + 1 < each)
                team.workers_.push_back(std::unique_ptr<Worker>(new Worker));
        }
    }
    QUOLL_CATCH(const std::bad_alloc&) { return false; }
    return true;
}

void Team::run_teams(int64_t tasks, int teams, int each, RegionBody body, const void* context) {
    if (!make_teams(teams, each)) return run(tasks, teams, 1, body, context);
    std::atomic<bool> none_left(false);
    share(team_shares_.get(), tasks, teams);
    const TeamTasks all = {
        this, teams, body, context, team_shares_.get(), &none_left, region_state.dynamic};
    // Nobody claims the tasks of this region: its threads themselves are its purpose.
    run(teams * each, teams * each, 1, join_team, &all);
}

void Team::join_team(const void* tasks, Claims&) { ((const TeamTasks*)tasks)->join(); }

// If there are fewer threads than there should be, they are spread over as many teams as possible.
void Team::TeamTasks::join() const {
    const int index = region_state.thread % teams;
    Team* const team = &self->teams_[(size_t)index];
    const int seat = team->seats_++;
    if (seat == 0)
        lead(team, index);
    else
        team->work(team->workers_[seat - 1].get(), seat);
}

void Team::TeamTasks::lead(Team* team, int index) const {
    struct Leading {
        Team* const team;
        Team* const outer = own_part;
        const RegionState before = region_state;
        Leading(Team* t, bool dynamic) : team(t) {
            region_state.thread = region_state.threads = 0;
            region_state.dynamic = dynamic;
            own_part = team;
        }
        ~Leading() {
            team->dismiss();
            own_part = outer;
            region_state = before;
        }
    } leading(team, dynamic);
    Claims claims(shares, teams, index, 1, none_left);
    body(context, claims);
}

void Team::take_part(int thread) {
    if (get_flush_denormals() != denormals_) set_flush_denormals(denormals_);
    region_state.thread = thread, region_state.threads = threads_;
    QUOLL_TRY {
        Claims claims(shares_.get(), threads_, thread, grain_, &none_left_);
        body_(context_, claims);
    }
    QUOLL_CATCH(...) {
        if (!thrown_.exchange(true)) exception_ = std::current_exception();
    }
    region_state.thread = 0, region_state.threads = 0;
}

void Team::leave(Worker* self) {
    announce(self->within, false);
    if (!(gate_.load() & kWaited)) return;
    departures_++;
    wake(departures_);
}

void Team::work(Worker* self, int thread) {
    uint32_t served = UINT32_MAX;
    while (!stop_) {
        const auto called = [&] { return gate_.load(std::memory_order_acquire) / kNext != served; };
        const int limit = g_spin_limit.load(std::memory_order_relaxed);
        if (!spin_until(called,
                        std::min<Clock::duration>(kSpin, std::chrono::milliseconds(limit)))) {
            announce(self->asleep, 1u);
            while (gate_.load() / kNext == served && self->asleep.load())
                sleep_while(self->asleep, 1);
            self->asleep = 0;
            continue;
        }
        const uint32_t seen = gate_.load(std::memory_order_acquire);
        served = seen / kNext;
        if (!admits(seen, thread)) continue;  // too late, or too many
        announce(self->within, true);
        const uint32_t entered = gate_;
        served = entered / kNext;
        if (admits(entered, thread)) take_part(thread);
        leave(self);
    }
}

#if defined(__linux__)
// Returns 0 or the system's error number. Android's C library binds threads by their number in the
// kernel alone.
int bind_thread(pthread_t thread, const CpuSet& set) {
#if defined(__ANDROID__)
    const pid_t id = pthread_gettid_np(thread);
    return sched_setaffinity(id, sizeof(set.cpu_set), &set.cpu_set) == 0 ? 0 : errno;
#else
    return pthread_setaffinity_np(thread, sizeof(set.cpu_set), &set.cpu_set);
#endif
}
#endif

int Team::bind(const CpuSet& set) {
#if defined(__linux__)
    for (auto& worker : workers_)
        if (int error = bind_thread(worker->thread.native_handle(), set)) return error;
#else
    (void)set;
#endif
    return 0;
}

Team& own_team() {
    static thread_local Team team;
    return team;
}

}  // namespace

void run_in_team(int64_t tasks, int threads, int64_t grain, RegionBody body, const void* context) {
    (own_part ? *own_part : own_team()).run(tasks, threads, grain, body, context);
}
void run_in_teams(int64_t tasks, int teams, int each, RegionBody body, const void* context) {
    (own_part ? *own_part : own_team()).run_teams(tasks, teams, each, body, context);
}
int bind_team(const CpuSet& set) { return own_team().bind(set); }
void set_spin_limit(int milliseconds) { g_spin_limit = milliseconds; }

}  // namespace quoll
