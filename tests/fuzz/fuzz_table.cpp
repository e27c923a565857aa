// Hostile calibration tables, range logs and override files of the quantiser. What a table holds comes back from the
// text that is written of it.
#include "harness.h"
#include "quantize/overrides.h"
#include "quantize/table_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    fuzz::quiet();
    const std::string text((const char*)data, size);
    quoll::ScaleTable table, again;
    if (quoll::parse_table(text, "table", &table) == 0) {
        if (quoll::parse_table(quoll::table_text(table), "again", &again) != 0) abort();
        if (table.inputs != again.inputs || table.weights != again.weights) abort();
    }
    std::map<std::string, quoll::ValueRange> ranges;
    quoll::parse_range_log(text, "log", &ranges);
    const fuzz::File file(data, size);
    quoll::QuantizeOptions options;
    bool equalized = false;
    quoll::read_overrides(file.path(), &options, &equalized);
    return 0;
}
