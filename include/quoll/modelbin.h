// The weights of a model, handed to layers in the order in which they ask.
#ifndef QUOLL_MODELBIN_H
#define QUOLL_MODELBIN_H

#include "quoll/mat.h"

namespace quoll {

class DataReader;
class DataWriter;

// A weight as a file stores it, 1-D: f32, f16 or bf16; s8; u8 indexes into `table`, 256 floats; or
// s8 with a scale in `table` for each row or column.
struct StoredWeight {
    Mat data;
    Mat table;
    // The tag before f32 (0, or ncnn's 0x0002C056), before s8 with scales, and before indexes (any
    // other value).
    unsigned tag;

    StoredWeight() : tag(0) {}
    // From values of any dims with elempack 1. For indexes, assign `table` afterwards.
    explicit StoredWeight(const Mat& values);
    // Floats that are s8 values times scales. The values are as many consecutive rows as there are
    // scales, one scale for each; or, with `columns`, each row has as many values as there are
    // scales, one for each.
    static StoredWeight int8(const Mat& values, const Mat& scales, bool columns);
    // The values as f32, or an s8 Mat as it is; empty if memory runs out.
    Mat widened() const;
    // Writes the weight with its tag; without a tag it has to be f32. Returns 0, or a negative code
    // after a message.
    int save(const DataWriter& dw, bool tagged) const;
};

class ModelBin {
public:
    virtual ~ModelBin();
    // The next weight as a 1-D Mat of w scalars; this class has none. type says how it is stored:
    // - 0: with a 4-byte tag before the data. 0: f32; 0x01306B47: half floats, widened to f32;
    //   0x36314642: bfloat16, widened; 0x000D4B38: int8, an s8 Mat; 0x38534F52, 0x38534C43,
    //   0x38534652: int8 with scales of rows, of columns, or scales and zero points of rows,
    //   widened; any other: a table of 256 floats and one index byte per scalar. ncnn does not know
    //   bfloat16 and int8 with scales.
    // - 1: f32 without tag; 2: half floats without tag; 3: int8 without tag.
    // Data is padded to 4 bytes. Empty, with a message in the log, if the source ends early or
    // memory runs out.
    virtual Mat load(int w, int type) const;
    // The same with more axes.
    virtual Mat load(int w, int h, int type) const;
    virtual Mat load(int w, int h, int c, int type) const;
    virtual Mat load(int w, int h, int d, int c, int type) const;
};

class ModelBinFromDataReader : public ModelBin {
public:
    explicit ModelBinFromDataReader(const DataReader& dr);
    using ModelBin::load;
    Mat load(int w, int type) const override;
    // A tagged weight of w scalars without widening it; its data is empty on failure.
    StoredWeight load_stored(int w) const;

private:
    Mat load_values(size_t count, DType dtype) const;
    const DataReader& dr_;
};

// Weights that a program already has: `weights` is read one Mat at a time and must be long enough.
class ModelBinFromMatArray : public ModelBin {
public:
    explicit ModelBinFromMatArray(const Mat* weights);
    using ModelBin::load;
    Mat load(int w, int type) const override;

private:
    mutable const Mat* next_;
};

}  // namespace quoll

#endif
