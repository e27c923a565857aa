#include "layer/cpu/layout/channel_gather.h"

#include <string.h>

#include <algorithm>

#include "layer/cpu/common/packing.h"
#include "layer/cpu/layout/layout.h"
#include "layer/cpu/layout/layouts.h"
#include "runtime/thread_pool.h"

namespace quoll {

int reshape_channels(const Mat& m, const Shape& to, Mat* out, const Option& opt) {
    const Shape from = m.logical_shape();
    if (m.elempack == 1) return reshape_blob(m, to, out, opt);
    if (m.dims > 1 && to.dims > 1 && from.size(0) == to.size(0)) {
        Shape elements = to;
        elements.set_size(0, to.size(0) / m.elempack);
        return reshape_blob(m, elements, out, opt);
    }
    // One element behind the other: the order in memory is that of the values.
    const bool in_order =
        m.dims == 1 || (m.w * m.h * m.d == 1 && m.cstep == 1) || (m.dims == 2 && m.w == 1);
    Mat planar = m;
    if (in_order) {
        planar.dims = 1, planar.w = from.size(0), planar.h = planar.d = planar.c = 1;
        planar.elemsize /= m.elempack, planar.elempack = 1;
        planar.cstep = planar.w;
        planar.nstep = planar.n == 1 ? (size_t)planar.w : planar.nstep * m.elempack;
    } else {
        convert_packing(m, planar, 1, opt);
        if (planar.empty()) return kOutOfMemory;
    }
    return reshape_blob(planar, to, out, opt);
}

ChannelView::ChannelView(const Mat& m)
    : data((unsigned char*)m.data),
      count(m.logical_shape().size(0)),
      pack(m.elempack),
      shift(0),
      scalar(m.elemsize / m.elempack) {
    while (1 << shift < pack) shift++;
    if (1 << shift != pack) shift = -1;
    row = m.dims == 2 ? m.w : (size_t)m.w * m.h * m.d;
    block_step = (m.dims >= 3 ? m.cstep : row) * pack * scalar;
}

namespace {

template <size_t kBytes>
void copy_elements(const unsigned char* src, size_t src_step, unsigned char* dst, size_t dst_step,
                   size_t n) {
    for (size_t i = 0; i < n; i++) memcpy(dst + i * dst_step, src + i * src_step, kBytes);
}

}  // namespace

void copy_strided(const unsigned char* src, size_t src_step, unsigned char* dst, size_t dst_step,
                  size_t bytes, size_t n) {
    if (src_step == bytes && dst_step == bytes) {
        memcpy(dst, src, bytes * n);
        return;
    }
    switch (bytes) {  // sizes known to the compiler become single moves
        case 1:
            return copy_elements<1>(src, src_step, dst, dst_step, n);
        case 2:
            return copy_elements<2>(src, src_step, dst, dst_step, n);
        case 4:
            return copy_elements<4>(src, src_step, dst, dst_step, n);
        case 8:
            return copy_elements<8>(src, src_step, dst, dst_step, n);
        case 16:
            return copy_elements<16>(src, src_step, dst, dst_step, n);
        case 32:
            return copy_elements<32>(src, src_step, dst, dst_step, n);
        case 64:
            return copy_elements<64>(src, src_step, dst, dst_step, n);
    }
    for (size_t i = 0; i < n; i++) memcpy(dst + i * dst_step, src + i * src_step, bytes);
}

// The widest power of two of channels, so that each group of them in source[0 .. pack) stays
// together within one element of the source.
static int common_width(const int* source, int pack, int src_pack) {
    int width = 1;
    for (int w = 2; w <= pack && ((pack | src_pack) & (w - 1)) == 0; w *= 2) {
        for (int i = 0; i < pack; i++) {
            const int within = i & (w - 1), first = source[i - within];
            if (first < 0 ? source[i] >= 0 : (first & (w - 1)) != 0 || source[i] != first + within)
                return width;
        }
        width = w;
    }
    return width;
}

// As Mat::reshape decides whether memory can be shared.
static bool keeps_memory(const BlobLayout& in, const Shape& to) {
    const auto step = [&](const Shape& s, size_t* count) {
        const size_t element = dtype_size(s.dtype) * in.elempack;
        *count = (size_t)s.w * s.h * s.d;
        return Mat::channel_step(s.dims, s.w, s.h, s.d, element);
    };
    const auto elements = [&](Shape s, int pack) {
        s.set_size(0, s.size(0) / pack);
        return s;
    };
    const bool same_axis = in.shape.dims > 1 && to.dims > 1 && in.shape.size(0) == to.size(0);
    const int pack = in.elempack == 1 || same_axis ? in.elempack : 1;
    size_t from_count, to_count;
    const Shape a = elements(in.shape, pack), b = elements(to, pack);
    const size_t from_step = step(a, &from_count), to_step = step(b, &to_count);
    const bool gapless = from_step == from_count || a.c == 1;
    return (from_count == to_count && to_step == from_step) ||
           (gapless && (to_step == to_count || b.c == 1));
}

void plan_items(const std::vector<Shape>& in, std::shared_ptr<const LayerPlan>* plan) {
    for (const Shape& s : in)
        if (s.n == 1 || s.n != in[0].n || s.dims < 3) return;
    *plan = std::make_shared<const LayerPlan>();
}

int forward_items(const Layer& layer, const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                  const Option& opt) {
    const int n = bottoms[0].n;
    std::vector<Mat> joined = bottoms;
    for (Mat& m : joined) {
        if (m.dims < 3 || m.n != n || m.nstep != m.cstep * m.c) return kOneByOne;
        m.c *= n, m.n = 1;
    }
    QUOLL_RETURN_IF_ERROR(layer.forward(joined, tops, opt));
    for (Mat& m : tops) m.c /= n, m.n = n, m.nstep = m.cstep * m.c;
    return kOk;
}

void plan_reshaped(const BlobLayout& in, BlobLayout* out) {
    const Shape &from = in.shape, &to = out->shape;
    const bool same_axis = from.dims > 1 && to.dims > 1 && from.size(0) == to.size(0);
    // One element behind the other: the order in memory is that of the values.
    const bool in_order =
        from.dims == 1 || (from.w == 1 && (from.dims == 2 || from.h * from.d == 1));
    out->elempack = same_axis ? in.elempack : 1;
    out->shares = -1;
    if (in.elempack == 1 || same_axis || in_order) out->shares = keeps_memory(in, to) ? 0 : -1;
}

bool shares_channels(const BlobLayout& in, int first, int count) {
    const Shape& s = in.shape;
    const size_t element = dtype_size(s.dtype) * in.elempack;
    const size_t step = s.dims == 2 ? (size_t)s.w * element
                                    : Mat::channel_step(s.dims, s.w, s.h, s.d, element) * element;
    return s.n == 1 && first % in.elempack == 0 && count % in.elempack == 0 &&
           first / in.elempack * step % 16 == 0;
}

namespace {

// 16 bytes of the destination that come from two times 16 of the source: a part of an element, or
// two elements of 8 bytes.
struct Pick {
    PickBytes p;

    // Elements that a pick holds, 0 if elements of these sizes are not made of picks.
    static int elements(const ChannelView& src, const ChannelView& dst) {
        const size_t from = src.pack * src.scalar, to = dst.pack * dst.scalar;
        if (src.shift < 0) return 0;
        if (from == to && to * 2 == kPickBytes) return 2;
        return from % kPickBytes == 0 && to % kPickBytes == 0 ? 1 : 0;
    }
    // Pick `part` of the elements of a block, whose channels come from `source`; false if these lie
    // in more places.
    bool find(const ChannelView& src, const ChannelView& dst, const int* source, int part,
              size_t from) {
        const int scalar = (int)src.scalar, elements_in = elements(src, dst);
        const int channels = kPickBytes / scalar / elements_in;
        const size_t element = src.pack * src.scalar;
        p.a = p.b = nullptr;
        memset(p.from_a, kNoByte, kPickBytes), memset(p.from_b, kNoByte, kPickBytes);
        for (int i = 0; i < channels; i++) {
            const int s = source[part * channels + i];
            if (s < 0) return false;
            const int block = s >> src.shift, offset = (s - (block << src.shift)) * scalar;
            const uint8_t* place = src.data + block * src.block_step + from * element +
                                   offset / kPickBytes * kPickBytes;
            if (!p.a || p.a == place)
                p.a = place;
            else if (!p.b || p.b == place)
                p.b = place;
            else
                return false;
            uint8_t* table = (p.a == place ? p.from_a : p.from_b) + i * scalar;
            for (int e = 0; e < elements_in; e++, table += channels * scalar)
                for (int k = 0; k < scalar; k++)
                    table[k] = (uint8_t)(offset % kPickBytes + e * element + k);
        }
        if (!p.b) p.b = p.a;
        return true;
    }
};

}  // namespace

ChannelGather::ChannelGather(const Mat& src, const Mat& dst, const std::vector<int>& source)
    : src_(src), dst_(dst) {
    *source_ = source;
    for (int i = 0; i < dst_.count; i += dst_.pack) {
        const int width = common_width(&source_[i], dst_.pack, src_.pack);
        const bool whole = *std::min_element(&source_[i], &source_[i] + dst_.pack) >= 0;
        const bool quads = width == 1 && whole && src_.scalar == 4 && dst_.pack % 4 == 0;
        // Elements of 16 bytes are picks of 4-byte values too, unless these lie in more places.
        const bool narrow = src_.scalar < 4 || (quads && src_.pack == 4 && dst_.pack == 4);
        const bool picks =
            width * src_.scalar <= 4 && narrow && whole && Pick::elements(src_, dst_) > 0;
        plans_->push_back(Plan{width, quads, picks});
    }
}

namespace {

const int kQuads = 4;

// Four neighbouring channels of 4 bytes, gathered by one of a few shuffles for all elements.
struct Quad {
    enum Order {
        kZip,   // from two pairs of channels in turn
        kEven,  // the even channels of two times four
        kOdd,   // the odd ones
        kAny,   // from anywhere
    };
    Order order;
    const unsigned char* from[4];
    unsigned char* to;

    void find(const ChannelView& src, const int* source, size_t at, unsigned char* destination) {
        const int* s = source;
        to = destination;
        for (int i = 0; i < 4; i++) from[i] = src.at(s[i], at);
        // Two or four neighbours are read at once: they have to lie in one element.
        const auto fits = [&](int channel, int count) {
            return src.pack % count == 0 && channel % count == 0;
        };
        const bool strided = s[1] == s[0] + 2 && s[2] == s[0] + 4 && s[3] == s[0] + 6;
        order = kAny;
        if (s[2] == s[0] + 1 && s[3] == s[1] + 1 && fits(s[0], 2) && fits(s[1], 2)) {
            order = kZip;
        } else if (strided && src.pack % 4 == 0 && s[0] % 4 < 2) {
            order = s[0] % 4 == 0 ? kEven : kOdd;
            from[0] -= s[0] % 4 * 4;
            from[1] = src.at(s[2] - s[2] % 4, at);
        }
    }

    // Elements first, first + 1, ... of the run.
    void copy(size_t first, size_t count, size_t src_step, size_t dst_step) const {
        const unsigned char* in[4];
        for (int i = 0; i < 4; i++) in[i] = from[i] + first * src_step;
        unsigned char* out = to + first * dst_step;
        switch (order) {
            case kZip:
                return copy_form<kZip>(in, src_step, out, dst_step, count);
            case kEven:
                return copy_form<kEven>(in, src_step, out, dst_step, count);
            case kOdd:
                return copy_form<kOdd>(in, src_step, out, dst_step, count);
            case kAny:
                return copy_form<kAny>(in, src_step, out, dst_step, count);
        }
    }

    // Loads of known size and constant indexes, which compilers make shuffles of.
    template <Order kOrder>
    static void copy_form(const unsigned char* const in[4], size_t src_step, unsigned char* out,
                          size_t dst_step, size_t count) {
        const unsigned char *a = in[0], *b = in[1], *c = in[2], *d = in[3];
        for (size_t i = 0; i < count; i++, out += dst_step) {
            uint32_t lanes[4];
            if (kOrder == kAny) {
                memcpy(&lanes[0], a, 4);
                memcpy(&lanes[1], b, 4);
                memcpy(&lanes[2], c, 4);
                memcpy(&lanes[3], d, 4);
                c += src_step, d += src_step;
            } else {
                const int bytes = kOrder == kZip ? 8 : 16, odd = kOrder == kOdd;
                uint32_t x[4], y[4];
                memcpy(x, a, bytes);
                memcpy(y, b, bytes);
                lanes[0] = x[odd];
                lanes[1] = kOrder == kZip ? y[0] : x[odd + 2];
                lanes[2] = kOrder == kZip ? x[1] : y[odd];
                lanes[3] = kOrder == kZip ? y[1] : y[odd + 2];
            }
            a += src_step, b += src_step;
            memcpy(out, lanes, 16);
        }
    }
};

}  // namespace

// In groups of picks whose elements stay in the cache while all channels are read.
void ChannelGather::copy_quads(int block, size_t from, size_t to, size_t n) const {
    // As many at once as a vector of the widest ISA holds, one pick after another, so that a pick's
    // cache lines are written completely.
    const size_t kRun = 64;
    const int end = (block + 1) * dst_.pack;
    for (int channel = block * dst_.pack; channel < end; channel += 4 * kQuads) {
        Quad quads[kQuads];
        const int count = std::min(kQuads, (end - channel) / 4);
        for (int i = 0; i < count; i++)
            quads[i].find(src_, &source_[channel + 4 * i], from, dst_.at(channel + 4 * i, to));
        for (size_t first = 0; first < n; first += kRun)
            for (int i = 0; i < count; i++)
                quads[i].copy(first, std::min(kRun, n - first), src_.pack * 4, dst_.pack * 4);
    }
}

// Returns how many elements are done: none if some pick comes from more than two places.
size_t ChannelGather::copy_picks(int block, size_t from, size_t to, size_t n) const {
    const int elements = Pick::elements(src_, dst_), channel = block * dst_.pack;
    const size_t size = dst_.pack * dst_.scalar;
    for (size_t part = 0; part * kPickBytes < size; part++) {
        Pick pick;
        if (!pick.find(src_, dst_, &source_[channel], (int)part, from)) return 0;
        pick.p.step = src_.pack * src_.scalar * elements;
        pick.p.out = dst_.at(channel, to) + part * kPickBytes;
        pick.p.out_step = size * elements;
        pick.p.n = n / elements;
        host_kernel_set().layout->pick_bytes(pick.p);
    }
    return n / elements * elements;
}

void ChannelGather::copy(int block, size_t from, size_t to, size_t n) const {
    const Plan plan = plans_[block];
    if (plan.picks) {
        const size_t done = copy_picks(block, from, to, n);
        from += done, to += done, n -= done;
        if (n == 0) return;
    }
    if (plan.quads) return copy_quads(block, from, to, n);
    for (int channel = block * dst_.pack; channel < (block + 1) * dst_.pack; channel += plan.width)
        if (source_[channel] >= 0)
            copy_strided(src_.at(source_[channel], from), src_.pack * src_.scalar,
                         dst_.at(channel, to), dst_.pack * dst_.scalar, plan.width * src_.scalar,
                         n);
}

namespace {

// The elements of some channels as Bands of whole runs.
struct Runs {
    enum { kRun = 256 };
    const size_t row;
    const Bands bands;
    Runs(int channels, size_t elements, int threads)
        : row(elements), bands(channels, (int)((elements + kRun - 1) / kRun), threads) {}
    size_t begin(int64_t task) const { return (size_t)bands.begin(task) * kRun; }
    size_t end(int64_t task) const { return std::min(row, (size_t)bands.end(task) * kRun); }
};

}  // namespace

void ChannelGather::copy_all(const Option& opt) const {
    const int threads = threads_for(opt, (double)dst_.row * dst_.count);
    const Runs runs(blocks(), dst_.row, threads);
    run_tasks(runs.bands.count(), threads, [&](int64_t i, int) {
        copy(runs.bands.item(i), runs.begin(i), runs.begin(i), runs.end(i) - runs.begin(i));
    });
}

void copy_channels(const Mat& src, Mat& dst, int first, const Option& opt) {
    const ChannelView from(src), to(dst);
    if (from.pack != to.pack) {
        Scratch<int> source;
        source->assign(to.count, -1);
        for (int i = 0; i < from.count; i++) source[first + i] = i;
        ChannelGather(src, dst, *source).copy_all(opt);
        return;
    }
    const int threads = threads_for(opt, (double)from.row * from.count);
    const Runs runs(from.count / from.pack, from.row, threads);
    run_tasks(runs.bands.count(), threads, [&](int64_t task, int) {
        const int i = runs.bands.item(task);
        const size_t begin = runs.begin(task), count = runs.end(task) - begin;
        memcpy(to.at(first + i * to.pack, begin), from.at(i * from.pack, begin),
               count * src.elemsize);
    });
}

void copy_repeated(const Mat& src, Mat& dst, int times, const Option& opt) {
    Scratch<int> source;
    for (int i = 0, count = ChannelView(dst).count; i < count; i++) source->push_back(i / times);
    ChannelGather(src, dst, *source).copy_all(opt);
}

}  // namespace quoll
