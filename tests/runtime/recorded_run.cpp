// recorded_run SHARE SEED MODEL.param MODEL.bin [-i NAME=FILE.npy]... [-o NAME=FILE.npy]...: as
// enginerun, with a share of the layers on the recording back end.
#include <stdio.h>
#include <stdlib.h>

#include <string>

#include "common/npy.h"
#include "layer/control/input.h"
#include "layer/control/output.h"
#include "quoll/net.h"
#include "recording_backend.h"

using namespace quoll;

namespace {

const TensorSpec* array_of(const Net& net, int blob) {
    const Layer* layer = net.layers()[net.blobs()[blob].producer];
    if (const Input* input = as<Input>(layer)) return &input->array;
    const Output* output = as<Output>(layer);
    return output ? &output->array : nullptr;
}

int fail(const std::string& what) {
    fprintf(stderr, "recorded_run: %s\n", what.c_str());
    return 1;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 5 || argc % 2 == 0) return fail("wrong arguments");
    const auto backend = std::make_shared<RecordingBackend>(atof(argv[1]), atoi(argv[2]));
    Net net;
    net.add_backend(backend);
    if (net.load_param(argv[3]) || net.load_model(argv[4])) return fail("cannot load");
    Extractor ex = net.create_extractor();
    for (int i = 5; i < argc; i += 2) {
        const std::string option = argv[i], text = argv[i + 1];
        const size_t at = text.rfind('=');
        const int blob = net.find_blob_index_by_name(text.substr(0, at).c_str());
        if (at == std::string::npos || blob < 0) return fail(text);
        const std::string file = text.substr(at + 1);
        const TensorSpec* array = array_of(net, blob);
        const bool told = array && array->said();
        Mat m;
        const int status =
            option == "-i" ? (told ? read_npy(file, *array, &m) : read_npy(file, false, &m)) ||
                                 ex.input(blob, m)
                           : ex.extract(blob, m) ||
                                 (told ? write_npy(file, *array, m) : write_npy(file, m));
        if (status) return fail(text);
    }
    printf("%d regions, %d steps\n", backend->compiled.load(), backend->steps.load());
    return backend->steps > 0 ? 0 : fail("no layer ran on the back end");
}
