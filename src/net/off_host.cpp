// Frees weights on the host that a back end has, and reads them again if the host turns out to need
// them.
#include "layer/common/schema.h"
#include "layer/control/memorydata.h"
#include "net/net_private.h"
#include "net/unfused.h"
#include "quoll/backend.h"
#include "quoll/log.h"

namespace quoll {

// Small nets, and small weights, stay: there is little to gain.
static const size_t kSmallNet = (size_t)8 << 20, kSmallLayer = (size_t)64 << 10;

static size_t weight_bytes(const Layer& layer) {
    class Sum : public WeightVisitor {
    public:
        size_t bytes = 0;
        void operator()(bool present, const char*, Mat& field, WeightSize, WeightKind,
                        Doc) override {
            if (present && !field.empty()) bytes += field.total() * field.elemsize;
        }
    } sum;
    const_cast<Layer&>(layer).visit_weights(sum);
    return sum.bytes;
}

bool leaves_host(const Layer& layer, const Backend& backend) {
    return !as<MemoryData>(&layer) && backend.holds(layer) && weight_bytes(layer) >= kSmallLayer;
}

void release_weights(Layer& layer) {
    class Release : public WeightVisitor {
    public:
        void operator()(bool, const char*, Mat& field, WeightSize, WeightKind, Doc) override {
            field.release();
        }
    } release;
    layer.visit_weights(release);
}

// The weights have to be readable a second time, in case the host needs them.
bool Net::Private::may_leave_host(const Option& opt) const {
    if (keeps_weights || opt.vulkan_fallback || unfused_param.empty() || layers_may_differ)
        return false;
    if (source.path.empty() && !source.reader) return false;
    size_t bytes = 0;
    for (const Layer* layer : layers)
        if (layer->typeindex >= 0 && !is_folded(*layer)) bytes += weight_bytes(*layer);
    return bytes >= kSmallNet;
}

std::shared_ptr<Net::Private> Net::Private::bring_to_host() {
    std::lock_guard<std::mutex> lock(late_loading);
    if (!on_host) on_host = load_copy(true);
    if (on_host) runs_on_host = true;
    if (!on_host)
        QUOLL_LOGE(
            "[Net] the weights, which only the device has, could not be loaded again for a layer "
            "that the CPU has to run: set net.opt.vulkan_fallback = true, which keeps them");
    return on_host;
}

}  // namespace quoll
