// Values of s32, s8 and u8, each in a word of its own; types by their number in quoll::DType.
const int kS32 = 3, kS8 = 4, kU8 = 5;

// A whole number as it wraps in a type.
int wrapped(int x, int type) {
    if (type == kS8) return bitfieldExtract(x, 0, 8);
    if (type == kU8) return x & 255;
    return x;
}
