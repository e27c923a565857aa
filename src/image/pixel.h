// Common to the pixel sources; not installed.
#ifndef QUOLL_IMAGE_PIXEL_PRIVATE_H
#define QUOLL_IMAGE_PIXEL_PRIVATE_H

#include <stddef.h>

#include "quoll/mat.h"

namespace quoll {

// Where the channels of a target pixel come from: `from[k]` is the byte of the source pixel that
// target channel k copies, or one of the two special values.
struct PixelPlan {
    enum { kOpaque = -1, kGray = -2 };  // the constant 255; the luma of red, green and blue
    int in, out;                        // channels of source and target
    int from[4];
    int red, green, blue;  // bytes of the source pixel (all 0 for a grey source)
};

// Reads a PIXEL_x or PIXEL_x2y value. False, after a message, when it is none.
bool make_plan(int type, PixelPlan& plan, const char* function);

// False, after a message, unless `pixels` is set and rows of w pixels fit the stride.
bool valid_image(const void* pixels, int w, int h, ptrdiff_t stride, int channels,
                 const char* function);

// The planes of a YUV 4:2:0 image without gaps. False, after a message, unless w and h are even.
struct Yuv420sp {
    Yuv420sp(const unsigned char* pixels, int w, int h)
        : y(pixels), uv(pixels ? pixels + (ptrdiff_t)w * h : nullptr), w(w), h(h) {}
    bool valid(const char* function) const;
    const unsigned char *y, *uv;
    int w, h;
};

// The byte of a packed colour for channel k.
inline unsigned char color_byte(unsigned int color, int k) {
    return (unsigned char)(color >> 8 * k);
}

// The first of the two neighbours of a sample, and the weights of both in units of 1 / 2^11. The
// second is the next one, or the same where the axis has one sample only.
struct PixelTap {
    int index;
    short weight[2];
};
// `out` taps for an axis that goes from `in` to `out` samples.
void fill_pixel_taps(PixelTap* taps, int in, int out);

// Bilinear resize of interleaved pixels of 1 to 4 channels; the arguments are valid images.
int resize_pixels(const unsigned char* src, int srcw, int srch, ptrdiff_t srcstride,
                  unsigned char* dst, int w, int h, ptrdiff_t stride, int channels);

}  // namespace quoll

#endif
