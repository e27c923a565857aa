#include <algorithm>

#include "onnx/ops.h"

namespace quoll {
namespace onnx_tool {

static const OpTable& table() {
    static const OpTable all = [] {
        OpTable t;
        for (OpTable family : {unary_ops(), binary_ops(), reduce_ops(), shape_ops(), slice_ops(),
                               gather_ops(), fill_ops(), conv_ops(), pool_ops(), norm_ops(),
                               matrix_ops(), image_ops(), recurrent_ops(), quantize_ops()})
            t.insert(t.end(), family.begin(), family.end());
        std::stable_sort(t.begin(), t.end(), [](const OpEntry& a, const OpEntry& b) {
            const int domain = std::string(a.domain).compare(b.domain);
            return domain ? domain < 0 : std::string(a.op) < b.op;
        });
        return t;
    }();
    return all;
}

const OpEntry* find_op(const std::string& domain, const std::string& op, int opset) {
    for (const OpEntry& entry : table())
        if (op == entry.op && domain == entry.domain &&
            (opset == 0 || (opset >= entry.since && (entry.until == 0 || opset <= entry.until))))
            return &entry;
    return nullptr;
}

std::vector<const OpEntry*> all_ops() {
    std::vector<const OpEntry*> all;
    for (const OpEntry& entry : table()) all.push_back(&entry);
    return all;
}

}  // namespace onnx_tool
}  // namespace quoll
