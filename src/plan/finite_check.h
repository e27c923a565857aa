// Looks for the layer in which infinite values or NaNs begin.
#ifndef QUOLL_FINITE_CHECK_H
#define QUOLL_FINITE_CHECK_H

#include <string>
#include <vector>

#include "layer/common/stored.h"
#include "quoll/net.h"

namespace quoll {

// Told of each layer that ran. Infinite values that a layer reads (a mask of -inf) it may hand on,
// and what a model holds as a constant may be infinite: the finding is the first layer that makes
// such values of finite ones, or NaN of inputs without.
class FiniteCheck : public LayerObserver {
public:
    void before(const Layer&) override {}
    void after(const Layer& layer, const std::vector<Mat>& outputs) override;
    // "[Type name] ...", "" as long as there is none.
    const std::string& finding() const { return finding_; }
    void clear();

private:
    std::vector<NotFinite> blobs_;  // by index
    std::string finding_;
};

}  // namespace quoll

#endif
