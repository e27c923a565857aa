#include "info/picture.h"

#include <stdint.h>
#include <stdio.h>

#include <algorithm>
#include <unordered_map>

namespace quoll {

std::string escaped(const std::string& text) {
    std::string out;
    for (char ch : text) {
        if (ch == '&')
            out += "&amp;";
        else if (ch == '<')
            out += "&lt;";
        else if (ch == '>')
            out += "&gt;";
        else if (ch == '"')
            out += "&quot;";
        else if ((unsigned char)ch < 32 && ch != '\n')
            out += '?';
        else
            out += ch;
    }
    return out;
}

namespace {

const double kBendWidth = 12, kGapX = 14, kGapY = 34, kMargin = 20;
const double kBoxWidth = 190, kBoxHeight = 44;
const int kSweeps = 8;

// The nodes of the drawing: those of the graph, and the bends of long edges behind them.
class Layering {
public:
    Layering(int nodes, const std::vector<std::pair<int, int>>& edges, double node_w)
        : nodes_(nodes), widths_(nodes, node_w), rank_(nodes, 0), next_(nodes), before_(nodes) {
        set_ranks(edges);
        for (const auto& edge : edges) chains_.push_back(add_chain(edge.first, edge.second));
        for (size_t v = 0; v < rank_.size(); v++) {
            if ((size_t)rank_[v] >= rows_.size()) rows_.resize(rank_[v] + 1);
            rows_[rank_[v]].push_back((int)v);
        }
        x_.assign(rank_.size(), 0);
    }

    void order() {
        for (auto& row : rows_) spread(&row);
        for (int sweep = 0; sweep < kSweeps; sweep++) {
            const bool down = sweep % 2 == 0;
            for (size_t i = 0; i < rows_.size(); i++)
                sort_row(down ? i : rows_.size() - 1 - i, down ? before_ : next_);
        }
        for (int sweep = 0; sweep < kSweeps; sweep++)
            for (size_t i = 0; i < rows_.size(); i++)
                pull_row(sweep % 2 == 0 ? i : rows_.size() - 1 - i,
                         sweep % 2 == 0 ? before_ : next_);
    }

    GraphLayout result(const std::vector<std::pair<int, int>>& edges, double node_h) {
        double left = 0, right = 0;
        for (size_t v = 0; v < x_.size(); v++) {
            left = std::min(left, x_[v] - widths_[v] / 2);
            right = std::max(right, x_[v] + widths_[v] / 2);
        }
        GraphLayout out;
        const auto px = [&](int v) { return x_[v] - left + kMargin; };
        const auto py = [&](int v) { return kMargin + rank_[v] * (node_h + kGapY) + node_h / 2; };
        for (int v = 0; v < nodes_; v++) out.x.push_back(px(v)), out.y.push_back(py(v));
        for (size_t e = 0; e < edges.size(); e++) {
            GraphLayout::Edge edge = {edges[e].first, edges[e].second, {}};
            edge.points.emplace_back(px(edge.from), py(edge.from) + node_h / 2);
            for (int v : chains_[e]) {
                edge.points.emplace_back(px(v), py(v) - node_h / 2);
                edge.points.emplace_back(px(v), py(v) + node_h / 2);
            }
            edge.points.emplace_back(px(edge.to), py(edge.to) - node_h / 2);
            out.edges.push_back(edge);
        }
        out.width = right - left + 2 * kMargin;
        out.height = rows_.size() * (node_h + kGapY) - kGapY + 2 * kMargin;
        return out;
    }

private:
    void set_ranks(const std::vector<std::pair<int, int>>& edges) {
        std::vector<std::vector<int>> out(nodes_);
        std::vector<int> missing(nodes_, 0), ready;
        for (const auto& edge : edges)
            out[edge.first].push_back(edge.second), missing[edge.second]++;
        for (int v = 0; v < nodes_; v++)
            if (missing[v] == 0) ready.push_back(v);
        while (!ready.empty()) {
            const int v = ready.back();
            ready.pop_back();
            for (int to : out[v]) {
                rank_[to] = std::max(rank_[to], rank_[v] + 1);
                if (--missing[to] == 0) ready.push_back(to);
            }
        }
    }

    std::vector<int> add_chain(int from, int to) {
        std::vector<int> bends;
        int last = from;
        for (int rank = rank_[from] + 1; rank < rank_[to]; rank++) {
            const int bend = (int)rank_.size();
            rank_.push_back(rank), widths_.push_back(kBendWidth);
            next_.emplace_back(), before_.emplace_back();
            link(last, bend);
            bends.push_back(last = bend);
        }
        link(last, to);
        return bends;
    }
    void link(int from, int to) { next_[from].push_back(to), before_[to].push_back(from); }

    double mean(const std::vector<int>& neighbours, double otherwise) const {
        double sum = 0;
        for (int v : neighbours) sum += x_[v];
        return neighbours.empty() ? otherwise : sum / (double)neighbours.size();
    }

    // Side by side around 0, in the row's order.
    void spread(std::vector<int>* row) {
        double width = 0;
        for (int v : *row) width += widths_[v] + kGapX;
        double at = -width / 2;
        for (int v : *row) {
            x_[v] = at + (widths_[v] + kGapX) / 2;
            at += widths_[v] + kGapX;
        }
    }

    void sort_row(size_t r, const std::vector<std::vector<int>>& neighbours) {
        std::vector<std::pair<double, int>> keys;
        for (int v : rows_[r]) keys.emplace_back(mean(neighbours[v], x_[v]), v);
        std::stable_sort(keys.begin(), keys.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
        for (size_t i = 0; i < keys.size(); i++) rows_[r][i] = keys[i].second;
        spread(&rows_[r]);
    }

    // Each as near to its neighbours' mean as those beside it allow.
    void pull_row(size_t r, const std::vector<std::vector<int>>& neighbours) {
        const std::vector<int>& row = rows_[r];
        std::vector<double> wanted, left(row.size()), right(row.size());
        for (int v : row) wanted.push_back(mean(neighbours[v], x_[v]));
        for (size_t i = 0; i < row.size(); i++)
            left[i] = i == 0 ? wanted[i] : std::max(wanted[i], left[i - 1] + distance(row, i));
        for (size_t i = row.size(); i-- > 0;)
            right[i] = i + 1 == row.size()
                           ? wanted[i]
                           : std::min(wanted[i], right[i + 1] - distance(row, i + 1));
        for (size_t i = 0; i < row.size(); i++) x_[row[i]] = (left[i] + right[i]) / 2;
    }
    double distance(const std::vector<int>& row, size_t i) const {
        return (widths_[row[i]] + widths_[row[i - 1]]) / 2 + kGapX;
    }

    const int nodes_;
    std::vector<double> widths_, x_;
    std::vector<int> rank_;
    std::vector<std::vector<int>> next_, before_, rows_;
    std::vector<std::vector<int>> chains_;
};

std::string shortened(const std::string& text, size_t most) {
    return text.size() <= most ? text : text.substr(0, most - 2) + "..";
}

// A pale colour that a type always has.
std::string colour(const std::string& type) {
    uint32_t hash = 2166136261u;  // FNV-1a
    for (char ch : type) hash = (hash ^ (unsigned char)ch) * 16777619u;
    return "hsl(" + std::to_string(hash % 360) + ",55%,88%)";
}

std::string number(double v) {
    char text[32];
    snprintf(text, sizeof(text), "%.1f", v);
    return text;
}

std::string details(const ModelReport& report, size_t i) {
    const ModelLayer& layer = report.model->layers[i];
    const LayerFacts& facts = report.facts.layers[i];
    std::string text = layer.type + " " + layer.name;
    for (const auto& field : named_params(layer)) text += "\n" + field.first + " " + field.second;
    if (facts.cost.macs > 0) text += "\nmultiply-accumulates " + grouped(facts.cost.macs);
    for (const WeightFacts& w : facts.weights) text += "\n" + w.name + " " + grouped(w.count);
    return text;
}

std::string box(const ModelReport& report, size_t i, double x, double y) {
    const ModelLayer& layer = report.model->layers[i];
    const LayerFacts& facts = report.facts.layers[i];
    const std::string size = facts.outputs.empty() ? "" : size_text(facts.outputs[0]);
    std::string svg = "<g class=\"layer\"><title>" + escaped(details(report, i)) +
                      "</title><rect x=\"" + number(x - kBoxWidth / 2) + "\" y=\"" +
                      number(y - kBoxHeight / 2) + "\" width=\"" + number(kBoxWidth) +
                      "\" height=\"" + number(kBoxHeight) + "\" rx=\"5\" fill=\"" +
                      colour(layer.type) + "\"/>";
    const auto line = [&](const std::string& text, double dy, const char* style) {
        svg += "<text x=\"" + number(x) + "\" y=\"" + number(y + dy) + "\" class=\"" + style +
               "\">" + escaped(text) + "</text>";
    };
    line(shortened(layer.type, 28), -7, "t");
    line(shortened(layer.name, 32), 5, "n");
    line(size, 17, "n");
    return svg + "</g>\n";
}

}  // namespace

GraphLayout lay_out(int nodes, const std::vector<std::pair<int, int>>& edges, double node_w,
                    double node_h) {
    Layering layering(nodes, edges, node_w);
    layering.order();
    return layering.result(edges, node_h);
}

std::string svg_picture(const ModelReport& report) {
    const auto& layers = report.model->layers;
    std::unordered_map<std::string, int> producers;
    std::vector<std::pair<int, int>> edges;
    std::vector<std::string> labels;
    for (size_t i = 0; i < layers.size(); i++)
        for (const std::string& blob : layers[i].outputs) producers[blob] = (int)i;
    for (size_t i = 0; i < layers.size(); i++) {
        for (const std::string& blob : layers[i].inputs) {
            edges.emplace_back(producers[blob], (int)i);
            labels.push_back(blob);
        }
    }
    const GraphLayout layout = lay_out((int)layers.size(), edges, kBoxWidth, kBoxHeight);
    const std::string w = number(layout.width), h = number(layout.height);
    std::string svg =
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + w + "\" height=\"" + h +
        "\" viewBox=\"0 0 " + w + " " + h +
        "\">\n<style>text{font-family:sans-serif;text-anchor:middle}text.t{font-size:12px;"
        "font-weight:bold}text.n{font-size:10px;fill:#333}rect{stroke:#666}"
        "path{fill:none;stroke:#888;marker-end:url(#arrow)}</style>\n<defs><marker id=\"arrow\" "
        "viewBox=\"0 0 8 8\" "
        "refX=\"8\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\" "
        "markerUnits=\"userSpaceOnUse\"><polygon "
        "points=\"0,0 8,4 0,8\" "
        "fill=\"#888\"/></marker></defs>\n";
    for (size_t e = 0; e < layout.edges.size(); e++) {
        const auto& points = layout.edges[e].points;
        std::string path = "M" + number(points[0].first) + " " + number(points[0].second);
        for (size_t i = 1; i < points.size(); i++) {
            const auto &a = points[i - 1], &b = points[i];
            const std::string middle = number((a.second + b.second) / 2);
            path += "C" + number(a.first) + " " + middle + " " + number(b.first) + " " + middle +
                    " " + number(b.first) + " " + number(b.second);
        }
        svg += "<path data-from=\"" + std::to_string(edges[e].first) + "\" data-to=\"" +
               std::to_string(edges[e].second) + "\" d=\"" + path + "\"><title>" +
               escaped(labels[e]) + "</title></path>\n";
    }
    for (size_t i = 0; i < layers.size(); i++) svg += box(report, i, layout.x[i], layout.y[i]);
    return svg + "</svg>\n";
}

}  // namespace quoll
