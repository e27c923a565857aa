// a - n b, the product of two halves each without a rounding.
float rest_of(float a, float n, float b) {
    const float nh = uintBitsToFloat(floatBitsToUint(n) & 0xfffff000u), nl = n - nh;
    const float bh = uintBitsToFloat(floatBitsToUint(b) & 0xfffff000u), bl = b - bh;
    precise float rest = a - nh * bh;
    rest = rest - nh * bl;
    rest = rest - nl * bh;
    rest = rest - nl * bl;
    return rest;
}

// a / b as IEEE 754 rounds it, unless it is very near the middle between two floats. Vulkan's may be
// off by 2.5 units in the last place, which shows where quotients are rounded to whole numbers, as
// quantized values are.
float quotient(float a, float b) {
    const float q = a / b, size = abs(q), divisor = abs(b);
    const float kLeast = 1e-15, kMost = 1e15;  // within these no product overflows or is denormal
    if (!(size > kLeast && size < kMost && divisor > kLeast && divisor < kMost)) return q;
    precise const float exact = q + rest_of(a, q, b) / b;
    return exact;
}
