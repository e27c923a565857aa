// The four bytes in front of a weight in a .bin file (ModelBin::load).
#ifndef QUOLL_RUNTIME_WEIGHT_TAGS_H
#define QUOLL_RUNTIME_WEIGHT_TAGS_H

namespace quoll {

enum : unsigned {
    kTagFloat32 = 0,
    kTagFloat16 = 0x01306B47,
    kTagInt8 = 0x000D4B38,
    kTagScaledFloat32 = 0x0002C056,  // f32 whose scales ride along elsewhere
    // Tags that ncnn does not have, and would take for that of a table.
    kTagBFloat16 = 0x36314642,     // "BF16"
    kTagInt8Rows = 0x38534F52,     // int8 and scales: value i * scale[i / length]
    kTagInt8Columns = 0x38534C43,  // value i * scale[i % scales]
    kTagInt8Affine =
        0x38534652,  // scales, then zero points: (value i - zero[r]) * scale[r] of row r
    // In memory alone: f32 [inputs][outputs] of an InnerProduct (turned_weight.h).
    kTagByInputs = 2,
    kTagTable = 1,  // any other means a table; this is what new ones get
};

}  // namespace quoll

#endif
