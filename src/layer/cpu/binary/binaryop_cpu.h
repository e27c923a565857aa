#ifndef QUOLL_LAYER_CPU_BINARY_BINARYOP_CPU_H
#define QUOLL_LAYER_CPU_BINARY_BINARYOP_CPU_H

#include "layer/common/blocks.h"
#include "layer/cpu/binary/binary.h"
#include "layer/elementwise/binaryop.h"

namespace quoll {

class BinaryOpCpu : public BinaryOp {
public:
    BinaryOpCpu();
    int create_pipeline(const Option& opt) override;
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override;
    int forward_inplace(Mat& blob, const Option& opt) const override;
    int forward_inplace(std::vector<Mat>& blobs, const Option& opt) const override;
    void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in, const Option& opt,
                      std::vector<BlobLayout>* out) const override;
    unsigned traits() const override {
        return BinaryOp::traits() | kCreatesOutput | (with_scalar ? 0 : kOverwritesInput);
    }

private:
    // One side of the operation, seen along the output's four axes c, d, h, w.
    struct Operand {
        Mat blob;        // f32; of the output's storage type if it is like the output
        size_t step[4];  // values; 0 where one value serves all indexes
        int lanes;       // values at a place: the output's elempack, or 1 for all its lanes
    };
    // Computes the result, over an input of the same shape if `inplace`.
    int combine(const std::vector<Mat>& bottoms, bool inplace, Mat* top, const Option& opt) const;
    int make_operand(const Mat& m, int first, const Shape& out, int pack, const Option& opt,
                     Operand* operand) const;
    int expand_lanes(Operand* operand, int pack, const Option& opt) const;
    static bool is_row_of(const Operand& row, const Operand& other, const Axes4& to, int covered);
    void run(const Operand& a, const Operand& b, Mat& out, const Option& opt) const;
    void run_flat(const Operand& a, const Operand& b, size_t count, Mat& out,
                  const Option& opt) const;
    bool run_rows(const Operand& a, const Operand& b, bool a_row, size_t count, size_t rows,
                  Mat& out, const Option& opt) const;
    void run_gathered(const Operand& a, const Operand& b, int covered, size_t count, Mat& out,
                      const Option& opt) const;
    bool can_run(const Mat& m) const;
    // One of the operations with scalars.
    struct Scalar {
        const BinaryVariants* variants;
        float value;
        bool swapped;
    };
    static Scalar scalar_of(int op_type, float b);
    void run_scalars(float* in, float* out, size_t n) const;
    void run_scalar(const Mat& in, Mat& out, const Option& opt) const;
    void run_one_scalar(const Mat& in, Mat& out, const Option& opt) const;

    const BinaryVariants* variants_ = nullptr;  // null: only the reference has it
    bool swapped_ = false;                      // f(b, a)
#if defined(__x86_64__) || defined(__i386__)    // as kTakesRelu
    BinaryVariants sum_relu_ = {};              // of vectors alone
#endif
    Scalar scalars_[kLongestChain];  // with_scalar: the operation, and those in `then`
    int num_scalars_ = 0;
};

}  // namespace quoll

#endif
