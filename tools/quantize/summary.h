// What enginequantize prints in the end.
#ifndef QUOLL_TOOLS_QUANTIZE_SUMMARY_H
#define QUOLL_TOOLS_QUANTIZE_SUMMARY_H

#include "quantize/report.h"

namespace quoll {

void print_summary(const QuantizeReport& report);

}  // namespace quoll

#endif
