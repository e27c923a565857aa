#ifndef QUOLL_LAYER_EINSUM_H
#define QUOLL_LAYER_EINSUM_H

#include <string>

#include "layer/common/schema.h"

namespace quoll {

// A sum of products given by an equation such as "ik,kj->ij", with one letter per axis, outermost
// first. Letters that the output lacks are summed over; a letter that appears twice in one input
// takes its diagonal. "ij->" gives one value. Without "->" the output has the letters that appear
// once, so that "ii" is the trace.
class Einsum : public Operator<Einsum> {
public:
    static void params(Einsum& s, ParamVisitor& v);
    static void weights(Einsum& s, WeightVisitor& v);
    static int shape(const Einsum& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
    int forward_empty(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                      const Option& opt) const override;
    int64_t macs(const std::vector<Shape>& in, const std::vector<Shape>& out) const override;

    // The letters of an input, and of the output.
    size_t operand_count() const { return inputs_.size(); }
    const std::string& operand(size_t i) const { return inputs_[i]; }
    const std::string& output() const { return output_; }

    Mat equation;  // the characters as s32

private:
    std::vector<std::string> inputs_;
    std::string output_;
};

}  // namespace quoll

#endif
