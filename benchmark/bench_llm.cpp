// bench_llm: tokens per second of a language model whose graph keeps its keys and values outside.
//
//   bench_llm [--prompt N] [--tokens N] [run options] DECODER.param [DECODER.bin] [--head
//   HEAD.param [HEAD.bin]]
//
// The graphs are those that pnnx writes for ncnn: in0 rows of embeddings (tokens, hidden), in1 the
// mask (tokens, tokens so far), in2 and in3 cosines and sines of the positions (tokens, rotated /
// 2), cache_k0, cache_v0, ... and out_cache_k0, ... what SDPA keeps. The head makes scores of all
// words from the last row of out0. Without a .bin weights are random; enginequantize --kind
// block4x32 --rounding nearest makes weights of four bits of those that --save-weights wrote. Per
// round: one run over the prompt, then one for each token, and tokens per second of both, the head
// included; with --cpu-time by the processor time of all threads.
#include <math.h>
#include <stdio.h>
#include <time.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "common/cli.h"
#include "common/run_options.h"
#include "graph/model.h"
#include "layer/common/schema.h"
#include "quoll/command.h"
#include "quoll/net.h"
#include "random_weights.h"

using namespace quoll;

namespace {

struct Arguments {
    std::vector<std::string> decoder, head;
    std::string save_weights;
    int prompt = 128, tokens = 32, rounds = 3;
    bool cpu_time = false;
    RunOptions run;
};

double now(bool cpu_time) {
    timespec t = {};
    clock_gettime(cpu_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

int load(const std::vector<std::string>& files, const Arguments& a, Net* net) {
    std::string why;
    if (a.run.apply(net, &why)) {
        fprintf(stderr, "bench_llm: %s\n", why.c_str());
        return kError;
    }
    QUOLL_RETURN_IF_ERROR(net->load_param(files[0].c_str()));
    if (files.size() > 1) return net->load_model(files[1].c_str());
    Model model;
    QUOLL_RETURN_IF_ERROR(model.load_param(files[0].c_str()));
    if (a.save_weights.empty()) return net->load_model(RandomWeights(model));
    const std::string path = a.save_weights + "/" + file_name(files[0]) + ".bin";
    FILE* copy = fopen(path.c_str(), "wb");
    if (!copy) {
        perror(path.c_str());
        return kError;
    }
    RandomWeights weights(model, copy);
    const int status = net->load_model(weights);
    if (fclose(copy) == 0 && weights.copied()) return status;
    fprintf(stderr, "bench_llm: %s cannot be written\n", path.c_str());
    return kError;
}

// A parameter of the first layer of this type, 0 if there is none.
int first_param(const Net& net, const std::string& type, int id) {
    for (Layer* layer : net.layers())
        if (layer->type == type) return params_of(*layer).get(id, 0);
    return 0;
}

class Decoder {
public:
    int create(const Arguments& a) {
        QUOLL_RETURN_IF_ERROR(load(a.decoder, a, &net_));
        for (size_t i = 0; i < net_.output_names().size(); i++) {
            const std::string name = net_.output_names()[i];
            if (name.compare(0, 10, "out_cache_") == 0) caches_.push_back(name);
        }
        if (net_.opt.use_vulkan_compute)
            staging_.reset(new VkStagingAllocator(net_.vulkan_device()));
        hidden_ = first_param(net_, "RMSNorm", 0);
        // A head's values lie in pairs; those that are not rotated have no cosine.
        half_ = first_param(net_, "Reshape", 0) / 2;
        if (hidden_ < 1 || half_ < 1 || caches_.empty()) {
            fprintf(stderr,
                    "bench_llm: %s: expected RMSNorm, Reshape to heads and SDPA with caches\n",
                    a.decoder[0].c_str());
            return kError;
        }
        return kOk;
    }
    void forget() {
        next_.reset();
        kept_.assign(caches_.size(), Mat());
        kept_gpu_.assign(caches_.size(), VkMat());
        past_ = 0;
    }
    // The next positions; *last: the last one's row of out0.
    int run(int tokens, Mat* last) {
        if (net_.opt.use_vulkan_compute) return run_on_device(tokens, last);
        Mat in(hidden_, tokens), out;
        fill_random(in, in.total(), -1.f, 1.f, &state_);
        Extractor ex = net_.create_extractor();
        QUOLL_RETURN_IF_ERROR(ex.input("in0", in));
        QUOLL_RETURN_IF_ERROR(place(tokens, ex));
        for (size_t i = 0; past_ > 0 && i < caches_.size(); i++)
            QUOLL_RETURN_IF_ERROR(ex.input(caches_[i].c_str() + 4, kept_[i]));
        QUOLL_RETURN_IF_ERROR(ex.extract("out0", out));
        for (size_t i = 0; i < caches_.size(); i++)
            QUOLL_RETURN_IF_ERROR(ex.extract(caches_[i].c_str(), kept_[i]));
        past_ += tokens;
        return last_row(out, last);
    }

private:
    static int last_row(const Mat& out, Mat* last) {
        *last = out.row_range(out.h - 1, 1).clone();
        return last->empty() ? kOutOfMemory : kOk;
    }
    // The inputs that follow from the positions alone.
    int place(int tokens, Extractor& ex) const {
        Mat mask(past_ + tokens, tokens), angles[2];
        for (Mat& m : angles) m.create(half_, tokens);
        for (int t = 0; t < tokens; t++) {
            for (int i = 0; i < mask.w; i++) mask.row(t)[i] = i <= past_ + t ? 0.f : -1e38f;
            for (int i = 0; i < half_; i++) {
                const double angle = (past_ + t) * pow(10000., -(double)i / half_);
                angles[0].row(t)[i] = (float)cos(angle), angles[1].row(t)[i] = (float)sin(angle);
            }
        }
        QUOLL_RETURN_IF_ERROR(ex.input("in1", mask));
        QUOLL_RETURN_IF_ERROR(ex.input("in2", angles[0]));
        return ex.input("in3", angles[1]);
    }

    // Commands that wait for the rows of embeddings alone, in memory that the host writes. Keys and
    // values stay in the device's memory.
    struct Recorded {
        explicit Recorded(const VulkanDevice* device) : commands(device) {}
        VkCompute commands;
        VkMat rows;
        Mat out;
    };
    int record(int tokens) {
        next_.reset(new Recorded(net_.vulkan_device()));
        next_->rows.create(hidden_, tokens, 4u, staging_.get());
        if (next_->rows.empty()) return kOutOfMemory;
        VkMat out;
        Extractor ex = net_.create_extractor();
        QUOLL_RETURN_IF_ERROR(ex.input("in0", next_->rows));
        QUOLL_RETURN_IF_ERROR(place(tokens, ex));
        for (size_t i = 0; past_ > 0 && i < caches_.size(); i++)
            QUOLL_RETURN_IF_ERROR(ex.input(caches_[i].c_str() + 4, kept_gpu_[i]));
        QUOLL_RETURN_IF_ERROR(ex.extract("out0", out, next_->commands));
        QUOLL_RETURN_IF_ERROR(next_->commands.record_download(out, next_->out, net_.opt));
        for (size_t i = 0; i < caches_.size(); i++)
            QUOLL_RETURN_IF_ERROR(ex.extract(caches_[i].c_str(), kept_gpu_[i], next_->commands));
        past_ += tokens;
        return kOk;
    }
    // The step after a single token is recorded while that token runs.
    int run_on_device(int tokens, Mat* last) {
        if (!next_) QUOLL_RETURN_IF_ERROR(record(tokens));
        const std::unique_ptr<Recorded> step = std::move(next_);
        Mat rows = step->rows.mapped();
        fill_random(rows, rows.total(), -1.f, 1.f, &state_);
        QUOLL_RETURN_IF_ERROR(step->commands.submit());
        if (tokens == 1) QUOLL_RETURN_IF_ERROR(record(1));
        QUOLL_RETURN_IF_ERROR(step->commands.wait());
        return last_row(step->out, last);
    }

    Net net_;
    std::vector<std::string> caches_;
    std::vector<Mat> kept_;
    std::vector<VkMat> kept_gpu_;
    std::unique_ptr<VkStagingAllocator> staging_;  // of rows; it keeps their memory
    std::unique_ptr<Recorded> next_;
    int hidden_ = 0, half_ = 0, past_ = 0;
    uint64_t state_ = 1;
};

int scores(Net* head, const Mat& row) {
    if (head->layers().empty()) return kOk;
    Extractor ex = head->create_extractor();
    Mat out;
    QUOLL_RETURN_IF_ERROR(ex.input(head->input_names()[0], row));
    return ex.extract(head->output_names()[0], out);
}

struct Speed {
    double prompt, tokens;  // a second
};

int run_round(const Arguments& a, Decoder* decoder, Net* head, Speed* speed) {
    Mat row;
    decoder->forget();
    double begin = now(a.cpu_time);
    QUOLL_RETURN_IF_ERROR(decoder->run(a.prompt, &row));
    QUOLL_RETURN_IF_ERROR(scores(head, row));
    speed->prompt = a.prompt / (now(a.cpu_time) - begin);
    begin = now(a.cpu_time);
    for (int i = 0; i < a.tokens; i++) {
        QUOLL_RETURN_IF_ERROR(decoder->run(1, &row));
        QUOLL_RETURN_IF_ERROR(scores(head, row));
    }
    speed->tokens = a.tokens / (now(a.cpu_time) - begin);
    return kOk;
}

int bench(const Arguments& a) {
    Decoder decoder;
    Net head;
    QUOLL_RETURN_IF_ERROR(decoder.create(a));
    if (!a.head.empty()) QUOLL_RETURN_IF_ERROR(load(a.head, a, &head));
    Speed best = {0, 0};
    for (int i = 0; i < a.rounds; i++) {
        Speed speed;
        QUOLL_RETURN_IF_ERROR(run_round(a, &decoder, &head, &speed));
        printf("prompt of %d: %.1f tokens/s; %d tokens: %.2f tokens/s\n", a.prompt, speed.prompt,
               a.tokens, speed.tokens);
        fflush(stdout);
        best.prompt = std::max(best.prompt, speed.prompt);
        best.tokens = std::max(best.tokens, speed.tokens);
    }
    printf("best: %.1f and %.2f tokens/s\n", best.prompt, best.tokens);
    return kOk;
}

}  // namespace

int main(int argc, char** argv) {
    Arguments a;
    CommandLine line("Tokens a second of a language model with caches.", "bench_llm");
    line.option("DECODER", a.decoder, "DECODER.param [DECODER.bin]").required().takes(1, 2);
    line.option("--head", a.head, "HEAD.param [HEAD.bin], for the last row of out0").takes(1, 2);
    line.option("--prompt", a.prompt, "tokens of the prompt").between(1, 1 << 16);
    line.option("--tokens", a.tokens, "tokens made one by one").between(1, 1 << 16);
    line.option("--rounds", a.rounds, "of both; the best counts").between(1, 1000);
    line.option("--save-weights", a.save_weights,
                "folder that gets the random weights as NAME.param.bin");
    line.flag("--cpu-time", a.cpu_time, "by the processor time of all threads");
    a.run.add_to(&line);
    int exit_code = 0;
    if (!line.parse(argc, argv, &exit_code)) return exit_code;
    return without_exceptions("bench_llm", [&] { return bench(a) == kOk ? 0 : 1; });
}
