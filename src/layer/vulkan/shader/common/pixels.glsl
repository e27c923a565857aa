// Bytes of pixels, and the fixed point of image/pixel_resize.cpp: the same bits.
layout(set = 0, binding = 0) readonly buffer Pixels { uint words[]; };

const int kGray = -2;  // of PixelPlan

int byte_at(uint i) { return int(words[i >> 2] >> (8u * (i & 3u)) & 255u); }

// Two samples of an axis and their weights, of 11 fraction bits.
struct Tap {
    uint first, second;
    int weights[2];
};

// The table has two words for each: the first sample, and both weights. last: of the axis.
Tap tap_at(uint table, uint i, uint last) {
    Tap tap;
    tap.first = words[table + 2u * i];
    tap.second = min(tap.first + 1u, last);
    const uint both = words[table + 2u * i + 1u];
    tap.weights[0] = int(both & 65535u), tap.weights[1] = int(both >> 16);
    return tap;
}

// Values above left, above right, below left, below right.
int blend(int values[4], Tap across, Tap down) {
    const int above = (values[0] * across.weights[0] + values[1] * across.weights[1]) >> 4;
    const int below = (values[2] * across.weights[0] + values[3] * across.weights[1]) >> 4;
    const int sum = ((above * down.weights[0]) >> 16) + ((below * down.weights[1]) >> 16);
    return (sum + 2) >> 2;
}

int luma(int red, int green, int blue) { return (77 * red + 150 * green + 29 * blue) >> 8; }
