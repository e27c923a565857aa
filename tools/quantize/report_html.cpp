#include "quantize/report.h"

namespace quoll {

std::string report_html(const QuantizeReport& report) {
    return "<!doctype html><meta charset=utf-8><title>enginequantize</title><pre>" +
           report_json(report) + "</pre>";
}

}  // namespace quoll
