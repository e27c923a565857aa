// Runs of a Net, and the times of its layers.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <mutex>

#include "arrays.h"
#include "bindings.h"
#include "calls.h"
#include "memory.h"
#include "net.h"

namespace quoll_python {

using quoll::Layer;
using quoll::Mat;

namespace {

typedef std::chrono::steady_clock Clock;

struct LayerTime {
    std::string type, name, algorithm, backend;
    double start_ms, ms;
    std::vector<std::vector<int>> outputs;  // sizes
};

class Timeline : public quoll::LayerObserver {
public:
    std::vector<LayerTime> times;

    void begin() {
        times.clear();
        begin_ = Clock::now();
    }
    void planned(const Layer&, const quoll::LayerPlan* plan) override { algorithm_ = plan ? plan->algorithm() : ""; }
    void runs_on(const Layer&, const char* backend) override { backend_ = backend; }
    void before(const Layer&) override { layer_begin_ = Clock::now(); }
    void after(const Layer& layer, const std::vector<Mat>& outputs) override {
        const Clock::time_point end = Clock::now();
        LayerTime time{layer.type, layer.name, algorithm_, backend_.empty() ? "cpu" : backend_, ms(layer_begin_ - begin_), ms(end - layer_begin_), {}};
        for (const Mat& output : outputs) {
            const quoll::Shape shape = output.logical_shape();
            time.outputs.emplace_back();
            for (int i = 0; i < shape.dims; i++) time.outputs.back().push_back(shape.size(i));
        }
        times.push_back(time);
        algorithm_.clear();
        backend_.clear();
    }

private:
    static double ms(Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); }
    Clock::time_point begin_, layer_begin_;
    std::string algorithm_, backend_;
};

struct PyExtractor {
    explicit PyExtractor(std::shared_ptr<PyNet> n)
        : net(n), opt(n->opt), generation(n->generation), run(n->net.create_extractor()) {
        run.set_num_threads(opt->values.num_threads);
        run.set_blob_allocator(pool_of(opt->blob_allocator));
        run.set_workspace_allocator(pool_of(opt->workspace_allocator));
        run.set_light_mode(opt->values.lightmode);
    }

    const std::shared_ptr<PyNet> net;
    const std::shared_ptr<PyOption> opt;
    std::shared_ptr<Pool> blob_allocator, workspace_allocator;
    std::vector<std::shared_ptr<Pool>> former;  // blobs and plans may still refer to them
    const unsigned generation;
    std::mutex running;
    Timeline timeline;
    bool timed = false;
    quoll::Extractor run;  // goes first
};

std::shared_ptr<PyExtractor> create(std::shared_ptr<PyNet> net) {
    const Using lock(*net);
    return std::make_shared<PyExtractor>(net);
}

// Holds an Extractor and its Net for a call; throws when another thread has it, or the Net has another model by now.
class Running {
public:
    explicit Running(PyExtractor& ex) : net_(*ex.net), lock_(ex.running, std::try_to_lock) {
        if (!lock_) throw Error("[Extractor] it is in use by another thread; make one for each, or take a quoll.Pool");
        if (ex.generation != ex.net->generation) throw Error("[Extractor] the Net was loaded anew after this Extractor was created");
    }

private:
    const Using net_;
    const std::unique_lock<std::mutex> lock_;
};

void input(PyExtractor& self, nb::handle blob, nb::handle value) {
    const Running lock(self);
    const Mat mat = safe_to_run(mat_from_object(value));
    const int index = find_blob(*self.net, blob);
    call("input", [&] { return self.run.input(index, mat); });
}

Mat extract(PyExtractor& self, nb::handle blob, int type) {
    const Running lock(self);
    const int index = find_blob(*self.net, blob);
    Mat mat;
    self.timeline.begin();
    call("extract", [&] { return self.run.extract(index, mat, type); });
    // A view of memory that somebody else keeps.
    return mat.refcount || mat.empty() ? mat : mat.clone();
}

void set_pool(PyExtractor& self, std::shared_ptr<Pool> PyExtractor::*member, std::shared_ptr<Pool> pool,
              void (quoll::Extractor::*set)(quoll::Allocator*)) {
    const Running lock(self);
    self.former.push_back(self.*member);
    self.*member = pool;
    (self.run.*set)(pool_of(pool));
}

void set_timed(PyExtractor& self, bool on) {
    const Running lock(self);
    self.run.set_layer_observer(on ? &self.timeline : nullptr);
}

}  // namespace

void bind_extractor(nb::module_& m) {
    nb::class_<LayerTime>(m, "LayerTime", "When a layer ran, and for how long.")
        .def_ro("type", &LayerTime::type)
        .def_ro("name", &LayerTime::name)
        .def_ro("algorithm", &LayerTime::algorithm, "'winograd', ...; '' where there is no choice.")
        .def_ro("backend", &LayerTime::backend)
        .def_ro("start_ms", &LayerTime::start_ms, "From the beginning of extract().")
        .def_ro("ms", &LayerTime::ms)
        .def_ro("outputs", &LayerTime::outputs, "Sizes of its outputs.");
    nb::class_<PyExtractor>(m, "Extractor",
                            "One inference: give the inputs, ask for blobs. Only what an asked blob needs is run; results are kept. A new one\n"
                            "for each image (cheap), or clear(). For one thread at a time.")
        .def("input", &input, nb::arg("blob"), nb::arg("value"),
             "Gives a blob, by name or index, a Mat or an array (w,), (h, w), (c, h, w) or (c, d, h, w). The array's memory is used in place.")
        .def("extract", &extract, nb::arg("blob"), nb::arg("type") = 0,
             "The Mat of a blob, by name or index: float32 for storage types and elempack 1; type=1: as the engine has it. Runs without the GIL.")
        .def("clear", [](PyExtractor& self) { const Running lock(self); self.run.clear(); }, "Forgets inputs and results.")
        .def("set_light_mode", [](PyExtractor& self, bool on) { const Running lock(self); self.run.set_light_mode(on); }, nb::arg("enable"))
        .def("set_num_threads",
             [](PyExtractor& self, int n) {
                 const Running lock(self);
                 if (n < 1) throw nb::value_error(("num_threads: expected at least 1, got " + std::to_string(n)).c_str());
                 self.run.set_num_threads(n);
             },
             nb::arg("num_threads"))
        .def("set_blob_allocator",
             [](PyExtractor& self, std::shared_ptr<Pool> pool) { set_pool(self, &PyExtractor::blob_allocator, pool, &quoll::Extractor::set_blob_allocator); },
             nb::arg("allocator").none())
        .def("set_workspace_allocator",
             [](PyExtractor& self, std::shared_ptr<Pool> pool) {
                 set_pool(self, &PyExtractor::workspace_allocator, pool, &quoll::Extractor::set_workspace_allocator);
             },
             nb::arg("allocator").none())
        .def("time_layers", &set_timed, nb::arg("enable") = true, "From now on layer_times() tells of each extract().")
        .def("layer_times", [](PyExtractor& self) { const Running lock(self); return self.timeline.times; },
             "[LayerTime] of the last extract(), in the order in which the layers ran.");
    m.def("create_extractor", &create, nb::arg("net"), "An Extractor of a Net; it keeps the Net alive.");
}

}  // namespace quoll_python
