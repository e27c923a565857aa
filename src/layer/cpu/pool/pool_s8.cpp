// Maxima of s8: the rows under a window become one, then its columns.
#include <limits.h>
#include <string.h>

#include <algorithm>

#include "layer/cpu/int8/int8.h"
#include "layer/cpu/pool/pool_layer.h"
#include "quoll/cpu.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

typedef Pooling::Axis Axis;
typedef Pooling::Span Span;

// out: the largest of the rows under the window, `size` values.
void join_rows(const Int8Kernels& kernels, const int8_t* channel, size_t slice, const Span& y,
               const Span& z, size_t size, int8_t* out) {
    const int rows = y.size < 1 || z.size < 1 ? 0 : y.size * z.size;
    if (rows == 0) return (void)memset(out, -128, size);
    const auto row = [&](int i) {
        return channel + (size_t)(z.from + i / y.size) * slice +
               (size_t)(y.from + i % y.size) * size;
    };
    if (rows == 1) return (void)memcpy(out, row(0), size);
    kernels.largest(row(0), row(1), size, out);
    for (int i = 2; i < rows; i++) kernels.largest(out, row(i), size, out);
}

// An output row from the joined rows under it.
class Columns {
public:
    Columns(const Int8Kernels& kernels, const Axis& axis, int pack)
        : kernels_(kernels), axis_(axis), pack_((size_t)pack) {
        const int64_t covered = (int64_t)(axis.out - 1) * axis.stride + axis.kernel;
        padded_ = axis.kernel > 0 && axis.before >= 0 && axis.first == axis.before &&
                  axis.last == axis.before + axis.in && covered <= 2 * ((int64_t)axis.in + 32);
        before_ = padded_ ? (size_t)axis.before : 0;
        room_ = std::max<size_t>(padded_ ? (size_t)covered : 0, before_ + axis.in) * pack_;
    }
    // Bytes of memory that a thread needs.
    size_t room() const { return 2 * room_; }
    void begin(int8_t* memory) const { memset(memory, -128, room_); }
    // Where the joined row goes.
    int8_t* row(int8_t* memory) const { return memory + before_ * pack_; }
    void run(int8_t* memory, int8_t* out) const {
        if (padded_) return whole(memory, memory + room_, out);
        for (int x = 0; x < axis_.out; x++) window(memory, x, out + x * pack_);
    }

private:
    void window(const int8_t* row, int x, int8_t* out) const {
        const Span span = axis_.at(x);
        memset(out, -128, pack_);
        for (int i = 0; i < span.size; i++)
            kernels_.largest(out, row + (size_t)(span.from + i) * pack_, pack_, out);
    }
    // Windows at all positions of the row with its padding, of which every stride-th is kept.
    void whole(const int8_t* from, int8_t* wide, int8_t* out) const {
        const int count = axis_.out;
        const size_t width = ((size_t)(count - 1) * axis_.stride + 1) * pack_;
        int8_t* const all = axis_.stride == 1 ? out : wide;
        if (axis_.kernel == 1)
            memcpy(all, from, width);
        else
            kernels_.largest(from, from + pack_, width, all);
        for (int k = 2; k < axis_.kernel; k++) kernels_.largest(all, from + k * pack_, width, all);
        if (all == out) return;
        const size_t step = axis_.stride * pack_;
        switch (pack_) {
            case 16:
                return pick<16>(all, step, out, count);
            case 8:
                return pick<8>(all, step, out, count);
            case 4:
                return pick<4>(all, step, out, count);
            default:
                return pick<1>(all, step, out, count);
        }
    }
    template <size_t pack>
    static void pick(const int8_t* from, size_t step, int8_t* to, int count) {
        for (int i = 0; i < count; i++) memcpy(to + i * pack, from + i * step, pack);
    }

    const Int8Kernels& kernels_;
    const Axis& axis_;
    const size_t pack_;
    bool padded_;           // the joined row has its padding, -128, on both sides
    size_t before_, room_;  // positions before it, bytes of it all
};

}  // namespace

int PoolingCpu::windows_s8(const Mat& in, const Axis& ax, const Axis& ay, const Axis& az, Mat& top,
                           const Option& opt) const {
    const int pack = in.elempack;
    const size_t row = (size_t)in.w * pack, out_row = (size_t)ax.out * pack;
    const size_t step = top.cstep * pack;
    const int threads = threads_for(opt, (double)in.w * in.h * in.d * in.c * pack);
    const Int8Kernels& kernels = *host_kernel_set().int8;
    const Columns columns(kernels, ax, pack);
    Mat memory;
    if (columns.room() <= INT_MAX)
        memory.create((int)columns.room(), threads, (size_t)1u, opt.workspace_allocator);
    if (memory.empty()) return kOutOfMemory;
    for (int t = 0; t < threads; t++) columns.begin(memory.row<int8_t>(t));
    parallel_for(in.c * az.out, threads, [&](int64_t i, int thread) {
        const int q = i / az.out, z = i % az.out;
        const int8_t* channel = (const int8_t*)in.data + q * in.cstep * pack;
        int8_t* const own = memory.row<int8_t>(thread);
        int8_t* out = (int8_t*)top.data + q * step + (size_t)z * ay.out * out_row;
        for (int y = 0; y < ay.out; y++, out += out_row) {
            join_rows(kernels, channel, row * in.h, ay.at(y), az.at(z), row, columns.row(own));
            columns.run(own, out);
        }
    });
    return kOk;
}

}  // namespace quoll
