#include "draw.h"

#include <string.h>

#include <algorithm>
#include <vector>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb/stb_easy_font.h>
#pragma GCC diagnostic pop

namespace quoll {

void fill_rectangle(Image& image, int x, int y, int w, int h, Color color) {
    const int x0 = std::max(x, 0), x1 = (int)std::min<long long>((long long)x + w, image.w);
    const int y0 = std::max(y, 0), y1 = (int)std::min<long long>((long long)y + h, image.h);
    for (int row = y0; row < y1; row++) {
        unsigned char* p = &image.rgb[((size_t)row * image.w + x0) * 3];
        for (int i = x0; i < x1; i++, p += 3) p[0] = color.r, p[1] = color.g, p[2] = color.b;
    }
}

void draw_rectangle(Image& image, int x, int y, int w, int h, int thickness, Color color) {
    fill_rectangle(image, x, y, w, thickness, color);
    fill_rectangle(image, x, y + h - thickness, w, thickness, color);
    fill_rectangle(image, x, y, thickness, h, color);
    fill_rectangle(image, x + w - thickness, y, thickness, h, color);
}

// The font has the 95 printable ASCII characters, and trusts its caller.
static std::vector<char> printable(const std::string& text) {
    std::vector<char> chars(text.begin(), text.end());
    for (char& ch : chars)
        if (ch < ' ' || ch > '~') ch = '?';
    chars.push_back('\0');
    return chars;
}

void draw_text(Image& image, int x, int y, const std::string& text, int scale, Color color) {
    // The font comes as quads of four vertices: x, y and z as floats, and a colour of four bytes.
    struct Vertex {
        float x, y, z;
        unsigned char color[4];
    };
    std::vector<Vertex> vertices(text.size() * 128 + 4);
    std::vector<char> chars = printable(text);
    const int quads = stb_easy_font_print(0, 0, chars.data(), nullptr, vertices.data(),
                                          (int)(vertices.size() * sizeof(Vertex)));
    for (int i = 0; i < quads; i++) {
        const Vertex &a = vertices[i * 4], &b = vertices[i * 4 + 2];
        fill_rectangle(image, x + (int)a.x * scale, y + (int)a.y * scale,
                       ((int)b.x - (int)a.x) * scale, ((int)b.y - (int)a.y) * scale, color);
    }
}

int text_width(const std::string& text, int scale) {
    std::vector<char> chars = printable(text);
    return stb_easy_font_width(chars.data()) * scale;
}

int text_height(int scale) {
    char line[] = "0";
    return stb_easy_font_height(line) * scale;
}

}  // namespace quoll
