#include "layer_test.h"

namespace quoll {

static std::string equation(const std::string& text) {
    std::string params = "-23300=" + std::to_string(text.size());
    for (char ch : text) params += "," + std::to_string((int)ch);
    return params;
}

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(9, 7), Shape(5, 9)}, equation("ik,kj->ij")).terms(9),
    LayerCase({Shape(9, 7)}, equation("ij->ji")),
    LayerCase({Shape(9, 7)}, equation("ij->")).terms(63),
    LayerCase({Shape(4, 5, 3), Shape(5, 2, 3)}, equation("ilk,ijl->ijk")).terms(5),
    LayerCase({Shape(7, 5, 3, 2), Shape(5, 6, 3, 4)}, equation("imnj,kmln->ijkl")).terms(15),
    LayerCase({Shape(4), Shape(3), Shape(4, 3)}, equation("a,B,Ba->Ba")),
    LayerCase({Shape(5, 5, 8)}, equation("ijj->ij")),
    LayerCase({Shape(7, 5), Shape(3, 7), Shape(6, 3)}, equation("ij,jk,kl->il")).terms(21),
    LayerCase({Shape(4, 5, 3), Shape(3, 4), Shape(3)}, equation("abc,cd,d->ab")).terms(12),
    LayerCase({Shape(5, 2), Shape(4, 2), Shape(3, 2)}, equation("bi,bj,bk->bijk")),
    LayerCase({Shape(2), Shape(3), Shape(4), Shape(5)}, equation("i,j,k,l->ijkl")),
    LayerCase({Shape(6, 4), Shape(6, 4), Shape(4)}, equation("ij,ij,i->")).terms(24),
    LayerCase({Shape(3, 5), Shape(4, 6), Shape(4, 3)}, equation("ia,jb,ab->ij")).terms(12),
};
QUOLL_LAYER_CASES(Einsum, kCases)

TEST(Einsum, by_hand) {
    const Mat a = mat_of(Shape(2, 2), {1, 2, 3, 4});
    expect_values("Einsum", equation("ii->"), {}, {a}, mat_of(Shape(1), {5}));
    expect_values("Einsum", equation("ij,j->i"), {}, {a, mat_of(Shape(2), {10, 1})},
                  mat_of(Shape(2), {12, 34}));
    expect_values("Einsum", equation("ij,k->kji"), {}, {a, mat_of(Shape(2), {1, -1})},
                  mat_of(Shape(2, 2, 2), {1, 3, 2, 4, -1, -3, -2, -4}));
}

// As numpy: what comes once, in alphabetical order.
TEST(Einsum, without_an_output) {
    const Mat a = mat_of(Shape(2, 2), {1, 2, 3, 4});
    expect_values("Einsum", equation("ii"), {}, {a}, mat_of(Shape(1), {5}));
    expect_values("Einsum", equation("ij"), {}, {a}, a);
    expect_values("Einsum", equation("ji"), {}, {a}, mat_of(Shape(2, 2), {1, 3, 2, 4}));
    expect_values("Einsum", equation("ij,j"), {}, {a, mat_of(Shape(2), {10, 1})},
                  mat_of(Shape(2), {12, 34}));
}

TEST(Einsum, refuses_what_it_cannot_do) {
    for (const char* text :
         {"ijj,k-", "ij-ij", "i.j->i", "ijklm->i", "ij->ii", "ij->k", "ij,->i", "->"})
        EXPECT_EQ(nullptr, make_layer("Einsum", equation(text))) << text;
    const LayerPtr layer = make_layer("Einsum", equation("ij,jk->ik"), {}, 2);
    EXPECT_TRUE(run_layer(*layer, {Mat(2, 3), Mat(2, 3)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(2, 3), Mat(2)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(2, 3)}).empty());
}

}  // namespace quoll
