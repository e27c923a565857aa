#include "layer/vulkan/region_compiler.h"

#include <algorithm>

namespace quoll {

namespace {

// The most values that a step writes over the bus itself.
const size_t kMostForHost = 1 << 16;

// The shape rules of operators do not know storage types.
Shape device_shape(const RegionValue& value) {
    Shape shape = value.shape;
    if (!is_integer(shape.dtype)) shape.dtype = DType::f32;
    return shape;
}

Shapes shapes_at(const Region& region, const std::vector<int>& values) {
    Shapes shapes;
    for (int value : values) shapes.push_back(device_shape(region.values[value]));
    return shapes;
}

// Rows of caches are rounded up to multiples of at least kLeastRoom, so that lengths compiled one
// after the other mostly have the same; kMoreRows: how many more rows they have room for at least.
const uint32_t kLeastRoom = 128, kMoreRows = 32;

// Whether there is one pixel: its channels are laid out as those of a planar blob.
bool one_pixel(const Shape& s) { return plane(s) == 1 && s.n == 1; }

}  // namespace

RegionCompiler::RegionCompiler(Region region, std::vector<const VulkanLayer*> forms,
                               Recorder& recorder)
    : region_(std::move(region)),
      forms_(std::move(forms)),
      recorder_(recorder),
      layouts_(region_.values.size(), Layout::kPlanar),
      places_(region_.values.size()),
      makers_(region_.values.size(), -1),
      values_(region_.values.size()) {
    for (size_t i = 0; i < region_.steps.size(); i++)
        for (int output : region_.steps[i].outputs) makers_[output] = (int)i;
    for (const RegionValue& value : region_.values) largest_.push_back(value.shape);
}

int RegionCompiler::compile() {
    choose_layouts();
    fusions_.reset(new Fusions(region_, forms_, layouts_, recorder_.device()));
    choose_places();
    find_caches();
    for (size_t i = 0; i < region_.values.size(); i++) {
        const RegionValue& value = region_.values[i];
        if (value.constant)
            QUOLL_RETURN_IF_ERROR(
                recorder_.keep(*value.constant, device_shape(value), layouts_[i], &values_[i]));
        values_[i].shape = device_shape(value);
        if (!value.is_uploaded() || values_[i].block >= 0) continue;
        if (stays_staged((int)i)) {
            uploads_[(int)i] = recorder_.stage(&values_[i], region_.values[i].shape.dtype);
            continue;
        }
        begin_part(-1, (int)i);
        make_output((int)i);
        uploads_[(int)i] = recorder_.upload(values_[i], region_.values[i].shape.dtype);
        download((int)i);
    }
    for (size_t i = 0; i < region_.steps.size(); i++) {
        begin_part((int)i, -1);
        QUOLL_RETURN_IF_ERROR(record_step((int)i));
    }
    return kOk;
}

void RegionCompiler::begin_part(int step, int upload) {
    recorder_.set_step(step);
    Program& program = recorder_.program();
    parts_.push_back(
        {step, upload, program.dispatches.size(), program.block_count(), program.counter_bytes});
}

bool RegionCompiler::depends(const Part& part, const std::vector<char>& changed) const {
    if (part.step < 0) return changed[part.upload] != 0;
    const RegionStep& step = region_.steps[part.step];
    const auto is_changed = [&](int value) { return changed[value] != 0; };
    return std::any_of(step.inputs.begin(), step.inputs.end(), is_changed) ||
           std::any_of(step.outputs.begin(), step.outputs.end(), is_changed);
}

bool RegionCompiler::add_size(const std::vector<Shape>& shapes, size_t i, size_t n) {
    again_ = true;
    std::vector<char> changed(shapes.size());
    for (size_t v = 0; v < shapes.size(); v++) {
        changed[v] = shapes[v] != largest_[v];
        region_.values[v].shape = shapes[v];
        values_[v].shape = device_shape(region_.values[v]);
        if (!changed[v]) continue;
        if (layouts_[v] != Layout::kPlanar || places_[v].value >= 0) return false;
        if (values_[v].is_staged) return false;
        if (shapes[v].total() > largest_[v].total()) return false;
    }
    Program& program = recorder_.program();
    const size_t end = program.dispatches.size();
    for (size_t k = 0; k < parts_.size(); k++) {
        const Part& part = parts_[k];
        if (!depends(part, changed)) continue;
        program.begin_again(part.first_block, part.first_counter);
        if (part.step < 0) {
            recorder_.upload_from(uploads_[part.upload], values_[part.upload],
                                  region_.values[part.upload].shape.dtype);
            download(part.upload);
        } else {
            const StepFusion role = fusions_->role_of(part.step);
            recorder_.set_step(part.step);
            if (role != StepFusion::kNone && role != StepFusion::kEpilogue) return false;
            if (record_step(part.step) != kOk) return false;
        }
        const size_t next = k + 1 < parts_.size() ? parts_[k + 1].first : end;
        if (!program.end_again(part.first, next, i, n)) return false;
    }
    return true;
}

// The layout that the first layer reading it takes.
Layout RegionCompiler::upload_layout(int value) const {
    const RegionValue& v = region_.values[value];
    if (v.is_empty() || !can_be_channels_last(v.shape)) return Layout::kPlanar;
    for (size_t i = 0; i < region_.steps.size(); i++) {
        const RegionStep& step = region_.steps[i];
        const auto at = std::find(step.inputs.begin(), step.inputs.end(), value);
        if (at == step.inputs.end()) continue;
        const Shapes in = shapes_at(region_, step.inputs), out = shapes_at(region_, step.outputs);
        if (forms_[i]->reads_upload((size_t)(at - step.inputs.begin()), in)) return Layout::kPlanar;
        Layouts wanted(in.size()), made(out.size(), Layout::kPlanar);
        all_channels_last(in, out, &wanted, &made);
        made.assign(out.size(), Layout::kPlanar);
        forms_[i]->choose_layouts(in, out, &wanted, &made);
        return wanted[at - step.inputs.begin()];
    }
    return Layout::kPlanar;
}

void RegionCompiler::choose_layouts() {
    for (size_t i = 0; i < region_.values.size(); i++)
        if (region_.values[i].made < 0) layouts_[i] = upload_layout((int)i);
    for (size_t i = 0; i < region_.steps.size(); i++) {
        const RegionStep& step = region_.steps[i];
        Layouts in, out(step.outputs.size(), Layout::kPlanar);
        for (int value : step.inputs) in.push_back(layouts_[value]);
        forms_[i]->choose_layouts(shapes_at(region_, step.inputs), shapes_at(region_, step.outputs),
                                  &in, &out);
        for (size_t k = 0; k < out.size(); k++) layouts_[step.outputs[k]] = out[k];
        step_layouts_.push_back(in);
    }
    choose_planar();
}

// Whether its only reader takes it where the host has written it.
bool RegionCompiler::stays_staged(int value) const {
    const RegionValue& v = region_.values[value];
    if (v.is_downloaded || v.is_empty() || !recorder_.can_stage(v.shape.dtype)) return false;
    int reads = 0;
    bool in_place = false;
    for (size_t i = 0; i < region_.steps.size(); i++) {
        const std::vector<int>& inputs = region_.steps[i].inputs;
        for (size_t k = 0; k < inputs.size(); k++) {
            if (inputs[k] != value) continue;
            reads++;
            in_place = step_layouts_[i][k] == Layout::kPlanar &&
                       forms_[i]->reads_upload(k, shapes_at(region_, inputs));
        }
    }
    return reads == 1 && in_place;
}

// Values that are only read planar are made planar by layers that can.
void RegionCompiler::choose_planar() {
    for (size_t i = 0; i < region_.steps.size(); i++) {
        const int output = region_.steps[i].outputs[0];
        if (!forms_[i]->stores_planar() || is_integer(region_.values[output].shape.dtype)) continue;
        int readers = 0, planar = 0;
        for (size_t k = 0; k < region_.steps.size(); k++) {
            const std::vector<int>& inputs = region_.steps[k].inputs;
            for (size_t at = 0; at < inputs.size(); at++) {
                if (inputs[at] != output) continue;
                readers++;
                planar += step_layouts_[k][at] == Layout::kPlanar;
            }
        }
        if (readers > 0 && planar == readers) layouts_[output] = Layout::kPlanar;
    }
}

// Starting with the last one, so that a value within another one that is itself placed is placed
// directly.
void RegionCompiler::choose_places() {
    for (size_t i = region_.steps.size(); i-- > 0;)
        if (forms_[i]->joins_channels()) place_inputs(region_.steps[i]);
}

void RegionCompiler::place_inputs(const RegionStep& step) {
    const int output = step.outputs[0];
    if (region_.values[output].shape.dims == 2) place_rows(step);
    if (layouts_[output] != Layout::kChannelsLast) return;
    uint32_t first = 0;
    for (int input : step.inputs) {
        if (can_be_placed(input, first, output)) places_[input] = Place{output, first};
        first += (uint32_t)region_.values[input].shape.c;
    }
}

// Places pixels that become rows of a matrix in that matrix.
void RegionCompiler::place_rows(const RegionStep& step) {
    const int output = step.outputs[0];
    if (region_.values[output].shape.n != 1) return;
    uint32_t first = 0;
    for (int input : step.inputs) {
        const Shape& rows = region_.values[input].shape;
        const int pixels = makers_[input] < 0 ? -1 : fusions_->pixels_of(makers_[input]);
        if (pixels >= 0 && places_[pixels].value < 0) places_[pixels] = Place{output, first};
        first += (uint32_t)(rows.w * rows.h);
    }
}

bool RegionCompiler::can_be_placed(int value, uint32_t first, int into) const {
    const bool whole = first % 4 == 0 && region_.values[value].shape.c % 4 == 0;
    if (!whole || layouts_[value] != Layout::kChannelsLast || places_[value].value >= 0)
        return false;
    if (value == into || makers_[value] < 0) return false;
    if (region_.values[value].shape.n != region_.values[into].shape.n) return false;
    // An operator whose outputs may be views does not make them in a given place.
    return !forms_[makers_[value]]->gives_views();
}

void RegionCompiler::make_output(int value) {
    Value& made = values_[value];
    const Shape shape = device_shape(region_.values[value]);
    const Place& place = places_[value];
    if (place.value < 0) {
        made = recorder_.make(shape, layouts_[value]);
        return;
    }
    if (values_[place.value].block < 0) make_output(place.value);
    made = values_[place.value];
    made.shape = shape;
    made.first += place.first;
    if (made.layout == layouts_[value]) return;
    made.layout = layouts_[value], made.pitch = round4(shape.c);
}

Value RegionCompiler::in_layout(int value, Layout layout) {
    const Value& from = values_[value];
    if (from.layout == layout) return from;
    const Shape& s = from.shape;
    if (one_pixel(s) && !is_integer(s.dtype) && (layout == Layout::kPlanar || s.c % 4 == 0)) {
        Value view = from;
        view.layout = layout;
        view.pitch = layout == Layout::kChannelsLast ? round4(s.c) : 0;
        return view;
    }
    const auto found = relaid_.find(value);
    if (found != relaid_.end()) return found->second;
    const Value to = recorder_.make(s, layout);
    recorder_.copy(from, to);
    relaid_[value] = to;
    return to;
}

void RegionCompiler::record_gate_of(const SqueezeExcite& block) {
    const auto made = sums_.find(block.x);
    const ChannelSums sums =
        made != sums_.end()
            ? made->second
            : record_channel_sums(recorder_, in_layout(block.x, Layout::kChannelsLast));
    Dense first, second;
    forms_[block.first]->dense(&first);
    forms_[block.second]->dense(&second);
    make_output(block.gate);
    record_gate(recorder_, sums, first, second,
                block.hard_sigmoid < 0 ? nullptr : region_.steps[block.hard_sigmoid].layer,
                values_[block.gate]);
}

int RegionCompiler::record_shuffle(int index) {
    const ShuffledChannels& shuffled = fusions_->shuffled(index);
    Values sources;
    for (int value : shuffled.sources) sources.push_back(in_layout(value, Layout::kChannelsLast));
    uint32_t first = 0;
    for (int part : shuffled.parts) {
        if (values_[part].block < 0) make_output(part);
        QUOLL_RETURN_IF_ERROR(
            record_shuffled(recorder_, *shuffled.shuffle, sources, first, values_[part]));
        first += (uint32_t)values_[part].shape.c;
        download(part);
    }
    return kOk;
}

// Whether only the host reads the output of a step, which has few values of a type that the step
// can store.
bool RegionCompiler::stores_for_host(int index) const {
    const RegionStep& step = region_.steps[index];
    const int value = outputs_of(index)[0];
    const RegionValue& v = region_.values[value];
    const bool stored =
        v.shape.dtype == DType::f32 || v.shape.dtype == dtype_of(recorder_.storage());
    if (!v.is_downloaded || !stored || v.shape.total() > kMostForHost || again_) return false;
    if (step.outputs.size() != 1 || layouts_[value] != Layout::kPlanar) return false;
    const StepFusion role = fusions_->role_of(index);
    if (role != StepFusion::kNone && role != StepFusion::kEpilogue) return false;
    if (places_[value].value >= 0) return false;
    for (const RegionStep& reader : region_.steps)
        for (int input : reader.inputs)
            if (input == value) return false;
    return forms_[index]->fuses(StepFusion::kHost, shapes_at(region_, step.inputs),
                                shapes_at(region_, step.outputs));
}

int RegionCompiler::record_for_host(int index, const Values& in) {
    const int output = outputs_of(index)[0];
    const Shape& shape = region_.values[output].shape;
    const Binding to = recorder_.download_binding(shape, shape.dtype);
    Fused fused = fused_of(index);
    fused.host = &to;
    fused.host_floats = shape.dtype == DType::f32 && recorder_.storage() != Storage::f32;
    downloads_[output] = to.offset;
    Value out;
    out.shape = device_shape(region_.values[output]);
    return forms_[index]->record_fused(recorder_, in, {out}, fused);
}

// Including what other layers compute from it.
std::vector<int> RegionCompiler::outputs_of(int index) const {
    if (fusions_->role_of(index) == StepFusion::kEpilogue) return {fusions_->epilogue(index).made};
    return region_.steps[index].outputs;
}

Fused RegionCompiler::fused_of(int index) {
    const SqueezeExcite* block = fusions_->block_of(index);
    Fused fused;
    if (fusions_->role_of(index) == StepFusion::kSums)
        fused.sums = &sums_[region_.steps[index].outputs[0]];
    if (fusions_->role_of(index) == StepFusion::kGated) fused.gate = &values_[block->gate];
    if (fusions_->role_of(index) == StepFusion::kEpilogue) {
        const Epilogue& epilogue = fusions_->epilogue(index);
        if (epilogue.added >= 0) fused.added = &values_[epilogue.added];
        if (epilogue.factor >= 0) fused.factor = &values_[epilogue.factor];
        if (epilogue.pair >= 0) fused.pair = forms_[epilogue.pair];
        fused.f = epilogue.f, fused.softmax = epilogue.softmax;
    }
    if (fusions_->pooled_of(index) >= 0) fused.pooled = &sums_.at(fusions_->pooled_of(index));
    if (const NormedInput* normed = fusions_->normed(index)) fused.norm = &normed->norm;
    for (int i : {0, 1}) {
        const int rotary = fusions_->rotary_of(index, i);
        if (rotary < 0) continue;
        const RegionStep& step = region_.steps[rotary];
        fused.rotaries[i] = {step.layer, values_[step.inputs[1]], values_[step.inputs[2]]};
    }
    return fused;
}

int RegionCompiler::record_step(int index) {
    const RegionStep& step = region_.steps[index];
    const StepFusion role = fusions_->role_of(index);
    if (role == StepFusion::kSkipped || role == StepFusion::kMultiply) return kOk;
    if (role == StepFusion::kGate) {
        record_gate_of(*fusions_->block_of(index));
        return kOk;
    }
    if (role == StepFusion::kShuffle) return record_shuffle(index);
    if (role == StepFusion::kRows) {
        Value& rows = values_[step.outputs[0]];
        const Shape shape = rows.shape;
        rows = values_[fusions_->pixels_of(index)];
        rows.shape = shape, rows.layout = Layout::kPlanar, rows.pitch = 0;
        download(step.outputs[0]);
        return kOk;
    }
    Values in, out;
    for (size_t i = 0; i < step.inputs.size(); i++) {
        // The factors that its own dispatch multiplies by.
        const bool gated = role == StepFusion::kGated && i == 0;
        const int value = gated ? fusions_->block_of(index)->x : fusions_->taken(index, i);
        const bool pooled = fusions_->pooled_of(index) >= 0;
        in.push_back(pooled ? values_[value] : in_layout(value, step_layouts_[index][i]));
    }
    if (stores_for_host(index)) return record_for_host(index, in);
    const std::vector<int> outputs = outputs_of(index);
    size_t aliases = 0;
    for (size_t i = 0; i < outputs.size(); i++) {
        Value& value = values_[outputs[i]];
        Value view;
        view.shape = device_shape(region_.values[outputs[i]]);
        if (forms_[index]->alias(in, i, &view)) {
            value = view;
            aliases++;
        } else if (value.block < 0) {  // else made before, as values are placed in it
            make_output(outputs[i]);
        }
        out.push_back(value);
    }
    // Those of the outputs are not listed twice.
    if (!again_) parts_.back().first_block = recorder_.program().block_count();
    if (aliases < out.size())
        QUOLL_RETURN_IF_ERROR(forms_[index]->record_fused(recorder_, in, out, fused_of(index)));
    for (int output : outputs) download(output);
    return kOk;
}

void RegionCompiler::download(int value) {
    const RegionValue& v = region_.values[value];
    if (!v.is_downloaded || values_[value].channel_step) return;
    const auto before = downloads_.find(value);
    const bool integers = is_integer(v.shape.dtype);
    const Value from = integers ? in_layout(value, Layout::kPlanar) : values_[value];
    if (before != downloads_.end())
        recorder_.download_to(before->second, from, v.shape.dtype);
    else
        downloads_[value] = recorder_.download(from, v.shape.dtype);
}

std::vector<size_t> RegionCompiler::offsets(const std::map<int, size_t>& of, bool uploads) const {
    std::vector<size_t> offsets;
    for (size_t i = 0; i < region_.values.size(); i++) {
        const RegionValue& v = region_.values[i];
        if (uploads ? !v.is_uploaded() : !v.is_downloaded) continue;
        const auto found = of.find((int)i);
        offsets.push_back(found == of.end() ? kNoOffset : found->second);
    }
    return offsets;
}

// Whether a value stays in the application's device memory, in the type in which the device stores
// floats.
bool RegionCompiler::stays_alike(int value) const {
    const RegionValue& v = region_.values[value];
    const DType stored = dtype_of(recorder_.storage());
    return v.stays && v.shape.dtype == stored && v.shape.n == 1 && v.shape.dims == 3 &&
           layouts_[value] == Layout::kPlanar;
}

void RegionCompiler::find_caches() {
    std::vector<int> reads(region_.values.size(), 0);
    for (const RegionStep& step : region_.steps)
        for (int input : step.inputs) reads[input]++;
    for (size_t i = 0; i < region_.steps.size(); i++) {
        const RegionStep& step = region_.steps[i];
        for (size_t k = 0; k < step.outputs.size(); k++) {
            const int input = forms_[i]->cache_of(k), all = step.outputs[k];
            if (input < 0 || !stays_alike(all) || !region_.values[all].is_downloaded || reads[all])
                continue;
            const int past = step.inputs[input];
            const RegionValue& before = region_.values[past];
            if (before.is_empty())
                give_cache(-1, all);
            else if (stays_alike(past) && before.is_uploaded() && !before.is_downloaded &&
                     reads[past] == 1)
                give_cache(past, all);
        }
    }
}

void RegionCompiler::give_cache(int past, int all) {
    const Shape shape = device_shape(region_.values[all]);
    uint32_t step = kLeastRoom;
    while (step * 4 < (uint32_t)shape.h) step *= 2;
    const uint64_t rows = ((uint64_t)shape.h + kMoreRows + step - 1) / step * step;
    const uint64_t bytes = rows * shape.w * shape.c * sizeof(float);
    if (bytes > recorder_.device().limits().maxStorageBufferRange) return;
    const uint32_t channel_step = (uint32_t)(rows * shape.w);
    values_[all] = recorder_.make_given(shape, channel_step);
    if (past >= 0) {
        values_[past] = values_[all];
        values_[past].shape = device_shape(region_.values[past]);
    }
    caches_.push_back({past, all, channel_step});
}

}  // namespace quoll
