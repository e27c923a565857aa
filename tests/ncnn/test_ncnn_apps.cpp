// Programs as ncnn's users write them: a classifier, a detector, segmentation, layers of their own,
// ciphers, allocators, threads, blobs in the middle, and the C API by ncnn's names.
#include "check.h"

// What a program's own header says that needs no more of ncnn.
namespace ncnn {
class Mat;
class Net;
}  // namespace ncnn
int best_of(const ncnn::Mat& scores);
struct Classifier {
    const ncnn::Net* net;
};

#include "c_api.h"
#include "datareader.h"
#include "layer.h"
#include "ncnn/net.h"

int best_of(const ncnn::Mat& scores) {
    int best = 0;
    for (int i = 0; i < scores.w; i++)
        if (scores[i] > scores[best]) best = i;
    return best;
}

namespace {

const char* const kParam = "models/digits/digits.param";
const char* const kBin = "models/digits/digits.bin";

// A picture of 8 x 8 pixels, bright where a one has its stroke.
ncnn::Mat picture_of_a_one() {
    unsigned char pixels[64] = {0};
    for (int y = 1; y < 7; y++) pixels[y * 8 + 3] = pixels[y * 8 + 4] = 255;
    ncnn::Mat in = ncnn::Mat::from_pixels(pixels, ncnn::Mat::PIXEL_GRAY, 8, 8);
    const float norm[1] = {1 / 255.f};
    in.substract_mean_normalize(0, norm);
    return in;
}

ncnn::Mat classify(const ncnn::Net& net, ncnn::Allocator* allocator = 0) {
    ncnn::Extractor ex = net.create_extractor();
    ex.set_light_mode(true);
    ex.set_vulkan_compute(false);  // of ncnn's of 2018 to 2023
    if (allocator) ex.set_blob_allocator(allocator);
    CHECK(ex.input(net.input_names()[0], picture_of_a_one()) == 0);
    ncnn::Mat out;
    CHECK(ex.extract(net.output_names()[0], out) == 0);
    return out;
}

bool are_equal(const ncnn::Mat& a, const ncnn::Mat& b) {
    return a.w == b.w && a.total() == b.total() && memcmp(a.data, b.data, a.w * sizeof(float)) == 0;
}

void test_classification() {
    ncnn::Net net;
    net.opt.use_vulkan_compute = false;
    net.opt.num_threads = 1;
    CHECK(net.load_param(kParam) == 0 && net.load_model(kBin) == 0);
    const Classifier classifier = {&net};
    const ncnn::Mat scores = classify(*classifier.net);
    CHECK(scores.w == 10 && best_of(scores) == 1);
    net.clear();
    CHECK(net.layers().empty());
}

// Every blob of the model, as ncnn gives them, and from each on to the end.
void test_any_blob() {
    ncnn::Net net;
    CHECK(net.load_param(kParam) == 0 && net.load_model(kBin) == 0);
    const ncnn::Mat scores = classify(net);
    for (size_t i = 0; i < net.blobs().size(); i++) {
        ncnn::Extractor ex = net.create_extractor();
        CHECK(ex.input("data", picture_of_a_one()) == 0);
        ncnn::Mat middle;
        CHECK(ex.extract((int)i, middle) == 0 && !middle.empty());
        const ncnn::Blob& blob = net.blobs()[i];
        if (blob.name != "stem" && blob.name != "dw1" && blob.name != "pw1") continue;
        ncnn::Extractor rest = net.create_extractor();
        ncnn::Mat out;
        CHECK(rest.input(blob.name.c_str(), middle) == 0);
        CHECK(rest.extract(net.output_names()[0], out) == 0);
        for (int k = 0; k < 10; k++)
            CHECK(out[k] - scores[k] < 1e-4f && scores[k] - out[k] < 1e-4f);
    }
}

// ---------------------------------------------------------------- a mask, and boxes

// A dark picture with a bright rectangle from (20, 12) to (52, 44).
const int kWidth = 80, kHeight = 48;
std::vector<unsigned char> bright_rectangle() {
    std::vector<unsigned char> bgr(kWidth * kHeight * 3, 20);
    for (int y = 12; y < 44; y++)
        for (int x = 20; x < 52; x++)
            for (int k = 0; k < 3; k++) bgr[(y * kWidth + x) * 3 + k] = 230;
    return bgr;
}

// Two classes, background and foreground: brightness of blocks of 4 x 4 pixels, resized back.
void test_segmentation() {
    ncnn::Net net;
    CHECK(net.load_param_mem("7767517\n7 8\n"
                             "Input image 0 1 image\n"
                             "Pooling blocks 1 1 image blocks 0=1 1=4 2=4\n"
                             "Split two 1 2 blocks dark bright\n"
                             "UnaryOp negate 1 1 dark background 0=1\n"
                             "Concat classes 2 1 background bright classes 0=0\n"
                             "Interp back 1 1 classes scores 0=2 1=4.0 2=4.0\n"
                             "Softmax prob 1 1 scores prob 0=0 1=1\n") == 0);
    const std::vector<unsigned char> bgr = bright_rectangle();
    ncnn::Mat in = ncnn::Mat::from_pixels(bgr.data(), ncnn::Mat::PIXEL_BGR2GRAY, kWidth, kHeight);
    const float mean[1] = {127.5f}, norm[1] = {1 / 16.f};
    in.substract_mean_normalize(mean, norm);
    ncnn::Extractor ex = net.create_extractor();
    ncnn::Mat prob;
    CHECK(ex.input("image", in) == 0 && ex.extract("prob", prob) == 0);
    CHECK(prob.w == kWidth && prob.h == kHeight && prob.c == 2);

    ncnn::Mat mask(prob.w, prob.h, 1);
    for (int i = 0; i < prob.h; i++) {
        const float *background = prob.channel(0).row(i), *foreground = prob.channel(1).row(i);
        float* row = mask.channel(0).row(i);
        for (int j = 0; j < prob.w; j++) row[j] = foreground[j] > background[j] ? 255.f : 0.f;
    }
    std::vector<unsigned char> pixels(kWidth * kHeight);
    mask.to_pixels(pixels.data(), ncnn::Mat::PIXEL_GRAY);
    int wrong = 0;  // but for the two pixels beside the edge
    for (int y = 0; y < kHeight; y++)
        for (int x = 0; x < kWidth; x++) {
            const bool inner = x >= 22 && x < 50 && y >= 14 && y < 42;
            const bool outer = x < 18 || x >= 54 || y < 10 || y >= 46;
            wrong += (inner && pixels[y * kWidth + x] == 0) || (outer && pixels[y * kWidth + x]);
        }
    CHECK(wrong == 0);
}

// A grid of prior boxes; the one at the rectangle scores best, and takes its neighbours with it.
void test_detection() {
    ncnn::Net net;
    CHECK(
        net.load_param_mem("7767517\n7 7\n"
                           "Input grid 0 1 grid\n"
                           "Input whole 0 1 whole\n"
                           "Input loc 0 1 loc\n"
                           "Input conf 0 1 conf\n"
                           "PriorBox priors 2 1 grid whole priors -23300=1,32.0 3=0.1 4=0.1 5=0.2 "
                           "6=0.2 7=0 8=0 9=-233 10=-233 11=8.0 12=8.0 13=0.5\n"
                           "DetectionOutput boxes 3 1 loc conf priors boxes 0=2 1=0.3 2=100 3=20 "
                           "4=0.5\n"
                           "Noop out 1 1 boxes out\n") == 0);
    const int columns = kWidth / 8, rows = kHeight / 8, count = columns * rows;
    ncnn::Mat cells(columns, rows, 1), loc(count * 4), conf(count * 2);
    loc.fill(0.f);
    for (int i = 0; i < count; i++) {
        const int x = i % columns * 8 + 4, y = i / columns * 8 + 4;
        const float far = (float)((x - 36) * (x - 36) + (y - 28) * (y - 28));
        conf[i * 2 + 1] = 0.9f / (1.f + far / 64.f);
        conf[i * 2] = 1.f - conf[i * 2 + 1];
    }
    ncnn::Extractor ex = net.create_extractor();
    CHECK(ex.input("grid", cells) == 0);
    CHECK(ex.input("whole", ncnn::Mat(kWidth, kHeight, 3)) == 0);
    CHECK(ex.input("loc", loc) == 0 && ex.input("conf", conf) == 0);
    ncnn::Mat out;
    CHECK(ex.extract("out", out) == 0);
    CHECK(out.h == 1 && out.w == 6);
    for (int i = 0; i < out.h; i++) {
        const float* values = out.row(i);
        CHECK(values[0] == 1.f && values[1] > 0.89f);
        const float box[4] = {20.f / kWidth, 12.f / kHeight, 52.f / kWidth, 44.f / kHeight};
        for (int k = 0; k < 4; k++)
            CHECK(values[2 + k] - box[k] < 1e-5f && box[k] - values[2 + k] < 1e-5f);
    }
}

// ---------------------------------------------------------------- a layer of the program's own

class Twice : public ncnn::Layer {
public:
    Twice() {
        one_blob_only = true;
        support_inplace = true;
        support_packing = true;
    }
    virtual int load_param(const ncnn::ParamDict& pd) {
        factor = pd.get(0, 1.f);
        return 0;
    }
    virtual int forward_inplace(ncnn::Mat& blob, const ncnn::Option& opt) const {
        (void)opt;
        for (int q = 0; q < blob.c; q++) {
            float* ptr = blob.channel(q);
            for (int i = 0; i < blob.w * blob.h * blob.elempack; i++) ptr[i] *= factor;
        }
        return 0;
    }
    float factor;
};
DEFINE_LAYER_CREATOR(Twice)
DEFINE_LAYER_DESTROYER(Twice)

void test_custom_layer() {
    ncnn::Net net;
    CHECK(net.register_custom_layer("Twice", Twice_layer_creator, Twice_layer_destroyer) == 0);
    CHECK(net.custom_layer_to_index("Twice") == 0);
    CHECK(net.load_param_mem(
              "7767517\n3 3\nInput in 0 1 x\nAbsVal a 1 1 x y\nTwice t 1 1 y z 0=2.0\n") == 0);
    // No layer has weights: no load_model.
    ncnn::Extractor ex = net.create_extractor();
    ncnn::Mat in(5), out;
    in.fill(-3.f);
    CHECK(ex.input("x", in) == 0 && ex.extract("z", out) == 0 && out[4] == 6.f);
    CHECK(ex.input("x", ncnn::Mat(2)) == 0);  // late, as ncnn lets one
    for (ncnn::Layer* layer : net.mutable_layers())
        if (layer->type == "Twice") static_cast<Twice*>(layer)->factor = 4.f;
    ncnn::Extractor again = net.create_extractor();
    CHECK(again.input("x", in) == 0 && again.extract("z", out) == 0 && out[0] == 12.f);
}

// ---------------------------------------------------------------- a cipher

class CipherReader : public ncnn::DataReader {
public:
    explicit CipherReader(const char* path) : fp(fopen(path, "rb")) {}
    ~CipherReader() { fclose(fp); }
    virtual size_t read(void* buf, size_t size) const {
        const size_t count = fread(buf, 1, size, fp);
        for (size_t i = 0; i < count; i++) ((unsigned char*)buf)[i] ^= 0xa5;
        return count;
    }

private:
    FILE* fp;
};

void encrypt(const char* from, const char* to) {
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    for (int c = fgetc(in); c != EOF; c = fgetc(in)) fputc(c ^ 0xa5, out);
    fclose(in);
    fclose(out);
}

void test_encrypted_model() {
    encrypt(kParam, "test_ncnn_apps.param.x");
    encrypt(kBin, "test_ncnn_apps.bin.x");
    ncnn::Net net;
    CHECK(net.load_param(CipherReader("test_ncnn_apps.param.x")) == 0);
    CHECK(net.load_model(CipherReader("test_ncnn_apps.bin.x")) == 0);
    CHECK(best_of(classify(net)) == 1);
    remove("test_ncnn_apps.param.x");
    remove("test_ncnn_apps.bin.x");
}

// ---------------------------------------------------------------- memory, threads

void test_allocators() {
    ncnn::UnlockedPoolAllocator blobs;
    ncnn::PoolAllocator workspace;
    blobs.set_size_compare_ratio(0.5f);
    ncnn::Net net;
    net.opt.blob_allocator = &blobs;
    net.opt.workspace_allocator = &workspace;
    CHECK(net.load_param(kParam) == 0 && net.load_model(kBin) == 0);
    {
        const ncnn::Mat scores = classify(net);
        CHECK(best_of(scores) == 1 && scores.allocator == &blobs);
    }
    net.clear();
    blobs.clear();
    workspace.clear();
    ncnn::Net plain;
    plain.opt.use_local_pool_allocator = false;
    CHECK(plain.load_param(kParam) == 0 && plain.load_model(kBin) == 0);
    CHECK(best_of(classify(plain)) == 1);
}

struct Job {
    const ncnn::Net* net;
    ncnn::Mat scores[8];
};

void* classify_often(void* args) {
    Job* job = (Job*)args;
    for (int i = 0; i < 8; i++) job->scores[i] = classify(*job->net);
    return 0;
}

void test_threads() {
    ncnn::Net net;
    net.opt.num_threads = 1;
    CHECK(net.load_param(kParam) == 0 && net.load_model(kBin) == 0);
    Job jobs[3];
    std::vector<ncnn::Thread*> threads;
    for (Job& job : jobs) {
        job.net = &net;
        threads.push_back(new ncnn::Thread(classify_often, &job));
    }
    for (ncnn::Thread* thread : threads) {
        thread->join();
        delete thread;
    }
    for (const Job& job : jobs)
        for (const ncnn::Mat& scores : job.scores) CHECK(are_equal(scores, jobs[0].scores[0]));
}

// Blobs before one that was extracted (in light mode ncnn has none: their inputs are gone), an
// answer that is written over, and an input after an answer: answers stay, as ncnn's do, and what
// has been computed on the way to them does not.
void test_order_of_calls() {
    ncnn::Mat x(3), seven(3), c, b;
    x.fill(4.f), seven.fill(7.f);
    for (int light = 0; light < 2; light++) {
        ncnn::Net net;
        net.opt.lightmode = light;
        CHECK(net.load_param_mem("7767517\n5 6\nInput in 0 1 x\nBinaryOp m 1 1 x b 0=2 1=1 2=2.0\n"
                                 "Split s 1 2 b b0 b1\nBinaryOp a 1 1 b0 c 0=0 1=1 2=1.0\n"
                                 "BinaryOp e 1 1 b1 d 0=0 1=1 2=2.0\n") == 0);
        ncnn::Extractor ex = net.create_extractor();
        CHECK(ex.input("x", x) == 0 && ex.extract("c", c) == 0 && c[2] == 9.f);
        CHECK(ex.extract("b", b) == 0 && b[0] == 8.f);
        b.fill(0.f);
        CHECK(ex.extract("c", c) == 0 && c[0] == 9.f);
        CHECK(ex.input("b", seven) == 0 && ex.extract("c", c) == 0 && c[1] == 9.f);
        CHECK(ex.extract("d", c) == 0 && c[1] == 9.f);
    }
}

// ---------------------------------------------------------------- ncnn's C API

int add_one(const ncnn_layer_t, ncnn_mat_t blob, const ncnn_option_t) {
    float* values = (float*)ncnn_mat_get_data(blob);
    for (int i = 0; i < ncnn_mat_get_w(blob); i++) values[i] += 1.f;
    return 0;
}
ncnn_layer_t create_adder(void*) {
    ncnn_layer_t layer = ncnn_layer_create();
    ncnn_layer_set_one_blob_only(layer, 1);
    ncnn_layer_set_support_inplace(layer, 1);
    layer->forward_inplace_1 = add_one;
    return layer;
}

void test_c_api() {
    struct __ncnn_net_t* tagged = ncnn_net_create();
    ncnn_net_t plain = tagged;
    ncnn_net_destroy(plain);
    CHECK(ncnn_version_number() == NCNN_VERSION_NUMBER && ncnn_version()[0] == '1');
    ncnn_net_t net = ncnn_net_create();
    ncnn_net_register_custom_layer_by_type(net, "Adder", create_adder, 0, 0);
    CHECK(ncnn_net_load_param_memory(net, "7767517\n2 2\nInput in 0 1 x\nAdder a 1 1 x y\n") == 0);
    ncnn_extractor_t ex = ncnn_extractor_create(net);
    ncnn_mat_t in = ncnn_mat_create_1d(3, NULL), out = NULL;
    ncnn_mat_fill_float(in, 4.f);
    CHECK(ncnn_extractor_input(ex, "x", in) == 0 && ncnn_extractor_extract(ex, "y", &out) == 0);
    CHECK(((const float*)ncnn_mat_get_data(out))[2] == 5.f);
    ncnn_mat_destroy(out);
    ncnn_mat_destroy(in);
    ncnn_extractor_destroy(ex);
    ncnn_net_destroy(net);
}

}  // namespace

int main() {
    test_classification();
    test_any_blob();
    test_segmentation();
    test_detection();
    test_custom_layer();
    test_encrypted_model();
    test_allocators();
    test_threads();
    test_order_of_calls();
    test_c_api();
    return result_of_checks();
}
