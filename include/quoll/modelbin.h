// The weights of a model, handed to layers in the order in which they ask.
#ifndef QUOLL_MODELBIN_H
#define QUOLL_MODELBIN_H

#include "quoll/mat.h"

namespace quoll {

class DataReader;
class DataWriter;

// A weight as a file stores it: 1-D f32, f16, bf16, s8, u8 indexes into `table`, 256 floats, or s8
// with a scale of `table` for each row or column.
struct StoredWeight {
    Mat data;
    Mat table;
    // What precedes f32 (0, or ncnn's 0x0002C056), scaled s8, and indexes (any other value).
    unsigned tag;

    StoredWeight() : tag(0) {}
    // Any dims, elempack 1; an index Mat gets its table by assignment.
    explicit StoredWeight(const Mat& values);
    // Floats that are s8 values times scales: one for each of as many rows as there are scales, one
    // behind the other, or, with `columns`, for each value of a row.
    static StoredWeight int8(const Mat& values, const Mat& scales, bool columns);
    // f32, or the s8 Mat itself; empty when memory runs out.
    Mat widened() const;
    // With its tag, or f32 alone without. Returns 0, or a negative code after a message.
    int save(const DataWriter& dw, bool tagged) const;
};

class ModelBin {
public:
    virtual ~ModelBin();
    // The next weight as a 1-D Mat of w scalars. type 0: the 4-byte tag before the data says what
    // it is (0: f32; 0x01306B47: half floats, widened to f32; 0x36314642: bfloat16, widened, which
    // ncnn does not know; 0x000D4B38: int8, an s8 Mat; 0x38534F52, 0x38534C43, 0x38534652: int8
    // with scales of rows, of columns, or scales and zero points of rows, widened, which ncnn does
    // not know; any other: a table of 256 floats and one index byte a scalar). type 1: f32 without
    // tag; 2: half floats without tag; 3: int8 without tag. Data is padded to 4 bytes. Empty, with
    // a message in the log, when the source ends early or memory runs out. Here: no weights.
    virtual Mat load(int w, int type) const;
    // The same, with more axes.
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

// Weights that a program already holds; `weights` is read one Mat at a time and must be long
// enough.
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
