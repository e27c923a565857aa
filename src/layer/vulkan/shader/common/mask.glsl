// The mask of attention.comp and its like, which have the buffers `masks` and `columns`, the push
// constants mask_ and columns_first, and kMask: 0: none; 1: `masks`, a value for each key; 2: for
// keys on a grid, the sum of a value of `masks` for its row and one of `columns` for its column.

// The row of query `row` of a head, from the begin of `masks`.
int mask_row(int head, int row) {
    return int(gl_WorkGroupID.z) * mask_.item + head * mask_.head + row * mask_.row;
}

// Of key j; from: mask_row().
float mask_of(int from, int j) {
    if (kMask == 1) return float(masks[mask_.first + from + j]);
    const int width = mask_.column;
    return float(masks[mask_.first + from + j / width]) +
           float(columns[columns_first + from / mask_.row * width + j % width]);
}
