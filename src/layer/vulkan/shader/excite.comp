// Squeeze-and-excitation: the means of all channels from sums over parts of the pixels, a dense
// layer to a few values, and another one to a factor for each channel. A group computes the factors
// of 64 channels of an item. Each group computes the few values itself, unless there are so many
// that a separate dispatch computes them, 64 per group.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "storage.glsl"
#include "math.glsl"
#include "activation.glsl"

layout(constant_id = 0) const int kFirstActivation = 0;
layout(constant_id = 1) const int kSecondActivation = 0;
layout(constant_id = 2) const bool kHardSigmoid = false;  // behind the second
// Weights of an output follow each other, in whole vec4s; else those of an input do.
layout(constant_id = 3) const bool kFirstRows = true;
layout(constant_id = 4) const bool kSecondRows = true;
layout(constant_id = 5) const bool kFirstBias = false;
layout(constant_id = 6) const bool kSecondBias = false;
layout(constant_id = 7) const uint kChannels = 4;  // vec4s
layout(constant_id = 8) const uint kMiddle = 1;    // vec4s of the few values
// What it makes: all, the values between, from these the factors.
layout(constant_id = 9) const int kPart = 0;
layout(local_size_x = 512) in;
layout(set = 0, binding = 0) readonly buffer Sums { vec4 sums[]; };  // [item][parts][kChannels]
READS(1, First, first);
READS4(1, First4, first4);  // the same
layout(set = 0, binding = 2) readonly buffer FirstBias { float first_bias[]; };
READS(3, Second, second);
READS4(3, Second4, second4);
layout(set = 0, binding = 4) readonly buffer SecondBias { float second_bias[]; };
WRITES(5, Output, y);
layout(set = 0, binding = 6) buffer Between { vec4 between[]; };
layout(push_constant) uniform Push {
    uint parts, channels, middle_size;
    uint first_pitch, second_pitch;  // of rows in vec4s, of inputs in scalars
    float pixels, first_a, first_b, second_a, second_b, slope, shift;
};
// Rows of 32 partial sums are a vec4 longer, so that they begin in different banks.
const uint kRow = 33;
shared vec4 means[kChannels];
shared vec4 middle[kMiddle];
shared vec4 partial[16 * kRow];

void make_means(uint thread) {
    // Several invocations share a channel where there are few.
    const uint lanes = kChannels >= 512 ? 1 : 512 / kChannels, across = 512 / lanes;
    for (uint first_c = 0; first_c < kChannels; first_c += across) {
        const uint c = first_c + thread % across, lane = thread / across;
        vec4 sum = vec4(0.0);
        if (c < kChannels && lane < lanes) {
            const uint from = gl_WorkGroupID.y * parts * kChannels + c;
            uint i = lane;
            for (; i + 3 * lanes < parts; i += 4 * lanes)
                sum += (sums[from + i * kChannels] + sums[from + (i + lanes) * kChannels]) +
                       (sums[from + (i + 2 * lanes) * kChannels] +
                        sums[from + (i + 3 * lanes) * kChannels]);
            for (; i < parts; i += lanes) sum += sums[from + i * kChannels];
        }
        partial[thread] = sum;
        barrier();
        if (thread < across && c < kChannels) {
            for (uint i = 1; i < lanes; i++) sum += partial[i * across + thread];
            means[c] = sum / pixels;
        }
        barrier();
    }
}

vec4 first_weights(uint o, uint k) {
    if (kFirstRows) return vec4(first4[o * first_pitch + k]);
    vec4 w;
    for (uint lane = 0; lane < 4; lane++)
        w[lane] = float(first[min(4 * k + lane, channels - 1) * first_pitch + o]);
    return w;
}

vec4 second_weights(uint o, uint k) {
    if (kSecondRows) return vec4(second4[o * second_pitch + k]);
    vec4 w;
    for (uint lane = 0; lane < 4; lane++)
        w[lane] = float(second[min(4 * k + lane, middle_size - 1) * second_pitch + o]);
    return w;
}

// 64 at a time: an invocation computes a part of 4, from four means at a time, so that many loads
// are in flight at once.
void make_middle(uint thread, uint first_value, uint last_value) {
    const uint lane = thread % 32, row = thread / 32;
    for (uint begin = first_value; begin < last_value; begin += 64) {
        vec4 sum = vec4(0.0);
        for (uint k = lane; k < kChannels; k += 128) {
            vec4 w[16];
            [[unroll]] for (uint i = 0; i < 16; i++)
                w[i] = first_weights(min(begin + 4 * row + i % 4, middle_size - 1),
                                     min(k + i / 4 * 32, kChannels - 1));
            [[unroll]] for (uint i = 0; i < 16; i++)
                if (k + i / 4 * 32 < kChannels) sum[i % 4] += dot(means[k + i / 4 * 32], w[i]);
        }
        partial[row * kRow + lane] = sum;
        barrier();
        const uint o = begin + thread;
        if (thread < 64 && o < 4 * kMiddle) {
            float sum = kFirstBias && o < middle_size ? first_bias[o] : 0.0;
            for (uint i = 0; i < 32; i++) sum += partial[thread / 4 * kRow + i][thread % 4];
            middle[o / 4][o % 4] =
                o < middle_size ? activated(sum, kFirstActivation, first_a, first_b) : 0.0;
        }
        barrier();
    }
}

void main() {
    const uint thread = gl_LocalInvocationID.x;
    const uint begin = 64 * gl_WorkGroupID.x;
    if (kPart != 2) {
        make_means(thread);
        if (kPart == 0)
            make_middle(thread, 0, 4 * kMiddle);
        else
            make_middle(thread, begin, min(begin + 64, 4 * kMiddle));
    }
    const uint at = begin / 4 + thread;
    if (kPart == 1) {
        if (thread < 16 && at < kMiddle) between[gl_WorkGroupID.y * kMiddle + at] = middle[at];
        return;
    }
    if (kPart == 2) {
        if (thread < kMiddle) middle[thread] = between[gl_WorkGroupID.y * kMiddle + thread];
        barrier();
    }
    const uint o = begin + thread / 8, lane = thread % 8;
    float sum = 0.0;
    [[unroll]] for (uint k = 0; k < kMiddle; k += 8)
        if (k + lane < kMiddle)
            sum += dot(middle[k + lane], second_weights(min(o, channels - 1), k + lane));
    partial[thread / 4][thread % 4] = sum;
    barrier();
    const uint c = begin + thread;
    if (thread >= 64 || c >= 4 * kChannels) return;
    const vec4 all = partial[2 * thread] + partial[2 * thread + 1];
    sum = (all.x + all.y) + (all.z + all.w);
    if (kSecondBias && c < channels) sum += second_bias[c];
    sum = activated(sum, kSecondActivation, second_a, second_b);
    if (kHardSigmoid) sum = activation_clip(sum * slope + shift, 0.0, 1.0);
    // A product reads whole vec4s.
    y[gl_WorkGroupID.y * 4 * kChannels + c] = STORED(c < channels ? sum : 0.0);
}
