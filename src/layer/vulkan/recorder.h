// With which operators record their dispatches.
#ifndef QUOLL_LAYER_VULKAN_RECORDER_H
#define QUOLL_LAYER_VULKAN_RECORDER_H

#include <string.h>

#include <vector>

#include "gpu/weights.h"
#include "layer/vulkan/value.h"
#include "quoll/option.h"

namespace quoll {

// A push or specialisation constant.
struct Word {
    uint32_t bits;
    Word(int value) : bits((uint32_t)value) {}
    Word(uint32_t value) : bits(value) {}
    Word(float value) { memcpy(&bits, &value, 4); }
    Word(bool value) : bits(value) {}
};
typedef std::vector<Word> Words;

// Whether products may be made on matrix units.
inline bool can_use_matrices(const GpuDevice& device, Storage storage, bool use) {
    const MatrixUnits& units = device.features().matrix;
    return use && (storage == Storage::bf16 ? units.bfloat16 : storage == Storage::f16 && units.m);
}

// Whether the host rounds uploads to 16 bits: half the bytes to copy, and the same rounding.
inline bool is_narrowed(DType host, Storage storage) {
    return host == DType::f32 && storage != Storage::f32;
}

const uint32_t kMostGroups = 65535;  // along an axis, on any device

class Recorder {
public:
    Recorder(const GpuDevice& device, Storage storage, const Option& opt, Program* program,
             WeightStore* constants)
        : device_(device),
          storage_(storage),
          has_matrices_(can_use_matrices(device, storage, opt.use_cooperative_matrix)),
          multiplies_halves_(storage == Storage::f16 && opt.use_fp16_arithmetic &&
                             device.features().float16),
          has_lanes_(device.features().vector_lanes && opt.use_subgroup_ops && !multiplies_halves_),
          program_(*program),
          constants_(*constants) {}

    const GpuDevice& device() const { return device_; }
    Storage storage() const { return storage_; }
    bool has_matrices() const { return has_matrices_; }
    // Whether convolutions may take conv_lanes.comp.
    bool has_lanes() const { return has_lanes_; }
    // A shader that multiplies f16 as floats, or, if that is asked for and the device can do it,
    // its form that multiplies halves.
    Shader half_form(Shader shader) const;
    // Dispatches from now on belong to this step of the region.
    void set_step(int step) { step_ = step; }

    // A value with a block of its own: an output, or something that a layer needs while it runs.
    // Its memory is shared with values that live at other times.
    Value make(const Shape& shape, Layout layout);
    // Memory of `bytes` bytes for 32-bit numbers, bound by read_block and write_block.
    int make_block(size_t bytes) { return program_.add_block(bytes); }
    // Memory that each run brings, for channels this many scalars apart.
    Value make_given(const Shape& shape, uint32_t channel_step);

    // Storage buffers of a dispatch, in the order of their bindings. The binding of a value is its
    // whole block: shaders add Value::first.
    Binding read(const Value& value) const { return bind(value, false); }
    Binding write(const Value& value) const { return bind(value, true); }
    Binding read_block(int block) const { return bind_block(block, false); }
    Binding write_block(int block) const { return bind_block(block, true); }
    // `count` numbers that are 0 before and after each dispatch that uses them.
    Binding counters(uint32_t count);
    // Words that a shader sets where an index is wrong (take.comp): the run then fails.
    Binding faults();
    // A table that follows from sizes and is too long for push constants. Kept as long as the
    // program.
    int constants(const std::vector<uint32_t>& words, Binding* binding) {
        return constants_.add_words(words, binding);
    }

    // A constant of `bytes` bytes that a shader of two bindings makes of another one, once, before
    // the program runs: one invocation for each i < count.
    int prepare(Shader shader, const Words& constants, const Binding& from, const Words& push,
                uint32_t count, size_t bytes, Binding* made);

    // Makes a constant value of `m`, of any type.
    int keep(const Mat& m, const Shape& shape, Layout layout, Value* value);

    // The next dispatch has one of several forms, among which tuning chooses.
    void set_choice(const Choice& choice) {
        next_choice_ = (int)program_.choices.size();
        program_.choices.push_back(choice);
    }
    // constants: specialisation constants 0, 1, ...; push: at most kPushBytes.
    void dispatch(Shader shader, const Words& constants, const std::vector<Binding>& bindings,
                  const Words& push, uint32_t x, uint32_t y = 1, uint32_t z = 1);
    // Runs one invocation for each i < count; the shader has linear_index() (common/index.glsl).
    void dispatch_linear(Shader shader, const Words& constants,
                         const std::vector<Binding>& bindings, const Words& push, uint32_t count);

    // Copies the values of `from` to `to`, which has another layout or place, or stores integers
    // differently.
    void copy(const Value& from, const Value& to);
    // Copies between values and the staging buffers, where they have no gaps, from the returned
    // offset on.
    size_t upload(const Value& to, DType host);
    size_t download(const Value& from, DType host);
    // Leaves the value where the host writes it: no dispatch. See Value::is_staged.
    size_t stage(Value* value, DType host);
    // Whether that memory is the device's, and the values have the type that blobs are stored as.
    bool can_stage(DType host) const;
    // Sets word `push` of the last dispatch to 1 in runs whose staged values are narrowed.
    void set_narrowed(int push) { program_.dispatches.back().narrowed = push; }
    // The binding to which download() would copy.
    Binding download_binding(const Shape& shape, DType host);
    void upload_from(size_t offset, const Value& to, DType host);
    void download_to(size_t offset, const Value& from, DType host);
    Program& program() { return program_; }

private:
    Dispatch linear_dispatch(Shader shader, const Words& constants,
                             const std::vector<Binding>& bindings, const Words& push,
                             uint32_t count) const;
    Dispatch make_dispatch(Shader shader, const Words& constants,
                           const std::vector<Binding>& bindings, const Words& push, uint32_t x,
                           uint32_t y, uint32_t z) const;
    int keep_integers(const Mat& m, const Shape& shape, Value* value);
    Binding bind(const Value& value, bool written) const;
    Binding bind_block(int block, bool written) const;

    const GpuDevice& device_;
    const Storage storage_;
    const bool has_matrices_, multiplies_halves_, has_lanes_;
    Program& program_;
    WeightStore& constants_;
    std::vector<Binding> kept_;  // constants
    int step_ = -1, next_choice_ = -1;
};

// Axes of a strided copy in the order of the output's memory, the fastest first.
struct CopyAxis {
    uint32_t size, from, to;  // strides
};
// to[i . to strides] = from[i . from strides] for all i, starting at scalars `first_*` of the
// blocks. At most 6 axes. On the fastest axis `valid` scalars are copied, and zeros stored behind
// them.
void record_strided_copy(Recorder& r, const Value& from, uint32_t first_from, const Value& to,
                         uint32_t first_to, std::vector<CopyAxis> axes, uint32_t valid,
                         Shader shader = Shader::copy);

}  // namespace quoll

#endif
