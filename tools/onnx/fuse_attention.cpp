// Attention: softmax(q k^T scale + mask) v as one layer.
#include <algorithm>
#include <set>

#include "onnx/fuse.h"
#include "onnx/ops.h"
#include "onnx/sdpa.h"

namespace quoll {
namespace onnx_tool {

namespace {

// What is added to a number of this size is lost in float32, unless it is as large.
const double kAbsorbs = -1e38;

struct Attention {
    std::string q, k, v;
    double scale = 1;
    std::vector<std::string> masks;    // values that are added
    std::vector<std::string> factors;  // values of heads that the queries are multiplied by
    std::vector<std::string> ends;     // values of the graph that these come from
    // The keys as they are found: value k, with these axes moved if there are any.
    std::vector<int64_t> k_perm;
    std::vector<Dim> k_shape;  // if not empty: k is reshaped to this
};

// A number that a value is multiplied by goes into the scale.
void take_scale(const Match& m, std::string* value, double* scale) {
    double number = 0;
    std::string x;
    for (int i = 0; i < 4; i++) {
        const Node* node = m.maker(m.root(*value));
        if (m.with_number(node, "Mul", &number, &x))
            *scale *= number;
        else if (m.with_number(node, "Div", &number, &x) && number != 0)
            *scale /= number;
        else
            return;
        *value = x;
    }
}

// Keys behind reshapes to matrices, the transposed ones, and a reshape back.
bool keys_of_matrices(const Match& m, const Value& transposed, Attention* a) {
    const Node* back = m.maker(a->k, "Reshape");
    const Node* t = back ? m.maker(back->inputs[0], "Transpose") : nullptr;
    const Value* rows = t ? m.value(t->inputs[0]) : nullptr;
    std::vector<int64_t> perm = t ? m.order_of(*t) : std::vector<int64_t>();
    if (!rows || rows->rank() != 3 || perm.size() != 3) return false;
    std::swap(perm[1], perm[2]);
    const int rank = transposed.rank();
    if (!same(rows->shape[(size_t)perm[1]], transposed.shape[(size_t)rank - 1]) ||
        !same(rows->shape[(size_t)perm[2]], transposed.shape[(size_t)rank - 2]))
        return false;
    std::vector<Dim> shape = transposed.shape;
    std::swap(shape[(size_t)rank - 1], shape[(size_t)rank - 2]);
    a->k = t->inputs[0];
    const bool moved = !std::is_sorted(perm.begin(), perm.end());
    const Node* split = moved ? nullptr : m.maker(a->k, "Reshape");
    const Value* source = split ? m.value(split->inputs[0]) : nullptr;
    if (source && same(source->shape, shape)) {
        a->k = split->inputs[0];
        return true;
    }
    if (moved) a->k_perm = perm;
    a->k_shape = shape;
    return all_known(shape);
}

// The keys whose transposed ones are multiplied.
bool take_keys(const Match& m, const std::string& transposed, Attention* a) {
    a->k = transposed;
    take_scale(m, &a->k, &a->scale);
    const Value* value = m.value(a->k);
    if (!value || value->rank() < 3) return false;
    const size_t rank = (size_t)value->rank();
    if (const Node* t = m.maker(a->k, "Transpose")) {
        std::vector<int64_t> perm = m.order_of(*t);
        if (perm.size() != rank) return false;
        std::swap(perm[rank - 1], perm[rank - 2]);
        a->k = t->inputs[0];
        if (!std::is_sorted(perm.begin(), perm.end())) a->k_perm = perm;
    } else if (!keys_of_matrices(m, *value, a)) {
        a->k_perm.clear(), a->k_shape.clear();
        for (size_t i = 0; i < rank; i++) a->k_perm.push_back((int64_t)i);
        std::swap(a->k_perm[rank - 1], a->k_perm[rank - 2]);
    }
    if (a->k_shape.empty()) take_scale(m, &a->k, &a->scale);
    return true;
}

// Whether an Einsum multiplies matrices, or the first ones by the second ones transposed, along the
// last two of as many axes.
bool is_product(const Node& einsum, bool transposed) {
    const auto found = einsum.attributes.find("equation");
    std::string equation = found == einsum.attributes.end() ? "" : found->second.s;
    equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
    const size_t comma = equation.find(','), arrow = equation.find("->");
    if (comma == std::string::npos || arrow == std::string::npos || comma > arrow || comma < 2)
        return false;
    const std::string lead = equation.substr(0, comma - 2);
    const char i = equation[comma - 2], k = equation[comma - 1];
    std::string second = equation.substr(comma + 1, arrow - comma - 1);
    if (second.size() != comma) return false;
    const char n = second[comma - (transposed ? 2 : 1)];
    const std::string letters = lead + i + k + n;
    std::set<char> different(letters.begin(), letters.end());
    return different.size() == letters.size() && letters.find('.') == std::string::npos &&
           second == lead + (transposed ? n : k) + (transposed ? k : n) &&
           equation.substr(arrow + 2) == lead + i + n;
}

bool take_scores(Match& m, const std::string& value, int depth, Attention* a);

// Scores multiplied by a number of each head, which the queries may be instead: there are fewer.
bool take_factor(Match& m, const Node& product, int depth, Attention* a) {
    for (int i = 0; i < 2; i++) {
        const Value *factor = m.value(product.inputs[1 - i]), *x = m.value(product.inputs[i]);
        if (!factor || !x || !factor->floats() || factor->rank() > x->rank()) continue;
        bool fits = true;
        for (int from_end = 1; from_end <= factor->rank(); from_end++) {
            const Dim& own = factor->shape[(size_t)(factor->rank() - from_end)];
            const Dim& all = x->shape[(size_t)(x->rank() - from_end)];
            fits = fits && (own.is(1) || (from_end > 2 && same(own, all)));
        }
        if (!fits || !take_scores(m, product.inputs[i], depth + 1, a)) continue;
        a->factors.push_back(product.inputs[1 - i]);
        a->ends.push_back(product.inputs[1 - i]);
        return a->masks.empty();
    }
    return false;
}

// Masks that are added to windows of items, as Swin has it: the sum in more axes.
bool take_windows(Match& m, const Node& reshape, const std::string& value, int depth,
                  Attention* a) {
    const Node* sum = m.maker(reshape.inputs[0], "Add");
    const Value *to = m.value(value), *wide = m.value(reshape.inputs[0]);
    for (int i = 0; sum && i < 2; i++) {
        const Node* split = m.maker(sum->inputs[i], "Reshape");
        const Value* from = split ? m.value(split->inputs[0]) : nullptr;
        const Tensor* mask = m.constant(sum->inputs[1 - i]);
        if (!from || !mask || !wide || !same(from->shape, to->shape) || !all_known(wide->shape) ||
            !take_scores(m, split->inputs[0], depth + 1, a))
            continue;
        const std::string full =
            m.emit("Expand",
                   {sum->inputs[1 - i], m.add_constant(Tensor::of_ints(values_of(wide->shape)))});
        if (full.empty()) return false;
        a->masks.push_back(
            m.emit("Reshape", {full, m.add_constant(Tensor::of_ints(values_of(to->shape)))}));
        return !a->masks.back().empty();
    }
    return false;
}

// Scores of keys on a grid, in more axes, to which a mask's part for rows and one for columns are
// added one after the other, as ViTDet has it.
bool take_grid(Match& m, const Node& reshape, const std::string& value, int depth, Attention* a) {
    const Node* outer = m.maker(reshape.inputs[0], "Add");
    const Value *to = m.value(value), *wide = m.value(reshape.inputs[0]);
    if (!outer || !to || !wide || !all_known(to->shape) || !all_known(wide->shape)) return false;
    for (int order = 0; order < 4; order++) {
        const int i = order & 1, k = order >> 1;
        const Node* inner = m.maker(outer->inputs[i], "Add");
        const Node* split = inner ? m.maker(inner->inputs[k], "Reshape") : nullptr;
        const Value* from = split ? m.value(split->inputs[0]) : nullptr;
        if (!from || !same(from->shape, to->shape) ||
            !take_scores(m, split->inputs[0], depth + 1, a))
            continue;
        const std::string parts[] = {outer->inputs[1 - i], inner->inputs[1 - k]};
        const std::string sum = m.emit("Add", {parts[0], parts[1]});
        if (sum.empty() || !same(m.value(sum)->shape, wide->shape)) return false;
        a->masks.push_back(
            m.emit("Reshape", {sum, m.add_constant(Tensor::of_ints(values_of(to->shape)))}));
        a->ends.insert(a->ends.end(), parts, parts + 2);
        return !a->masks.back().empty();
    }
    return false;
}

// Scores that are replaced by the lowest number where a condition does not hold.
bool take_choice(Match& m, const Node& where, int depth, Attention* a) {
    for (int i = 1; i <= 2; i++) {
        double low = 0;
        if (!m.number(where.inputs[3 - i], &low) || low > kAbsorbs ||
            !take_scores(m, where.inputs[i], depth + 1, a))
            continue;
        std::vector<std::string> in = where.inputs;
        // Masks of the scores are chosen with them: added to the lowest number, they would be more.
        in[i] = a->masks.empty() ? m.add_constant(Tensor::of_float(0)) : a->masks[0];
        for (size_t k = 1; k < a->masks.size() && !in[i].empty(); k++)
            in[i] = m.emit("Add", {in[i], a->masks[k]});
        if (in[i].empty()) return false;
        a->ends.push_back(where.inputs[0]);
        a->masks.assign(1, m.emit("Where", in));
        return !a->masks[0].empty();
    }
    return false;
}

bool take_made(Match& m, const std::string& value, int depth, Attention* a) {
    const Node* node = m.maker(m.root(value));
    if (!node || !node->domain.empty() || depth > 6 || m.constant(value)) return false;
    if (node->op == "MatMul") {
        a->q = node->inputs[0];
        take_scale(m, &a->q, &a->scale);
        return take_keys(m, node->inputs[1], a);
    }
    if (node->op == "Einsum" && is_product(*node, true)) {
        a->q = node->inputs[0], a->k = node->inputs[1];
        take_scale(m, &a->q, &a->scale);
        take_scale(m, &a->k, &a->scale);
        return true;
    }
    double number = 0;
    std::string x;
    const bool product = m.with_number(node, "Mul", &number, &x);
    if (product || (m.with_number(node, "Div", &number, &x) && number != 0)) {
        a->scale *= product ? number : 1 / number;
        return take_scores(m, x, depth + 1, a) && a->masks.empty();
    }
    if (node->op == "Add") {
        for (int i = 0; i < 2; i++) {
            if (!take_scores(m, node->inputs[i], depth + 1, a)) continue;
            a->masks.push_back(node->inputs[1 - i]);
            a->ends.push_back(node->inputs[1 - i]);
            return true;
        }
        return false;
    }
    if (node->op == "Mul") return take_factor(m, *node, depth, a);
    if (node->op == "Where") return take_choice(m, *node, depth, a);
    return node->op == "Reshape" && (take_windows(m, *node, m.root(value), depth, a) ||
                                     take_grid(m, *node, m.root(value), depth, a));
}

// Value as q k^T scale, by factors, with masks added. `a` stays what it is where that fails, as
// the other operand may be such scores.
bool take_scores(Match& m, const std::string& value, int depth, Attention* a) {
    Attention tried = *a;
    if (!take_made(m, value, depth, &tried)) return false;
    *a = std::move(tried);
    return true;
}

// The sizes of an attention: [B][H][W][S][T], the first ones as far as the rank has them; W:
// windows.
struct Sizes {
    std::vector<Dim> lead;
    Dim src, dst;
};

// Neighbouring heads of queries may share one of keys.
bool shares(const std::vector<Dim>& queries, std::vector<Dim> keys) {
    const Dim heads = queries.back(), groups = keys.back();
    if (queries.size() == 2 && heads.known() && groups.known() && groups.value > 0 &&
        heads.value % groups.value == 0)
        keys.back() = heads;
    return same(keys, queries);
}

bool sizes_of(const Value* q, const Value* k, const Value* v, Sizes* s) {
    const int rank = q->rank();
    if (rank < 3 || rank > 5 || k->rank() != rank || v->rank() != rank || !q->floats())
        return false;
    s->lead.assign(q->shape.begin(), q->shape.end() - 2);
    s->src = q->shape[(size_t)rank - 2], s->dst = k->shape[(size_t)rank - 2];
    const std::vector<Dim> keys(k->shape.begin(), k->shape.end() - 2),
        values(v->shape.begin(), v->shape.end() - 2);
    if (!same(keys, values) || !shares(s->lead, keys)) return false;
    const Dim& values_of = v->shape[(size_t)rank - 2];  // the product asks for as many
    return same(q->shape.back(), k->shape.back()) &&
           (same(values_of, s->dst) || !values_of.known() || !s->dst.known());
}

// The form in which a mask goes with queries of that form; false if it does not.
bool mask_form(const Symbols& symbols, const Value& mask, const Sizes& s, const Form& form,
               Form* to) {
    const int rank = mask.rank(), lead = (int)s.lead.size();
    const auto fits = [&](const Dim& own, const Dim& all) {  // cut to as many, if there are so many
        return same(own, all) || symbols.is_limited(own, all);
    };
    if (rank < 2 || rank - 2 > lead || !fits(mask.shape[(size_t)rank - 2], s.src) ||
        !fits(mask.shape.back(), s.dst))
        return false;
    // Which of the leading axes, from the innermost, it has.
    std::vector<char> has((size_t)lead, 0);
    for (int i = 0; i < rank - 2; i++) {
        const Dim &own = mask.shape[(size_t)(rank - 3 - i)], &all = s.lead[(size_t)(lead - 1 - i)];
        has[(size_t)i] = !own.is(1);
        if (!own.is(1) && !same(own, all)) return false;
    }
    const bool items = lead == 2 && has[1];
    const bool heads = lead > 0 && has[0];
    if (lead == 3) {  // those of one item, of all its heads or of the innermost ones
        if (has[2] || (has[1] && !has[0])) return false;
        *to = has[0] ? Form{false, {rank - 2, 1, 1}} : Form{false, {rank - 1, 1}};
        return true;
    }
    if (!form.batch) {  // all leading axes together are the heads
        *to = items || heads ? Form{false, {rank - 2, 1, 1}} : Form{false, {rank - 1, 1}};
        return !items || heads || s.lead[1].is(1);  // those of heads are repeated for all items
    }
    if (lead == 1) {  // one head an item
        *to = has[0] ? Form::batched(3) : Form{false, {rank - 1, 1}};
        return true;
    }
    const int first = items ? 1 : 0;
    to->batch = items;
    to->groups =
        heads ? std::vector<int>{rank - 2 - first, 1, 1} : std::vector<int>{rank - 1 - first, 1};
    return true;
}

// The forms in which queries, keys and values, and the mask, go into the layer; false: in none.
bool forms_of(const Symbols& symbols, const AttentionOperands& o, Form* form, Form* mask) {
    Sizes s;
    if (!sizes_of(o.q, o.k, o.v, &s)) return false;
    const auto fits = [&](const Value* part, const Form& f) {
        Sizes own = s;
        if (part != o.mask) own.dst = part->shape.back();
        return mask_form(symbols, *part, own, f, mask);
    };
    const int rank = o.q->rank();
    const bool batch =
        o.q->form.batch || o.k->form.batch || o.v->form.batch || (rank >= 4 && o.q->shape[0].is(1));
    std::vector<Form> forms = {rank == 5 ? Form{true, {2, 1, 1}} : Form::batched(rank)};
    if (!batch) forms.insert(forms.begin(), Form{false, {rank - 2, 1, 1}});
    for (const Form& f : forms) {
        if (o.mask && !fits(o.mask, f)) continue;
        if (o.rows && !(fits(o.rows, f) && fits(o.columns, f))) continue;
        *form = f;
        return true;
    }
    return false;
}

}  // namespace

bool is_attention(const Symbols& symbols, const AttentionOperands& o) {
    Form form, mask;
    return forms_of(symbols, o, &form, &mask);
}

bool convert_attention(Op& op, const AttentionOperands& o) {
    Form form, mask;
    if (!forms_of(op.c.symbols, o, &form, &mask))
        return op.fail("operands that do not go together");
    std::vector<std::string> from;
    for (Value* v : {o.q, o.k, o.v}) from.push_back(op.blob(v, form));
    for (Value* part : {o.mask, o.rows, o.columns})
        if (part) from.push_back(op.blob(part, mask));
    for (const std::string& blob : from)
        if (blob.empty()) return false;
    ModelLayer& layer = op.emit("SDPA", from);
    layer.set("scale", (float)o.scale);
    if (from.size() > 3) layer.set("attn_mask", (int)from.size() - 3);
    std::vector<Dim> shape = o.q->shape;
    shape.back() = o.v->shape.back();
    // The layer's answer has an axis of heads, even if the queries have none.
    if (form.groups.size() == 2) form.groups.insert(form.groups.begin(), 0);
    op.set(0, o.q->type, shape, form, layer.outputs[0]);
    return true;
}

namespace {

// A mask with a row for each query and a column for each key; leading axes are 1 or as the queries
// have them. "" if it cannot be had.
std::string whole_mask(Match& m, const Attention& a, const Sizes& s, const std::string& mask) {
    const Value* v = m.value(mask);
    if (!v || !v->floats() || v->rank() < 1 || v->rank() > m.value(a.q)->rank()) return "";
    const int64_t rank = std::max(2, v->rank());
    std::vector<Dim> wanted = s.lead, shape;
    wanted.push_back(s.src), wanted.push_back(s.dst);
    bool fits = rank == v->rank();
    for (int64_t i = rank; i >= 1; i--) {  // from the end
        const Dim own = i > v->rank() ? Dim(1) : v->shape[(size_t)(v->rank() - i)];
        const Dim& full = wanted[wanted.size() - (size_t)i];
        const bool stays = same(own, full) || (i > 2 && own.is(1));
        if (!stays && own.known() && !own.is(1)) return "";  // it may be wider than the scores
        fits = fits && stays;
        shape.push_back(stays ? own : full);
    }
    if (fits) return mask;
    const std::string sizes = m.add_sizes(shape);
    const std::string all = sizes.empty() ? "" : m.emit("Expand", {mask, sizes});
    if (!all.empty()) m.c.find_value(all)->shape = shape;  // whichever sizes were 1
    return all;
}

// The sum of all masks; "" if that cannot be had.
std::string sum_of_masks(Match& m, const Attention& a, const Sizes& s) {
    std::string sum = a.masks[0];
    for (size_t i = 1; i < a.masks.size() && !sum.empty(); i++)
        sum = m.emit("Add", {sum, a.masks[i]});
    return sum.empty() ? "" : whole_mask(m, a, s, sum);
}

// The parts of a mask that is a sum, in more axes, of one for each row of a grid of keys,
// [...][height][1], and one for each column, [...][1][width].
bool parts_of_mask(Match& m, const std::string& mask, std::string* rows, std::string* columns) {
    const Node* reshape = m.maker(mask, "Reshape");
    const Node* sum = reshape ? m.maker(reshape->inputs[0], "Add") : nullptr;
    const Value *whole = m.value(mask), *grid = sum ? m.value(reshape->inputs[0]) : nullptr;
    if (!grid || grid->rank() < 3 || !all_known(grid->shape) || !all_known(whole->shape))
        return false;
    const std::vector<int64_t> sizes = values_of(grid->shape);
    const int64_t width = sizes.back(), height = sizes[sizes.size() - 2];
    if (width < 2 || height < 2 || !whole->shape.back().is(width * height)) return false;
    for (int i = 0; i < 2; i++) {
        std::vector<int64_t> of_rows = sizes, of_columns = sizes;
        of_rows.back() = of_columns[sizes.size() - 2] = 1;
        const Value *a = m.value(sum->inputs[i]), *b = m.value(sum->inputs[1 - i]);
        if (!all_known(a->shape) || !all_known(b->shape) || values_of(a->shape) != of_rows ||
            values_of(b->shape) != of_columns)
            continue;
        std::vector<int64_t> shape = values_of(whole->shape);
        const auto reshaped = [&](const std::string& part, int64_t last) {
            shape.back() = last;
            return m.emit("Reshape", {part, m.add_constant(Tensor::of_ints(shape))});
        };
        *rows = reshaped(sum->inputs[i], height);
        *columns = reshaped(sum->inputs[1 - i], width);
        return !rows->empty() && !columns->empty();
    }
    return false;
}

// Heads of keys or values that are repeated for the queries that share them; the heads themselves
// and how often.
bool take_shared(const Match& m, std::string* name, int64_t* times) {
    const Node* joined = m.maker(*name, "Reshape");
    const Node* wide = joined ? m.maker(joined->inputs[0], "Expand") : nullptr;
    const Node* split = wide ? m.maker(wide->inputs[0]) : nullptr;
    if (!split || !split->domain.empty() || (split->op != "Unsqueeze" && split->op != "Reshape"))
        return false;
    const Value *x = m.value(split->inputs[0]), *one = m.value(wide->inputs[0]),
                *many = m.value(joined->inputs[0]), *y = m.value(*name);
    if (!x || !one || !many || !y || x->rank() != 4 || y->rank() != 4 || many->rank() != 5 ||
        !many->shape[2].known() || !x->shape[1].known())
        return false;
    std::vector<Dim> groups = x->shape, heads = x->shape;
    groups.insert(groups.begin() + 2, Dim(1));
    heads[1] = Dim(x->shape[1].value * many->shape[2].value);
    if (!same(one->shape, groups) || !same(y->shape, heads)) return false;
    groups[2] = many->shape[2];
    *times = many->shape[2].value;
    *name = split->inputs[0];
    return same(many->shape, groups);
}

void take_groups(const Match& m, Attention* a) {
    std::string k = a->k, v = a->v;
    int64_t of_keys = 0, of_values = 0;
    if (!a->k_perm.empty() || !a->k_shape.empty() || !take_shared(m, &k, &of_keys) ||
        !take_shared(m, &v, &of_values) || of_keys != of_values)
        return;
    a->k = k, a->v = v;
}

// The Softmax whose answers these are. PyTorch puts 0 where they are no numbers, which SDPA does by
// itself: where a query sees nothing.
const Node* softmax_of(const Match& m, const std::string& name) {
    const Node* where = m.maker(name, "Where");
    if (!where) return m.maker(name, "Softmax");
    const Node* bad = m.maker(where->inputs[0], "IsNaN");
    const bool guard =
        bad && m.is_number(where->inputs[1], 0) && m.same(bad->inputs[0], where->inputs[2]);
    return guard ? m.maker(where->inputs[2], "Softmax") : nullptr;
}

bool attention(Match& m) {
    if (m.last.op == "Einsum" && !is_product(m.last, false)) return false;
    const Node* softmax = softmax_of(m, m.last.inputs[0]);
    const Value* scores = softmax ? m.value(softmax->inputs[0]) : nullptr;
    if (!scores || scores->rank() < 3) return false;
    const int64_t axis = m.attr(*softmax, "axis", m.c.opset("") >= 13 ? -1 : 1);
    Attention a;
    a.v = m.last.inputs[1];
    if ((axis != -1 && axis != scores->rank() - 1) || !take_scores(m, softmax->inputs[0], 0, &a) ||
        a.scale == 0)
        return false;
    take_groups(m, &a);
    std::vector<std::string> ends = {a.q, a.k, a.v};
    ends.insert(ends.end(), a.ends.begin(), a.ends.end());
    if (!m.closed(ends)) return false;
    for (const std::string& factor : a.factors) a.q = m.emit("Mul", {a.q, factor});
    if (!a.k_perm.empty())
        a.k = m.emit("Transpose", {a.k}, [&](Node* t) { set_ints(t, "perm", a.k_perm); });
    if (!a.k_shape.empty())
        a.k = m.emit("Reshape", {a.k, m.add_constant(Tensor::of_ints(values_of(a.k_shape)))});
    if (a.q.empty() || a.k.empty()) return false;
    AttentionOperands o = {m.c.find_value(a.q), m.c.find_value(a.k), m.c.find_value(a.v), nullptr,
                           a.scale};
    Sizes s;
    if (!o.q || !o.k || !o.v || !sizes_of(o.q, o.k, o.v, &s)) return false;
    std::vector<std::string> inputs = {a.q, a.k, a.v};
    std::string rows, columns;
    if (a.masks.size() == 1 && whole_mask(m, a, s, a.masks[0]) == a.masks[0] &&
        parts_of_mask(m, a.masks[0], &rows, &columns)) {
        inputs.insert(inputs.end(), {rows, columns});
        o.rows = m.c.find_value(rows), o.columns = m.c.find_value(columns);
    } else if (!a.masks.empty()) {
        inputs.push_back(sum_of_masks(m, a, s));
        if (inputs.back().empty()) return false;
        o.mask = m.c.find_value(inputs.back());
    }
    return m.replace_by(m.node("Attention", inputs), ends,
                        [&](Op& op) { return convert_attention(op, o); });
}

// One half of the last axis of x.
bool is_half(const Match& m, const std::string& part, const std::string& x, bool second) {
    const Value *v = m.value(part), *whole = m.value(x);
    if (!v || !whole || v->rank() < 2 || v->rank() != whole->rank()) return false;
    const int64_t rank = v->rank();
    const Dim &own = v->shape.back(), &all = whole->shape.back();
    if (!all.known() || all.value % 2 != 0 || !own.is(all.value / 2)) return false;
    if (const Node* split = m.maker(part, "Split")) {
        const int64_t axis = m.attr(*split, "axis", 0);
        return m.same(split->inputs[0], x) && (axis == -1 || axis == rank - 1) &&
               split->outputs.size() == 2 && split->outputs[second ? 1 : 0] == m.root(part);
    }
    const Node* slice = m.maker(part, "Slice");
    std::vector<int64_t> starts, axes, steps = {1};
    if (!slice || !m.same(slice->inputs[0], x) || !m.ints(*slice, "starts", 1, &starts) ||
        !m.ints(*slice, "axes", 3, &axes) || starts.size() != 1 || axes.size() != 1 ||
        (slice->inputs.size() > 4 && !m.ints(*slice, "steps", 4, &steps)))
        return false;
    const int64_t begin = starts[0] < 0 ? starts[0] + all.value : starts[0];
    return (axes[0] == -1 || axes[0] == rank - 1) && steps == std::vector<int64_t>{1} &&
           begin == (second ? all.value / 2 : 0);
}

// The halves of x exchanged, the first one negated.
bool is_turned(const Match& m, const std::string& value, const std::string& x) {
    const Node* joined = m.maker(value, "Concat");
    const Value* v = m.value(x);
    if (!joined || !v || joined->inputs.size() != 2) return false;
    const int64_t axis = m.attr(*joined, "axis", 0);
    const Node* negative = m.maker(joined->inputs[0], "Neg");
    return (axis == -1 || axis == v->rank() - 1) && negative &&
           is_half(m, negative->inputs[0], x, true) && is_half(m, joined->inputs[1], x, false);
}

bool convert_rotary(Op& op) {
    Value* x = op.in(0);
    const int rank = x->rank();
    if ((rank != 3 && rank != 4) || !x->floats()) return op.fail("rank %d", rank);
    const Sizes s = {
        {x->shape.begin(), x->shape.end() - 2}, x->shape[(size_t)rank - 2], x->shape.back()};
    const bool batch = x->form.batch || rank == 4;
    const Form form = batch ? Form::batched(rank) : Form::plain(rank);
    std::vector<std::string> from = {op.blob(x, form)};
    for (int i = 1; i <= 2; i++) {
        const Value* angle = op.in(i);
        Form to;
        // Those of all heads are the same.
        const bool heads =
            rank == 4 && angle->rank() >= 3 && !angle->shape[(size_t)angle->rank() - 3].is(1);
        if (heads || !mask_form(op.c.symbols, *angle, s, form, &to) || to.groups.size() != 2)
            return op.fail("cosines and sines of another shape");
        from.push_back(op.blob(op.in(i), to));
    }
    for (const std::string& blob : from)
        if (blob.empty()) return false;
    const std::string out = op.emit("RotaryEmbed", from).outputs[0];
    op.set(0, x->type, x->shape, form, out);
    return true;
}

// x cos + turned(x) sin
bool rotary(Match& m) {
    for (int i = 0; i < 8; i++) {
        const Node* straight = m.maker(m.last.inputs[i & 1], "Mul");
        const Node* turned = m.maker(m.last.inputs[1 - (i & 1)], "Mul");
        if (!straight || !turned) return false;
        const int a = i >> 1 & 1, b = i >> 2;
        const std::string x = straight->inputs[a], cosine = straight->inputs[1 - a],
                          sine = turned->inputs[1 - b];
        if (is_turned(m, turned->inputs[b], x))
            return m.replace_by(m.node("RotaryEmbed", {x, cosine, sine}), {x, cosine, sine},
                                convert_rotary);
    }
    return false;
}

}  // namespace

std::vector<Pattern> attention_patterns() {
    return {{"MatMul", "SDPA", attention},
            {"Einsum", "SDPA", attention},
            {"Add", "RotaryEmbed", rotary}};
}

}  // namespace onnx_tool
}  // namespace quoll
