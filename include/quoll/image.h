// Functions on images of interleaved 8-bit pixels. Conversions to and from Mats are members of Mat
// (mat_pixel.inc).
#ifndef QUOLL_IMAGE_H
#define QUOLL_IMAGE_H

#include "quoll/platform.h"

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

// The same for YUV 4:2:0 (NV21 or NV12, planes without gaps): luma, and chroma pairs of half the
// size. All four sizes must be even.
int resize_bilinear_yuv420sp(const unsigned char* src, int srcw, int srch, unsigned char* dst,
                             int w, int h);

// YUV 4:2:0 (w x h bytes of luma, then (w + 1) / 2 x (h + 1) / 2 pairs of chroma bytes: V U for
// NV21, U V for NV12) to w x h RGB pixels; full-range BT.601 as in JFIF, coefficients of 6 bits.
// The half form takes NV21 to (w / 2) x (h / 2) RGB pixels, the mean of each 2 x 2 block of luma.
// Errors as above.
int yuv420sp2rgb(const unsigned char* yuv420sp, int w, int h, unsigned char* rgb);
int yuv420sp2rgb_nv12(const unsigned char* yuv420sp, int w, int h, unsigned char* rgb);
int yuv420sp2rgb_half(const unsigned char* yuv420sp, int w, int h, unsigned char* rgb);

#if QUOLL_PIXEL_ROTATE
// Turns and mirrors an image as the EXIF orientation `type` asks: 1 copies, 2 mirrors left and
// right, 3 turns by 180 degrees, 4 mirrors top and bottom, 5 mirrors at the diagonal from the top
// left, 6 turns by 90 degrees clockwise, 7 mirrors at the other diagonal, 8 turns by 90 degrees
// counterclockwise. w x h is srcw x srch for 1 to 4, srch x srcw for 5 to 8. Errors, strides and
// YUV 4:2:0 as above.
int kanna_rotate_c1(const unsigned char* src, int srcw, int srch, unsigned char* dst, int w, int h,
                    int type);
int kanna_rotate_c2(const unsigned char* src, int srcw, int srch, unsigned char* dst, int w, int h,
                    int type);
int kanna_rotate_c3(const unsigned char* src, int srcw, int srch, unsigned char* dst, int w, int h,
                    int type);
int kanna_rotate_c4(const unsigned char* src, int srcw, int srch, unsigned char* dst, int w, int h,
                    int type);
int kanna_rotate_c1(const unsigned char* src, int srcw, int srch, int srcstride, unsigned char* dst,
                    int w, int h, int stride, int type);
int kanna_rotate_c2(const unsigned char* src, int srcw, int srch, int srcstride, unsigned char* dst,
                    int w, int h, int stride, int type);
int kanna_rotate_c3(const unsigned char* src, int srcw, int srch, int srcstride, unsigned char* dst,
                    int w, int h, int stride, int type);
int kanna_rotate_c4(const unsigned char* src, int srcw, int srch, int srcstride, unsigned char* dst,
                    int w, int h, int stride, int type);
int kanna_rotate_yuv420sp(const unsigned char* src, int srcw, int srch, unsigned char* dst, int w,
                          int h, int type);
#endif  // QUOLL_PIXEL_ROTATE

#if QUOLL_PIXEL_AFFINE
// An affine transform tm takes (x, y) to (tm[0] * x + tm[1] * y + tm[2], tm[3] * x + tm[4] * y +
// tm[5]).
//
// The rotation by `angle` degrees, counterclockwise on an image whose y goes down, times `scale`,
// that leaves (dx, dy) where it is.
void get_rotation_matrix(float angle, float scale, float dx, float dy, float* tm);
// The rotation, uniform scale and translation that take num_point points (x, y) to others with the
// least sum of squared distances (Umeyama's problem without reflection). An error if there are
// fewer than 2 different points.
int get_affine_transform(const float* points_from, const float* points_to, int num_point,
                         float* tm);
// Zeros when tm has no inverse. tm_inv may be tm.
void invert_affine_transform(const float* tm, float* tm_inv);

// Pixel (x, y) of dst is the bilinear sample of src at tm * (x, y): tm goes from dst to src. Places
// outside src get the colour v, whose bytes from the lowest on are the channels; with type -233
// (BORDER_TRANSPARENT) they keep the pixel of dst. Positions and weights have 10 fraction bits;
// results may differ by 1 or 2 from exact arithmetic. Errors, strides and YUV 4:2:0 as above; src
// and dst must not overlap.
int warpaffine_bilinear_c1(const unsigned char* src, int srcw, int srch, unsigned char* dst, int w,
                           int h, const float* tm, int type = 0, unsigned int v = 0);
int warpaffine_bilinear_c2(const unsigned char* src, int srcw, int srch, unsigned char* dst, int w,
                           int h, const float* tm, int type = 0, unsigned int v = 0);
int warpaffine_bilinear_c3(const unsigned char* src, int srcw, int srch, unsigned char* dst, int w,
                           int h, const float* tm, int type = 0, unsigned int v = 0);
int warpaffine_bilinear_c4(const unsigned char* src, int srcw, int srch, unsigned char* dst, int w,
                           int h, const float* tm, int type = 0, unsigned int v = 0);
int warpaffine_bilinear_c1(const unsigned char* src, int srcw, int srch, int srcstride,
                           unsigned char* dst, int w, int h, int stride, const float* tm,
                           int type = 0, unsigned int v = 0);
int warpaffine_bilinear_c2(const unsigned char* src, int srcw, int srch, int srcstride,
                           unsigned char* dst, int w, int h, int stride, const float* tm,
                           int type = 0, unsigned int v = 0);
int warpaffine_bilinear_c3(const unsigned char* src, int srcw, int srch, int srcstride,
                           unsigned char* dst, int w, int h, int stride, const float* tm,
                           int type = 0, unsigned int v = 0);
int warpaffine_bilinear_c4(const unsigned char* src, int srcw, int srch, int srcstride,
                           unsigned char* dst, int w, int h, int stride, const float* tm,
                           int type = 0, unsigned int v = 0);
// The bytes of v are Y, then the chroma pair.
int warpaffine_bilinear_yuv420sp(const unsigned char* src, int srcw, int srch, unsigned char* dst,
                                 int w, int h, const float* tm, int type = 0, unsigned int v = 0);
#endif  // QUOLL_PIXEL_AFFINE

#if QUOLL_PIXEL_DRAWING
// Drawing into an image of w x h pixels; what is outside is cut off. The bytes of `color` from the
// lowest on are the channels (for YUV 4:2:0, whose sizes must be even: Y, then the chroma pair;
// coordinates and thickness are halved for the chroma plane). thickness -1 fills; otherwise it is
// at least 1. Errors and strides as above.
//
// The outline runs along x = rx and rx + rw, y = ry and ry + rh; a line of thickness t covers t / 2
// pixels before that coordinate, and the others from it on. A filled rectangle has exactly rw x rh
// pixels.
int draw_rectangle_c1(unsigned char* pixels, int w, int h, int rx, int ry, int rw, int rh,
                      unsigned int color, int thickness);
int draw_rectangle_c2(unsigned char* pixels, int w, int h, int rx, int ry, int rw, int rh,
                      unsigned int color, int thickness);
int draw_rectangle_c3(unsigned char* pixels, int w, int h, int rx, int ry, int rw, int rh,
                      unsigned int color, int thickness);
int draw_rectangle_c4(unsigned char* pixels, int w, int h, int rx, int ry, int rw, int rh,
                      unsigned int color, int thickness);
int draw_rectangle_c1(unsigned char* pixels, int w, int h, int stride, int rx, int ry, int rw,
                      int rh, unsigned int color, int thickness);
int draw_rectangle_c2(unsigned char* pixels, int w, int h, int stride, int rx, int ry, int rw,
                      int rh, unsigned int color, int thickness);
int draw_rectangle_c3(unsigned char* pixels, int w, int h, int stride, int rx, int ry, int rw,
                      int rh, unsigned int color, int thickness);
int draw_rectangle_c4(unsigned char* pixels, int w, int h, int stride, int rx, int ry, int rw,
                      int rh, unsigned int color, int thickness);
int draw_rectangle_yuv420sp(unsigned char* yuv420sp, int w, int h, int rx, int ry, int rw, int rh,
                            unsigned int color, int thickness);

// Draws the pixels at a distance d from (cx, cy) with radius - thickness / 2 <= d < radius +
// thickness / 2. A filled circle: d <= radius, without the four outermost pixels.
int draw_circle_c1(unsigned char* pixels, int w, int h, int cx, int cy, int radius,
                   unsigned int color, int thickness);
int draw_circle_c2(unsigned char* pixels, int w, int h, int cx, int cy, int radius,
                   unsigned int color, int thickness);
int draw_circle_c3(unsigned char* pixels, int w, int h, int cx, int cy, int radius,
                   unsigned int color, int thickness);
int draw_circle_c4(unsigned char* pixels, int w, int h, int cx, int cy, int radius,
                   unsigned int color, int thickness);
int draw_circle_c1(unsigned char* pixels, int w, int h, int stride, int cx, int cy, int radius,
                   unsigned int color, int thickness);
int draw_circle_c2(unsigned char* pixels, int w, int h, int stride, int cx, int cy, int radius,
                   unsigned int color, int thickness);
int draw_circle_c3(unsigned char* pixels, int w, int h, int stride, int cx, int cy, int radius,
                   unsigned int color, int thickness);
int draw_circle_c4(unsigned char* pixels, int w, int h, int stride, int cx, int cy, int radius,
                   unsigned int color, int thickness);
int draw_circle_yuv420sp(unsigned char* yuv420sp, int w, int h, int cx, int cy, int radius,
                         unsigned int color, int thickness);

// Draws the pixels whose squared distance from the line from (x0, y0) to (x1, y1) is below
// thickness / 2.
int draw_line_c1(unsigned char* pixels, int w, int h, int x0, int y0, int x1, int y1,
                 unsigned int color, int thickness);
int draw_line_c2(unsigned char* pixels, int w, int h, int x0, int y0, int x1, int y1,
                 unsigned int color, int thickness);
int draw_line_c3(unsigned char* pixels, int w, int h, int x0, int y0, int x1, int y1,
                 unsigned int color, int thickness);
int draw_line_c4(unsigned char* pixels, int w, int h, int x0, int y0, int x1, int y1,
                 unsigned int color, int thickness);
int draw_line_c1(unsigned char* pixels, int w, int h, int stride, int x0, int y0, int x1, int y1,
                 unsigned int color, int thickness);
int draw_line_c2(unsigned char* pixels, int w, int h, int stride, int x0, int y0, int x1, int y1,
                 unsigned int color, int thickness);
int draw_line_c3(unsigned char* pixels, int w, int h, int stride, int x0, int y0, int x1, int y1,
                 unsigned int color, int thickness);
int draw_line_c4(unsigned char* pixels, int w, int h, int stride, int x0, int y0, int x1, int y1,
                 unsigned int color, int thickness);
int draw_line_yuv420sp(unsigned char* yuv420sp, int w, int h, int x0, int y0, int x1, int y1,
                       unsigned int color, int thickness);

// Text in printable ASCII; a character's cell is fontpixelsize x 2 * fontpixelsize pixels, the
// first with its top left corner at (x, y), '\n' begins a line, other characters are left out.
// Edges are smooth. The size is that of the box around the cells.
int get_text_drawing_size(const char* text, int fontpixelsize, int* w, int* h);
int draw_text_c1(unsigned char* pixels, int w, int h, const char* text, int x, int y,
                 int fontpixelsize, unsigned int color);
int draw_text_c2(unsigned char* pixels, int w, int h, const char* text, int x, int y,
                 int fontpixelsize, unsigned int color);
int draw_text_c3(unsigned char* pixels, int w, int h, const char* text, int x, int y,
                 int fontpixelsize, unsigned int color);
int draw_text_c4(unsigned char* pixels, int w, int h, const char* text, int x, int y,
                 int fontpixelsize, unsigned int color);
int draw_text_c1(unsigned char* pixels, int w, int h, int stride, const char* text, int x, int y,
                 int fontpixelsize, unsigned int color);
int draw_text_c2(unsigned char* pixels, int w, int h, int stride, const char* text, int x, int y,
                 int fontpixelsize, unsigned int color);
int draw_text_c3(unsigned char* pixels, int w, int h, int stride, const char* text, int x, int y,
                 int fontpixelsize, unsigned int color);
int draw_text_c4(unsigned char* pixels, int w, int h, int stride, const char* text, int x, int y,
                 int fontpixelsize, unsigned int color);
int draw_text_yuv420sp(unsigned char* yuv420sp, int w, int h, const char* text, int x, int y,
                       int fontpixelsize, unsigned int color);
#endif  // QUOLL_PIXEL_DRAWING

}  // namespace quoll

#endif  // QUOLL_PIXEL
#endif
