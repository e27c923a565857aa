#include "runtime/cpu_topology.h"

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <vector>

#include "quoll/platform.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace quoll {
namespace {

// The content of a small file without trailing white space; empty if it cannot be read.
std::string read_text(const std::string& path) {
    std::string text;
    if (FILE* file = std::fopen(path.c_str(), "r")) {
        char buffer[4096];
        text.assign(buffer, std::fread(buffer, 1, sizeof(buffer), file));
        std::fclose(file);
    }
    text.erase(text.find_last_not_of(" \n") + 1);
    return text;
}

// The decimal number in a file; -1 if there is none.
long long read_number(const std::string& path) {
    const std::string text = read_text(path);
    char* end;
    const long long value = std::strtoll(text.c_str(), &end, 10);
    return end == text.c_str() ? -1 : value;
}

std::string cpu_dir(const std::string& root, int cpu) {
    return root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu);
}

struct Cpu {
    int id;
    long long speed;   // capacity or top frequency, comparable between processors; -1 unknown
    std::string core;  // equal for the hardware threads of one core
};

std::vector<Cpu> read_cpus(const std::string& root, const CpuSet& allowed) {
    std::vector<Cpu> cpus;
    for (int id = 0; id < kMaxCpus; id++)
        if (allowed.is_enabled(id)) cpus.push_back({id, -1, std::string()});
    // Capacity says more than frequency, but many kernels do not tell it.
    for (const char* file : {"/cpu_capacity", "/cpufreq/cpuinfo_max_freq"}) {
        bool known = true;
        for (Cpu& cpu : cpus) {
            cpu.speed = read_number(cpu_dir(root, cpu.id) + file);
            known = known && cpu.speed > 0;
        }
        if (known) break;
        for (Cpu& cpu : cpus) cpu.speed = -1;
    }
    for (Cpu& cpu : cpus) {
        const std::string topology = cpu_dir(root, cpu.id) + "/topology";
        cpu.core = read_text(topology + "/core_cpus_list");
        // The name until Linux 5.7.
        if (cpu.core.empty()) cpu.core = read_text(topology + "/thread_siblings_list");
        if (cpu.core.empty()) cpu.core = std::to_string(cpu.id);
    }
    return cpus;
}

// Cores whose speeds lie within a fifth are one cluster: turbo limits of equal cores differ by up
// to 15 %, little cores reach at most 3/4 of the big ones. Otherwise the middle separates them.
long long little_below(const std::vector<Cpu>& cpus) {
    long long slowest = LLONG_MAX, fastest = -1;
    for (const Cpu& cpu : cpus) {
        slowest = std::min(slowest, cpu.speed);
        fastest = std::max(fastest, cpu.speed);
    }
    return slowest < fastest - fastest / 5 ? slowest + (fastest - slowest) / 2 : slowest;
}

// Processors' worth of time that one control group grants, rounded up; INT_MAX without limit.
int group_quota(const std::string& dir, bool v2) {
    long long quota = -1, period = -1;
    if (v2) {
        // "max 100000" or "150000 100000", microseconds.
        if (std::sscanf(read_text(dir + "/cpu.max").c_str(), "%lld %lld", &quota, &period) != 2)
            return INT_MAX;
    } else {
        quota = read_number(dir + "/cpu.cfs_quota_us");
        period = read_number(dir + "/cpu.cfs_period_us");
    }
    if (quota <= 0 || period <= 0) return INT_MAX;
    const long long cpus = quota / period + (quota % period != 0);
    return int(std::min<long long>(cpus, INT_MAX));
}

// The tightest quota from this process's group to the root. A container may see its group's path of
// outside, which does not exist inside, but its own limits stand at the root of its mount.
int hierarchy_quota(const std::string& mount, std::string path, bool v2) {
    int quota = INT_MAX;
    for (;;) {
        quota = std::min(quota, group_quota(mount + path, v2));
        const size_t slash = path.find_last_of('/');
        if (slash == std::string::npos) return quota;
        path.erase(slash);
    }
}

// /proc/self/cgroup has lines "id:controllers:path"; that of version 2 names no controllers.
int read_quota(const std::string& root) {
    const std::string groups = read_text(root + "/proc/self/cgroup");
    int quota = INT_MAX;
    for (size_t begin = 0; begin < groups.size();) {
        const size_t end = std::min(groups.find('\n', begin), groups.size());
        const std::string line = groups.substr(begin, end - begin);
        begin = end + 1;
        const size_t first = line.find(':');
        const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
        const bool v2 = controllers == ",,";
        if (!v2 && controllers.find(",cpu,") == std::string::npos) continue;
        const std::string mount = root + (v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu");
        quota = std::min(quota, hierarchy_quota(mount, line.substr(second + 1), v2));
    }
    return quota == INT_MAX ? 0 : quota;
}

// level 1 (data), 2 or 3; larger counts win, bytes beyond int are cut.
void note_cache(int level, long long bytes, CpuTopology* topology) {
    int* const sizes[] = {&topology->l1d, &topology->l2, &topology->l3};
    if (level < 1 || level > 3 || bytes <= 0) return;
    *sizes[level - 1] = std::max(*sizes[level - 1], int(std::min<long long>(bytes, INT_MAX)));
}

void read_caches_from_sysfs(const std::string& dir, CpuTopology* topology) {
    for (int index = 0; index < 16; index++) {
        const std::string cache = dir + "/cache/index" + std::to_string(index);
        const std::string type = read_text(cache + "/type");
        if (type != "Data" && type != "Unified") continue;
        long long size = 0;
        char unit = 0;
        if (std::sscanf(read_text(cache + "/size").c_str(), "%lld%c", &size, &unit) < 1) continue;
        if (size <= 0 || size > (1 << 30)) continue;
        if (unit == 'K') size <<= 10;
        if (unit == 'M') size <<= 20;
        note_cache(int(read_number(cache + "/level")), size, topology);
    }
}

#if defined(__x86_64__) || defined(__i386__)
// Deterministic cache parameters (Intel SDM vol. 2, CPUID leaf 4; AMD has the same layout in
// 0x8000001d). Of the core it runs on.
void read_caches_from_processor(CpuTopology* topology) {
    for (unsigned leaf : {4u, 0x8000001du}) {
        for (unsigned index = 0; index < 16; index++) {
            unsigned eax, ebx, ecx, edx;
            if (!__get_cpuid_count(leaf, index, &eax, &ebx, &ecx, &edx)) break;
            const unsigned type = eax & 31;  // 1 data, 2 instructions, 3 unified
            if (type == 0) break;
            if (type == 2) continue;
            const long long ways = (ebx >> 22) + 1, partitions = (ebx >> 12 & 1023) + 1;
            const long long line = (ebx & 4095) + 1, sets = (long long)ecx + 1;
            note_cache(int(eax >> 5 & 7), ways * partitions * line * sets, topology);
        }
        if (topology->l1d) return;
    }
}
#elif defined(__APPLE__)
void read_caches_from_processor(CpuTopology* topology) {
    // perflevel0: the performance cores.
    const char* const names[] = {"hw.perflevel0.l1dcachesize", "hw.perflevel0.l2cachesize",
                                 "hw.l3cachesize"};
    for (int level = 1; level <= 3; level++) {
        int64_t bytes = 0;
        size_t size = sizeof(bytes);
        if (sysctlbyname(names[level - 1], &bytes, &size, nullptr, 0) == 0)
            note_cache(level, bytes, topology);
    }
}
#else
void read_caches_from_processor(CpuTopology*) {}
#endif

void read_caches(const std::string& root, int cpu, CpuTopology* topology) {
    read_caches_from_sysfs(cpu_dir(root, cpu), topology);
    if (topology->l1d == 0 && root.empty()) read_caches_from_processor(topology);
    if (topology->l1d == 0) note_cache(1, 32 << 10, topology);
    if (topology->l2 == 0 && topology->l3 == 0) note_cache(2, 512 << 10, topology);
}

}  // namespace

CpuTopology read_cpu_topology(const std::string& root, const CpuSet& allowed) {
    CpuTopology topology;
    topology.all = allowed;
    if constexpr (!QUOLL_THREADS) {  // the one thread runs anywhere
        topology.big = allowed;
        topology.physical_big = allowed.num_enabled();
        read_caches(root, 0, &topology);
        return topology;
    }
    const std::vector<Cpu> cpus = read_cpus(root, allowed);
    const long long threshold = little_below(cpus);
    std::set<std::string> big_cores, little_cores;
    int first_big = -1;
    for (const Cpu& cpu : cpus) {
        const bool little = cpu.speed < threshold;
        (little ? topology.little : topology.big).enable(cpu.id);
        (little ? little_cores : big_cores).insert(cpu.core);
        if (!little && first_big < 0) first_big = cpu.id;
    }
    topology.physical_big = int(big_cores.size());
    topology.physical_little = int(little_cores.size());
    topology.quota = read_quota(root);
    read_caches(root, first_big, &topology);
    return topology;
}

}  // namespace quoll
