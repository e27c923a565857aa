// Nets without weights; and reading weights a second time: for blobs that graph passes have fused
// away, and for layers that turn out to have to run on the host.
#ifndef QUOLL_NET_UNFUSED_H
#define QUOLL_NET_UNFUSED_H

#include <stdint.h>

#include "quoll/modelbin.h"

namespace quoll {

class Backend;
class Layer;

// A source without weights, which remembers whether it was asked for some.
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

// The size and time of a file, which change when it does; zeros if there is none.
void describe_file(const char* path, int64_t* size, int64_t* time);

// Whether the back end holds weights of the layer that are large enough to be freed on the host.
bool leaves_host(const Layer& layer, const Backend& backend);
void release_weights(Layer& layer);

}  // namespace quoll

#endif
