// Each case as a net of its own: the Net reads it from text and weights, and the Extractor gives
// what the reference forward gives. With QUOLL_FUZZ_SEEDS=FOLDER the nets are written there, seeds
// for fuzz_param (FOLDER/param) and fuzz_model (FOLDER/model).
#include <stdlib.h>

#include <fstream>

#include "layer_test_private.h"
#include "quoll/datareader.h"
#include "quoll/net.h"

namespace quoll {

namespace {

std::string input_line(const std::string& name, const Shape& s) {
    std::string line = "Input " + name + " 0 1 " + name;
    const std::pair<int, int> sizes[] = {{0, s.w}, {1, s.h}, {11, s.d}, {2, s.c}};
    for (const auto& size : sizes) {
        const bool there = size.first == 0    ? s.dims >= 1
                           : size.first == 1  ? s.dims >= 2
                           : size.first == 11 ? s.dims == 4
                                              : s.dims >= 3;
        if (there) line += " " + std::to_string(size.first) + "=" + std::to_string(size.second);
    }
    return line + "\n";
}

void write_seed(const std::string& name, const std::string& text,
                const std::vector<unsigned>& weights) {
    const char* folder = getenv("QUOLL_FUZZ_SEEDS");
    if (!folder) return;
    const std::string to = folder;
    std::ofstream param(to + "/param/" + name), model(to + "/model/" + name, std::ios::binary);
    param << text;
    model << text << '\0';
    model.write((const char*)weights.data(), (std::streamsize)(weights.size() * 4));
    ASSERT_TRUE(param.flush() && model.flush()) << to << " needs the folders param and model";
}

}  // namespace

std::string net_text(const char* type, const LayerCase& c) {
    const size_t inputs = c.inputs.size();
    std::string text = "7767517\n" + std::to_string(inputs + 1) + " " +
                       std::to_string(inputs + c.output_count) + "\n";
    std::string layer = std::string(type) + " layer " + std::to_string(inputs) + " " +
                        std::to_string(c.output_count);
    for (size_t i = 0; i < inputs; i++) {
        const std::string name = "in" + std::to_string(i);
        text += input_line(name, c.inputs[i]);
        layer += " " + name;
    }
    for (int i = 0; i < c.output_count; i++) layer += " out" + std::to_string(i);
    return text + layer + " " + c.params + "\n";
}

void check_in_a_net(const char* type, const std::vector<LayerCase>& cases) {
    for (size_t i = 0; i < cases.size(); i++) {
        PreparedCase p;
        if (!prepare(type, cases[i], i, &p)) continue;
        SCOPED_TRACE(p.text);
        const std::string text = net_text(type, cases[i]);
        const std::vector<unsigned> words = weight_words(p);
        write_seed(std::string(type) + "_" + std::to_string(i), text, words);
        Net net;
        net.opt.num_threads = 2;
        ASSERT_EQ(kOk, net.load_param_mem(text.c_str())) << text;
        const std::vector<unsigned> bytes = words.empty() ? std::vector<unsigned>(1) : words;
        const unsigned char* data = (const unsigned char*)bytes.data();
        ASSERT_EQ(kOk, net.load_model(DataReaderFromMemory(data, words.size() * 4)));

        const LayerPtr reference = make_case_layer(type, cases[i], p, true);
        ASSERT_TRUE(reference);
        const std::vector<Mat> want = run_layer(*reference, p.inputs);
        Extractor ex = net.create_extractor();
        for (size_t k = 0; k < p.inputs.size(); k++) {
            if (p.inputs[k].dims == 0) continue;  // an input that nobody gives
            ASSERT_EQ(kOk, ex.input(("in" + std::to_string(k)).c_str(), p.inputs[k]));
        }
        for (size_t k = 0; k < want.size(); k++) {
            Mat got;
            ASSERT_EQ(kOk, ex.extract(("out" + std::to_string(k)).c_str(), got));
            EXPECT_TRUE(nearly_equal(got, want[k], p.tolerance)) << "output " << k;
        }
    }
}

}  // namespace quoll
