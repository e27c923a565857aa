// A back end without a device, to test what plans ask of one: memory of its own that nobody else may
// touch, explicit uploads and downloads, steps recorded once and replayed. Its arithmetic is that of
// the CPU's layers.
#ifndef QUOLL_TESTS_RECORDING_BACKEND_H
#define QUOLL_TESTS_RECORDING_BACKEND_H

#include <stdint.h>

#include <atomic>
#include <set>
#include <string>

#include "quoll/backend.h"

namespace quoll {

class RecordingBackend : public Backend {
public:
    // Takes `share` of the layers that it could run, which of them by the seed and their names.
    explicit RecordingBackend(double share = 1, uint32_t seed = 0) : share_(share), seed_(seed) {}

    const char* name() const override { return "recording"; }
    int prepare(const Layer& layer, const Option& opt) override;
    void release() override { prepared_.clear(); }
    bool supports(const Layer& layer, const std::vector<Shape>& inputs,
                  const std::vector<Shape>& outputs) const override;
    bool is_profitable(const Region& region) const override;
    std::shared_ptr<const CompiledRegion> compile(const Region& region,
                                                  const Option& opt) const override;

    // Regions with fewer steps are not profitable.
    size_t fewest_steps = 1;
    // compile() fails.
    bool fails = false;

    mutable std::atomic<int> compiled{0}, replayed{0}, steps{0};

private:
    double share_;
    uint32_t seed_;
    std::set<const Layer*> prepared_;
};

}  // namespace quoll

#endif
