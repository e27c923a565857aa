// Einsum of any number of operands.
#include "layer/nn/einsum.h"

#include "layer/vulkan/axes.h"
#include "layer/vulkan/product.h"

namespace quoll {

namespace {

// Scalars from one index of a letter to the next: along the diagonal if the letter occurs twice, 0
// if it does not occur.
uint32_t step_of(const Value& value, const std::string& letters, char letter) {
    uint32_t step = 0;
    for (size_t i = 0; i < letters.size(); i++)
        if (letters[i] == letter) step += memory_axes(value).step(value.shape.dims, (int)i);
    return step;
}

bool has(const std::string& letters, char letter) {
    return letters.find(letter) != std::string::npos;
}

bool has_twice(const std::string& letters) {
    for (size_t i = 0; i < letters.size(); i++)
        if (letters.find(letters[i], i + 1) != std::string::npos) return true;
    return false;
}

// A contraction of one operand (b empty) or two.
class Contraction {
public:
    Contraction(const std::string& a, const std::string& b, const std::string& y)
        : a_(a), b_(b), y_(y) {
        for (char letter : a_ + b_)
            if (!has(y_, letter) && !has(summed_, letter)) summed_ += letter;
    }
    bool has_form() const { return summed_.size() <= 4 && y_.size() <= 4; }
    // Whether items of a batch are one more axis.
    bool takes_batches() const { return y_.size() < 4; }
    // in: as many as there are operands.
    void record(Recorder& r, const Values& in, const Value& out) const {
        if (!record_product(r, in, out)) record_sums(r, in, out);
    }
    const std::string& output() const { return y_; }
    uint32_t size_of(char letter, const Values& in) const {
        const bool left = has(a_, letter);
        const std::string& letters = left ? a_ : b_;
        return (uint32_t)in[left ? 0 : 1].shape.size((int)letters.find(letter));
    }

private:
    struct Letter {
        uint32_t size, a, b, y;
    };
    Letter letter_of(char letter, const Values& in, const Value& out) const {
        Letter l = {1, step_of(in[0], a_, letter), 0, step_of(out, y_, letter)};
        if (!b_.empty()) l.b = step_of(in[1], b_, letter);
        l.size = size_of(letter, in);
        return l;
    }
    Letter items_of(const Values& in, const Value& out) const {
        return {(uint32_t)out.shape.n, in[0].item_step(), b_.empty() ? 0 : in[1].item_step(),
                out.item_step()};
    }

    // If it is a product of matrices, records it and returns true: one letter each for rows,
    // columns and depth, and up to two that number the matrices.
    bool record_product(Recorder& r, const Values& in, const Value& out) const {
        if (b_.empty() || has_twice(a_) || has_twice(b_)) return false;
        std::vector<Letter> rows, columns, depth, matrices;
        for (char letter : y_ + summed_) {
            const bool left = has(a_, letter), right = has(b_, letter), made = has(y_, letter);
            if (!made && !(left && right)) return false;
            std::vector<Letter>& kind = !made           ? depth
                                        : left && right ? matrices
                                        : left          ? rows
                                                        : columns;
            kind.push_back(letter_of(letter, in, out));
        }
        if (out.shape.n > 1) matrices.push_back(items_of(in, out));
        if (depth.size() != 1 || rows.size() > 1 || columns.size() > 1 || matrices.size() > 2)
            return false;
        const Letter none = {1, 0, 0, 0};
        rows.push_back(none), columns.push_back(none);
        matrices.insert(matrices.end(), 2, none);
        const Letter &m = rows[0], &n = columns[0], &k = depth[0], &c = matrices[0],
                     &d = matrices[1];
        if (!MatrixProduct::fits(m.size, (int64_t)c.size * d.size)) return false;
        MatrixProduct p;
        p.rows = (int)m.size, p.columns = (int)n.size, p.depth = (int)k.size;
        p.c = (int)c.size, p.d = (int)d.size;
        p.a = r.read(in[0]), p.b = r.read(in[1]), p.y = r.write(out);
        p.a_steps = {in[0].first, m.a, k.a, c.a, d.a};
        p.b_steps = {in[1].first, k.b, n.b, c.b, d.b};
        p.y_steps = {out.first, m.y, n.y, c.y, d.y};
        p.record(r);
        return true;
    }

    void record_sums(Recorder& r, const Values& in, const Value& out) const {
        const Value& right = b_.empty() ? in[0] : in[1];
        std::vector<Letter> over(4, {1, 0, 0, 0}), along = over;
        // The innermost axis first.
        for (size_t i = 0; i < y_.size(); i++) over[i] = letter_of(y_[y_.size() - 1 - i], in, out);
        if (out.shape.n > 1) over[y_.size()] = items_of(in, out);
        for (size_t i = 0; i < summed_.size(); i++) along[i] = letter_of(summed_[i], in, out);
        const uint32_t total = (uint32_t)out.shape.total();
        Words push = {total, in[0].first, right.first, out.first};
        const auto push_all = [&](const std::vector<Letter>& letters, uint32_t Letter::*what) {
            for (const Letter& letter : letters) push.push_back(letter.*what);
        };
        for (uint32_t Letter::*what : {&Letter::size, &Letter::a, &Letter::b, &Letter::y})
            push_all(over, what);
        for (uint32_t Letter::*what : {&Letter::size, &Letter::a, &Letter::b})
            push_all(along, what);
        r.dispatch_linear(Shader::einsum, {!b_.empty()},
                          {r.read(in[0]), r.read(right), r.write(out)}, push, total);
    }

    const std::string a_, b_, y_;
    std::string summed_;
};

// Contracts two operands at a time, first those whose product has the fewest axes.
class EinsumVulkan : public VulkanLayer {
public:
    explicit EinsumVulkan(const Einsum& layer) {
        std::vector<std::string> operands;
        for (size_t i = 0; i < layer.operand_count(); i++) operands.push_back(layer.operand(i));
        while (operands.size() > 2) join_two(layer.output(), &operands);
        operands.resize(2);
        steps_.push_back({0, 1, Contraction(operands[0], operands[1], layer.output())});
    }
    bool has_form() const {
        for (const Step& step : steps_)
            if (!step.contraction.has_form()) return false;
        return true;
    }
    bool supports(const Shapes&, const Shapes& out) const override { return out[0].dims >= 1; }

    int record(Recorder& r, const Values& in, const Values& out) const override {
        const int items = out[0].shape.n;
        if (items == 1 || (steps_.size() == 1 && steps_[0].contraction.takes_batches()))
            return record_steps(r, in, out[0]);
        for (int item = 0; item < items; item++) {
            Values parts;
            for (const Value& value : in) parts.push_back(item_of(value, item));
            QUOLL_RETURN_IF_ERROR(record_steps(r, parts, item_of(out[0], item)));
        }
        return kOk;
    }

private:
    // The result that replaces operands a and b among those that are left.
    struct Step {
        size_t a, b;
        Contraction contraction;
    };

    // The letters that a product of two operands has to keep because others need them.
    static std::string kept(const std::string& y, const std::vector<std::string>& operands,
                            size_t a, size_t b) {
        std::string others = y, letters;
        for (size_t i = 0; i < operands.size(); i++)
            if (i != a && i != b) others += operands[i];
        for (char letter : operands[a] + operands[b])
            if (has(others, letter) && !has(letters, letter)) letters += letter;
        return letters;
    }

    void join_two(const std::string& y, std::vector<std::string>* operands) {
        size_t best_a = 0, best_b = 1;
        std::string best = kept(y, *operands, 0, 1);
        for (size_t b = 2; b < operands->size(); b++) {
            for (size_t a = 0; a < b; a++) {
                const std::string letters = kept(y, *operands, a, b);
                if (letters.size() < best.size()) best = letters, best_a = a, best_b = b;
            }
        }
        steps_.push_back(
            {best_a, best_b, Contraction((*operands)[best_a], (*operands)[best_b], best)});
        (*operands)[best_a] = best;
        operands->erase(operands->begin() + (std::ptrdiff_t)best_b);
    }

    static Value item_of(Value value, int item) {
        value.first += (uint32_t)item * value.item_step();
        value.shape.n = 1;
        return value;
    }

    static Shape shape_of(const Contraction& contraction, const Values& in) {
        int sizes[4] = {1, 1, 1, 1};
        const std::string& y = contraction.output();
        for (size_t i = 0; i < y.size(); i++)
            sizes[y.size() - 1 - i] = (int)contraction.size_of(y[i], in);
        if (y.size() <= 1) return Shape(sizes[0]);
        if (y.size() == 2) return Shape(sizes[0], sizes[1]);
        if (y.size() == 3) return Shape(sizes[0], sizes[1], sizes[2]);
        return Shape(sizes[0], sizes[1], sizes[2], sizes[3]);
    }

    int record_steps(Recorder& r, Values in, const Value& out) const {
        for (const Step& step : steps_) {
            Values two = {in[step.a]};
            if (in.size() > 1) two.push_back(in[step.b]);
            const bool last = &step == &steps_.back();
            const Value made =
                last ? out : r.make(shape_of(step.contraction, two), Layout::kPlanar);
            step.contraction.record(r, two, made);
            if (last) break;
            in[step.a] = made;
            in.erase(in.begin() + (std::ptrdiff_t)step.b);
        }
        return kOk;
    }

    std::vector<Step> steps_;
};

}  // namespace

int make_einsum_vulkan(const Layer& layer, VulkanContext& context, VulkanLayerPtr* made) {
    const Einsum* einsum = as<Einsum>(&layer);
    if (!einsum) return kOk;
    // Values between two products would be rounded.
    if (context.storage != Storage::f32 && einsum->operand_count() > 2) return kOk;
    std::unique_ptr<EinsumVulkan> form(new EinsumVulkan(*einsum));
    if (form->has_form()) *made = std::move(form);
    return kOk;
}

}  // namespace quoll
