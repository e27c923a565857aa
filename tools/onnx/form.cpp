// Ways in which a tensor lies in a Mat, and the layers between them.
#include <algorithm>

#include "onnx/converter.h"

namespace quoll {
namespace onnx_tool {

int Form::rank() const {
    int rank = batch ? 1 : 0;
    for (int g : groups) rank += g;
    return rank;
}

bool Form::separate() const {
    return groups.size() <= 4 &&
           std::all_of(groups.begin(), groups.end(), [](int g) { return g == 1; });
}

bool operator==(const Form& a, const Form& b) { return a.batch == b.batch && a.groups == b.groups; }

bool operator<(const Form& a, const Form& b) {
    return a.batch != b.batch ? a.batch < b.batch : a.groups < b.groups;
}

Form Converter::default_form(int rank) const {
    if (rank <= 4) return Form::plain(rank);
    if (rank == 5 && default_batch_) return Form::batched(rank);
    // The innermost three by themselves.
    return Form{false, {rank - 3, 1, 1, 1}};
}

std::vector<Dim> Converter::mat_dims(const std::vector<Dim>& shape, const Form& form) {
    std::vector<Dim> dims;
    size_t axis = form.batch ? 1 : 0;
    for (int g : form.groups) {
        Dim product(1);
        for (int i = 0; i < g && axis < shape.size(); i++)
            product = symbols.multiply(product, shape[axis++]);
        dims.push_back(product);
    }
    if (dims.empty()) dims.push_back(Dim(1));
    return dims;
}

// Which elements of `longer` are 1 and missing in `shorter`; false if more than that differs.
static bool missing_ones(const std::vector<Dim>& longer, const std::vector<Dim>& shorter,
                         std::vector<int>* axes) {
    size_t at = 0;
    for (size_t i = 0; i < longer.size(); i++) {
        if (at < shorter.size() && same(longer[i], shorter[at]))
            at++;
        else if (longer[i].is(1))
            axes->push_back((int)i);
        else
            return false;
    }
    return at == shorter.size();
}

// A reshape that only adds or takes away axes of size 1 needs no sizes. "" if it is none.
std::string Converter::change_ones(const std::string& blob, const std::vector<Dim>& from,
                                   const std::vector<Dim>& to, const std::string& wish) {
    std::vector<int> axes;
    const bool fewer = to.size() < from.size();
    if (!missing_ones(fewer ? from : to, fewer ? to : from, &axes)) return "";
    ModelLayer& layer = emit(fewer ? "Squeeze" : "ExpandDims", {blob}, wish);
    layer.set("axes", axes);
    return layer.outputs[0];
}

std::string Converter::regroup(const std::string& blob, const std::vector<Dim>& from,
                               const std::vector<Dim>& to, bool floats, const std::string& wish) {
    if (same(from, to)) return blob;
    std::vector<int> sizes;
    int unknown = 0, copied = 0;
    bool zero = false;
    for (size_t i = 0; i < to.size(); i++) {
        const bool copy = !to[i].known() && i < from.size() && same(from[i], to[i]);
        sizes.push_back(to[i].known() ? (int)to[i].value : copy ? 0 : -1);
        unknown += !to[i].known() && !copy;
        copied += copy;
        zero |= to[i].is(0);
    }
    if (unknown == 0 && copied == 1 &&
        !zero) {  // one size that is not a number may be "what remains"
        std::replace(sizes.begin(), sizes.end(), 0, -1);
        copied = 0;
    }
    // Nothing can be told of what remains beside a size of 0.
    if (unknown > 1 || (zero && (unknown || copied))) {
        std::string moved = change_ones(blob, from, to, wish);
        if (moved.empty() && (!zero || unknown < 2))
            moved = regroup_at_run_time(blob, from, to, wish);
        if (!moved.empty()) return moved;
        why = "a reshape with more than one size that is not known";
        return "";
    }
    if (floats && copied == 0 && !zero) {
        ModelLayer& layer = emit("Reshape", {blob}, wish);
        const int n = (int)sizes.size();
        layer.set("w", sizes[n - 1]);
        if (n > 1) layer.set("h", sizes[n - 2]);
        if (n > 3) layer.set("d", sizes[1]);
        if (n > 2) layer.set("c", sizes[0]);
        return layer.outputs[0];
    }
    ModelLayer& layer = emit("ReshapeTo", {blob}, wish);
    layer.set("shape", sizes);
    if (zero) layer.set("allowzero", 1);
    return layer.outputs[0];
}

void Converter::add_sizes(const std::string& blob, const std::vector<Dim>& shape,
                          const Form& form) {
    const std::vector<Dim> dims = mat_dims(shape, form);
    for (size_t a = 0; a < dims.size(); a++)
        if (dims[a].symbol > 0)
            sizes_.axes.emplace(dims[a].symbol,
                                SizeSource{blob, (int)a + (form.batch ? 1 : 0), form.batch});
    if (form.batch && shape[0].symbol > 0)
        sizes_.axes.emplace(shape[0].symbol, SizeSource{blob, 0, true});
}

void Converter::add_size_value(const Dim& size, const std::string& value, int at) {
    if (size.symbol > 0) sizes_.values.emplace(size.symbol, std::make_pair(value, at));
}

// A size that the graph itself computed.
std::string Converter::computed_size(const Dim& size) {
    const auto found = sizes_.values.find(size.symbol);
    if (found == sizes_.values.end()) return "";
    Value* v = find_value(found->second.first);
    if (!v || v->bad || v->rank() > 1 || is_float(v->type)) return "";
    const std::string from = blob(v, Form::plain(v->rank()));
    const int at = found->second.second;
    if (from.empty() || v->rank() == 0 || v->shape[0].is(1)) return from;
    ModelLayer& layer = emit("StridedSlice", {from}, "size");
    layer.set("starts", std::vector<int>{at});
    layer.set("ends", std::vector<int>{at + 1});
    layer.set("axes", std::vector<int>{0});
    return layer.outputs[0];
}

// A size, of blobs that have its parts or one that it differs from by a number.
std::string Converter::derived_size(const Dim& size) {
    int64_t factor = 1, offset = 0;
    std::vector<Dim> parts;
    std::string made;
    const auto combine = [&](const Dim& with, int op_type) {
        const std::string other = made.empty() ? "" : size_blob(with);
        if (other.empty()) return (void)made.clear();
        ModelLayer& layer = emit("TensorBinary", {made, other}, "size");
        layer.set("op_type", op_type);
        made = layer.outputs[0];
    };
    if (symbols.parts_of(size, &factor, &parts, &offset)) {
        made = size_blob(parts[0]);
        for (size_t i = 1; i < parts.size(); i++) combine(parts[i], 2);
    }
    if (made.empty()) {
        Dim other;
        const auto serves = [&](int symbol) {
            other.symbol = symbol;
            return symbols.follows_from(size, other, &factor, &offset);
        };
        for (const auto& entry : sizes_.axes)
            if (made.empty() && serves(entry.first)) made = size_blob(other);
        for (const auto& entry : sizes_.values)
            if (made.empty() && serves(entry.first)) made = size_blob(other);
    }
    if (factor != 1) combine(Dim(factor), 2);
    if (offset != 0) combine(Dim(offset), 0);
    return made;
}

std::string Converter::size_blob(const Dim& size) {
    if (size.known()) {
        std::string& number = sizes_.numbers[size.value];
        if (number.empty())
            number = blob(add_constant(unique_value("size"), Tensor::of_ints({size.value})),
                          Form::plain(1));
        return number;
    }
    const auto found = sizes_.blobs.find(size.symbol);
    if (found != sizes_.blobs.end()) return found->second;
    std::string made;
    const auto source = sizes_.axes.find(size.symbol);
    if (source != sizes_.axes.end()) {
        ModelLayer& layer = emit("ShapeOf", {source->second.blob}, "size");
        layer.set("start", source->second.axis);
        layer.set("end", source->second.axis + 1);
        if (source->second.batch) layer.set("batch", 1);
        made = layer.outputs[0];
    } else if (sizes_.values.count(size.symbol)) {
        made = computed_size(size);
    } else {
        made = derived_size(size);
    }
    if (!made.empty()) sizes_.blobs[size.symbol] = made;
    return made;
}

std::string Converter::size_blob(const std::vector<Dim>& sizes) {
    std::vector<std::string> parts;
    for (const Dim& size : sizes) {
        parts.push_back(size_blob(size));
        if (parts.back().empty()) return "";
    }
    return size_list(parts);
}

std::string Converter::size_list(const std::vector<std::string>& parts) {
    if (parts.size() == 1) return parts[0];
    std::string text;
    for (const std::string& part : parts) text += part + " ";
    std::string& list = sizes_.lists[text];
    if (!list.empty()) return list;
    ModelLayer& layer = emit("Concat", parts, "sizes");
    layer.set("axis", 0);
    return list = layer.outputs[0];
}

std::string Converter::regroup_at_run_time(const std::string& blob, const std::vector<Dim>& from,
                                           const std::vector<Dim>& to, const std::string& wish) {
    std::vector<std::string> sizes;
    int rest = 0;
    bool zero = false;
    for (size_t i = 0; i < to.size(); i++) {
        zero |= to[i].is(0);
        std::string size = size_blob(to[i]);
        if (size.empty() && i < from.size() && same(from[i], to[i])) {
            ModelLayer& layer = emit("ShapeOf", {blob}, "size");
            layer.set("start", (int)i);
            layer.set("end", (int)i + 1);
            size = layer.outputs[0];
        }
        rest += size.empty();
        sizes.push_back(size.empty() ? size_blob(Dim(-1)) : size);
    }
    if (rest > (zero ? 0 : 1)) return "";
    ModelLayer& layer = emit("ReshapeTo", {blob, size_list(sizes)}, wish);
    layer.set("allowzero", 1);
    return layer.outputs[0];
}

// A batched blob as a plain one, regrouped as far as that is free of charge.
std::string Converter::unbatch(Value* v, const std::string& from, const Form& to) {
    const std::vector<Dim> dims = mat_dims(v->shape, v->form);
    if (v->shape[0].is(1))  // n is 1: the items are the tensor
        return regroup(from, dims, mat_dims(v->shape, to), v->floats(), v->name);
    Form item{true, {v->rank() - 1}};
    if (!to.groups.empty() && to.groups[0] == 1 && to.groups.size() > 1)
        item.groups.assign(to.groups.begin() + 1, to.groups.end());
    const std::vector<Dim> item_dims = mat_dims(v->shape, item);
    const std::string items = regroup(from, dims, item_dims, v->floats(), v->name);
    if (items.empty()) return "";
    ModelLayer& layer = emit("BatchAxis", {items}, v->name);
    layer.set("inverse", 1);
    const std::string out = layer.outputs[0];
    std::vector<Dim> plain(1, v->shape[0]);
    plain.insert(plain.end(), item_dims.begin(), item_dims.end());
    return regroup(out, plain, mat_dims(v->shape, to), v->floats(), v->name);
}

// A plain blob of a tensor of that shape as a batched one.
std::string Converter::embatch(const std::string& from, const std::vector<Dim>& shape,
                               const Form& source, const Form& to, bool floats,
                               const std::string& wish) {
    if (shape[0].is(1))  // n is 1: the items are the tensor
        return regroup(from, mat_dims(shape, source), mat_dims(shape, to), floats, wish);
    Form rows{false, {1}};
    if (to.groups.size() <= 3)
        rows.groups.insert(rows.groups.end(), to.groups.begin(), to.groups.end());
    else
        rows.groups.push_back((int)shape.size() - 1);
    const std::vector<Dim> row_dims = mat_dims(shape, rows);
    const std::string plain = regroup(from, mat_dims(shape, source), row_dims, floats, wish);
    if (plain.empty()) return "";
    const std::string out = emit("BatchAxis", {plain}, wish).outputs[0];
    const std::vector<Dim> item_dims(row_dims.begin() + 1, row_dims.end());
    return regroup(out, item_dims, mat_dims(shape, to), floats, wish);
}

std::string Converter::constant_blob(Value* v, const Form& form, const std::vector<Dim>& shape) {
    const Tensor& t = *v->constant;
    if (!is_supported(t.type)) {
        why = std::string("a tensor of ") + type_name(t.type);
        return "";
    }
    if (form.batch && !shape[0].is(1)) {
        const Form plain = default_form((int)shape.size()).batch ? Form{false, {1, 1, 1, 2}}
                                                                 : default_form((int)shape.size());
        const std::string from = constant_blob(v, plain, shape);
        return from.empty() ? "" : embatch(from, shape, plain, form, v->floats(), v->name);
    }
    const std::vector<Dim> dims = mat_dims(shape, form);
    if (t.count() == 0) {
        // A weight cannot be empty; a filled tensor can.
        const std::string sizes =
            blob(add_constant(unique_value(v->name + "_sizes"), Tensor::of_ints(values_of(dims))),
                 Form::plain(1));
        ModelLayer& fill = emit("ConstantOfShape", {sizes}, v->name);
        fill.set("type", cast_code(t.type));
        return fill.outputs[0];
    }
    ModelLayer& data = emit("MemoryData", {}, v->name);
    const int n = (int)dims.size();
    data.set("w", (int)dims[n - 1].value);
    if (n > 1) data.set("h", (int)dims[n - 2].value);
    if (n > 3) data.set("d", (int)dims[1].value);
    if (n > 2) data.set("c", (int)dims[0].value);
    if (!is_float(t.type)) data.set("type", std::min(cast_code(t.type), 5));
    size_t limited = 0;
    if (is_byte(t.type)) {
        data.set("load_type", 2);
        data.set_weight("data", t.weight());
    } else {
        data.set_weight("data", t.bits(&limited));
    }
    kept_.push_back(t);
    if (limited) note("integers beyond 32 bits were limited (" + v->name + ")");
    return data.outputs[0];
}

std::string Converter::blob(Value* v, const Form& form, int rank) {
    if (v->sequence) {
        why = "a sequence";
        return "";
    }
    if (!settle(v)) {
        why = "its rank is known only at run time";
        return "";
    }
    const int first = rank > v->rank() ? rank - v->rank() : 0;
    const std::pair<int, Form> key(first, form);
    const auto found = v->blobs.find(key);
    if (found != v->blobs.end()) return found->second;
    std::vector<Dim> shape((size_t)first, Dim(1));
    shape.insert(shape.end(), v->shape.begin(), v->shape.end());
    std::string made;
    if (v->is_constant()) {
        made = constant_blob(v, form, shape);
    } else if (v->form.batch && form.batch && first == 0) {
        made = regroup(v->blobs[{0, v->form}], mat_dims(shape, v->form), mat_dims(shape, form),
                       v->floats(), v->name);
    } else if (v->form.batch) {
        Form plain = form;
        if (first > 0) plain = default_form(v->rank());
        if (plain.batch) plain = Form{false, {1, 1, 1, v->rank() - 3}};
        const std::string out =
            first > 0 ? blob(v, plain) : unbatch(v, v->blobs[{0, v->form}], plain);
        made = out.empty() || first == 0 ? out
                                         : regroup(out, mat_dims(v->shape, plain),
                                                   mat_dims(shape, form), v->floats(), v->name);
    } else if (form.batch && first == 0) {
        made = embatch(v->blobs[{0, v->form}], shape, v->form, form, v->floats(), v->name);
    } else {
        made = regroup(v->blobs[{0, v->form}], mat_dims(v->shape, v->form), mat_dims(shape, form),
                       v->floats(), v->name);
    }
    if (!made.empty()) v->blobs[key] = made;
    return made;
}

}  // namespace onnx_tool
}  // namespace quoll
