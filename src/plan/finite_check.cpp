#include "plan/finite_check.h"

#include <stdio.h>

namespace quoll {

void FiniteCheck::after(const Layer& layer, const std::vector<Mat>& outputs) {
    NotFinite read;
    for (int id : layer.bottoms) {
        if ((size_t)id >= blobs_.size()) continue;
        read.nans += blobs_[(size_t)id].nans;
        read.infinite += blobs_[(size_t)id].infinite;
    }
    for (size_t i = 0; i < outputs.size() && i < layer.tops.size(); i++) {
        const NotFinite made = count_not_finite(outputs[i]);
        const size_t id = (size_t)layer.tops[i];
        if (id >= blobs_.size()) blobs_.resize(id + 1);
        blobs_[id] = made;
        const bool begins =
            (made.nans && !read.nans) || (made.infinite && !read.nans && !read.infinite);
        if (!begins || layer.bottoms.empty() || !finding_.empty()) continue;
        char text[1024];
        snprintf(text, sizeof(text),
                 "[%s %s] output %zu: %zu infinite values and %zu NaN among %zu of %s%s",
                 layer.type.c_str(), layer.name.c_str(), i, made.infinite, made.nans,
                 outputs[i].logical_shape().total(), dtype_name(outputs[i].dtype),
                 outputs[i].dtype == DType::f16 ? ", which holds at most 65504" : "");
        finding_ = text;
    }
}

void FiniteCheck::clear() {
    blobs_.clear();
    finding_.clear();
}

}  // namespace quoll
