// The operations by their number in layer/binaryop.h. Those that the device leaves to others are
// not here.
float binary(float a, float b, int operation) {
    switch (operation) {
        case 0:
            return a + b;
        case 1:
            return a - b;
        case 2:
            return a * b;
        case 3:
            return a / b;
        case 4:
            return is_nan(a) || a > b ? a : b;
        case 5:
            return is_nan(a) || a < b ? a : b;
        case 7:
            return b - a;
        case 8:
            return b / a;
    }
    return 0.0;
}
