// A profile as tables, in the blocks and columns of MACE's model benchmark.
#ifndef QUOLL_BENCHMARK_PROFILE_REPORT_H
#define QUOLL_BENCHMARK_PROFILE_REPORT_H

#include <nlohmann/json.hpp>
#include <string>

namespace quoll {

// row: a row of benchmark's report with "profile" in it. All times in milliseconds, speeds in 1e9
// multiply-accumulates a second (GMACPS), shares in percent.
std::string profile_report(const nlohmann::json& row);
// The same runs for chrome://tracing and similar tools: one process per model, one event per layer
// and run.
std::string chrome_trace(const nlohmann::json& rows);

}  // namespace quoll

#endif
