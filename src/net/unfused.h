// Nets without weights, and reading them a second time for blobs that graph passes have fused away.
#ifndef QUOLL_NET_UNFUSED_H
#define QUOLL_NET_UNFUSED_H

#include <stdint.h>

#include "quoll/modelbin.h"

namespace quoll {

// Has no weights, and knows whether it was asked for some.
class NoWeights : public ModelBin {
public:
    using ModelBin::load;
    Mat load(int, int) const override {
        asked_ = true;
        return Mat();
    }
    bool asked() const { return asked_; }

private:
    mutable bool asked_ = false;
};

// What changes when a file does; zeros when there is none.
void describe_file(const char* path, int64_t* size, int64_t* time);

}  // namespace quoll

#endif
