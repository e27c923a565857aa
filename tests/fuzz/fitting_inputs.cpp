#include "fitting_inputs.h"

#include <algorithm>
#include <map>

namespace {

using namespace quoll;

struct Fitting {
    Random& random;
    ParamDict& params;
    std::vector<Wanted>& inputs;
    int& outputs;

    bool flag() { return random.one_in(2); }
    bool seldom() { return random.one_in(4); }
    void input(const Shape& shape, const std::vector<int>& values = {}) {
        inputs.push_back({shape, values});
    }
    // Infinities that meet gates of nearly 0 are NaN where such a gate is 0.
    void finite(const Shape& shape) { inputs.push_back({shape, {}, true}); }
    void set(int id, const std::vector<int>& values) {
        Mat m(Shape((int)values.size(), DType::s32));
        std::copy(values.begin(), values.end(), (int*)m.data);
        params.set(id, m);
    }
    std::vector<int> numbers(int count, int low, int high) {
        std::vector<int> list;
        for (int i = 0; i < count; i++) list.push_back(random.number(low, high));
        return list;
    }
    // Sets it in one case of two; otherwise `absent`, which is the default.
    std::vector<int> some(int id, int count, int low, int high, int absent) {
        if (flag()) return std::vector<int>((size_t)count, absent);
        const std::vector<int> list = numbers(count, low, high);
        set(id, list);
        return list;
    }
    DType byte() { return flag() ? DType::s8 : DType::u8; }
};

void col2im(Fitting& f) {
    f.params = ParamDict();
    const int axes = f.random.number(1, 3);
    const std::vector<int> image = f.numbers(axes, 1, 7), kernel = f.numbers(axes, 1, 3);
    const std::vector<int> strides = f.some(2, axes, 1, 3, 1), dilations = f.some(3, axes, 1, 2, 1);
    const std::vector<int> pads = f.some(4, 2 * axes, 0, 2, 0);
    int windows = 1, taps = 1;
    for (int i = 0; i < axes; i++) {
        const int room = image[i] + pads[i] + pads[axes + i] - ((kernel[i] - 1) * dilations[i] + 1);
        windows *= std::max(0, room) / strides[i] + 1, taps *= kernel[i];
    }
    f.input(Shape(windows, taps * f.random.number(1, 5)));
    if (f.flag()) {
        f.set(0, image), f.set(1, kernel);
        return;
    }
    f.input(Shape(axes, DType::s32), image);
    f.input(Shape(axes, DType::s32), kernel);
}

// Values of an output axis. pad: on both sides, -233 or -234 for SAME.
int window_count(int size, int kernel, int stride, int dilation, int pad) {
    if (pad < 0) return (size + stride - 1) / stride;
    return std::max(0, size + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1;
}

struct Window {
    int kernel[2], stride[2], dilation[2], pad;

    explicit Window(Fitting& f) {
        pad = f.seldom() ? -233 - f.random.number(0, 1) : f.random.number(0, 2);
        for (int i = 0; i < 2; i++) {
            kernel[i] = f.random.number(1, 3);
            stride[i] = f.random.number(1, 2), dilation[i] = f.random.number(1, 2);
            f.params.set(1 + 10 * i, kernel[i]);
            f.params.set(2 + 10 * i, dilation[i]);
            f.params.set(3 + 10 * i, stride[i]);
        }
        for (int id : {4, 14, 15, 16}) f.params.set(id, pad);
    }
    int count(int axis, int size) const {
        return window_count(size, kernel[axis], stride[axis], dilation[axis], pad);
    }
};

void conv_integer(Fitting& f) {
    f.params = ParamDict();
    const Window window(f);
    const int group = f.seldom() ? f.random.number(2, 3) : 1;
    const int per_group = f.random.number(1, 9), made = group * f.random.number(1, 9);
    f.params.set(7, group);
    const Shape x(f.random.size(9), f.random.size(9), group * per_group, f.byte());
    f.input(group * per_group == 1 && f.flag() ? Shape(x.w, x.h, x.dtype) : x);
    if (f.seldom()) {
        f.params.set(19, 1);
        f.input(Shape(window.kernel[0], window.kernel[1], per_group, made, f.byte()));
    } else {
        f.params.set(0, made);
        f.params.set(6, made * per_group * window.kernel[0] * window.kernel[1]);
        f.params.set(8, f.random.number(0, 1));
    }
    if (f.seldom()) {
        f.params.set(20, 1);
        f.input(Shape(1, x.dtype));
    } else {
        f.params.set(22, f.random.number(-9, 9));
    }
    const int zeros = f.flag() ? 1 : made;
    if (f.seldom()) {
        f.params.set(21, 1);
        f.input(Shape(zeros, f.byte()));
    } else if (f.flag()) {
        f.set(23, f.numbers(zeros, -9, 9));
    }
}

// rows x columns in one to four axes; the outer ones are those of `outer`, or 1.
Shape matrix(Fitting& f, int axes, int rows, int columns, const int outer[2], DType dtype) {
    if (axes < 2) return Shape(columns, dtype);
    if (axes == 2) return Shape(columns, rows, dtype);
    const int channels = f.seldom() ? 1 : outer[axes == 3];
    if (axes == 3) return Shape(columns, rows, channels, dtype);
    return Shape(columns, rows, f.seldom() ? 1 : outer[1], channels, dtype);
}

void matmul_integer(Fitting& f) {
    f.params = ParamDict();
    const bool weight = f.flag(), ranged = weight && f.flag();
    const int axes = f.random.number(1, 4), depth = f.random.number(1, 40);
    const int rows = axes == 1 ? 1 : f.random.size(12);
    int columns = f.random.number(1, 20);
    const int outer[2] = {f.random.number(1, 3), f.random.number(1, 3)};
    const DType a = ranged ? DType::f32 : f.byte();
    f.input(matrix(f, axes, rows, depth, outer, a));
    if (weight) {
        f.params.set(6, columns), f.params.set(7, columns * depth);
    } else {
        const int b_axes = f.random.number(1, 4);
        if (b_axes == 1) columns = 1;
        f.input(b_axes == 1 ? Shape(depth, f.byte())
                            : matrix(f, b_axes, depth, columns, outer, f.byte()));
    }
    f.params.set(0, f.random.number(0, 1)), f.params.set(1, f.random.number(0, 1));
    f.params.set(8, ranged ? 1 : 0), f.params.set(9, ranged && f.flag() ? 1 : 0);
    for (int operand = ranged ? 1 : 0; operand < 2; operand++) {
        const int zeros = f.flag() ? 1 : operand ? columns : rows;
        if (f.seldom()) {
            f.params.set(2 + operand, 1);
            f.input(Shape(zeros, operand ? f.byte() : a));
        } else if (f.flag()) {
            f.set(4 + operand, f.numbers(zeros, -9, 9));
        }
    }
}

void deformable(Fitting& f) {
    const Window window(f);
    const int made = f.random.number(1, 9);
    const int taps = window.kernel[0] * window.kernel[1];
    const Shape x(f.random.number(3, 9), f.random.number(3, 9), f.random.number(1, 17));
    f.params.set(0, made), f.params.set(6, made * x.c * taps);
    const int w = window.count(0, x.w), h = window.count(1, x.h);
    f.input(x);
    f.input(Shape(w, h, 2 * taps));
    if (f.flag()) f.input(Shape(w, h, taps));
}

void dynamic_lstm(Fitting& f) {
    f.params = ParamDict();
    const int every = f.random.number(1, 2);
    const int rows[2] = {f.random.number(1, 3), f.random.number(1, 3)};
    const int cells = f.random.number(1, 9), made = f.random.number(1, 9);
    const int offset = f.random.number(0, made - 1), recurs = f.random.number(1, made - offset);
    const int wide = f.random.number(1, 9), frames = f.random.number(1, 9);
    f.params.set(0, -every * rows[0]), f.params.set(1, -every * rows[1]);
    f.params.set(2, offset), f.params.set(3, recurs);
    f.params.set(4, cells), f.params.set(5, made);
    f.params.set(6, 4 * cells * (wide + recurs));
    f.params.set(7, f.random.number(0, 1)), f.params.set(8, f.random.number(0, 1));
    if (f.flag()) f.params.set(9, f.random.real(-1.f, 1.f));
    f.params.set(10, every);
    int run = frames;
    if (f.seldom()) {
        run = f.random.number(1, 6);
        f.set(11, f.numbers(run, 0, frames - 1));
    }
    for (int i = 0; i < 2; i++)
        if (f.seldom()) f.set(12 + i, f.numbers(rows[i], 0, run - 1));
    f.input(Shape(wide, frames));
    f.outputs = f.flag() ? 3 : 1;
    if (f.flag()) return;
    f.input(Shape(recurs, rows[0]));
    f.input(Shape(cells, rows[1]));
}

// gates and activations of a direction. Without round_inputs: a tie that falls the other way moves
// all later steps.
void recurrent(Fitting& f, int gates, int functions, bool has_cell) {
    f.params = ParamDict();
    const int hidden = f.random.number(1, 20), wide = f.random.number(1, 20);
    const int steps = f.random.number(1, 5), sequences = f.random.number(1, 4);
    const int direction = f.random.number(0, 2), both = direction == 2 ? 2 : 1;
    const bool batch_first = f.seldom(), flat = f.seldom();
    const int rows = gates * hidden;
    const auto flag = [&](int id, bool on) {
        f.params.set(id, on ? 1 : 0);
        return on;
    };
    f.params.set(0, hidden), f.params.set(2, direction);
    flag(3, batch_first);
    if (gates > 1) flag(4, f.flag());
    if (f.seldom()) f.params.set(5, f.random.real(0.1f, 2.f));
    const bool bias = flag(6, f.flag()), peephole = has_cell && flag(7, f.seldom());
    const bool lengths = flag(8, f.seldom()), state = flag(9, f.flag());
    const bool cell = has_cell && flag(10, f.flag()), dynamic = flag(11, f.seldom());
    if (f.seldom()) f.set(12, f.numbers(functions * both, 0, 10));
    if (flat)
        f.input(Shape(wide, steps));
    else
        f.input(batch_first ? Shape(wide, steps, sequences) : Shape(wide, sequences, steps));
    if (dynamic) {
        f.finite(Shape(wide, rows, both));
        f.finite(Shape(hidden, rows, both));
        if (bias) f.finite(Shape(2 * rows, both));
    } else {
        f.params.set(1, both * rows * wide);
    }
    const int items = flat ? 1 : sequences;
    if (lengths) f.input(Shape(items, DType::s32), f.numbers(items, 0, steps));
    const Shape states = flat          ? Shape(hidden, both)
                         : batch_first ? Shape(hidden, both, sequences)
                                       : Shape(hidden, sequences, both);
    if (state) f.finite(states);
    if (cell) f.finite(states);
    if (dynamic && peephole) f.input(Shape(3 * hidden, both));
    f.outputs = f.random.number(1, has_cell ? 3 : 2);
}
void gru(Fitting& f) { recurrent(f, 3, 2, false); }
void lstm(Fitting& f) { recurrent(f, 4, 3, true); }
void rnn(Fitting& f) { recurrent(f, 1, 1, false); }

void regions(Fitting& f) {
    const int items = f.random.number(1, 3), boxes = f.random.number(1, 5);
    Shape image(f.random.number(1, 9), f.random.number(1, 9), f.random.number(1, 9));
    image.n = items;
    f.input(image);
    f.input(Shape(4, boxes));
    f.input(Shape(boxes, DType::s32), f.numbers(boxes, 0, items - 1));
}

void proposal(Fitting& f) {
    const int w = f.random.number(1, 6), h = f.random.number(1, 6);
    f.input(Shape(w, h, 18));
    f.input(Shape(w, h, 36));
    f.input(Shape(f.random.number(3, 4)));
    f.params.set(5, f.random.number(0, 2));  // larger boxes lie in no image as small as these
    f.outputs = f.random.number(1, 2);
}

void score_maps(Fitting& f) {
    const int made = f.random.number(1, 4), w = f.random.number(1, 3), h = f.random.number(1, 3);
    f.params.set(0, w), f.params.set(1, h), f.params.set(3, made);
    if (f.flag()) f.params.set(2, 1.f);
    f.input(Shape(f.random.number(1, 9), f.random.number(1, 9), made * w * h));
    f.input(Shape(4));
}

Shape any_shape(Fitting& f, int least_axes) {
    Shape s(f.random.size(9));
    const int axes = f.random.number(least_axes, 4);
    if (axes == 2) s = Shape(s.w, f.random.size(9));
    if (axes == 3) s = Shape(s.w, f.random.size(6), f.random.size(9));
    if (axes == 4) s = Shape(s.w, f.random.size(6), f.random.size(4), f.random.size(6));
    return s;
}

void one_hot(Fitting& f) {
    Shape indices = any_shape(f, 1);
    if (indices.dims == 4) indices = Shape(indices.w, indices.h);
    const int depth = f.random.number(1, 9);
    indices.dtype = DType::s32;
    f.params = ParamDict();
    f.params.set(0, f.random.number(-1 - indices.dims, indices.dims));
    f.input(indices, f.numbers(indices.w, -depth, depth));
    f.input(Shape(2, f.flag() ? DType::f32 : DType::s32));
    if (f.flag())
        f.params.set(1, depth);
    else
        f.input(Shape(1, DType::s32), {depth});
}

void reverse_sequence(Fitting& f) {
    const Shape data = any_shape(f, 2);
    const int batch = f.random.number(0, data.dims - 1);
    const int time = (batch + f.random.number(1, data.dims - 1)) % data.dims;
    f.params.set(0, batch), f.params.set(1, f.flag() ? time : time - data.dims);
    f.input(data);
    f.input(Shape(data.size(batch), DType::s32), f.numbers(data.size(batch), 0, data.size(time)));
}

void scatter_nd(Fitting& f) {
    const Shape data = any_shape(f, 1);
    const int tuple = f.random.number(1, data.dims), count = f.random.number(1, 5);
    std::vector<int> places;
    for (int i = 0; i < count; i++)
        for (int axis = 0; axis < tuple; axis++)
            places.push_back(f.random.number(-data.size(axis), data.size(axis) - 1));
    f.input(data);
    // Rows of 2-D blobs follow one another.
    f.input(Shape(tuple, count, DType::s32), places);
    Shape updates(count);
    const int rest = data.dims - tuple;
    if (rest == 1) updates = Shape(data.w, count);
    if (rest == 2) updates = Shape(data.w, data.h, count);
    if (rest == 3) updates = Shape(data.w, data.h, data.d, count);
    f.input(updates);
}

void loop_start(Fitting& f) {
    f.input(Shape(1, DType::s32));
    f.input(f.flag() ? Shape(1) : Shape(1, DType::s32));
    for (int i = f.random.number(0, 2); i > 0; i--)
        f.input(Shape(f.random.size(9), f.random.size(9), f.random.size(9)));
    f.outputs = (int)f.inputs.size() + 1;
}

Shape shape_of(const std::vector<int>& sizes, DType dtype = DType::f32) {
    Shape s(1, dtype);
    s.dims = (int)sizes.size();
    for (int axis = 0; axis < s.dims; axis++) s.set_size(axis, sizes[(size_t)axis]);
    return s;
}

// A list as a param in one case of two, or else as an input.
void param_or_input(Fitting& f, int id, const std::vector<int>& list) {
    if (f.flag())
        f.set(id, list);
    else
        f.input(Shape((int)list.size(), DType::s32), list);
}

void affine_grid(Fitting& f) {
    const int axes = f.random.number(2, 3);
    f.params = ParamDict();
    f.params.set(1, f.random.number(0, 1));
    f.input(Shape(axes + 1, axes));
    param_or_input(f, 0, f.numbers(axes + 2, 1, 6));
}

void window_pool(Fitting& f) {
    const int axes = f.random.number(1, 3), op_type = f.random.number(0, 3);
    f.params = ParamDict();
    f.params.set(0, op_type);
    f.set(1, f.numbers(axes, 1, 3));
    f.some(2, axes, 1, 3, 1), f.some(3, axes, 1, 2, 1);
    if (f.flag())
        f.set(4, f.numbers(2 * axes, 0, 1));
    else
        f.params.set(6, f.random.number(0, 3));
    f.params.set(5, f.random.number(0, 1)), f.params.set(7, f.random.number(0, 1));
    if (f.seldom()) f.params.set(8, f.random.number(1, 3));
    f.params.set(9, f.random.number(0, 1));
    std::vector<int> sizes = f.numbers(axes + 1, 3, 8);
    f.input(shape_of(sizes, op_type < 2 && f.seldom() ? f.byte() : DType::f32));
    f.outputs = op_type == 0 && f.flag() ? 2 : 1;
}

// Windows side by side, as MaxPool leaves them, with places anywhere in the output.
void max_unpool(Fitting& f) {
    const int axes = f.random.number(1, 3);
    f.params = ParamDict();
    const std::vector<int> kernel = f.numbers(axes, 1, 3);
    f.set(1, kernel), f.set(2, kernel);
    std::vector<int> sizes = f.numbers(axes + 1, 1, 4), made = sizes;
    int values = sizes[0], places = sizes[0];
    for (int i = 0; i < axes; i++) {
        made[(size_t)i + 1] *= kernel[(size_t)i];
        values *= sizes[(size_t)i + 1], places *= made[(size_t)i + 1];
    }
    f.input(shape_of(sizes));
    f.input(shape_of(sizes, DType::s32), f.numbers(values, 0, places - 1));
    if (!f.seldom()) return;
    made.insert(made.begin(), 1);
    f.input(Shape((int)made.size(), DType::s32), made);
}

void range(Fitting& f) {
    const DType dtype = f.flag() ? DType::f32 : DType::s32;
    for (int i = 0; i < 3; i++) f.input(Shape(1, dtype));
}

// Sizes from the outermost axis on.
std::vector<int> sizes_of(const Shape& s) {
    std::vector<int> sizes;
    for (int axis = 0; axis < s.dims; axis++) sizes.push_back(s.size(axis));
    return sizes;
}

int least_of(const std::vector<int>& list) { return *std::min_element(list.begin(), list.end()); }

void gather_nd(Fitting& f) {
    const Shape data = any_shape(f, 1);
    const int tuple = f.random.number(1, data.dims), count = f.random.number(1, 5);
    const int most = least_of(sizes_of(data));
    f.params = ParamDict();
    f.input(data);
    f.input(Shape(tuple, count, DType::s32), f.numbers(tuple * count, -most, most - 1));
}

// The places of an axis; the other axes of indices are not longer than data's.
void elements(Fitting& f) {
    const Shape data = any_shape(f, 1);
    const int axis = f.random.number(0, data.dims - 1), size = data.size(axis);
    std::vector<int> sizes;
    int values = 1;
    for (int i = 0; i < data.dims; i++) {
        sizes.push_back(f.random.number(1, i == axis ? 9 : data.size(i)));
        values *= sizes.back();
    }
    f.params.set(0, f.flag() ? axis : axis - data.dims);
    f.input(data);
    f.input(shape_of(sizes, DType::s32), f.numbers(values, -size, size - 1));
}
void gather_elements(Fitting& f) {
    f.params = ParamDict();
    elements(f);
}
void scatter_elements(Fitting& f) {
    f.params = ParamDict();
    if (f.flag()) f.params.set(1, f.random.number(0, 4));
    elements(f);
    Shape updates = f.inputs[1].shape;
    updates.dtype = DType::f32;
    f.input(updates);
}

// `count` shapes that broadcast together, of as many axes or fewer.
std::vector<Shape> broadcast(Fitting& f, int count) {
    const std::vector<int> whole = sizes_of(any_shape(f, 1));
    std::vector<Shape> shapes;
    for (int i = 0; i < count; i++) {
        std::vector<int> sizes = whole;
        if (f.seldom())
            sizes.erase(sizes.begin(), sizes.end() - f.random.number(1, (int)sizes.size()));
        for (int& size : sizes)
            if (f.seldom()) size = 1;
        shapes.push_back(shape_of(sizes));
    }
    return shapes;
}

void where(Fitting& f) {
    std::vector<Shape> shapes = broadcast(f, 3);
    shapes[0].dtype = DType::u8;
    shapes[1].dtype = shapes[2].dtype = f.seldom() ? DType::s32 : DType::f32;
    for (const Shape& s : shapes) f.input(s);
}

void expand(Fitting& f) {
    const std::vector<Shape> shapes = broadcast(f, 2);
    f.params = ParamDict();
    f.input(shapes[0]);
    param_or_input(f, 0, sizes_of(shapes[1]));
}

void reshape_to(Fitting& f) {
    const Shape data = any_shape(f, 1);
    std::vector<int> sizes = sizes_of(data);
    // Two axes are one, or one is two.
    const int axis = f.random.number(0, data.dims - 1);
    if (f.flag() && axis + 1 < data.dims) {
        sizes[(size_t)axis] *= sizes[(size_t)axis + 1];
        sizes.erase(sizes.begin() + axis + 1);
    } else if (data.dims < 4) {
        const int half = sizes[(size_t)axis] % 2 == 0 ? 2 : 1;
        sizes[(size_t)axis] /= half;
        sizes.insert(sizes.begin() + axis, half);
    }
    if (f.flag()) sizes[(size_t)f.random.number(0, (int)sizes.size() - 1)] = -1;
    f.params = ParamDict();
    f.params.set(1, f.random.number(0, 1));
    f.input(data);
    param_or_input(f, 0, sizes);
}

void constant_of_shape(Fitting& f) {
    const std::vector<int> sizes = sizes_of(any_shape(f, 1));
    f.input(Shape((int)sizes.size(), DType::s32), sizes);
}

void compress(Fitting& f) {
    const Shape data = any_shape(f, 1);
    f.params = ParamDict();
    int values = 1;
    if (f.flag()) {
        const int axis = f.random.number(0, data.dims - 1);
        f.params.set(0, f.flag() ? axis : axis - data.dims);
        values = data.size(axis);
    }
    f.input(data);
    f.input(Shape(f.random.number(1, values), DType::u8));
}

void top_k(Fitting& f) {
    const Shape data = any_shape(f, 1);
    const int axis = f.random.number(0, data.dims - 1);
    const int k = f.random.number(1, data.size(axis));
    f.params = ParamDict();
    f.params.set(1, f.flag() ? axis : axis - data.dims);
    f.params.set(2, f.random.number(0, 1)), f.params.set(3, f.random.number(0, 1));
    f.input(data);
    f.outputs = 2;
    if (f.flag())
        f.params.set(0, k);
    else
        f.input(Shape(1, DType::s32), {k});
}

void non_max_suppression(Fitting& f) {
    const int boxes = f.random.number(1, 9), classes = f.random.number(1, 3);
    f.input(Shape(4, boxes, 1));
    f.input(Shape(boxes, classes, 1));
    if (f.flag()) f.input(Shape(1, DType::s32), {f.random.number(1, 5)});
}

void yolo_detection(Fitting& f) {
    const int classes = f.random.number(1, 4), boxes = f.random.number(1, 3);
    f.params.set(0, classes), f.params.set(1, boxes);
    Mat biases(2 * boxes);
    for (int i = 0; i < biases.w; i++) biases[i] = f.random.real(0.5f, 3.f);
    f.params.set(4, biases);
    for (int maps = f.random.number(1, 2); maps > 0; maps--)
        f.input(Shape(f.random.number(1, 5), f.random.number(1, 5), boxes * (5 + classes)));
}

void rotary_embed(Fitting& f) {
    const int half = f.random.number(1, 12), positions = f.random.number(1, 5);
    const int angles = positions + f.random.number(0, 2);
    f.input(Shape(2 * half, positions, f.random.number(1, 4)));
    for (int i = 0; i < 2; i++) f.input(Shape(half, angles));
}

}  // namespace

bool fitting_inputs(const std::string& type, Random* random, ParamDict* params,
                    std::vector<Wanted>* inputs, int* outputs) {
    static const std::map<std::string, void (*)(Fitting&)> kMakers = {
        {"OneHot", one_hot},
        {"PSROIPooling", score_maps},
        {"ReverseSequence", reverse_sequence},
        {"ScatterND", scatter_nd},
        {"Col2Im", col2im},
        {"ConvInteger", conv_integer},
        {"CropAndResize", regions},
        {"DeformableConv2D", deformable},
        {"DynamicLSTM", dynamic_lstm},
        {"LoopStart", loop_start},
        {"MatMulInteger", matmul_integer},
        {"OnnxGRU", gru},
        {"OnnxLSTM", lstm},
        {"OnnxRNN", rnn},
        {"OnnxROIAlign", regions},
        {"Proposal", proposal},
        {"AffineGrid", affine_grid},
        {"Compress", compress},
        {"ConstantOfShape", constant_of_shape},
        {"Expand", expand},
        {"GatherElements", gather_elements},
        {"GatherND", gather_nd},
        {"MaxUnpool", max_unpool},
        {"NonMaxSuppression", non_max_suppression},
        {"Range", range},
        {"ReshapeTo", reshape_to},
        {"RotaryEmbed", rotary_embed},
        {"ScatterElements", scatter_elements},
        {"TopK", top_k},
        {"Where", where},
        {"WindowPool", window_pool},
        {"YoloDetectionOutput", yolo_detection},
    };
    const auto maker = kMakers.find(type);
    if (maker == kMakers.end()) return false;
    inputs->clear();
    *outputs = 1;
    Fitting fitting = {*random, *params, *inputs, *outputs};
    maker->second(fitting);
    return true;
}
