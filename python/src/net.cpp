#include "net.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "bindings.h"
#include "calls.h"
#include "layer/common/tensorspec.h"
#include "params.h"
#include "quoll/gpu.h"

namespace quoll_python {

using quoll::Blob;
using quoll::Layer;
using quoll::Net;
using quoll::Shape;
using quoll::TensorSpec;

Using::Using(PyNet& net) : lock_(net.running, std::try_to_lock) {
    if (!lock_) throw Error("[Net] it is being loaded by another thread");
}

Changing::Changing(PyNet& net) : lock_(net.running, std::try_to_lock) {
    if (!lock_) throw Error("[Net] it is running in another thread, or in this one; load, clear and keep_blob have to wait");
}

int find_blob(PyNet& net, nb::handle blob) {
    if (!nb::isinstance<nb::str>(blob)) return nb::cast<int>(blob);
    Call messages;
    const int index = net.net.find_blob_index_by_name(nb::cast<std::string>(blob).c_str());
    messages.check(index < 0 ? quoll::kError : quoll::kOk, "there is no such blob");
    return index;
}

namespace {

// Changes the Net's content.
template <class F>
void change(PyNet& self, const char* what, const F& f) {
    const Changing changing(self);
    self.net.opt = self.opt->get();
    for (const std::shared_ptr<Pool>& pool : {self.opt->blob_allocator, self.opt->workspace_allocator})
        if (pool) self.pools.push_back(pool);
    self.generation++;
    call(what, f);
    if (self.net.layers().empty()) self.weights.clear(), self.pools.clear();
}

std::string path_of(nb::handle path) { return nb::cast<std::string>(nb::module_::import_("os").attr("fspath")(path)); }

bool is_path(nb::handle source) { return nb::isinstance<nb::str>(source) || nb::hasattr(source, "__fspath__"); }

void load_param(PyNet& self, nb::handle source) {
    if (is_path(source)) {
        const std::string path = path_of(source);
        const std::string binary = ".param.bin";
        const bool is_binary = path.size() >= binary.size() && path.compare(path.size() - binary.size(), binary.size(), binary) == 0;
        return change(self, "load_param", [&] { return is_binary ? self.net.load_param_bin(path.c_str()) : self.net.load_param(path.c_str()); });
    }
    const Reader reader(source);
    change(self, "load_param", [&] { return self.net.load_param(reader); });
}

void load_param_bin(PyNet& self, nb::handle source) {
    if (is_path(source)) {
        const std::string path = path_of(source);
        return change(self, "load_param_bin", [&] { return self.net.load_param_bin(path.c_str()); });
    }
    const Reader reader(source);
    change(self, "load_param_bin", [&] { return self.net.load_param_bin(reader); });
}

void load_param_mem(PyNet& self, const std::string& text) {
    change(self, "load_param_mem", [&] { return self.net.load_param_mem(text.c_str()); });
}

void load_model(PyNet& self, nb::handle source) {
    if (is_path(source)) {
        const std::string path = path_of(source);
        return change(self, "load_model", [&] { return self.net.load_model(path.c_str()); });
    }
    const Reader reader(source);
    change(self, "load_model", [&] { return self.net.load_model(reader); });
}

void load_model_mem(PyNet& self, nb::bytes weights) {
    const unsigned char* const data = (const unsigned char*)weights.c_str();
    const size_t size = weights.size();
    change(self, "load_model_mem", [&] { return self.net.load_model(data, size) > 0 || size == 0 ? quoll::kOk : quoll::kError; });
    self.weights.push_back(weights);
}

void clear(PyNet& self) {
    change(self, "clear", [&] {
        self.net.clear();
        return 0;
    });
}

void keep_blob(PyNet& self, nb::handle blob) {
    const Changing changing(self);
    const int index = find_blob(self, blob);
    call("keep_blob", [&] { return self.net.keep_blob(index); });
}

void register_layer(PyNet& self, nb::handle type, nb::object create, nb::object destroy) {
    const Changing changing(self);
    self.layer_classes.emplace_back(new LayerClass{create, destroy});
    LayerClass* const layer = self.layer_classes.back().get();
    call("register_custom_layer", [&] {
        const AcquireGil gil;
        return nb::isinstance<nb::str>(type)
                   ? self.net.register_custom_layer(nb::cast<std::string>(type).c_str(), create_python_layer, destroy_python_layer, layer)
                   : self.net.register_custom_layer(nb::cast<int>(type), create_python_layer, destroy_python_layer, layer);
    });
}

// A layer as the model has it.
struct LayerInfo {
    int index;
    std::string type, name;
    std::vector<std::string> bottoms, tops;
    nb::object object;  // of a layer in Python
};

LayerInfo describe(const Net& net, int index) {
    const Layer& layer = *net.layers()[(size_t)index];
    LayerInfo info{index, layer.type, layer.name, {}, {}, python_object(layer)};
    for (int blob : layer.bottoms) info.bottoms.push_back(net.blobs()[(size_t)blob].name);
    for (int blob : layer.tops) info.tops.push_back(net.blobs()[(size_t)blob].name);
    return info;
}

std::vector<LayerInfo> layers(PyNet& self) {
    const Using lock(self);
    std::vector<LayerInfo> all;
    for (size_t i = 0; i < self.net.layers().size(); i++) all.push_back(describe(self.net, (int)i));
    return all;
}

// An input or output: the blob, and the array that a converted model says it stands for.
struct Port {
    int index;
    std::string name;
    std::optional<std::vector<int>> sizes;
    std::string dtype;
    TensorSpec array;

    std::optional<std::vector<int>> array_sizes() const {
        if (!array.said()) return std::nullopt;
        std::vector<int> all;
        for (int i = 0; i < array.rank; i++) all.push_back(array.size(i));
        return all;
    }
};

// The fields of tensor_spec_params, of a layer that has them. By name: classes of the library cannot be told from here.
class SpecReader : public quoll::ParamVisitor {
public:
    TensorSpec spec;
    void operator()(int, const char* name, int& field, int, const char*, quoll::Range) override {
        const std::string n = name;
        if (n == "rank") spec.rank = field;
        if (n == "element_type") spec.element_type = field;
        if (n == "batch") spec.batch = field;
        if (n == "any_rank") spec.any_rank = field;
    }
    void operator()(int, const char*, float&, float, const char*, quoll::Range) override {}
    void ints(int, const char* name, quoll::Mat& field, const char*, quoll::Range) override {
        if (std::string(name) == "sizes") spec.sizes = field;
    }
    void floats(int, const char*, quoll::Mat&, const char*, quoll::Range) override {}
    void operator()(int, const char*, std::string&, const char*, const char*) override {}
};

Port port_of(const Net& net, int blob, bool is_input) {
    const Blob& b = net.blobs()[(size_t)blob];
    const Layer& layer = *net.layers()[(size_t)b.producer];
    Port port{blob, b.name, std::nullopt, "", TensorSpec()};
    Shape shape = b.shape.logical_shape();
    std::vector<Shape> tops;
    if (is_input && shape.dims == 0 && layer.infer_shapes({}, tops) == quoll::kOk && !tops.empty()) shape = tops[0];
    if (shape.dims != 0) {
        port.sizes.emplace();
        if (shape.n != 1) port.sizes->push_back(shape.n);
        for (int i = 0; i < shape.dims; i++) port.sizes->push_back(shape.size(i));
    }
    port.dtype = dtype_text(shape.dtype);
    if (layer.userdata == nullptr) {
        SpecReader reader;
        const_cast<Layer&>(layer).visit_params(reader);  // visiting changes nothing
        port.array = reader.spec;
    }
    return port;
}

std::vector<Port> ports(PyNet& self, bool inputs) {
    const Using lock(self);
    std::vector<Port> all;
    for (int blob : inputs ? self.net.input_indexes() : self.net.output_indexes()) all.push_back(port_of(self.net, blob, inputs));
    return all;
}

std::vector<std::string> names(const std::vector<const char*>& list) { return std::vector<std::string>(list.begin(), list.end()); }

void bind_graph(nb::module_& m) {
    nb::class_<LayerInfo>(m, "LayerInfo", "A layer of a loaded model.")
        .def_ro("index", &LayerInfo::index)
        .def_ro("type", &LayerInfo::type)
        .def_ro("name", &LayerInfo::name)
        .def_ro("bottoms", &LayerInfo::bottoms, "Names of the blobs that it reads.")
        .def_ro("tops", &LayerInfo::tops, "Names of the blobs that it makes; none for a layer that was folded away.")
        .def_ro("object", &LayerInfo::object, "The Python object of a custom layer, else None.")
        .def("__repr__", [](const LayerInfo& l) { return "<quoll.LayerInfo " + l.type + " " + l.name + ">"; });
    nb::class_<Port>(m, "Port", "An input or output of a model.")
        .def_ro("index", &Port::index, "Of the blob.")
        .def_ro("name", &Port::name)
        .def_ro("sizes", &Port::sizes, "Of the blob (w), (h, w), (c, h, w) or (c, d, h, w) as the model says; None: it does not.")
        .def_ro("dtype", &Port::dtype)
        .def_prop_ro("array_sizes", &Port::array_sizes,
                     "The axes of the array that a converted model declares, -1: any size; None: the model does not say.")
        .def_prop_ro("element_type", [](const Port& p) { return p.array.element_type; }, "Of that array, numbered as in ONNX.")
        .def_prop_ro("batch", [](const Port& p) { return p.array.batch != 0; }, "Axis 0 of that array is the batch.")
        .def_prop_ro("any_rank", [](const Port& p) { return p.array.any_rank != 0; })
        .def("__repr__", [](const Port& p) {
            std::string text = "<quoll.Port " + p.name;
            if (p.sizes) text += std::string(" ") + nb::str(nb::tuple(nb::cast(*p.sizes))).c_str();
            return text + ">";
        });
    nb::class_<Blob>(m, "Blob", "An edge of the graph.")
        .def(nb::init<>())
        .def_rw("name", &Blob::name)
        .def_rw("producer", &Blob::producer, "Index of the layer that makes it.")
        .def_rw("consumer", &Blob::consumer, "Index of the last layer that reads it, -1: none.")
        .def_rw("shape", &Blob::shape, "The size that the param file says, as a Mat without values.");
}

}  // namespace

void bind_net(nb::module_& m) {
    bind_graph(m);
    nb::class_<PyNet>(m, "Net", nb::dynamic_attr(), nb::is_weak_referenceable())
        .def(nb::init<>())
        .def_rw("opt", &PyNet::opt, "Option; set before loading.")
        .def("load_param", &load_param, nb::arg("source"),
             "The graph: a path (binary if it ends in .param.bin) or a file object with read(n).")
        .def("load_param_bin", &load_param_bin, nb::arg("source"), "The graph in binary form.")
        .def("load_param_mem", &load_param_mem, nb::arg("text"), "The graph from text.")
        .def("load_model", &load_model, nb::arg("source"),
             "The weights: a path, a file object with read(n), or DataReaderFromEmpty(). Fuses layers and prepares them.")
        .def("load_model_mem", &load_model_mem, nb::arg("weights"), "The weights from bytes, which are used in place.")
        .def("keep_blob", &keep_blob, nb::arg("blob"),
             "Between load_param and load_model: no layer may be fused across this blob, which will be given or extracted.")
        .def("clear", &clear, "Unloads everything; registered layers stay registered.")
        .def("register_custom_layer", &register_layer, nb::arg("type"), nb::arg("creator"), nb::arg("destroyer") = nb::none(),
             "Makes a layer type known, by name or index, or replaces a built-in one; before load_param. creator() makes the object.")
        .def("set_vulkan_device",
             [](PyNet& self, int index) {
                 const Changing changing(self);
                 if (index < 0 || index >= quoll::get_gpu_count())
                     throw Error("set_vulkan_device: device " + std::to_string(index) + ", there are " + std::to_string(quoll::get_gpu_count()));
                 self.net.set_vulkan_device(index);
             },
             nb::arg("device_index"), "The device for opt.use_vulkan_compute; before load_model.")
        .def("release_buffers", [](PyNet& self) { self.net.release_buffers(); }, "Frees the memory that runs have left for the next ones.")
        .def("layers", &layers, "[LayerInfo] in file order.")
        .def("blobs",
             [](PyNet& self) {
                 const Using lock(self);
                 return self.net.blobs();
             },
             "[Blob], by index.")
        .def_prop_ro("inputs", [](PyNet& self) { return ports(self, true); }, "[Port]")
        .def_prop_ro("outputs", [](PyNet& self) { return ports(self, false); }, "[Port]")
        .def("input_names", [](PyNet& self) { const Using lock(self); return names(self.net.input_names()); })
        .def("output_names", [](PyNet& self) { const Using lock(self); return names(self.net.output_names()); })
        .def("input_indexes", [](PyNet& self) { const Using lock(self); return self.net.input_indexes(); })
        .def("output_indexes", [](PyNet& self) { const Using lock(self); return self.net.output_indexes(); });
}

}  // namespace quoll_python
