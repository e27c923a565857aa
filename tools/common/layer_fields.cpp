#include "layer_fields.h"

#include <string.h>

#include "layer/common/schema.h"

namespace quoll {

namespace {

class IntField : public ParamVisitor {
public:
    IntField(const char* name, int missing) : value(missing), name_(name) {}
    int value;
    void operator()(int, const char* name, int& field, int, const char*, Range) override {
        if (strcmp(name, name_) == 0) value = field;
    }
    void operator()(int, const char*, float&, float, const char*, Range) override {}
    void ints(int, const char*, Mat&, const char*, Range) override {}
    void floats(int, const char*, Mat&, const char*, Range) override {}
    void operator()(int, const char*, std::string&, const char*, const char*) override {}

private:
    const char* name_;
};

}  // namespace

int int_field(Layer* layer, const char* name, int missing) {
    IntField field(name, missing);
    layer->visit_params(field);
    return field.value;
}

}  // namespace quoll
