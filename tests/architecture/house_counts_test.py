"""house_counts.py counts what README.md says, and reads revisions without checking them out."""

import os
import subprocess
import tempfile
import unittest

from house_counts import (
    comment_openings,
    counts,
    function_lines,
    percentile,
    table,
    tree_of_revision,
    tree_of_work,
)


class FunctionLinesTest(unittest.TestCase):
    def test_a_body_counts_from_brace_to_brace(self):
        self.assertEqual(function_lines("int A() { return 1; }\n"), [1])
        self.assertEqual(function_lines("int A(\n    int b) {\n  return b;\n}\n"), [3])
        self.assertEqual(function_lines("int A()\n{\n  return 1;\n}\nint B() { }\n"), [3, 1])

    def test_functions_of_classes_and_namespaces_count(self):
        text = """
namespace a::b {
namespace {
template <typename T>
class C final : public D<T> {
 public:
  explicit C(int x = 1) : x_(x), y_{{x}, 2}, z_{} {
    Use();
  }
  friend bool operator==(const C& a, const C& b) { return a.x_ == b.x_; }
  C& operator=(const C& other) { return *this; }
  int operator()() const {
    return 1;

  }
 private:
  struct E { int f() const noexcept { return 0; } int g = 0; };
  int x_ = 0;
};
}  // namespace
extern "C" {
void F() {
  for (;;) {
  }
}
}
}  // namespace a::b
"""
        self.assertEqual(function_lines(text), [3, 1, 1, 4, 1, 4])

    def test_what_is_no_function_does_not_count(self):
        text = """
#define CALL(x) do { x; \\
  } while (0)
enum class E : int { kA, kB };
enum {
  kC
};
inline constexpr int kTable[] = {
    1,
    2,
};
const auto kLambda = [](int a) {
  return a;
};
int Declared(int a, B b = {});
struct S {
  std::vector<int> v{1, 2};
  int w = f({1, 2});
};
template <typename N>
concept Network = requires(N n) {
  { n.Go() } -> std::same_as<int>;
};
"""
        self.assertEqual(function_lines(text), [])

    def test_a_function_after_them_is_still_found(self):
        text = "int A(B b = {}) {\n}\nconst int kB[] = {1};\nint C(D d = D{1}) {\n\n}\n"
        self.assertEqual(function_lines(text), [2, 3])

    def test_a_lambda_within_a_function_is_part_of_it(self):
        text = "void A() {\n  Each([](int b) {\n    Use(b);\n  });\n  if (c) {\n  }\n}\n"
        self.assertEqual(function_lines(text), [7])

    def test_braces_in_strings_and_comments_do_not_count(self):
        text = (
            'const char* A() {  // {\n  /* { */ Use("}{\\"{");\n'
            '  Use(\'{\', \'"\', 1\'000); if (a) { b = 2\'000;\n'
            '  }\n  return R"x({\n)" {)x";\n}\nint B() { return 1; }\n'
        )
        self.assertEqual(function_lines(text), [7, 1])


class CommentOpeningsTest(unittest.TestCase):
    def test_only_the_first_line_of_a_comment_opens_it(self):
        text = (
            "// A queue.\n// What waits.\n\n  // Whether it waits.\n"
            "int a;  // What it is.\n// How.\n"
        )
        self.assertEqual(comment_openings(text), (3, 2))

    def test_question_words_are_whole_words(self):
        words = ("What", "Whether", "How", "Where", "Which", "When", "Who", "Why")
        for word in words:
            self.assertEqual(comment_openings(f"// {word} it is.\n"), (1, 1), word)
        for word in ("Whatever", "However", "Somewhat", "The"):
            self.assertEqual(comment_openings(f"// {word} it is.\n"), (1, 0), word)


class PercentileTest(unittest.TestCase):
    def test_it_is_the_nearest_rank(self):
        of_ten = [percentile(range(1, 11), share) for share in (0.5, 0.9, 0.99)]
        self.assertEqual(of_ten, [5, 9, 10])
        self.assertEqual(percentile([7, 3], 0.5), 3)
        self.assertEqual(percentile([], 0.5), 0)


# Of every kind of file something that counts, and something that must not.
TREE = {
    "core/base/a.h": "// What it is.\n" + "int x;\n" * 24,
    "core/base/b.h": "// A list.\n" + "int x;\n" * 25,
    "core/base/a.cc": "size_t Index(int32_t i) {\n  return static_cast<size_t>(i);\n}\n"
    + "int A() {\n}\n" * 2
    + "int B() {}\n" * 8,
    "core/engine/c.h": "int servers = 0;\nint observer;\n",
    "core/engine/d.cc": "// Of a Server's own.\nint x;\n",
    "core/network/e.cc": 'const char* kName = "uplink";\n',
    "server/f.cc": "size_t Index(int i);\n// static_cast<size_t>(1); size_t Index(int j) {}\n"
    + "int y = server;\n",
    "server/g.h": "// Whether.\n//\n// How.\nint z;\n",
    "client/h.h": "// An end.\n\nint x;  // what it is\n// Where.\nint y;\n// Who.\n",
    "proto/i.proto": "// What it is.\n" * 5,
    "proto/README.h": "// What it is.\n",
    "tests/core/base/a_test.cc": "// Why.\nsize_t Index(int i) { return 0; }\n",
    "tests/core/engine/c_test.cc": "",
    "tests/server/other/f_test.cc": "",
}


class CountsTest(unittest.TestCase):
    def test_every_row_of_a_small_tree(self):
        self.assertEqual(
            counts(TREE),
            {
                # 25 + 26 + 15 + 2 + 2 + 1 + 3 + 4 + 6, and 5 of the contract.
                "product lines, C++ / with .proto": "84 / 89",
                "product files, C++ / with .proto": "9 / 10",
                "files of 25 lines or fewer": "88.9 % (8 of 9)",
                "header lines p50 / p90": "6 / 26",
                "function lines p50 / p90 / p99": "1 / 2 / 3",
                # 1 + 1 + 3 + 3 of 25 + 26 + 2 + 4 + 6; 1 + 1 of 15 + 2 + 1 + 3.
                "comment share of headers / sources": "12.7 / 9.5 %",
                "header comments that open with a question": "66.7 % (4 of 6)",
                "the same of core and server alone": "66.7 % (2 of 3)",
                "engine and network files that say server": "2",
                "sources with a same-path test": "25.0 % (1 of 4)",
                "stems with a same-path test": "25.0 % (2 of 8)",
                "definitions of `size_t Index(`": "1",
                "casts `static_cast<size_t>(`": "1",
            },
        )

    def test_an_empty_tree_counts_nothing(self):
        self.assertEqual(counts({})["files of 25 lines or fewer"], "0.0 % (0 of 0)")

    def test_a_table_has_a_column_a_tree(self):
        old = {"files": "7", "more lines": "10"}
        newest = {"files": "12", "more lines": "9"}
        self.assertEqual(
            table({"old": old, "newest": newest}),
            "|            | old | newest |\n"
            "| ---------- | --- | ------ |\n"
            "| files      | 7   | 12     |\n"
            "| more lines | 10  | 9      |",
        )


class TreesTest(unittest.TestCase):
    def git(self, top, *arguments):
        names = ("-c", "user.name=n", "-c", "user.email=e@example.com", "-c", "core.hooksPath=")
        return subprocess.run(
            ("git", "-C", top) + names + arguments, check=True, stdout=subprocess.PIPE, text=True
        ).stdout

    def write(self, top, path, text):
        os.makedirs(os.path.dirname(os.path.join(top, path)), exist_ok=True)
        with open(os.path.join(top, path), "w", encoding="utf-8") as file:
            file.write(text)

    def test_revisions_and_the_work_tree_are_read_as_they_are(self):
        with tempfile.TemporaryDirectory() as top:
            self.git(top, "init", "--quiet")
            self.write(top, ".gitignore", "*_gone.h\n")
            self.write(top, "core/a.h", "first\n")
            self.write(top, "core/b.cc", "stays\n")
            self.write(top, "core/README.md", "not read\n")
            self.write(top, "deploy/c.cc", "not read\n")
            self.git(top, "add", ".")
            self.git(top, "commit", "--quiet", "--message=first")
            self.write(top, "core/a.h", "second\n")
            self.write(top, "proto/d.proto", "new\n")
            self.git(top, "add", ".")
            self.git(top, "commit", "--quiet", "--message=second")
            self.write(top, "core/a.h", "third\n")
            self.write(top, "tests/e.h", "untracked\n")
            self.write(top, "tests/e_gone.h", "ignored\n")
            os.remove(os.path.join(top, "core/b.cc"))

            self.assertEqual(
                tree_of_revision(top, "HEAD~1"), {"core/a.h": "first\n", "core/b.cc": "stays\n"}
            )
            self.assertEqual(
                tree_of_revision(top, "HEAD"),
                {"core/a.h": "second\n", "core/b.cc": "stays\n", "proto/d.proto": "new\n"},
            )
            self.assertEqual(
                tree_of_work(top),
                {"core/a.h": "third\n", "proto/d.proto": "new\n", "tests/e.h": "untracked\n"},
            )
            status = self.git(top, "status", "--short")
            self.assertEqual(status, " M core/a.h\n D core/b.cc\n?? tests/\n")

    def test_a_revision_that_is_not_there_is_an_error(self):
        with tempfile.TemporaryDirectory() as top:
            self.git(top, "init", "--quiet")
            with self.assertRaises(subprocess.CalledProcessError):
                tree_of_revision(top, "nowhere")


if __name__ == "__main__":
    unittest.main()
