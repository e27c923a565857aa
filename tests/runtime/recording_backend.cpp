#include "recording_backend.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <random>

#include "layer/control/memorydata.h"
#include "layer/common/schema.h"
#include "quoll/log.h"
#include "runtime/log_mute.h"
#include "plan/execution_plan.h"
#include "plan/executor.h"
#include "plan/memory_plan.h"

namespace quoll {

namespace {

size_t bytes_of(const Shape& s) {
    const size_t size = dtype_size(s.dtype);
    return Mat::channel_step(s.dims, s.w, s.h, s.d, size) * s.c * s.n * size;
}

// Pages that fault when they are touched while the device does not own them, filled with NaN.
class DeviceMemory {
public:
    explicit DeviceMemory(size_t size) : size_(align_size(size + kMallocOverread, 4096)) {
        data_ = (char*)mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                            0);
        poison(0, size_);
        lock();
    }
    ~DeviceMemory() { munmap(data_, size_); }
    void unlock() { mprotect(data_, size_, PROT_READ | PROT_WRITE); }
    void lock() { mprotect(data_, size_, PROT_NONE); }
    void poison(size_t offset, size_t size) { memset(data_ + offset, 0xff, size); }
    // A planar Mat over it.
    Mat view(size_t offset, const Shape& shape) {
        Mat m;
        m.data = data_ + offset;
        m.dtype = shape.dtype;
        m.elemsize = dtype_size(shape.dtype);
        m.elempack = 1;
        m.dims = shape.dims;
        m.w = shape.w, m.h = shape.h, m.d = shape.d, m.c = shape.c, m.n = shape.n;
        m.cstep = Mat::channel_step(shape.dims, shape.w, shape.h, shape.d, m.elemsize);
        m.nstep = m.cstep * m.c;
        return m;
    }

private:
    char* data_;
    size_t size_;
};

void copy_values(const Mat& from, Mat* to) {
    for (int b = 0; b < from.n; b++)
        for (int q = 0; q < from.c; q++)
            memcpy((char*)to->data + (b * to->nstep + q * to->cstep) * to->elemsize,
                   (const char*)from.data + (b * from.nstep + q * from.cstep) * from.elemsize,
                   (size_t)from.w * from.h * from.d * from.elemsize);
}

struct Command {
    const Layer* layer;
    std::vector<int> inputs, outputs, dead;  // values; dead: read no more afterwards
    std::vector<Shape> planned;
    std::shared_ptr<const LayerPlan> plan;
};

class RecordedRegion : public CompiledRegion {
public:
    RecordedRegion(const Region& region, const Option& opt, const RecordingBackend& backend)
        : values_(region.values), opt_(opt), backend_(backend) {
        opt_.blob_allocator = opt_.workspace_allocator = nullptr;
        plan_memory_of_values((int)region.steps.size());
        for (size_t i = 0; i < region.steps.size(); i++) record(region, (int)i);
    }
    size_t arena_bytes() const override { return memory_.bytes; }

    int run(const std::vector<Mat>& uploads, std::vector<Mat>* downloads,
            const Option& opt) const override {
        DeviceMemory device(memory_.bytes);
        device.unlock();
        const int status = replay(&device, uploads, downloads, opt);
        device.lock();
        backend_.replayed++;
        return status;
    }

private:
    void plan_memory_of_values(int steps) {
        std::vector<MemoryRequest> requests;
        for (const RegionValue& v : values_)
            requests.push_back({bytes_of(v.shape), v.made < 0 ? 0 : v.made,
                                v.is_downloaded ? steps : v.last_read});
        memory_ = plan_memory(requests, 64);
    }

    void record(const Region& region, int at) {
        const RegionStep& step = region.steps[at];
        Command command = {step.layer, step.inputs, step.outputs, {}, {}, nullptr};
        for (size_t v = 0; v < values_.size(); v++)
            if (values_[v].last_read == at) command.dead.push_back((int)v);
        command.planned = region.shapes(step.inputs);
        input_dtypes(*step.layer, &command.planned);
        LogMute quiet;
        if (step.layer->plan(command.planned, opt_, &command.plan) != kOk) command.plan.reset();
        commands_.push_back(std::move(command));
    }

    int replay(DeviceMemory* device, const std::vector<Mat>& uploads, std::vector<Mat>* downloads,
               const Option& opt) const {
        size_t next = 0;
        for (size_t v = 0; v < values_.size(); v++) {
            if (!values_[v].is_uploaded()) continue;
            Mat to = device->view(memory_.offsets[v], values_[v].shape);
            copy_values(uploads[next++], &to);
        }
        for (const Command& command : commands_) {
            QUOLL_RETURN_IF_ERROR(execute(device, command));
            for (int v : command.dead)
                device->poison(memory_.offsets[v], bytes_of(values_[v].shape));
        }
        downloads->clear();
        for (size_t v = 0; v < values_.size(); v++) {
            if (!values_[v].is_downloaded) continue;
            Mat m(values_[v].shape, 1, opt.blob_allocator);
            if (m.empty()) return kOutOfMemory;
            copy_values(device->view(memory_.offsets[v], values_[v].shape), &m);
            downloads->push_back(m);
        }
        return kOk;
    }

    int execute(DeviceMemory* device, const Command& command) const {
        std::vector<Mat> in, out;
        for (size_t i = 0; i < command.inputs.size(); i++) {
            const int v = command.inputs[i];
            in.push_back(device->view(memory_.offsets[v], values_[v].shape));
            QUOLL_RETURN_IF_ERROR(cast(&in[i], command.planned[i].dtype));
        }
        out.resize(command.outputs.size());
        QUOLL_RETURN_IF_ERROR(
            command.plan ? command.layer->forward_planned(*command.plan, in, out, false, opt_)
                         : command.layer->forward(in, out, opt_));
        for (size_t i = 0; i < out.size(); i++) {
            const int v = command.outputs[i];
            if (out[i].elempack != 1) convert_packing(out[i], out[i], 1, opt_);
            QUOLL_RETURN_IF_ERROR(cast(&out[i], values_[v].shape.dtype));
            if (out[i].logical_shape() != values_[v].shape)
                return command.layer->fail("output %d is not as it was planned", (int)i);
            Mat to = device->view(memory_.offsets[v], values_[v].shape);
            if (to.data != out[i].data) copy_values(out[i], &to);
        }
        backend_.steps++;
        return kOk;
    }

    int cast(Mat* m, DType to) const {
        if (m->dtype == to) return kOk;
        Mat made;
        if (is_storage_type(m->dtype) && to == DType::f32) widen_storage(*m, &made, opt_);
        if (m->dtype == DType::f32 && to == DType::f16) cast_float32_to_float16(*m, made, opt_);
        if (m->dtype == DType::f32 && to == DType::bf16) cast_float32_to_bfloat16(*m, made, opt_);
        *m = made;
        return made.empty() ? (int)kError : (int)kOk;
    }

    const std::vector<RegionValue> values_;
    Option opt_;
    const RecordingBackend& backend_;
    MemoryPlan memory_;
    std::vector<Command> commands_;
};

}  // namespace

int RecordingBackend::prepare(const Layer& layer, const Option&) {
    prepared_.insert(&layer);
    return kOk;
}

bool RecordingBackend::supports(const Layer& layer, const std::vector<Shape>& inputs,
                                const std::vector<Shape>&) const {
    if (!prepared_.count(&layer) || as<MemoryData>(&layer)) return false;
    for (const Shape& s : inputs)
        if (s.total() == 0 || (s.n != 1 && !layer.support_batch)) return false;
    uint32_t hash = seed_ * 2654435761u + 12345;
    for (char ch : layer.name + layer.type) hash = hash * 31 + (unsigned char)ch;
    return std::minstd_rand(hash | 1)() % 1000 < share_ * 1000;
}

bool RecordingBackend::is_profitable(const Region& region) const {
    return region.steps.size() >= fewest_steps;
}

std::shared_ptr<const CompiledRegion> RecordingBackend::compile(const Region& region,
                                                                const Option& opt) const {
    if (fails) return nullptr;
    compiled++;
    return std::make_shared<RecordedRegion>(region, opt, *this);
}

}  // namespace quoll
