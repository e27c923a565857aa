#ifndef QUOLL_LAYER_INNERPRODUCT_H
#define QUOLL_LAYER_INNERPRODUCT_H

#include "layer/common/conv_window.h"
#include "layer/common/int16_input.h"
#include "layer/common/schema.h"

namespace quoll {

// y = activation(weight x + bias). A 2-D input whose rows have num_input values gives [num_output,
// h], one row per input row; any other input is flattened and gives num_output values.
class InnerProduct : public Operator<InnerProduct> {
public:
    InnerProduct();
    static void params(InnerProduct& s, ParamVisitor& v);
    static void weights(InnerProduct& s, WeightVisitor& v);
    static int shape(const InnerProduct& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int load_model(const ModelBin& mb) override;
    int create_pipeline(const Option& opt) override;
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;
    int64_t macs(const std::vector<Shape>& in, const std::vector<Shape>& out) const override;
    bool fusion_target(FusionTarget* t) override;

    // The weight as [num_output][num_input], however it is stored; empty if memory runs out.
    Mat weight_by_outputs() const;
    // Brings weight_data into that order.
    int settle_weight();

    bool is_int8() const { return kHasInt8 && int8_scale_term != 0; }
    bool int8_output() const { return is_int8() && top_factor != 0.f; }
    bool int16_input() const { return is_int8() && int8_affine == kInt16Input; }
    // Columns of the weight.
    int num_input() const { return weight_data_size / num_output; }

    int num_output;
    int bias_term;
    int weight_data_size;
    int int8_scale_term;  // not 0: the input is rounded to int8 with its scale, sums are int32
    // As affine8.h describes. 1: the input is s8 with this zero point; 2: it is f32, rounded with
    // the scale and zero point of its own range (AffineRange of all its values). kInt16Input: it is
    // f32, rounded to 16 bits with its scale (int16_input.h).
    int int8_affine, bottom_zero_point;
    // With int8_affine 1, not 0: the output is s8 of this zero point, of values times top_factor.
    float top_factor;
    int top_zero_point;
    int activation_type;
    Mat activation_params;

    // 1-D f32 or s8: [num_output][num_input]. While a model is being loaded it may be transposed
    // and unaligned, in memory that is released afterwards (turned_weight.h).
    Mat weight_data;
    Mat bias_data;
    Mat weight_data_int8_scales;
    Mat bottom_blob_int8_scales;
    Mat weight_data_int8;  // s8 weights, made by create_pipeline

    // While pipelines are made: a layer that has the same weights in memory and whose pipeline is
    // made first, so that they are packed once. Otherwise null.
    const InnerProduct* same_weights = nullptr;

private:
    int forward_s8(const Mat& rows, Mat& top, const Option& opt) const;
};

}  // namespace quoll

#endif
