// Lines of a blob (layer/vulkan/lines.h): a group of 64 invocations for each, or (kSerial) one.
// The shader has READS x at binding 0 and WRITES y at 1.
layout(constant_id = 0) const bool kSerial = false;
layout(constant_id = 1) const int kWithin = 1;
layout(constant_id = 2) const int kAcross = 1;
layout(local_size_x = 64) in;
struct LineAxis {
    uint size, from, to, factor;
};
layout(set = 0, binding = 2) readonly buffer LineTable { LineAxis within[6], across[6]; };
shared float parts[64], few_parts[8];

// The line of this invocation.
uint own_line() {
    const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    return kSerial ? group * 64u + gl_LocalInvocationID.x : group;
}
uint first_in_line() { return kSerial ? 0u : gl_LocalInvocationID.x; }
uint step_in_line() { return kSerial ? 1u : 64u; }

// Offsets in the input, the output and the factors.
uvec3 line_offsets(uint line) {
    uvec3 sum = uvec3(0u);
    for (int i = 0; i < kAcross; i++) {
        const LineAxis axis = across[i];
        sum += line % axis.size * uvec3(axis.from, axis.to, axis.factor);
        line /= axis.size;
    }
    return sum;
}
uvec3 value_offsets(uint i) {
    if (kWithin == 1) return i * uvec3(within[0].from, within[0].to, within[0].factor);
    uvec3 sum = uvec3(0u);
    for (int k = 0; k < kWithin; k++) {
        const LineAxis axis = within[k];
        sum += i % axis.size * uvec3(axis.from, axis.to, axis.factor);
        i /= axis.size;
    }
    return sum;
}

// The sum (0), the largest (1), the smallest (2) or the product (3) of two numbers; NaN stays.
float joined(float a, float b, int how) {
    if (how == 0) return a + b;
    if (how == 1) return maximum(a, b);
    if (how == 2) return minimum(a, b);
    return a * b;
}

// Of all invocations of a line.
float line_joined(float v, int how) {
    if (kSerial) return v;
    const uint thread = gl_LocalInvocationID.x;
    parts[thread] = v;
    barrier();
    if (thread < 8u) {
        float few = parts[thread];
        for (uint i = thread + 8u; i < 64u; i += 8u) few = joined(few, parts[i], how);
        few_parts[thread] = few;
    }
    barrier();
    float all = few_parts[0];
    for (uint i = 1u; i < 8u; i++) all = joined(all, few_parts[i], how);
    return all;
}
