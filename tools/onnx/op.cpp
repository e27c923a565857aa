// What converters ask of a node.
#include <stdarg.h>
#include <stdio.h>

#include "onnx/converter.h"

namespace quoll {
namespace onnx_tool {

bool Op::take_strings(unsigned traits) {
    for (int i = 0; i < inputs(); i++) {
        const unsigned needed = i == 0   ? kOpFirstStrings
                                : i == 1 ? kOpSecondStrings
                                         : kOpOtherStrings;
        if (has(i) && in(i)->type == ElementType::kString && !(traits & needed))
            return fail("input %s is of strings, known by their places in a table alone",
                        node.inputs[(size_t)i].c_str());
    }
    for (const auto& attribute : node.attributes)
        if (attribute.second.t.type == ElementType::kString && !(traits & kOpMakesStrings))
            return fail("attribute %s is of strings, expected numbers", attribute.first.c_str());
    return true;
}

bool Op::make_strings(unsigned traits) {
    for (int i = 0; i < outputs() && !(traits & (kOpStrings | kOpMakesStrings)); i++) {
        const Value* made = wants(i) ? c.find_value(node.outputs[(size_t)i]) : nullptr;
        if (made && made->type == ElementType::kString)
            return fail("output %s cannot be of strings", node.outputs[(size_t)i].c_str());
    }
    return true;
}

bool Op::fail(const char* format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    reason = text;
    return false;
}

Value* Op::in(int i) const {
    return i < inputs() && !node.inputs[i].empty() ? c.find_value(node.inputs[i]) : nullptr;
}

int64_t Op::attr(const char* name, int64_t def) const {
    const auto found = node.attributes.find(name);
    return found == node.attributes.end() ? def : found->second.i;
}

float Op::attr_float(const char* name, float def) const {
    const auto found = node.attributes.find(name);
    return found == node.attributes.end() ? def : found->second.f;
}

std::string Op::attr_string(const char* name, const char* def) const {
    const auto found = node.attributes.find(name);
    return found == node.attributes.end() ? def : found->second.s;
}

std::vector<int64_t> Op::attr_ints(const char* name) const {
    const auto found = node.attributes.find(name);
    return found == node.attributes.end() ? std::vector<int64_t>() : found->second.ints;
}

std::vector<float> Op::attr_floats(const char* name) const {
    const auto found = node.attributes.find(name);
    return found == node.attributes.end() ? std::vector<float>() : found->second.floats;
}

bool Op::ints(int i, const char* what, std::vector<int64_t>* values) {
    const Value* v = in(i);
    if (!v) return fail("%s is missing", what);
    if (v->has_content && all_known(v->content)) {
        *values = values_of(v->content);
        return true;
    }
    if (!v->is_constant() && v->rank() == 1 && v->shape[0].is(0)) {
        values->clear();
        return true;
    }
    if (!v->is_constant()) return fail("%s is not constant", what);
    *values = v->constant->ints();
    return true;
}

bool Op::attr_or_input(const char* name, int i, std::vector<int64_t>* values, bool* given) {
    *given = true;
    if (has_attr(name)) {
        const Attribute& a = node.attributes.at(name);
        *values = a.kind == Attribute::kInt ? std::vector<int64_t>{a.i} : a.ints;
        return true;
    }
    *given = has(i);
    return !*given || ints(i, name, values);
}

bool Op::axis(int64_t value, int rank, int* axis) {
    if (value < -rank || value >= rank)
        return fail("axis %lld of a tensor of rank %d", (long long)value, rank);
    *axis = (int)(value < 0 ? value + rank : value);
    return true;
}

std::string Op::blob(Value* v, const Form& form, int rank) {
    c.why = "it cannot be laid out";
    const std::string name = c.blob(v, form, rank);
    if (name.empty()) fail("%s: %s", v->name.c_str(), c.why.c_str());
    return name;
}

Form Op::form_of(Value* v) { return v->form; }
std::string Op::blob(Value* v) { return blob(v, v->form); }

std::string Op::plain(Value* v) {
    if (v->rank() <= 4) return blob(v, Form::plain(v->rank()));
    fail("%s has rank %d, more than the 4 axes of a blob", v->name.c_str(), v->rank());
    return "";
}

std::string Op::batched(Value* v) {
    if (v->rank() >= 2 && v->rank() <= 5) return blob(v, Form::batched(v->rank()));
    fail("%s has rank %d, expected 2 to 5", v->name.c_str(), v->rank());
    return "";
}

Form Op::axis_form(Value* v, int axis, int* mat_axis) {
    const int rank = v->rank();
    int at = v->form.batch ? 1 : 0;
    for (size_t g = 0; g < v->form.groups.size() && !v->is_constant(); at += v->form.groups[g++]) {
        if (at != axis || v->form.groups[g] != 1) continue;
        *mat_axis = (int)g;  // as it lies
        return v->form;
    }
    if (v->form.batch && axis > 0 && rank <= 5) {
        *mat_axis = axis - 1;
        return Form::batched(rank);
    }
    if (rank <= 4) {
        *mat_axis = axis;
        return Form::plain(rank);
    }
    Form form;
    if (axis > 0) form.groups.push_back(axis);
    *mat_axis = (int)form.groups.size();
    form.groups.push_back(1);
    if (axis + 1 < rank) form.groups.push_back(rank - axis - 1);
    return form;
}

ModelLayer& Op::emit(const char* type, const std::vector<std::string>& ins, int i, int count) {
    const std::string wish =
        i < outputs() && !node.outputs[i].empty() ? node.outputs[i] : node.label();
    return c.emit(type, ins, wish, count);
}

std::string Op::as_f32(const std::string& blob, ElementType type) {
    if (is_float(type)) return blob;
    ModelLayer& cast = emit("CastTo", {blob});
    cast.set("to", cast_code(ElementType::kFloat));
    return cast.outputs[0];
}

std::string Op::from_f32(const std::string& blob, ElementType type) {
    if (is_float(type)) return blob;
    ModelLayer& cast = emit("CastTo", {blob});
    cast.set("to", cast_code(type));
    return cast.outputs[0];
}

Value* Op::set(int i, ElementType type, const std::vector<Dim>& shape, const Form& form,
               const std::string& blob) {
    if (!wants(i)) return nullptr;
    Value* v = c.add_value(node.outputs[i]);
    v->type = type;
    v->shape = shape;
    for (Dim& d : v->shape)
        if (d.symbol == 0) d = c.symbols.fresh();
    v->form = form;
    v->blobs[{0, form}] = blob;
    c.add_sizes(blob, v->shape, form);
    return v;
}

Value* Op::set_constant(int i, const Tensor& tensor) {
    return wants(i) ? c.add_constant(node.outputs[i], tensor) : nullptr;
}

Value* Op::alias(int i, Value* v) {
    if (v->is_constant()) return set_constant(i, *v->constant);
    if (!wants(i)) return nullptr;
    Value* out = c.add_value(node.outputs[i]);
    out->type = v->type;
    out->shape = v->shape;
    out->form = v->form;
    out->blobs = v->blobs;
    out->content = v->content;
    out->has_content = v->has_content;
    out->choice = v->choice;
    for (int k = 0; k < 2; k++) out->alternatives[k] = v->alternatives[k];
    out->sequence = v->sequence, out->open = v->open;
    out->items = v->items, out->stacked = v->stacked;
    out->coded = v->coded;
    out->quantized = v->quantized;
    out->int8_source = v->int8_source;
    out->range_of = v->range_of;
    return out;
}

void Op::set_content(int i, const std::vector<Dim>& content) {
    Value* v = wants(i) ? c.find_value(node.outputs[i]) : nullptr;
    if (!v || v->is_constant()) return;
    const Dim count = c.symbols.product(v->shape);
    if (!count.is((int64_t)content.size())) return;
    v->has_content = true;
    v->content = content;
    if (is_float(v->type)) return;
    if (!all_known(content)) {
        for (size_t at = 0; at < content.size(); at++)
            c.add_size_value(content[at], v->name, (int)at);
        return;
    }
    // Known after all: a constant from now on.
    const Tensor t =
        Tensor::of_ints(values_of(content)).reshaped(values_of(v->shape)).cast(v->type);
    c.add_constant(node.outputs[i], t);
}

}  // namespace onnx_tool
}  // namespace quoll
