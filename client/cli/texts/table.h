// A table of text, its columns as wide as what is in them.
#pragma once

#include <string>
#include <vector>

namespace stepcast::client {

class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kRight;
  };

  explicit Table(std::vector<Column> columns);

  // REQUIRES: one cell a column.
  void AddRow(std::vector<std::string> cells);
  // The titles and the rows, two spaces between columns and none at the ends of lines. Widths are
  // counted in characters of UTF-8.
  std::string Text() const;

 private:
  std::vector<Align> align_;
  std::vector<std::vector<std::string>> rows_;  // the titles first
};

}  // namespace stepcast::client
