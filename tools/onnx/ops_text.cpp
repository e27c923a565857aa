// Operators on words: TfIdfVectorizer. Words are numbers here, strings are theirs in the table.
#include <algorithm>

#include "onnx/limits.h"
#include "onnx/ops_ml.h"

namespace quoll {
namespace onnx_tool {

using namespace ml;

namespace {

Attributes last_axis() { return {{"axis", attribute_of((int64_t)-1)}}; }

// The n-grams of the lengths that are asked for, one length behind the other.
struct Grams {
    std::vector<Ints> words;  // of each n-gram
    Ints columns;             // where its count goes
    Floats weights;           // what that is multiplied by; none without weights
};

// False after fail().
bool read_grams(Op& op, Grams* grams) {
    Ints pool = op.attr_ints("pool_int64s");
    const std::vector<std::string>& texts = strings_of(op, "pool_strings");
    if ((op.in(0)->type == ElementType::kString) == texts.empty())
        return op.fail("n-grams of %s for an input of %s", texts.empty() ? "numbers" : "strings",
                       type_name(op.in(0)->type));
    if (!texts.empty()) pool = op.c.strings->places_of(texts);
    const Ints starts = op.attr_ints("ngram_counts"), columns = op.attr_ints("ngram_indexes");
    const int64_t least = op.attr("min_gram_length", 1), most = op.attr("max_gram_length", 1);
    if (least < 1 || most < least)
        return op.fail("n-grams of %d to %d words", (int)least, (int)most);
    const Floats weights = op.attr_floats("weights");
    if (!weights.empty() && weights.size() != columns.size())
        return op.fail("%zu weights for %zu n-grams", weights.size(), columns.size());
    size_t gram = 0;
    for (size_t i = 0; i < starts.size(); i++) {
        const int64_t length = (int64_t)i + 1, begin = starts[i];
        const int64_t end = i + 1 < starts.size() ? starts[i + 1] : (int64_t)pool.size();
        if (begin < 0 || end < begin || end > (int64_t)pool.size() || (end - begin) % length)
            return op.fail("ngram_counts: n-grams of %d words at %lld to %lld of %zu", (int)length,
                           (long long)begin, (long long)end, pool.size());
        for (int64_t at = begin; at < end; at += length, gram++) {
            if (gram >= columns.size() || columns[gram] < 0 || columns[gram] > INT32_MAX)
                return op.fail("ngram_indexes: %zu, none for n-gram %zu", columns.size(), gram);
            if (length < least || length > most) continue;
            grams->words.emplace_back(pool.begin() + at, pool.begin() + at + length);
            grams->columns.push_back(columns[gram]);
            if (!weights.empty()) grams->weights.push_back(weights[gram]);
        }
    }
    return !grams->words.empty() || op.fail("no n-grams of %d to %d words", (int)least, (int)most);
}

// How often each of the n-grams begin to end, all of one length, is in the last axis of x with
// `step` from a word to the next.
std::string counts(Nodes& n, const std::string& x, const std::vector<Ints>& grams, int64_t step) {
    const int64_t length = (int64_t)grams[0].size();
    std::string all;
    for (int64_t word = 0; word < length; word++) {
        Ints keys;
        for (const Ints& gram : grams) keys.push_back(gram[(size_t)word]);
        const int64_t behind = (length - 1 - word) * step;
        const std::string from =
            length == 1 ? x : n.slice(x, -1, word * step, behind ? -behind : INT32_MAX);
        const std::string same =
            n.add("Equal", {n.add("Unsqueeze", {from, n.ints({-1})}), n.ints(keys)});
        all = all.empty() ? same : n.add("And", {all, same});
    }
    return n.add("ReduceSum", {n.cast(all, ElementType::kFloat), n.ints({-2})},
                 {{"keepdims", attribute_of((int64_t)0)}});
}

// Counts in the order of the n-grams as they go to the columns, 0 where none goes.
std::string in_columns(Op& op, Nodes& n, const std::string& found, const Ints& columns,
                       int64_t width) {
    const int64_t none = (int64_t)columns.size();
    Limits::spend_bytes(width * (int64_t)sizeof(int64_t));
    Ints from((size_t)width, none);
    for (size_t i = 0; i < columns.size(); i++) {
        int64_t& gram = from[(size_t)columns[i]];
        if (gram != none) {
            op.fail("ngram_indexes: %lld stands for two n-grams", (long long)columns[i]);
            return "";
        }
        gram = (int64_t)i;
    }
    Ints pads((size_t)op.in(0)->rank() * 2, 0);
    pads.back() = 1;
    const bool gaps = std::count(from.begin(), from.end(), none) > 0;
    return n.add("Gather", {gaps ? n.add("Pad", {found, n.ints(pads)}) : found, n.ints(from)},
                 last_axis());
}

bool tfidf_vectorizer(Op& op) {
    Grams grams;
    const Value* x = op.in(0);
    if (x->rank() < 1 || x->rank() > 2) return op.fail("rank %d", x->rank());
    if (!read_grams(op, &grams)) return false;
    const Ints columns = op.attr_ints("ngram_indexes");
    const int64_t width = *std::max_element(columns.begin(), columns.end()) + 1;
    const std::string mode = op.attr_string("mode", "");
    if (mode != "TF" && mode != "IDF" && mode != "TFIDF") return op.fail("mode %s", mode.c_str());

    Nodes n(op);
    const std::string words = n.as_type(n.in(0), ElementType::kInt64);
    const int64_t skips = op.attr("max_skip_count", 0);
    std::vector<std::string> found;
    for (size_t i = 0; i < grams.words.size();) {
        const size_t length = grams.words[i].size(), begin = i;
        while (i < grams.words.size() && grams.words[i].size() == length) i++;
        const std::vector<Ints> same(grams.words.begin() + begin, grams.words.begin() + i);
        std::string sum = counts(n, words, same, 1);
        for (int64_t skip = 1; skip <= skips && length > 1; skip++) {
            const Dim& size = x->shape.back();
            if (size.known() && (int64_t)(length - 1) * (skip + 1) >= size.value) break;
            sum = n.add("Add", {sum, counts(n, words, same, skip + 1)});
        }
        found.push_back(sum);
    }
    std::string y = found.size() == 1 ? found[0] : n.add("Concat", found, last_axis());
    y = in_columns(op, n, y, grams.columns, width);
    if (mode == "IDF") y = n.cast(n.add("Greater", {y, n.scalar(0.f)}), ElementType::kFloat);
    if (mode != "TF" && !grams.weights.empty()) {
        Floats weights((size_t)width);
        for (size_t i = 0; i < grams.columns.size(); i++)
            weights[(size_t)grams.columns[i]] = grams.weights[i];
        y = n.add("Mul", {y, n.constant(floats_tensor(weights, {width}))});
    }
    return n.set(0, y);
}

}  // namespace

const char* why_missing(const std::string& domain, const std::string& name) {
    const char* const of_letters[] = {"::RegexFullMatch", "::StringConcat", "::StringNormalizer",
                                      "::StringSplit", "com.microsoft::Tokenizer"};
    for (const char* one : of_letters)
        if (domain + "::" + name == one)
            return "works on the letters of strings, which are known by their places in a table "
                   "alone: do this before, outside the model";
    if (domain == "com.microsoft.nchwc")
        return "made by ONNX Runtime for one processor: save with ORT_ENABLE_EXTENDED, or convert "
               "the model before optimisation";
    return "no such operator here";
}

OpTable text_ops() {
    return {{"", "TfIdfVectorizer", 9, 0, tfidf_vectorizer, kStringsLimit, 1, kOpFirstStrings}};
}

}  // namespace onnx_tool
}  // namespace quoll
