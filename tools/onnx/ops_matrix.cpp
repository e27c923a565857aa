// Products of matrices.
#include <algorithm>

#include "onnx/nodes.h"
#include "onnx/ops.h"
#include "runtime/weight_tags.h"

namespace quoll {
namespace onnx_tool {

namespace {

// The matrix [k][n] as an InnerProduct's weights.
void set_matrix(Op& op, const Tensor& matrix, ModelLayer* layer) {
    if (op.c.leaves_matrices()) {
        StoredWeight stored(matrix.matrix());
        stored.tag = kTagByInputs;
        layer->weights.push_back({"weight_data", stored});
        op.c.keep(matrix);
        return;
    }
    const Tensor turned = matrix.transposed({1, 0});
    layer->set_weight("weight_data", turned.weight());
    op.c.keep(turned);
}

// x times a constant matrix [k][n], or, `turned`, [n][k], as InnerProduct over rows.
bool rows_times_constant(Op& op, Value* x, const Tensor& matrix, bool turned, const Tensor* bias) {
    const int rank = x->rank();
    const int64_t n = matrix.dims[turned ? 0 : 1];
    Form form{x->form.batch && rank > 1, {}};
    const int lead = rank - 1 - (form.batch ? 1 : 0);
    if (lead > 0) form.groups.push_back(lead);
    form.groups.push_back(1);
    const std::string from = op.blob(x, form);
    if (from.empty()) return false;
    ModelLayer& layer = op.emit("InnerProduct", {from});
    layer.set("num_output", (int)n);
    layer.set("weight_data_size", (int)matrix.count());
    if (turned) {
        layer.set_weight("weight_data", matrix.weight());
        op.c.keep(matrix);
    } else {
        set_matrix(op, matrix, &layer);
    }
    if (bias) {
        layer.set("bias_term", 1);
        layer.set_weight("bias_data", bias->weight());
        op.c.keep(*bias);
    }
    std::vector<Dim> shape = x->shape;
    shape[rank - 1] = Dim(n);
    op.set(0, x->type, shape, form, layer.outputs[0]);
    return true;
}

// The leading axes of a product, and a form for both operands and the product.
bool product_form(Op& op, Value* a, Value* b, int rank, std::vector<Dim>* lead, Form* form) {
    Value x, y;
    x.shape.assign(a->shape.begin(), a->shape.end() - 2);
    y.shape.assign(b->shape.begin(), b->shape.end() - 2);
    if (!broadcast_shape(op, {&x, &y}, lead)) return false;
    const bool batch =
        rank >= 3 && rank <= 5 &&
        ((a->form.batch && a->rank() == rank) || (b->form.batch && b->rank() == rank));
    form->batch = batch;
    form->groups.clear();
    // Matrices that are repeated: only the innermost two of their axes find a place beside them.
    const bool repeated = !same(x.shape, *lead) || !same(y.shape, *lead);
    form->batch = form->batch || (repeated && rank == 5 && op.c.default_batch());
    const int leads = rank - 2 - (form->batch ? 1 : 0);
    if (leads <= 2) {
        form->groups.assign((size_t)leads + 2, 1);
        return true;
    }
    // All leading axes together.
    if (repeated) return op.fail("matrices of rank %d that are repeated", rank);
    form->groups = {leads, 1, 1};
    return true;
}

// A tensor of high rank times a vector, which becomes a matrix of one row or column.
bool times_vector(Op& op, const Value* a, const Value* b) {
    Nodes n(op);
    const std::string axis = n.ints({a->rank() == 1 ? -2 : -1});
    const std::string x = a->rank() == 1 ? n.add("Unsqueeze", {a->name, axis}) : a->name;
    const std::string y = b->rank() == 1 ? n.add("Unsqueeze", {b->name, axis}) : b->name;
    return n.set(0, n.add("Squeeze", {n.add("MatMul", {x, y}), axis}));
}

bool matmul_values(Op& op, Value* a, Value* b, ElementType type) {
    if (a->rank() < 1 || b->rank() < 1) return op.fail("a scalar");
    if (b->is_constant() && b->rank() == 2 && a->floats() && !a->is_constant() &&
        b->constant->count() > 0 && a->rank() >= 1)
        return rows_times_constant(op, a, *b->constant, false, nullptr);
    if (a->rank() == 1 || b->rank() == 1) {
        if (std::max(a->rank(), b->rank()) > 4) return times_vector(op, a, b);
        const std::string x = op.plain(a), y = op.plain(b);
        if (x.empty() || y.empty()) return false;
        const std::string out = op.emit("MatMul", {x, y}).outputs[0];
        std::vector<Dim> shape;
        if (a->rank() > 1) {
            shape.assign(a->shape.begin(), a->shape.end() - 1);
        } else if (b->rank() > 1) {
            shape.assign(b->shape.begin(), b->shape.end() - 2);
            shape.push_back(b->shape.back());
        }
        op.set(0, type, shape, Form::plain((int)shape.size()), out);
        return true;
    }
    const int rank = std::max(a->rank(), b->rank());
    std::vector<Dim> shape;
    Form form;
    if (!product_form(op, a, b, rank, &shape, &form)) return false;
    const std::string x = op.blob(a, form, rank), y = op.blob(b, form, rank);
    if (x.empty() || y.empty()) return false;
    const std::string out = op.emit("MatMul", {x, y}).outputs[0];
    shape.push_back(a->shape[a->rank() - 2]);
    shape.push_back(b->shape[b->rank() - 1]);
    op.set(0, type, shape, form, out);
    return true;
}

// The node with its operands as floats.
bool of_integers(Op& op) {
    op.c.note("products of integer matrices are computed in float32");
    Nodes n(op);
    Node node = op.node;
    for (std::string& input : node.inputs)
        if (!input.empty()) input = n.cast(input, ElementType::kFloat);
    const std::vector<std::string> made = n.add_many(node.op, node.inputs, node.attributes, 1);
    return n.set(0, n.cast(made[0], op.in(0)->type));
}

bool matmul(Op& op) {
    if (!op.in(0)->floats() || !op.in(1)->floats()) return of_integers(op);
    return matmul_values(op, op.in(0), op.in(1), op.in(0)->type);
}

// C as a bias of one value per output; false when it is none.
bool gemm_bias(const Value* c, int64_t n, float beta, Tensor* bias) {
    if (!c->is_constant()) return false;
    const Tensor& t = *c->constant;
    const bool one = t.count() == 1;
    if (!one && ((int64_t)t.count() != n || t.dims.back() != n)) return false;
    *bias = Tensor(ElementType::kFloat, {n});
    for (int64_t i = 0; i < n; i++)
        bias->set_float((size_t)i, beta * t.float_at(one ? 0 : (size_t)i));
    return true;
}

bool gemm(Op& op) {
    Value *a = op.in(0), *b = op.in(1), *c = op.in(2);
    const float alpha = op.attr_float("alpha", 1.f), beta = op.attr_float("beta", 1.f);
    const bool ta = op.attr("transA", 0) != 0, tb = op.attr("transB", 0) != 0;
    if (a->rank() != 2 || b->rank() != 2) return op.fail("ranks %d and %d", a->rank(), b->rank());
    if (!a->floats()) return of_integers(op);
    const Dim m = a->shape[ta ? 1 : 0], n = b->shape[tb ? 0 : 1];
    if (!a->is_constant() && b->is_constant() && !ta && b->constant->count() > 0) {
        Tensor bias;
        const bool fits = !c || beta == 0.f || gemm_bias(c, n.value, beta, &bias);
        if (fits) {
            Tensor w = *b->constant;
            if (alpha != 1.f) {
                Tensor scaled(ElementType::kFloat, w.dims);
                for (size_t i = 0; i < w.count(); i++) scaled.set_float(i, alpha * w.float_at(i));
                w = scaled;
            }
            return rows_times_constant(op, a, w, tb,
                                       bias.type == ElementType::kFloat ? &bias : nullptr);
        }
    }
    std::vector<std::string> from = {op.plain(a), op.plain(b)};
    if (c && beta != 0.f) {
        // An axis of 1 value or N of them, or a matrix: as the layer takes C.
        from.push_back(op.blob(c, Form::plain(2), 2));
    }
    for (const std::string& blob : from)
        if (blob.empty()) return false;
    ModelLayer& layer = op.emit("Gemm", {from[0], from[1]});
    layer.set("alpha", alpha);
    layer.set("transA", ta ? 1 : 0);
    layer.set("transB", tb ? 1 : 0);
    std::string out = layer.outputs[0];
    if (from.size() > 2) {
        const std::string scaled = beta == 1.f ? from[2] : scalar_op(op, from[2], kMul, beta);
        ModelLayer& sum = op.emit("BinaryOp", {out, scaled});
        sum.set("op_type", kAdd);
        out = sum.outputs[0];
    }
    op.set(0, a->type, {m, n}, Form::plain(2), out);
    return true;
}

// Letters of an equation with its ellipsis written out, and the implied output.
bool expand_equation(Op& op, std::string text, std::vector<std::string>* terms, std::string* out) {
    text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
    const size_t arrow = text.find("->");
    std::string left = text.substr(0, arrow);
    for (size_t at = 0; at != std::string::npos;) {
        const size_t comma = left.find(',', at);
        terms->push_back(left.substr(at, comma == std::string::npos ? comma : comma - at));
        at = comma == std::string::npos ? comma : comma + 1;
    }
    if ((int)terms->size() != op.inputs())
        return op.fail("an equation of %zu terms", terms->size());
    size_t widest = 0;
    for (int i = 0; i < op.inputs(); i++) {
        const std::string& t = (*terms)[i];
        if (t.find("...") == std::string::npos) continue;
        const int extra = op.in(i)->rank() - ((int)t.size() - 3);
        if (extra < 0) return op.fail("an equation for other ranks");
        widest = std::max(widest, (size_t)extra);
    }
    std::string spare;
    for (char ch = 'Z'; ch >= 'A' && spare.size() < widest; ch--)
        if (text.find(ch) == std::string::npos) spare += ch;
    if (spare.size() < widest) return op.fail("an equation without spare letters");
    for (int i = 0; i < op.inputs(); i++) {
        std::string& t = (*terms)[i];
        const size_t dots = t.find("...");
        if (dots == std::string::npos) continue;
        const size_t extra = (size_t)op.in(i)->rank() - (t.size() - 3);
        t.replace(dots, 3, spare.substr(widest - extra));
    }
    if (arrow != std::string::npos) {
        *out = text.substr(arrow + 2);
        const size_t dots = out->find("...");
        if (dots != std::string::npos) out->replace(dots, 3, spare);
        return true;
    }
    *out = spare;
    std::string letters;
    for (const std::string& t : *terms) letters += t;
    std::string once;
    for (char ch : letters)
        if (std::count(letters.begin(), letters.end(), ch) == 1 &&
            spare.find(ch) == std::string::npos)
            once += ch;
    std::sort(once.begin(), once.end());
    *out += once;
    return true;
}

// Two operands as a product of matrices: axes that both and the output have are its batch, those
// that only one has its rows and columns, and what is summed over is their common axis.
struct Pair {
    std::string both, left, right, summed;
};

bool classify(const std::vector<std::string>& terms, const std::string& out, Pair* p) {
    if (terms.size() != 2) return false;
    for (int t = 0; t < 2; t++) {
        for (char ch : terms[t]) {
            if (std::count(terms[t].begin(), terms[t].end(), ch) != 1) return false;
            const bool shared = terms[1 - t].find(ch) != std::string::npos;
            const bool kept = out.find(ch) != std::string::npos;
            if (!shared && !kept) return false;
            if (shared && t == 1) continue;
            (shared ? (kept ? p->both : p->summed) : t == 0 ? p->left : p->right) += ch;
        }
    }
    return out.size() == p->both.size() + p->left.size() + p->right.size();
}

// Axes of x, which has those of `from`, in another order.
std::string in_order(Nodes& n, const std::string& x, const std::string& from,
                     const std::string& to) {
    std::vector<int64_t> perm;
    for (char ch : to) perm.push_back((int64_t)from.find(ch));
    return n.transpose(x, perm);
}

// `inputs`: by name, of the sizes that the letters have. The name of the product; "" after fail().
std::string einsum_as_product(Op& op, Nodes& n, const std::vector<std::string>& inputs,
                              const std::vector<std::string>& terms, const std::string& out,
                              const Pair& p, const std::map<char, Dim>& sizes) {
    std::string from[2];
    const int batch = (int)p.both.size(), left = (int)p.left.size(), right = (int)p.right.size(),
              summed = (int)p.summed.size();
    const std::string order[2] = {p.both + p.left + p.summed, p.both + p.summed + p.right};
    for (int t = 0; t < 2; t++) {
        const std::string x = in_order(n, inputs[(size_t)t], terms[(size_t)t], order[t]);
        if (x.empty()) return "";
        from[t] = op.blob(n.value(x), Form{false, t ? std::vector<int>{batch, summed, right}
                                                    : std::vector<int>{batch, left, summed}});
        if (from[t].empty()) return "";
    }
    const std::string made = p.both + p.left + p.right;
    Value* product = op.c.add_value(op.c.unique_value(op.node.label() + "/product"));
    product->type = op.in(0)->type;
    for (char ch : made) product->shape.push_back(sizes.at(ch));
    product->form = Form{false, {batch, left, right}};
    product->blobs[{0, product->form}] = op.emit("MatMul", {from[0], from[1]}).outputs[0];
    return in_order(n, product->name, made, out);
}

// Sums of x over the letters of its term that nobody needs, which leave the term.
std::string sum_over(Nodes& n, const std::string& x, const std::string& needed, std::string* term) {
    std::vector<int64_t> axes;
    std::string left;
    for (size_t a = 0; a < term->size(); a++) {
        if (needed.find((*term)[a]) == std::string::npos)
            axes.push_back((int64_t)a);
        else
            left += (*term)[a];
    }
    *term = left;
    if (axes.empty()) return x;
    return n.add("ReduceSum", {x, n.ints(axes)}, {{"keepdims", attribute_of((int64_t)0)}});
}

// Any number of operands, two at a time from the left.
bool einsum_by_pairs(Op& op, Nodes& n, const std::vector<std::string>& inputs,
                     std::vector<std::string> terms, const std::string& out,
                     const std::map<char, Dim>& sizes) {
    std::string x = inputs[0], term = terms[0];
    for (size_t i = 1; i < terms.size(); i++) {
        std::string later = out;
        for (size_t j = i + 1; j < terms.size(); j++) later += terms[j];
        x = sum_over(n, x, terms[i] + later, &term);
        const std::string y = sum_over(n, inputs[i], term + later, &terms[i]);
        std::string made;
        for (char ch : term + terms[i])
            if (later.find(ch) != std::string::npos && made.find(ch) == std::string::npos)
                made += ch;
        const std::vector<std::string> two = {term, terms[i]};
        Pair pair;
        if (!classify(two, made, &pair)) return op.fail("diagonals of a rank above 4");
        x = einsum_as_product(op, n, {x, y}, two, made, pair, sizes);
        term = made;
    }
    x = sum_over(n, x, out, &term);
    if (term.size() != out.size()) return op.fail("diagonals of a rank above 4");
    return n.set(0, in_order(n, x, term, out));
}

// The size of a letter that is not known, as a vector of one value.
std::string size_of_letter(Op& op, Nodes& n, const std::vector<std::string>& terms, char letter) {
    for (int i = 0; i < op.inputs(); i++) {
        const size_t axis = terms[(size_t)i].find(letter);
        if (axis == std::string::npos || op.in(i)->shape[axis].is(1)) continue;
        const int64_t at = (int64_t)axis;
        return n.slice(n.add("Shape", {n.in(i)}), 0, at, at + 1);
    }
    return n.ints({1});
}

// An operand with axes of one value spread to the sizes that others have, but for the letters that
// may stay.
std::string spread_operand(Op& op, Nodes& n, int input, const std::vector<std::string>& terms,
                           const std::map<char, Dim>& sizes, const std::string& stay) {
    const std::string& term = terms[(size_t)input];
    std::vector<std::string> wanted;
    bool fits = true;
    for (size_t a = 0; a < term.size(); a++) {
        const Dim& all = sizes.at(term[a]);
        const bool spread =
            op.in(input)->shape[a].is(1) && !all.is(1) && stay.find(term[a]) == std::string::npos;
        fits = fits && !spread;
        if (spread && !all.known())
            wanted.push_back(size_of_letter(op, n, terms, term[a]));
        else
            wanted.push_back(n.ints({spread ? all.value : 1}));
    }
    if (fits) return n.in(input);
    const std::string shape = n.add("Concat", wanted, {{"axis", attribute_of((int64_t)0)}});
    return n.add("Expand", {n.in(input), shape});
}

bool einsum(Op& op) {
    std::vector<std::string> terms, from, inputs;
    std::string out;
    if (!expand_equation(op, op.attr_string("equation", ""), &terms, &out)) return false;
    std::map<char, Dim> sizes;
    for (int i = 0; i < op.inputs(); i++) {
        Value* v = op.in(i);
        if (!v->floats()) return of_integers(op);
        if ((int)terms[i].size() != v->rank()) return op.fail("an equation for other ranks");
        for (int a = 0; a < v->rank(); a++) {
            Dim& d = sizes[terms[i][a]];
            if (d.symbol == 0 || d.is(1)) d = v->shape[a];  // one value is spread
        }
    }
    Pair pair;
    if (terms.size() == 1 && terms[0] == out) return op.alias(0, op.in(0)) != nullptr;
    const bool scalars = terms.size() == 2 && terms[0].empty() && terms[1].empty();
    if (scalars) {
        Nodes n(op);
        return n.set(0, n.add("Mul", {n.in(0), n.in(1)}));
    }
    Nodes n(op);
    const bool product = classify(terms, out, &pair);
    // MatMul broadcasts one axis of matrices itself.
    const std::string stay = product && pair.both.size() == 1 ? pair.both : "";
    for (int i = 0; i < op.inputs(); i++) {
        inputs.push_back(spread_operand(op, n, i, terms, sizes, stay));
        if (inputs.back().empty()) return false;
    }
    if (product) return n.set(0, einsum_as_product(op, n, inputs, terms, out, pair, sizes));
    const auto is_wide = [](const std::string& axes) { return axes.size() > 4; };
    if (is_wide(out) || std::any_of(terms.begin(), terms.end(), is_wide))
        return einsum_by_pairs(op, n, inputs, terms, out, sizes);
    for (const std::string& input : inputs) {
        from.push_back(op.plain(n.value(input)));
        if (from.back().empty()) return false;
    }
    std::vector<Dim> shape;
    for (char ch : out) shape.push_back(sizes[ch]);
    std::string equation;
    for (size_t i = 0; i < terms.size(); i++) equation += (i ? "," : "") + terms[i];
    equation += "->" + out;
    ModelLayer& layer = op.emit("Einsum", from);
    layer.set("equation", std::vector<int>(equation.begin(), equation.end()));
    op.set(0, op.in(0)->type, shape, Form::plain((int)shape.size()), layer.outputs[0]);
    return true;
}

bool det(Op& op) {
    Value* x = op.in(0);
    if (x->rank() < 2) return op.fail("rank %d", x->rank());
    const std::string from = op.plain(x);
    if (from.empty()) return false;
    const std::string out = op.emit("Det", {from}).outputs[0];
    const std::vector<Dim> shape(x->shape.begin(), x->shape.end() - 2);
    op.set(0, x->type, shape, Form::plain((int)shape.size()), out);
    return true;
}

}  // namespace

OpTable matrix_ops() {
    return {
        {"", "MatMul", 1, 0, matmul, "integers in float32", 2},
        {"", "Gemm", 1, 0, gemm, "integers in float32", 2},
        {"", "Einsum", 12, 0, einsum, "integers in float32; diagonals of ranks of at most 4"},
        {"", "Det", 11, 0, det, "rank of at most 4"},
    };
}

}  // namespace onnx_tool
}  // namespace quoll
