// Sequences of tensors: lists of values while the model is converted. Nothing of them is left in
// the net but the tensors.
#include <algorithm>

#include "onnx/nodes.h"
#include "onnx/ops.h"

namespace quoll {
namespace onnx_tool {

namespace {

typedef std::vector<std::string> Strings;

bool set_sequence(Op& op, const Strings& items, bool open = false) {
    Value* v = op.c.add_value(op.node.outputs[0]);
    v->sequence = true, v->open = open, v->items = items;
    return true;
}

// The sequence that is input 0; null after op.fail().
const Value* sequence_of(Op& op) {
    const Value* v = op.in(0);
    if (!v->sequence) return op.fail("%s is no sequence", v->name.c_str()), nullptr;
    return v;
}

// A sequence of which the number of items is known; null after op.fail().
const Value* list_of(Op& op) {
    const Value* v = sequence_of(op);
    if (v && (v->open || !v->stacked.empty()))
        return op.fail("the length of %s is known only at run time", v->name.c_str()), nullptr;
    return v;
}

bool sequence_empty(Op& op) { return set_sequence(op, {}); }

bool sequence_construct(Op& op) { return set_sequence(op, op.node.inputs); }

// A position in a list of `size` places; false after op.fail().
bool position(Op& op, int input, size_t size, size_t* at) {
    std::vector<int64_t> given;
    if (!op.ints(input, "position", &given)) return false;
    const int64_t n = (int64_t)size;
    if (given.size() != 1 || given[0] < -n || given[0] >= n)
        return op.fail("a position outside a sequence of %zu", size);
    *at = (size_t)(given[0] < 0 ? given[0] + n : given[0]);
    return true;
}

bool sequence_insert(Op& op) {
    const Value* list = sequence_of(op);
    if (!list) return false;
    Strings items = list->items;
    size_t at = items.size();
    if (!list->stacked.empty() || (list->open && op.has(2)))
        return op.fail("into %s, whose length is known only at run time", list->name.c_str());
    if (op.has(2)) {
        std::vector<int64_t> given;
        if (!op.ints(2, "position", &given)) return false;
        const bool behind = given.size() == 1 && given[0] == (int64_t)items.size();
        if (!behind && !position(op, 2, items.size(), &at)) return false;
    }
    items.insert(items.begin() + (ptrdiff_t)at, op.node.inputs[1]);
    return set_sequence(op, items, list->open);
}

bool sequence_erase(Op& op) {
    const Value* list = list_of(op);
    if (!list) return false;
    Strings items = list->items;
    size_t at = items.empty() ? 0 : items.size() - 1;
    if (items.empty() || (op.has(1) && !position(op, 1, items.size(), &at)))
        return items.empty() ? op.fail("from an empty sequence") : false;
    items.erase(items.begin() + (ptrdiff_t)at);
    return set_sequence(op, items);
}

bool sequence_at(Op& op) {
    const Value* list = sequence_of(op);
    if (!list) return false;
    Nodes n(op);
    if (!list->stacked.empty()) return n.set(0, n.add("Gather", {list->stacked, n.in(1)}));
    size_t at = 0;
    if (!list_of(op) || !position(op, 1, list->items.size(), &at)) return false;
    op.alias(0, op.c.find_value(list->items[at]));
    return true;
}

bool sequence_length(Op& op) {
    const Value* list = sequence_of(op);
    if (!list) return false;
    Nodes n(op);
    if (!list->stacked.empty()) {
        const std::string first = n.constant(Tensor::of_ints({0}, true));
        return n.set(0, n.add("Gather", {n.add("Shape", {list->stacked}), first}));
    }
    if (!list_of(op)) return false;
    op.set_constant(0, Tensor::of_ints({(int64_t)list->items.size()}, true));
    return true;
}

// What a loop at run time made, n tensors along a new axis in front, as ConcatFromSequence has it.
bool concat_stacked(Op& op, const std::string& stacked, bool new_axis, int64_t axis) {
    Nodes n(op);
    const int rank = n.value(stacked)->rank();
    const int64_t ranks = new_axis ? rank : rank - 1;
    if (axis < 0) axis += ranks;
    if (axis < 0 || axis >= ranks) return op.fail("axis %lld", (long long)axis);
    std::vector<int64_t> perm;  // the new axis goes to where the items are joined
    for (int a = 1; a < rank; a++) perm.push_back(a);
    perm.insert(perm.begin() + axis, 0);
    const std::string moved = axis ? n.transpose(stacked, perm) : stacked;
    if (new_axis) return n.set(0, moved);
    const std::string sizes = n.cast(n.add("Shape", {moved}), ElementType::kInt64);
    Strings shape;
    if (axis > 0) shape.push_back(n.slice(sizes, 0, 0, axis));
    shape.push_back(n.ints({-1}));
    if (axis + 2 < rank) shape.push_back(n.slice(sizes, 0, axis + 2, rank));
    const std::string to =
        shape.size() == 1 ? shape[0] : n.add("Concat", shape, {{"axis", attribute_of((int64_t)0)}});
    return n.set(0, n.add("Reshape", {moved, to}));
}

bool concat_from_sequence(Op& op) {
    const Value* list = sequence_of(op);
    if (!list) return false;
    const bool new_axis = op.attr("new_axis", 0) != 0;
    const int64_t axis = op.attr("axis", 0);
    if (!list->stacked.empty()) return concat_stacked(op, list->stacked, new_axis, axis);
    if (!list_of(op)) return false;
    if (list->items.empty()) return op.fail("of an empty sequence");
    Nodes n(op);
    Strings parts = list->items;
    if (new_axis)
        for (std::string& part : parts) part = n.add("Unsqueeze", {part, n.ints({axis})});
    return n.set(0, n.add("Concat", parts, {{"axis", attribute_of(axis)}}));
}

// Pieces of one along an axis of open size: tensors along a new axis in front, as a loop gives
// them.
bool split_open(Op& op, int axis, bool keep) {
    Nodes n(op);
    std::vector<int64_t> perm;
    for (int a = 0; a < op.in(0)->rank(); a++)
        if (a != axis) perm.push_back(a);
    perm.insert(perm.begin(), axis);
    std::string all = axis ? n.transpose(n.in(0), perm) : n.in(0);
    if (keep) all = n.add("Unsqueeze", {all, n.ints({axis + 1})});
    if (!n.ok()) return false;
    Value* list = op.c.add_value(op.node.outputs[0]);
    list->sequence = true, list->stacked = all;
    return true;
}

bool split_to_sequence(Op& op) {
    const int64_t most = 1024;
    Value* x = op.in(0);
    int axis = 0;
    if (!op.axis(op.attr("axis", 0), x->rank(), &axis)) return false;
    const int64_t size = x->shape[(size_t)axis].value;
    std::vector<int64_t> pieces;
    const bool single = op.has(1) && op.in(1)->rank() == 0;
    if (op.has(1) && !op.ints(1, "split", &pieces)) return false;
    if (single || !op.has(1)) {
        const int64_t each = single ? pieces[0] : 1;
        if (!x->shape[(size_t)axis].known()) {
            if (each != 1) return op.fail("pieces of %lld of an unknown size", (long long)each);
            return split_open(op, axis, single || op.attr("keepdims", 1) != 0);
        }
        pieces.clear();
        if (each < 1 || size / each > most) return op.fail("pieces of %lld", (long long)each);
        for (int64_t at = 0; at < size; at += each) pieces.push_back(std::min(each, size - at));
    }
    if (pieces.empty() || (int64_t)pieces.size() > most)
        return op.fail("%zu pieces", pieces.size());
    Nodes n(op);
    Strings items = n.add_many("Split", {n.in(0), n.ints(pieces)},
                               {{"axis", attribute_of((int64_t)axis)}}, (int)pieces.size());
    if (!op.has(1) && op.attr("keepdims", 1) == 0)
        for (std::string& item : items) item = n.add("Squeeze", {item, n.ints({axis})});
    return n.ok() && set_sequence(op, items);
}

// The body once for each item of the first sequence; inputs that are tensors are the same each
// time.
bool sequence_map(Op& op) {
    const Value* list = list_of(op);
    const Graph* body = subgraph(op, "body");
    if (!list) return false;
    if (!body) return op.fail("it lacks a body");
    std::vector<Strings> results((size_t)op.outputs());
    for (size_t i = 0; i < list->items.size(); i++) {
        Strings inputs, outputs;
        for (const std::string& name : op.node.inputs) {
            const Value* v = op.c.find_value(name);
            const bool sequence = v && v->sequence;
            if (sequence && v->items.size() != list->items.size())
                return op.fail("sequences of %zu and %zu items", list->items.size(),
                               v->items.size());
            inputs.push_back(sequence ? v->items[i] : name);
        }
        if (!run_body(op, *body, inputs, &outputs)) return false;
        if (outputs.size() < results.size())
            return op.fail("a body of %zu outputs", outputs.size());
        for (size_t k = 0; k < results.size(); k++) results[k].push_back(outputs[k]);
    }
    for (size_t k = 0; k < results.size(); k++) {
        if (!op.wants((int)k)) continue;
        Value* v = op.c.add_value(op.node.outputs[k]);
        v->sequence = true, v->items = results[k];
    }
    return true;
}

}  // namespace

OpTable sequence_ops() {
    const char* const known =
        "a length known at conversion, that of an open axis, or appended to by a loop";
    const char* const grows = "a length known at conversion, or appended to by a loop";
    return {
        {"", "SequenceEmpty", 11, 0, sequence_empty, "", 0, kOpTakesSequences},
        {"", "SequenceConstruct", 11, 0, sequence_construct, "", 1, kOpTakesSequences | kOpStrings},
        {"", "SequenceInsert", 11, 0, sequence_insert, grows, 2,
         kOpTakesSequences | kOpFirstStrings | kOpSecondStrings},
        {"", "SequenceErase", 11, 0, sequence_erase, "a length known at conversion", 1,
         kOpTakesSequences | kOpFirstStrings},
        {"", "SequenceAt", 11, 0, sequence_at, known, 2, kOpTakesSequences | kOpFirstStrings},
        {"", "SequenceLength", 11, 0, sequence_length, known, 1,
         kOpTakesSequences | kOpFirstStrings},
        {"", "ConcatFromSequence", 11, 0, concat_from_sequence, known, 1,
         kOpTakesSequences | kOpFirstStrings},
        {"", "SequenceMap", 17, 0, sequence_map, "a length known at conversion", 1,
         kOpTakesSequences},
        {"", "SplitToSequence", 11, 0, split_to_sequence,
         "constant sizes; along an open axis pieces of 1, or a list that must add up to its size",
         1, kOpTakesSequences | kOpFirstStrings},
    };
}

}  // namespace onnx_tool
}  // namespace quoll
