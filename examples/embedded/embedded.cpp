// A program with its model inside: no file is opened, and no name of a layer or blob is in it.
// The headers come from ncnn2mem, which the build runs (see ../CMakeLists.txt):
//   ncnn2mem digits.param digits.bin digits.id.h digits.mem.h
#include <quoll/net.h>

#include "../digit_picture.h"
#include "../usage.h"
#include "digits.id.h"
#include "digits.mem.h"

int main(int argc, char** argv) {
    int code;
    if (usage(argc, argv, argc == 1, "usage: embedded\nReads a digit with the model inside.\n",
              &code))
        return code;
    quoll::Net net;
    // The sizes guard against a header that was cut; the weights are used where they lie.
    if (net.load_param(digits_param_bin, sizeof(digits_param_bin)) == 0) return 1;
    if (net.load_model(digits_bin, sizeof(digits_bin)) == 0) return 1;

    quoll::Extractor ex = net.create_extractor();
    quoll::Mat out;
    if (ex.input(digits_param_id::BLOB_data, digit_picture())) return 1;
    if (ex.extract(digits_param_id::BLOB_prob, out)) return 1;
    return show_digit(out) == 2 ? 0 : 1;
}
