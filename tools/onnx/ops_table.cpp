#include <string.h>

#include <algorithm>

#include "onnx/ops.h"

namespace quoll {
namespace onnx_tool {

static const OpTable& table() {
    static const OpTable all = [] {
        OpTable t;
        for (OpTable family :
             {unary_ops(),    binary_ops(),  reduce_ops(),    shape_ops(),   sequence_ops(),
              slice_ops(),    pad_ops(),     gather_ops(),    fill_ops(),    conv_ops(),
              pool_ops(),     norm_ops(),    matrix_ops(),    image_ops(),   recurrent_ops(),
              quantize_ops(), control_ops(), attention_ops(), contrib_ops(), channels_last_ops(),
              signal_ops(),   newer_ops(),   loss_ops(),      deform_ops(),  ml_ops(),
              svm_ops(),      label_ops(),   text_ops(),      expert_ops(),  experimental_ops()})
            t.insert(t.end(), family.begin(), family.end());
        std::stable_sort(t.begin(), t.end(), [](const OpEntry& a, const OpEntry& b) {
            const int domain = strcmp(a.domain, b.domain);
            return domain ? domain < 0 : strcmp(a.op, b.op) < 0;
        });
        return t;
    }();
    return all;
}

const OpEntry* find_op(const std::string& domain, const std::string& op, int opset) {
    const auto before = [&](const OpEntry& entry, const std::string& name) {
        const int order = strcmp(domain.c_str(), entry.domain);
        return order ? order > 0 : strcmp(name.c_str(), entry.op) > 0;
    };
    for (auto at = std::lower_bound(table().begin(), table().end(), op, before);
         at != table().end() && op == at->op && domain == at->domain; ++at)
        if (opset == 0 || (opset >= at->since && (at->until == 0 || opset <= at->until)))
            return &*at;
    return nullptr;
}

bool has_required_inputs(const Node& node, int opset) {
    const OpEntry* entry = find_op(node.domain, node.op, opset);
    // Patterns read the inputs of nodes that nothing converts, too.
    if (!entry) entry = find_op("", node.op, 0);
    const int count = entry ? entry->inputs.in(opset) : 1;
    if ((int)node.inputs.size() < count) return false;
    return std::none_of(node.inputs.begin(), node.inputs.begin() + count,
                        [](const std::string& name) { return name.empty(); });
}

bool has_trait(const Node& node, OpTraits trait) {
    const OpEntry* entry = find_op(node.domain, node.op, 0);
    return entry && (entry->traits & trait) != 0;
}

std::vector<const OpEntry*> all_ops() {
    std::vector<const OpEntry*> all;
    for (const OpEntry& entry : table()) all.push_back(&entry);
    return all;
}

}  // namespace onnx_tool
}  // namespace quoll
