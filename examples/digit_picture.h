// A handwritten digit that is compiled into the examples, and printing what the digits model makes
// of it.
#ifndef QUOLL_EXAMPLES_DIGIT_PICTURE_H
#define QUOLL_EXAMPLES_DIGIT_PICTURE_H

#include <stdio.h>
#include <string.h>

#include <quoll/mat.h>

// 8 x 8 pixels from paper to ink.
static const char kInk[] = " .:-=+*#%@";
static const char* const kPicture[8] = {
    "  ##:   ",  //
    " :@@=   ",  //
    " -#==   ",  //
    "  --#   ",  //
    "   #+   ",  //
    "   %--- ",  //
    "  #@#%+ ",  //
    " .####. ",
};

// The picture as the model takes it: one channel of 0 (paper) to 1 (ink).
inline quoll::Mat digit_picture() {
    quoll::Mat m(8, 8, 1);
    for (int y = 0; y < 8; y++)
        for (int x = 0; x < 8; x++)
            m.row(y)[x] = (float)(strchr(kInk, kPicture[y][x]) - kInk) / (sizeof(kInk) - 2);
    return m;
}

// Prints picture and answer, ten probabilities; returns the likeliest digit.
inline int show_digit(const quoll::Mat& probabilities) {
    int best = 0;
    for (int y = 0; y < 8; y++) printf("|%s|\n", kPicture[y]);
    for (int i = 1; i < probabilities.w; i++)
        if (probabilities[i] > probabilities[best]) best = i;
    printf("digit %d, probability %.4f\n", best, probabilities[best]);
    return best;
}

#endif
