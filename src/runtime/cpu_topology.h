// The processors that this process may use, as the operating system describes them.
#ifndef QUOLL_CPU_TOPOLOGY_PRIVATE_H
#define QUOLL_CPU_TOPOLOGY_PRIVATE_H

#include <string>

#include "quoll/cpu.h"

namespace quoll {

struct CpuTopology {
    CpuSet all, big, little;  // logical processors; all = big + little
    int physical_big = 0, physical_little = 0;
    int quota = 0;                // processors that cgroup quotas pay for, 0 for no limit
    int l1d = 0, l2 = 0, l3 = 0;  // bytes, of the first big processor
};

// Describes the processors of `allowed` (not empty) from the /sys and /proc trees below `root`, ""
// for the system's own. What is missing there is taken to be equal cores without SMT, no quota, and
// the defaults of cpu.h.
CpuTopology read_cpu_topology(const std::string& root, const CpuSet& allowed);

}  // namespace quoll

#endif  // QUOLL_CPU_TOPOLOGY_PRIVATE_H
