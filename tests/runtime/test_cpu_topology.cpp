// Machines that are not at hand, as trees of /sys and /proc files.
#include "runtime/cpu_topology.h"

#include <climits>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace {

namespace fs = std::filesystem;

class Topology : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = (fs::temp_directory_path() / "quoll_topology_XXXXXX").string();
        ASSERT_NE(mkdtemp(&pattern[0]), nullptr);
        root = pattern;
    }
    void TearDown() override { fs::remove_all(root); }

    void write(const std::string& path, const std::string& content) {
        const fs::path file = root + path;
        fs::create_directories(file.parent_path());
        std::ofstream(file) << content;
    }
    void write_cpu(int cpu, const std::string& file, const std::string& content) {
        write("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/" + file, content + "\n");
    }
    void write_frequency(int cpu, int khz) {
        write_cpu(cpu, "cpufreq/cpuinfo_max_freq", std::to_string(khz));
    }
    void write_cache(int cpu, int index, const char* level, const char* type, const char* size) {
        const std::string dir = "cache/index" + std::to_string(index) + "/";
        write_cpu(cpu, dir + "level", level);
        write_cpu(cpu, dir + "type", type);
        write_cpu(cpu, dir + "size", size);
    }
    quoll::CpuTopology read(const quoll::CpuSet& allowed) {
        return quoll::read_cpu_topology(root, allowed);
    }
    std::string root;
};

quoll::CpuSet cpus(int first, int last) {
    quoll::CpuSet set;
    for (int cpu = first; cpu <= last; cpu++) set.enable(cpu);
    return set;
}

TEST_F(Topology, NothingKnown) {
    const quoll::CpuTopology topology = read(cpus(0, 5));
    EXPECT_TRUE(topology.all == cpus(0, 5));
    EXPECT_TRUE(topology.big == cpus(0, 5));
    EXPECT_EQ(topology.little.num_enabled(), 0);
    EXPECT_EQ(topology.physical_big, 6);
    EXPECT_EQ(topology.physical_little, 0);
    EXPECT_EQ(topology.quota, 0);
    EXPECT_EQ(topology.l1d, 32 << 10);
    EXPECT_EQ(topology.l2, 512 << 10);
    EXPECT_EQ(topology.l3, 0);
}

TEST_F(Topology, LittleAndBigByFrequency) {
    for (int cpu = 0; cpu < 8; cpu++) write_frequency(cpu, cpu < 4 ? 1800000 : 2400000);
    const quoll::CpuTopology topology = read(cpus(0, 7));
    EXPECT_TRUE(topology.little == cpus(0, 3));
    EXPECT_TRUE(topology.big == cpus(4, 7));
    EXPECT_EQ(topology.physical_little, 4);
    EXPECT_EQ(topology.physical_big, 4);
}

// Capacity is preferred: here the little cores clock higher than the big ones.
TEST_F(Topology, CapacityBeforeFrequency) {
    for (int cpu = 0; cpu < 8; cpu++) {
        write_frequency(cpu, cpu < 4 ? 2600000 : 2000000);
        write_cpu(cpu, "cpu_capacity", cpu < 4 ? "330" : cpu < 7 ? "850" : "1024");
    }
    const quoll::CpuTopology topology = read(cpus(0, 7));
    EXPECT_TRUE(topology.little == cpus(0, 3));
    EXPECT_TRUE(topology.big == cpus(4, 7));
}

// Cores of one kind whose turbo limits differ.
TEST_F(Topology, SmallDifferencesAreOneCluster) {
    const int khz[] = {5881000, 5600000, 5200000, 5084000};
    for (int cpu = 0; cpu < 4; cpu++) write_frequency(cpu, khz[cpu]);
    EXPECT_EQ(read(cpus(0, 3)).little.num_enabled(), 0);
}

// Without the speed of one processor there is no comparing.
TEST_F(Topology, PartlyUnknownSpeedsAreIgnored) {
    write_frequency(0, 1000000);
    write_frequency(1, 3000000);
    write_cpu(2, "cpufreq/cpuinfo_max_freq", "unknown");
    EXPECT_TRUE(read(cpus(0, 2)).big == cpus(0, 2));
    EXPECT_TRUE(read(cpus(0, 1)).little == cpus(0, 0));
}

// Two big cores of two threads (0-3) and four little ones (4-7), told by the file's old name.
TEST_F(Topology, HardwareThreadsOfACore) {
    for (int cpu = 0; cpu < 4; cpu++) {
        write_frequency(cpu, 5000000);
        write_cpu(cpu, "topology/core_cpus_list", cpu < 2 ? "0-1" : "2-3");
    }
    for (int cpu = 4; cpu < 8; cpu++) {
        write_frequency(cpu, 3600000);
        write_cpu(cpu, "topology/thread_siblings_list", std::to_string(cpu));
    }
    quoll::CpuTopology topology = read(cpus(0, 7));
    EXPECT_TRUE(topology.big == cpus(0, 3));
    EXPECT_EQ(topology.physical_big, 2);
    EXPECT_EQ(topology.physical_little, 4);
    // Only some processors allowed: the second thread of the first core, and one little core.
    topology = read(cpus(3, 4));
    EXPECT_TRUE(topology.big == cpus(3, 3));
    EXPECT_EQ(topology.physical_big, 1);
    EXPECT_EQ(topology.physical_little, 1);
    // Little cores alone are equal, hence big.
    EXPECT_TRUE(read(cpus(4, 7)).big == cpus(4, 7));
}

TEST_F(Topology, CachesOfTheFirstBigCore) {
    for (int cpu = 0; cpu < 2; cpu++) write_frequency(cpu, cpu == 0 ? 1500000 : 3000000);
    write_cache(0, 0, "1", "Data", "16K");
    write_cache(1, 0, "1", "Data", "48K");
    write_cache(1, 1, "1", "Instruction", "128K");
    write_cache(1, 2, "2", "Unified", "2048K");
    write_cache(1, 3, "3", "Unified", "30M");
    const quoll::CpuTopology topology = read(cpus(0, 1));
    EXPECT_EQ(topology.l1d, 48 << 10);
    EXPECT_EQ(topology.l2, 2 << 20);
    EXPECT_EQ(topology.l3, 30 << 20);
}

TEST_F(Topology, StrangeCaches) {
    write_cache(0, 0, "1", "Data", "-5K");
    write_cache(0, 1, "2", "Unified", "99999999999999999999K");
    write_cache(0, 2, "7", "Unified", "64K");
    write_cache(0, 3, "", "Unified", "64K");
    write_cache(0, 4, "3", "Unified", "");
    quoll::CpuTopology topology = read(cpus(0, 0));
    EXPECT_EQ(topology.l1d, 32 << 10);
    EXPECT_EQ(topology.l2, 512 << 10);
    EXPECT_EQ(topology.l3, 0);
    write_cache(0, 5, "3", "Unified", "1073741823M");  // cut to what an int holds
    EXPECT_EQ(read(cpus(0, 0)).l3, INT_MAX);
}

TEST_F(Topology, QuotaOfVersion2) {
    write("/proc/self/cgroup", "0::/a/b\n");
    EXPECT_EQ(read(cpus(0, 7)).quota, 0);
    write("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    EXPECT_EQ(read(cpus(0, 7)).quota, 0);
    write("/sys/fs/cgroup/cpu.max", "600000 100000\n");
    EXPECT_EQ(read(cpus(0, 7)).quota, 6);
    write("/sys/fs/cgroup/a/cpu.max", "250000 100000\n");  // two and a half: the tightest counts
    EXPECT_EQ(read(cpus(0, 7)).quota, 3);
    write("/sys/fs/cgroup/a/b/cpu.max", "10000 100000\n");
    EXPECT_EQ(read(cpus(0, 7)).quota, 1);
}

// In a container: the path of outside does not exist, the limit stands at the root.
TEST_F(Topology, QuotaOfVersion1) {
    write("/proc/self/cgroup", "3:cpuset:/x\n2:cpu,cpuacct:/docker/0123\n1:name=systemd:/\n0::/\n");
    EXPECT_EQ(read(cpus(0, 7)).quota, 0);
    write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "50000\n");
    write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    EXPECT_EQ(read(cpus(0, 7)).quota, 0);
    write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
    EXPECT_EQ(read(cpus(0, 7)).quota, 4);
}

TEST_F(Topology, StrangeControlGroups) {
    write("/sys/fs/cgroup/cpu.max", "100000 100000\n");
    for (const char* text : {"", "\n\n", "0", "0:", "0:cpuset", ":cpuacct:/", "x:y:z"}) {
        write("/proc/self/cgroup", text);
        EXPECT_EQ(read(cpus(0, 1)).quota, 0) << text;
    }
    write("/proc/self/cgroup", "0::/");
    for (const char* text : {"", "max", "100000", "0 100000", "100000 0", "-1 100000", "x y"}) {
        write("/sys/fs/cgroup/cpu.max", text);
        EXPECT_EQ(read(cpus(0, 1)).quota, 0) << text;
    }
    write("/sys/fs/cgroup/cpu.max", "9223372036854775807 1");
    EXPECT_EQ(read(cpus(0, 1)).quota, 0);  // as good as no limit
}

}  // namespace
