#include <string.h>

#include <algorithm>

#include "cpu.h"
#include "layer/cpu/cast/storage.h"
#include "layer/cpu/layout/lanes.h"
#include "layer/cpu/packing.h"
#include "layer/cpu/resize/resize.h"
#include "layer/interp.h"

namespace quoll {

namespace {

// The taps of one axis, as the kernels take them.
struct AxisTaps {
    int count;
    std::vector<int> index;
    std::vector<float> factor;
    AxisTaps(const std::vector<Interp::Taps>& taps, int count) : count(count) {
        for (const Interp::Taps& t : taps) {
            index.insert(index.end(), t.index, t.index + count);
            factor.insert(factor.end(), t.factor, t.factor + count);
        }
    }
};

class InterpCpu : public Interp {
public:
    InterpCpu() { support_packing = support_fp16_storage = support_bf16_storage = true; }
    int create_pipeline(const Option& opt) override;
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
    unsigned traits() const override { return Interp::traits() | kCreatesOutput; }

private:
    int resize(const Mat& in, Mat& out, const Option& opt) const;
    int resize_rows(const Mat& in, Mat& out, const AxisTaps& xs, int threads,
                    const Option& opt) const;
    int nearest(const Mat& in, Mat& out, const Option& opt) const;

    const ResizeForms* forms_ = nullptr;
};

int pack_index(int pack) {
    for (int i = 0; i < kResizePacks; i++)
        if (kResizePack[i] == pack) return i;
    return -1;
}

// Resizes planes of h rows; rows of the input that are already resized along w are kept as long as
// the next row of the output needs them.
class PlaneResizer {
public:
    PlaneResizer(const ResizeForms& forms, const StorageKernels* storage, int pack,
                 const AxisTaps& xs, const AxisTaps& ys)
        : storage_(storage),
          row_(forms.row[pack_index(pack)]),
          column_(forms.column),
          pack_(pack),
          xs_(xs),
          ys_(ys),
          out_w_((int)xs.index.size() / xs.count),
          out_h_((int)ys.index.size() / ys.count) {}

    // Floats that run() needs for rows of w elements.
    size_t buffer_size(int w) const {
        const size_t stored = storage_ ? std::max(w, out_w_) : 0;
        return (out_w_ * (size_t)ys_.count + stored) * pack_;
    }

    // T: float, or the 16 bits of the storage type.
    template <class T>
    void run(const T* in, int w, T* out, float* buffer) const {
        const size_t length = (size_t)out_w_ * pack_, in_length = (size_t)w * pack_;
        float* wide = buffer + length * ys_.count;  // a row of the input or output
        int held[4] = {-1, -1, -1, -1};  // the input row that each part of the buffer holds
        for (int y = 0; y < out_h_; y++, out += length) {
            const int* wanted = &ys_.index[(size_t)y * ys_.count];
            const float* rows[4];
            for (int k = 0; k < ys_.count; k++) {
                int slot = find(held, wanted[k]);
                if (slot < 0) {
                    slot = unwanted(held, wanted);
                    held[slot] = wanted[k];
                    row_(widen(in + wanted[k] * in_length, in_length, wide), xs_.index.data(),
                         xs_.factor.data(), buffer + slot * length, out_w_);
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

int InterpCpu::create_pipeline(const Option& opt) {
    QUOLL_RETURN_IF_ERROR(Interp::create_pipeline(opt));
    const ResizeKernels& k = *host_kernel_set().resize;
    forms_ = resize_type == kBicubic ? &k.cubic : &k.linear;
    return kOk;
}

// Each row of a blob of 2 axes by itself.
int InterpCpu::resize_rows(const Mat& in, Mat& out, const AxisTaps& xs, int threads,
                           const Option& opt) const {
    const ResizeRowKernel row = forms_->row[pack_index(in.elempack)];
    const StorageKernels* storage = storage_kernels(host_kernel_set(), in.dtype);
    const size_t length = (size_t)in.w * in.elempack, out_length = (size_t)out.w * in.elempack;
    Mat wide;  // of each thread: a row of the input, one of the output
    if (storage) {
        wide.create((int)(length + out_length), threads, 4u, opt.workspace_allocator);
        if (wide.empty()) return kOutOfMemory;
    }
#pragma omp parallel for num_threads(threads)
    for (int y = 0; y < in.h; y++) {
        const float* from = (const float*)in.data + y * length;
        float* to = (float*)out.data + y * out_length;
        if (storage) {
            from = wide.row(get_omp_thread_num());
            to = wide.row(get_omp_thread_num()) + length;
            storage->widen((const uint16_t*)in.data + y * length, (float*)from, length);
        }
        row(from, xs.index.data(), xs.factor.data(), to, out.w);
        if (storage) storage->narrow(to, (uint16_t*)out.data + y * out_length, out_length);
    }
    return kOk;
}

int InterpCpu::resize(const Mat& in, Mat& out, const Option& opt) const {
    const int taps = resize_type == kBicubic ? 4 : 2, pack = in.elempack;
    const AxisTaps xs(column_taps(in.w, out.w), taps);
    const int blocks = in.dims == 2 ? 1 : in.c * in.d;
    const int threads = threads_for(opt, (double)out.total() * pack * taps);
    const StorageKernels* storage = storage_kernels(host_kernel_set(), in.dtype);
    if (in.dims == 2) return resize_rows(in, out, xs, threads, opt);
    const AxisTaps ys(row_taps(in.h, out.h), taps);
    const PlaneResizer resizer(*forms_, storage, pack, xs, ys);
    Mat buffers;
    buffers.create((int)resizer.buffer_size(in.w), threads, 4u, opt.workspace_allocator);
    if (buffers.empty()) return kOutOfMemory;
#pragma omp parallel for num_threads(threads)
    for (int t = 0; t < threads; t++)
        for (int i = (int)((int64_t)blocks * t / threads); i < (int64_t)blocks * (t + 1) / threads;
             i++) {
            const int q = i / in.d, z = i % in.d;
            const size_t from = (q * in.cstep + (size_t)z * in.w * in.h) * pack;
            const size_t to = (q * out.cstep + (size_t)z * out.w * out.h) * pack;
            if (storage)
                resizer.run((const uint16_t*)in.data + from, in.w, (uint16_t*)out.data + to,
                            buffers.row(t));
            else
                resizer.run((const float*)in.data + from, in.w, (float*)out.data + to,
                            buffers.row(t));
        }
    return kOk;
}

template <size_t kBytes>
void pick(const unsigned char* row, const int* index, unsigned char* out, int n) {
    for (int x = 0; x < n; x++) memcpy(out + x * kBytes, row + index[x] * kBytes, kBytes);
}

int InterpCpu::nearest(const Mat& in, Mat& out, const Option& opt) const {
    const AxisTaps xs(column_taps(in.w, out.w), 1);
    std::vector<int> rows(1, 0);
    if (in.dims > 2) rows = AxisTaps(row_taps(in.h, out.h), 1).index;
    const size_t es = in.elemsize;
    const auto picker = es == 2    ? pick<2>
                        : es == 4  ? pick<4>
                        : es == 8  ? pick<8>
                        : es == 16 ? pick<16>
                        : es == 32 ? pick<32>
                                   : pick<64>;
    // Of a blob of 2 axes each row is a plane of its own.
    const int planes = in.dims == 2 ? in.h : in.c * in.d;
    const size_t in_plane = in.dims == 2 ? in.w : (size_t)in.w * in.h;
    const int threads = threads_for(opt, (double)out.total() * in.elempack);
#pragma omp parallel for num_threads(threads)
    for (int i = 0; i < planes; i++) {
        const size_t q = i / in.d, z = i % in.d, length = out.w * es;
        const unsigned char* src = (const unsigned char*)in.data +
                                   (in.dims == 2 ? i * in_plane : q * in.cstep + z * in_plane) * es;
        unsigned char* dst =
            (unsigned char*)out.data +
            (in.dims == 2 ? (size_t)i * out.w : q * out.cstep + z * out.w * out.h) * es;
        for (size_t y = 0; y < rows.size(); y++, dst += length) {
            if (y > 0 && rows[y] == rows[y - 1])
                memcpy(dst, dst - length, length);
            else
                picker(src + (size_t)rows[y] * in.w * es, xs.index.data(), dst, out.w);
        }
    }
    return kOk;
}

int InterpCpu::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                       const Option& opt) const {
    std::vector<Shape> in = shapes_of(bottoms), out;
    QUOLL_RETURN_IF_ERROR(shape(*this, in, out));
    tops.resize(1);
    if (unchanged(in[0], out[0])) {
        tops[0] = bottoms[0];
        return kOk;
    }
    if (in[0].dims == 1) {
        std::vector<Mat> planar = bottoms;
        QUOLL_RETURN_IF_ERROR(widened(planar_view(bottoms[0]), opt, &planar[0]));
        if (planar.size() > 1) planar[1] = bottoms[1].shape();
        return Interp::forward(planar, tops, opt);  // f32, which the Extractor narrows
    }
    const int pack = bottoms[0].elempack;
    Mat src;
    QUOLL_RETURN_IF_ERROR(with_elempack(bottoms[0], pack_index(pack) < 0 ? 1 : pack, opt, &src));
    tops[0].create(out[0], src.elempack, opt.blob_allocator);
    if (tops[0].empty()) return kOutOfMemory;
    return resize_type == kNearest ? nearest(src, tops[0], opt) : resize(src, tops[0], opt);
}

}  // namespace

Layer* create_Interp_fast_layer() { return new InterpCpu; }

}  // namespace quoll
