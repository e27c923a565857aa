// A fully connected layer of 3 inputs and 2 outputs, all in memory.
#include <quoll/net.h>
#include <stdio.h>

static const char kParam[] =
    "7767517\n2 2\nInput in 0 1 in\nInnerProduct fc 1 1 in out 0=2 1=0 2=6\n";
// The tag of fp32 weights and the weights.
static const float kWeights[] = {0.f, 1.f, 2.f, 3.f, 4.f, 5.f, 6.f};

int main() {
    quoll::Net net;
    if (net.load_param_mem(kParam)) return 1;
    if (net.load_model((const unsigned char*)kWeights, sizeof(kWeights)) != (int)sizeof(kWeights))
        return 1;
    quoll::Mat in(3), out;
    in[0] = 1.f, in[1] = 10.f, in[2] = 100.f;
    quoll::Extractor ex = net.create_extractor();
    if (ex.input("in", in) || ex.extract("out", out)) return 1;
    printf("%g %g\n", out[0], out[1]);
    return 0;
}
