// CastTo between floats and integers (FROM_INT, TO_INT).
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "index.glsl"
#include "integers.glsl"
#include "math.glsl"

layout(constant_id = 0) const int kType = kS32;
layout(constant_id = 1) const bool kBool = false;  // 1 for what is not 0
#ifdef FROM_INT
layout(set = 0, binding = 0) readonly buffer Input { int x[]; };
#else
READS(0, Input, x);
#endif
#ifdef TO_INT
layout(set = 0, binding = 1) writeonly buffer Output { int y[]; };
#else
WRITES(1, Output, y);
#endif
layout(push_constant) uniform Push { uint count, x_first, y_first; };

// Truncated and clamped to the type's range; NaN is 0.
int cut(float v) {
    if (is_nan(v)) return 0;
    if (kType == kS8) return int(clamp(v, -128.0, 127.0));
    if (kType == kU8) return int(clamp(v, 0.0, 255.0));
    if (v >= 2147483648.0) return 2147483647;
    if (v < -2147483648.0) return int(0x80000000u);
    return int(v);
}

void main() {
    const uint i = linear_index();
    if (i >= count) return;
#ifdef TO_INT
#ifdef FROM_INT
    const int v = x[x_first + i];
    y[y_first + i] = kBool ? int(v != 0) : wrapped(v, kType);
#else
    const float v = float(x[x_first + i]);
    y[y_first + i] = kBool ? int(is_nan(v) || v != 0.0) : cut(v);
#endif
#else
    y[y_first + i] = STORED(float(x[x_first + i]));
#endif
}
