// The font of draw_text: strokes on a grid, so that it is sharp at every size. Not installed.
#ifndef QUOLL_IMAGE_PIXEL_DRAWING_FONT_H
#define QUOLL_IMAGE_PIXEL_DRAWING_FONT_H

namespace quoll {

// A cell is kCellWidth x kCellHeight grid units, y down; capitals stand between y = 3 and the base
// line y = 12, small letters begin at y = 6, and tails end at y = 15.
enum { kCellWidth = 8, kCellHeight = 16 };

// The strokes of a printable ASCII character: lines separated by blanks, each a list of points, one
// digit for x and one letter for y ('a' is 0). A line of one point is a dot.
const char* glyph_strokes(char ch);

}  // namespace quoll

#endif
