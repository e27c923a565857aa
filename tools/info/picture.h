// A picture of the graph: a box a layer, top to bottom.
#ifndef QUOLL_TOOLS_INFO_PICTURE_H
#define QUOLL_TOOLS_INFO_PICTURE_H

#include <string>
#include <vector>

#include "info/report.h"

namespace quoll {

// Where nodes of a graph are drawn. Layers of the drawing follow the longest path from a node
// without predecessors; the order inside one is by the mean of the neighbours' places, a few times
// up and down (Sugiyama, Tagawa, Toda, "Methods for visual understanding of hierarchical system
// structures", 1981). Edges across several layers bend at nodes of no size in between.
struct GraphLayout {
    struct Edge {
        int from, to;
        std::vector<std::pair<double, double>>
            points;  // from the bottom of one to the top of other
    };
    std::vector<double> x, y;  // centres
    std::vector<Edge> edges;
    double width, height;
};
// edges: pairs of node numbers, without cycles. node_w, node_h: the size of every box.
GraphLayout lay_out(int nodes, const std::vector<std::pair<int, int>>& edges, double node_w,
                    double node_h);

std::string svg_picture(const ModelReport& report);
// Text for XML and HTML.
std::string escaped(const std::string& text);

}  // namespace quoll

#endif
