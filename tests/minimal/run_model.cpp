// run_model PARAM BIN INPUT OUTPUT: runs a binary param of one input of 224x224x3 floats and one
// output, with a library that reads no files and knows no names.
#include <stdio.h>
#include <string.h>

#include <vector>

#include "quoll/net.h"

static std::vector<float> read_file(const char* path) {
    std::vector<float> words;
    FILE* const fp = fopen(path, "rb");
    if (!fp) return words;
    float word;
    while (fread(&word, sizeof(word), 1, fp) == 1) words.push_back(word);
    fclose(fp);
    return words;
}

int main(int argc, char** argv) {
    if (argc != 5) return 2;
    const std::vector<float> param = read_file(argv[1]), bin = read_file(argv[2]);
    const std::vector<float> values = read_file(argv[3]);
    quoll::Net net;
    if (!net.load_param((const unsigned char*)param.data(), param.size() * sizeof(float)) ||
        !net.load_model((const unsigned char*)bin.data(), bin.size() * sizeof(float)))
        return 1;
    quoll::Mat in(224, 224, 3), out;
    if (values.size() != 3 * 224 * 224) return 1;
    for (int c = 0; c < 3; c++)
        memcpy(in.channel(c).data, &values[(size_t)c * 224 * 224], 224 * 224 * sizeof(float));
    quoll::Extractor ex = net.create_extractor();
    if (ex.input(net.input_indexes()[0], in) || ex.extract(net.output_indexes()[0], out)) return 1;
    FILE* const fp = fopen(argv[4], "wb");
    const bool written = fp && fwrite(out.data, sizeof(float), (size_t)out.w, fp) == (size_t)out.w;
    return fp && fclose(fp) == 0 && written ? 0 : 1;
}
