// Random graphs of the format: layers of all kinds after each other, beside each other and joined,
// with the sizes that the operators' own shape rules give.
#ifndef QUOLL_TESTS_RANDOM_GRAPH_H
#define QUOLL_TESTS_RANDOM_GRAPH_H

#include <random>
#include <string>
#include <vector>

#include "quoll/mat.h"

namespace quoll {

class RandomGraph {
public:
    // The same graph for the same seed on every machine.
    RandomGraph(unsigned seed, int layers);
    std::string param() const;
    const Shape& input() const { return blobs_[0].shape; }
    // Blobs that no layer reads; all of them.
    std::vector<std::string> outputs() const;
    std::vector<std::string> blobs() const;

private:
    struct Blob {
        std::string name;
        Shape shape;
        int readers;
    };
    int number(int low, int high) { return low + (int)(engine_() % ((unsigned)(high - low) + 1u)); }
    bool chance(int one_of) { return number(1, one_of) == 1; }
    float real(float low, float high) {
        return low + (high - low) * (float)(engine_() / 4294967296.0);
    }
    int pick_blob();
    int same_shape(int blob);
    int channels();
    std::string activation();
    std::string window(int* kernel);
    bool add(const char* type, std::vector<int> inputs, const std::string& params, int outputs = 1);
    bool add_any();
    bool add_convolution(int from);
    bool add_deconvolution(int from);
    bool add_pooling(int from);
    bool add_per_channel(int from);
    bool add_norm(int from);
    bool add_activation(int from);
    bool add_arithmetic(int from);
    bool add_join(int from);
    bool add_slice(int from);
    bool add_moves(int from);
    bool add_views(int from);
    bool add_reduction(int from);
    bool add_product(int from);
    bool add_attention(int from);
    bool add_recurrent(int from);
    bool add_squeeze_excite(int from);

    std::mt19937 engine_;
    std::vector<Blob> blobs_;
    std::vector<std::string> lines_;
    size_t names_ = 1;
};

}  // namespace quoll

#endif
