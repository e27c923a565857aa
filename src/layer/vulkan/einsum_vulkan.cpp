// Einsum of one operand or two.
#include "layer/nn/einsum.h"

#include "layer/vulkan/axes.h"
#include "layer/vulkan/product.h"

namespace quoll {

namespace {

// Scalars from one index of a letter to the next: the diagonal where it comes twice, 0 where it
// does not come.
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

class EinsumVulkan : public VulkanLayer {
public:
    explicit EinsumVulkan(const Einsum& layer)
        : a_(layer.operand(0)),
          b_(layer.operand_count() > 1 ? layer.operand(1) : ""),
          y_(layer.output()) {
        for (char letter : a_ + b_)
            if (!has(y_, letter) && !has(summed_, letter)) summed_ += letter;
    }
    bool has_form() const { return summed_.size() <= 4; }
    bool supports(const Shapes& in, const Shapes& out) const override {
        if (out[0].n != 1) return false;
        for (const Shape& shape : in)
            if (shape.n != 1) return false;
        return true;
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        if (!record_product(r, in, out)) record_sums(r, in, out);
        return kOk;
    }

private:
    struct Letter {
        uint32_t size, a, b, y;
    };
    Letter letter_of(char letter, const Values& in, const Value& out) const {
        Letter l = {1, step_of(in[0], a_, letter), 0, step_of(out, y_, letter)};
        if (!b_.empty()) l.b = step_of(in[1], b_, letter);
        const bool left = has(a_, letter);
        const std::string& letters = left ? a_ : b_;
        l.size = (uint32_t)in[left ? 0 : 1].shape.size((int)letters.find(letter));
        return l;
    }

    // True if it is a product of matrices: a letter each for rows, columns and depth, up to two for
    // several matrices.
    bool record_product(Recorder& r, const Values& in, const Values& out) const {
        if (b_.empty() || has_twice(a_) || has_twice(b_)) return false;
        std::vector<Letter> rows, columns, depth, matrices;
        for (char letter : y_ + summed_) {
            const bool left = has(a_, letter), right = has(b_, letter), made = has(y_, letter);
            if (!made && !(left && right)) return false;
            std::vector<Letter>& kind = !made           ? depth
                                        : left && right ? matrices
                                        : left          ? rows
                                                        : columns;
            kind.push_back(letter_of(letter, in, out[0]));
        }
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
        p.a = r.read(in[0]), p.b = r.read(in[1]), p.y = r.write(out[0]);
        p.a_steps = {in[0].first, m.a, k.a, c.a, d.a};
        p.b_steps = {in[1].first, k.b, n.b, c.b, d.b};
        p.y_steps = {out[0].first, m.y, n.y, c.y, d.y};
        p.record(r);
        return true;
    }

    void record_sums(Recorder& r, const Values& in, const Values& out) const {
        const Value& right = in.back();
        std::vector<Letter> over(4, {1, 0, 0, 0}), along = over;
        // The innermost axis first.
        for (size_t i = 0; i < y_.size(); i++)
            over[i] = letter_of(y_[y_.size() - 1 - i], in, out[0]);
        for (size_t i = 0; i < summed_.size(); i++) along[i] = letter_of(summed_[i], in, out[0]);
        const uint32_t total = (uint32_t)out[0].shape.total();
        Words push = {total, in[0].first, right.first, out[0].first};
        const auto push_all = [&](const std::vector<Letter>& letters, uint32_t Letter::*what) {
            for (const Letter& letter : letters) push.push_back(letter.*what);
        };
        for (uint32_t Letter::*what : {&Letter::size, &Letter::a, &Letter::b, &Letter::y})
            push_all(over, what);
        for (uint32_t Letter::*what : {&Letter::size, &Letter::a, &Letter::b})
            push_all(along, what);
        r.dispatch_linear(Shader::einsum, {!b_.empty()},
                          {r.read(in[0]), r.read(right), r.write(out[0])}, push, total);
    }

    const std::string a_, b_, y_;
    std::string summed_;
};

}  // namespace

int make_einsum_vulkan(const Layer& layer, VulkanContext&, VulkanLayerPtr* made) {
    const Einsum* einsum = as<Einsum>(&layer);
    if (!einsum || einsum->operand_count() > 2) return kOk;
    std::unique_ptr<EinsumVulkan> form(new EinsumVulkan(*einsum));
    if (form->has_form()) *made = std::move(form);
    return kOk;
}

}  // namespace quoll
