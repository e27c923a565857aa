// Outputs that are made in a Concat's: the answers are those of copies, bit for bit, whatever else
// reads, gives or asks for the blobs.
#include <gtest/gtest.h>
#include <string.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "quoll/datareader.h"
#include "quoll/log.h"
#include "quoll/net.h"

namespace quoll {
namespace {

// Numbers from -0.5 to 0.5 without end; reads of 4 bytes are zero, the tag of f32 weights.
class Numbers : public DataReader {
public:
    size_t read(void* buf, size_t size) const override {
        memset(buf, 0, size);
        std::uniform_real_distribution<float> next(-.5f, .5f);
        for (size_t i = 0; size > 4 && i < size / 4; i++) ((float*)buf)[i] = next(rng_);
        return size;
    }

private:
    mutable std::mt19937 rng_{11};
};

// Where layers' outputs were.
class Watch : public LayerObserver {
public:
    void before(const Layer&) override {}
    void after(const Layer& layer, const std::vector<Mat>& outputs) override {
        if (keep) kept.push_back(outputs[0]), copies.push_back(outputs[0].clone());
        outputs_[layer.name] = {(const char*)outputs[0].data,
                                outputs[0].total() * outputs[0].elemsize};
    }
    bool within(const char* part, const char* whole) const {
        const Range &a = outputs_.at(part), &b = outputs_.at(whole);
        return a.first >= b.first && a.first + a.second <= b.first + b.second;
    }

    bool keep = false;
    std::vector<Mat> kept, copies;

private:
    typedef std::pair<const char*, size_t> Range;
    std::map<std::string, Range> outputs_;
};

Mat image(const Shape& shape, unsigned seed = 1) {
    Mat m(shape);
    std::mt19937 rng(seed);
    std::uniform_real_distribution<float> next(-1.f, 1.f);
    for (int q = 0; q < m.c; q++)
        for (size_t i = 0; i < (size_t)m.w * m.h * m.d; i++) m[q * m.cstep + i] = next(rng);
    return m;
}

struct Settings {
    bool fuse = true, light = true, bf16 = false, fp16 = false, reference = false;
    int threads = 1;
};

bool load(Net* net, const std::string& layers, const Settings& s = Settings()) {
    net->opt.use_graph_fusion = s.fuse;
    net->opt.num_threads = s.threads;
    net->opt.use_bf16_storage = s.bf16;
    net->opt.use_fp16_storage = s.fp16;
    net->opt.use_reference_layers = s.reference;
    const int count = (int)std::count(layers.begin(), layers.end(), '\n');
    const std::string param = "7767517\n" + std::to_string(count) + " 99\n" + layers;
    return net->load_param_mem(param.c_str()) == 0 && net->load_model(Numbers()) == 0;
}

// Same size and bits; whatever lies between the channels aside.
void expect_same(const Mat& a, const Mat& b, const std::string& what) {
    ASSERT_EQ(a.logical_shape(), b.logical_shape()) << what;
    for (int q = 0; q < a.c; q++)
        ASSERT_EQ(0, memcmp((const char*)a.data + q * a.cstep * a.elemsize,
                            (const char*)b.data + q * b.cstep * b.elemsize,
                            (size_t)a.w * a.h * a.d * a.elemsize))
            << what << ", channel " << q;
}

typedef std::map<std::string, Mat> Blobs;

// Asks for the blobs in this order, and compares each with what a run gives that has the user's
// allocator, in which nothing gets a place.
void compare(const Net& net, const Blobs& inputs, const std::vector<std::string>& asked,
             bool light = true, Watch* watch = nullptr) {
    PoolAllocator pool;
    Extractor ex = net.create_extractor(), other = net.create_extractor();
    other.set_blob_allocator(&pool);
    ex.set_layer_observer(watch);
    ex.set_light_mode(light);
    for (const auto& in : inputs) {
        ASSERT_EQ(0, ex.input(in.first.c_str(), in.second));
        ASSERT_EQ(0, other.input(in.first.c_str(), in.second.clone()));
    }
    for (const std::string& name : asked) {
        Mat a, b;
        const int status = ex.extract(name.c_str(), a);
        ASSERT_EQ(status, other.extract(name.c_str(), b)) << name;
        EXPECT_TRUE(status == 0 || get_log_level() == kLogOff) << name;
        if (status == 0) expect_same(a, b, name);
    }
}

std::string conv(const std::string& name, const std::string& in, int channels, int from,
                 int kernel = 1) {
    return "Convolution " + name + " 1 1 " + in + " " + name + " 0=" + std::to_string(channels) +
           " 1=" + std::to_string(kernel) + " 4=" + std::to_string(kernel / 2) +
           " 5=1 6=" + std::to_string(channels * from * kernel * kernel) + "\n";
}

const std::string kInput = "Input in 0 1 in 0=6 1=5 2=16\n";
const Shape kSize(6, 5, 16);
// Two convolutions side by side.
const std::string kFire =
    kInput + conv("a", "in", 16, 16) + conv("b", "in", 32, 16, 3) + "Concat c 2 1 a b c\n";

TEST(Places, convolutions_write_where_concat_reads) {
    for (int mode = 0; mode < 4; mode++) {
        Settings s;
        s.threads = 1 + mode % 2, s.bf16 = mode == 2, s.fp16 = mode == 3;
        Net net;
        ASSERT_TRUE(load(&net, kFire + "Pooling p 1 1 c p 0=0 1=2 2=2\n", s));
        Watch watch;
        compare(net, {{"in", image(kSize)}}, {"p"}, true, &watch);
        // Those who store what a layer made as f32 move it afterwards.
        EXPECT_TRUE(s.fp16 || (watch.within("a", "c") && watch.within("b", "c"))) << mode;
        compare(net, {{"in", image(kSize)}}, {"c", "p"}, false, &watch);
    }
}

TEST(Places, other_producers_too) {
    Net net;
    ASSERT_TRUE(load(
        &net, kInput + conv("x", "in", 32, 16) + "ReLU r 1 1 x r\nPooling p 1 1 r p 0=0 1=3 3=1\n" +
                  "Sigmoid s 1 1 p s\nBinaryOp add 2 1 r s add 0=0\nEltwise e 2 1 s p e 0=1\n" +
                  "ConvolutionDepthWise d 1 1 in d 0=16 1=3 4=1 5=1 6=144 7=16\n" +
                  "Deconvolution u 1 1 in u 0=16 1=1 5=1 6=256\n" +
                  "Interp i 1 1 in i 0=2 1=2 2=2\nPooling q 1 1 i q 0=1 1=2 2=2\n" +
                  "Concat c 7 1 p s add e d u q c\nAbsVal out 1 1 c out\n"));
    Watch watch;
    compare(net, {{"in", image(kSize)}}, {"out"}, true, &watch);
    for (const char* name : {"p", "s", "add", "e", "d", "u", "q"})
        EXPECT_TRUE(watch.within(name, "c")) << name;
}

TEST(Places, producers_of_one_and_three_axes) {
    Net rows, volumes;
    ASSERT_TRUE(load(&rows,
                     "Input in 0 1 in 0=6 1=16\n"
                     "Convolution1D a 1 1 in a 0=16 1=3 4=1 5=1 6=768\n"
                     "ConvolutionDepthWise1D d 1 1 in d 0=16 1=3 4=1 5=1 6=48 7=16\n"
                     "Deconvolution1D u 1 1 in u 0=32 1=1 5=1 6=512\n"
                     "Pooling1D p 1 1 a p 0=0 1=3 3=1 5=1\nErf e 1 1 p e\n"
                     "Concat c 5 1 a d u p e c\nAbsVal out 1 1 c out\n"));
    ASSERT_TRUE(load(&volumes,
                     "Input in 0 1 in 0=5 1=4 11=3 2=16\n"
                     "Convolution3D a 1 1 in a 0=16 1=3 4=1 5=1 6=6912\n"
                     "Pooling3D p 1 1 a p 0=0 1=3 3=1 5=1\nAbsVal v 1 1 p v\n"
                     "Concat c 3 1 a p v c\nTanH out 1 1 c out\n"));
    Watch watch;
    compare(rows, {{"in", image(Shape(6, 16))}}, {"out"}, true, &watch);
    for (const char* name : {"a", "d", "u", "p", "e"}) EXPECT_TRUE(watch.within(name, "c")) << name;
    compare(volumes, {{"in", image(Shape(5, 4, 3, 16))}}, {"out"}, true, &watch);
    for (const char* name : {"a", "p", "v"}) EXPECT_TRUE(watch.within(name, "c")) << name;
}

TEST(Places, concats_within_concats) {
    std::string layers = kInput + conv("x0", "in", 32, 16);
    for (int i = 1; i <= 6; i++) {
        const std::string n = std::to_string(i), last = i == 1 ? "x0" : "c" + std::to_string(i - 1);
        layers += "Swish s" + n + " 1 1 " + last + " s" + n + "\n" +
                  conv("x" + n, "s" + n, 16, 16 + 16 * i, 3) + "Concat c" + n + " 2 1 " + last +
                  " x" + n + " c" + n + "\n";
    }
    Net net;
    ASSERT_TRUE(load(&net, layers + "Pooling p 1 1 c6 p 0=0 1=2 2=2\n"));
    for (const bool light : {true, false}) {
        Watch watch;
        compare(net, {{"in", image(kSize)}}, {"p"}, light, &watch);
        for (int i = 1; i <= 6; i++)
            EXPECT_TRUE(watch.within(("x" + std::to_string(i)).c_str(), "c6")) << i;
        EXPECT_TRUE(watch.within("c3", "c6") && watch.within("x0", "c6"));
        compare(net, {{"in", image(kSize)}}, {"c2", "x4", "c5", "p", "c6", "x1"}, light);
    }
    // A join in the middle that is given, or of which only a part is asked for.
    compare(net, {{"in", image(kSize)}, {"c3", image(Shape(6, 5, 80), 3)}}, {"c2", "p", "x1"});
    compare(net, {{"in", image(kSize)}, {"x3", image(Shape(6, 5, 16), 3)}}, {"p", "c3"});
}

// ShuffleNet's units: what is shuffled lies in the next join already, of which its second half is
// written over when nobody reads it any more.
TEST(Places, pieces_of_what_lies_in_the_join) {
    std::string layers = kInput + conv("c0", "in", 32, 16);
    for (int i = 1; i <= 4; i++) {
        const std::string n = std::to_string(i);
        layers += "ShuffleChannel s" + n + " 1 1 c" + std::to_string(i - 1) + " s" + n + " 0=2\n" +
                  "Slice l" + n + " 1 2 s" + n + " l" + n + " h" + n + " -23300=2,16,16\n" +
                  conv("x" + n, "h" + n, 16, 16) + conv("y" + n, "x" + n, 16, 16, 3) + "Concat c" +
                  n + " 2 1 l" + n + " y" + n + " c" + n + "\n";
    }
    Net net;
    ASSERT_TRUE(load(&net, layers + "Pooling p 1 1 c4 p 0=0 1=2 2=2\n"));
    for (const bool light : {true, false}) {
        Watch watch;
        compare(net, {{"in", image(kSize)}}, {"p"}, light, &watch);
        // With all blobs kept there is no room.
        for (const char* n : {"1", "2", "3", "4"}) {
            const std::string s = std::string("s") + n, y = std::string("y") + n;
            EXPECT_EQ(light, watch.within(s.c_str(), (std::string("c") + n).c_str()));
            EXPECT_EQ(light, watch.within(y.c_str(), (std::string("c") + n).c_str()));
        }
        compare(net, {{"in", image(kSize)}}, {"h2", "c1", "l3", "p", "h3", "s1"}, light);
    }
    compare(net, {{"in", image(kSize)}, {"l2", image(kSize, 2)}}, {"p", "h2"});
    compare(net, {{"in", image(kSize)}, {"h2", image(kSize, 2)}}, {"c2", "p"});
}

// The halves of a blob and what is made of them, side by side.
TEST(Places, all_pieces_of_a_blob) {
    const std::string cut = kInput + conv("s", "in", 32, 16) +
                            "Slice l 1 2 s a b -23300=2,-233,-233\n" + conv("d", "b", 16, 16, 3);
    Net net;
    ASSERT_TRUE(
        load(&net, cut + conv("e", "d", 16, 16, 3) + "Concat c 4 1 a b d e c\nAbsVal o 1 1 c o\n"));
    for (const bool light : {true, false}) {
        Watch watch;
        compare(net, {{"in", image(kSize)}}, {"o"}, light, &watch);
        for (const char* name : {"s", "d", "e"}) EXPECT_TRUE(watch.within(name, "c")) << name;
        compare(net, {{"in", image(kSize)}}, {"b", "o", "s"}, light);
    }
    compare(net, {{"in", image(kSize)}, {"a", image(kSize, 2)}}, {"o", "b"});
    // A piece that is read, or changed, too late, and others in another order.
    const char* const joins[] = {
        "Concat c 2 1 a d c\nConcat o 2 1 c b o\n",
        "Concat c 2 1 d b c\nConcat o 2 1 a c o\n",
        "Concat c 2 1 b a c\nConcat o 2 1 d c o\n",
        "BinaryOp n 1 1 b n 0=2 1=1 2=-0.5\nConcat c 2 1 a d c\nConcat o 2 1 c n o\n",
        "Reshape v 1 1 b v 0=6 1=5 2=16\nConcat c 2 1 a d c\nReduction g 1 1 c g 0=3 1=1 4=0\n"
        "BinaryOp n 2 1 v g n 0=2\nConcat o 2 1 n c o\n",
        "Concat c 3 1 a d a c\nConcat o 2 1 c b o\n",
    };
    for (const char* join : joins)
        for (const bool light : {true, false}) {
            Net other;
            ASSERT_TRUE(load(&other, cut + join));
            compare(other, {{"in", image(kSize)}}, {"o"}, light);
            compare(other, {{"in", image(kSize)}}, {"b", "c", "o", "a"}, light);
        }
}

// Layers that work in place on one of the blobs which share the memory leave the others alone.
TEST(Places, in_place_layers_overwrite_nothing_that_is_read) {
    const std::string negate = " 0=2 1=1 2=-0.5\n";
    const std::string view = "Reshape v 1 1 a v 0=6 1=5 2=16\n";
    const std::vector<std::string> graphs = {
        // The join is changed while a part of it is wanted again, and the other way round.
        kFire + "BinaryOp n 1 1 c n" + negate + "Concat out 2 1 n a out\n",
        kFire + "BinaryOp n 1 1 a n" + negate + "Concat out 2 1 n c out\n",
        // A part lives on under another name.
        kInput + conv("a", "in", 16, 16) + view + conv("b", "in", 32, 16, 3) +
            "Concat c 2 1 a b c\nReduction g 1 1 c g 0=3 1=1 4=0\n" +
            "BinaryOp n 2 1 v g n 0=2\nConcat out 2 1 n c out\n",
        // Before the join, and of the part itself.
        kInput + conv("a", "in", 16, 16) + "BinaryOp n 1 1 a n" + negate + "BinaryOp m 1 1 n m" +
            negate + conv("b", "n", 16, 16) + "Concat out 3 1 m b n out\n",
    };
    for (const std::string& graph : graphs)
        for (const bool light : {true, false}) {
            Net net, planar;
            ASSERT_TRUE(load(&net, graph));
            compare(net, {{"in", image(kSize)}}, {"out"}, light);
            // As the reference layers, run one by one.
            Settings s;
            s.fuse = false, s.reference = true;
            ASSERT_TRUE(load(&planar, graph, s));
            Mat a, b;
            for (Net* n : {&net, &planar}) {
                Extractor ex = n->create_extractor();
                ex.set_light_mode(light);
                ex.input("in", image(kSize));
                ASSERT_EQ(0, ex.extract("out", n == &net ? a : b));
            }
            ASSERT_EQ(a.logical_shape(), b.logical_shape());
            for (int q = 0; q < a.c; q++)
                for (int i = 0; i < a.w * a.h; i++)
                    ASSERT_NEAR(a.channel(q)[i], b.channel(q)[i], 1e-4f) << graph;
        }
}

TEST(Places, blobs_that_are_joined_more_than_once) {
    for (const char* joins : {"Concat c 3 1 a a b c\nConcat out 2 1 c in out\n",
                              "Concat c 2 1 a b c\nConcat d 2 1 b a d\nConcat out 2 1 c d out\n",
                              "Concat c 2 1 a b c\nConcat out 2 1 c c out\n"}) {
        Net net;
        ASSERT_TRUE(load(&net, kInput + conv("a", "in", 16, 16) + conv("b", "a", 16, 16) + joins));
        compare(net, {{"in", image(kSize)}}, {"out"});
        compare(net, {{"in", image(kSize)}}, {"a", "out", "b"}, false);
    }
}

TEST(Places, blobs_that_are_given_or_asked_for) {
    Net net;
    ASSERT_TRUE(load(&net, kFire + conv("d", "a", 8, 16) + conv("e", "c", 8, 48)));
    const Mat in = image(kSize), a = image(Shape(6, 5, 16), 2), c = image(Shape(6, 5, 48), 3);
    compare(net, {{"in", in}}, {"a", "c", "b", "d", "e"});
    compare(net, {{"in", in}}, {"d", "e", "a"}, false);
    compare(net, {{"in", in}, {"a", a}}, {"c", "d", "a"});
    compare(net, {{"in", in}, {"c", c}}, {"b", "e", "c"});
    // An answer is the caller's own.
    Extractor ex = net.create_extractor();
    ex.set_light_mode(false);
    ex.input("in", in);
    Mat first, part, again;
    ASSERT_EQ(0, ex.extract("c", first));
    ASSERT_EQ(0, ex.extract("a", part));
    part.fill(7.f);
    ASSERT_EQ(0, ex.extract("c", again));
    expect_same(first, again, "c");
}

TEST(Places, sizes_differ_from_run_to_run) {
    Net net, unsized;
    ASSERT_TRUE(load(&net, kFire));
    ASSERT_TRUE(load(&unsized, "Input in 0 1 in\n" + kFire.substr(kInput.size())));
    for (int run = 0; run < 30; run++) {
        const Mat in = image(Shape(3 + run * 7 % 11, 4 + run % 3, 16), (unsigned)run);
        Watch watch;
        compare(net, {{"in", in}}, {"c"}, true, &watch);
        EXPECT_TRUE(watch.within("a", "c"));
        compare(unsized, {{"in", in}}, {"c"}, true, &watch);
        EXPECT_TRUE(watch.within("a", "c"));
    }
}

TEST(Places, elempacks_that_do_not_fit) {
    for (const int first : {10, 4, 8, 12, 24, 1}) {
        Net net;
        const std::string relu = "ReLU r 1 1 c r\n";
        ASSERT_TRUE(load(&net, kInput + conv("a", "in", first, 16) + conv("b", "in", 16, 16) +
                                   conv("d", "b", 32, 16, 3) + "Concat c 3 1 a b d c\n" + relu));
        compare(net, {{"in", image(kSize)}}, {"r"});
    }
}

// As SegFormer's head: what comes from rows lies in blocks of channels like what comes from
// convolutions, and what is resized is made in its place.
TEST(Places, resized_rows) {
    Net net;
    ASSERT_TRUE(load(&net, "Input rows 0 1 rows 0=16 1=12\n" + kInput +
                               "Permute p 1 1 rows p 0=1\nReshape r 1 1 p r 0=4 1=3 2=16\n"
                               "Resize u 1 1 r u 0=1 -23309=2,1,2 -23311=2,5,6\n" +
                               conv("b", "in", 16, 16) + "Concat c 2 1 u b c\n" +
                               conv("out", "c", 16, 32)));
    Watch watch;
    compare(net, {{"in", image(kSize)}, {"rows", image(Shape(16, 12))}}, {"out"}, true, &watch);
    EXPECT_TRUE(watch.within("u", "c") && watch.within("b", "c"));
}

TEST(Places, other_axes_and_dims) {
    const char* const joins[] = {
        "Convolution a 1 1 in a 0=16 1=1 6=256\nConvolution b 1 1 in b 0=16 1=1 6=256\n"
        "Concat out 2 1 a b out 0=1\n",
        "Convolution a 1 1 in a 0=16 1=1 6=256\nConvolution b 1 1 in b 0=16 1=1 6=256\n"
        "Concat out 2 1 a b out 0=-3\n",
        "Pooling a 1 1 in a 0=1 4=1\nPooling b 1 1 in b 0=0 4=1\nConcat out 2 1 a b out\n",
        "Reshape m 1 1 in m 0=30 1=16\nReLU a 1 1 m a\nSigmoid b 1 1 m b\nConcat out 2 1 a b out\n",
        "Reshape m 1 1 in m 0=3 1=2 11=5 2=16\nReLU a 1 1 m a\nSigmoid b 1 1 m b\n"
        "Concat out 2 1 a b out\n",
    };
    for (const char* join : joins) {
        Net net;
        ASSERT_TRUE(load(&net, kInput + join));
        compare(net, {{"in", image(kSize)}}, {"out"});
    }
}

TEST(Places, batches) {
    Net net;
    ASSERT_TRUE(load(&net, kFire));
    Shape two = kSize;
    two.n = 2;
    Mat in(two);
    for (int b = 0; b < 2; b++) {
        const Mat one = image(kSize, 5u + b);
        memcpy((float*)in.data + b * in.nstep, one.data, one.total() * sizeof(float));
    }
    Extractor ex = net.create_extractor();
    ex.input("in", in);
    Mat both, single;
    ASSERT_EQ(0, ex.extract("c", both));
    ASSERT_EQ(2, both.n);
    for (int b = 0; b < 2; b++) {
        Extractor one = net.create_extractor();
        one.input("in", image(kSize, 5u + b));
        ASSERT_EQ(0, one.extract("c", single));
        expect_same(both.batch(b), single, "batch item");
    }
}

TEST(Places, int8_blobs) {
    // int8_scale_term 101: s8 output, whose scale comes with the weights.
    Net net;
    ASSERT_TRUE(load(&net, kInput + "Quantize q 1 1 in q 0=1\n"
                                    "Pooling a 1 1 q a 0=0 1=3 3=1\nPooling b 1 1 a b 0=0 1=3 3=1\n"
                                    "Concat c 2 1 a b c\nPooling p 1 1 c p 0=0 1=2 2=2\n"));
    Watch watch;
    compare(net, {{"in", image(kSize)}}, {"p"}, true, &watch);
    EXPECT_TRUE(watch.within("a", "c") && watch.within("b", "c"));
}

TEST(Places, copied_extractors_and_kept_blobs) {
    Net net;
    ASSERT_TRUE(load(&net, kFire + "ReLU r 1 1 c r\n" + conv("d", "a", 8, 16)));
    Mat expected, first, second, a;
    {
        PoolAllocator pool;
        Extractor ex = net.create_extractor();
        ex.set_blob_allocator(&pool);
        ex.input("in", image(kSize));
        Mat m;
        ASSERT_EQ(0, ex.extract("r", m));
        expected = m.clone();
    }
    Watch watch;
    watch.keep = true;
    {
        Extractor ex = net.create_extractor();
        ex.set_layer_observer(&watch);
        ex.input("in", image(kSize));
        ASSERT_EQ(0, ex.extract("a", a));
        Extractor copy = ex;
        ASSERT_EQ(0, ex.extract("r", first));
        ASSERT_EQ(0, copy.extract("r", second));
        expect_same(first, expected, "r");
        expect_same(second, expected, "r of the copy");
    }
    for (size_t i = 0; i < watch.kept.size(); i++)
        expect_same(watch.kept[i], watch.copies[i], "a blob that an observer holds");
    watch.kept.clear();
}

// A layer of the application that makes its own Mat.
class Doubled : public Layer {
public:
    Doubled() { one_blob_only = true; }
    int forward(const Mat& bottom, Mat& top, const Option&) const override {
        top = bottom.clone();
        for (size_t i = 0; i < top.total(); i++) top[i] *= 2;
        return 0;
    }
};
DEFINE_LAYER_CREATOR(Doubled)

TEST(Places, layers_of_the_application) {
    Net net;
    net.register_custom_layer("ReLU", Doubled_layer_creator);
    ASSERT_TRUE(load(&net, kInput + conv("a", "in", 16, 16) + "ReLU b 1 1 a b\n" +
                               conv("d", "b", 16, 16) +
                               "Concat c 3 1 a b d c\nAbsVal o 1 1 c o\n"));
    compare(net, {{"in", image(kSize)}}, {"o"});
}

// What they say of their output's channels is wrong: 16 or 32, and it is the other.
class Wrong : public Layer {
public:
    explicit Wrong(int channels) : channels_(channels) { one_blob_only = true; }
    int infer_shapes(const std::vector<Shape>& in, std::vector<Shape>& out) const override {
        out = in;
        out[0].c = 48 - channels_;
        return 0;
    }
    int forward(const Mat& bottom, Mat& top, const Option&) const override {
        top.create(bottom.w, bottom.h, channels_);
        for (int q = 0; q < channels_; q++) top.channel(q).fill((float)q - 9.5f);
        return 0;
    }

private:
    int channels_;
};
Layer* make_wide(void*) { return new Wrong(32); }
Layer* make_narrow(void*) { return new Wrong(16); }

// The joins have the sizes that were expected, but not their inputs.
TEST(Places, sizes_that_were_told_wrong) {
    const std::string ends = kInput + "Wide w 1 1 in w\nNarrow n 1 1 in n\n";
    const char* const joins[] = {
        "Interp p 1 1 a p 0=1 1=1 2=1\nConcat c 3 1 w a n c\n",
        "Concat b 2 1 w a b\nConcat c 2 1 b n c\nAbsVal z 1 1 a z\n",
    };
    for (const char* join : joins)
        for (const bool light : {true, false}) {
            Net net;
            net.opt.use_packing_layout = false;
            net.register_custom_layer("Wide", make_wide);
            net.register_custom_layer("Narrow", make_narrow);
            ASSERT_TRUE(load(&net, ends + "Convolution a 1 1 in a 0=16 1=1 5=1 6=256\n" + join));
            compare(net, {{"in", image(kSize)}}, {"c", "a"}, light);
        }
}

// Makes `made` channels where it has told of `told`, of which it gives the last `given`, and keeps
// them all for a while, as a layer of the application may.
class OfItems : public Layer {
public:
    OfItems(int told, int made, int given) : told_(told), made_(made), given_(given) {
        one_blob_only = true;
    }
    int infer_shapes(const std::vector<Shape>& in, std::vector<Shape>& out) const override {
        out = in;
        out[0].c = told_;
        return 0;
    }
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override {
        top.create(bottom.w, bottom.h, made_, 4u, opt.blob_allocator);
        for (int q = 0; q < made_; q++) top.channel(q).fill(bottom[0] + (float)q);
        const Mat whole = top;
        if (given_ < made_) top = whole.channel_range(made_ - given_, given_);
        if (given_ < made_) top.refcount = whole.refcount, top.addref();
        kept.push_back(whole);
        return 0;
    }
    static std::vector<Mat> kept;

private:
    const int told_, made_, given_;
};
std::vector<Mat> OfItems::kept;

// Layers that take one item of a batch at a time.
TEST(Places, items_of_a_batch) {
    const struct {
        layer_creator_func create;
        int made, first, channels;
    } kinds[] = {
        {[](void*) -> Layer* { return new OfItems(6, 6, 6); }, 6, 0, 6},
        {[](void*) -> Layer* { return new OfItems(5, 6, 6); }, 6, 0, 6},
        {[](void*) -> Layer* { return new OfItems(6, 6, 4); }, 6, 2, 4},
        {[](void*) -> Layer* { return new OfItems(4, 6, 4); }, 6, 2, 4},
    };
    Shape three(4, 3, 2);
    three.n = 3;
    Mat in(three);
    for (int b = 0; b < 3; b++) in.batch(b).fill(10.f * (float)b);
    for (const auto& kind : kinds) {
        Net net;
        net.opt.use_packing_layout = false;
        net.register_custom_layer("OfItems", kind.create);
        ASSERT_TRUE(load(&net, kInput + "OfItems o 1 1 in o\n"));
        for (int run = 0; run < 2; run++) {
            Extractor ex = net.create_extractor();
            ASSERT_EQ(0, ex.input("in", in));
            Mat out;
            ASSERT_EQ(0, ex.extract("o", out));
            three.c = kind.channels;
            ASSERT_EQ(three, out.logical_shape());
            for (int b = 0; b < 3; b++)
                for (int q = 0; q < kind.channels; q++)
                    for (int i = 0; i < 12; i++)
                        ASSERT_EQ(10.f * (float)b + (float)(kind.first + q),
                                  out.batch(b).channel(q)[i]);
            out.fill(-1.f);
            for (int b = 0; b < 3; b++)
                for (int q = 0; q < kind.made; q++)
                    ASSERT_EQ(10.f * (float)b + (float)q, OfItems::kept[b].channel(q)[11]);
            OfItems::kept.clear();  // before the allocator goes, the Extractor's
        }
    }
}

TEST(Places, choices_and_loops) {
    Net choice;
    ASSERT_TRUE(load(&choice, "Input if 0 1 if\n" + kFire + conv("d", "c", 16, 48) +
                                  conv("e", "a", 16, 16) + "Select s 3 1 if d e s\n" +
                                  "Concat out 3 1 s a c out\n"));
    Mat condition(1);
    for (const float value : {0.f, 1.f}) {
        condition[0] = value;
        compare(choice, {{"in", image(kSize)}, {"if", condition}}, {"out", "c"});
    }
    Net loop;
    ASSERT_TRUE(load(&loop, "Input n 0 1 n\nInput go 0 1 go\n" + kInput + conv("o", "in", 16, 16) +
                                "LoopStart start 3 4 n go in token i more x\n" +
                                conv("a", "x", 16, 16) + conv("b", "a", 16, 16, 3) +
                                "Concat c 3 1 a b o c\n" + conv("y", "c", 16, 48) +
                                "LoopEnd end 3 1 token more y z\nConcat out 3 1 z o c out\n"));
    Mat count(Shape(1, DType::s32)), go(1);
    go[0] = 1.f;
    for (const int times : {0, 1, 3}) {
        *(int*)count.data = times;
        compare(loop, {{"in", image(kSize)}, {"n", count}, {"go", go}}, {"out"});
    }
}

// Random graphs of one image size; names[i] has channels[i].
struct RandomGraph {
    std::mt19937 rng;
    std::string layers = kInput;
    std::vector<std::string> names = {"in"};
    std::vector<int> channels = {16};

    explicit RandomGraph(unsigned seed) : rng(seed) {
        for (int i = 0; i < 18; i++) add(std::to_string(i));
    }
    int pick(int count) { return (int)(rng() % (unsigned)count); }
    int blob() {  // new ones more often
        const int n = (int)names.size();
        return std::max(pick(n), pick(n));
    }
    void top(const std::string& name, int count) {
        names.push_back(name);
        channels.push_back(count);
    }
    void one(const std::string& type, const std::string& name, const std::string& rest) {
        const int from = blob(), count = channels[from];
        layers += type + " " + name + " 1 1 " + names[from] + " " + name + " " + rest + "\n";
        top(name, count);
    }
    void add(const std::string& n) {
        const int from = blob(), count = channels[from];
        switch (pick(14)) {
            case 0:
            case 1:
            case 2: {
                const int kSizes[] = {16, 16, 32, 8, 24, 10};
                const int out = kSizes[pick(6)];
                layers += conv("v" + n, names[from], out, count, pick(2) ? 3 : 1);
                return top("v" + n, out);
            }
            case 3:
                return one("Pooling", "p" + n, pick(2) ? "0=0 1=3 3=1" : "0=1 1=3 3=1");
            case 4:
                return one("BinaryOp", "n" + n, "0=2 1=1 2=-0.5");
            case 5:
                return one("Sigmoid", "s" + n, "");
            case 6:
                return one("Dropout", "d" + n, "");
            case 7:
                layers += "Reshape r" + n + " 1 1 " + names[from] + " r" + n +
                          " 0=6 1=5 2=" + std::to_string(count) + "\n";
                return top("r" + n, count);
            case 8:
                if (count % 2 || count < 4) return one("Sigmoid", "s" + n, "");
                layers += "Slice l" + n + " 1 2 " + names[from] + " l" + n + " h" + n +
                          " -23300=2," + std::to_string(count / 2) + ",-233\n";
                top("l" + n, count / 2);
                return top("h" + n, count - count / 2);
            case 11:
            case 12: {  // half of it goes on as it is, beside what comes of the other
                if (count % 4) return one("Sigmoid", "s" + n, "");
                const int half = count / 2;
                layers += "ShuffleChannel f" + n + " 1 1 " + names[from] + " f" + n + " 0=2\n" +
                          "Slice l" + n + " 1 2 f" + n + " l" + n + " h" + n + " -23300=2," +
                          std::to_string(half) + ",-233\n" +
                          conv("y" + n, "h" + n, half, half, pick(2) ? 3 : 1) + "Concat c" + n +
                          " 2 1 " + (pick(4) ? "l" : "h") + n + " y" + n + " c" + n + "\n";
                for (const char* name : {"l", "h", "y"})
                    if (pick(4) == 0) top(name + n, half);
                return top("c" + n, count);
            }
            default: {
                const int inputs = 2 + pick(3);
                std::string list;
                int sum = 0;
                for (int i = 0; i < inputs; i++) {
                    const int b = blob();
                    list += names[b] + " ";
                    sum += channels[b];
                }
                if (sum > 200) return one("Sigmoid", "s" + n, "");
                layers +=
                    "Concat c" + n + " " + std::to_string(inputs) + " 1 " + list + "c" + n + "\n";
                return top("c" + n, sum);
            }
        }
    }
};

TEST(Places, random_graphs) {
#ifdef QUOLL_EMULATED_CPU
    const unsigned graphs = 60;
#else
    const unsigned graphs = 300;
#endif
    const LogLevel level = get_log_level();
    for (unsigned i = 0; i <= graphs; i++) {
        const unsigned seed = i < graphs ? i : 2866;  // half a join goes into another
        RandomGraph graph(seed);
        Settings s;
        s.fuse = seed % 4 != 0, s.bf16 = seed % 5 == 1, s.fp16 = seed % 5 == 2;
        s.threads = 1 + (seed % 16 == 0);
        Net net;
        ASSERT_TRUE(load(&net, graph.layers, s)) << graph.layers;
        std::vector<std::string> asked;
        for (int id : net.output_indexes()) asked.push_back(net.blobs()[id].name);
        std::shuffle(asked.begin(), asked.end(), graph.rng);
        set_log_level(kLogOff);  // some have been fused away
        for (int k = 0; k < 4; k++) {
            const std::string name = graph.names[graph.blob()];
            asked.insert(asked.begin() + graph.pick((int)asked.size() + 1), name);
        }
        const Shape sizes[] = {kSize, Shape(6, 5, 16), Shape(6, 5, 16)};
        for (const Shape& size : sizes) {
            Blobs inputs = {{"in", image(size, seed)}};
            const int given = graph.blob();
            if (graph.pick(3) == 0 && given > 0)
                inputs[graph.names[given]] = image(Shape(6, 5, graph.channels[given]), seed + 1);
            Extractor probe = net.create_extractor();
            for (auto in = inputs.begin(); in != inputs.end();)
                in = probe.input(in->first.c_str(), in->second) ? inputs.erase(in) : std::next(in);
            compare(net, inputs, asked, graph.pick(2) == 0);
            std::shuffle(asked.begin(), asked.end(), graph.rng);
        }
        set_log_level(level);
        if (testing::Test::HasFailure()) {
            FAIL() << "seed " << seed << "\n" << graph.layers;
        }
    }
}

}  // namespace
}  // namespace quoll
