// The memory of this process, as Linux reports it.
#ifndef QUOLL_BENCHMARK_MEMORY_USE_H
#define QUOLL_BENCHMARK_MEMORY_USE_H

namespace quoll {

// MiB in memory now, and the most since the start or the last reset_peak_memory(); 0 where
// /proc/self/status does not say.
double resident_memory();
double peak_memory();
// Sets the peak to what is resident now. Where the system cannot do that (before Linux 4.0), the
// peak stays that of the whole process.
void reset_peak_memory();

}  // namespace quoll

#endif
