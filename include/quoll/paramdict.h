// The numbered parameters of one layer, as the param file holds them.
#ifndef QUOLL_PARAMDICT_H
#define QUOLL_PARAMDICT_H

#include <string>

#include "quoll/mat.h"

namespace quoll {

class DataReader;
class DataWriter;

// Ids run from 0 to kMaxParamId.
enum { kMaxParamId = 31 };

class ParamDict {
public:
    // What a stored value is. A binary param does not tell ints from floats: those are "number".
    enum Type {
        kNone = 0,
        kNumber = 1,
        kInt = 2,
        kFloat = 3,
        kNumberArray = 4,
        kIntArray = 5,
        kFloatArray = 6,
        kString = 7,
    };

    ParamDict();
    ParamDict(const ParamDict& other);
    ParamDict& operator=(const ParamDict& other);
    virtual ~ParamDict();

    Type type(int id) const;

    // The value, or `def` if there is none. An int is converted for a float default, and the other
    // way round. An array comes as a 1-D Mat of 32-bit ints or floats (dtype s32 or f32).
    int get(int id, int def) const;
    float get(int id, float def) const;
    Mat get(int id, const Mat& def) const;
    std::string get(int id, const std::string& def) const;
    // An array as floats or as ints, whichever way it is stored.
    Mat get_floats(int id, const Mat& def) const;
    Mat get_ints(int id, const Mat& def) const;

    // These throw std::bad_alloc if there is no memory for another parameter, as constructors do.
    void set(int id, int value);
    void set(int id, float value);
    void set(int id, const Mat& value);  // 1-D, f32 or s32
    void set(int id, const std::string& value);
    // The value of another dict, whatever its type; none if it has none.
    void copy(int id, const ParamDict& from);
    void clear();

    // Reads "id=value" pairs up to the end of the line (which is consumed) or of the text; arrays
    // are "-23300-id=count,v,v" or "id=v,v", strings are "id="text"". `where` names the layer in
    // messages.
    int load_param(const DataReader& dr, const char* where = "");
    // Reads the binary form up to its end marker -233.
    int load_param_bin(const DataReader& dr, const char* where = "");

    // Write what the loaders read: text as " id=value" pairs without a line end, in the order of
    // the ids. Floats read back as the same bits. A number from a binary param whose type is not
    // known is written as an int if it is one below 2^23 in magnitude: as floats, such bits are
    // denormals or NaN. An error: a string that holds a quote or a line end, or an array that is
    // not 1-D f32 or s32.
    int save_param(const DataWriter& dw, const char* where = "") const;
    int save_param_bin(const DataWriter& dw, const char* where = "") const;

private:
    struct Private;
    Private* const d;
};

// The shortest decimal text that reads back as exactly this float, always with '.', 'e', "inf" or
// "nan" in it so that it stays a float; independent of the locale.
std::string float_to_text(float value);

}  // namespace quoll

#endif
