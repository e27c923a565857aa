// The options of programs that run a model: threads, precision, instruction set.
#ifndef QUOLL_TOOLS_RUN_OPTIONS_H
#define QUOLL_TOOLS_RUN_OPTIONS_H

#include <string>

#include "common/cli.h"
#include "plan/finite_check.h"
#include "quoll/net.h"

namespace quoll {

// More threads than any machine that this runs on has.
const int kMostThreads = 1024;
const int kMostGpus = 64;

struct RunOptions {
    std::string precision = "fp32", isa;
    int threads = 0;  // 0: the library's choice
    int fp32_split = 6;
    bool fp16_arithmetic = false;
    int gpu = -1;  // -1: the CPU
    bool reference = false, no_packing = false, no_fusion = false, check_finite = false;

    // Adds --threads, --precision, --fp32-split, --fp16-arithmetic, --gpu, --isa, --reference,
    // --no-packing, --no-fusion and --check-finite.
    void add_to(CommandLine* line);
    void add_gpu_to(CommandLine* line);  // --gpu alone, for apply_gpu
    // To be called before anything of the library looks at the processor. 0, or -1 with a message
    // in *why.
    int apply(Option* opt, std::string* why) const;
    int apply(Net* net, std::string* why) const;
    int apply_gpu(Net* net, std::string* why) const;
    // Whether a loaded net can run as asked; -1 with a message in *why.
    int check(const Net& net, std::string* why) const;
    // Whether a first run shall be watched for values that fp16 cannot hold; and a line on stderr
    // where it met some.
    bool watches() const { return precision == "fp16" && !check_finite; }
    void warn(const FiniteCheck& watch) const;
};

// "(3,224,224)" in NumPy's order of axes, "" for a size that is not known.
std::string axes_text(const Shape& shape);
// The size that the Input layer of this blob, or its hint, says; dims 0 when it says none.
Shape input_shape(const Net& net, int blob);

}  // namespace quoll

#endif
