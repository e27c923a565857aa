// A profile as a page.
#ifndef QUOLL_BENCHMARK_PROFILE_PAGE_H
#define QUOLL_BENCHMARK_PROFILE_PAGE_H

#include <nlohmann/json.hpp>
#include <string>

namespace quoll {

// A self-contained page of the rows of benchmark's report that have a "profile": the median run of
// each model layer after layer, times by type and by run, and a table that can be sorted.
std::string profile_page(const nlohmann::json& rows);

}  // namespace quoll

#endif
