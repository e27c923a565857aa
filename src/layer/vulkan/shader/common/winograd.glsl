// Winograd's algorithm for 3x3 windows at steps of 1: a tile of kOut x kOut outputs is
//     A^T [(G w G^T) * (B^T d B)] A
// of the window w and the kIn x kIn inputs d below it, where * multiplies element by element, and
// adds up channels: a product of matrices for each of kPoints points. With the points of Toom and
// Cook 0, 1, -1 and infinity for 2 outputs an axis, and 0, +-kA, +-kB and infinity for 4 (kA and kB
// being roots of 1/2 and 2 lose less precision than 1 and 2).
layout(constant_id = 5) const int kOut = 2;  // 2 or 4

const int kIn = kOut + 2, kPoints = kIn * kIn;
const float kA = 0.70710678, kB = 1.41421356;

// B^T of six, or the first four.
void points_of_inputs(inout vec4 v[6]) {
    if (kOut == 2) {
        v[0] -= v[2];
        v[3] = v[1] - v[3];
        const vec4 sum = v[1] + v[2];
        v[2] -= v[1];
        v[1] = sum;
        return;
    }
    const vec4 a_even = v[4] - 2.0 * v[2], a_odd = kA * v[3] - kB * v[1];
    const vec4 b_even = v[4] - 0.5 * v[2], b_odd = kB * v[3] - kA * v[1];
    v[0] += v[4] - 2.5 * v[2];
    v[5] += v[1] - 2.5 * v[3];
    v[1] = a_even + a_odd, v[2] = a_even - a_odd;
    v[3] = b_even + b_odd, v[4] = b_even - b_odd;
}

// G of three.
void points_of_weights(inout vec4 v[6]) {
    const vec4 first = v[0], middle = v[1], last = v[2];
    if (kOut == 2) {
        v[1] = 0.5 * (first + middle + last), v[2] = 0.5 * (first - middle + last);
        v[3] = last;
        return;
    }
    const vec4 a_even = (first + 0.5 * last) * (-2.0 / 3.0), a_odd = middle * (-2.0 / 3.0 * kA);
    const vec4 b_even = (first + 2.0 * last) / 6.0, b_odd = middle * (kB / 6.0);
    v[1] = a_even + a_odd, v[2] = a_even - a_odd;
    v[3] = b_even + b_odd, v[4] = b_even - b_odd;
    v[5] = last;
}

// A^T of six, or the first four.
void outputs_of_points(inout vec4 v[6]) {
    const vec4 a_sum = v[1] + v[2], a_difference = v[1] - v[2];
    if (kOut == 2) {
        v[0] += a_sum;
        v[1] = a_difference - v[3];
        return;
    }
    const vec4 b_sum = v[3] + v[4], b_difference = v[3] - v[4];
    v[0] += a_sum + b_sum;
    v[1] = kA * a_difference + kB * b_difference;
    v[2] = 0.5 * a_sum + 2.0 * b_sum;
    v[3] = 0.5 * kA * a_difference + 2.0 * kB * b_difference + v[5];
}
