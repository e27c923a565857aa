#include "layer/cpu/resize/planes.h"

#include <string.h>

#include <algorithm>

#include "layer/cpu/cast/storage.h"
#include "layer/cpu/common/packing.h"
#include "quoll/cpu.h"
#include "runtime/thread_pool.h"

namespace quoll {

int resize_pack_index(int pack) {
    for (int i = 0; i < kResizePacks; i++)
        if (kResizePack[i] == pack) return i;
    return -1;
}

namespace {

// Resizes planes along h and maybe w; rows of the input that are already resized along w are kept
// as long as the next row of the output needs them.
class PlaneResizer {
public:
    PlaneResizer(const ResizeVariants& variants, const StorageKernels* storage, int pack,
                 const AxisTaps& xs, const AxisTaps& ys, int out_w)
        : storage_(storage),
          row_(variants.row[resize_pack_index(pack)]),
          column_(variants.column),
          pack_(pack),
          xs_(xs),
          ys_(ys),
          out_w_(out_w),
          out_h_((int)ys.index.size() / ys.count) {}

    // Floats that run() needs for rows of w elements.
    size_t buffer_size(int w) const {
        const size_t stored = storage_ ? std::max(w, out_w_) : 0;
        return (out_w_ * (size_t)ys_.count + stored) * pack_;
    }

    int out_h() const { return out_h_; }

    // Makes rows y0 <= y < y1 of a plane. T: float, or the 16 bits of the storage type.
    template <class T>
    void run(const T* in, int w, T* out, int y0, int y1, float* buffer) const {
        const size_t length = (size_t)out_w_ * pack_, in_length = (size_t)w * pack_;
        out += y0 * length;
        float* wide = buffer + length * ys_.count;  // a row of the input or output
        int held[4] = {-1, -1, -1, -1};  // the input row that each part of the buffer holds
        for (int y = y0; y < y1; y++, out += length) {
            const int* wanted = &ys_.index[(size_t)y * ys_.count];
            const float* rows[4];
            for (int k = 0; k < ys_.count; k++) {
                int slot = find(held, wanted[k]);
                if (slot < 0) {
                    slot = unwanted(held, wanted);
                    held[slot] = wanted[k];
                    const float* row = widen(in + wanted[k] * in_length, in_length, wide);
                    float* const to = buffer + slot * length;
                    if (xs_.none())
                        memcpy(to, row, length * sizeof(float));
                    else
                        row_(row, xs_.index.data(), xs_.factor.data(), to, out_w_);
                }
                rows[k] = buffer + slot * length;
            }
            column_(rows, &ys_.factor[(size_t)y * ys_.count], wide_row(out, wide), length);
            narrow(wide, out, length);
        }
    }

private:
    const float* widen(const float* row, size_t, float*) const { return row; }
    const float* widen(const uint16_t* row, size_t count, float* wide) const {
        storage_->widen(row, wide, count);
        return wide;
    }
    static float* wide_row(float* out, float*) { return out; }
    static float* wide_row(uint16_t*, float* wide) { return wide; }
    void narrow(const float*, float*, size_t) const {}
    void narrow(const float* wide, uint16_t* out, size_t count) const {
        storage_->narrow(wide, out, count);
    }
    int find(const int* held, int row) const {
        for (int i = 0; i < ys_.count; i++)
            if (held[i] == row) return i;
        return -1;
    }
    // There is one: as many parts as rows wanted, and one of those is not held.
    int unwanted(const int* held, const int* wanted) const {
        for (int i = 0; i < ys_.count; i++)
            if (std::find(wanted, wanted + ys_.count, held[i]) == wanted + ys_.count) return i;
        return 0;
    }

    const StorageKernels* const storage_;  // null: floats
    const ResizeRowKernel row_;
    const ResizeColumnKernel column_;
    const int pack_;
    const AxisTaps &xs_, &ys_;
    const int out_w_, out_h_;
};

// Rows of all planes of a blob, which have no gaps within a channel.
struct Rows {
    int per_block, count;
    explicit Rows(const Mat& m)
        : per_block(m.dims == 2 ? m.h : m.h * m.d), count(m.dims == 2 ? m.h : m.h * m.d * m.c) {}
    // The element where row i begins.
    size_t at(const Mat& m, int i) const {
        return (size_t)(i / per_block) * m.cstep + (size_t)(i % per_block) * m.w;
    }
};

// Each row by itself.
int resize_rows(const ResizeVariants& variants, const Mat& in, Mat& out, const AxisTaps& xs,
                int threads, const Option& opt) {
    const ResizeRowKernel row = variants.row[resize_pack_index(in.elempack)];
    const StorageKernels* storage = storage_kernels(host_kernel_set(), in.dtype);
    const size_t length = (size_t)in.w * in.elempack, out_length = (size_t)out.w * in.elempack;
    const Rows rows(in);
    Mat wide;  // of each thread: a row of the input, one of the output
    if (storage) {
        wide.create((int)(length + out_length), threads, 4u, opt.workspace_allocator);
        if (wide.empty()) return kOutOfMemory;
    }
    parallel_for(rows.count, threads, [&](int64_t y, int thread) {
        const size_t from_at = rows.at(in, y) * in.elempack, to_at = rows.at(out, y) * in.elempack;
        const float* from = (const float*)in.data + from_at;
        float* to = (float*)out.data + to_at;
        if (storage) {
            from = wide.row(thread);
            to = wide.row(thread) + length;
            storage->widen((const uint16_t*)in.data + from_at, (float*)from, length);
        }
        row(from, xs.index.data(), xs.factor.data(), to, out.w);
        if (storage) storage->narrow(to, (uint16_t*)out.data + to_at, out_length);
    });
    return kOk;
}

template <size_t kBytes>
void pick(const unsigned char* row, const int* index, unsigned char* out, int n) {
    for (int x = 0; x < n; x++) memcpy(out + x * kBytes, row + index[x] * kBytes, kBytes);
}

}  // namespace

int resize_planes(const ResizeVariants& variants, const Mat& in, Mat& out, const AxisTaps& xs,
                  const AxisTaps& ys, const Option& opt) {
    const int taps = std::max(xs.count, ys.count), pack = in.elempack;
    const int blocks = in.c * in.d;
    const int threads = threads_for(opt, (double)out.total() * pack * taps);
    const StorageKernels* storage = storage_kernels(host_kernel_set(), in.dtype);
    if (ys.none()) return resize_rows(variants, in, out, xs, threads, opt);
    const PlaneResizer resizer(variants, storage, pack, xs, ys, out.w);
    Mat buffers;
    buffers.create((int)resizer.buffer_size(in.w), threads, 4u, opt.workspace_allocator);
    if (buffers.empty()) return kOutOfMemory;
    const Bands bands(blocks, resizer.out_h(), threads);
    run_tasks(bands.count(), threads, [&](int64_t task, int thread) {
        const int q = bands.item(task) / in.d, z = bands.item(task) % in.d;
        const int y0 = bands.begin(task), y1 = bands.end(task);
        const size_t from = (q * in.cstep + (size_t)z * in.w * in.h) * pack;
        const size_t to = (q * out.cstep + (size_t)z * out.w * out.h) * pack;
        float* const buffer = buffers.row(thread);
        if (storage)
            resizer.run((const uint16_t*)in.data + from, in.w, (uint16_t*)out.data + to, y0, y1,
                        buffer);
        else
            resizer.run((const float*)in.data + from, in.w, (float*)out.data + to, y0, y1, buffer);
    });
    return kOk;
}

void pick_planes(const Mat& in, Mat& out, const AxisTaps& xs, const AxisTaps& ys,
                 const Option& opt) {
    const size_t es = in.elemsize, length = out.w * es;
    const auto picker = es == 1    ? pick<1>
                        : es == 2  ? pick<2>
                        : es == 4  ? pick<4>
                        : es == 8  ? pick<8>
                        : es == 16 ? pick<16>
                        : es == 32 ? pick<32>
                                   : pick<64>;
    // In a blob of 2 axes each row is a plane.
    const int planes = in.dims == 2 ? in.h : in.c * in.d, depth = in.dims == 2 ? in.h : in.d;
    const int in_h = in.dims == 2 ? 1 : in.h, out_h = in.dims == 2 ? 1 : out.h;
    const int threads = threads_for(opt, (double)out.total() * in.elempack);
    const Bands bands(planes, out_h, threads);
    run_tasks(bands.count(), threads, [&](int64_t task, int) {
        const size_t q = bands.item(task) / depth, z = bands.item(task) % depth;
        const int y0 = bands.begin(task), y1 = bands.end(task);
        const unsigned char* src =
            (const unsigned char*)in.data + (q * in.cstep + z * in.w * in_h) * es;
        unsigned char* dst =
            (unsigned char*)out.data + (q * out.cstep + z * out.w * out_h) * es + y0 * length;
        for (int y = y0; y < y1; y++, dst += length) {
            const int row = ys.none() ? y : ys.index[y];
            if (y > y0 && !ys.none() && row == ys.index[y - 1])
                memcpy(dst, dst - length, length);
            else if (xs.none())
                memcpy(dst, src + (size_t)row * in.w * es, length);
            else
                picker(src + (size_t)row * in.w * es, xs.index.data(), dst, out.w);
        }
    });
}

}  // namespace quoll
