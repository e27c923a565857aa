#include "memory_use.h"

#include <stdlib.h>

#include <fstream>
#include <string>

namespace quoll {

static double status_mib(const std::string& field) {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.compare(0, field.size(), field) == 0)
            return atof(line.c_str() + field.size()) / 1024;
    return 0;
}

double resident_memory() { return status_mib("VmRSS:"); }
double peak_memory() { return status_mib("VmHWM:"); }
void reset_peak_memory() { std::ofstream("/proc/self/clear_refs") << "5"; }

}  // namespace quoll
