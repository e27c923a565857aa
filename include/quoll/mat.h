// Mat: the reference-counted n-dimensional blob that layers take and return.
#ifndef QUOLL_MAT_H
#define QUOLL_MAT_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#if defined(__ANDROID__)
#include <jni.h>
#endif

#include "quoll/allocator.h"
#include "quoll/option.h"
#include "quoll/platform.h"

namespace quoll {

// What one scalar of a Mat is. elemsize of a Mat is the size of elempack such scalars.
enum class DType : unsigned char { f32, f16, bf16, s32, s8, u8 };

size_t dtype_size(DType dtype);       // bytes of one scalar
const char* dtype_name(DType dtype);  // "f32", ...

// The size of a blob counted in scalars, whatever its packing. Unused axes are 1; dims 0 is "none"
// (an empty Mat, or a size that is known only after the layer has run).
struct Shape {
    int dims, w, h, d, c, n;
    DType dtype;

    Shape() : dims(0), w(0), h(0), d(0), c(0), n(1), dtype(DType::f32) {}
    explicit Shape(int w_, DType t = DType::f32)
        : dims(1), w(w_), h(1), d(1), c(1), n(1), dtype(t) {}
    Shape(int w_, int h_, DType t = DType::f32)
        : dims(2), w(w_), h(h_), d(1), c(1), n(1), dtype(t) {}
    Shape(int w_, int h_, int c_, DType t = DType::f32)
        : dims(3), w(w_), h(h_), d(1), c(c_), n(1), dtype(t) {}
    Shape(int w_, int h_, int d_, int c_, DType t = DType::f32)
        : dims(4), w(w_), h(h_), d(d_), c(c_), n(1), dtype(t) {}

    size_t total() const { return dims ? (size_t)w * h * d * c * n : 0; }
    // Axis counted from the outermost as in the operator table: axis 0 is c of a 3-D blob, h of a
    // 2-D one, w of a 1-D one. `axis` must lie in [0, dims).
    int size(int axis) const { return *at(axis); }
    void set_size(int axis, int value) { *const_cast<int*>(at(axis)) = value; }

private:
    const int* at(int axis) const {
        const int* const axes1[] = {&w};
        const int* const axes2[] = {&h, &w};
        const int* const axes3[] = {&c, &h, &w};
        const int* const axes4[] = {&c, &d, &h, &w};
        return dims == 1   ? axes1[axis]
               : dims == 2 ? axes2[axis]
               : dims == 3 ? axes3[axis]
                           : axes4[axis];
    }
};

inline bool operator==(const Shape& a, const Shape& b) {
    return a.dims == b.dims && a.w == b.w && a.h == b.h && a.d == b.d && a.c == b.c && a.n == b.n &&
           a.dtype == b.dtype;
}
inline bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }

class VkMat;

// Up to four axes (w, h, d, c) and a batch count n over one block of memory.
//
// Layout, in elements of elemsize bytes: element (x, y, z, q) of batch item b lies at
// b * nstep + q * cstep + (z * h + y) * w + x. An element is elempack interleaved scalars along the
// outermost axis (w of a 1-D, h of a 2-D, c of a 3-D or 4-D Mat); that axis counts elements, so a
// blob of 32 channels with elempack 16 has c = 2. Channels of 3-D and 4-D Mats begin on 16-byte
// multiples: cstep may exceed w * h * d; the gap is never read as data.
//
// Copying a Mat shares the memory. A failed allocation leaves the Mat empty(); nothing throws.
class Mat {
public:
    Mat();
    // Owning Mats of uninitialised memory. The dtype follows from elemsize / elempack (4: f32,
    // 2: f16, 1: s8), and the Mat is `untyped`; the Shape form says the dtype. n: batch items.
    Mat(int w, size_t elemsize = 4u, Allocator* allocator = 0);
    Mat(int w, int h, size_t elemsize = 4u, Allocator* allocator = 0);
    Mat(int w, int h, int c, size_t elemsize = 4u, Allocator* allocator = 0);
    Mat(int w, int h, int d, int c, size_t elemsize = 4u, Allocator* allocator = 0);
    Mat(int w, size_t elemsize, int elempack, Allocator* allocator = 0);
    Mat(int w, int h, size_t elemsize, int elempack, Allocator* allocator = 0);
    Mat(int w, int h, int c, size_t elemsize, int elempack, Allocator* allocator = 0);
    Mat(int w, int h, int d, int c, size_t elemsize, int elempack, Allocator* allocator = 0);
    Mat(int w, size_t elemsize, int elempack, int n, Allocator* allocator = 0);
    Mat(int w, int h, size_t elemsize, int elempack, int n, Allocator* allocator = 0);
    Mat(int w, int h, int c, size_t elemsize, int elempack, int n, Allocator* allocator = 0);
    Mat(int w, int h, int d, int c, size_t elemsize, int elempack, int n, Allocator* allocator = 0);
    explicit Mat(const Shape& shape, int elempack = 1, Allocator* allocator = 0);
    // Views of memory that the caller keeps alive, untyped too. Channels must begin on 16-byte
    // multiples, the items of a batch, as those of all untyped Mats, on 4096-byte multiples.
    Mat(int w, void* data, size_t elemsize = 4u, Allocator* allocator = 0);
    Mat(int w, int h, void* data, size_t elemsize = 4u, Allocator* allocator = 0);
    Mat(int w, int h, int c, void* data, size_t elemsize = 4u, Allocator* allocator = 0);
    Mat(int w, int h, int d, int c, void* data, size_t elemsize = 4u, Allocator* allocator = 0);
    Mat(int w, void* data, size_t elemsize, int elempack, Allocator* allocator = 0);
    Mat(int w, int h, void* data, size_t elemsize, int elempack, Allocator* allocator = 0);
    Mat(int w, int h, int c, void* data, size_t elemsize, int elempack, Allocator* allocator = 0);
    Mat(int w, int h, int d, int c, void* data, size_t elemsize, int elempack,
        Allocator* allocator = 0);
    Mat(int w, void* data, size_t elemsize, int elempack, int n, Allocator* allocator = 0);
    Mat(int w, int h, void* data, size_t elemsize, int elempack, int n, Allocator* allocator = 0);
    Mat(int w, int h, int c, void* data, size_t elemsize, int elempack, int n,
        Allocator* allocator = 0);
    Mat(int w, int h, int d, int c, void* data, size_t elemsize, int elempack, int n,
        Allocator* allocator = 0);
    Mat(const Mat& m);
    Mat(Mat&& m);
    ~Mat();
    Mat& operator=(const Mat& m);
    Mat& operator=(Mat&& m);

    // Sets all data, of whatever dtype, to copies of v, which may be a SIMD vector; sizeof(v) must
    // divide the bytes of a channel.
    void fill(float v);
    void fill(int v);
    template <typename T>
    void fill(T v);

    // A deep copy; empty when this is empty or memory runs out.
    Mat clone(Allocator* allocator = 0) const;
    void clone_from(const Mat& mat, Allocator* allocator = 0);

    // The same elements in another shape; shares the memory when the layout allows, copies
    // otherwise. Empty when the element counts differ. Elements stay whole: elempack is kept, and
    // only with elempack 1 is the order of the scalars that of c, d, h, w.
    Mat reshape(int w, Allocator* allocator = 0) const;
    Mat reshape(int w, int h, Allocator* allocator = 0) const;
    Mat reshape(int w, int h, int c, Allocator* allocator = 0) const;
    Mat reshape(int w, int h, int d, int c, Allocator* allocator = 0) const;

    // The cstep of a new Mat: channels of 3-D and 4-D Mats begin on 16-byte multiples.
    static size_t channel_step(int dims, int w, int h, int d, size_t elemsize);

    // Makes this an owning Mat of the given size; keeps the memory if nothing changes.
    void create(int w, size_t elemsize = 4u, Allocator* allocator = 0);
    void create(int w, int h, size_t elemsize = 4u, Allocator* allocator = 0);
    void create(int w, int h, int c, size_t elemsize = 4u, Allocator* allocator = 0);
    void create(int w, int h, int d, int c, size_t elemsize = 4u, Allocator* allocator = 0);
    void create(int w, size_t elemsize, int elempack, Allocator* allocator = 0);
    void create(int w, int h, size_t elemsize, int elempack, Allocator* allocator = 0);
    void create(int w, int h, int c, size_t elemsize, int elempack, Allocator* allocator = 0);
    void create(int w, int h, int d, int c, size_t elemsize, int elempack,
                Allocator* allocator = 0);
    void create(int w, size_t elemsize, int elempack, int n, Allocator* allocator = 0);
    void create(int w, int h, size_t elemsize, int elempack, int n, Allocator* allocator = 0);
    void create(int w, int h, int c, size_t elemsize, int elempack, int n,
                Allocator* allocator = 0);
    void create(int w, int h, int d, int c, size_t elemsize, int elempack, int n,
                Allocator* allocator = 0);
    // The Shape counts scalars: its outermost axis must be a multiple of elempack.
    void create(const Shape& shape, int elempack = 1, Allocator* allocator = 0);
    void create_like(const Mat& m, Allocator* allocator = 0);
    // The same for n batch items.
    void create_like(const Mat& m, int n, Allocator* allocator = 0);
#if QUOLL_VULKAN
    // With the sizes, elempack and type of a VkMat.
    void create_like(const VkMat& m, Allocator* allocator = 0);
    void create_like(const VkMat& m, int n, Allocator* allocator = 0);
#endif

    void addref();
    void release();

    bool empty() const { return data == 0 || total() == 0; }
    // Elements of elemsize bytes from the first to the last, gaps between channels included.
    size_t total() const { return n > 1 ? nstep * n : cstep * c; }
    // Bits of one scalar.
    int elembits() const { return elempack ? (int)(elemsize * 8) / elempack : 0; }
    // The size in scalars: as a Mat without data with elempack 1 (ncnn's form), and as a Shape.
    Mat shape() const;
    Shape logical_shape() const;
    // A Mat without data of that size; dims 0 for "none".
    static Mat of_shape(const Shape& shape);

    // Views; no bounds are checked.
    Mat channel(int c);
    const Mat channel(int c) const;
    Mat depth(int z);
    const Mat depth(int z) const;
    float* row(int y);
    const float* row(int y) const;
    template <typename T>
    T* row(int y) {
        return (T*)((unsigned char*)data + (size_t)w * y * elemsize);
    }
    template <typename T>
    const T* row(int y) const {
        return (const T*)((const unsigned char*)data + (size_t)w * y * elemsize);
    }
    Mat channel_range(int c, int channels);
    const Mat channel_range(int c, int channels) const;
    Mat depth_range(int z, int depths);
    const Mat depth_range(int z, int depths) const;
    Mat row_range(int y, int rows);
    const Mat row_range(int y, int rows) const;
    Mat range(int x, int n);
    const Mat range(int x, int n) const;
    // Item b of a batch, itself a Mat with n = 1.
    Mat batch(int b);
    const Mat batch(int b) const;
    // Items b to b + batches - 1.
    Mat batch_range(int b, int batches);
    const Mat batch_range(int b, int batches) const;

    template <typename T>
    operator T*() {
        return (T*)data;
    }
    template <typename T>
    operator const T*() const {
        return (const T*)data;
    }
    float& operator[](size_t i) { return ((float*)data)[i]; }
    const float& operator[](size_t i) const { return ((const float*)data)[i]; }

    // x = (x - mean) * norm for each channel, in place; either may be null. The Mat must be f32
    // with elempack 1; 1-D and 2-D Mats have one channel.
    void substract_mean_normalize(const float* mean_vals, const float* norm_vals);

    // A new 1-D f32 Mat from IEEE half floats.
    static Mat from_float16(const unsigned short* data, int size);

#if QUOLL_PIXEL
#include "quoll/mat_pixel.inc"
#endif

    void* data;
    int* refcount;    // changed by threads; null for a view of somebody else's memory
    size_t elemsize;  // bytes of one element = elempack scalars
    int elempack;
    Allocator* allocator;
    int dims;
    int w, h, d, c;
    size_t cstep;  // elements from one channel to the next
    int n;         // batch items
    size_t nstep;  // elements from one batch item to the next
    DType dtype;
    // The dtype was guessed from elemsize, as ncnn's Mats have none: Extractors and Nets that store
    // blobs as bf16 take an untyped f16 Mat as bf16.
    bool untyped;

private:
    void set_view(int dims, int w, int h, int d, int c, void* data, size_t elemsize, int elempack,
                  Allocator* allocator, int n = 1, size_t item_alignment = 1);
    void allocate_untyped(int dims, int w, int h, int d, int c, int n, size_t elemsize,
                          int elempack, Allocator* allocator);
    void allocate(int dims, int w, int h, int d, int c, int n, DType dtype, size_t elemsize,
                  int elempack, Allocator* allocator, size_t item_alignment);
    Mat reshape_to(int dims, int w, int h, int d, int c, Allocator* allocator) const;
    Mat view(int dims, int w, int h, int d, int c, size_t offset) const;
};

template <typename T>
void Mat::fill(T v) {
    const size_t count = data ? (size_t)w * h * d * elemsize / sizeof(T) : 0;
    for (int b = 0; b < n; b++) {
        for (int q = 0; q < c; q++) {
            unsigned char* ptr = (unsigned char*)data + (b * nstep + q * cstep) * elemsize;
            for (size_t i = 0; i < count; i++) memcpy(ptr + i * sizeof(T), &v, sizeof(T));
        }
    }
}

// IEEE half and bfloat16 scalars, round to nearest even.
unsigned short float32_to_float16(float value);
float float16_to_float32(unsigned short value);
unsigned short float32_to_bfloat16(float value);
float bfloat16_to_float32(unsigned short value);
// 8-bit floats to and from IEEE half, as in ncnn: mantissa bits that do not fit are cut off. float8
// is e4m3 (bias 7, largest value 240, no infinity): larger values become NaN, values below 2^-6
// become 0. bfloat8 is e5m2, the upper byte of a half.
unsigned char float16_to_float8(unsigned short value);
unsigned short float8_to_float16(unsigned char value);
unsigned char float16_to_bfloat8(unsigned short value);
unsigned short bfloat8_to_float16(unsigned char value);
// Rounds half away from zero and clamps to [-127, 127]; NaN gives 0.
signed char float2int8(float v);

enum BorderType {
    BORDER_CONSTANT = 0,
    BORDER_REPLICATE = 1,
    BORDER_REFLECT = 2,
    BORDER_TRANSPARENT = -233,
};

// The functions below leave dst empty on failure and log why. dst may be src. Outputs come from
// opt.blob_allocator.
//
// copy_make_border grows w and h; the _3d form also d of a 4-D Mat and c of a 3-D one. Sides for
// which a Mat has no axis are ignored. It takes any dtype and any elempack (counted in scalars, the
// border may cut through elements; dst then has elempack 1 if its outermost axis is not a
// multiple). `v` is clamped to the dtype. Reflection leaves the edge out and needs borders smaller
// than the axis.
void copy_make_border(const Mat& src, Mat& dst, int top, int bottom, int left, int right, int type,
                      float v, const Option& opt = Option());
void copy_make_border_3d(const Mat& src, Mat& dst, int top, int bottom, int left, int right,
                         int front, int behind, int type, float v, const Option& opt = Option());
void copy_cut_border(const Mat& src, Mat& dst, int top, int bottom, int left, int right,
                     const Option& opt = Option());
void copy_cut_border_3d(const Mat& src, Mat& dst, int top, int bottom, int left, int right,
                        int front, int behind, const Option& opt = Option());
// Resizes w and h of a 3-D f32 Mat; of a 2-D one only w (rows are independent signals, h is
// ignored); each value of a 1-D Mat fills a channel. Any elempack. Nearest takes source x = floor(i
// * src.w / w); the others have samples at cell centres and repeat the edge; bicubic is Keys' with
// a = -0.75. dst shares src if the size is unchanged.
void resize_nearest(const Mat& src, Mat& dst, int w, int h, const Option& opt = Option());
void resize_bilinear(const Mat& src, Mat& dst, int w, int h, const Option& opt = Option());
void resize_bicubic(const Mat& src, Mat& dst, int w, int h, const Option& opt = Option());
// dst gets the given elempack when the outermost axis is divisible by it, otherwise dst shares src
// (elempack 1 always succeeds). Any dtype, any pair of packs.
void convert_packing(const Mat& src, Mat& dst, int elempack, const Option& opt = Option());
// All scalars of a batch item in one axis (w), elempack 1, order c d h w.
void flatten(const Mat& src, Mat& dst, const Option& opt = Option());
// These take any dims, elempack and batch, and keep them. f16 and bf16 both have two bytes, and a
// Mat that was made by elemsize is tagged f16 (f32 if four bytes): therefore
// cast_bfloat16_to_float32 also takes a Mat tagged f16, and dequantize_from_int32 one tagged f32.
// cast_float16_to_float32 widens a Mat that is known to be bf16 as bf16. Other dtypes than those
// named are refused.
void cast_float32_to_float16(const Mat& src, Mat& dst, const Option& opt = Option());
void cast_float16_to_float32(const Mat& src, Mat& dst, const Option& opt = Option());
void cast_float32_to_bfloat16(const Mat& src, Mat& dst, const Option& opt = Option());
void cast_bfloat16_to_float32(const Mat& src, Mat& dst, const Option& opt = Option());
void cast_int8_to_float32(const Mat& src, Mat& dst, const Option& opt = Option());
// scale_data, bias_data: 1-D f32, one value or one for each index of the outermost axis (value, row
// or channel). Quantize: float2int8(x * scale); dequantize: x * scale + bias. bias_data may be
// empty.
void quantize_to_int8(const Mat& src, Mat& dst, const Mat& scale_data,
                      const Option& opt = Option());
void dequantize_from_int32(const Mat& src, Mat& dst, const Mat& scale_data, const Mat& bias_data,
                           const Option& opt = Option());
// float2int8(activation(x * scale_in + bias) * scale_out), as the operator Requantize has it.
void requantize_from_int32_to_int8(const Mat& src, Mat& dst, const Mat& scale_in_data,
                                   const Mat& scale_out_data, const Mat& bias_data,
                                   int activation_type, const Mat& activation_params,
                                   const Option& opt = Option());

}  // namespace quoll

#endif
