#include "image/pixel_drawing_font.h"

namespace quoll {

static const char* const kGlyphs[] = {
    "",                                     // blank
    "4d4j 4m",                              // !
    "3d3f 5d5f",                            // "
    "3d2m 6d5m 1g7g 1j7j",                  // #
    "7f6e2e1f1g2h6h7i7k6l2l1k 4c4n",        // $
    "7d1m 2d3e3f2g1f1e2d 6j7k7l6m5l5k6j",   // %
    "7m3g3e4d5d6e6f2j2l3m5m7j",             // &
    "4d4f",                                 // '
    "5c3f3l5o",                             // (
    "3c5f5l3o",                             // )
    "4e4k 1f7j 7f1j",                       // *
    "4f4l 1i7i",                            // +
    "4l4m3o",                               // ,
    "2i6i",                                 // -
    "4m",                                   // .
    "7c1n",                                 // /
    "2d6d7e7l6m2m1l1e2d 6f2j",              // 0
    "2f4d4m 2m6m",                          // 1
    "1f1e2d6d7e7g1m7m",                     // 2
    "1e2d6d7e7g6h3h 6h7i7l6m2m1l",          // 3
    "6m6d1j7j",                             // 4
    "7d1d1h6h7i7l6m2m1l",                   // 5
    "7e6d2d1e1l2m6m7l7i6h1h",               // 6
    "1d7d3m",                               // 7
    "2d6d7e7g6h2h1g1e2d 2h1i1l2m6m7l7i6h",  // 8
    "1l2m6m7l7e6d2d1e1g2h7h",               // 9
    "4g 4l",                                // :
    "4g 4l4m3o",                            // ;
    "7f1i7l",                               // <
    "1g7g 1k7k",                            // =
    "1f7i1l",                               // >
    "1f1e2d6d7e7g4i4j 4m",                  // ?
    "6k4k3j3h4g6g6k7k7e6d2d1e1l2m6m",       // @
    "1m4d7m 2j6j",                          // A
    "1d1m6m7l7i6h1h 6h7g7e6d1d",            // B
    "7f7e6d2d1e1l2m6m7l7k",                 // C
    "1d1m5m7k7f5d1d",                       // D
    "7d1d1m7m 1h5h",                        // E
    "7d1d1m 1h5h",                          // F
    "7f7e6d2d1e1l2m6m7l7i4i",               // G
    "1d1m 7d7m 1h7h",                       // H
    "2d6d 4d4m 2m6m",                       // I
    "3d7d 6d6l5m2m1l1k",                    // J
    "1d1m 7d1i 3g7m",                       // K
    "1d1m7m",                               // L
    "1m1d4i7d7m",                           // M
    "1m1d7m7d",                             // N
    "2d6d7e7l6m2m1l1e2d",                   // O
    "1m1d6d7e7h6i1i",                       // P
    "2d6d7e7l6m2m1l1e2d 4j7n",              // Q
    "1m1d6d7e7h6i1i 4i7m",                  // R
    "7e6d2d1e1g2h6h7i7l6m2m1l",             // S
    "1d7d 4d4m",                            // T
    "1d1l2m6m7l7d",                         // U
    "1d4m7d",                               // V
    "1d2m4h6m7d",                           // W
    "1d7m 7d1m",                            // X
    "1d4h7d 4h4m",                          // Y
    "1d7d1m7m",                             // Z
    "5c3c3o5o",                             // [
    "1c7n",                                 // backslash
    "3c5c5o3o",                             // ]
    "1h4d7h",                               // ^
    "0o8o",                                 // _
    "3d5f",                                 // `
    "2g6g7h7m 7j2j1k1l2m7m",                // a
    "1d1m6m7l7h6g1g",                       // b
    "7h6g2g1h1l2m6m7l",                     // c
    "7d7m2m1l1h2g7g",                       // d
    "1j7j7h6g2g1h1l2m6m7l",                 // e
    "6d5d4e4m 2g6g",                        // f
    "7g7o6p2p1o 7m2m1l1h2g7g",              // g
    "1d1m 1g6g7h7m",                        // h
    "3g4g4m 2m6m 4d",                       // i
    "3g5g5o4p2p1o 5d",                      // j
    "1d1m 6g1j 3i7m",                       // k
    "3d4d4m 2m6m",                          // l
    "1m1g3g4h4m 4h5g6g7h7m",                // m
    "1m1g6g7h7m",                           // n
    "2g6g7h7l6m2m1l1h2g",                   // o
    "1p1g6g7h7l6m1m",                       // p
    "7p7g2g1h1l2m7m",                       // q
    "2m2g 2i4g6g7h",                        // r
    "7h6g2g1h1i2j6j7k7l6m2m1l",             // s
    "4d4l5m6m 2g6g",                        // t
    "1g1l2m7m 7g7m",                        // u
    "1g4m7g",                               // v
    "1g2m4i6m7g",                           // w
    "1g7m 7g1m",                            // x
    "1g4m 7g3p1p",                          // y
    "1g7g1m7m",                             // z
    "6c5c4d4h3i4j4n5o6o",                   // {
    "4c4o",                                 // |
    "2c3c4d4h5i4j4n3o2o",                   // }
    "1i2h3h5j6j7i",                         // ~
};
static_assert(sizeof(kGlyphs) / sizeof(kGlyphs[0]) == '~' - ' ' + 1, "printable ASCII");

const char* glyph_strokes(char ch) { return ch >= ' ' && ch <= '~' ? kGlyphs[ch - ' '] : ""; }

}  // namespace quoll
