// Boxes and short texts on a picture. Everything is clipped to it.
#ifndef QUOLL_TOOLS_DRAW_H
#define QUOLL_TOOLS_DRAW_H

#include <string>

#include "image_file.h"

namespace quoll {

struct Color {
    unsigned char r, g, b;
};

void fill_rectangle(Image& image, int x, int y, int w, int h, Color color);
// The border lies inside the rectangle.
void draw_rectangle(Image& image, int x, int y, int w, int h, int thickness, Color color);

// ASCII text; its box is text_width() x text_height() pixels with the top left corner at (x, y).
// scale: pixels for one dot of the font.
void draw_text(Image& image, int x, int y, const std::string& text, int scale, Color color);
int text_width(const std::string& text, int scale);
int text_height(int scale);

}  // namespace quoll

#endif
