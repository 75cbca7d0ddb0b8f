// All pages of a list as one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/src/error_status.h"

namespace stepcast::client {

// The most entries of a list, and the error of more.
struct ListBound {
  size_t max = 0;
  const char* noun = "";  // of the entries: `profiles`
  const char* reason = "";
};

// Reads page after page from request.page_token on by `read`; `entries` gives the list of a page.
// Failure: that of a page; OUT_OF_RANGE, with the bound's reason; INTERNAL, reason
// PAGE_TOKEN_REPEATED, because a server that repeats a token would keep us here for ever.
template <typename Response, typename Request, typename Read, typename Entries>
absl::StatusOr<Response> AllPages(Request request, const ListBound& bound, const Read& read,
                                  const Entries& entries) {
  Response all;
  do {
    absl::StatusOr<Response> page = read(request);
    if (!page.ok()) return page.status();
    for (auto& entry : *entries(*page)) *entries(all)->Add() = std::move(entry);
    if (static_cast<size_t>(entries(all)->size()) > bound.max) {
      return MakeLocalError(absl::StatusCode::kOutOfRange, bound.reason,
                            absl::StrCat("there are more than ", bound.max, " ", bound.noun),
                            {{"max", absl::StrCat(bound.max)}});
    }
    if (!page->next_page_token().empty() && page->next_page_token() == request.page_token()) {
      return MakeLocalError(absl::StatusCode::kInternal, "PAGE_TOKEN_REPEATED",
                            "the server gave the same page token twice");
    }
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return all;
}

}  // namespace stepcast::client
