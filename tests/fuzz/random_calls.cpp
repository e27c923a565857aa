// Calls of a Net and its Extractors in any order: before loading and after it, twice, with names
// and blobs that are not there, after failures. None may end the program, and none may change what
// the Net answers once it is loaded as it should be.
//   random_calls FIRST COUNT
// Case n is the same one in every run. A crash prints its calls.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "harness.h"

namespace {

using namespace quoll;

const unsigned kMostSeconds = 20;
const char* const kNets[] = {
#include "nets.inc"
};
const int kNetCount = (int)(sizeof(kNets) / sizeof(kNets[0]));
// Besides: no param, one that ends early, a layer that is not there, a blob that nothing makes.
const char* const kBad[] = {
    "",
    "7767517\n2 2\nInput i 0 1 x 0=6\n",
    "7767517\n1 1\nNothing l 0 1 x\n",
    "7767517\n1 2\nReLU l 1 1 x y\n",
};

class Calls {
public:
    explicit Calls(unsigned seed) : engine_(seed) {}

    void make(int count) {
        while (count-- > 0) call(number(12));
    }
    // True if the Net now answers as one that has seen nothing. *answered: there was an answer.
    bool answers_as_new(bool* answered) {
        const char* const param = kNets[number(kNetCount)];
        extractors_.clear();
        Net fresh;
        net_.clear();
        net_.opt = fresh.opt;
        for (Net* net : {&net_, &fresh})
            if (net->load_param_mem(param) != 0 || net->load_model(fuzz::ShortWeights()) != 0)
                net->clear();
        fuzz::LimitedAllocator allocator;
        std::vector<fuzz::Answer> have, want;
        const bool ran = fuzz::run(net_, &allocator, 1, 1, 0, &have);
        if (ran != fuzz::run(fresh, &allocator, 1, 1, 0, &want)) return false;
        *answered = !have.empty() && have[0].status == 0;
        for (size_t i = 0; i < have.size(); i++)
            if (have[i].status != want[i].status ||
                (have[i].status == 0 && !fuzz::same_bits(have[i].blob, want[i].blob)))
                return false;
        return true;
    }

private:
    int number(int below) { return (int)(engine_() % (unsigned)below); }
    const char* name() {
        static const char* const kNames[] = {"x", "y", "", "nothing", "i", "l"};
        return kNames[number(6)];
    }
    Mat blob() {
        Mat m;
        const int w = 1 + number(8);
        switch (number(6)) {
            case 0:
                return m;
            case 1:
                m = Mat(16);
                break;
            case 2:
                m = Mat(6, 8);
                break;
            case 3:
                m = Mat(Shape(w, 3, 2, DType::s32));
                break;
            default:
                m = Mat(6, 5, 8);
        }
        for (int q = 0; q < m.c; q++) fuzz::fill_item(m.channel(q));
        return m;
    }
    Extractor* extractor() {
        if (extractors_.empty()) call(3);
        return extractors_[(size_t)number((int)extractors_.size())].get();
    }
    void call(int what) {
        fuzz::current_case += " " + std::to_string(what);
        Mat out;
        switch (what) {
            case 0:
                extractors_.clear();  // they do not outlive what they were made of
                net_.load_param_mem(number(3) ? kNets[number(kNetCount)] : kBad[number(4)]);
                break;
            case 1:
                extractors_.clear();
                net_.load_model(fuzz::ShortWeights());
                break;
            case 2:
                extractors_.clear();
                net_.clear();
                break;
            case 3:
                if (extractors_.size() > 3) extractors_.clear();
                extractors_.emplace_back(new Extractor(net_.create_extractor()));
                break;
            case 4:
                extractor()->input(name(), blob());
                break;
            case 5:
                extractor()->input(number(6) - 1, blob());
                break;
            case 6:
                extractor()->extract(name(), out);
                break;
            case 7:
                extractor()->extract(number(6) - 1, out);
                break;
            case 8:
                extractor()->clear();
                break;
            case 9:
                extractor()->set_num_threads(number(5) - 1);
                break;
            case 10:
                extractors_.clear();
                net_.opt.use_fp16_storage = number(2) != 0;
                net_.opt.use_graph_fusion = number(2) != 0;
                net_.opt.lightmode = number(2) != 0;
                net_.opt.num_threads = number(4) - 1;
                break;
            default:
                net_.release_buffers();
        }
    }

    std::mt19937 engine_;
    Net net_;
    std::vector<std::unique_ptr<Extractor>> extractors_;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return fprintf(stderr, "usage: %s FIRST COUNT\n", argv[0]), 2;
    fuzz::quiet();
    fuzz::print_case_of_crashes();
    const unsigned first = (unsigned)atoi(argv[1]), count = (unsigned)atoi(argv[2]);
    unsigned answered = 0, wrong = 0;
    for (unsigned n = first; n - first < count; n++) {
        fuzz::current_case = "case " + std::to_string(n) + ":";
        alarm(kMostSeconds);
        Calls calls(n);
        calls.make(40);
        bool ran = false;
        if (!calls.answers_as_new(&ran))
            fprintf(stderr, "%s: other answers\n", fuzz::current_case.c_str()), wrong++;
        answered += ran;
        alarm(0);
    }
    printf("%u cases, %u of them answered, %u wrong\n", count, answered, wrong);
    return wrong != 0;
}
