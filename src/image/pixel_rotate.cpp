// Turning and mirroring: every EXIF orientation is a walk through dst beside the walk through src.
#include <string.h>

#include <algorithm>

#include "image/pixel.h"
#include "quoll/image.h"
#include "quoll/log.h"
#include "quoll/status.h"

namespace quoll {

namespace {

// How orientation `type` places a pixel of src: are x and y exchanged, then is dst mirrored?
struct Placement {
    bool exchange, mirror_x, mirror_y;
};
const Placement kPlacements[9] = {
    {},
    {false, false, false},  // 1
    {false, true, false},   // 2
    {false, true, true},    // 3
    {false, false, true},   // 4
    {true, false, false},   // 5
    {true, true, false},    // 6
    {true, true, true},     // 7
    {true, false, true},    // 8
};

// Squares of this many pixels stay in the cache while rows become columns.
const int kTile = 32;

// dst moves by step_x for a pixel of src and by step_y for a row.
template <int C>
void place(const unsigned char* src, int srcw, int srch, ptrdiff_t srcstride, unsigned char* dst,
           ptrdiff_t step_x, ptrdiff_t step_y) {
    for (int top = 0; top < srch; top += kTile) {
        const int bottom = std::min(srch - top, kTile) + top;
        for (int left = 0; left < srcw; left += kTile) {
            const int count = std::min(srcw - left, kTile);
            for (int y = top; y < bottom; y++) {
                const unsigned char* from = src + y * srcstride + (ptrdiff_t)left * C;
                unsigned char* to = dst + y * step_y + left * step_x;
                for (int x = 0; x < count; x++, from += C, to += step_x) memcpy(to, from, C);
            }
        }
    }
}

int rotate(const unsigned char* src, int srcw, int srch, ptrdiff_t srcstride, unsigned char* dst,
           int w, int h, ptrdiff_t stride, int type, int channels) {
    if (!valid_image(src, srcw, srch, srcstride, channels, "kanna_rotate source") ||
        !valid_image(dst, w, h, stride, channels, "kanna_rotate target"))
        return kError;
    if (type < 1 || type > 8) {
        QUOLL_LOGE("[kanna_rotate] type: expected 1 to 8, got %d", type);
        return kError;
    }
    const Placement& p = kPlacements[type];
    if (w != (p.exchange ? srch : srcw) || h != (p.exchange ? srcw : srch)) {
        QUOLL_LOGE("[kanna_rotate] type %d makes %d x %d of %d x %d, the target is %d x %d", type,
                   p.exchange ? srch : srcw, p.exchange ? srcw : srch, srcw, srch, w, h);
        return kError;
    }
    const ptrdiff_t right = p.mirror_x ? -channels : channels, down = p.mirror_y ? -stride : stride;
    if (p.mirror_x) dst += (ptrdiff_t)(w - 1) * channels;
    if (p.mirror_y) dst += (ptrdiff_t)(h - 1) * stride;
    const ptrdiff_t step_x = p.exchange ? down : right, step_y = p.exchange ? right : down;
    switch (channels) {
        case 1:
            place<1>(src, srcw, srch, srcstride, dst, step_x, step_y);
            break;
        case 2:
            place<2>(src, srcw, srch, srcstride, dst, step_x, step_y);
            break;
        case 3:
            place<3>(src, srcw, srch, srcstride, dst, step_x, step_y);
            break;
        default:
            place<4>(src, srcw, srch, srcstride, dst, step_x, step_y);
    }
    return kOk;
}

}  // namespace

#define QUOLL_ROTATE(C)                                                                            \
    int kanna_rotate_c##C(const unsigned char* src, int srcw, int srch, unsigned char* dst, int w, \
                          int h, int type) {                                                       \
        return rotate(src, srcw, srch, (ptrdiff_t)srcw * C, dst, w, h, (ptrdiff_t)w * C, type, C); \
    }                                                                                              \
    int kanna_rotate_c##C(const unsigned char* src, int srcw, int srch, int srcstride,             \
                          unsigned char* dst, int w, int h, int stride, int type) {                \
        return rotate(src, srcw, srch, srcstride, dst, w, h, stride, type, C);                     \
    }
QUOLL_ROTATE(1)
QUOLL_ROTATE(2)
QUOLL_ROTATE(3)
QUOLL_ROTATE(4)
#undef QUOLL_ROTATE

int kanna_rotate_yuv420sp(const unsigned char* src, int srcw, int srch, unsigned char* dst, int w,
                          int h, int type) {
    const Yuv420sp from(src, srcw, srch), to(dst, w, h);
    if (!from.valid("kanna_rotate_yuv420sp") || !to.valid("kanna_rotate_yuv420sp")) return kError;
    QUOLL_RETURN_IF_ERROR(kanna_rotate_c1(src, srcw, srch, dst, w, h, type));
    return kanna_rotate_c2(from.uv, srcw / 2, srch / 2, (unsigned char*)to.uv, w / 2, h / 2, type);
}

}  // namespace quoll
