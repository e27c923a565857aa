// For enginerun_device: every layer that a Vulkan device can run does so there, whether it is worth
// its copies or not. Nets of one layer are rarely worth them.
#include "forwarding_backend.h"
#include "layer/vulkan/create_backend.h"

namespace quoll {

namespace {

class UnconditionalBackend : public ForwardingBackend {
public:
    using ForwardingBackend::ForwardingBackend;
    bool is_profitable(const Region&) const override { return true; }
};

}  // namespace

// Stands for the library's function, whose object file is then not linked.
std::shared_ptr<Backend> create_vulkan_backend(int index, const Option& opt) {
    auto backend = std::make_shared<UnconditionalBackend>(opt, index);
    return backend->is_open() ? backend : nullptr;
}

}  // namespace quoll
