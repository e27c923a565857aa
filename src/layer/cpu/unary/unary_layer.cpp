#include "layer/cpu/unary/unary_layer.h"

#include "layer/cpu/pieces.h"

namespace quoll {

void run_unary(UnaryKernel kernel, const float* params, const Mat& in, Mat& out,
               const Option& opt) {
    const Pieces pieces(in, out);
    const int threads = threads_for(opt, 4.0 * in.total() * in.elempack);
#pragma omp parallel for num_threads(threads)
    for (int i = 0; i < pieces.count(); i++) {
        const Piece p = pieces[i];
        kernel(p.of(in), p.of(out), p.count, params);
    }
}

}  // namespace quoll
