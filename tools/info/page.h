// engineinfo's page.
#ifndef QUOLL_TOOLS_INFO_PAGE_H
#define QUOLL_TOOLS_INFO_PAGE_H

#include <string>

#include "info/report.h"

namespace quoll {

// The summary, the picture with search, zoom and details of the layer that is clicked, and a table
// of layers that can be sorted; needs nothing else.
std::string html_page(const ModelReport& report);

}  // namespace quoll

#endif
