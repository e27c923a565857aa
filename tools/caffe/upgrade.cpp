#include "caffe/upgrade.h"

#include <algorithm>
#include <map>

#include "quoll/log.h"

namespace quoll {

namespace {

using google::protobuf::FieldDescriptor;

// "INNER_PRODUCT" of the old enum as the type that replaced it.
std::string new_type(const std::string& old) {
    static const struct {
        const char *old, *type;
    } kIrregular[] = {{"ABSVAL", "AbsVal"},
                      {"ARGMAX", "ArgMax"},
                      {"BNLL", "BNLL"},
                      {"HDF5_DATA", "HDF5Data"},
                      {"HDF5_OUTPUT", "HDF5Output"},
                      {"LRN", "LRN"},
                      {"MVN", "MVN"},
                      {"RELU", "ReLU"},
                      {"SOFTMAX_LOSS", "SoftmaxWithLoss"},
                      {"TANH", "TanH"}};
    for (const auto& entry : kIrregular)
        if (old == entry.old) return entry.type;
    std::string type;
    bool upper = true;
    for (char ch : old) {
        if (ch != '_') type += upper ? ch : (char)(ch - 'A' >= 0 && ch <= 'Z' ? ch + 32 : ch);
        upper = ch == '_';
    }
    return type;
}

// Copies each field of an old layer to the field of the same name.
void upgrade_layer(const caffe::V1LayerParameter& old, caffe::LayerParameter* layer) {
    layer->set_name(old.name());
    layer->set_type(new_type(caffe::V1LayerParameter::LayerType_Name(old.type())));
    *layer->mutable_bottom() = old.bottom();
    *layer->mutable_top() = old.top();
    *layer->mutable_include() = old.include();
    *layer->mutable_exclude() = old.exclude();
    *layer->mutable_blobs() = old.blobs();
    for (const std::string& name : old.param()) layer->add_param()->set_name(name);
    std::vector<const FieldDescriptor*> fields;
    old.GetReflection()->ListFields(old, &fields);
    for (const FieldDescriptor* field : fields) {
        const FieldDescriptor* target = layer->GetDescriptor()->FindFieldByName(field->name());
        if (!target || field->is_repeated() || field->type() != FieldDescriptor::TYPE_MESSAGE)
            continue;
        layer->GetReflection()
            ->MutableMessage(layer, target)
            ->CopyFrom(old.GetReflection()->GetMessage(old, field));
    }
}

// The layer of the oldest format has all fields in one message.
void copy_oldest_fields(const caffe::V0LayerParameter& old, caffe::LayerParameter* layer) {
    const std::string& type = layer->type();
    if (type == "Convolution") {
        caffe::ConvolutionParameter* p = layer->mutable_convolution_param();
        p->set_num_output(old.num_output()), p->set_bias_term(old.biasterm());
        p->add_kernel_size(old.kernelsize()), p->add_stride(old.stride());
        p->add_pad(old.pad()), p->set_group(old.group());
    } else if (type == "Pooling") {
        caffe::PoolingParameter* p = layer->mutable_pooling_param();
        p->set_pool((caffe::PoolingParameter::PoolMethod)old.pool());
        p->set_kernel_size(old.kernelsize()), p->set_stride(old.stride()), p->set_pad(old.pad());
    } else if (type == "InnerProduct") {
        caffe::InnerProductParameter* p = layer->mutable_inner_product_param();
        p->set_num_output(old.num_output()), p->set_bias_term(old.biasterm());
    } else if (type == "LRN") {
        caffe::LRNParameter* p = layer->mutable_lrn_param();
        p->set_local_size(old.local_size()), p->set_alpha(old.alpha());
        p->set_beta(old.beta()), p->set_k(old.k());
    } else if (type == "Dropout") {
        layer->mutable_dropout_param()->set_dropout_ratio(old.dropout_ratio());
    } else if (type == "Concat") {
        layer->mutable_concat_param()->set_concat_dim(old.concat_dim());
    }
}

int upgrade_oldest_layer(const caffe::V1LayerParameter& old, caffe::LayerParameter* layer) {
    static const char* const kTypes[][2] = {
        {"accuracy", "Accuracy"},
        {"bnll", "BNLL"},
        {"concat", "Concat"},
        {"conv", "Convolution"},
        {"data", "Data"},
        {"dropout", "Dropout"},
        {"euclidean_loss", "EuclideanLoss"},
        {"flatten", "Flatten"},
        {"hdf5_data", "HDF5Data"},
        {"hdf5_output", "HDF5Output"},
        {"im2col", "Im2col"},
        {"images", "ImageData"},
        {"infogain_loss", "InfogainLoss"},
        {"innerproduct", "InnerProduct"},
        {"lrn", "LRN"},
        {"multinomial_logistic_loss", "MultinomialLogisticLoss"},
        {"pool", "Pooling"},
        {"relu", "ReLU"},
        {"sigmoid", "Sigmoid"},
        {"softmax", "Softmax"},
        {"softmax_loss", "SoftmaxWithLoss"},
        {"split", "Split"},
        {"tanh", "TanH"},
        {"window_data", "WindowData"}};
    for (const auto& type : kTypes)
        if (old.layer().type() == type[0]) layer->set_type(type[1]);
    layer->set_name(old.layer().name());
    *layer->mutable_bottom() = old.bottom();
    *layer->mutable_top() = old.top();
    if (layer->type().empty()) {
        QUOLL_LOGE("layer '%s': '%s' is no type of the format with `layers { layer {} }`",
                   layer->name().c_str(), old.layer().type().c_str());
        return -1;
    }
    copy_oldest_fields(old.layer(), layer);
    return 0;
}

// In the oldest format a layer of its own pads for the convolution or pooling behind it.
void fold_padding(caffe::NetParameter* net) {
    std::map<std::string, const caffe::V1LayerParameter*> padding;  // by the blob it makes
    google::protobuf::RepeatedPtrField<caffe::V1LayerParameter> layers;
    for (const caffe::V1LayerParameter& old : net->layers()) {
        const bool single = old.bottom_size() == 1 && old.top_size() == 1;
        if (old.layer().type() == "padding" && single) {
            padding[old.top(0)] = &old;
            continue;
        }
        caffe::V1LayerParameter* layer = layers.Add();
        *layer = old;
        const auto it = single ? padding.find(old.bottom(0)) : padding.end();
        const bool slides = old.layer().type() == "conv" || old.layer().type() == "pool";
        if (it == padding.end() || !slides) continue;
        layer->mutable_layer()->set_pad(it->second->layer().pad());
        layer->set_bottom(0, it->second->bottom(0));
    }
    net->mutable_layers()->Swap(&layers);
}

int upgrade_layers(caffe::NetParameter* net) {
    if (net->layers_size() == 0) return 0;
    if (net->layer_size() > 0) {
        QUOLL_LOGE("expected `layer` or `layers`, got both");
        return -1;
    }
    fold_padding(net);
    for (const caffe::V1LayerParameter& old : net->layers()) {
        caffe::LayerParameter* layer = net->add_layer();
        if (!old.has_layer())
            upgrade_layer(old, layer);
        else if (upgrade_oldest_layer(old, layer))
            return -1;
    }
    net->clear_layers();
    return 0;
}

// `input: "data" input_dim: ...` as Input layers in front of the others.
int upgrade_inputs(caffe::NetParameter* net) {
    const int count = net->input_size();
    if (count == 0) return 0;
    if (net->input_shape_size() > 0 ? net->input_shape_size() != count
                                    : net->input_dim_size() != 4 * count && net->input_dim_size()) {
        QUOLL_LOGE("%d inputs, but %d times input_shape and %d times input_dim", count,
                   net->input_shape_size(), net->input_dim_size());
        return -1;
    }
    google::protobuf::RepeatedPtrField<caffe::LayerParameter> layers;
    for (int i = 0; i < count; i++) {
        caffe::LayerParameter* layer = layers.Add();
        layer->set_name(net->input(i)), layer->set_type("Input");
        layer->add_top(net->input(i));
        if (net->input_shape_size())
            *layer->mutable_input_param()->add_shape() = net->input_shape(i);
        else if (net->input_dim_size())
            for (int k = 0; k < 4; k++) {
                caffe::InputParameter* param = layer->mutable_input_param();
                (param->shape_size() ? param->mutable_shape(0) : param->add_shape())
                    ->add_dim(net->input_dim(4 * i + k));
            }
    }
    for (const caffe::LayerParameter& layer : net->layer()) *layers.Add() = layer;
    net->mutable_layer()->Swap(&layers);
    return 0;
}

bool meets(const caffe::NetState& state, const caffe::NetStateRule& rule) {
    const auto has = [&](const std::string& stage) {
        return std::find(state.stage().begin(), state.stage().end(), stage) != state.stage().end();
    };
    if (rule.has_phase() && rule.phase() != caffe::TEST) return false;
    if (rule.has_min_level() && state.level() < rule.min_level()) return false;
    if (rule.has_max_level() && state.level() > rule.max_level()) return false;
    return std::all_of(rule.stage().begin(), rule.stage().end(), has) &&
           std::none_of(rule.not_stage().begin(), rule.not_stage().end(), has);
}

bool is_tested(const caffe::NetState& state, const caffe::LayerParameter& layer) {
    const auto met = [&](const caffe::NetStateRule& rule) { return meets(state, rule); };
    if (layer.include_size())
        return std::any_of(layer.include().begin(), layer.include().end(), met);
    return std::none_of(layer.exclude().begin(), layer.exclude().end(), met);
}

void keep_tested(caffe::NetParameter* net, std::vector<std::string>* notes) {
    google::protobuf::RepeatedPtrField<caffe::LayerParameter> layers;
    for (caffe::LayerParameter& layer : *net->mutable_layer())
        if (is_tested(net->state(), layer))
            layers.Add()->Swap(&layer);
        else
            notes->push_back(layer.type() + " " + layer.name() +
                             ": left out, for its include or exclude rules");
    net->mutable_layer()->Swap(&layers);
}

}  // namespace

int upgrade_net(caffe::NetParameter* net, std::vector<std::string>* notes) {
    if (upgrade_layers(net) || upgrade_inputs(net)) return -1;
    // A deploy file may leave the phase out, and converting is for testing whatever it says.
    net->mutable_state()->set_phase(caffe::TEST);
    keep_tested(net, notes);
    if (net->layer_size() > 0) return 0;
    QUOLL_LOGE("there are no layers in it");
    return -1;
}

}  // namespace quoll
