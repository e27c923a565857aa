// ai.onnx.ml: labels and categories, numbers or strings, for one another.
#include <algorithm>

#include "onnx/ops_ml.h"

namespace quoll {
namespace onnx_tool {

using namespace ml;

namespace {

// A list of keys or values, whatever its type: <name>_int64s, _floats, _strings or _tensor. Strings
// are their places in the model's table. Of type kUndefined if the node has none.
Tensor list_of(Op& op, const std::string& name) {
    const auto tensor = op.node.attributes.find(name + "_tensor");
    if (tensor != op.node.attributes.end()) return tensor->second.t;
    const Floats floats = op.attr_floats((name + "_floats").c_str());
    if (!floats.empty()) return floats_tensor(floats, {(int64_t)floats.size()});
    const Ints ints = op.attr_ints((name + "_int64s").c_str());
    if (!ints.empty()) return Tensor::of_ints(ints);
    const std::vector<std::string>& texts = strings_of(op, (name + "_strings").c_str());
    if (texts.empty()) return Tensor(ElementType::kUndefined, {0});
    Tensor places = Tensor::of_ints(op.c.strings->places_of(texts));
    places.type = ElementType::kString;
    return places;
}

// What stands for a key that is not there.
Tensor default_of(Op& op, const Tensor& values) {
    const auto tensor = op.node.attributes.find("default_tensor");
    if (tensor != op.node.attributes.end() && tensor->second.t.count() == 1)
        return tensor->second.t.reshaped({});
    if (values.type == ElementType::kString) {
        const std::string text = op.attr_string("default_string", "_Unused");
        Tensor place = Tensor::of_ints({op.c.strings->place_of(text)}, true);
        place.type = ElementType::kString;
        return place;
    }
    if (is_float(values.type)) return Tensor::of_float(op.attr_float("default_float", -0.f));
    return Tensor::of_ints({op.attr("default_int64", -1)}, true).cast(values.type);
}

// Each value by the keys: strings, whose places are few, through a table of all places; numbers
// by comparison with each key.
std::string looked_up(Op& op, Nodes& n, const Tensor& keys, const Tensor& values) {
    const Attributes last = {{"axis", attribute_of((int64_t)-1)},
                             {"keepdims", attribute_of((int64_t)0)}};
    const Tensor other = default_of(op, values);
    std::string x = n.in(0);
    if (keys.type == ElementType::kString) {
        const int64_t places = (int64_t)op.c.strings->size();
        Tensor table = Tensor::unset(values.type, {places + 1});
        const auto set = [&](int64_t at, const Tensor& from, size_t i) {
            is_float(table.type) ? table.set_float((size_t)at, from.float_at(i))
                                 : table.set_int((size_t)at, from.int_at(i));
        };
        for (int64_t i = 0; i <= places; i++) set(i, other, 0);
        for (size_t i = keys.count(); i-- > 0;) set(keys.int_at(i), values, i);
        const Tensor none = Tensor::of_ints({-1}, true), end = Tensor::of_ints({places}, true);
        const std::string place = n.as_type(x, ElementType::kInt64);
        const std::string inside = n.add("And", {n.add("Greater", {place, n.constant(none)}),
                                                 n.add("Less", {place, n.constant(end)})});
        return n.add("Gather",
                     {n.constant(table), n.add("Where", {inside, place, n.constant(end)})});
    }
    x = n.add("Unsqueeze", {x, n.ints({-1})});
    if (!op.in(0)->floats()) x = n.cast(x, ElementType::kInt64);
    const Tensor same = keys.cast(op.in(0)->floats() ? ElementType::kFloat : ElementType::kInt64);
    std::string equal = n.add("Equal", {x, n.constant(same)});
    // NaN is equal to nothing, but may be a key.
    Tensor is_nan(ElementType::kBool, same.dims);
    for (size_t i = 0; i < same.count() && is_float(same.type); i++)
        is_nan.set_int(i, same.float_at(i) != same.float_at(i));
    const std::vector<int64_t> keys_of_nan = is_nan.ints();
    if (std::count(keys_of_nan.begin(), keys_of_nan.end(), 1))
        equal = n.add("Or", {equal, n.add("And", {n.add("IsNaN", {x}), n.constant(is_nan)})});
    equal = n.cast(equal, ElementType::kFloat);
    const std::string at = n.add("ArgMax", {equal}, last);
    const std::string found =
        n.cast(n.add("ReduceMax", {equal, n.ints({-1})}, {{"keepdims", attribute_of((int64_t)0)}}),
               ElementType::kBool);
    return n.add("Where", {found, n.add("Gather", {n.constant(values), at}), n.constant(other)});
}

bool encode(Op& op, const Tensor& keys, const Tensor& values) {
    Nodes n(op);
    const bool text = op.in(0)->type == ElementType::kString;
    if (keys.count() == 0 || keys.count() != values.count())
        return op.fail("%zu keys and %zu values", keys.count(), values.count());
    if (text != (keys.type == ElementType::kString))
        return op.fail("keys of %s for an input of %s", type_name(keys.type),
                       type_name(op.in(0)->type));
    return n.set(0, looked_up(op, n, keys.reshaped({(int64_t)keys.count()}),
                              values.reshaped({(int64_t)values.count()})));
}

bool label_encoder(Op& op) { return encode(op, list_of(op, "keys"), list_of(op, "values")); }

// Strings to numbers, or numbers to strings, as the input is.
bool category_mapper(Op& op) {
    const Tensor ints = list_of(op, "cats"), texts = [&] {
        Tensor t = Tensor::of_ints(op.c.strings->places_of(strings_of(op, "cats_strings")));
        t.type = ElementType::kString;
        return t;
    }();
    const bool text = op.in(0)->type == ElementType::kString;
    return encode(op, text ? texts : ints, text ? ints : texts);
}

// The first opsets: classes by their places, or those by the classes.
bool old_label_encoder(Op& op) {
    const Tensor classes = list_of(op, "classes");
    Ints places(classes.count());
    for (size_t i = 0; i < places.size(); i++) places[i] = (int64_t)i;
    const bool text = op.in(0)->type == ElementType::kString;
    return encode(op, text ? classes : Tensor::of_ints(places),
                  text ? Tensor::of_ints(places) : classes);
}

bool one_hot_encoder(Op& op) {
    Nodes n(op);
    const Tensor keys = list_of(op, "cats");
    const bool text = op.in(0)->type == ElementType::kString;
    if (keys.count() == 0 || text != (keys.type == ElementType::kString))
        return op.fail("categories of %s for an input of %s", type_name(keys.type),
                       type_name(op.in(0)->type));
    // Numbers with a fraction belong to the category that they are cast to.
    const std::string whole =
        text ? n.as_type(n.in(0), ElementType::kInt64) : n.cast(n.in(0), ElementType::kInt64);
    const std::string x = n.add("Unsqueeze", {whole, n.ints({-1})});
    const Ints all = keys.ints();
    const std::string hot = n.cast(n.add("Equal", {x, n.ints(all)}), ElementType::kFloat);
    // If a category appears more than once, ONNX Runtime uses the last.
    Floats last(all.size());
    for (size_t i = 0; i < all.size(); i++)
        last[i] = std::find(all.begin() + (ptrdiff_t)i + 1, all.end(), all[i]) == all.end();
    if (std::find(last.begin(), last.end(), 0.f) == last.end()) return n.set(0, hot);
    const Tensor mask = floats_tensor(last, {(int64_t)last.size()});
    return n.set(0, n.add("Mul", {hot, n.constant(mask)}));
}

}  // namespace

OpTable label_ops() {
    const char* const domain = "ai.onnx.ml";
    return {
        {domain, "CategoryMapper", 1, 0, category_mapper, kStringsLimit, 1,
         kOpFirstStrings | kOpMakesStrings},
        {domain, "LabelEncoder", 1, 1, old_label_encoder, kStringsLimit, 1,
         kOpFirstStrings | kOpMakesStrings},
        {domain, "LabelEncoder", 2, 0, label_encoder, kStringsLimit, 1,
         kOpFirstStrings | kOpMakesStrings},
        {domain, "OneHotEncoder", 1, 0, one_hot_encoder, kStringsLimit, 1, kOpFirstStrings},
    };
}

}  // namespace onnx_tool
}  // namespace quoll
