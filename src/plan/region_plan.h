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
    // Ascending. All of them run when the first one is due.
    std::vector<size_t> steps;
    // Null: the back end could not compile it, and has said why.
    std::shared_ptr<const CompiledRegion> compiled;
};

struct SizedStep {
    size_t step;
    int layer;
    // As in RegionValue. Both empty: some blobs are missing or of unknown size; the host runs the
    // step.
    std::vector<Shape> inputs, outputs;
};

class RegionPlanner {
public:
    // joined: steps share regions; otherwise each step has a region of its own, of which all
    // outputs are downloaded. recorded: what the application gives and takes is in the back end's
    // memory.
    RegionPlanner(const NetGraph& graph, const std::vector<int>& wanted, bool joined, bool recorded)
        : graph_(graph), wanted_(wanted), joined_(joined), recorded_(recorded) {}
    // To be called in ascending order, for every step that computes something.
    void add(SizedStep step) { steps_.push_back(std::move(step)); }
    // The regions that are worth their copies, not compiled.
    std::vector<PlannedRegion> plan();
    // After plan(): the steps that a back end could run, but for which the copies cost more than
    // they gain.
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
