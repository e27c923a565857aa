// Nets without weights, and reading them a second time: for blobs that graph passes have fused
// away, for layers that the host has to run after all.
#ifndef QUOLL_NET_UNFUSED_H
#define QUOLL_NET_UNFUSED_H

#include <stdint.h>

#include "quoll/modelbin.h"

namespace quoll {

class Backend;
class Layer;

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

// Whether the back end has weights of the layer that are worth leaving to it.
bool leaves_host(const Layer& layer, const Backend& backend);
void release_weights(Layer& layer);

}  // namespace quoll

#endif
