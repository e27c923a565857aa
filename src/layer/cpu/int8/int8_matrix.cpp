#include "layer/cpu/int8/int8_matrix.h"

#include <limits.h>
#include <string.h>

#include <algorithm>

#include "layer/conv_window.h"

namespace quoll {

namespace {

// Values that an input kernel takes at once.
enum { kRun = 16 };

}  // namespace

int Int8Matrix::create(const Layer& layer, const Mat& weights, int outputs, float input_scale,
                       const Mat& weight_scales, const Mat& bias, const Activation& activation) {
    inputs_ = weights.w / outputs;
    input_scale_ = input_scale;
    activation_ = FusedActivation(host_kernel_set(), activation);
    std::vector<int> order((inputs_ + kRun - 1) / kRun * (size_t)kRun, -1);
    for (int i = 0; i < inputs_; i++) order[i] = i;
    std::vector<float> scales(outputs);
    for (int p = 0; p < outputs; p++)
        scales[p] =
            dequantize_scale(input_scale, weight_scales[(int64_t)p * weight_scales.w / outputs]);
    created_ = weights_.create(int8_kernels(), weights, inputs_, order, outputs, scales.data(),
                               bias.empty() ? nullptr : (const float*)bias) == kOk;
    if (created_) return kOk;
    layer.fail("out of memory for %d int8 weights", weights.w);
    return kOutOfMemory;
}

void Int8Matrix::lay_out(const Mat& rows, int y, char* to) const {
    const Int8Kernels& kernels = weights_.kernels();
    const size_t scalar = dtype_size(rows.dtype), whole = inputs_ / kRun, rest = inputs_ % kRun;
    const Int8InputKernel kernel =
        (rows.dtype == DType::s8 ? kernels.input_s8 : kernels.input_f32)[3];
    Int8Input input = {};
    input.src = rows.row<char>(y);
    input.src_pixel = input.dst_pixel = kRun;
    input.channels = input.dst_pack = kRun;
    input.pixels = whole;
    input.scale = input_scale_;
    input.dst = to;
    kernel(input);
    if (!rest) return;
    char last[kRun * sizeof(float)] = {};
    memcpy(last, (const char*)input.src + whole * kRun * scalar, rest * scalar);
    input.src = last;
    input.pixels = 1;
    input.dst = to + whole * kRun * (4 / kernels.word_k);
    kernel(input);
}

int Int8Matrix::forward(const Mat& rows, Mat& top, const Option& opt) const {
    const Int8Kernels& kernels = weights_.kernels();
    const size_t words = weights_.words();
    Mat a((int)words, rows.h, (size_t)4u, opt.workspace_allocator);
    if (a.empty()) return kOutOfMemory;
    const int threads = threads_for(opt, (double)rows.h * inputs_ * weights_.n() / 4);
#pragma omp parallel for num_threads(rows.h > 1 ? threads : 1)
    for (int y = 0; y < rows.h; y++) lay_out(rows, y, a.row<char>(y));

    const int pieces = (rows.h + kernels.max_rows - 1) / kernels.max_rows;
    std::vector<GemmRows> tiles(pieces);
    for (int i = 0; i < pieces; i++) {
        const ptrdiff_t first = (ptrdiff_t)piece_begin(rows.h, pieces, i);
        tiles[i].a = first * (ptrdiff_t)words;
        tiles[i].a_row = (ptrdiff_t)words;
        tiles[i].c = first * top.w;
        tiles[i].c_row = top.w;
        tiles[i].rows = (int)piece_length(rows.h, pieces, i);
        tiles[i].table = 0;
    }
    const GemmBlock block = {0, 0};
    Int8Problem p = {};
    p.weights = &weights_;
    p.a = (const int32_t*)a.data;
    p.rows = tiles.data(), p.num_rows = tiles.size();
    p.blocks = &block, p.num_blocks = 1;
    p.block_k = words;
    p.c = top.data;
    p.c_pack = weights_.n();
    p.activation = &activation_;
    p.row_words = words * kernels.max_rows;
    int8_run(p, threads);
    return kOk;
}

}  // namespace quoll
