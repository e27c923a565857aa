// IEEE 754's: NaN stays, as it does not in max() and in a comparison with a choice, of which
// NVIDIA's compiler makes max().
float maximum(float a, float b) { return is_nan(a) ? a : is_nan(b) ? b : max(a, b); }
float minimum(float a, float b) { return is_nan(a) ? a : is_nan(b) ? b : min(a, b); }
