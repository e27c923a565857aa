// Cuts the steps of a plan segment into regions for back ends.
#ifndef QUOLL_PLAN_REGION_PLAN_H
#define QUOLL_PLAN_REGION_PLAN_H

#include <memory>
#include <vector>

#include "plan/net_graph.h"
#include "quoll/backend.h"

namespace quoll {

struct PlannedRegion {
    const Backend* backend = nullptr;
    Region region;
    // Ascending. All of them run when the first one's turn comes.
    std::vector<size_t> steps;
    // Null: the back end could not make it ready, and said why.
    std::shared_ptr<const CompiledRegion> compiled;
};

struct SizedStep {
    size_t step;
    int layer;
    // As in RegionValue. Both empty: not all are there, not all of them known; the host runs it.
    std::vector<Shape> inputs, outputs;
};

class RegionPlanner {
public:
    // joined: steps share regions; else the steps of a region each have one of their own, of which
    // all outputs are downloaded. recorded: what the application gives and takes is in the back
    // end's memory.
    RegionPlanner(const NetGraph& graph, const std::vector<int>& wanted, bool joined, bool recorded)
        : graph_(graph), wanted_(wanted), joined_(joined), recorded_(recorded) {}
    // Ascending; all that compute something.
    void add(SizedStep step) { steps_.push_back(std::move(step)); }
    // The regions that are worth it, not compiled.
    std::vector<PlannedRegion> plan();
    // Behind plan(): the steps that a back end would run, were the copies not dearer.
    const std::vector<size_t>& left_to_host() const { return left_to_host_; }

private:
    struct Draft {
        int backend;
        std::vector<int> members;  // in steps_
    };
    void choose_backends();
    const Mat* constant_of(int blob, int backend) const;
    std::vector<Draft> draft_regions() const;
    // keeps_all: every output is downloaded.
    PlannedRegion make_region(const Draft& draft, bool keeps_all) const;
    std::vector<PlannedRegion> single_steps(const std::vector<Draft>& drafts) const;

    const NetGraph& graph_;
    const std::vector<int>& wanted_;
    const bool joined_, recorded_;
    std::vector<SizedStep> steps_;
    std::vector<int> backend_of_;  // of each of steps_, -1: the host
    std::vector<size_t> left_to_host_;
};

}  // namespace quoll

#endif
