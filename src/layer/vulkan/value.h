// A blob in the device's memory.
#ifndef QUOLL_LAYER_VULKAN_VALUE_H
#define QUOLL_LAYER_VULKAN_VALUE_H

#include <stdint.h>

#include "gpu/program.h"
#include "quoll/mat.h"

namespace quoll {

enum class Layout {
    // Scalars in the order n, c, d, h, w without gaps; what follows the last one is undefined.
    kPlanar,
    // n, d, h, w, c: pixels of `pitch` scalars; the channels from c to the next multiple of 4 are 0
    // (or belong to another value that is placed within these pixels). For blobs with 3 and 4 axes.
    kChannelsLast,
};

// Scalars from one index of an axis to the next.
struct Strides {
    uint32_t w, h, d, c, n;
};

struct Value {
    Shape shape;
    Layout layout = Layout::kPlanar;
    int block = -1;      // of the program; -1: a constant
    int constant = -1;   // of the Recorder
    uint32_t first = 0;  // scalars from the block's begin; a multiple of 4
    uint32_t pitch = 0;  // kChannelsLast; a multiple of 4
    // kPlanar: scalars from channel to channel if there are gaps between them; 0: there are none.
    // Only layers that ask for it (VulkanLayer::cache_of) get such values.
    uint32_t channel_step = 0;
    // The value has no block: it is in the staging buffer as the host has written it, planar, of
    // this type (f16 if the host narrows f32). Only layers that ask for it
    // (VulkanLayer::reads_upload) get such values.
    bool is_staged = false;
    DType staged_type = DType::f32;
    size_t staged_offset = 0;  // bytes

    Strides strides() const;
    // Scalars from item to item; 0 if the only item serves all.
    uint32_t item_step() const { return shape.n > 1 ? strides().n : 0; }
};

inline uint32_t round4(uint32_t n) { return (n + 3) / 4 * 4; }
// Values of a channel of one item.
inline uint32_t plane(const Shape& s) { return (uint32_t)s.w * s.h * s.d; }
// s32, s8 and u8 take one word each and are planar, whatever floats are stored as. The exception is
// s8 in channels-last order, which int8 convolutions read and write: it is stored as floats are.
inline bool is_integer(DType dtype) {
    return dtype == DType::s32 || dtype == DType::s8 || dtype == DType::u8;
}
inline bool can_be_channels_last(const Shape& s) { return s.dims >= 3 && !is_integer(s.dtype); }
// Whether it is s8 that is stored as floats are.
inline bool is_pixels_of_int8(const Shape& s) { return s.dims >= 3 && s.dtype == DType::s8; }
inline bool are_words(const Value& value) {
    return is_integer(value.shape.dtype) && value.layout == Layout::kPlanar;
}
// The scalars that a value takes in a block of its own.
size_t stored_scalars(const Shape& shape, Layout layout);

// The value as rows of consecutive scalars, for shaders that go through whole vec4s: its pixels, or
// everything as one row.
struct Rows {
    uint32_t count, length, pitch;                           // pitch: a multiple of 4
    uint32_t vectors() const { return round4(length) / 4; }  // of a row
};
Rows rows_of(const Value& value);

}  // namespace quoll

#endif
