#include "layer/vulkan/recorder.h"

#include <algorithm>

#include "quoll/status.h"

namespace quoll {

namespace {

const uint32_t kLinearGroup = 64;  // local size of shaders with linear_index()

std::vector<uint32_t> bits_of(const Words& words) {
    std::vector<uint32_t> bits;
    for (const Word& word : words) bits.push_back(word.bits);
    return bits;
}

// As the shaders number them.
int host_type(DType dtype) { return dtype == DType::f32 ? 0 : dtype == DType::f16 ? 1 : 2; }

size_t host_bytes(const Shape& shape, DType dtype) {
    return (shape.total() * dtype_size(dtype) + 3) / 4 * 4;
}

}  // namespace

Shader Recorder::half_form(Shader shader) const {
    if (!multiplies_halves_) return shader;
    switch (shader) {
        case Shader::conv_depthwise:
            return Shader::conv_depthwise_half;
        case Shader::conv_tiled:
            return Shader::conv_tiled_half;
        case Shader::conv_tiled_planar:
            return Shader::conv_tiled_planar_half;
        case Shader::innerproduct:
            return Shader::innerproduct_half;
        case Shader::product:
            return Shader::product_half;
        default:
            return shader;
    }
}

Value Recorder::make(const Shape& shape, Layout layout) {
    Value value;
    value.shape = shape, value.layout = layout;
    const bool words = is_integer(shape.dtype) && layout == Layout::kPlanar;
    const size_t size = words ? 4 : storage_size(storage_);
    value.block = program_.add_block(stored_scalars(shape, layout) * size);
    if (layout == Layout::kChannelsLast) value.pitch = round4(shape.c);
    return value;
}

Value Recorder::make_given(const Shape& shape, uint32_t channel_step) {
    Value value;
    value.shape = shape, value.channel_step = channel_step;
    value.block = program_.add_given((size_t)channel_step * shape.c * storage_size(storage_));
    return value;
}

int Recorder::keep_integers(const Mat& m, const Shape& shape, Value* value) {
    std::vector<uint32_t> words;
    for (int q = 0; q < m.c; q++) {
        const unsigned char* from = (const unsigned char*)m.data + q * m.cstep * m.elemsize;
        for (uint32_t i = 0; i < plane(shape); i++) {
            const int number = m.dtype == DType::s32  ? ((const int32_t*)from)[i]
                               : m.dtype == DType::s8 ? ((const int8_t*)from)[i]
                                                      : from[i];
            words.push_back((uint32_t)number);
        }
    }
    value->shape = shape, value->constant = (int)kept_.size();
    kept_.emplace_back();
    return constants_.add_words(words, &kept_.back());
}

int Recorder::keep(const Mat& m, const Shape& shape, Layout layout, Value* value) {
    if (is_integer(m.dtype)) return keep_integers(m, shape, value);
    Mat wide = m;
    if (m.dtype == DType::f16) cast_float16_to_float32(m, wide);
    if (m.dtype == DType::bf16) cast_bfloat16_to_float32(m, wide);
    if (wide.empty()) return kOutOfMemory;
    value->shape = shape, value->layout = layout;
    if (layout == Layout::kChannelsLast) value->pitch = round4(shape.c);
    const Strides to = value->strides();
    std::vector<float> values(stored_scalars(shape, layout), 0.f);
    for (int q = 0; q < wide.c; q++) {
        const float* from = (const float*)wide.data + q * wide.cstep;
        for (uint32_t i = 0; i < plane(shape); i++) values[q * to.c + i * to.w] = from[i];
    }
    value->constant = (int)kept_.size();
    kept_.emplace_back();
    return constants_.add(values, storage_, &kept_.back());
}

Binding Recorder::bind_block(int block, bool written) const {
    Binding binding;
    binding.where = Binding::kBlock, binding.block = block;
    binding.bytes = program_.block_bytes(block), binding.written = written;
    return binding;
}

Binding Recorder::counters(uint32_t count) {
    Binding binding;
    binding.where = Binding::kCounters, binding.bytes = count * sizeof(uint32_t);
    binding.offset = program_.add_counters(binding.bytes, device_.alignment());
    return binding;
}

Binding Recorder::faults() {
    Binding binding;
    binding.where = Binding::kFaults, binding.bytes = kFaultBytes;
    binding.offset = program_.add_faults(step_, device_.alignment());
    return binding;
}

Binding Recorder::bind(const Value& value, bool written) const {
    if (value.constant >= 0) return kept_[value.constant];
    if (value.is_staged) {
        Binding staged;
        staged.where = Binding::kUpload, staged.offset = value.staged_offset;
        staged.bytes = host_bytes(value.shape, value.staged_type);
        return staged;
    }
    Binding binding = bind_block(value.block, written);
    if (value.layout == Layout::kChannelsLast && value.first < value.pitch) {
        binding.pitch = (int)value.pitch, binding.lane_first = (int)value.first;
        binding.lane_last = (int)(value.first + round4(value.shape.c));
    }
    return binding;
}

Dispatch Recorder::make_dispatch(Shader shader, const Words& constants,
                                 const std::vector<Binding>& bindings, const Words& push,
                                 uint32_t x, uint32_t y, uint32_t z) const {
    Dispatch d;
    // Shaders that know no floats have one form.
    const Storage storage = shader_code(shader, storage_).words ? storage_ : Storage::f32;
    d.key = {shader, storage, (int)bindings.size(), bits_of(constants)};
    d.bindings = bindings, d.push = bits_of(push), d.step = step_;
    d.groups[0] = x, d.groups[1] = y, d.groups[2] = z;
    return d;
}

Dispatch Recorder::linear_dispatch(Shader shader, const Words& constants,
                                   const std::vector<Binding>& bindings, const Words& push,
                                   uint32_t count) const {
    const uint32_t groups = (count + kLinearGroup - 1) / kLinearGroup;
    const uint32_t x = std::min(groups, device_.limits().maxComputeWorkGroupCount[0]);
    return make_dispatch(shader, constants, bindings, push, x, x ? (groups + x - 1) / x : 1, 1);
}

void Recorder::dispatch(Shader shader, const Words& constants, const std::vector<Binding>& bindings,
                        const Words& push, uint32_t x, uint32_t y, uint32_t z) {
    Dispatch d = make_dispatch(shader, constants, bindings, push, x, y, z);
    d.choice = next_choice_, next_choice_ = -1;
    program_.add(d);
}

void Recorder::dispatch_linear(Shader shader, const Words& constants,
                               const std::vector<Binding>& bindings, const Words& push,
                               uint32_t count) {
    Dispatch d = linear_dispatch(shader, constants, bindings, push, count);
    d.choice = next_choice_, next_choice_ = -1;
    program_.add(d);
}

int Recorder::prepare(Shader shader, const Words& constants, const Binding& from, const Words& push,
                      uint32_t count, size_t bytes, Binding* made) {
    QUOLL_RETURN_IF_ERROR(constants_.reserve(bytes, made));
    program_.prepared.push_back(linear_dispatch(shader, constants, {from, *made}, push, count));
    return kOk;
}

size_t Recorder::upload(const Value& to, DType host) {
    const size_t offset = program_.add_upload(host_bytes(to.shape, host), device_.alignment());
    upload_from(offset, to, host);
    return offset;
}

size_t Recorder::stage(Value* value, DType host) {
    value->is_staged = true, value->staged_type = host;
    return value->staged_offset =
               program_.add_upload(host_bytes(value->shape, host), device_.alignment());
}

bool Recorder::can_stage(DType host) const {
    const bool stored = host == DType::f32 || host == dtype_of(storage_);
    return stored && device_.is_local(MemoryUse::kUpload);
}

void Recorder::upload_from(size_t offset, const Value& to, DType host) {
    Binding from;
    from.where = Binding::kUpload, from.bytes = host_bytes(to.shape, host);
    from.offset = offset;
    if (is_integer(host)) {
        const uint32_t total = (uint32_t)to.shape.total();
        dispatch_linear(Shader::upload_int, {(int)host}, {from, write(to)}, {total, to.first},
                        total);
        return;
    }
    const Rows rows = rows_of(to);
    const uint32_t count = rows.count * rows.vectors();
    dispatch_linear(
        Shader::upload, {host_type(host), (int)to.layout, host_type(dtype_of(storage_))},
        {from, write(to)},
        {count, rows.vectors(), rows.length, plane(to.shape), rows.pitch / 4, to.first / 4, 0},
        count);
    if (is_narrowed(host, storage_)) set_narrowed(6);
}

size_t Recorder::download(const Value& from, DType host) {
    const size_t offset = program_.add_download(host_bytes(from.shape, host), device_.alignment());
    download_to(offset, from, host);
    return offset;
}

Binding Recorder::download_binding(const Shape& shape, DType host) {
    Binding to;
    to.where = Binding::kDownload, to.bytes = host_bytes(shape, host), to.written = true;
    to.offset = program_.add_download(to.bytes, device_.alignment());
    return to;
}

void Recorder::download_to(size_t offset, const Value& from, DType host) {
    const size_t bytes = host_bytes(from.shape, host);
    Binding to;
    to.where = Binding::kDownload, to.bytes = bytes;
    to.offset = offset;
    const uint32_t total = (uint32_t)from.shape.total();
    if (is_integer(host)) {
        dispatch_linear(Shader::download_int, {(int)host}, {read(from), to}, {total, from.first},
                        (uint32_t)(bytes / 4));
        return;
    }
    dispatch_linear(Shader::download, {host_type(host), (int)from.layout}, {read(from), to},
                    {total, plane(from.shape), from.shape.c, from.pitch, from.first},
                    (uint32_t)(bytes / 4));
}

void Recorder::copy(const Value& from, const Value& to) {
    const Strides a = from.strides(), b = to.strides();
    const Shape& s = to.shape;
    const CopyAxis w = {(uint32_t)s.w, a.w, b.w}, h = {(uint32_t)s.h, a.h, b.h};
    const CopyAxis d = {(uint32_t)s.d, a.d, b.d}, n = {(uint32_t)s.n, a.n, b.n};
    const CopyAxis c = {(uint32_t)s.c, a.c, b.c};
    const bool changes = are_words(from) != are_words(to);
    const Shader shader = changes ? Shader::copy_int : Shader::copy;
    if (to.layout == Layout::kChannelsLast)
        record_strided_copy(*this, from, from.first, to, to.first,
                            {{round4(s.c), a.c, b.c}, w, h, d, n}, (uint32_t)s.c, shader);
    else
        record_strided_copy(*this, from, from.first, to, to.first, {w, h, d, c, n}, w.size, shader);
}

void record_strided_copy(Recorder& r, const Value& from, uint32_t first_from, const Value& to,
                         uint32_t first_to, std::vector<CopyAxis> axes, uint32_t valid,
                         Shader shader) {
    uint32_t count = 1;
    for (const CopyAxis& axis : axes) count *= axis.size;
    axes.resize(6, CopyAxis{1, 0, 0});
    Words push = {count, valid, first_from, first_to};
    for (const CopyAxis& axis : axes) push.push_back(axis.size);
    for (const CopyAxis& axis : axes) push.push_back(axis.from);
    for (const CopyAxis& axis : axes) push.push_back(axis.to);
    Words constants;
    if (shader == Shader::copy_int) constants.push_back(are_words(from));
    r.dispatch_linear(shader, constants, {r.read(from), r.write(to)}, push, count);
}

}  // namespace quoll
