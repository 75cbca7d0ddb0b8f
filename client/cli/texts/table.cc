#include "client/cli/texts/table.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "client/cli/texts/characters.h"

namespace stepcast::client {

namespace {

size_t Width(const std::string& text) {
  // Every byte but those that continue a character.
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

}  // namespace

Table::Table(std::vector<Column> columns) {
  std::vector<std::string>& titles = rows_.emplace_back();
  for (Column& column : columns) {
    align_.push_back(column.align);
    titles.push_back(std::move(column.title));
  }
}

void Table::AddRow(std::vector<std::string> cells) {
  assert(cells.size() == align_.size());
  for (std::string& cell : cells) cell = Escaped(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::Text() const {
  std::vector<size_t> widths(align_.size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - Width(row[i]), ' ');
      line += align_[i] == Align::kLeft ? row[i] + padding : padding + row[i];
      line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace stepcast::client
