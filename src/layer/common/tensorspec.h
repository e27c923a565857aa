#ifndef QUOLL_LAYER_TENSORSPEC_H
#define QUOLL_LAYER_TENSORSPEC_H

#include "layer/common/schema.h"

namespace quoll {

// The array that an Input or Output blob stands for, as the model that it was converted from
// declares it: an ONNX tensor of some rank and element type. Programs give and take such arrays.
struct TensorSpec {
    int rank = -1;         // axes of the array; -1: nothing is said
    Mat sizes;             // s32, one per axis, -1: any
    int element_type = 0;  // ONNX's TensorProto.DataType: 1 float32, 2 uint8, 3 int8, 6 int32, 7
                           // int64, 9 bool, 10 float16, 11 float64, ...
    int batch = 0;         // 1: axis 0 is the batch count n of the Mat
    // 1: rank is only a minimum. The array has the Mat's axes, except that a single value is a
    // scalar if rank is 0.
    int any_rank = 0;
    // For an array of strings, which is passed as numbers: the table whose places the numbers are,
    // each string followed by a comma. Quotes, commas, '%' and control characters are written as
    // "%2C". -1 stands for a string that is not in the table.
    std::string strings;

    bool said() const { return rank >= 0; }
    // -1: not known.
    int size(int axis) const {
        return axis < sizes.w && !sizes.empty() ? ((const int*)sizes.data)[axis] : -1;
    }
};

inline void tensor_spec_params(TensorSpec& s, ParamVisitor& v) {
    v(20, "rank", s.rank, -1, "axes of the array that it stands for, -1: not said",
      between(-1, 64));
    v.ints(21, "sizes", s.sizes, "sizes of these axes, -1: any", at_least(-1));
    v(22, "element_type", s.element_type, 0, "type of the array, numbered as in ONNX",
      between(0, 1 << 16));
    v(23, "batch", s.batch, 0, "1: axis 0 of the array is the batch", between(0, 1));
    v(24, "any_rank", s.any_rank, 0, "1: as many axes as the blob has, rank being the least",
      between(0, 1));
    v(26, "strings", s.strings, "",
      "table of an array of strings, which are given as their places in it: each in UTF-8 with a "
      "comma behind it, odd characters as %2C");
}

}  // namespace quoll

#endif
