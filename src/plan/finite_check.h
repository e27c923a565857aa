// Finds the layer in which infinite values or NaNs begin.
#ifndef QUOLL_FINITE_CHECK_H
#define QUOLL_FINITE_CHECK_H

#include <string>
#include <vector>

#include "layer/common/stored.h"
#include "quoll/net.h"

namespace quoll {

// Observes each layer that runs. A layer may pass on infinite values that it reads (a mask of
// -inf), and a model's constants may be infinite. So the finding is the first layer that makes
// infinite values from finite ones, or NaN from inputs without NaN.
class FiniteCheck : public LayerObserver {
public:
    void before(const Layer&) override {}
    void after(const Layer& layer, const std::vector<Mat>& outputs) override;
    // "[Type name] ...", or "" if there is no finding yet.
    const std::string& finding() const { return finding_; }
    void clear();

private:
    std::vector<NotFinite> blobs_;  // by index
    std::string finding_;
};

}  // namespace quoll

#endif
