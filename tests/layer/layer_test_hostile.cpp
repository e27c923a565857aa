// Inputs that no caller should give, to every operator of the registry: empty ones, one value, all
// numbers of axes, axes as large as ints go. Each operator answers with a result, or with a
// negative code after a message; it runs in a process of its own with little memory, so that a
// crash, a hang or an absurd allocation is seen and named.
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "failing_heap.h"
#include "layer_test_private.h"

#ifdef QUOLL_SANITIZED
#define QUOLL_TESTS_LIMIT_MEMORY 0  // sanitizers map more than any limit
#else
#define QUOLL_TESTS_LIMIT_MEMORY 1
#endif

namespace quoll {

namespace {

// What a process may take beyond what it has, and how long it may run.
const size_t kMostMemory = 256 << 20;
const unsigned kMostSeconds = 120;
// Cases of a table that are tried. Large inputs take an emulator minutes.
#ifdef QUOLL_EMULATED_CPU
const size_t kCases = 1;
#else
const size_t kCases = 2;
#endif
// Floats in the block that large inputs show.
const size_t kBlock = 1 << 18;

// Seen by parent and child.
struct Report {
    char doing[4096];  // for the message after a crash
    char wrong[4096];  // empty: all is well
};

int g_messages = 0;
void count_message(LogLevel, const char*, void*) { g_messages++; }

std::string text_of(const std::vector<Shape>& shapes) {
    std::string text;
    for (const Shape& s : shapes) text += " [" + shape_text(s) + "]";
    return text;
}

Mat empty_of(const Shape& s) {
    Mat m;
    m.dims = s.dims, m.w = s.w, m.h = s.h, m.d = s.d, m.c = s.c;
    m.elemsize = 4, m.elempack = 1;
    return m;
}

// A view of zeros.
Mat view_of(const Shape& s, float* block) {
    Mat m = empty_of(s);
    m.cstep = (size_t)s.w * s.h * s.d;
    m.data = block;
    return m;
}

std::vector<Mat> small_inputs(float* block) {
    std::vector<Mat> inputs = {Mat(),
                               empty_of(Shape(0)),
                               empty_of(Shape(0, 3)),
                               empty_of(Shape(3, 0)),
                               empty_of(Shape(4, 4, 0)),
                               empty_of(Shape(0, 4, 4)),
                               empty_of(Shape(4, 4, 0, 4))};
    for (const Shape& s :
         {Shape(1), Shape(1, 1), Shape(1, 1, 1), Shape(1, 1, 1, 1), Shape(16), Shape(16, 16),
          Shape(4, 4, 16), Shape(4, 4, 4, 16), Shape(1, 4096), Shape(4096, 1), Shape(2, 2, 1024),
          Shape((int)kBlock), Shape(512, 512), Shape(512, 512, 1), Shape(4, 1, (int)kBlock / 4)})
        inputs.push_back(view_of(s, block));
    return inputs;
}

std::vector<Shape> huge_shapes() {
    const int big = INT_MAX;
    return {Shape(big),          Shape(big, big),       Shape(big, 1),
            Shape(1, big),       Shape(65536, 65536),   Shape(46341, 46341, 16),
            Shape(1, 1, big),    Shape(big, 1, 3),      Shape(1, big, 3),
            Shape(big, big, 3),  Shape(big, big, big),  Shape(1 << 20, 1 << 20, 1 << 20),
            Shape(1, 1, big, 3), Shape(big, 3, 3, big), Shape(big, big, big, big)};
}

class Child {
public:
    Child(Report* report, float* block) : report_(report), block_(block) {}

    void run(const std::string& type, const std::vector<LayerCase>& cases) {
        for (size_t i = 0; i < std::min(cases.size(), kCases); i++) {
            PreparedCase p;
            if (!prepare(type.c_str(), cases[i], i, &p)) return wrong("the case was refused");
            for (const bool reference : forms_tested()) {
                Option opt;
                opt.num_threads = 1;
                name_ = p.text + (reference ? ", reference," : ", fast,");
                const LayerPtr layer = make_case_layer(type.c_str(), cases[i], p, reference, opt);
                if (!layer) return wrong("it cannot be made");
                try_all(*layer, p);
            }
        }
    }

private:
    // Other numbers of inputs than the case has.
    void try_counts(const Layer& layer, const PreparedCase& p) {
        if (layer.one_blob_only) return;  // the Net checks those
        const Mat any = view_of(Shape(4, 4, 16), block_);
        for (size_t count = 0; count <= p.inputs.size() + 2; count++) {
            // No spare capacity, so that a read of an input too many is seen.
            std::vector<Mat> inputs(count, p.inputs.empty() ? any : p.inputs[0]);
            std::copy_n(p.inputs.begin(), std::min(count, p.inputs.size()), inputs.begin());
            forward(layer, inputs);
            infer(layer, logical_shapes(inputs));
            plan(layer, logical_shapes(inputs));
        }
    }

    void try_all(const Layer& layer, const PreparedCase& p) {
        try_counts(layer, p);
        const std::vector<Mat> odd = small_inputs(block_);
        for (size_t j = 0; j < std::max<size_t>(p.inputs.size(), 1); j++) {
            for (const Mat& m : odd) {
                std::vector<Mat> one = p.inputs, all(p.inputs.size(), m);
                if (j < one.size()) one[j] = m;
                forward(layer, one);
                if (j == 0) forward(layer, all);
            }
            for (const Shape& s : huge_shapes()) {
                std::vector<Shape> one = logical_shapes(p.inputs), all(one.size(), s);
                if (j < one.size()) one[j] = s;
                infer(layer, one);
                if (j == 0) infer(layer, all);
            }
        }
    }

    void forward(const Layer& layer, const std::vector<Mat>& inputs) {
        doing("forward of", logical_shapes(inputs));
        if (check_input_sizes(layer, logical_shapes(inputs)) != 0) return;  // as the Extractor does
        Option opt;
        opt.num_threads = 1;
        g_messages = 0;
        std::vector<Mat> outputs;
        const int status = run_status(layer, inputs, &outputs, opt, false);
        if (status > 0) wrong("a positive status");
        if (status < 0 && status != kOutOfMemory && g_messages == 0)
            wrong("an error without words");
        if (status != 0) return;
        std::vector<Shape> inferred;
        if (layer.infer_shapes(logical_shapes(inputs), inferred) != 0 ||
            !shapes_hold(inferred, outputs))
            wrong("infer_shapes says otherwise");
    }

    void plan(const Layer& layer, const std::vector<Shape>& inputs) {
        doing("plan of", inputs);
        Option opt;
        opt.num_threads = 1;
        std::shared_ptr<const LayerPlan> made;
        if (layer.plan(inputs, opt, &made) > 0) wrong("a positive status");
    }

    void infer(const Layer& layer, const std::vector<Shape>& inputs) {
        doing("infer_shapes of", inputs);
        g_messages = 0;
        std::vector<Shape> outputs;
        const int status = layer.infer_shapes(inputs, outputs);
        if (status > 0 || (status < 0 && g_messages == 0)) wrong("an error without words");
        for (const Shape& s : outputs) {
            bool sane = status != 0 || (s.dims >= 0 && s.dims <= 4);
            for (int axis = 0; status == 0 && sane && axis < s.dims; axis++)
                sane = s.size(axis) > 0 || (layer.support_zero_size && s.size(axis) == 0);
            if (!sane) wrong(("an output of " + shape_text(s)).c_str());
        }
    }

    void doing(const char* what, const std::vector<Shape>& shapes) {
        snprintf(report_->doing, sizeof(report_->doing), "%s %s%s", name_.c_str(), what,
                 text_of(shapes).c_str());
    }
    void wrong(const char* what) {
        const std::string text = std::string(report_->doing) + ": " + what;
        if (!report_->wrong[0])
            text.copy(report_->wrong, sizeof(report_->wrong) - 1);  // the block was zeroed
    }

    Report* report_;
    float* block_;
    std::string name_;
};

void limit_memory() {
    heap_limit = kMostMemory;
#if QUOLL_TESTS_LIMIT_MEMORY
    size_t pages = 0;
    if (FILE* f = fopen("/proc/self/statm", "r")) {
        if (fscanf(f, "%zu", &pages) != 1) pages = 0;
        fclose(f);
    }
    const rlim_t most = pages * (size_t)sysconf(_SC_PAGESIZE) + kMostMemory;
    const rlimit limit = {most, most};
    if (pages) setrlimit(RLIMIT_AS, &limit);
#endif
    alarm(kMostSeconds);
}

void run_in_child(const std::string& type, const std::vector<LayerCase>& cases, Report* report,
                  float* block) {
    memset(report, 0, sizeof(*report));
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
        limit_memory();
        set_log_sink(count_message, nullptr);
        Child(report, block).run(type, cases);
        _exit(0);
    }
    int status = 0;
    ASSERT_EQ(pid, waitpid(pid, &status, 0));
    if (WIFSIGNALED(status))
        ADD_FAILURE() << report->doing << ": ended by signal " << WTERMSIG(status) << ", "
                      << strsignal(WTERMSIG(status));
    else
        EXPECT_EQ(0, WEXITSTATUS(status)) << report->doing;
    EXPECT_STREQ("", report->wrong) << type;
}

}  // namespace

TEST(LayerTest, hostile_inputs_to_every_operator) {
    const size_t bytes = sizeof(Report) + kBlock * 4 + 4096;
    void* shared = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(MAP_FAILED, shared);
    Report* report = (Report*)shared;
    float* block = (float*)((char*)shared + align_size(sizeof(Report), 4096));
    const std::vector<LayerCase> plain = {LayerCase({}, ""), LayerCase({Shape(2, 3, 4)}, "")};
    for (const std::string& type : layer_types()) {
        const auto table = case_tables().find(type);
        run_in_child(type, table == case_tables().end() ? plain : *table->second, report, block);
    }
    munmap(shared, bytes);
}

}  // namespace quoll
