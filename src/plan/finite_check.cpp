#include "plan/finite_check.h"

#include <stdint.h>

namespace quoll {

namespace {

// Bits of the exponent, and the word without the sign.
template <class T>
NotFinite count_words(const Mat& m, T exponent, T magnitude) {
    NotFinite found;
    const size_t plane = (size_t)m.w * m.h * m.d * m.elempack;
    for (int b = 0; b < m.n; b++) {
        for (int q = 0; q < m.c; q++) {
            const T* p = (const T*)((const char*)m.data + (b * m.nstep + q * m.cstep) * m.elemsize);
            T odd = 0;  // of their width, so that a vector holds many
            for (size_t i = 0; i < plane; i++) odd |= (T)((p[i] & exponent) == exponent);
            for (size_t i = 0; i < plane && odd; i++) {
                found.infinite += (p[i] & magnitude) == exponent;
                found.nans += (p[i] & magnitude) > exponent;
            }
        }
    }
    return found;
}

}  // namespace

NotFinite count_not_finite(const Mat& m) {
    if (m.empty()) return NotFinite();
    if (m.dtype == DType::f32) return count_words<uint32_t>(m, 0x7f800000u, 0x7fffffffu);
    if (m.dtype == DType::f16) return count_words<uint16_t>(m, 0x7c00, 0x7fff);
    if (m.dtype == DType::bf16) return count_words<uint16_t>(m, 0x7f80, 0x7fff);
    return NotFinite();
}

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
        finding_ = "[" + layer.type + " " + layer.name + "] output " + std::to_string(i) + ": " +
                   std::to_string(made.infinite) + " infinite values and " +
                   std::to_string(made.nans) + " NaN among " +
                   std::to_string(outputs[i].logical_shape().total()) + " of " +
                   dtype_name(outputs[i].dtype) +
                   (outputs[i].dtype == DType::f16 ? ", which holds at most 65504" : "");
    }
}

void FiniteCheck::clear() {
    blobs_.clear();
    finding_.clear();
}

}  // namespace quoll
