// Functions on images of interleaved 8-bit pixels. Conversions to and from Mats are members of Mat
// (mat_pixel.inc).
#ifndef QUOLL_IMAGE_H
#define QUOLL_IMAGE_H

#include "platform.h"

#if QUOLL_PIXEL

namespace quoll {

// Bilinear resize of srcw x srch pixels of 1, 2, 3 or 4 bytes to w x h pixels; sample centres at
// half pixels, the edge repeated. Weights have 11 bits: results may differ by 1 from exact
// arithmetic. Strides are the bytes of one row, by default the packed width. src and dst must not
// overlap. Returns 0, or a negative Status after a message on a null pointer, an empty size or a
// stride below the row.
int resize_bilinear_c1(const unsigned char* src, int srcw, int srch, unsigned char* dst, int w,
                       int h);
int resize_bilinear_c2(const unsigned char* src, int srcw, int srch, unsigned char* dst, int w,
                       int h);
int resize_bilinear_c3(const unsigned char* src, int srcw, int srch, unsigned char* dst, int w,
                       int h);
int resize_bilinear_c4(const unsigned char* src, int srcw, int srch, unsigned char* dst, int w,
                       int h);
int resize_bilinear_c1(const unsigned char* src, int srcw, int srch, int srcstride,
                       unsigned char* dst, int w, int h, int stride);
int resize_bilinear_c2(const unsigned char* src, int srcw, int srch, int srcstride,
                       unsigned char* dst, int w, int h, int stride);
int resize_bilinear_c3(const unsigned char* src, int srcw, int srch, int srcstride,
                       unsigned char* dst, int w, int h, int stride);
int resize_bilinear_c4(const unsigned char* src, int srcw, int srch, int srcstride,
                       unsigned char* dst, int w, int h, int stride);

// YUV 4:2:0 (w x h bytes of luma, then (w + 1) / 2 x (h + 1) / 2 pairs of chroma bytes: V U for
// NV21, U V for NV12) to w x h RGB pixels; full-range BT.601 as in JFIF, coefficients of 6 bits.
// The half form takes NV21 to (w / 2) x (h / 2) RGB pixels, the mean of each 2 x 2 block of luma.
// Errors as above.
int yuv420sp2rgb(const unsigned char* yuv420sp, int w, int h, unsigned char* rgb);
int yuv420sp2rgb_nv12(const unsigned char* yuv420sp, int w, int h, unsigned char* rgb);
int yuv420sp2rgb_half(const unsigned char* yuv420sp, int w, int h, unsigned char* rgb);

}  // namespace quoll

#endif  // QUOLL_PIXEL
#endif
