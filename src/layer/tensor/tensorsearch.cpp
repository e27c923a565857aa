#include "layer/tensor/tensorsearch.h"

#include <algorithm>
#include <numeric>

namespace quoll {

int NonZero::shape(const NonZero& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 1, 1));
    out.assign(1, Shape());
    return expect_number(s, in[0].dtype);
}

// f(number) for each value of m that is not 0.
template <class F>
static void for_each_non_zero(const Mat& m, F f) {
    const Flat order(m);
    const size_t total = value_count(m);
    with_number(m.dtype, [&](auto number) {
        using T = decltype(number);
        for (size_t i = 0; i < total; i++)
            if (((const T*)m.data)[order(i)] != 0) f(i);
    });
}

int NonZero::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                     const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const Mat& m = bottoms[0];
    int count = 0;
    for_each_non_zero(m, [&](size_t) { count++; });
    QUOLL_RETURN_IF_ERROR(create_tensor(Shape(count, m.dims, DType::s32), &tops[0], opt));
    const std::vector<int> sizes = sizes_of(m.logical_shape());
    int column = 0;
    for_each_non_zero(m, [&](size_t i) {
        for (int axis = m.dims - 1; axis >= 0; axis--, i /= sizes[axis + 1])
            tops[0].row<int32_t>(axis)[column] = (int32_t)(i % sizes[axis]);
        column++;
    });
    return kOk;
}

void ArgReduce::params(ArgReduce& s, ParamVisitor& v) {
    v(0, "min", s.min, 0, "0: the largest value, 1: the least", between(0, 1));
    v(1, "axis", s.axis, 0, "axis, 0: outermost, -1: innermost", between(-4, 3));
    v(2, "keepdims", s.keepdims, 1, "1: the axis stays with size 1", between(0, 1));
    v(3, "select_last_index", s.select_last_index, 0, "1: the last of equal values", between(0, 1));
}

int ArgReduce::shape(const ArgReduce& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 1, 1));
    QUOLL_RETURN_IF_ERROR(expect_number(s, in[0].dtype));
    int axis;
    QUOLL_RETURN_IF_ERROR(resolve_axis(s, s.axis, in[0].dims, &axis));
    if (in[0].size(axis) < 1) return s.fail("axis %d has no values", axis);
    std::vector<int> sizes = sizes_of(in[0]);
    if (s.keepdims)
        sizes[axis] = 1;
    else
        sizes.erase(sizes.begin() + axis);
    out.resize(1);
    return shape_of_sizes(s, sizes, DType::s32, &out[0]);
}

// Lines that are searched side by side, and the parts in which a single line is searched.
static const int kLines = 64, kParts = 16;

// The best of `size` values `step` apart, for each of `count` neighbours.
template <class T, class Better>
static void best_of_lines(const T* from, int size, size_t step, int count, Better better,
                          int32_t* __restrict best) {
    T values[kLines];
    std::copy(from, from + count, values);
    std::fill(best, best + count, 0);
    for (int i = 1; i < size; i++) {
        const T* row = from + i * step;
        for (int r = 0; r < count; r++) {
            const T x = row[r], y = values[r];
            const int wins = -(int)better(x, y);  // a mask, since a branch would prevent vectorisation
            best[r] = (i & wins) | (best[r] & ~wins);
            values[r] = better(x, y) ? x : y;
        }
    }
}

// The best of neighbouring values.
template <class T, class Better>
static int best_of_row(const T* from, int size, Better better) {
    T values[kParts];
    int32_t best[kParts] = {};
    std::fill(values, values + kParts, from[0]);
    int i = 0;
    for (; i + kParts <= size; i += kParts)
        for (int r = 0; r < kParts; r++) {
            const T x = from[i + r], y = values[r];
            const int wins = -(int)better(x, y);
            best[r] = ((i + r) & wins) | (best[r] & ~wins);
            values[r] = better(x, y) ? x : y;
        }
    int found = best[0];
    // Among equal values, the one whose index better() would have found.
    const bool last = better(T(0), T(0));
    for (int r = 1; r < kParts; r++) {
        const T x = from[best[r]], y = from[found];
        if (x == y ? (last ? best[r] > found : best[r] < found) : better(x, y)) found = best[r];
    }
    for (; i < size; i++)
        if (better(from[i], from[found])) found = i;
    return found;
}

template <class T, class Better>
static void arg_reduce(const Mat& m, const AlongAxis& along, Mat& top, Better better) {
    const Flat into(top);
    int32_t best[kLines];
    for (size_t o = 0; o < along.outer; o++) {
        const T* part = (const T*)m.data + along.start(o);
        for (size_t r = 0; r < along.inner; r += kLines) {
            const int count = (int)std::min<size_t>(kLines, along.inner - r);
            if (along.inner == 1 && along.step == 1)
                best[0] = best_of_row(part, along.size, better);
            else
                best_of_lines(part + r, along.size, along.step, count, better, best);
            for (int k = 0; k < count; k++)
                ((int32_t*)top.data)[into(o * along.inner + r + k)] = best[k];
        }
    }
}

int ArgReduce::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                       const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const Mat& m = bottoms[0];
    const AlongAxis along(m, axis < 0 ? axis + m.dims : axis);
    with_number(m.dtype, [&](auto number) {
        using T = decltype(number);
        if (min && select_last_index)
            arg_reduce<T>(m, along, tops[0], [](T a, T b) { return a <= b; });
        else if (min)
            arg_reduce<T>(m, along, tops[0], [](T a, T b) { return a < b; });
        else if (select_last_index)
            arg_reduce<T>(m, along, tops[0], [](T a, T b) { return a >= b; });
        else
            arg_reduce<T>(m, along, tops[0], [](T a, T b) { return a > b; });
    });
    return kOk;
}

void TopK::params(TopK& s, ParamVisitor& v) {
    v(0, "k", s.k, -1, "how many, -1: the second input", at_least(-1));
    v(1, "axis", s.axis, -1, "axis, 0: outermost, -1: innermost", between(-4, 3));
    v(2, "largest", s.largest, 1, "0: the least values", between(0, 1));
    v(3, "sorted", s.sorted, 1, "0: in order of index", between(0, 1));
}

int TopK::result(const Shape& in, int count, std::vector<Shape>* out) const {
    int at;
    QUOLL_RETURN_IF_ERROR(resolve_axis(*this, axis, in.dims, &at));
    if (count < 0 || count > in.size(at))
        return fail("k is %d, axis %d has %d values", count, at, in.size(at));
    out->assign(2, in);
    (*out)[0].set_size(at, count);
    (*out)[1].set_size(at, count);
    (*out)[1].dtype = DType::s32;
    return kOk;
}

int TopK::shape(const TopK& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    const size_t count = s.k < 0 ? 2 : 1;
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, count, count));
    QUOLL_RETURN_IF_ERROR(expect_number(s, in[0].dtype));
    if (s.k >= 0) return s.result(in[0], s.k, &out);
    if (in[1].total() != 1)
        return s.fail("k: expected one value, got %s", shape_text(in[1]).c_str());
    out.assign(2, Shape());
    return expect_dtype(s, "k", in[1].dtype, DType::s32);
}

// Is a less than b? NaN is larger than all numbers.
template <class T>
static bool less(T a, T b) {
    return a < b || (b != b && a == a);
}

template <class T>
static void top_k(const TopK& s, const Mat& m, const AlongAxis& along, int count, Mat& values,
                  Mat& indexes) {
    const AlongAxis into(values, s.axis < 0 ? s.axis + m.dims : s.axis);
    // Both outputs are of one shape, but their channel gaps differ when their types do.
    const Flat index_at(indexes);
    std::vector<int> order(along.size);
    for (size_t o = 0; o < along.outer; o++) {
        for (size_t r = 0; r < along.inner; r++) {
            const T* part = (const T*)m.data + along.start(o) + r;
            std::iota(order.begin(), order.end(), 0);
            std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](int a, int b) {
                const T x = part[a * along.step], y = part[b * along.step];
                if (s.largest ? less(y, x) : less(x, y)) return true;
                if (s.largest ? less(x, y) : less(y, x)) return false;
                return a < b;
            });
            if (!s.sorted) std::sort(order.begin(), order.begin() + count);
            const size_t first = into.start(o) + r;
            for (int i = 0; i < count; i++) {
                ((T*)values.data)[first + i * into.step] = part[order[i] * along.step];
                const size_t number = (o * count + i) * along.inner + r;
                ((int32_t*)indexes.data)[index_at(number)] = order[i];
            }
        }
    }
}

int TopK::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                  const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const Mat& m = bottoms[0];
    const int count = k >= 0 ? k : *(const int32_t*)bottoms[1].data;
    std::vector<Shape> out;
    QUOLL_RETURN_IF_ERROR(result(m.logical_shape(), count, &out));
    for (int i = 0; i < 2; i++) QUOLL_RETURN_IF_ERROR(create_tensor(out[i], &tops[i], opt));
    if (tops[0].empty()) return kOk;
    const AlongAxis along(m, axis < 0 ? axis + m.dims : axis);
    with_number(m.dtype, [&](auto number) {
        top_k<decltype(number)>(*this, m, along, count, tops[0], tops[1]);
    });
    return kOk;
}

void Unique::params(Unique& s, ParamVisitor& v) {
    v(0, "axis", s.axis, kAllAxes,
      "axis, 0: outermost, -1: innermost, -233: all values in one axis", between(-233, 3));
    v(1, "sorted", s.sorted, 1, "0: in order of the first place", between(0, 1));
}

int Unique::shape(const Unique& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 1, 1));
    QUOLL_RETURN_IF_ERROR(expect_number(s, in[0].dtype));
    int axis;
    if (s.axis != kAllAxes) QUOLL_RETURN_IF_ERROR(resolve_axis(s, s.axis, in[0].dims, &axis));
    const size_t outputs = output_count(s, out);
    if (outputs > 4) return s.fail("expected at most 4 outputs, got %zu", outputs);
    out.assign(outputs, Shape());
    return kOk;
}

// Is part a of m less than part b? Values are compared in order.
template <class T>
static bool less_part(const Mat& m, const AlongAxis& along, int a, int b) {
    for (size_t o = 0; o < along.outer; o++) {
        const T* x = (const T*)m.data + along.start(o) + a * along.step;
        const T* y = (const T*)m.data + along.start(o) + b * along.step;
        for (size_t r = 0; r < along.inner; r++) {
            if (less(x[r], y[r])) return true;
            if (less(y[r], x[r])) return false;
        }
    }
    return false;
}

void Unique::group(const Mat& m, int axis_number, Groups* groups) const {
    const AlongAxis along(m, axis_number);
    std::vector<int> order(along.size);
    std::iota(order.begin(), order.end(), 0);
    groups->of_part.resize(along.size);
    with_number(m.dtype, [&](auto number) {
        using T = decltype(number);
        const auto before = [&](int a, int b) { return less_part<T>(m, along, a, b); };
        std::stable_sort(order.begin(), order.end(), before);
        for (int i = 0; i < along.size; i++) {
            if (i == 0 || before(order[i - 1], order[i])) {
                groups->first.push_back(order[i]);
                groups->counts.push_back(0);
            }
            groups->counts.back()++;
            groups->of_part[order[i]] = (int)groups->first.size() - 1;
        }
    });
    if (sorted) return;
    std::vector<int> rank(groups->first.size()), place(rank.size());
    std::iota(rank.begin(), rank.end(), 0);
    std::sort(rank.begin(), rank.end(),
              [&](int a, int b) { return groups->first[a] < groups->first[b]; });
    Groups by_place = *groups;
    for (size_t i = 0; i < rank.size(); i++) {
        place[rank[i]] = (int)i;
        by_place.first[i] = groups->first[rank[i]];
        by_place.counts[i] = groups->counts[rank[i]];
    }
    for (int& g : by_place.of_part) g = place[g];
    *groups = by_place;
}

static int ints_to_tensor(const std::vector<int>& values, Mat* top, const Option& opt) {
    QUOLL_RETURN_IF_ERROR(create_tensor(Shape((int)values.size(), DType::s32), top, opt));
    std::copy(values.begin(), values.end(), (int32_t*)top->data);
    return kOk;
}

int Unique::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                    const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    Mat m = bottoms[0];
    int at = axis < 0 ? axis + m.dims : axis;
    if (axis == kAllAxes) {
        at = 0;
        if (!m.empty())
            QUOLL_RETURN_IF_ERROR(reshape_blob(m, Shape((int)value_count(m), m.dtype), &m, opt));
        else
            QUOLL_RETURN_IF_ERROR(create_tensor(Shape(0, m.dtype), &m, opt));
    }
    Groups groups;
    group(m, at, &groups);
    Shape out = m.logical_shape();
    const size_t size = out.size(at);
    out.set_size(at, (int)groups.first.size());
    QUOLL_RETURN_IF_ERROR(create_tensor(out, &tops[0], opt));
    const AlongAxis along(m, at);
    size_t to = 0;
    for (size_t o = 0; o < along.outer; o++)
        for (int i : groups.first) {
            copy_values(m, (o * size + i) * along.inner, tops[0], to, along.inner);
            to += along.inner;
        }
    const std::vector<int>* const more[] = {&groups.first, &groups.of_part, &groups.counts};
    for (size_t i = 1; i < tops.size(); i++)
        QUOLL_RETURN_IF_ERROR(ints_to_tensor(*more[i - 1], &tops[i], opt));
    return kOk;
}

QUOLL_DEFINE_LAYER(NonZero)
QUOLL_DEFINE_LAYER(ArgReduce)
QUOLL_DEFINE_LAYER(TopK)
QUOLL_DEFINE_LAYER(Unique)

}  // namespace quoll
