// Layers whose work a Python object does, and built-in layers by themselves.
#include "layer.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "bindings.h"
#include "calls.h"
#include "memory.h"
#include "option.h"
#include "params.h"

namespace quoll_python {

using quoll::Layer;
using quoll::Mat;
using quoll::ModelBin;
using quoll::Option;
using quoll::ParamDict;

namespace {

PyOption option_for_python(const Option& option) {
    PyOption result;
    result.values = option;
    // Memory of the run must not outlive it.
    result.values.blob_allocator = result.values.workspace_allocator = nullptr;
    return result;
}

// The object's methods, which quoll.Layer and quoll.ncnn.Layer have: _load_param(ParamDict),
// _load_model(ModelBin), _create_pipeline(Option), _forward([Mat], number of outputs, Option) ->
// [Mat].
class PythonLayer : public Layer {
public:
    explicit PythonLayer(nb::object o) : object(std::move(o)) {}
    ~PythonLayer() override {
        if (!Py_IsInitialized()) {
            (void)object.release();
            return;
        }
        const AcquireGil gil;
        object.reset();
    }

    int load_param(const ParamDict& pd) override {
        return run([&] {
            object.attr("type") = type;
            object.attr("name") = name;
            object.attr("_load_param")(nb::cast(pd, nb::rv_policy::copy));
        });
    }
    int load_model(const ModelBin& mb) override {
        return run([&] {
            const nb::object weights = nb::cast(Weights{&mb}, nb::rv_policy::move);
            struct Close {
                nb::handle weights;
                ~Close() { nb::cast<Weights&>(weights).source = nullptr; }
            } close{weights};
            object.attr("_load_model")(weights);
        });
    }
    int create_pipeline(const Option& opt) override {
        return run([&] {
            object.attr("_create_pipeline")(nb::cast(option_for_python(opt), nb::rv_policy::move));
        });
    }
    int destroy_pipeline(const Option&) override { return quoll::kOk; }

    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override {
        return run([&] {
            nb::list inputs;
            for (const Mat& bottom : bottoms)
                inputs.append(nb::cast(for_python(bottom), nb::rv_policy::move));
            const nb::object result = object.attr("_forward")(
                inputs, tops.size(), nb::cast(option_for_python(opt), nb::rv_policy::move));
            const size_t count = nb::len(result);
            if (count != tops.size())
                throw nb::value_error(("forward gave " + std::to_string(count) +
                                       " outputs, the layer has " + std::to_string(tops.size()))
                                          .c_str());
            size_t i = 0;
            // Copies: layers may work in place on what they are given.
            for (nb::handle output : result) tops[i++] = copy_from_object(output);
        });
    }

    nb::object object;

private:
    // What Python keeps must not lie in memory of the run.
    static Mat for_python(const Mat& mat) {
        if (mat.allocator == nullptr && mat.refcount) return mat;
        return mat.empty() ? mat : mat.clone();
    }

    template <class F>
    int run(const F& f) const {
        const AcquireGil gil;
        try {
            f();
            return quoll::kOk;
        } catch (nb::python_error& error) {
            const int status =
                fail("%s: %s", nb::type_name(error.type()).c_str(), nb::str(error.value()).c_str());
            keep_exception(std::move(error));
            return status;
        } catch (const std::exception& error) {
            return fail("%s", error.what());
        }
    }
};

}  // namespace

Layer* create_python_layer(void* userdata) {
    const AcquireGil gil;
    try {
        return new PythonLayer(((LayerClass*)userdata)->create());
    } catch (nb::python_error& error) {
        keep_exception(std::move(error));
        return nullptr;
    }
}

void destroy_python_layer(Layer* layer, void* userdata) {
    if (Py_IsInitialized()) {
        const AcquireGil gil;
        const nb::object& destroy = ((LayerClass*)userdata)->destroy;
        if (destroy.is_valid() && !destroy.is_none()) try {
                destroy(static_cast<PythonLayer*>(layer)->object);
            } catch (nb::python_error& error) {
                error.discard_as_unraisable("the destroyer of a layer");
            }
    }
    delete layer;
}

nb::object python_object(const Layer& layer) {
    // Built-in layers have no userdata, and, as the library, no type information to ask.
    return layer.userdata ? static_cast<const PythonLayer&>(layer).object : nb::none();
}

namespace {

std::vector<Mat> mats_of(nb::handle objects) {
    std::vector<Mat> mats;
    for (nb::handle object : objects) mats.push_back(safe_to_run(mat_from_object(object)));
    return mats;
}

// A layer of the engine by itself. Calls in another order than that of the stages are errors.
struct BuiltinLayer {
    std::unique_ptr<Layer> layer;
    enum Stage { kMade, kHasParams, kHasWeights, kReady } stage = kMade;

    void need(Stage least, const char* function) const {
        if (stage < least)
            throw Error(std::string(function) +
                        ": load_param, load_model and create_pipeline have to come first, in this "
                        "order, and to succeed");
    }
    // To the next stage, if f() succeeds.
    template <class F>
    void advance(Stage to, const char* function, F f) {
        need((Stage)(to - 1), function);
        stage = (Stage)(to - 1);
        call(function, f);
        stage = to;
    }
};

void load_model(BuiltinLayer& l, nb::handle weights) {
    const auto load = [&](const quoll::ModelBin& source) {
        l.advance(BuiltinLayer::kHasWeights, "load_model",
                  [&] { return l.layer->load_model(source); });
    };
    if (nb::isinstance<Weights>(weights)) {
        const Weights& from = nb::cast<Weights&>(weights);
        if (!from.source) throw Error("ModelBin: it is for the time of load_model only");
        return load(*from.source);
    }
    std::vector<Mat> mats;
    for (nb::handle object : weights) mats.push_back(mat_from_object(object).clone());
    mats.resize(mats.size() + 16);  // a layer that asks for more gets empty ones
    load(quoll::ModelBinFromMatArray(mats.data()));
}

void create_pipeline(BuiltinLayer& l, const PyOption& opt) {
    // The first one has taken the weights.
    if (l.stage == BuiltinLayer::kReady)
        throw Error("create_pipeline: the pipeline is there already");
    if (l.stage == BuiltinLayer::kHasParams) load_model(l, nb::tuple());
    l.advance(BuiltinLayer::kReady, "create_pipeline",
              [&] { return l.layer->create_pipeline(opt.get()); });
}

// Runs a layer by itself; returns its outputs.
std::vector<Mat> forward(BuiltinLayer& l, nb::handle inputs, const PyOption& opt) {
    // Programs call layers without weights right after load_param.
    if (l.stage == BuiltinLayer::kHasParams || l.stage == BuiltinLayer::kHasWeights)
        create_pipeline(l, opt);
    l.need(BuiltinLayer::kReady, "forward");
    const Layer& layer = *l.layer;
    std::vector<Mat> bottoms = mats_of(inputs), tops(std::max<size_t>(layer.tops.size(), 1));
    call("forward", [&] {
        const Option option = opt.get();
        if (!layer.support_packing)
            for (Mat& bottom : bottoms)
                if (bottom.elempack != 1) return layer.fail("forward: expected elempack 1");
        if (layer.one_blob_only) {
            if (bottoms.size() != 1)
                return layer.fail("forward: expected 1 input, got %d", (int)bottoms.size());
            return layer.forward(bottoms[0], tops[0], option);
        }
        return layer.forward(bottoms, tops, option);
    });
    return tops;
}

void destroy_pipeline(BuiltinLayer& l, const PyOption& opt) {
    l.need(BuiltinLayer::kReady, "destroy_pipeline");
    l.stage = BuiltinLayer::kMade;
    call("destroy_pipeline", [&] { return l.layer->destroy_pipeline(opt.get()); });
}

}  // namespace

void bind_layer(nb::module_& m) {
    nb::class_<BuiltinLayer>(m, "BuiltinLayer",
                             "A layer of the engine, by itself: create_layer(type), load_param, "
                             "load_model (if it has weights), create_pipeline, "
                             "forward, in this order.")
        .def_prop_ro("type", [](const BuiltinLayer& l) { return l.layer->type; })
        .def_prop_ro("name", [](const BuiltinLayer& l) { return l.layer->name; })
        .def_prop_ro("typeindex", [](const BuiltinLayer& l) { return l.layer->typeindex; })
        .def_prop_ro("one_blob_only", [](const BuiltinLayer& l) { return l.layer->one_blob_only; })
        .def_prop_ro("support_inplace",
                     [](const BuiltinLayer& l) { return l.layer->support_inplace; })
        .def_prop_ro("support_packing",
                     [](const BuiltinLayer& l) { return l.layer->support_packing; })
        .def(
            "load_param",
            [](BuiltinLayer& l, const ParamDict& pd) {
                l.advance(BuiltinLayer::kHasParams, "load_param",
                          [&] { return l.layer->load_param(pd); });
            },
            nb::arg("pd"))
        .def("load_model", &load_model, nb::arg("weights"),
             "A ModelBin, or a list of Mats or arrays, one a weight.")
        .def("create_pipeline", &create_pipeline, nb::arg("opt") = PyOption())
        .def("destroy_pipeline", &destroy_pipeline, nb::arg("opt") = PyOption())
        .def("forward", &forward, nb::arg("inputs"), nb::arg("opt") = PyOption(),
             "The outputs for a list of Mats or arrays.");
    m.def(
        "create_layer",
        [](const std::string& type) {
            std::unique_ptr<BuiltinLayer> made(new BuiltinLayer);
            call("create_layer: there is no layer type '" + type + "'", [&] {
                made->layer.reset(quoll::create_layer(type.c_str()));
                return made->layer ? quoll::kOk : quoll::kError;
            });
            return made;
        },
        nb::arg("type"), "A built-in layer in the fastest form that this machine has.");
    m.def(
        "layer_to_index",
        [](const std::string& type) { return quoll::layer_to_index(type.c_str()); },
        nb::arg("type"), "The type's index, -1 if there is none.");
    m.def("layer_types", &quoll::layer_types, "All built-in layer types.");
}

}  // namespace quoll_python
