// Shapes and text on interleaved pixels of 1 to 4 bytes. Coordinates are 64 bits wide inside, so
// that sums of any ints are right; only pixels inside the image are visited.
#include <math.h>
#include <stdint.h>

#include <algorithm>
#include <vector>

#include "runtime/exceptions.h"
#include "image/pixel.h"
#include "image/pixel_drawing_font.h"
#include "quoll/image.h"
#include "quoll/log.h"
#include "quoll/status.h"

namespace quoll {

namespace {

struct Canvas {
    unsigned char* pixels;
    int w, h;
    ptrdiff_t stride;
    int channels;
    unsigned int color;
    unsigned char* at(int64_t x, int64_t y) const {
        return pixels + (ptrdiff_t)y * stride + (ptrdiff_t)x * channels;
    }
    bool valid(const char* function) const {
        return valid_image(pixels, w, h, stride, channels, function);
    }
    void paint(int64_t x, int64_t y) const {
        unsigned char* p = at(x, y);
        for (int k = 0; k < channels; k++) p[k] = color_byte(color, k);
    }
    // alpha 0 to 255
    void mix(int64_t x, int64_t y, int alpha) const {
        unsigned char* p = at(x, y);
        for (int k = 0; k < channels; k++)
            p[k] = (unsigned char)((p[k] * (255 - alpha) + color_byte(color, k) * alpha) / 255);
    }
};

// Columns x0 to x1 - 1 and rows y0 to y1 - 1, cut to the image.
struct Box {
    int64_t x0, y0, x1, y1;
    Box(const Canvas& c, int64_t left, int64_t top, int64_t right, int64_t bottom)
        : x0(std::max<int64_t>(left, 0)),
          y0(std::max<int64_t>(top, 0)),
          x1(std::min<int64_t>(right, c.w)),
          y1(std::min<int64_t>(bottom, c.h)) {}
};

void fill(const Canvas& c, int64_t left, int64_t top, int64_t right, int64_t bottom) {
    const Box box(c, left, top, right, bottom);
    for (int64_t y = box.y0; y < box.y1; y++)
        for (int64_t x = box.x0; x < box.x1; x++) c.paint(x, y);
}

bool valid_thickness(int thickness, bool may_fill, const char* function) {
    if (thickness >= 1 || (may_fill && thickness == -1)) return true;
    QUOLL_LOGE("[%s] thickness: expected at least 1%s, got %d", function,
               may_fill ? ", or -1 to fill" : "", thickness);
    return false;
}

int paint_rectangle(const Canvas& c, int64_t x, int64_t y, int64_t w, int64_t h, int thickness) {
    if (!c.valid("draw_rectangle") || !valid_thickness(thickness, true, "draw_rectangle"))
        return kError;
    if (thickness == -1) {
        fill(c, x, y, x + w, y + h);
        return kOk;
    }
    const int64_t before = thickness / 2, from = thickness - before;
    fill(c, x - before, y - before, x + w + from, y + from);
    fill(c, x - before, y + h - before, x + w + from, y + h + from);
    fill(c, x - before, y + from, x + from, y + h - before);
    fill(c, x + w - before, y + from, x + w + from, y + h - before);
    return kOk;
}

int paint_circle(const Canvas& c, int64_t cx, int64_t cy, int64_t radius, int thickness) {
    if (!c.valid("draw_circle") || !valid_thickness(thickness, true, "draw_circle")) return kError;
    if (radius < 0) {
        QUOLL_LOGE("[draw_circle] radius: expected at least 0, got %lld", (long long)radius);
        return kError;
    }
    const bool filled = thickness == -1;
    const int64_t reach = filled ? radius - 1 : radius + ((int64_t)thickness + 1) / 2;
    const double half = filled ? 0 : thickness / 2.0, outer = radius + half,
                 inner = std::max(0.0, radius - half);
    const Box box(c, cx - reach, cy - reach, cx + reach + 1, cy + reach + 1);
    for (int64_t y = box.y0; y < box.y1; y++) {
        for (int64_t x = box.x0; x < box.x1; x++) {
            const double dx = (double)(x - cx), dy = (double)(y - cy), square = dx * dx + dy * dy;
            if (filled ? square <= outer * outer
                       : square >= inner * inner && square < outer * outer)
                c.paint(x, y);
        }
    }
    return kOk;
}

// The squared distance of (x, y) from a line, infinite beyond its ends.
double distance_beside(double x, double y, double x0, double y0, double x1, double y1) {
    const double dx = x1 - x0, dy = y1 - y0, length = dx * dx + dy * dy;
    const double along = ((x - x0) * dx + (y - y0) * dy) / length;
    if (!(along >= 0 && along <= 1)) return INFINITY;  // a line of one point has no sides
    const double px = x - x0 - dx * along, py = y - y0 - dy * along;
    return px * px + py * py;
}

int paint_line(const Canvas& c, int64_t x0, int64_t y0, int64_t x1, int64_t y1, int thickness) {
    if (!c.valid("draw_line") || !valid_thickness(thickness, false, "draw_line")) return kError;
    const int64_t reach = ((int64_t)thickness + 1) / 2;
    const Box box(c, std::min(x0, x1) - reach, std::min(y0, y1) - reach,
                  std::max(x0, x1) + reach + 1, std::max(y0, y1) + reach + 1);
    for (int64_t y = box.y0; y < box.y1; y++)
        for (int64_t x = box.x0; x < box.x1; x++)
            if (distance_beside((double)x, (double)y, (double)x0, (double)y0, (double)x1,
                                (double)y1) < thickness / 2.0)
                c.paint(x, y);
    return kOk;
}

struct Segment {
    float x0, y0, x1, y1;
};

// Grid points are the centres of pixels when a character is kCellWidth pixels wide.
float grid(char ch, char zero, float scale) { return ((float)(ch - zero) - 0.5f) * scale; }

std::vector<Segment> segments_of(char ch, float scale) {
    std::vector<Segment> segments;
    const char* p = glyph_strokes(ch);
    while (*p) {
        const bool dot = p[2] == ' ' || p[2] == '\0';
        const char* next = dot ? p : p + 2;
        segments.push_back({grid(p[0], '0', scale), grid(p[1], 'a', scale),
                            grid(next[0], '0', scale), grid(next[1], 'a', scale)});
        p += 2;
        if (!dot && (p[2] == ' ' || p[2] == '\0')) p += 2;  // the line's last point
        if (*p == ' ') p++;
    }
    return segments;
}

float distance_from(const Segment& s, float x, float y) {
    const float dx = s.x1 - s.x0, dy = s.y1 - s.y0, length = dx * dx + dy * dy;
    float along = length > 0 ? ((x - s.x0) * dx + (y - s.y0) * dy) / length : 0.f;
    along = std::min(1.f, std::max(0.f, along));
    return hypotf(x - s.x0 - dx * along, y - s.y0 - dy * along);
}

// One character with the top left corner of its cell at (left, top).
void glyph(const Canvas& c, char ch, int64_t left, int64_t top, int64_t size) {
    const Box box(c, left, top, left + size, top + 2 * size);
    if (box.x0 >= box.x1 || box.y0 >= box.y1) return;
    const float scale = (float)size / kCellWidth;
    // Half the width of a stroke: 5/8 of a unit, but what is thinner than a pixel fades.
    const float half = std::max(0.5f, scale * 0.625f);
    const std::vector<Segment> segments = segments_of(ch, scale);
    for (int64_t y = box.y0; y < box.y1; y++) {
        for (int64_t x = box.x0; x < box.x1; x++) {
            float nearest = half + 1;
            for (const Segment& s : segments)
                nearest = std::min(
                    nearest, distance_from(s, (float)(x - left) + 0.5f, (float)(y - top) + 0.5f));
            const float cover = std::min(1.f, half + 0.5f - nearest);  // of the pixel
            if (cover > 0) c.mix(x, y, (int)(cover * 255 + 0.5f));
        }
    }
}

bool printable(char ch) { return ch >= ' ' && ch <= '~'; }

bool valid_text(const char* text, int size, const char* function) {
    if (text && size >= 1) return true;
    QUOLL_LOGE("[%s] expected a text and a font size of at least 1, got %s and %d", function,
               text ? "one" : "null", size);
    return false;
}

int paint_text(const Canvas& c, const char* text, int left, int top, int size) {
    return catch_no_memory("draw_text", [&]() -> int {
        if (!c.valid("draw_text") || !valid_text(text, size, "draw_text")) return kError;
        int64_t x = left, y = top;
        for (; *text; text++) {
            if (*text == '\n') x = left, y += 2 * (int64_t)size;
            if (!printable(*text)) continue;
            glyph(c, *text, x, y, size);
            x += size;
        }
        return kOk;
    });
}

}  // namespace

int get_text_drawing_size(const char* text, int fontpixelsize, int* w, int* h) {
    *w = *h = 0;
    if (!valid_text(text, fontpixelsize, "get_text_drawing_size")) return kError;
    int64_t line = 0, longest = 0, lines = 1;
    for (; *text; text++) {
        if (*text == '\n') line = 0, lines++;
        longest = std::max(longest, line += printable(*text));
    }
    const int64_t width = longest * fontpixelsize, height = lines * 2 * fontpixelsize;
    if (width > INT32_MAX || height > INT32_MAX) {
        QUOLL_LOGE("[get_text_drawing_size] the text would take %lld x %lld pixels",
                   (long long)width, (long long)height);
        return kError;
    }
    *w = (int)width, *h = (int)height;
    return kOk;
}

// paint_name is the function here; the lists are its parameters and its arguments behind the
// canvas.
#define QUOLL_DRAW_C(C, name, parameters, ...)                                              \
    int draw_##name##_c##C(unsigned char* pixels, int w, int h, QUOLL_UNPACK parameters) {  \
        return paint_##name(Canvas{pixels, w, h, (ptrdiff_t)w * C, C, color}, __VA_ARGS__); \
    }                                                                                       \
    int draw_##name##_c##C(unsigned char* pixels, int w, int h, int stride,                 \
                           QUOLL_UNPACK parameters) {                                       \
        return paint_##name(Canvas{pixels, w, h, stride, C, color}, __VA_ARGS__);           \
    }
#define QUOLL_UNPACK(...) __VA_ARGS__
#define QUOLL_DRAW(name, parameters, ...)          \
    QUOLL_DRAW_C(1, name, parameters, __VA_ARGS__) \
    QUOLL_DRAW_C(2, name, parameters, __VA_ARGS__) \
    QUOLL_DRAW_C(3, name, parameters, __VA_ARGS__) \
    QUOLL_DRAW_C(4, name, parameters, __VA_ARGS__)
QUOLL_DRAW(rectangle, (int rx, int ry, int rw, int rh, unsigned int color, int thickness), rx, ry,
           rw, rh, thickness)
QUOLL_DRAW(circle, (int cx, int cy, int radius, unsigned int color, int thickness), cx, cy, radius,
           thickness)
QUOLL_DRAW(line, (int x0, int y0, int x1, int y1, unsigned int color, int thickness), x0, y0, x1,
           y1, thickness)
QUOLL_DRAW(text, (const char* text, int x, int y, int fontpixelsize, unsigned int color), text, x,
           y, fontpixelsize)
#undef QUOLL_DRAW
#undef QUOLL_DRAW_C
#undef QUOLL_UNPACK

static int chroma_thickness(int thickness) {
    return thickness < 2 ? thickness : thickness / 2;  // -1 and 1 stay
}

int draw_rectangle_yuv420sp(unsigned char* yuv420sp, int w, int h, int rx, int ry, int rw, int rh,
                            unsigned int color, int thickness) {
    const Yuv420sp planes(yuv420sp, w, h);
    if (!planes.valid("draw_rectangle_yuv420sp")) return kError;
    QUOLL_RETURN_IF_ERROR(draw_rectangle_c1(yuv420sp, w, h, rx, ry, rw, rh, color, thickness));
    return draw_rectangle_c2((unsigned char*)planes.uv, w / 2, h / 2, rx / 2, ry / 2, rw / 2,
                             rh / 2, color >> 8, chroma_thickness(thickness));
}

int draw_circle_yuv420sp(unsigned char* yuv420sp, int w, int h, int cx, int cy, int radius,
                         unsigned int color, int thickness) {
    const Yuv420sp planes(yuv420sp, w, h);
    if (!planes.valid("draw_circle_yuv420sp")) return kError;
    QUOLL_RETURN_IF_ERROR(draw_circle_c1(yuv420sp, w, h, cx, cy, radius, color, thickness));
    return draw_circle_c2((unsigned char*)planes.uv, w / 2, h / 2, cx / 2, cy / 2, radius / 2,
                          color >> 8, chroma_thickness(thickness));
}

int draw_line_yuv420sp(unsigned char* yuv420sp, int w, int h, int x0, int y0, int x1, int y1,
                       unsigned int color, int thickness) {
    const Yuv420sp planes(yuv420sp, w, h);
    if (!planes.valid("draw_line_yuv420sp")) return kError;
    QUOLL_RETURN_IF_ERROR(draw_line_c1(yuv420sp, w, h, x0, y0, x1, y1, color, thickness));
    return draw_line_c2((unsigned char*)planes.uv, w / 2, h / 2, x0 / 2, y0 / 2, x1 / 2, y1 / 2,
                        color >> 8, chroma_thickness(thickness));
}

int draw_text_yuv420sp(unsigned char* yuv420sp, int w, int h, const char* text, int x, int y,
                       int fontpixelsize, unsigned int color) {
    const Yuv420sp planes(yuv420sp, w, h);
    if (!planes.valid("draw_text_yuv420sp")) return kError;
    QUOLL_RETURN_IF_ERROR(draw_text_c1(yuv420sp, w, h, text, x, y, fontpixelsize, color));
    return draw_text_c2((unsigned char*)planes.uv, w / 2, h / 2, text, x / 2, y / 2,
                        std::max(fontpixelsize / 2, 1), color >> 8);
}

}  // namespace quoll
