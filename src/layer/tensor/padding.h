#ifndef QUOLL_LAYER_PADDING_H
#define QUOLL_LAYER_PADDING_H

#include "layer/common/schema.h"

namespace quoll {

// Adds a border to input 0: left and right on w; top and bottom on h, if there are 2 axes or more;
// front and behind on c of 3 axes or on d of 4. If all of top, bottom, left and right are -233 or
// -234, input 1 holds the six widths as s32 values top bottom left right front behind.
class Padding : public Operator<Padding> {
public:
    enum Type { kConstant, kReplicate, kReflect };

    Padding();
    static void params(Padding& s, ParamVisitor& v);
    static void weights(Padding& s, WeightVisitor& v);
    static int shape(const Padding& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
    // The border alone.
    int forward_empty(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                      const Option& opt) const override;
    unsigned traits() const override {
        const bool zeros = value == 0.f && per_channel_pad_data_size == 0;
        return type != kConstant || zeros ? kMovesValues : 0;
    }

    int top = 0, bottom = 0, left = 0, right = 0, front = 0, behind = 0;
    int type = 0;
    float value = 0.f;
    // For constant borders of 3 and 4 axes: one value per channel of the output instead of `value`.
    int per_channel_pad_data_size = 0;
    Mat per_channel_pad_data;

protected:
    // Widths of the border before and behind, outermost axis first.
    struct Widths {
        int before[4], behind[4];
    };
    bool dynamic() const;
    // `values`: the six widths when dynamic().
    int padded_shape(const Shape& in, const int* values, Widths* widths, Shape* out) const;
    // The values of input 1 when dynamic(), null otherwise.
    int widths_from(const std::vector<Mat>& bottoms, const int** values) const;
    // For each index of an output axis the index of the input, -1 for the constant.
    static std::vector<int> source_indexes(int size, int before, int behind, int type);
    // The constant of a channel (of the output) as one scalar of that type.
    void constant_of(int channel, const Shape& out, unsigned char bytes[4]) const;
};

}  // namespace quoll

#endif
